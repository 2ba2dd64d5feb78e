/* What changes tasks. How they are found is in task_find.c. */
#include "store/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

/* ---- ids ---- */

static const char id_start[] = "task-";

/* Above this a number is somebody's name, not one of ours. */
#define NUMBER_MAX INT64_C(999999999999999)

/* Whether an id is spelt as we would, and so could come again. */
static bool parse_id(struct text id, int64_t *ret_number)
{
	size_t start = sizeof(id_start) - 1;
	int64_t number = 0;

	if (id.len < start + 4 || memcmp(id.data, id_start, start) != 0)
		return false;
	if (id.data[start] == '0' && id.len != start + 4)
		return false;
	for (size_t i = start; i < id.len; i++) {
		if (id.data[i] < '0' || id.data[i] > '9')
			return false;
		number = number * 10 + (id.data[i] - '0');
		if (number > NUMBER_MAX)
			return false;
	}
	*ret_number = number;
	return true;
}

static int take_number(struct connection *c, struct text project, int64_t *ret_number)
{
	static const struct query sql = {
		"INSERT INTO task_project (name, next) VALUES (:name, 1)"
		" ON CONFLICT (name) DO UPDATE SET next = next + 1 RETURNING next - 1"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int64_t number;
	bool row;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":name", project);
	r = query_next(q, &row);
	if (r != 0)
		return r;
	number = query_int(q, 0);
	r = query_run(q);
	if (r == 0)
		*ret_number = number;
	return r;
}

/* An id that came from elsewhere: ours go on behind it. */
static int skip_number(struct connection *c, struct text project, int64_t number)
{
	static const struct query sql = {
		"INSERT INTO task_project (name, next) VALUES (:name, :next)"
		" ON CONFLICT (name) DO UPDATE SET next = excluded.next"
		" WHERE excluded.next > task_project.next"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":name", project);
	query_bind_int(q, ":next", number + 1);
	return query_run(q);
}

static int make_id(struct connection *c, struct arena *arena, struct text project,
		   struct text *ret_id)
{
	char text[40];
	int64_t number;
	int r;

	r = take_number(c, project, &number);
	if (r != 0)
		return r;
	snprintf(text, sizeof(text), "%s%04" PRId64, id_start, number);
	*ret_id = text_of(text);
	return rows_copy_text(arena, ret_id);
}

/* ---- add ---- */

/* What add and update have in common. */
static void bind_progress(struct statement *q, const struct task_row *row)
{
	query_bind_int(q, ":state", row->state);
	query_bind_int(q, ":started", row->started_ms);
	query_bind_int(q, ":completed", row->completed_ms);
	query_bind_int(q, ":pid", row->pid);
	query_bind_int(q, ":pid_started", row->pid_started);
	query_bind_int(q, ":exit_status", row->exit_status);
	query_bind_int(q, ":signal", row->signal);
	query_bind_int(q, ":output_bytes", row->output_bytes);
	query_bind_int(q, ":attempts", row->attempts);
	query_bind_int(q, ":not_before", row->not_before_ms);
	query_bind_int(q, ":held", row->held);
	query_bind_text(q, ":runner", row->runner);
	query_bind_text(q, ":mark", row->mark);
	query_bind_text(q, ":error", row->error);
	query_bind_blob(q, ":result", row->result.data, row->result.len);
}

static void bind_given(struct statement *q, const struct task_row *row, struct text id)
{
	query_bind_text(q, ":project", row->project.data ? row->project : TEXT(""));
	query_bind_text(q, ":id", id);
	query_bind_double(q, ":priority", row->priority);
	query_bind_int(q, ":created", row->created_ms);
	query_bind_int(q, ":timeout", row->timeout_ms);
	query_bind_int(q, ":max_attempts", row->max_attempts);
	query_bind_int(q, ":retry", row->retry_ms);
	query_bind_int(q, ":n_after", row->n_after);
	query_bind_text(q, ":group", row->group);
	query_bind_text(q, ":agent", row->agent);
	query_bind_text(q, ":cwd", row->cwd);
	query_bind_blob(q, ":env", row->env.data, row->env.len);
	query_bind_blob(q, ":metadata", row->metadata.data, row->metadata.len);
	query_bind_text(q, ":prompt", row->prompt.data ? row->prompt : TEXT(""));
}

