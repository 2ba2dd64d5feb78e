/*
 * The environment of a program that we start.
 *
 * What is of our own house (an agent, a rule's command) has what we have. What a client or a model
 * asked for has a short list of it. Neither has the secrets of our settings, nor our settings at all
 * (KOINE_…), unless the settings give them to that program by their names.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"

/* Whoever starts programs keeps a pointer to one, which may be filled in later. */
struct environment {
	const char *const *list; /* NULL-ended "NAME=VALUE"; NULL: all of ours */
};

struct environment_opts {
	const char *const *from;    /* ours; its texts stay where they are */
	bool brief;                 /* the short list */
	const char *const *secrets; /* NULL-ended names of variables */
	const char *const *own;     /* NULL-ended "NAME=VALUE" that all have: where we are */
	/* Words of the settings, NULL-ended: NAME, or NAME* which gives no secret, or NAME=VALUE. NULL:
	 * none. */
	const char *const *given;
};

/* As large as it is, from the arena, with the texts where they were; 0 or -ENOMEM. */
int environment_make(struct arena *a, const struct environment_opts *o,
		     struct environment *ret_environment);

/* Whether it is such a word of the settings. */
bool environment_is_word(const char *word);

/* The value of a variable, or NULL. */
const char *environment_find(const struct environment *e, const char *name);

static inline const char *const *environment_list(const struct environment *e)
{
	return e ? e->list : NULL;
}
