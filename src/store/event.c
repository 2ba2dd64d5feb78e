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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	_Static_assert(sizeof(*given) == 2 * sizeof(int64_t), "numbers side by side");
	query_bind_int(q, ":n", n);
	query_bind_int(q, ":time", time_ms);
	query_bind_int(q, ":slack", slack_ms);
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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":type", event->type);
	query_bind_int(q, ":time", event->time_ms);
	query_bind_int(q, ":slack", slack_ms);
	query_bind_text(q, ":project", event->project);
	query_bind_text(q, ":session", event->session);
	query_bind_text(q, ":run", event->run);
	query_bind_text(q, ":host", event->host);
	query_bind_blob(q, ":data", event->data.data, event->data.len);
	query_bind_int(q, ":back", back);
	return query_later(q, NULL, 0);
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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool row;
	int r;

	r = query_next(q, &row);
	if (r != 0)
		return r;
	*ret_first = query_null(q, 0) ? 0 : query_int(q, 0);
	*ret_last = query_null(q, 1) ? 0 : query_int(q, 1);
	return 0;
}

int store_event_count(struct connection *c, struct text type, int64_t *ret_n)
{
	QUERY sql = {"SELECT count(*) FROM event WHERE type = :type"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool row;
	int r;

	query_bind_text(q, ":type", type);
	r = query_next(q, &row);
	if (r == 0)
		*ret_n = query_int(q, 0);
	return r;
}

/* ---- what goes ---- */

int store_event_count_deleted(struct statement *q, unsigned limit, unsigned *n)
{
	bool more;
	int r;

	query_bind_int(q, ":limit", limit - *n);
	while ((r = query_next(q, &more)) == 0 && more)
		(*n)++;
	return r;
}

static int delete_up_to(struct connection *c, int64_t seq, unsigned limit, unsigned *n)
{
	QUERY sql = {"DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE seq <= :seq"
		     " ORDER BY seq LIMIT :limit) RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return store_event_count_deleted(q, limit, n);
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