static int insert(struct connection *c, const struct task_row *row, struct text id,
		  int64_t *ret_seq)
{
	static const struct query sql = {
		"INSERT INTO task (project, id, state, priority, created_ms, started_ms,"
		" completed_ms, pid, pid_started, exit_status, signal, output_bytes, timeout_ms,"
		" attempts, max_attempts, retry_ms, not_before_ms, held, n_after, group_name, "
		"agent,"
		" runner, mark, cwd, error, env, metadata, result, prompt)"
		" VALUES (:project, :id, :state, :priority, :created, :started,"
		" :completed, :pid, :pid_started, :exit_status, :signal, :output_bytes, :timeout,"
		" :attempts, :max_attempts, :retry, :not_before, :held, :n_after, :group, :agent,"
		" :runner, :mark, :cwd, :error, :env, :metadata, :result, :prompt)"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	bind_given(q, row, id);
	bind_progress(q, row);
	r = query_run(q);
	if (r == 0)
		*ret_seq = query_inserted(q);
	return r;
}

static int add_after(struct connection *c, int64_t task, unsigned place, struct text id)
{
	static const struct query sql = {
		"INSERT INTO task_after (task, place, id) VALUES (:task, :place, :id)"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_int(q, ":task", task);
	query_bind_int(q, ":place", place);
	query_bind_text(q, ":id", id);
	return query_run(q);
}

int store_task_add(struct connection *c, struct arena *arena, const struct task_row *row,
		   int64_t *ret_seq, struct text *ret_id)
{
	struct text project = row->project.data ? row->project : TEXT("");
	struct text id = row->id;
	int64_t number, seq = 0;
	int r;

	r = id.data ? rows_copy_text(arena, &id) : make_id(c, arena, project, &id);
	if (r == 0)
		r = insert(c, row, id, &seq);
	/* After the insert: an id that is taken leaves nothing behind. */
	if (r == 0 && row->id.data && parse_id(id, &number))
		r = skip_number(c, project, number);
	for (unsigned i = 0; i < row->n_after && r == 0; i++)
		r = add_after(c, seq, i, row->after[i]);
	if (r != 0)
		return r;
	*ret_seq = seq;
	*ret_id = id;
	return 0;
}

/* ---- update and sweep ---- */

int store_task_update(struct connection *c, const struct task_row *row)
{
	static const struct query sql = {
		"UPDATE task SET state = :state, started_ms = :started, completed_ms = :completed,"
		" pid = :pid, pid_started = :pid_started, exit_status = :exit_status,"
		" signal = :signal, output_bytes = :output_bytes, attempts = :attempts,"
		" not_before_ms = :not_before, held = :held, runner = :runner, mark = :mark, error "
		"= :error,"
		" result = :result WHERE seq = :seq RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = NULL;
	bool found;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_int(q, ":seq", row->seq);
	bind_progress(q, row);
	r = query_run_found(q, &found);
	return r != 0 ? r : found ? 0 : -ENOENT;
}

static int read_deleted(struct statement *q, void *ret)
{
	*(struct task_row *)ret = (struct task_row) {
		.seq = query_int(q, 0),
		.project = query_text(q, 1),
		.id = query_text(q, 2),
		.state = (enum task_state)query_enum(q, 3, N_TASK_STATES),
	};
	return query_fault(q);
}

static const uint16_t deleted_texts[] = {
	offsetof(struct task_row, project),
	offsetof(struct task_row, id),
};

static const struct row_kind deleted_kind = ROW_KIND(struct task_row, read_deleted, deleted_texts);

int store_task_sweep(struct connection *c, int64_t before_ms, unsigned limit, struct arena *arena,
		     struct task_row **ret_rows, unsigned *ret_n)
{
	/* The states are spelt out: else the index of those that ended cannot be used. */
	static const struct query sql = {
		"DELETE FROM task WHERE seq IN (SELECT seq FROM task WHERE state >= 2"
		" AND completed_ms < :before ORDER BY completed_ms, seq LIMIT :limit)"
		" RETURNING seq, project, id, state"};
	CLEANUP(query_donep) struct statement *q = NULL;
	struct row_list list = {.kind = &deleted_kind, .arena = arena};
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_int(q, ":before", before_ms);
	query_bind_int(q, ":limit", limit);
	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}
