/* Inside memory/: what asks the model, as its files share it. */
#pragma once

#include <stdatomic.h>

#include "agent/embeddings.h"
#include "base/list.h"
#include "engine/memory/embedding.h"

enum { EMBEDDING_TEXT_CHARS = 8000 }; /* of one memory or question: more than models look at */

struct memory_changes;
struct store;

struct embedding {
	struct store *store;
	struct memory_changes *changes; /* of the writer's batch */
	struct loop *loop;
	struct embeddings *model;
	struct background background;
	char *name;
	char *url;
	unsigned timeout_ms;
	struct wake *wake;   /* from the other threads, for the atomics below */
	struct timer *timer; /* until the next try */

	/* any thread */
	atomic_uint dim;
	atomic_uint strange_dim;    /* that a question's vector had, or 0 */
	atomic_int_least64_t dirty; /* the first memory that may lack a vector */
	atomic_bool fails;
	int64_t noted; /* the writer's: the same, not yet committed */

	/* the loop */
	struct list batches;
	struct list questions;
	unsigned n_batches;
	unsigned n_questions;
	unsigned n_guests; /* who ask for texts that are no memories */
	unsigned batch_max;
	unsigned n_failures;    /* since the last success */
	unsigned n_refused;     /* texts, since the last success */
	unsigned n_passed_over; /* texts */
	unsigned n_unanswered;  /* questions, since the last answer */
	uint64_t ask_again_ms;  /* no question before */
	uint64_t dim_changed_ms;
	int64_t after;  /* memories up to here have been looked at */
	int64_t rewind; /* ... except those behind this one */
	bool finding;
	bool pausing; /* the timer runs */
	bool resting; /* ... for long, since all is done but what was passed over */
	bool at_end;
	bool stopping;
};

/* ---- batches of memories (batch.c) ---- */

/* Finds the next memories without a vector, unless enough is under way. On the loop. */
void embedding_next_batch(struct embedding *e);

/* Ends those that wait for the model. Those on a thread come back by themselves. */
void embedding_cancel_batches(struct embedding *e);

/* ---- questions of searches (question.c) ---- */

void embedding_cancel_questions(struct embedding *e);

/* ---- what both share (embedding.c); on the loop ---- */

void embedding_look_from(struct embedding *e, int64_t seq);
void embedding_pause(struct embedding *e, unsigned ms);

/* How long to wait after so many failures in a row. */
unsigned embedding_back_off(unsigned n, unsigned most_ms);

/*
 * The same name may stand for another model by now; then all vectors are made anew. A name that
 * alternates between two models is refused, since it would have us do so for ever.
 */
int embedding_check_dim(struct embedding *e, unsigned dim, bool *ret_new, struct why *why);

/* On any thread: whether a vector of this length may be compared with those in the store. Where
 * none was known, it is known from now on. */
bool embedding_take_dim(struct embedding *e, unsigned dim);
