/*
 * The events that were sent last, on the loop. They are held, within bounds, for the
 * subscribers that have not taken them yet. What is no longer held is read from the store.
 *
 * An event is written once for all subscribers that use the same words; the result is held
 * with it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/inner.h"

enum {
	HELD_BYTES = 8 << 20,
	SPARE_MAX = 8,                  /* wordings that are kept for reuse */
	SPARE_BYTES = 64 << 10,         /* of each */
	WORDS_MAX = 8 * EVENT_DATA_MAX, /* a byte takes at most six when escaped */
};

/* ---- words ---- */

struct event_wording {
	struct event_wording *next;
	event_word_fn *word;
	struct buf text;
};

static void wording_free(struct event_wording *w)
{
	buf_done(&w->text);
	free(w);
}

static size_t wording_bytes(const struct event_wording *w)
{
	return sizeof(*w) + w->text.cap;
}

static struct event_wording *take_spare(struct recent *v)
{
	struct event_wording *w = v->spare;

	if (w) {
		v->spare = w->next;
		v->n_spare--;
		return w;
	}
	w = calloc(1, sizeof(*w));
	if (w)
		buf_init(&w->text, WORDS_MAX);
	return w;
}

void recent_forget_words(struct recent *v, struct told *t)
{
	struct event_wording *w;

	while ((w = t->wordings)) {
		t->wordings = w->next;
		if (v->n_spare == SPARE_MAX) {
			wording_free(w);
			continue;
		}
		buf_trim(&w->text, SPARE_BYTES);
		w->next = v->spare;
		v->spare = w;
		v->n_spare++;
	}
}

struct buf *event_words(struct events *e, const struct event *event, event_word_fn *word)
{
	struct recent *v = &e->recent;
	struct told *t = v->now;
	struct event_wording *w;

	assert(t && event == &t->event);
	for (w = t->wordings; w; w = w->next) {
		if (w->word == word)
			return &w->text;
	}
	w = take_spare(v);
	if (!w)
		return NULL;
	w->word = word;
	w->next = t->wordings;
	t->wordings = w;
	word(&w->text, event);
	if (t->batch)
		v->bytes += wording_bytes(w);
	return &w->text;
}

/* ---- what is held ---- */

static size_t told_bytes(const struct told *t)
{
	size_t n = sizeof(*t);

	for (const struct event_wording *w = t->wordings; w; w = w->next)
		n += wording_bytes(w);
	return n;
}

/* It is freed as a whole, and often has a single event. */
static size_t batch_bytes(const struct event_batch *b)
{
	return sizeof(*b) + b->arena.used;
}

static void drop_first(struct recent *v)
{
	struct told *t = &v->list[v->first++];

	v->after = t->event.seq;
	v->bytes -= told_bytes(t);
	recent_forget_words(v, t);
	if (--t->batch->n_held > 0)
		return;
	v->bytes -= batch_bytes(t->batch);
	event_batch_free(t->batch);
}

void recent_clear(struct recent *v, int64_t seq)
{
	while (v->first < v->end)
		drop_first(v);
	v->after = seq;
}

static int event_recent_make_room(struct recent *v, unsigned n)
{
	unsigned held = v->end - v->first;
	struct told *grown;

	/* Move the rest down only when as much space is free, so that each is moved once on
	 * average. */
	if (v->first >= held && v->first > 0) {
		memmove(v->list, v->list + v->first, held * sizeof(*grown));
		v->first = 0;
		v->end = held;
	}
	if (v->end + n <= v->cap)
		return 0;
	grown = realloc(v->list, 2 * (size_t)(v->end + n) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	v->list = grown;
	v->cap = 2 * (v->end + n);
	return 0;
}

int recent_add(struct recent *v, struct event_batch *b)
{
	if (b->notes.n == 0 || event_recent_make_room(v, b->notes.n) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < b->notes.n; i++) {
		struct told *t = &v->list[v->end++];

		*t = (struct told) {.event = b->list[i], .batch = b};
		v->bytes += told_bytes(t);
	}
	b->n_held = b->notes.n;
	v->bytes += batch_bytes(b);
	/* Each has its own now; the arena has the texts of all. */
	free(b->list);
	free(b->premises);
	b->list = NULL;
	b->premises = NULL;
	b->cap = 0;
	return 0;
}

unsigned recent_find(const struct recent *v, int64_t seq)
{
	unsigned from = v->first;
	unsigned to = v->end;

	while (from < to) {
		unsigned middle = from + (to - from) / 2;

		if (v->list[middle].event.seq <= seq)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void recent_release(struct recent *v, int64_t seq)
{
	while (v->first < v->end && (v->list[v->first].event.seq <= seq || v->bytes > HELD_BYTES))
		drop_first(v);
}

void recent_free(struct recent *v)
{
	struct event_wording *w;

	recent_clear(v, 0);
	while ((w = v->spare)) {
		v->spare = w->next;
		wording_free(w);
	}
	free(v->list);
}
