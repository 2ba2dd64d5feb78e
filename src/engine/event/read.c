/*
 * Pages of the log. The store finds events by type and by project, session or run along an
 * index; patterns are first resolved to the types that there are. Where several of project,
 * session and run are asked for, rows are looked at that do not pass. A page looks at a bounded
 * number and says where to continue.
 */
#include <errno.h>
#include <string.h>

#include "base/pack.h"
#include "base/pattern/pattern.h"
#include "engine/event/inner.h"
#include "store/event.h"
#include "store/store.h"

enum {
	SCAN_ROWS_MAX = 20000, /* rows looked at for one page */
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
		ret_event->data = TEXT(PACKED_NO_OBJECT);
	return schema_copy(&event_schema, a, ret_event);
}

/* ---- types ---- */

static bool is_pattern(struct text type)
{
	return text_find(type, '*') != NULL;
}

static bool wants_all_types(const struct event_filter *f)
{
	for (unsigned i = 0; i < f->n_types; i++) {
		if (text_is(f->types[i], "*"))
			return true;
	}
	return f->n_types == 0;
}

static bool has_pattern(const struct event_filter *f)
{
	for (unsigned i = 0; i < f->n_types; i++) {
		if (is_pattern(f->types[i]))
			return true;
	}
	return false;
}

/* The types in the store that pass, for patterns; otherwise those that are asked for. */
static int resolve_types(struct connection *c, struct arena *a, const struct event_filter *f,
			 struct store_event_query *q)
{
	struct text *types = NULL;
	unsigned n = 0;
	unsigned n_pass = 0;
	int r;

	if (wants_all_types(f))
		return 0;
	q->types = f->types;
	q->n_types = f->n_types;
	if (!has_pattern(f))
		return 0;
	r = store_event_types(c, q, a, &types, &n);
	if (r != 0)
		return r;
	for (unsigned i = 0; i < n; i++) {
		if (type_passes(types[i], f))
			types[n_pass++] = types[i];
	}
	q->types = n_pass > 0 ? types : f->types;
	q->n_types = n_pass;
	return 0;
}

/* ---- a page ---- */

struct event_read_scan {
	struct connection *connection;
	struct arena *arena; /* the page's */
	struct arena rows;   /* of one query */
	struct store_event_query query;
	struct event *events;
	unsigned n;
	unsigned limit;
	size_t bytes;
	unsigned n_looked;
	int64_t at; /* the last row looked at */
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

static bool full(const struct event_read_scan *s)
{
	return s->spent || s->n == s->limit || s->bytes >= EVENT_PAGE_BYTES ||
	       s->n_looked >= SCAN_ROWS_MAX;
}

static int take_row(struct event_read_scan *s, const struct event *row)
{
	int r = keep_row(s->arena, row, &s->events[s->n]);

	if (r == -ENOMEM && s->n > 0) {
		s->spent = true;
		return 0;
	}
	if (r != 0)
		return r;
	s->n++;
	s->bytes += schema_bytes(&event_schema, row);
	s->at = row->seq;
	return 0;
}

/* As many as are missing, or more once it has turned out that not all rows pass. */
static unsigned rows_wanted(const struct event_read_scan *s)
{
	unsigned left = s->limit - s->n;

	return left < EVENT_SCAN && s->n_looked == s->n ? left : EVENT_SCAN;
}

static int take_rows(struct event_read_scan *s, bool *ret_end)
{
	struct store_event_rows found;
	unsigned i;
	int r;

	arena_reset(&s->rows);
	s->query.limit = rows_wanted(s);
	r = store_event_list(s->connection, &s->query, &s->rows, &found);
	if (r != 0)
		return r;
	for (i = 0; i < found.n && !full(s); i++) {
		r = take_row(s, &found.rows[i]);
		if (r != 0)
			return r;
	}
	s->n_looked += found.n_looked;
	if (!s->spent && s->n < s->limit && s->bytes < EVENT_PAGE_BYTES && found.n_looked > 0)
		s->at = found.at;
	*ret_end = found.end && i == found.n && !s->spent;
	return 0;
}

/* Continues until the page is full or the log ends, either way. */
static int scan_on(struct event_read_scan *s, bool *ret_end)
{
	int r;

	*ret_end = false;
	while (!*ret_end && !full(s)) {
		r = take_rows(s, ret_end);
		if (r != 0)
			return r;
		if (s->query.newest_first)
			s->query.before_seq = s->at;
		else
			s->query.after_seq = s->at;
	}
	return 0;
}

static void reverse(struct event *events, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		struct event e = events[i];

		events[i] = events[n - 1 - i];
		events[n - 1 - i] = e;
	}
}

