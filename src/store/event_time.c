/*
 * Events by their time. Times grow with seq within a stretch of the log, which ends where the clock
 * was set back (event_clock); so each stretch is bisected. There are few of them.
 */
#include "base/cleanup.h"
#include "store/event_inner.h"

#define NOTE(where)                                                                                \
	"INSERT INTO event_clock (seq) SELECT last_seq - :back FROM event_counter WHERE id = "     \
	"1" where " ON CONFLICT (seq) DO NOTHING"

int store_event_note_clock(struct connection *c, unsigned back)
{
	QUERY sql = {NOTE("")};
	return query_do_later(c, &sql, BIND(":back", back));
}

int store_event_note_first(struct connection *c, unsigned back, int64_t time_ms, int64_t slack_ms)
{
	QUERY sql = {NOTE(" AND was_ms - :time > :slack")};
	return query_do_later(c, &sql, BIND(":back", back), BIND(":time", time_ms),
			      BIND(":slack", slack_ms));
}

/* ---- stretches ---- */

/* Events from `from` on, and before `end`. */
struct stretch {
	int64_t from, end;
};

/* Where the clock was set back next; or the end of the log. */
static int find_end(struct connection *c, int64_t from, int64_t last, int64_t *ret_end)
{
	QUERY sql = {"SELECT min(seq) FROM event_clock WHERE seq > :from"};
	int64_t end;
	int r = query_find_int(c, &sql, &end, BIND(":from", from));

	if (r == 0)
		*ret_end = end == 0 || end > last ? last + 1 : end;
	return r;
}

/* The first event of the stretch; *ret_seq is 0 where it has none. */
static int look(struct connection *c, struct stretch s, int64_t *ret_seq, int64_t *ret_ms)
{
	QUERY sql = {"SELECT seq, time_ms FROM event WHERE seq >= :from"
		     " AND seq < :end ORDER BY seq LIMIT 1"};
	int64_t found[2];
	int r = query_find_ints(c, &sql, found, 2, NULL, BIND(":from", s.from),
				BIND(":end", s.end));

	if (r != 0)
		return r;
	*ret_seq = found[0];
	*ret_ms = found[1];
	return 0;
}

/* The number of the stretch's first event at or after this time; its end: there is none. */
static int bisect(struct connection *c, struct stretch s, int64_t time_ms, int64_t *ret_seq)
{
	int64_t found = s.end;

	while (s.from < s.end) {
		int64_t middle = s.from + (s.end - s.from) / 2;
		int64_t seq, ms;
		int r = look(c, (struct stretch) {middle, s.end}, &seq, &ms);

		if (r != 0)
			return r;
		if (seq != 0 && ms < time_ms) {
			s.from = seq + 1;
			continue;
		}
		if (seq != 0)
			found = seq;
		s.end = middle;
	}
	*ret_seq = found;
	return 0;
}

int store_event_since(struct connection *c, int64_t time_ms, int64_t *ret_seq)
{
	struct stretch s;
	int64_t last, found = 0;
	int r = store_event_bounds(c, &s.from, &last);

	if (r != 0)
		return r;
	for (; s.from > 0 && s.from <= last; s.from = s.end) {
		r = find_end(c, s.from, last, &s.end) ?: bisect(c, s, time_ms, &found);
		if (r != 0)
			return r;
		if (found < s.end) {
			*ret_seq = found;
			return 0;
		}
	}
	*ret_seq = INT64_MAX;
	return 0;
}

/* ---- what goes ---- */

static int delete_from(struct connection *c, struct stretch s, int64_t before_ms, unsigned limit,
		       unsigned *n)
{
	QUERY sql = {
		"DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE seq >= :from"
		" AND seq < :end AND time_ms < :before ORDER BY seq LIMIT :limit) RETURNING seq"};
	unsigned n_deleted;
	int r = query_count(c, &sql, &n_deleted, BIND(":from", s.from), BIND(":end", s.end),
			    BIND(":before", before_ms), BIND(":limit", limit - *n));

	if (r == 0)
		*n += n_deleted;
	return r;
}

/* Where the clock was set back matters only for what is still kept. */
static int forget_clock(struct connection *c)
{
	QUERY sql = {"DELETE FROM event_clock"
		     " WHERE seq <= coalesce((SELECT min(seq) FROM event), seq)"};

	return query_do(c, &sql);
}

int store_event_delete_older(struct connection *c, int64_t before_ms, unsigned limit, unsigned *n)
{
	struct stretch s;
	int64_t last;
	int r = store_event_bounds(c, &s.from, &last);

	if (r != 0 || s.from == 0)
		return r;
	while (s.from <= last && *n < limit) {
		int64_t end;

		r = find_end(c, s.from, last, &s.end);
		if (r != 0)
			return r;
		end = s.end;
		r = bisect(c, s, before_ms, &s.end) ?: delete_from(c, s, before_ms, limit, n);
		if (r != 0)
			return r;
		s.from = end;
	}
	return *n > 0 ? forget_clock(c) : 0;
}
