#include "store/event_inner.h"

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

int store_event_add(struct connection *c, const struct event *events, unsigned n, int64_t slack_ms,
		    struct store_event_given *given)
{
	int r = take_numbers(c, n, events[n - 1].time_ms, slack_ms, given)
			?: store_event_note_first(c, n - 1, events[0].time_ms, slack_ms);

	for (unsigned i = 0; i < n && r == 0; i++) {
		if (i > 0 && events[i].time_ms < events[i - 1].time_ms)
			r = store_event_note_clock(c, n - 1 - i);
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
		r = store_event_delete_older(c, before_ms, limit, &n);
	if (r == 0)
		*ret_n = n;
	return r;
}
