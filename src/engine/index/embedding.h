/*
 * Vectors for memories, made by an external model. This runs on the loop and mostly waits: it
 * looks for memories without a vector, has the model make vectors in batches, and stores them.
 * If the model is unavailable, it tries again less and less often. Its progress is in the
 * store, so it continues there after a restart.
 *
 * It also requests the vector of a question, within the short time that a search has.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct embedding;
struct embedding_question;
struct events;
struct memory_changes;
struct store;

struct embedding_opts {
	struct loop *loop;
	struct workers *workers;
	const char *url;
	const char *model;
	const char *key;     /* "" for none */
	unsigned timeout_ms; /* for a question */
};

/* Call it before the first call. `changes` are those of the writer's batch; `events` are told which
 * memories have got a vector (NULL: there are no other hosts). Refuses an invalid URL or key. */
int embedding_start(const struct embedding_opts *opts, struct store *store,
		    struct memory_changes *changes, struct events *events,
		    struct embedding **ret_embedding, struct error *error);

/* Starts nothing new. Open questions continue. Accepts NULL. */
void embedding_stop(struct embedding *e);

/* Call it after the last work has finished. Accepts NULL. */
void embedding_free(struct embedding *e);

/*
 * Requests the vector of a question. NULL if there is nothing to wait for: there is no model,
 * it was unavailable a moment ago, or there are too many questions at once. Otherwise `done`
 * is called once, later, with the argument for embedding_read, valid until it returns, or with
 * {NULL, 0}.
 */
struct embedding_question *embedding_ask(struct embedding *e, struct text question,
					 void (*done)(void *arg, struct text answer), void *arg);
void embedding_cancel(struct embedding_question *q);

/* A unit vector, as floats and as bytes. */
struct embedding_vector {
	unsigned dim; /* 0: unusable, search by words alone */
	float *numbers;
	int8_t *bytes;
	float scale;
};

/* Reads the vector in an answer, on any thread. An unusable one has dim 0; -ENOMEM. */
int embedding_read(struct embedding *e, struct arena *a, struct text answer,
		   struct embedding_vector *ret_vector);

/* The model's name. Any thread may call it. */
struct text embedding_model(const struct embedding *e);

/* The model's URL; "" if there is none. */
const char *embedding_url(const struct embedding *e);

/* The length of its vectors; 0: not known yet. Any thread may call it. */
unsigned embedding_dim(const struct embedding *e);

/* Whether the last request to the model failed. Any thread may call it. */
bool embedding_fails(const struct embedding *e);

/* Both run on the writer's thread: the first notes that a memory has no vector (any more), the
 * second that this is committed. */
void embedding_note(struct embedding *e, int64_t seq);
void embedding_committed(struct embedding *e);

/* Another host has added or changed a memory, which has no vector yet. That host makes it, if it has a
 * model; if it is still missing some seconds later, we do. Any thread. */
void embedding_hear(struct embedding *e, int64_t seq);
