/*
 * Gives memories their vectors: finds some that have none, has the model make vectors of their
 * texts, reads the answer, and stores the vectors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/event/event.h"
#include "engine/index/changes.h"
#include "engine/index/embedding_inner.h"
#include "search/vector.h"
#include "store/index/memory_vector.h"
#include "store/store.h"

enum {
	BATCHES_MAX = 2,         /* at once: the model makes one while the next is looked up */
	BATCH_BYTES = 256 << 10, /* of text */
	BATCH_MS = 60000,        /* for the model */
	BATCH_ARENA = 128 << 20, /* texts, answer, vectors */
	FIND_AGAIN_MS = 1000,    /* delay if there is no memory for a batch */
	BACK_OFF_MAX_MS = 60000,
	RETRY_MAX_MS = 3600000,  /* if the model asks us to wait */
	PASSED_OVER_MS = 600000, /* delay before those that the model refused are tried again */
};

/* Some memories on their way to their vectors. */
struct index_batch {
	struct list link;
	struct embedding *embedding;
	struct work work;
	struct embeddings_ask *ask;
	struct arena arena;
	struct store_bare_memory *memories;
	unsigned n;
	int64_t after;
	bool end;
	struct text answer;
	unsigned dim;
	float *numbers;
	int8_t *bytes;
	float *scales;
	bool *usable;
	bool is_first; /* the first with vectors of this length: others may have to be made again */
	struct error error;
};

static struct index_batch *batch_new(struct embedding *e)
{
	struct index_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->embedding = e;
	arena_init(&b->arena, BATCH_ARENA);
	list_append(&e->batches, &b->link);
	e->n_batches++;
	return b;
}

static void batch_free(struct index_batch *b)
{
	embeddings_cancel(b->ask);
	list_remove(&b->link);
	b->embedding->n_batches--;
	arena_done(&b->arena);
	free(b);
}

static void index_batch_failed(struct index_batch *b, const char *what, unsigned retry_ms)
{
	struct embedding *e = b->embedding;
	unsigned wait = embedding_back_off(++e->n_failures, BACK_OFF_MAX_MS);

	if (retry_ms > wait)
		wait = retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS;
	if (e->n_failures == 1)
		log_warn("embedding failed", "model=%s reason=\"%s\" retry_ms=%u", e->name, what,
			 wait);
	atomic_store(&e->fails, true);
	if (b->memories && b->n > 0)
		embedding_look_from(e, b->is_first ? 1 : b->memories[0].seq);
	batch_free(b);
	embedding_pause(e, wait);
}

static void succeeded(struct index_batch *b)
{
	struct embedding *e = b->embedding;

	if (e->n_failures > 0)
		log_info("embedding recovered", "model=%s", e->name);
	atomic_store(&e->fails, false);
	e->n_failures = 0;
	e->n_refused = 0;
	/* After a batch was halved it may be any number. */
	e->batch_max =
		e->batch_max * 2 < EMBEDDINGS_BATCH_MAX ? e->batch_max * 2 : EMBEDDINGS_BATCH_MAX;
	if (b->is_first)
		embedding_look_from(e, 1);
	batch_free(b);
	embedding_next_batch(e);
}

/* The model refused some text of a batch: use smaller batches to find out which. */
static void refused(struct index_batch *b, const char *what)
{
	struct embedding *e = b->embedding;
	int64_t first = b->memories[0].seq;
	unsigned n = b->n;

	batch_free(b);
	if (n > 1) {
		embedding_look_from(e, first);
		e->batch_max = n / 2;
		embedding_next_batch(e);
		return;
	}
	log_info("could not embed memory", "seq=%lld reason=\"%s\"", (long long)first, what);
	e->n_passed_over++;
	/* If it refuses several in a row, the text is not the cause. */
	if (++e->n_refused >= 3) {
		atomic_store(&e->fails, true);
		embedding_pause(e, embedding_back_off(e->n_refused - 2, BACK_OFF_MAX_MS));
	} else {
		embedding_next_batch(e);
	}
}

static void index_batch_submit(struct index_batch *b, int (*run)(struct work *w, int lane),
			       void (*finished)(struct work *w, int result), bool writes)
{
	b->work = (struct work) {.run = run, .finished = finished};
	workers_start(b->embedding->workers, &b->work, writes);
}

/* Gets the batch of finished work; NULL if the service is stopping or the work failed. */
static struct index_batch *batch_back(struct work *w, int result)
{
	struct index_batch *b = list_entry(w, struct index_batch, work);

