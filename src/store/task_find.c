/* Tasks: how they are found, listed and counted. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/task.h"

/* In the order of enum column, which is that of the table. */
#define SMALL_COLUMNS                                                                              \
	"seq, project, id, state, priority, created_ms, started_ms, completed_ms, pid,"            \
	" pid_started, exit_status, signal, output_bytes, timeout_ms, attempts, max_attempts,"     \
	" retry_ms, not_before_ms, held, n_after, group_name, agent, runner, mark, cwd"

#define COLUMNS SMALL_COLUMNS ", error, env, metadata, result, prompt"

/* The beginnings of texts, for lists. */
#define SHORT_COLUMNS                                                                              \
	SMALL_COLUMNS ", substr(error, 1, :cut), NULL, CASE WHEN :brief = 0 THEN metadata END,"    \
		      " CASE WHEN :brief = 0 THEN substr(result, 1, :cut) END,"                    \
		      " substr(prompt, 1, :cut)"

/* All texts, or none of the long ones. */
#define LIGHT "length(prompt) + coalesce(length(env), 0) + coalesce(length(metadata), 0) <= 8192"
#define LIGHT_COLUMNS                                                                              \
	SMALL_COLUMNS ", error, CASE WHEN " LIGHT " THEN env END, CASE WHEN " LIGHT                \
		      " THEN metadata END, NULL, CASE WHEN " LIGHT " THEN prompt END"

enum column {
	COLUMN_SEQ,
	COLUMN_PROJECT,
	COLUMN_ID,
	COLUMN_STATE,
	COLUMN_PRIORITY,
	COLUMN_CREATED,
	COLUMN_STARTED,
	COLUMN_COMPLETED,
	COLUMN_PID,
	COLUMN_PID_STARTED,
	COLUMN_EXIT_STATUS,
	COLUMN_SIGNAL,
	COLUMN_OUTPUT_BYTES,
	COLUMN_TIMEOUT,
	COLUMN_ATTEMPTS,
	COLUMN_MAX_ATTEMPTS,
	COLUMN_RETRY,
	COLUMN_NOT_BEFORE,
	COLUMN_HELD,
	COLUMN_N_AFTER,
	COLUMN_GROUP,
	COLUMN_AGENT,
	COLUMN_RUNNER,
	COLUMN_MARK,
	COLUMN_CWD,
	COLUMN_ERROR,
	COLUMN_ENV,
	COLUMN_METADATA,
	COLUMN_RESULT,
	COLUMN_PROMPT,
};

/* ---- rows ---- */

/* Its texts are still the query's own bytes. */
static int read_task(struct statement *q, void *ret)
{
	*(struct task_row *)ret = (struct task_row) {
		.seq = query_int(q, COLUMN_SEQ),
		.project = query_text(q, COLUMN_PROJECT),
		.id = query_text(q, COLUMN_ID),
		.prompt = query_text(q, COLUMN_PROMPT),
		.agent = query_text(q, COLUMN_AGENT),
		.priority = query_double(q, COLUMN_PRIORITY),
		.state = (enum task_state)query_enum(q, COLUMN_STATE, N_TASK_STATES),
		.created_ms = query_int(q, COLUMN_CREATED),
		.started_ms = query_int(q, COLUMN_STARTED),
		.completed_ms = query_int(q, COLUMN_COMPLETED),
		.pid = query_int(q, COLUMN_PID),
		.pid_started = query_int(q, COLUMN_PID_STARTED),
		.mark = query_text(q, COLUMN_MARK),
		.result = query_blob(q, COLUMN_RESULT),
		.error = query_text(q, COLUMN_ERROR),
		.exit_status = query_int(q, COLUMN_EXIT_STATUS),
		.signal = query_int(q, COLUMN_SIGNAL),
		.output_bytes = query_int(q, COLUMN_OUTPUT_BYTES),
		.metadata = query_blob(q, COLUMN_METADATA),
		.group = query_text(q, COLUMN_GROUP),
		.runner = query_text(q, COLUMN_RUNNER),
		.cwd = query_text(q, COLUMN_CWD),
		.env = query_blob(q, COLUMN_ENV),
		.timeout_ms = query_int(q, COLUMN_TIMEOUT),
		.attempts = query_int(q, COLUMN_ATTEMPTS),
		.max_attempts = query_int(q, COLUMN_MAX_ATTEMPTS),
		.retry_ms = query_int(q, COLUMN_RETRY),
		.not_before_ms = query_int(q, COLUMN_NOT_BEFORE),
		.held = query_int(q, COLUMN_HELD) != 0,
		.n_after = query_enum(q, COLUMN_N_AFTER, STORE_AFTER_MAX + 1),
	};
	return query_fault(q);
}

