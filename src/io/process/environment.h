/*
 * The environment of a program that we start.
 *
 * Programs of our own house (an agent, a rule's command) get what we have. Programs that a
 * client or a model asked for get a short list of it. Neither gets the secrets of our
 * settings, nor our settings at all (KOINE_…), unless the settings give them to that program
 * by name.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"

/* Whoever starts programs keeps a pointer to one, which may be filled in later. */
struct environment {
	const char *const *list; /* NULL-ended "NAME=VALUE"; NULL: all of ours */
};

struct environment_opts {
	const char *const *from;    /* our own; its texts are not copied */
	bool brief;                 /* the short list */
	const char *const *secrets; /* NULL-ended names of variables */
	const char *const *own; /* NULL-ended "NAME=VALUE" that every program gets: where we are */
	/* Words of the settings, NULL-ended: NAME, or NAME* which gives no secret, or
	 * NAME=VALUE. NULL: none. */
	const char *const *given;
};

/* Allocated from the arena, with the texts left where they were; 0 or -ENOMEM. */
int environment_make(struct arena *a, const struct environment_opts *o,
		     struct environment *ret_environment);

/* Whether this is such a word of the settings. */
bool environment_is_word(const char *word);

/* The value of a variable, or NULL. */
const char *environment_find(const struct environment *e, const char *name);

static inline const char *const *environment_list(const struct environment *e)
{
	return e ? e->list : NULL;
}
