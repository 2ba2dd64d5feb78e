#include "store/approval.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/short_id.h"

/* ---- what changes ---- */

int store_approval_add(struct connection *c, const struct approval_row *row, int64_t *ret_seq)
{
	static const struct query sql = {
		"INSERT INTO approval (id, kind, status, event_id, created_ms, deadline_ms,"
		" decided_ms, session, run, agent, origin, tool_use_id, tool, decided_by, comment,"
		" input, asker_pid, asker_started) VALUES (:id, :kind, :status, :event_id, "
		":created,"
		" :deadline, :decided, :session, :run, :agent, :origin, :tool_use_id, :tool, :by,"
		" :comment, :input, :asker_pid, :asker_started)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	query_bind_text(q, ":id", row->id);
	query_bind_int(q, ":kind", row->kind);
	query_bind_int(q, ":status", row->status);
	query_bind_int(q, ":event_id", row->event_id);
	query_bind_int(q, ":created", row->created_ms);
	query_bind_int(q, ":deadline", row->deadline_ms);
	query_bind_int(q, ":decided", row->decided_ms);
	query_bind_text(q, ":session", row->session);
	query_bind_text(q, ":run", row->run);
	query_bind_text(q, ":agent", row->agent);
	query_bind_text(q, ":origin", row->origin);
	query_bind_text(q, ":tool_use_id", row->tool_use_id);
	query_bind_text(q, ":tool", row->tool.data ? row->tool : TEXT(""));
	query_bind_text(q, ":by", row->decided_by);
	query_bind_blob(q, ":comment", row->comment.data, row->comment.len);
	query_bind_blob(q, ":input", row->input.data, row->input.len);
	query_bind_int(q, ":asker_pid", row->asker_pid);
	query_bind_int(q, ":asker_started", row->asker_started);
	r = query_run(q);
	if (r == 0)
		*ret_seq = query_inserted(q);
	return r;
}

int store_approval_decide(struct connection *c, const struct approval_row *row, bool *ret_done)
{
	static const struct query sql = {
		"UPDATE approval SET status = :status, comment = :comment, decided_by = :by,"
		" decided_ms = :decided, decider_uid = :uid, decider_pid = :pid,"
		" decider_program = :program, decider_terminal = :terminal"
		" WHERE id = :id AND status = 0 RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", row->id);
	query_bind_int(q, ":status", row->status);
	query_bind_blob(q, ":comment", row->comment.data, row->comment.len);
	query_bind_text(q, ":by", row->decided_by);
	query_bind_int(q, ":decided", row->decided_ms);
	query_bind_int(q, ":uid", row->decider_known ? row->decider_uid : -1);
	query_bind_int(q, ":pid", row->decider_pid);
	query_bind_blob(q, ":program", row->decider_program.data, row->decider_program.len);
	query_bind_text(q, ":terminal", row->decider_terminal);
	return query_run_found(q, ret_done);
}

int store_approval_tie(struct connection *c, int64_t seq, struct text session, int64_t event_id)
{
	static const struct query sql = {
		"UPDATE approval SET session = coalesce(:session, session), event_id = :event_id"
		" WHERE seq = :seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	query_bind_text(q, ":session", session);
	query_bind_int(q, ":event_id", event_id);
	return query_run(q);
}

int store_approval_has_asked(struct connection *c, int64_t pid, int64_t started, bool *ret_has)
{
	static const struct query sql = {
		"SELECT seq FROM approval WHERE asker_pid = :pid AND asker_started = :started"
		" AND asker_pid > 0 LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":pid", pid);
	query_bind_int(q, ":started", started);
	return query_run_found(q, ret_has);
}

int store_approval_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n)
{
	static const struct query sql = {
		"DELETE FROM approval WHERE seq IN (SELECT seq FROM approval WHERE status > 0"
		" AND decided_ms < :before ORDER BY decided_ms, seq LIMIT :limit) RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	unsigned n = 0;
	bool more;
	int r;

	query_bind_int(q, ":before", before_ms);
	query_bind_int(q, ":limit", limit);
	while ((r = query_next(q, &more)) == 0 && more)
		n++;
	if (r == 0)
		*ret_n = n;
	return r;
}

/* ---- rows ---- */

/* In the order of enum column. */
#define COLUMNS                                                                                    \
	"seq, id, kind, status, event_id, created_ms, deadline_ms, decided_ms, session, run,"      \
	" agent, origin, tool_use_id, tool, decided_by, comment, input, asker_pid, asker_started," \
	" decider_uid, decider_pid, decider_program, decider_terminal"

enum column {
	COLUMN_SEQ,
	COLUMN_ID,
	COLUMN_KIND,
	COLUMN_STATUS,
	COLUMN_EVENT_ID,
	COLUMN_CREATED,
	COLUMN_DEADLINE,
	COLUMN_DECIDED,
	COLUMN_SESSION,
	COLUMN_RUN,
	COLUMN_AGENT,
	COLUMN_ORIGIN,
	COLUMN_TOOL_USE_ID,
	COLUMN_TOOL,
	COLUMN_BY,
	COLUMN_COMMENT,
	COLUMN_INPUT,
	COLUMN_ASKER_PID,
	COLUMN_ASKER_STARTED,
	COLUMN_DECIDER_UID,
	COLUMN_DECIDER_PID,
	COLUMN_DECIDER_PROGRAM,
	COLUMN_DECIDER_TERMINAL,
};

/* Its texts are still the query's own bytes. */
static int read_approval(struct statement *q, void *ret)
{
	*(struct approval_row *)ret = (struct approval_row) {
		.seq = query_int(q, COLUMN_SEQ),
		.id = query_text(q, COLUMN_ID),
		.session = query_text(q, COLUMN_SESSION),
		.run = query_text(q, COLUMN_RUN),
		.agent = query_text(q, COLUMN_AGENT),
		.origin = query_text(q, COLUMN_ORIGIN),
		.tool_use_id = query_text(q, COLUMN_TOOL_USE_ID),
		.kind = (enum approval_kind)query_enum(q, COLUMN_KIND, APPROVAL_CONTACT + 1),
		.tool = query_text(q, COLUMN_TOOL),
		.input = query_blob(q, COLUMN_INPUT),
		.event_id = query_int(q, COLUMN_EVENT_ID),
		.status = (enum approval_status)query_enum(q, COLUMN_STATUS, N_APPROVAL_STATUSES),
		.comment = query_blob(q, COLUMN_COMMENT),
		.decided_by = query_text(q, COLUMN_BY),
		.created_ms = query_int(q, COLUMN_CREATED),
		.deadline_ms = query_int(q, COLUMN_DEADLINE),
		.decided_ms = query_int(q, COLUMN_DECIDED),
		.asker_pid = query_int(q, COLUMN_ASKER_PID),
		.asker_started = query_int(q, COLUMN_ASKER_STARTED),
		.decider_known = query_int(q, COLUMN_DECIDER_UID) >= 0,
		.decider_uid = query_int(q, COLUMN_DECIDER_UID),
		.decider_pid = query_int(q, COLUMN_DECIDER_PID),
		.decider_program = query_blob(q, COLUMN_DECIDER_PROGRAM),
		.decider_terminal = query_text(q, COLUMN_DECIDER_TERMINAL),
	};
	return query_fault(q);
}

static const uint16_t approval_texts[] = {
	offsetof(struct approval_row, id),
	offsetof(struct approval_row, session),
	offsetof(struct approval_row, run),
	offsetof(struct approval_row, agent),
	offsetof(struct approval_row, origin),
	offsetof(struct approval_row, tool_use_id),
	offsetof(struct approval_row, tool),
	offsetof(struct approval_row, input),
	offsetof(struct approval_row, comment),
	offsetof(struct approval_row, decided_by),
	offsetof(struct approval_row, decider_program),
	offsetof(struct approval_row, decider_terminal),
};

static const struct row_kind approval_kind =
	ROW_KIND(struct approval_row, read_approval, approval_texts);

/* ---- how they are found ---- */

int store_approval_find(struct connection *c, struct text id, struct arena *arena,
			struct approval_row *ret_row, bool *ret_found)
{
	static const struct query sql = {"SELECT " COLUMNS " FROM approval WHERE id = :id"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return rows_take_one(&approval_kind, q, arena, ret_row, ret_found);
}

int store_approval_find_short(struct connection *c, struct text prefix, bool waiting,
			      struct arena *arena, struct text ret_ids[2], unsigned *ret_n)
{
	static const struct query of_all = {
		"SELECT id FROM approval WHERE id >= :prefix ORDER BY id LIMIT 2"};
	/* Few wait: their index first, not that of all ids. */
	static const struct query of_waiting = {
		"SELECT id FROM approval WHERE status = 0 AND +id >= :prefix ORDER BY +id LIMIT 2"};

	return short_id_find(c, waiting ? &of_waiting : &of_all, prefix, arena, ret_ids, ret_n);
}

int store_approval_untied(struct connection *c, struct text run, struct text tool,
			  struct text tool_use_id, int64_t since_ms, struct arena *arena,
			  struct approval_row *ret_row, bool *ret_found)
{
	/* What is not tied is spelt out as its index has it. */
	static const struct query sql = {
		"SELECT " COLUMNS " FROM approval WHERE event_id = 0"
		" AND tool = :tool AND created_ms >= :since AND (run = :run OR session = :run)"
		" AND (tool_use_id IS NULL OR :tool_use_id IS NULL OR tool_use_id = :tool_use_id)"
		" ORDER BY CASE WHEN tool_use_id = :tool_use_id THEN 0 ELSE 1 END,"
		" created_ms DESC, seq DESC LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":run", run);
	query_bind_text(q, ":tool", tool);
	query_bind_text(q, ":tool_use_id", tool_use_id);
	query_bind_int(q, ":since", since_ms);
	return rows_take_one(&approval_kind, q, arena, ret_row, ret_found);
}

/* ---- lists ---- */

/* What is asked for again behind `where` costs little; `where` names the index to walk along. */
#define LIST(where, place, order)                                                                  \
	"SELECT " COLUMNS " FROM approval WHERE " where " seq " place                              \
	" :after AND (:status < 0 OR +status = :status)"                                           \
	" AND (:session IS NULL OR session = :session) AND (:run IS NULL OR run = :run)"           \
	" ORDER BY seq " order " LIMIT :limit"
#define LISTS(where)                                                                               \
	{                                                                                          \
		{LIST(where, "<", "DESC")}, {LIST(where, ">", "ASC")},                             \
	}

enum list { OF_SESSION, OF_RUN, OF_STATUS, OF_ALL, N_LISTS };

/* Those that are pending are few, whoever's they are. */
static enum list list_of(const struct store_approval_query *q)
{
	if (q->status == APPROVAL_PENDING)
		return OF_STATUS;
	if (q->session.data)
		return OF_SESSION;
	if (q->run.data)
		return OF_RUN;
	return q->status >= 0 ? OF_STATUS : OF_ALL;
}

int store_approval_list(struct connection *c, const struct store_approval_query *query,
			struct arena *arena, struct approval_row **ret_rows, unsigned *ret_n)
{
	static const struct query lists[N_LISTS][2] = {
		[OF_SESSION] = LISTS("session = :session AND"),
		[OF_RUN] = LISTS("run = :run AND"),
		[OF_STATUS] = LISTS("status = :status AND"),
		[OF_ALL] = LISTS(""),
	};
	struct row_list list = {
		.kind = &approval_kind, .arena = arena, .max_bytes = query->max_bytes};
	CLEANUP(query_donep) struct statement *q = NULL;
	int64_t after = query->after_seq;
	int r;

	if (after == 0 && !query->oldest_first)
		after = INT64_MAX;
	q = query_open(c, &lists[list_of(query)][query->oldest_first]);
	query_bind_int(q, ":after", after);
	query_bind_int(q, ":status", query->status);
	query_bind_text(q, ":session", query->session);
	query_bind_text(q, ":run", query->run);
	query_bind_int(q, ":limit", query->limit > 0 ? query->limit : INT64_MAX);
	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}