/* What it comes after is short, and there is little of it; it is not counted. */
static const uint16_t task_texts[] = {
	offsetof(struct task_row, project), offsetof(struct task_row, id),
	offsetof(struct task_row, prompt),  offsetof(struct task_row, agent),
	offsetof(struct task_row, mark),    offsetof(struct task_row, result),
	offsetof(struct task_row, error),   offsetof(struct task_row, metadata),
	offsetof(struct task_row, group),   offsetof(struct task_row, runner),
	offsetof(struct task_row, cwd),     offsetof(struct task_row, env),
};

static const struct row_kind task_kind = ROW_KIND(struct task_row, read_task, task_texts);

/* The ids that row->seq comes after, of which there are at most row->n_after. */
static int find_after(struct connection *c, struct arena *arena, struct task_row *row)
{
	static const struct query sql = {
		"SELECT id FROM task_after WHERE task = :task ORDER BY place LIMIT :limit"};
	CLEANUP(query_donep) struct statement *q = NULL;
	struct text *ids;
	unsigned n = 0;
	bool more;
	int r;

	ids = arena_alloc(arena, row->n_after * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_int(q, ":task", row->seq);
	query_bind_int(q, ":limit", row->n_after);
	while ((r = query_next(q, &more)) == 0 && more) {
		ids[n] = query_text(q, 0);
		r = query_fault(q);
		if (r == 0)
			r = rows_copy_text(arena, &ids[n]);
		if (r != 0)
			return r;
		n++;
	}
	row->after = ids;
	row->n_after = n;
	return r;
}

static int take_tasks(struct connection *c, struct statement *q, struct row_list *list)
{
	struct task_row *rows;
	int r;

	r = rows_take(q, list);
	rows = list->rows;
	for (unsigned i = 0; i < list->n && r == 0; i++) {
		if (rows[i].n_after > 0)
			r = find_after(c, list->arena, &rows[i]);
	}
	return r;
}

/* ---- by id ---- */

/* project {NULL, 0}: of all. Up to two. */
static int find(struct connection *c, struct text project, struct text id, struct row_list *a)
{
	static const struct query in_project = {"SELECT " COLUMNS
						" FROM task WHERE id = :id AND project = :project"};
	static const struct query in_any = {"SELECT " COLUMNS " FROM task WHERE id = :id LIMIT 2"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, project.data ? &in_project : &in_any, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":id", id);
	if (project.data)
		query_bind_text(q, ":project", project);
	return take_tasks(c, q, a);
}

/* In one state of the store: what a task comes after is read by a query of its own. */
static int find_at_once(struct connection *c, struct text project, struct text id,
			struct row_list *a)
{
	bool begun;
	int r;

	r = query_begin_reads(c, &begun);
	if (r == 0)
		r = find(c, project, id, a);
	query_end_reads(c, begun);
	return r;
}

int store_task_find(struct connection *c, struct text project, struct text id, struct arena *arena,
		    struct task_row *ret_row, bool *ret_found)
{
	struct row_list a = {.kind = &task_kind, .arena = arena};
	int r;

	r = find_at_once(c, project.data ? project : TEXT(""), id, &a);
	if (r != 0)
		return r;
	if (a.n > 0)
		*ret_row = *(struct task_row *)a.rows;
	*ret_found = a.n > 0;
	return 0;
}

int store_task_find_any(struct connection *c, struct text id, struct arena *arena,
			struct task_row *ret_row, unsigned *ret_n)
{
	struct row_list a = {.kind = &task_kind, .arena = arena};
	int r;

	r = find_at_once(c, (struct text) {0}, id, &a);
	if (r != 0)
		return r;
	if (a.n == 1)
		*ret_row = *(struct task_row *)a.rows;
	*ret_n = a.n;
	return 0;
}

/* ---- lists ---- */

/* What is asked for again behind `where` costs little; `where` names the index to walk along. */
#define LIST(columns, where)                                                                       \
	"SELECT " columns " FROM task WHERE " where " seq < :before"                               \
	" AND (:group IS NULL OR group_name = :group)"                                             \
	" AND (:project IS NULL OR project = :project) AND (:state < 0 OR state = :state)"         \
	" ORDER BY seq DESC LIMIT :limit"

enum list { OF_GROUP, OF_STATE, OF_PROJECT, OF_ALL, N_LISTS };

#define LISTS(columns)                                                                             \
	{                                                                                          \
		[OF_GROUP] = {LIST(columns, "group_name = :group AND")},                           \
		[OF_STATE] = {LIST(columns, "project = :project AND state = :state AND")},         \
		[OF_PROJECT] = {LIST(columns, "project = :project AND")},                          \
		[OF_ALL] = {LIST(columns, "")},                                                    \
	}

static const struct query whole_lists[N_LISTS] = LISTS(COLUMNS);
static const struct query short_lists[N_LISTS] = LISTS(SHORT_COLUMNS);

static enum list list_of(const struct store_task_query *q)
{
	if (q->group.data)
		return OF_GROUP;
	if (!q->project.data)
		return OF_ALL;
	return q->state < 0 ? OF_PROJECT : OF_STATE;
}

/* cut 0: whole rows. */
static int list(struct connection *c, const struct store_task_query *query, unsigned cut,
		bool brief, struct row_list *a)
{
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &(cut ? short_lists : whole_lists)[list_of(query)], &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":group", query->group);
	query_bind_text(q, ":project", query->project);
	query_bind_int(q, ":state", query->state);
	query_bind_int(q, ":before", query->before_seq > 0 ? query->before_seq : INT64_MAX);
	query_bind_int(q, ":limit", query->limit);
	if (cut) {
		query_bind_int(q, ":cut", cut);
		query_bind_int(q, ":brief", brief);
	}
	return take_tasks(c, q, a);
}

