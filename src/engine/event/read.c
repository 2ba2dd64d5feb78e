/*
 * Pages of the log. The store selects by project, session and run; types are compared here. A
 * page scans a bounded number of rows and says where to continue.
 */
#include <errno.h>

#include "base/pack.h"
#include "base/pattern/pattern.h"
#include "engine/event/inner.h"
#include "store/event.h"
#include "store/store.h"

enum {
	SCAN_ROWS_MAX = 20000, /* rows scanned for one page */
	SCAN_BYTES = 4 << 20,  /* of rows held at once */
};

/* ---- the filter ---- */

static bool type_passes(struct text type, const struct event_filter *f)
{
	for (unsigned i = 0; i < f->n_types; i++) {
		if (text_equal(f->types[i], type) || stars_fit(f->types[i], type))
			return true;
	}
	return f->n_types == 0;
}

static bool is_or_any(struct text wanted, struct text t)
{
	return !wanted.data || (t.data && text_equal(wanted, t));
}

bool event_passes(const struct event *e, const struct event_filter *f)
{
	return type_passes(e->type, f) && is_or_any(f->project, e->project) &&
	       is_or_any(f->session, e->session) && is_or_any(f->run, e->run);
}

/* ---- rows ---- */

/* Copies a row into the page. Data that is not a packed object becomes {}. */
static int keep_row(struct arena *a, const struct event *row, struct event *ret_event)
{
	*ret_event = *row;
	if (!packed_is_object(row->data))
		ret_event->data = (struct text) {.data = "{\0", .len = 2};
	return portrait_copy(&event_portrait, a, ret_event);
}

/* ---- a page ---- */

struct scan {
	struct connection *connection;
	struct arena *arena; /* the page's */
	struct arena rows;   /* of one query */
	const struct event_filter *filter;
	struct store_event_query query;
	struct event *events;
	unsigned n;
	unsigned limit;
	size_t bytes;
	unsigned n_looked;
	int64_t at; /* the last row scanned */
	bool spent; /* the page is out of memory: the rest comes with the next one */
};

static struct store_event_query query_of(const struct event_filter *f)
{
	return (struct store_event_query) {
		.project = f->project,
		.session = f->session,
		.run = f->run,
		.max_bytes = SCAN_BYTES,
	};
}

static bool full(const struct scan *s)
{
	return s->spent || s->n == s->limit || s->bytes >= EVENT_PAGE_BYTES ||
	       s->n_looked >= SCAN_ROWS_MAX;
}

static int take_row(struct scan *s, const struct event *row)
{
	bool passes = type_passes(row->type, s->filter);
	int r = passes ? keep_row(s->arena, row, &s->events[s->n]) : 0;

	if (r == -ENOMEM && s->n > 0) {
		s->spent = true;
		return 0;
	}
	if (r != 0)
		return r;
	s->n += passes;
	s->bytes += passes ? portrait_bytes(&event_portrait, row) : 0;
	s->n_looked++;
	s->at = row->seq;
	return 0;
}

/* Continues from query.after_seq until the page is full or the log ends. */
static int scan_on(struct scan *s, bool *ret_end)
{
	struct event *rows;
	unsigned n = 1;
	int r = 0;

	while (r == 0 && n > 0 && !full(s)) {
		unsigned left = s->limit - s->n;

		arena_reset(&s->rows);
		s->query.limit = s->filter->n_types == 0 && left < EVENT_SCAN ? left : EVENT_SCAN;
		r = store_event_list(s->connection, &s->query, &s->rows, &rows, &n);
		for (unsigned i = 0; r == 0 && i < n && !full(s); i++)
			r = take_row(s, &rows[i]);
		s->query.after_seq = s->at;
	}
	*ret_end = n == 0;
	return r;
}

static void reverse(struct event *events, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		struct event e = events[i];

		events[i] = events[n - 1 - i];
		events[n - 1 - i] = e;
	}
}

/* The store starts with the newest; to find a type it may have to go far back. */
static int scan_newest(struct scan *s)
{
	struct event *rows;
	unsigned n;
	int r;

	s->query.newest_first = true;
	s->query.limit = s->filter->n_types == 0 ? s->limit : SCAN_ROWS_MAX;
	r = store_event_list(s->connection, &s->query, &s->rows, &rows, &n);
	for (unsigned i = 0; r == 0 && i < n && !full(s); i++)
		r = take_row(s, &rows[i]);
	reverse(s->events, s->n);
	return r;
}

static int64_t missing(int64_t since_seq, int64_t first, int64_t last)
{
	int64_t until = first > 0 ? first - 1 : last;

	return since_seq >= 0 && until > since_seq ? until - since_seq : 0;
}

static int scan_init(struct scan *s)
{
	s->events = arena_alloc(s->arena, (s->limit + 1) * sizeof(s->events[0]));
	return s->events ? 0 : -ENOMEM;
}

/* Read the bounds first, so that the query below sees every event up to the last. */
static int read_page(struct scan *s, int64_t since_seq, int64_t since_ms, struct event_page *page)
{
	bool newest = since_seq < 0 && since_ms == 0;
	int64_t first;
	int64_t last;
	bool end = true;
	int r = scan_init(s) ?: store_event_bounds(s->connection, &first, &last);

	if (r != 0)
		return r;
	/* A number that this log never issued belongs to another log. */
	if (since_seq > last)
		since_seq = last;
	s->at = since_seq > 0 ? since_seq : 0;
	s->query.after_seq = s->at;
	s->query.after_ms = since_ms;
	r = newest ? scan_newest(s) : scan_on(s, &end);
	if (r != 0)
		return r;
	*page = (struct event_page) {.events = s->events, .n = s->n, .last = s->at};
	if (newest && s->n > 0)
		page->last = s->events[s->n - 1].seq;
	page->gone = missing(since_seq, first, last);
	page->more = !end && page->last < last;
	if (!page->more && page->last < last)
		page->last = last;
	return 0;
}

int event_read_page(struct connection *c, struct arena *a, const struct event_filter *f,
		    int64_t since_seq, int64_t since_ms, unsigned limit,
		    struct event_page *ret_page)
{
	struct scan s = {
		.connection = c,
		.arena = a,
		.filter = f,
		.query = query_of(f),
		.limit = limit,
	};
	int r;

	arena_init(&s.rows, 4 * SCAN_BYTES);
	r = read_page(&s, since_seq, since_ms, ret_page);
	arena_done(&s.rows);
	return r;
}

static unsigned page_limit(int64_t limit)
{
	if (limit <= 0)
		return EVENT_PAGE_DEFAULT;
	return limit < EVENT_PAGE_MAX ? (unsigned)limit : EVENT_PAGE_MAX;
}

int event_count(struct events *e, int lane, struct text type, int64_t *ret_n)
{
	return store_event_count(store_lane(e->store, lane), type, ret_n);
}

int event_list(struct events *e, int lane, struct arena *a, const struct event_filter *f,
	       int64_t since_seq, int64_t since_ms, int64_t limit, struct event_page *ret_page)
{
	return event_read_page(store_lane(e->store, lane), a, f, since_seq, since_ms,
			       page_limit(limit), ret_page);
}
