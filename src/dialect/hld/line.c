#include "dialect/hld/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE_BYTES = 64 << 10, /* that are given to a connection at once, or one event */
	HELD_BYTES = 64 << 20,  /* held for those who are not so far */
	HELD_MAX = 1 << 18,     /* events, likewise; a power of two */
	LOOK_MS = 100,
	STALL_MS = 1000, /* nobody who reads takes nothing for that long */
};

struct hld_words {
	unsigned refs; /* the line's, and those who keep it for later */
	int64_t seq;
	unsigned kind;
	struct text session, run; /* {NULL, 0}: of none */
	size_t len;
	char words[]; /* and behind them what the texts point to */
};

struct hld_line {
	struct endpoint *endpoint;
	struct event_subscriber *subscriber;
	struct list hearers;
	struct timer *look;
	bool looks; /* the timer runs, because somebody is behind */
	struct buf words;
	struct hld_words *held[HELD_MAX]; /* by number, of first to end */
	uint64_t first, end;
	size_t bytes;
};

static uint64_t now_ms(const struct hld_line *l)
{
	return loop_now_ms(l->endpoint->server->loop);
}

static void words_unref(struct hld_words *t)
{
	if (--t->refs == 0)
		free(t);
}

/* ---- one who hears ---- */

static bool passes(const struct hld_hearer *h, const struct hld_words *t)
{
	const struct hld_filter *f = &h->filter;

	return (f->kinds & 1U << t->kind) && t->seq > h->after &&
	       (!f->session.data || text_equal(f->session, t->session)) &&
	       (!f->run.data || text_equal(f->run, t->run));
}

static size_t unsent(const struct hld_hearer *h)
{
	return (size_t)(client_written(h->client) - client_sent(h->client));
}

static void forget_sent(struct hld_hearer *h)
{
	uint64_t sent = client_sent(h->client);

	while (h->n_waiting > 0 && h->ends[h->first] <= sent) {
		h->first = (h->first + 1) % HLD_QUEUE;
		h->n_waiting--;
	}
	if (sent != h->sent) {
		h->sent = sent;
		h->took_ms = now_ms(h->line);
		h->stalled = false;
	}
}

static void drop(struct hld_hearer *h, int64_t n)
{
	if (h->dropped == 0)
		h->on_drop(h);
	h->dropped += (uint64_t)n;
	h->line->endpoint->n_dropped += (uint64_t)n;
}

static void give(struct hld_hearer *h, const struct hld_words *t)
{
	if (client_append(h->client, t->words, t->len) != 0) {
		h->over = true;
		return;
	}
	h->ends[(h->first + h->n_waiting++) % HLD_QUEUE] = client_written(h->client);
	h->told++;
	h->told_ms = now_ms(h->line);
}

static bool has_room(const struct hld_hearer *h)
{
	return h->n_waiting < HLD_QUEUE && unsent(h) < PIECE_BYTES;
}

/* ---- what is kept for one who has stalled ---- */

static void keep(struct hld_hearer *h, struct hld_words *t)
{
	t->refs++;
	h->kept[(h->first_kept + h->n_kept++) % HLD_QUEUE] = t;
}

static struct hld_words *take_kept(struct hld_hearer *h)
{
	struct hld_words *t = h->kept[h->first_kept];

	h->first_kept = (h->first_kept + 1) % HLD_QUEUE;
	h->n_kept--;
	return t;
}

static void forget_kept(struct hld_hearer *h)
{
	while (h->n_kept > 0)
		words_unref(take_kept(h));
}

/* ---- giving ---- */

static void give_kept(struct hld_hearer *h)
{
	while (h->n_kept > 0 && !h->over && has_room(h)) {
		struct hld_words *t = take_kept(h);

		give(h, t);
		words_unref(t);
	}
}

/* Some of what is next. Whether it was anything. */
static bool give_piece(struct hld_hearer *h)
{
	const struct hld_line *l = h->line;
	uint64_t before = h->told;

	give_kept(h);
	while (h->n_kept == 0 && h->at < l->end && !h->over && has_room(h)) {
		const struct hld_words *t = l->held[h->at++ % HELD_MAX];

		if (passes(h, t))
			give(h, t);
	}
	return h->told != before;
}

/* HLD_QUEUE of them wait, and the rest is lost. They are not put into its connection, where each
 * who has stalled would have a copy. */
static void cut(struct hld_hearer *h)
{
	const struct hld_line *l = h->line;

	while (h->at < l->end && !h->over) {
		struct hld_words *t = l->held[h->at++ % HELD_MAX];

		if (!passes(h, t))
			continue;
		if (h->n_waiting + h->n_kept < HLD_QUEUE)
			keep(h, t);
		else
			drop(h, 1);
	}
	h->stalled = true;
}

static bool is_behind(const struct hld_hearer *h)
{
	return h->at < h->line->end && !h->over;
}

/* ---- what is held ---- */

static void release(struct hld_line *l)
{
	uint64_t needed = l->end;

	list_for_each (at, following, &l->hearers) {
		const struct hld_hearer *h = list_entry(at, struct hld_hearer, link);

		if (is_behind(h) && h->at < needed)
			needed = h->at;
	}
	while (l->first < needed) {
		struct hld_words *t = l->held[l->first++ % HELD_MAX];

		l->bytes -= t->len;
		words_unref(t);
	}
}