static int64_t missing(int64_t since_seq, int64_t first, int64_t last)
{
	int64_t until = first > 0 ? first - 1 : last;

	return since_seq >= 0 && until > since_seq ? until - since_seq : 0;
}

static int scan_init(struct event_read_scan *s)
{
	s->events = arena_alloc(s->arena, s->limit * sizeof(s->events[0]));
	return s->events ? 0 : -ENOMEM;
}

/* Sets where the scan begins. There may be nothing from that time on. */
static int place(struct event_read_scan *s, int64_t since_seq, int64_t since_ms)
{
	int64_t first = 0;
	int r = since_ms > 0 ? store_event_since(s->connection, since_ms, &first) : 0;

	if (r != 0)
		return r;
	s->at = since_seq > 0 ? since_seq : 0;
	s->query.after_seq = first - 1 > s->at ? first - 1 : s->at;
	s->query.after_ms = since_ms;
	s->query.newest_first = since_seq < 0 && since_ms == 0;
	return 0;
}

/* The page of a scan that has ended. */
static struct event_page page_of(struct event_read_scan *s, int64_t log_last, bool end)
{
	struct event_page page = {.events = s->events, .n = s->n, .last = s->at};

	if (s->query.newest_first) {
		reverse(s->events, s->n);
		page.last = s->n > 0 ? s->events[s->n - 1].seq : 0;
		page.cut = !end && s->n_looked >= SCAN_ROWS_MAX && s->n < s->limit;
	}
	page.more = !end && !s->query.newest_first && page.last < log_last;
	if (!page.more && page.last < log_last)
		page.last = log_last;
	return page;
}

/* Read the bounds first, so that the queries below see every event up to the last. */
static int read_page(struct event_read_scan *s, const struct event_filter *f, int64_t since_seq,
		     int64_t since_ms, struct event_page *page)
{
	int64_t first;
	int64_t last;
	bool end;
	int r = scan_init(s) ?: store_event_bounds(s->connection, &first, &last);

	if (r != 0)
		return r;
	/* A number that this log never issued belongs to another log. */
	if (since_seq > last)
		since_seq = last;
	r = resolve_types(s->connection, s->arena, f, &s->query) ?: place(s, since_seq, since_ms)
		?: scan_on(s, &end);
	if (r != 0)
		return r;
	*page = page_of(s, last, end);
	page->gone = missing(since_seq, first, last);
	return 0;
}

int event_read_page(struct connection *c, struct arena *a, const struct event_filter *f,
		    int64_t since_seq, int64_t since_ms, unsigned limit,
		    struct event_page *ret_page)
{
	struct event_read_scan s = {
		.connection = c, .arena = a, .query = query_of(f), .limit = limit};
	int r;

	arena_init(&s.rows, 4 * SCAN_BYTES);
	r = read_page(&s, f, since_seq, since_ms, ret_page);
	arena_done(&s.rows);
	return r;
}

/* The log has no gaps, so the first row shows whether events before it were deleted. */
int event_read_next(struct connection *c, struct arena *a, int64_t after_seq, unsigned limit,
		    struct event_page *ret_page)
{
	struct event_read_scan s = {.connection = c, .arena = a, .limit = limit, .at = after_seq};
	bool end = false;
	int r;

	s.query = (struct store_event_query) {.after_seq = after_seq, .max_bytes = SCAN_BYTES};
	arena_init(&s.rows, 4 * SCAN_BYTES);
	r = scan_init(&s) ?: scan_on(&s, &end);
	arena_done(&s.rows);
	*ret_page = (struct event_page) {.events = s.events, .n = s.n, .last = s.at, .more = !end};
	if (r == 0 && s.n > 0)
		ret_page->gone = s.events[0].seq - after_seq - 1;
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
	return store_event_count(store_lane(e->opts.store, lane), type, ret_n);
}

int event_list(struct events *e, int lane, struct arena *a, const struct event_filter *f,
	       int64_t since_seq, int64_t since_ms, int64_t limit, struct event_page *ret_page)
{
	return event_read_page(store_lane(e->opts.store, lane), a, f, since_seq, since_ms,
			       page_limit(limit), ret_page);
}
