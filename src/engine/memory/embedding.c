#include "engine/memory/embedding.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/embeddings.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "search/vector.h"
#include "engine/memory/service.h"
#include "engine/services.h"
#include "store/memory_vector.h"
#include "store/store.h"

enum {
	BATCHES_MAX = 2,         /* at once: one is made while the next is looked up */
	BATCH_BYTES = 256 << 10, /* of text */
	TEXT_CHARS = 8000,       /* of one memory or question: more than models look at */
	BATCH_MS = 60000,        /* for the model */
	BATCH_ARENA = 128 << 20, /* texts, answer, vectors */
	SOON_MS = 50,            /* so that memories that come together are asked together */
	BACK_OFF_MS = 1000,      /* first, then twice as long each time */
	BACK_OFF_MAX_MS = 60000,
	RETRY_MAX_MS = 3600000,  /* if the model asks for it */
	PASSED_OVER_MS = 600000, /* until those that the model refused are tried again */
	DIM_CHANGE_MS = 60000,   /* no two changes of a model's length within this */
	QUESTIONS_MAX = 64,
	QUESTION_OFF_MAX_MS = 30000,
};

struct embedding {
	struct services *services;
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

/* Some memories on their way to their vectors. */
struct batch {
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
	bool is_first; /* of vectors of this length: others may have to be made anew */
	struct why why;
};

struct embedding_question {
	struct list link;
	struct embedding *embedding;
	struct embeddings_ask *ask;
	void (*done)(void *arg, struct text answer);
	void *arg;
};

static void step(struct embedding *e);

/* ---- batches ---- */

static struct batch *batch_new(struct embedding *e)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->embedding = e;
	arena_init(&b->arena, BATCH_ARENA);
	list_append(&e->batches, &b->link);
	e->n_batches++;
	return b;
}

static void batch_free(struct batch *b)
{
	embeddings_cancel(b->ask);
	list_remove(&b->link);
	b->embedding->n_batches--;
	arena_done(&b->arena);
	free(b);
}

static void look_again_from(struct embedding *e, int64_t seq)
{
	if (seq - 1 < e->rewind)
		e->rewind = seq - 1;
	e->at_end = false;
}

static unsigned back_off(unsigned n, unsigned most)
{
	unsigned ms = BACK_OFF_MS;

	while (n-- > 1 && ms < most)
		ms *= 2;
	return ms < most ? ms : most;
}

static void pause_for(struct embedding *e, unsigned ms)
{
	e->pausing = true;
	timer_start(e->timer, ms);
}

static void failed(struct batch *b, const char *what, unsigned retry_ms)
{
	struct embedding *e = b->embedding;
	unsigned wait = back_off(++e->n_failures, BACK_OFF_MAX_MS);

	if (retry_ms > wait)
		wait = retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS;
	if (e->n_failures == 1)
		log_warn("no vectors", "model=%s why=%s retry_ms=%u", e->name, what, wait);
	atomic_store(&e->fails, true);
	if (b->memories && b->n > 0)
		look_again_from(e, b->is_first ? 1 : b->memories[0].seq);
	batch_free(b);
	pause_for(e, wait);
}

static void succeeded(struct batch *b)
{
	struct embedding *e = b->embedding;

	if (e->n_failures > 0)
		log_info("vectors again", "model=%s", e->name);
	atomic_store(&e->fails, false);
	e->n_failures = 0;
	e->n_refused = 0;
	/* After one that was halved it may be any number. */
	e->batch_max =
		e->batch_max * 2 < EMBEDDINGS_BATCH_MAX ? e->batch_max * 2 : EMBEDDINGS_BATCH_MAX;
	if (b->is_first)
		look_again_from(e, 1);
	batch_free(b);
	step(e);
}

