/*
 * Vectors for memories, by a model elsewhere. On the loop, and mostly waiting: it looks
 * for memories without a vector, has the model make them in batches, and puts
 * them into the store. When the model is away it tries again, ever less often; what
 * it has done so far is in the store, so it goes on there after a restart.
 *
 * It also asks for the vector of a question, in the little time that a search has.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/work.h"

struct embedding;
struct embedding_question;
struct memory_changes;
struct store;

struct embedding_opts {
	struct loop *loop;
	struct background background;
	const char *url;
	const char *model;
	const char *key;     /* "" for none */
	unsigned timeout_ms; /* for a question */
};

/* Refuses a URL that cannot be. */
int embedding_check(const char *url, struct why *why);

/* Before the first call. `changes` are those of the writer's batch. Refuses a URL or key that
 * cannot be. */
int embedding_start(const struct embedding_opts *opts, struct store *store,
		    struct memory_changes *changes, struct embedding **ret_embedding,
		    struct why *why);

/* Begins nothing new. Questions that are open go on. Accepts NULL. */
void embedding_stop(struct embedding *e);

/* After the last work has finished. Accepts NULL. */
void embedding_free(struct embedding *e);

/*
 * Asks for a question's vector. NULL when there is nothing to wait for: no model, one that was
 * away a moment ago, too many questions at once. Otherwise `done` comes, once and
 * later, with what embedding_read takes, valid meanwhile, or {NULL, 0}.
 */
struct embedding_question *embedding_ask(struct embedding *e, struct text question,
					 void (*done)(void *arg, struct text answer), void *arg);
void embedding_cancel(struct embedding_question *q);

/* A unit vector, in floats and in bytes. */
struct embedding_vector {
	unsigned dim; /* 0: of no use, words alone must do */
	float *numbers;
	int8_t *bytes;
	float scale;
};

/* The vector in an answer, on any thread. What is of no use is dim 0; -ENOMEM. */
int embedding_read(struct embedding *e, struct arena *a, struct text answer,
		   struct embedding_vector *ret_vector);

/* The model's name; on any thread. */
struct text embedding_model(const struct embedding *e);

/* Where it is; "" without one. */
const char *embedding_url(const struct embedding *e);

/* The length of its vectors as far as known; 0: not yet. On any thread. */
unsigned embedding_dim(const struct embedding *e);

/* Whether the last thing asked of the model went wrong. On any thread. */
bool embedding_fails(const struct embedding *e);

/* On the writer's thread: a memory has no vector (any more); and, that is committed. */
void embedding_note(struct embedding *e, int64_t seq);
void embedding_committed(struct embedding *e);
