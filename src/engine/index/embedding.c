#include "engine/index/embedding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "engine/index/embedding_inner.h"

enum {
	SOON_MS = 50,          /* so that memories that arrive together are sent together */
	BACK_OFF_MS = 1000,    /* at first, then doubled each time */
	DIM_CHANGE_MS = 60000, /* a model's length may not change twice within this */
	PATIENCE_MS = 10000,   /* for a vector that another host may make */
};

void embedding_look_from(struct embedding *e, int64_t seq)
{
	if (seq - 1 < e->rewind)
		e->rewind = seq - 1;
	e->at_end = false;
}

unsigned embedding_back_off(unsigned n, unsigned most)
{
	unsigned ms = BACK_OFF_MS;

	while (n-- > 1 && ms < most)
		ms *= 2;
	return ms < most ? ms : most;
}

void embedding_pause(struct embedding *e, unsigned ms)
{
	e->pausing = true;
	timer_start(e->timer, ms);
}

static void on_timer(void *arg)
{
	struct embedding *e = arg;

	e->pausing = false;
	if (e->resting) {
		e->n_passed_over = 0;
		embedding_look_from(e, 1);
	}
	e->resting = false;
	embedding_next_batch(e);
}

/* ---- the length of vectors ---- */

int embedding_check_dim(struct embedding *e, unsigned dim, bool *ret_new, struct error *error)
{
	unsigned known = atomic_load(&e->dim);
	uint64_t now = loop_now_ms(e->loop);

	*ret_new = dim != known;
	if (dim == known)
		return 0;
	if (known != 0) {
		if (e->dim_changed_ms && now - e->dim_changed_ms < DIM_CHANGE_MS)
			return refuse(error, REFUSE_CONFLICT,
				      "the model now returns vectors of length %u instead of %u",
				      dim, known);
		log_info("embedding model changed, re-embedding memories", "model=%s dim=%u was=%u",
			 e->name, dim, known);
		e->dim_changed_ms = now;
	}
	atomic_store(&e->dim, dim);
	return 0;
}

/* Lowers a number to this one, and wakes the loop. */
static void lower(struct embedding *e, atomic_int_least64_t *number, int64_t seq)
{
	int_least64_t known = atomic_load(number);

	while (seq < known && !atomic_compare_exchange_weak(number, &known, seq))
		;
	wake_send(e->wake);
}

static void mark_dirty(struct embedding *e, int64_t seq)
{
	lower(e, &e->dirty, seq);
}

bool embedding_take_dim(struct embedding *e, unsigned dim)
{
	unsigned known = 0;

	if (atomic_compare_exchange_strong(&e->dim, &known, dim)) {
		/* The vectors in the store may have another length. */
		mark_dirty(e, 1);
		return true;
	}
	if (known == dim)
		return true;
	atomic_store(&e->strange_dim, dim);
	wake_send(e->wake);
	return false;
}

/* ---- from the other threads ---- */

void embedding_note(struct embedding *e, int64_t seq)
{
	if (e && seq < e->noted)
		e->noted = seq;
}

void embedding_committed(struct embedding *e)
{
	if (!e || e->noted == INT64_MAX)
		return;
	mark_dirty(e, e->noted);
	e->noted = INT64_MAX;
}

void embedding_hear(struct embedding *e, int64_t seq)
{
	lower(e, &e->heard, seq);
}

/* A pause continues, unless it is the long one. */
static void index_embedding_go_on(struct embedding *e)
{
	if (!e->at_end && (e->resting || !e->pausing)) {
		e->resting = false;
		embedding_pause(e, SOON_MS);
	}
}

static void on_patience(void *arg)
{
	struct embedding *e = arg;

	e->waiting = false;
	embedding_look_from(e, atomic_exchange(&e->heard, INT64_MAX));
	index_embedding_go_on(e);
}

static void on_wake(void *arg)
{
	struct embedding *e = arg;
	int64_t dirty = atomic_exchange(&e->dirty, INT64_MAX);
	unsigned dim = atomic_exchange(&e->strange_dim, 0);
	struct error error;
	bool is_new;

	if (e->stopping)
		return;
	if (dim != 0 && embedding_check_dim(e, dim, &is_new, &error) == 0 && is_new)
		embedding_look_from(e, 1);
	if (dirty != INT64_MAX)
		embedding_look_from(e, dirty);
	if (!e->waiting && atomic_load(&e->heard) != INT64_MAX) {
		e->waiting = true;
		timer_start(e->patience, PATIENCE_MS);
	}
	index_embedding_go_on(e);
}

struct text embedding_model(const struct embedding *e)
{
	return text_of(e->name);
}

const char *embedding_url(const struct embedding *e)
{
	return e ? e->url : "";
}

unsigned embedding_dim(const struct embedding *e)
{
	return atomic_load(&e->dim);
}

bool embedding_fails(const struct embedding *e)
{
	return atomic_load(&e->fails);
}

/* ---- start and end ---- */

CLEANUP_POINTER(embedding, embedding_free)

static int open_model(struct embedding *e, const struct embedding_opts *opts, struct error *error)
{
	const struct embeddings_opts model = {
		.url = opts->url, .model = opts->model, .key = opts->key};

	e->name = strdup(opts->model);
	e->url = strdup(opts->url);
	if (!e->name || !e->url)
		return -ENOMEM;
	return embeddings_new(e->loop, &model, &e->model, error) ?:
		timer_new(e->loop, on_timer, e, &e->timer) ?:
		timer_new(e->loop, on_patience, e, &e->patience) ?:
		wake_new(e->loop, on_wake, e, &e->wake);
}

int embedding_start(const struct embedding_opts *opts, struct store *store,
		    struct memory_changes *changes, struct events *events,
		    struct embedding **ret_embedding, struct error *error)
{
	CLEANUP(embedding_freep) struct embedding *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	list_init(&e->batches);
	list_init(&e->questions);
	e->store = store;
	e->changes = changes;
	e->events = events;
	e->loop = opts->loop;
	e->workers = opts->workers;
	e->timeout_ms = opts->timeout_ms;
	e->batch_max = EMBEDDINGS_BATCH_MAX;
	e->noted = INT64_MAX;
	e->rewind = INT64_MAX;
	atomic_init(&e->dirty, INT64_MAX);
	atomic_init(&e->heard, INT64_MAX);
	r = open_model(e, opts, error);
	if (r != 0)
		return r;
	wake_hold(e->wake, false);
	embedding_pause(e, SOON_MS);
	*ret_embedding = TAKE(e);
	return 0;
}

void embedding_stop(struct embedding *e)
{
	if (!e || e->stopping)
		return;
	e->stopping = true;
	timer_stop(e->timer);
	if (e->patience)
		timer_stop(e->patience);
	embedding_cancel_batches(e);
}

void embedding_free(struct embedding *e)
{
	if (!e)
		return;
	/* If it could not be made, it has no timer and nothing under way. */
	if (e->timer)
		embedding_stop(e);
	embedding_cancel_questions(e);
	embeddings_free(e->model);
	timer_free(e->timer);
	timer_free(e->patience);
	wake_free(e->wake);
	free(e->name);
	free(e->url);
	free(e);
}