/* Some text of a batch is not to the model's taste: smaller batches find out which. */
static void refused(struct batch *b, const char *what)
{
	struct embedding *e = b->embedding;
	int64_t first = b->memories[0].seq;
	unsigned n = b->n;

	batch_free(b);
	if (n > 1) {
		look_again_from(e, first);
		e->batch_max = n / 2;
		step(e);
		return;
	}
	log_info("memory without vector", "seq=%lld why=%s", (long long)first, what);
	e->n_passed_over++;
	/* When it refuses one after the other, it is not the text. */
	if (++e->n_refused >= 3) {
		atomic_store(&e->fails, true);
		pause_for(e, back_off(e->n_refused - 2, BACK_OFF_MAX_MS));
	} else {
		step(e);
	}
}

static int submit(struct batch *b, int (*run)(struct work *w, int lane),
		  void (*finished)(struct work *w, int result), bool writes)
{
	const struct background *bg = &b->embedding->background;

	b->work = (struct work) {.run = run, .finished = finished};
	return bg->submit(bg->arg, &b->work, writes);
}

/* Work that comes back: the batch, unless everything is over or it went wrong. */
static struct batch *batch_back(struct work *w, int result)
{
	struct batch *b = list_entry(w, struct batch, work);

	if (b->embedding->stopping) {
		batch_free(b);
		return NULL;
	}
	if (result != 0) {
		failed(b, result > 0 ? b->why.text : strerror(-result), 0);
		return NULL;
	}
	return b;
}

/* ---- third: into the store ---- */

static int put_run(struct work *w, int lane)
{
	struct batch *b = list_entry(w, struct batch, work);
	struct services *s = b->embedding->services;
	const struct store_model model = {.name = embedding_model(b->embedding), .dim = b->dim};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < b->n; i++) {
		const struct store_bare_memory *m = &b->memories[i];
		const struct store_vector v = {
			.seq = m->seq,
			.hash = m->hash,
			.scale = b->scales[i],
			.bytes = b->bytes + (size_t)i * b->dim,
			.numbers = b->numbers + (size_t)i * b->dim,
		};
		bool found = false;

		if (b->usable[i])
			r = store_memory_put_vector(store_lane(s->store, lane), &model, &v, &found);
		if (r == 0 && found)
			r = memory_changes_vector(s->memory, m, v.bytes, b->dim, v.scale);
	}
	return r;
}

static void put_finished(struct work *w, int result)
{
	struct batch *b = batch_back(w, result);

	if (b)
		succeeded(b);
}

/* ---- second: from the answer to vectors ---- */

static int make_vectors(struct batch *b, const struct embeddings_vectors *v)
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
	struct batch *b = list_entry(w, struct batch, work);
	struct embeddings_vectors v;
	int r;

	(void)lane;
	r = embeddings_read(&b->arena, b->answer, b->n, &v, &b->why);
	if (r == 0)
		r = make_vectors(b, &v);
	return r;
}

/*
 * The same name may stand for another model by now. Then all vectors are made anew; but
 * a name that stands now for this, now for that would have us do so for ever.
 */
static int check_dim(struct embedding *e, unsigned dim, bool *ret_new, struct why *why)
{
	unsigned known = atomic_load(&e->dim);
	uint64_t now = loop_now_ms(e->loop);

	*ret_new = dim != known;
	if (dim == known)
		return 0;
	if (known != 0) {
		if (e->dim_changed_ms && now - e->dim_changed_ms < DIM_CHANGE_MS)
			return refuse(why, REFUSE_CONFLICT,
				      "vectors have %u numbers now, and had %u just before", dim,
				      known);
		log_info("vectors are made anew", "model=%s dim=%u was=%u", e->name, dim, known);
		e->dim_changed_ms = now;
	}
	atomic_store(&e->dim, dim);
	return 0;
}

static void read_finished(struct work *w, int result)
{
	struct batch *b = batch_back(w, result);
	int r;

	if (!b)
		return;
	for (unsigned i = 0; i < b->n; i++)
		b->embedding->n_passed_over += !b->usable[i];
	r = check_dim(b->embedding, b->dim, &b->is_first, &b->why);
	if (r == 0)
		r = submit(b, put_run, put_finished, true);
	if (r != 0)
		failed(b, r > 0 ? b->why.text : strerror(-r), 0);
}