/* Those who keep the oldest lose the newest. */
static void make_room(struct hld_line *l)
{
	while (l->first < l->end && (l->bytes > HELD_BYTES || l->end - l->first == HELD_MAX)) {
		uint64_t first = l->first;

		list_for_each (at, following, &l->hearers) {
			struct hld_hearer *h = list_entry(at, struct hld_hearer, link);

			forget_sent(h);
			(void)give_piece(h);
			client_flush(h->client);
			if (is_behind(h) && h->at - first < (l->end - first) / 2 + 1)
				cut(h);
		}
		release(l);
	}
}

static struct text copy_text(char **to, struct text t)
{
	char *at = *to;

	if (!t.data)
		return t;
	memcpy(at, t.data, t.len);
	*to += t.len;
	return (struct text) {.data = at, .len = t.len};
}

static int hold(struct hld_line *l, const struct event *e)
{
	struct hld_words *t = malloc(sizeof(*t) + l->words.len + e->session.len + e->run.len);
	char *more;

	if (!t)
		return -ENOMEM;
	*t = (struct hld_words) {.refs = 1, .seq = e->seq, .len = l->words.len};
	while (!text_is(e->type, hld_told(t->kind)))
		t->kind++;
	memcpy(t->words, l->words.data, t->len);
	more = t->words + t->len;
	t->session = copy_text(&more, e->session);
	t->run = copy_text(&more, e->run);
	make_room(l);
	l->held[l->end++ % HELD_MAX] = t;
	l->bytes += t->len;
	return 0;
}

/* ---- telling ---- */

static void look_later(struct hld_line *l)
{
	if (l->looks)
		return;
	l->looks = true;
	timer_start(l->look, LOOK_MS);
}

/* As much as the kernel takes, and a piece more. */
static void pump(struct hld_hearer *h)
{
	do {
		forget_sent(h);
		if (!give_piece(h))
			break;
		client_flush(h->client);
	} while (unsent(h) == 0);
	if (is_behind(h) && h->stalled)
		cut(h);
	if (!is_behind(h))
		h->took_ms = now_ms(h->line);
	else
		look_later(h->line);
}

void hld_line_pump(struct hld_hearer *h)
{
	if (is_behind(h) || h->n_kept > 0) {
		pump(h);
		release(h->line);
	}
}

static void on_look(void *arg)
{
	struct hld_line *l = arg;
	uint64_t now = now_ms(l);
	bool behind = false;

	list_for_each (at, following, &l->hearers) {
		struct hld_hearer *h = list_entry(at, struct hld_hearer, link);

		if (!is_behind(h))
			continue;
		/* We may have been busy ourselves: the kernel knows better what it took. */
		client_flush(h->client);
		pump(h);
		if (is_behind(h) && now - h->took_ms >= STALL_MS)
			cut(h);
		behind = behind || is_behind(h);
	}
	release(l);
	l->looks = false;
	if (behind)
		look_later(l);
}

/* By all of them. */
static void lose(struct hld_line *l, int64_t n)
{
	list_for_each (at, following, &l->hearers)
		drop(list_entry(at, struct hld_hearer, link), n);
}

static int on_event(void *arg, const struct event *e)
{
	struct hld_line *l = arg;

	buf_trim(&l->words, PIECE_BYTES);
	hld_word_event(&l->words, e);
	if (l->words.err != 0 || (l->words.len > 0 && hold(l, e) != 0))
		lose(l, 1);
	return 0;
}

static int on_gone(void *arg, int64_t n)
{
	lose(arg, n);
	return 0;
}

static void flush(void *arg)
{
	struct hld_line *l = arg;

	list_for_each (at, following, &l->hearers) {
		struct hld_hearer *h = list_entry(at, struct hld_hearer, link);

		if (is_behind(h))
			pump(h);
	}
	release(l);
}

/* ---- its life ---- */

static void line_free(struct hld_line *l)
{
	event_unsubscribe(l->subscriber);
	timer_free(l->look);
	buf_done(&l->words);
	release(l);
	free(l);
}

static int line_new(struct endpoint *e, struct events *events, struct hld_line **ret)
{
	struct hld_line *l = calloc(1, sizeof(*l));
	const struct event_sink sink = {
		.on_event = on_event, .on_gone = on_gone, .flush = flush, .arg = l};
	struct text types[HLD_N_TOLD];
	const struct event_filter filter = {.types = types, .n_types = HLD_N_TOLD};
	int r;

	if (!l)
		return -ENOMEM;
	for (unsigned i = 0; i < HLD_N_TOLD; i++)
		types[i] = text_of(hld_told(i));
	l->endpoint = e;
	list_init(&l->hearers);
	/* Escaped, a byte is at most six. */
	buf_init(&l->words, 8 * EVENT_DATA_MAX);
	r = timer_new(e->server->loop, on_look, l, &l->look);
	if (r == 0)
		r = event_subscribe(events, &filter, -1, &sink, &l->subscriber);
	if (r != 0) {
		line_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

int hld_line_join(struct endpoint *e, struct events *events, struct hld_hearer *h)
{
	struct hld_line *l = e->state;
	int r = l ? 0 : line_new(e, events, &l);

	if (r != 0)
		return r;
	e->state = l;
	h->line = l;
	h->at = l->end;
	h->after = event_last(events);
	h->sent = client_sent(h->client);
	h->told_ms = h->took_ms = now_ms(l);
	list_append(&l->hearers, &h->link);
	return 0;
}

void hld_line_leave(struct hld_hearer *h)
{
	struct hld_line *l = h->line;

	list_remove(&h->link);
	forget_kept(h);
	if (!list_empty(&l->hearers)) {
		release(l);
		return;
	}
	l->endpoint->state = NULL;
	line_free(l);
}
