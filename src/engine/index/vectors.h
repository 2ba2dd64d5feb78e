/*
 * Vectors of texts that clients send, which are not stored: made by the model that the
 * memories use or, without one, by koine-hash (see search/hash_embed.h).
 *
 * The model is called on the loop, for some texts at a time, one batch after another. Turning
 * its answer into vectors takes too long for the loop; any thread may do it.
 *
 * `e` is the memories' model; NULL stands for koine-hash.
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/error.h"

struct embedding;
struct vectors_ask;

enum {
	VECTORS_TEXTS_MAX = 2048, /* in one request, as with OpenAI */
	VECTORS_TEXT_MAX = 32768, /* bytes of one text */
	VECTORS_ASKS_MAX = 16,    /* at once */
};

/* Refuses an empty text and one that is too long; `name` is its parameter. */
int vectors_check(const char *name, struct text text, struct error *error);

/* The same for a list of texts; also refuses an empty list and one that is too long. */
int vectors_check_list(const char *name, const struct text *texts, unsigned n, struct error *error);

/* The name of their model, as answers give it. Any thread may call it. */
struct text vectors_model(const struct embedding *e);

/* How many numbers a vector has; 0: the model has not been asked yet. Any thread may call it. */
unsigned vectors_dim(const struct embedding *e);

/*
 * Asks the model; call it only if there is one. `done` is called once, later, with 0, a
 * refusal or an error; vectors_end must be called then, or before. Texts and arena must stay
 * valid until then. Refuses (REFUSE_LIMIT) if there are too many requests.
 */
int vectors_ask(struct embedding *e, struct arena *a, const struct text *texts, unsigned n,
		void (*done)(void *arg, int r, const struct error *error), void *arg,
		struct vectors_ask **ret_ask, struct error *error);

/* Call it once, before or after `done`, which is not called after it. Accepts NULL. */
void vectors_end(struct vectors_ask *q);

struct vectors {
	unsigned n;
	unsigned dim;
	struct text model;    /* as its answer gives it, in the arena; {NULL, 0}: it gives none */
	const float *numbers; /* n times dim, in the order of the texts, in the arena */
};

/* On any thread, after `done` was called with 0: the model's vectors. */
int vectors_read(const struct vectors_ask *q, struct vectors *ret_vectors, struct error *error);

/* On any thread: the vectors of koine-hash. */
int vectors_hash(struct arena *a, const struct text *texts, unsigned n,
		 struct vectors *ret_vectors);
