#include "store/event.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

/* ---- adding ---- */

/* The time of an event behind one of the time `was`; see store_event_time. */
#define TIME(was, time, slack)                                                                     \
	"CASE WHEN " was " - " time " BETWEEN 1 AND " slack " THEN " was " ELSE " time " END"

static int take_numbers(struct connection *c, unsigned n, int64_t time_ms, int64_t slack_ms,
			struct store_event_given *given)
{
	QUERY sql = {"UPDATE event_counter SET last_seq = last_seq + :n, was_ms = last_ms,"
		     " last_ms = " TIME("last_ms", ":time",
					":slack") " WHERE id = 1 RETURNING last_seq, was_ms"};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":n", n), BIND(":time", time_ms),
					 BIND(":slack", slack_ms));

	_Static_assert(sizeof(*given) == 2 * sizeof(int64_t), "numbers side by side");
	return query_later(q, &given->last_seq, 2);
}

#define INSERT "INSERT INTO event (type, time_ms, project, session, run, host, data, seq)"

/* `back`: how many numbers before the last. */
static int add_one(struct connection *c, const struct event *event, unsigned back, int64_t slack_ms)
{
	QUERY sql = {
		INSERT " SELECT :type, " TIME("c.was_ms", ":time",
					      ":slack") ", :project, :session,"
							" :run, :host, :data, c.last_seq - :back "
							"FROM event_counter AS c WHERE c.id = 1",
		.many = INSERT
		" SELECT e.type, " TIME("c.was_ms", "e.time",
					"e.slack") ", e.project, e.session,"
						   " e.run, e.host, e.data, c.last_seq - e.back "
						   "FROM event_counter AS c,"
						   " unnest(CAST(:type AS TEXT[]), CAST(:time AS "
						   "BIGINT[]), CAST(:slack AS BIGINT[]),"
						   " CAST(:project AS TEXT[]), CAST(:session AS "
						   "TEXT[]), CAST(:run AS TEXT[]),"
						   " CAST(:host AS TEXT[]), CAST(:data AS "
						   "BYTEA[]), CAST(:back AS BIGINT[])) AS e"
						   " (type, time, slack, project, session, run, "
						   "host, data, back) WHERE c.id = 1"};
	return query_do_later(c, &sql, BIND(":type", event->type), BIND(":time", event->time_ms),
			      BIND(":slack", slack_ms), BIND(":project", event->project),
			      BIND(":session", event->session), BIND(":run", event->run),
			      BIND(":host", event->host), BIND_BLOB(":data", event->data),
			      BIND(":back", back));
}

#define NOTE(where)                                                                                \
	"INSERT INTO event_clock (seq) SELECT last_seq - :back FROM event_counter WHERE id = "     \
	"1" where " ON CONFLICT (seq) DO NOTHING"

/* Time goes back at the event this many numbers before the last that was given. */
static int note_clock(struct connection *c, unsigned back)
{
	QUERY sql = {NOTE("")};
	return query_do_later(c, &sql, BIND(":back", back));
}

/* The same, if that one has this time, and the one before the numbers that were given has a later one. */
static int note_first(struct connection *c, unsigned back, int64_t time_ms, int64_t slack_ms)
{
	QUERY sql = {NOTE(" AND was_ms - :time > :slack")};
	return query_do_later(c, &sql, BIND(":back", back), BIND(":time", time_ms),
			      BIND(":slack", slack_ms));
}

int store_event_add(struct connection *c, const struct event *events, unsigned n, int64_t slack_ms,
		    struct store_event_given *given)
{
	int r = take_numbers(c, n, events[n - 1].time_ms, slack_ms, given)
			?: note_first(c, n - 1, events[0].time_ms, slack_ms);

	for (unsigned i = 0; i < n && r == 0; i++) {
		if (i > 0 && events[i].time_ms < events[i - 1].time_ms)
			r = note_clock(c, n - 1 - i);
		if (r == 0)
			r = add_one(c, &events[i], n - 1 - i, slack_ms);
	}
	return r;
}

int store_event_check(const struct connection *c, const struct event *event)
{
	const struct text scopes[] = {event->project, event->session, event->run};

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		if (!query_is_indexable(c, scopes[i].len + event->type.len))
			return -EMSGSIZE;
	}
	return 0;
}

int store_event_settle(struct connection *c)
{
	return query_settle(c);
}

/* ---- numbers ---- */

int store_event_bounds(struct connection *c, int64_t *ret_first, int64_t *ret_last)
{
	QUERY sql = {"SELECT (SELECT min(seq) FROM event),"
		     " (SELECT last_seq FROM event_counter WHERE id = 1)"};
	int64_t found[2];
	int r = query_find_ints(c, &sql, found, 2, NULL);

	if (r != 0)
		return r;
	*ret_first = found[0];
	*ret_last = found[1];
	return 0;
}

int store_event_count(struct connection *c, struct text type, int64_t *ret_n)
{
	QUERY sql = {"SELECT count(*) FROM event WHERE type = :type"};
	return query_find_int(c, &sql, ret_n, BIND(":type", type));
}

/*
 * ---- stretches ----
 *
 * Times grow with seq within a stretch of the log, which ends where the clock was set back (event_clock); so
 * each stretch is bisected. There are few of them.
 */

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
static int store_event_look(struct connection *c, struct stretch s, int64_t *ret_seq,
			    int64_t *ret_ms)
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
		int r = store_event_look(c, (struct stretch) {middle, s.end}, &seq, &ms);

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

/* Deletes up to limit - *n events of before that time; *n grows. */
static int delete_older(struct connection *c, int64_t before_ms, unsigned limit, unsigned *n)
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

static int delete_up_to(struct connection *c, int64_t seq, unsigned limit, unsigned *n)
{
	QUERY sql = {"DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE seq <= :seq"
		     " ORDER BY seq LIMIT :limit) RETURNING seq"};

	return query_count(c, &sql, n, BIND(":seq", seq), BIND(":limit", limit));
}

int store_event_sweep(struct connection *c, int64_t before_ms, int64_t keep, unsigned limit,
		      unsigned *ret_n)
{
	int64_t first, last;
	unsigned n = 0;
	int r;

	r = store_event_bounds(c, &first, &last);
	if (r == 0 && keep > 0 && first > 0 && first <= last - keep)
		r = delete_up_to(c, last - keep, limit, &n);
	if (r == 0 && n < limit)
		r = delete_older(c, before_ms, limit, &n);
	if (r == 0)
		*ret_n = n;
	return r;
}
