/* What changes sessions. session_find.c finds them, session_event.c has what they said. */
#include "store/session.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"

/* Events that go in one sweep: a session may have millions. */
enum { SWEEP_EVENTS = 5000 };

static struct text or_empty(struct text t)
{
	return t.data ? t : TEXT("");
}

/* ---- add and update ---- */

/* What add and update have in common. */
static void bind_progress(struct statement *q, const struct session_row *row)
{
	query_bind_int(q, ":status", row->status);
	query_bind_int(q, ":active", row->active_ms);
	query_bind_int(q, ":ended", row->ended_ms);
	query_bind_double(q, ":cost", row->cost_usd);
	query_bind_int(q, ":input_tokens", row->input_tokens);
	query_bind_int(q, ":output_tokens", row->output_tokens);
	query_bind_int(q, ":duration", row->duration_ms);
	query_bind_int(q, ":turns", row->turns);
	query_bind_text(q, ":agent_session", row->agent_session);
	query_bind_text(q, ":model", row->model);
	query_bind_text(q, ":runner", or_empty(row->runner));
	query_bind_text(q, ":mark", row->mark);
	query_bind_blob(q, ":error", row->error.data, row->error.len);
	query_bind_blob(q, ":result", row->result.data, row->result.len);
}

static int insert(struct connection *c, const struct session_row *row, int64_t *ret_seq)
{
	static const struct query sql = {
		"INSERT INTO session (id, run, status, archived, created_ms, active_ms, ended_ms,"
		" cost_usd, input_tokens, output_tokens, duration_ms, turns, parent,"
		" agent_session, model, runner, mark, working_dir, title, summary, error, result)"
		" VALUES (:id, :run, :status, :archived, :created, :active, :ended,"
		" :cost, :input_tokens, :output_tokens, :duration, :turns, :parent,"
		" :agent_session, :model, :runner, :mark, :dir, :title, :summary, :error, "
		":result)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	query_bind_text(q, ":id", row->id);
	query_bind_text(q, ":run", row->run);
	query_bind_int(q, ":created", row->created_ms);
	query_bind_text(q, ":parent", row->parent);
	query_bind_text(q, ":dir", or_empty(row->working_dir));
	query_bind_text(q, ":summary", or_empty(row->summary));
	query_bind_text(q, ":title", row->title);
	query_bind_int(q, ":archived", row->archived);
	bind_progress(q, row);
	r = query_run(q);
	if (r == 0)
		*ret_seq = query_inserted(q);
	return r;
}

static int insert_text(struct connection *c, const struct session_row *row, int64_t seq)
{
	static const struct query sql = {
		"INSERT INTO session_text (seq, config, query) VALUES (:seq, :config, :query)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct text query = or_empty(row->query);

	query_bind_int(q, ":seq", seq);
	query_bind_blob(q, ":config", row->config.data, row->config.len);
	query_bind_blob(q, ":query", query.data, query.len);
	return query_run(q);
}

int store_session_add(struct connection *c, const struct session_row *row, int64_t *ret_seq)
{
	int64_t seq;
	int r;

	r = insert(c, row, &seq);
	if (r == 0)
		r = insert_text(c, row, seq);
	if (r == 0)
		*ret_seq = seq;
	return r;
}

/* Not title and archived: these are people's, who may have changed them since the row was read. */
int store_session_update(struct connection *c, const struct session_row *row)
{
	static const struct query sql = {
		"UPDATE session SET status = :status, active_ms = :active,"
		" ended_ms = :ended, cost_usd = :cost, input_tokens = :input_tokens,"
		" output_tokens = :output_tokens, duration_ms = :duration, turns = :turns,"
		" agent_session = :agent_session, model = :model, runner = :runner, mark = :mark,"
		" error = :error, result = :result"
		" WHERE seq = :seq RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool found;
	int r;

	query_bind_int(q, ":seq", row->seq);
	bind_progress(q, row);
	r = query_run_found(q, &found);
	return r != 0 ? r : found ? 0 : -ENOENT;
}

int store_session_set_archived(struct connection *c, struct text id, bool archived, bool *ret_found)
{
	static const struct query sql = {
		"UPDATE session SET archived = :archived WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_int(q, ":archived", archived);
	return query_run_found(q, ret_found);
}

int store_session_set_title(struct connection *c, struct text id, struct text title,
			    bool *ret_found)
{
	static const struct query sql = {
		"UPDATE session SET title = :title WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_text(q, ":title", title);
	return query_run_found(q, ret_found);
}

/* ---- sweep ---- */

static int find_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq, bool *ret_found)
{
	static const struct query sql = {
		"SELECT seq FROM session WHERE ended_ms > 0 AND ended_ms < :before"
		" ORDER BY ended_ms, seq LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	query_bind_int(q, ":before", before_ms);
	r = query_next(q, ret_found);
	if (r == 0 && *ret_found)
		*ret_seq = query_int(q, 0);
	return r;
}

/* The first ones, as many as *left says, which is less by those that went. */
static int delete_events(struct connection *c, int64_t session, unsigned *left)
{
	static const struct query sql = {
		"DELETE FROM session_event WHERE id IN (SELECT id FROM session_event"
		" WHERE session = :session ORDER BY id LIMIT :limit) RETURNING id"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	unsigned n = 0;
	bool more;
	int r;

	query_bind_int(q, ":session", session);
	query_bind_int(q, ":limit", *left);
	while ((r = query_next(q, &more)) == 0 && more)
		n++;
	*left -= n;
	return r;
}

static int delete_session(struct connection *c, int64_t seq)
{
	static const struct query sql = {"DELETE FROM session WHERE seq = :seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return query_run(q);
}

int store_session_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n)
{
	unsigned n = 0, left = SWEEP_EVENTS;
	bool found = true;
	int64_t seq = 0;
	int r = 0;

	while (n < limit && left > 0) {
		r = find_ended(c, before_ms, &seq, &found);
		if (r != 0 || !found)
			break;
		r = delete_events(c, seq, &left);
		/* One that has more of them than that is gone on with in the next sweep. */
		if (r == 0 && left > 0)
			r = delete_session(c, seq);
		if (r != 0)
			break;
		n++;
	}
	if (r != 0)
		return r;
	*ret_n = left > 0 ? n : limit;
	return 0;
}