/* ---- first: the model is asked ---- */

static void on_answer(void *arg, const struct embeddings_answer *a)
{
	struct batch *b = arg;
	int r;

	b->ask = NULL;
	switch (a->outcome) {
	case EMBEDDINGS_OK:
		b->answer.len = a->body.len;
		b->answer.data = arena_copy(&b->arena, a->body.data, a->body.len);
		r = b->answer.data ? submit(b, read_run, read_finished, false) : -ENOMEM;
		if (r != 0)
			failed(b, strerror(-r), 0);
		break;
	case EMBEDDINGS_REFUSED:
		refused(b, a->text);
		break;
	case EMBEDDINGS_LATER:
	case EMBEDDINGS_WRONG:
		failed(b, a->text, a->retry_ms);
		break;
	}
}

static int ask_model(struct batch *b)
{
	struct text texts[EMBEDDINGS_BATCH_MAX];

	/* Models refuse an empty text. */
	for (unsigned i = 0; i < b->n; i++)
		texts[i] = b->memories[i].content.len > 0 ? b->memories[i].content : TEXT(" ");
	return embeddings_ask(b->embedding->model, texts, b->n, BATCH_MS, on_answer, b, &b->ask);
}

/* ---- before that: which memories ---- */

static int find_run(struct work *w, int lane)
{
	struct batch *b = list_entry(w, struct batch, work);
	const struct embedding *e = b->embedding;
	const struct store_bare_opts opts = {
		.model = {.name = embedding_model(e), .dim = embedding_dim(e)},
		.after = b->after,
		.now_ms = clock_utc_ms(),
		.limit = b->n,
		.max_bytes = BATCH_BYTES,
		.max_chars = TEXT_CHARS,
	};

	b->n = 0;
	return store_memory_find_bare(store_lane(e->services->store, lane), &opts, &b->arena,
				      &b->memories, &b->n, &b->after, &b->end);
}

static void find_finished(struct work *w, int result)
{
	struct embedding *e = list_entry(w, struct batch, work)->embedding;
	struct batch *b = batch_back(w, result);
	int r;

	e->finding = false;
	if (!b)
		return;
	e->after = b->after;
	/* What was committed while we looked is not in what we saw. */
	e->at_end = b->end && e->rewind == INT64_MAX;
	if (b->n == 0) {
		batch_free(b);
	} else {
		r = ask_model(b);
		if (r != 0) {
			failed(b, strerror(-r), 0);
			return;
		}
	}
	step(e);
}

static void find_next(struct embedding *e)
{
	struct batch *b = batch_new(e);
	int r;

	if (!b) {
		pause_for(e, BACK_OFF_MS);
		return;
	}
	if (e->rewind < e->after)
		e->after = e->rewind;
	e->rewind = INT64_MAX;
	b->after = e->after;
	b->n = e->batch_max;
	e->finding = true;
	r = submit(b, find_run, find_finished, false);
	if (r != 0) {
		e->finding = false;
		failed(b, strerror(-r), 0);
	}
}

/* Questions have somebody waiting; the model has one mind. */
static void step(struct embedding *e)
{
	bool alone =
		e->batch_max < EMBEDDINGS_BATCH_MAX || e->n_questions > 0 || embedding_dim(e) == 0;

	if (e->stopping || e->pausing || e->finding || e->n_batches >= (alone ? 1 : BATCHES_MAX))
		return;
	if (!e->at_end) {
		find_next(e);
	} else if (e->n_passed_over > 0 && e->n_batches == 0) {
		e->resting = true;
		pause_for(e, PASSED_OVER_MS);
	}
}

static void on_timer(void *arg)
{
	struct embedding *e = arg;

	e->pausing = false;
	if (e->resting) {
		e->n_passed_over = 0;
		look_again_from(e, 1);
	}
	e->resting = false;
	step(e);
}

/* ---- from the other threads ---- */

