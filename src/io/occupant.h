/*
 * Who listens at an address already, as far as the kernel tells: for sentences that people read.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "io/listener.h"

struct occupant {
	bool known; /* its user is */
	uid_t uid;
	pid_t pid;        /* 0: not known, as of another user's port */
	char program[32]; /* ""; what the kernel calls it, printable */
};

/* False: nobody listens there. */
bool occupant_find(const struct address *a, struct occupant *ret);

enum { OCCUPANT_TEXT_MAX = 128 };

/* "hld, pid 4711", with ", user NAME" if that is not us; "somebody". */
void occupant_format(const struct occupant *o, char out[OCCUPANT_TEXT_MAX]);
