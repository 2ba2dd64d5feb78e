/* Internal to index/: the state of the model's client, shared by its files. */
#pragma once

#include <stdatomic.h>

#include "agent/embeddings.h"
#include "base/list.h"
#include "engine/index/embedding.h"

enum { EMBEDDING_TEXT_CHARS = 8000 }; /* of one memory or question: models do not look at more */

struct events;
struct memory_changes;
struct store;

struct embedding {
	struct store *store;
	struct memory_changes *changes; /* of the writer's batch */
	struct events *events;          /* NULL: there are no other hosts */
	struct loop *loop;
	struct embeddings *model;
	struct workers *workers;
	char *name;
	char *url;
	unsigned timeout_ms;
	struct wake *wake;      /* wakes the loop from other threads, for the atomics below */
	struct timer *timer;    /* until the next try */
	struct timer *patience; /* with the host that added what `heard` is about */

	/* for any thread */
	atomic_uint dim;
	atomic_uint strange_dim;    /* the length of a question's vector, or 0 */
	atomic_int_least64_t dirty; /* the first memory that may lack a vector */
	atomic_int_least64_t heard; /* the same, of another host that may have a model, too */
	atomic_bool fails;
	int64_t noted; /* the writer's: the same, but not committed yet */

	/* the loop */
	struct list batches;
	struct list questions;
	unsigned n_batches;
	unsigned n_questions;
	unsigned n_guests; /* requests for texts that are not memories */
	unsigned batch_max;
	unsigned n_failures;    /* since the last success */
	unsigned n_refused;     /* texts, since the last success */
	unsigned n_passed_over; /* texts */
	unsigned n_unanswered;  /* questions, since the last answer */
	uint64_t ask_again_ms;  /* no questions before this time */
	uint64_t dim_changed_ms;
	int64_t after;  /* memories up to here have been checked */
	int64_t rewind; /* except those after this one */
	bool finding;
	bool pausing; /* the timer is running */
	bool waiting; /* `patience` is running */
	bool resting; /* it is the long pause: everything is done except what was skipped */
	bool at_end;
	bool stopping;
};

/* ---- batches of memories (batch.c) ---- */

/* Finds the next memories without a vector, unless enough is under way. Runs on the loop. */
void embedding_next_batch(struct embedding *e);

/* Ends the batches that wait for the model. Those on a thread come back by themselves. */
void embedding_cancel_batches(struct embedding *e);

/* ---- questions of searches (question.c) ---- */

void embedding_cancel_questions(struct embedding *e);

/* ---- what both share (embedding.c); on the loop ---- */

void embedding_look_from(struct embedding *e, int64_t seq);
void embedding_pause(struct embedding *e, unsigned ms);

/* How long to wait after this many failures in a row. */
unsigned embedding_back_off(unsigned n, unsigned most_ms);

/*
 * The same name may refer to another model by now; then all vectors are made again. A name
 * that alternates between two models is refused, since we would otherwise do so for ever.
 */
int embedding_check_dim(struct embedding *e, unsigned dim, bool *ret_new, struct error *error);

/* Any thread may call it: whether a vector of this length can be compared with those in the
 * store. If no length was known, this one is recorded. */
bool embedding_take_dim(struct embedding *e, unsigned dim);