static int list_at_once(struct connection *c, const struct store_task_query *q, unsigned cut,
			bool brief, struct arena *arena, struct task_row **ret_rows,
			unsigned *ret_n)
{
	struct row_list a = {.kind = &task_kind, .arena = arena, .max_bytes = q->max_bytes};
	bool begun;
	int r;

	r = query_begin_reads(c, &begun);
	if (r == 0)
		r = list(c, q, cut, brief, &a);
	query_end_reads(c, begun);
	if (r != 0)
		return r;
	*ret_rows = a.rows;
	*ret_n = a.n;
	return 0;
}

int store_task_list(struct connection *c, const struct store_task_query *q, struct arena *arena,
		    struct task_row **ret_rows, unsigned *ret_n)
{
	return list_at_once(c, q, 0, false, arena, ret_rows, ret_n);
}

int store_task_list_short(struct connection *c, const struct store_task_query *q, unsigned cut,
			  bool brief, struct arena *arena, struct task_row **ret_rows,
			  unsigned *ret_n)
{
	return list_at_once(c, q, cut, brief, arena, ret_rows, ret_n);
}

static int list_open(struct connection *c, struct row_list *a)
{
	/* The index of those that are open is asked first: ordered by seq alone, the whole table
	 * would be walked. */
	static const struct query sql = {"SELECT " LIGHT_COLUMNS " FROM task WHERE seq IN"
					 " (SELECT seq FROM task WHERE state < 2) ORDER BY seq"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	return r != 0 ? r : take_tasks(c, q, a);
}

int store_task_state(struct connection *c, struct text project, struct text id,
		     enum task_state *ret_state, bool *ret_found)
{
	static const struct query sql = {
		"SELECT state FROM task WHERE project = :project AND id = :id"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":project", project);
	query_bind_text(q, ":id", id);
	r = query_next(q, ret_found);
	if (r == 0 && *ret_found)
		*ret_state = (enum task_state)query_enum(q, 0, N_TASK_STATES);
	return r != 0 ? r : query_fault(q);
}

int store_task_open(struct connection *c, struct arena *arena, struct task_row **ret_rows,
		    unsigned *ret_n)
{
	struct row_list a = {.kind = &task_kind, .arena = arena};
	bool begun;
	int r;

	r = query_begin_reads(c, &begun);
	if (r == 0)
		r = list_open(c, &a);
	query_end_reads(c, begun);
	if (r != 0)
		return r;
	*ret_rows = a.rows;
	*ret_n = a.n;
	return 0;
}

/* ---- counts ---- */

/* A column for each state. */
#define PER_STATE                                                                                  \
	"sum(CASE WHEN state = 0 THEN 1 ELSE 0 END), sum(CASE WHEN state = 1 THEN 1 ELSE 0 END),"  \
	" sum(CASE WHEN state = 2 THEN 1 ELSE 0 END), sum(CASE WHEN state = 3 THEN 1 ELSE 0 END)," \
	" sum(CASE WHEN state = 4 THEN 1 ELSE 0 END)"

static int read_counts(struct statement *q, int64_t ret_n[N_TASK_STATES])
{
	for (int i = 0; i < N_TASK_STATES; i++)
		ret_n[i] = query_int(q, 1 + i);
	return query_fault(q);
}

static int read_project(struct statement *q, void *ret)
{
	struct store_task_counts *counts = ret;

	counts->project = query_text(q, 0);
	return read_counts(q, counts->n);
}

static int read_group(struct statement *q, void *ret)
{
	struct store_task_group *group = ret;

	group->name = query_text(q, 0);
	return read_counts(q, group->n);
}

static const uint16_t project_texts[] = {
	offsetof(struct store_task_counts, project),
};

static const struct row_kind project_kind =
	ROW_KIND(struct store_task_counts, read_project, project_texts);

static const uint16_t group_texts[] = {
	offsetof(struct store_task_group, name),
};

static const struct row_kind group_kind =
	ROW_KIND(struct store_task_group, read_group, group_texts);

int store_task_count(struct connection *c, struct arena *arena,
		     struct store_task_counts **ret_counts, unsigned *ret_n)
{
	static const struct query sql = {"SELECT project, " PER_STATE
					 " FROM task GROUP BY project ORDER BY project"};
	CLEANUP(query_donep) struct statement *q = NULL;
	struct row_list list = {.kind = &project_kind, .arena = arena};
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_counts = list.rows;
	*ret_n = list.n;
	return 0;
}

int store_task_groups(struct connection *c, struct text project, struct arena *arena,
		      struct store_task_group **ret_groups, unsigned *ret_n)
{
	static const struct query sql = {"SELECT group_name, " PER_STATE
					 " FROM task WHERE group_name IS NOT NULL"
					 " AND (:project IS NULL OR project = :project)"
					 " GROUP BY group_name ORDER BY group_name"};
	CLEANUP(query_donep) struct statement *q = NULL;
	struct row_list list = {.kind = &group_kind, .arena = arena};
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":project", project);
	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_groups = list.rows;
	*ret_n = list.n;
	return 0;
}