void embedding_note(struct embedding *e, int64_t seq)
{
	if (e && seq < e->noted)
		e->noted = seq;
}

static void mark_dirty(struct embedding *e, int64_t seq)
{
	int_least64_t known = atomic_load(&e->dirty);

	while (seq < known && !atomic_compare_exchange_weak(&e->dirty, &known, seq))
		;
	wake_send(e->wake);
}

void embedding_committed(struct embedding *e)
{
	if (!e || e->noted == INT64_MAX)
		return;
	mark_dirty(e, e->noted);
	e->noted = INT64_MAX;
}

static void on_wake(void *arg)
{
	struct embedding *e = arg;
	int64_t dirty = atomic_exchange(&e->dirty, INT64_MAX);
	unsigned dim = atomic_exchange(&e->strange_dim, 0);
	struct why why;
	bool is_new;

	if (e->stopping)
		return;
	if (dim != 0 && check_dim(e, dim, &is_new, &why) == 0 && is_new)
		look_again_from(e, 1);
	if (dirty != INT64_MAX)
		look_again_from(e, dirty);
	/* A pause goes on, unless it is the long one. */
	if (!e->at_end && (e->resting || !e->pausing)) {
		e->resting = false;
		pause_for(e, SOON_MS);
	}
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

/* ---- questions ---- */

static void question_free(struct embedding_question *q)
{
	list_remove(&q->link);
	q->embedding->n_questions--;
	free(q);
}

/* A model that does not answer must not cost every search its patience. */
static void count_answer(struct embedding *e, enum embeddings_outcome outcome)
{
	if (outcome == EMBEDDINGS_OK || outcome == EMBEDDINGS_REFUSED) {
		e->n_unanswered = 0;
		return;
	}
	e->ask_again_ms = loop_now_ms(e->loop) + back_off(++e->n_unanswered, QUESTION_OFF_MAX_MS);
}

static void on_question_answer(void *arg, const struct embeddings_answer *a)
{
	struct embedding_question *q = arg;
	struct embedding *e = q->embedding;
	void (*done)(void *arg, struct text answer) = q->done;
	void *done_arg = q->arg;

	count_answer(e, a->outcome);
	if (a->outcome != EMBEDDINGS_OK)
		log_debug("question without vector", "why=%s", a->text);
	question_free(q);
	done(done_arg, a->outcome == EMBEDDINGS_OK ? a->body : (struct text) {0});
	step(e);
}

/* The beginning of a text, whole characters. */
static struct text cut(struct text t)
{
	enum { BYTES = TEXT_CHARS * 4 };

	if (t.len <= BYTES)
		return t;
	t.len = BYTES;
	while (t.len > 0 && (t.data[t.len] & 0xc0) == 0x80)
		t.len--;
	return t;
}

struct embedding_question *embedding_ask(struct embedding *e, struct text question,
					 void (*done)(void *arg, struct text answer), void *arg)
{
	struct embedding_question *q;
	struct text text = cut(question);

	if (!e || e->stopping || question.len == 0 || e->n_questions >= QUESTIONS_MAX ||
	    (e->n_unanswered > 0 && loop_now_ms(e->loop) < e->ask_again_ms))
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->embedding = e;
	q->done = done;
	q->arg = arg;
	list_append(&e->questions, &q->link);
	e->n_questions++;
	if (embeddings_ask(e->model, &text, 1, e->timeout_ms, on_question_answer, q, &q->ask) !=
	    0) {
		question_free(q);
		return NULL;
	}
	return q;
}

void embedding_cancel(struct embedding_question *q)
{
	struct embedding *e = q->embedding;

	embeddings_cancel(q->ask);
	question_free(q);
	step(e);
}

int embedding_enter(struct embedding *e, unsigned max, struct embeddings **ret_model,
		    struct why *why)
{
	if (e->stopping)
		return refuse(why, REFUSE_STOPPING, "the daemon stops");
	if (e->n_guests >= max)
		return refuse(why, REFUSE_LIMIT, "%u requests wait for the model already", max);
	e->n_guests++;
	*ret_model = e->model;
	return 0;
}

void embedding_leave(struct embedding *e)
{
	e->n_guests--;
}

/* Whether it may be compared with what is in the store. */
static bool dim_fits(struct embedding *e, unsigned dim)
{
	unsigned known = 0;

	if (atomic_compare_exchange_strong(&e->dim, &known, dim)) {
		/* Those in the store may have another. */
		mark_dirty(e, 1);
		return true;
	}
	if (known == dim)
		return true;
	atomic_store(&e->strange_dim, dim);
	wake_send(e->wake);
	return false;
}

void embedding_saw(struct embedding *e, unsigned dim)
{
	(void)dim_fits(e, dim);
}

int embedding_read(struct embedding *e, struct arena *a, struct text answer,
		   struct embedding_vector *ret_vector)
{
	struct embeddings_vectors v;
	struct why why;
	int r;

	*ret_vector = (struct embedding_vector) {0};
	if (!e || !answer.data)
		return 0;
	r = embeddings_read(a, answer, 1, &v, &why);
	if (r > 0)
		log_debug("question without vector", "why=%s", why.text);
	if (r != 0)
		return r > 0 ? 0 : r;
	if (!vector_normalise(v.numbers, v.dim) || !dim_fits(e, v.dim))
		return 0;
	ret_vector->bytes = arena_alloc(a, v.dim);
	if (!ret_vector->bytes)
		return -ENOMEM;
	ret_vector->scale = vector_quantise(v.numbers, v.dim, ret_vector->bytes);
	ret_vector->numbers = v.numbers;
	ret_vector->dim = v.dim;
	return 0;
}

/* ---- life ---- */

int embedding_check(const char *url, struct why *why)
{
	return embeddings_check_url(url, why);
}

static void embedding_freep(struct embedding **e)
{
	embedding_free(*e);
}

static int open_model(struct embedding *e, const struct embedding_opts *opts, struct why *why)
{
	const struct embeddings_opts model = {
		.url = opts->url, .model = opts->model, .key = opts->key};
	int r;

	e->name = strdup(opts->model);
	e->url = strdup(opts->url);
	r = e->name && e->url ? embeddings_new(e->loop, &model, &e->model, why) : -ENOMEM;
	if (r == 0)
		r = timer_new(e->loop, on_timer, e, &e->timer);
	if (r == 0)
		r = wake_new(e->loop, on_wake, e, &e->wake);
	return r;
}

int embedding_start(struct services *s, const struct embedding_opts *opts, struct why *why)
{
	CLEANUP(embedding_freep) struct embedding *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	list_init(&e->batches);
	list_init(&e->questions);
	e->services = s;
	e->loop = opts->loop;
	e->background = opts->background;
	e->timeout_ms = opts->timeout_ms;
	e->batch_max = EMBEDDINGS_BATCH_MAX;
	e->noted = INT64_MAX;
	e->rewind = INT64_MAX;
	atomic_init(&e->dirty, INT64_MAX);
	r = open_model(e, opts, why);
	if (r != 0)
		return r;
	wake_hold(e->wake, false);
	pause_for(e, SOON_MS);
	s->embedding = TAKE(e);
	return 0;
}

void embedding_stop(struct embedding *e)
{
	if (!e || e->stopping)
		return;
	e->stopping = true;
	timer_stop(e->timer);
	/* Those on a thread come back by themselves. */
	list_for_each (at, following, &e->batches) {
		struct batch *b = list_entry(at, struct batch, link);

		if (b->ask)
			batch_free(b);
	}
}

void embedding_free(struct embedding *e)
{
	if (!e)
		return;
	/* One that could not be made has no timer, and nothing under way. */
	if (e->timer)
		embedding_stop(e);
	while (!list_empty(&e->questions))
		embedding_cancel(
			list_entry(list_first(&e->questions), struct embedding_question, link));
	embeddings_free(e->model);
	timer_free(e->timer);
	wake_free(e->wake);
	free(e->name);
	free(e->url);
	free(e);
}
