/*
 * Vectors of texts that clients bring, which are kept nowhere: by the model that memories have
 * theirs from, or, without one, by koine-hash (see search/hash_embed.h).
 *
 * The model is asked on the loop, for some texts at a time, one batch after another. Making
 * vectors of what it answered costs time that the loop does not have; any thread may do it.
 *
 * `e` is the memories' model; NULL stands for koine-hash.
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/why.h"

struct embedding;
struct vectors_ask;

enum {
	VECTORS_TEXTS_MAX = 2048, /* of one ask, as OpenAI has it */
	VECTORS_TEXT_MAX = 32768, /* bytes of one text */
	VECTORS_ASKS_MAX = 16,    /* at once */
};

/* Refuses an empty text and one that is too long; `name` is the parameter it came in. */
int vectors_check(const char *name, struct text text, struct why *why);

/* The same of a list of them, and of one with none or too many. */
int vectors_check_list(const char *name, const struct text *texts, unsigned n, struct why *why);

/* Of which model they are, as answers name it. On any thread. */
struct text vectors_model(const struct embedding *e);

/* How many numbers one has; 0: the model was not asked yet. On any thread. */
unsigned vectors_dim(const struct embedding *e);

/*
 * Asks the model; only where there is one. `done` comes once and later, with 0, a refusal or a
 * fault; then, or before, vectors_end must follow. Texts and arena must stay until then. Refuses
 * (REFUSE_LIMIT) when too many ask.
 */
int vectors_ask(struct embedding *e, struct arena *a, const struct text *texts, unsigned n,
		void (*done)(void *arg, int r, const struct why *why), void *arg,
		struct vectors_ask **ret_ask, struct why *why);

/* Once, before or after `done`, which does not come any more. Accepts NULL. */
void vectors_end(struct vectors_ask *q);

struct vectors {
	unsigned n;
	unsigned dim;
	struct text model;    /* as its answer names it, in the arena; {NULL, 0}: it does not */
	const float *numbers; /* n times dim, in the order of the texts, in the arena */
};

/* On any thread, after `done` came with 0: as the model made them. */
int vectors_read(const struct vectors_ask *q, struct vectors *ret_vectors, struct why *why);

/* On any thread: those of koine-hash. */
int vectors_hash(struct arena *a, const struct text *texts, unsigned n,
		 struct vectors *ret_vectors);