	if (b->embedding->stopping) {
		batch_free(b);
		return NULL;
	}
	if (result != 0) {
		index_batch_failed(b, error_words(result, &b->error), 0);
		return NULL;
	}
	return b;
}

/* ---- third: storing the vectors ---- */

/* Store nothing for a memory that is gone, or whose text has changed. */
static int put_one(struct index_batch *b, unsigned i, struct connection *c, struct buf *numbers)
{
	const struct embedding *e = b->embedding;
	const struct store_model model = {.name = embedding_model(e), .dim = b->dim};
	const struct store_bare_memory *m = &b->memories[i];
	const struct store_vector v = {
		.seq = m->seq,
		.hash = m->hash,
		.scale = b->scales[i],
		.bytes = b->bytes + (size_t)i * b->dim,
		.numbers = b->numbers + (size_t)i * b->dim,
	};
	const struct memory_change change = {
		.kind = MEMORY_VECTOR,
		.memory = {.seq = m->seq,
			   .owner = m->owner,
			   .chat = m->chat,
			   .project = m->project},
		.vector = v.bytes,
		.dim = b->dim,
		.scale = v.scale,
	};
	bool found;
	int r = store_memory_put_vector(c, &model, &v, &found);

	if (r != 0 || !found)
		return r;
	buf_printf(numbers, "%lld ", (long long)m->seq);
	return memory_change_keep(&e->changes->list, &change);
}

static int tell_others(const struct embedding *e, const struct buf *numbers)
{
	struct event_new event = {.type = "memory.embedded"};
	struct event_data d;

	if (!e->events || numbers->len == 0)
		return 0;
	event_data_begin(&d);
	packer_text(&d.members, "model", embedding_model(e));
	packer_text(&d.members, "numbers", (struct text) {numbers->data, numbers->len - 1});
	return event_add_data(e->events, &event, &d);
}

static int put_run(struct work *w, int lane)
{
	struct index_batch *b = list_entry(w, struct index_batch, work);
	struct connection *c = store_lane(b->embedding->store, lane);
	struct buf numbers;
	int r = 0;

	buf_init(&numbers, EMBEDDINGS_BATCH_MAX * (size_t)24);
	for (unsigned i = 0; r == 0 && i < b->n; i++) {
		if (b->usable[i])
			r = put_one(b, i, c, &numbers);
	}
	if (r == 0)
		r = numbers.err ?: tell_others(b->embedding, &numbers);
	buf_done(&numbers);
	return r;
}

static void put_finished(struct work *w, int result)
{
	struct index_batch *b = batch_back(w, result);

	if (b)
		succeeded(b);
}

/* ---- second: from the answer to vectors ---- */

static int make_vectors(struct index_batch *b, const struct embeddings_vectors *v)
{
	b->dim = v->dim;
	b->numbers = v->numbers;
	b->bytes = arena_alloc(&b->arena, (size_t)b->n * v->dim);
	b->scales = arena_alloc(&b->arena, b->n * sizeof(float));
	b->usable = arena_alloc(&b->arena, b->n * sizeof(bool));
	if (!b->bytes || !b->scales || !b->usable)
		return -ENOMEM;
	for (unsigned i = 0; i < b->n; i++) {
		float *numbers = v->numbers + (size_t)i * v->dim;

		b->usable[i] = vector_normalise(numbers, v->dim);
		if (b->usable[i])
			b->scales[i] =
				vector_quantise(numbers, v->dim, b->bytes + (size_t)i * v->dim);
	}
	return 0;
}

static int read_run(struct work *w, int lane)
{
	struct index_batch *b = list_entry(w, struct index_batch, work);
	struct embeddings_vectors v;

	return embeddings_read(&b->arena, b->answer, b->n, &v, &b->error) ?: make_vectors(b, &v);
}

static void read_finished(struct work *w, int result)
{
	struct index_batch *b = batch_back(w, result);
	int r;

	if (!b)
		return;
	for (unsigned i = 0; i < b->n; i++)
		b->embedding->n_passed_over += !b->usable[i];
	r = embedding_check_dim(b->embedding, b->dim, &b->is_first, &b->error);
	if (r == 0)
		index_batch_submit(b, put_run, put_finished, true);
	else
		index_batch_failed(b, b->error.text, 0);
}

/* ---- first: asking the model ---- */

static void index_batch_on_answer(void *arg, const struct embeddings_answer *a)
{
	struct index_batch *b = arg;

	b->ask = NULL;
	switch (a->outcome) {
	case EMBEDDINGS_OK:
		b->answer.len = a->body.len;
		b->answer.data = arena_copy(&b->arena, a->body.data, a->body.len);
		if (b->answer.data)
			index_batch_submit(b, read_run, read_finished, false);
		else
			index_batch_failed(b, fault_words(-ENOMEM), 0);
		break;
	case EMBEDDINGS_REFUSED:
		refused(b, a->text);
		break;
	case EMBEDDINGS_LATER:
	case EMBEDDINGS_WRONG:
		index_batch_failed(b, a->text, a->retry_ms);
		break;
	}
}

static int ask_model(struct index_batch *b)
{
	struct text texts[EMBEDDINGS_BATCH_MAX];

	/* Models refuse an empty text. */
	for (unsigned i = 0; i < b->n; i++)
		texts[i] = b->memories[i].content.len > 0 ? b->memories[i].content : TEXT(" ");
	return embeddings_ask(b->embedding->model, texts, b->n, BATCH_MS, index_batch_on_answer, b,
			      &b->ask);
}

/* ---- before that: finding memories ---- */

static int find_run(struct work *w, int lane)
{
	struct index_batch *b = list_entry(w, struct index_batch, work);
	const struct embedding *e = b->embedding;
	const struct store_bare_opts opts = {
		.model = {.name = embedding_model(e), .dim = embedding_dim(e)},
		.after = b->after,
		.now_ms = clock_utc_ms(),
		.limit = b->n,
		.max_bytes = BATCH_BYTES,
		.max_chars = EMBEDDING_TEXT_CHARS,
	};

	b->n = 0;
	return store_memory_find_bare(store_lane(e->store, lane), &opts, &b->arena, &b->memories,
				      &b->n, &b->after, &b->end);
}

/* In another batch, with the same text: that one puts its vector, or looks for it again. */
static bool is_asked(const struct index_batch *b, const struct store_bare_memory *m)
{
	list_for_each (at, following, &b->embedding->batches) {
		const struct index_batch *other = list_entry(at, struct index_batch, link);

		for (unsigned i = 0; other != b && i < other->n; i++) {
			if (other->memories[i].seq == m->seq && other->memories[i].hash == m->hash)
				return true;
		}
	}
	return false;
}

static void drop_asked(struct index_batch *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->n; i++) {
		if (!is_asked(b, &b->memories[i]))
			b->memories[n++] = b->memories[i];
	}
	b->n = n;
}

static void find_finished(struct work *w, int result)
{
	struct embedding *e = list_entry(w, struct index_batch, work)->embedding;
	struct index_batch *b = batch_back(w, result);
	int r;

	e->finding = false;
	if (!b)
		return;
	e->after = b->after;
	/* What was committed during the search is not in what we found. */
	e->at_end = b->end && e->rewind == INT64_MAX;
	drop_asked(b);
	if (b->n == 0) {
		batch_free(b);
	} else {
		r = ask_model(b);
		if (r != 0) {
			index_batch_failed(b, fault_words(r), 0);
			return;
		}
	}
	embedding_next_batch(e);
}

static void find_next(struct embedding *e)
{
	struct index_batch *b = batch_new(e);

	if (!b) {
		embedding_pause(e, FIND_AGAIN_MS);
		return;
	}
	if (e->rewind < e->after)
		e->after = e->rewind;
	e->rewind = INT64_MAX;
	b->after = e->after;
	b->n = e->batch_max;
	e->finding = true;
	index_batch_submit(b, find_run, find_finished, false);
}

/* Run one batch at a time while questions are waiting: somebody waits for these, and the model
 * does one thing at a time. */
void embedding_next_batch(struct embedding *e)
{
	bool alone =
		e->batch_max < EMBEDDINGS_BATCH_MAX || e->n_questions > 0 || embedding_dim(e) == 0;

	if (e->stopping || e->pausing || e->finding || e->n_batches >= (alone ? 1 : BATCHES_MAX))
		return;
	if (!e->at_end) {
		find_next(e);
	} else if (e->n_passed_over > 0 && e->n_batches == 0) {
		e->resting = true;
		embedding_pause(e, PASSED_OVER_MS);
	}
}

void embedding_cancel_batches(struct embedding *e)
{
	list_for_each (at, following, &e->batches) {
		struct index_batch *b = list_entry(at, struct index_batch, link);

		if (b->ask)
			batch_free(b);
	}
}
