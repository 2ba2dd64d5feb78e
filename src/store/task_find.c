/* Tasks: finding, listing and counting them. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/db/schema_tally.h"
#include "store/task.h"

/* ---- what it comes after ---- */

/* Reads the ids that the task comes after; there are at most as many as it says. */
static int find_after(struct connection *c, struct arena *arena, struct task *task)
{
	QUERY sql = {"SELECT id FROM task_after WHERE task = :task ORDER BY place LIMIT :limit",
		     .of = &rows_of_texts};

	return rows_all(c, &sql, arena, &task->after.items, &task->after.n,
			BIND(":task", task->seq), BIND(":limit", task->after.n));
}

/* One comes after the other. */
struct edge {
	struct text task;
	struct text before;
};

static const struct member edge_members[] = {COLUMN(struct edge, TEXT, task),
					     COLUMN(struct edge, TEXT, before)};
static const struct schema edge_schema = SCHEMA(struct edge, edge_members);

/* Everything that the task comes after, through others, too. What has ended holds nobody up. */
static int find_edges(struct connection *c, struct text project, struct text id,
		      struct arena *arena, struct edge **ret_edges, unsigned *ret_n)
{
	QUERY sql = {
		"WITH RECURSIVE edge (task, before) AS (SELECT t.id, a.id FROM task AS t"
		" JOIN task_after AS a ON a.task = t.seq WHERE t.project = :project AND t.id = :id"
		" UNION SELECT t.id, a.id FROM edge AS e JOIN task AS t ON t.project = :project"
		" AND t.id = e.before AND t.state < 2 JOIN task_after AS a ON a.task = t.seq)"
		" SELECT task, before FROM edge",
		.of = &edge_schema};

	return rows_all(c, &sql, arena, ret_edges, ret_n, BIND(":project", project),
			BIND(":id", id));
}

static const struct edge *edge_to(const struct edge *edges, unsigned n, struct text before)
{
	for (unsigned i = 0; i < n; i++) {
		if (text_equal(edges[i].before, before))
			return &edges[i];
	}
	return NULL;
}

/* From its end to its start; only the task itself can close one, so this comes to an end. */
int store_task_circle(struct connection *c, struct text project, struct text id,
		      struct arena *arena, struct text **ret_ids, unsigned *ret_n)
{
	struct edge *edges;
	const struct edge *e;
	struct text *ids;
	unsigned n, n_ids = 0;
	int r = find_edges(c, project, id, arena, &edges, &n);

	if (r != 0)
		return r;
	ids = arena_alloc(arena, (n + 1) * sizeof(ids[0]));
	if (!ids)
		return -ENOMEM;
	for (e = edge_to(edges, n, id); e && n_ids < n; e = edge_to(edges, n, e->task)) {
		ids[n - ++n_ids] = e->task;
		if (text_equal(e->task, id))
			break;
	}
	*ret_ids = ids + n - n_ids;
	*ret_n = n_ids;
	return 0;
}

static int take_tasks(struct connection *c, struct statement *q, struct row_list *list)
{
	unsigned n_before = list->n;
	struct task *rows;
	int r;

	r = rows_take(q, list);
	rows = list->rows;
	for (unsigned i = n_before; i < list->n && r == 0; i++) {
		if (rows[i].after.n > 0)
			r = find_after(c, list->arena, &rows[i]);
	}
	return r;
}

/* ---- by id ---- */

/* project {NULL, 0}: all projects. Returns up to two. */
static int task_find_find(struct connection *c, struct text project, struct text id,
			  struct row_list *a)
{
	QUERY in_project = {
		"SELECT {columns} FROM task WHERE id = :id AND project = :project",
		.of = &task_schema,
	};
	QUERY in_any = {
		"SELECT {columns} FROM task WHERE id = :id LIMIT 2",
		.of = &task_schema,
	};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, project.data ? &in_project : &in_any, BIND(":id", id),
					 BIND_IF(":project", project));

	return take_tasks(c, q, a);
}

/* Read both in one state of the store: what a task comes after needs a query of its own. */
static int find_at_once(struct connection *c, struct text project, struct text id,
			struct row_list *a)
{
	CLEANUP(query_end_reads) struct reads reads;

	return query_begin_reads(c, &reads) ?: task_find_find(c, project, id, a);
}

int store_task_find(struct connection *c, struct text project, struct text id, struct arena *arena,
		    struct task *ret_task, unsigned *ret_n)
{
	struct row_list a = {.arena = arena};
	int r;

	r = find_at_once(c, project, id, &a);
	if (r != 0)
		return r;
	if (a.n == 1)
		*ret_task = *(struct task *)a.rows;
	*ret_n = a.n;
	return 0;
}

/* ---- lists ---- */

/* A list says what is asked for and nothing else, so that its index fits. */
#define LIST(where)                                                                                \
	"SELECT {columns} FROM task WHERE " where " seq < :before ORDER BY seq DESC LIMIT :limit"

#define OF_LABEL   "label = :label AND "
#define OF_GROUP   "group_name = :group AND "
#define OF_PROJECT "project = :project AND "
#define OF_STATE   "state = :state AND "
#define OF_SKIPPED "state = 3 AND skipped IS NOT NULL AND "
#define OF_FAILED  "state = 3 AND skipped IS NULL AND "
/* Nearly all tasks have ended: the sign keeps SQLite from sorting what an index of states finds. */
#define OF_ENDED "+state > 1 AND "

/* One of the first five, with any of the others. */
enum {
	BY_STATE = 1,
	BY_SKIPPED = 2,
	BY_FAILED = 3,
	BY_ENDED = 4,
	BY_PROJECT = 8,
	BY_GROUP = 16,
	BY_LABEL = 32,
	N_LISTS = 64,
};

/* The parts of a list with open tasks first. A place in it is seq * N_PARTS + part. */
enum part { PART_RUNNING, PART_QUEUED, PART_ENDED, N_PARTS };

#define LISTS_BY(by, of, ...)                                                                      \
	[(by)] = {LIST(of), __VA_ARGS__}, [(by) | BY_STATE] = {LIST(of OF_STATE), __VA_ARGS__},    \
	[(by) | BY_SKIPPED] = {LIST(of OF_SKIPPED), __VA_ARGS__},                                  \
	[(by) | BY_FAILED] = {LIST(of OF_FAILED), __VA_ARGS__},                                    \
	[(by) | BY_ENDED] = {LIST(of OF_ENDED), __VA_ARGS__}

#define LISTS_OF(by, of, ...)                                                                      \
	LISTS_BY(by, of, __VA_ARGS__), LISTS_BY((by) | BY_PROJECT, of OF_PROJECT, __VA_ARGS__)

#define LISTS(...)                                                                                 \
	{                                                                                          \
		LISTS_OF(0, "", __VA_ARGS__), LISTS_OF(BY_GROUP, OF_GROUP, __VA_ARGS__),           \
			LISTS_OF(BY_LABEL, OF_LABEL, __VA_ARGS__),                                 \
			LISTS_OF(BY_LABEL | BY_GROUP, OF_LABEL OF_GROUP, __VA_ARGS__),             \
	}

/* The beginnings of texts. */
#define SHORT(left_out)                                                                            \
	.of = &task_schema, .members = {.without = (left_out)}, .special = MEMBER_CUT,             \
	.as = "substr(%, 1, :cut)"

QUERY whole_lists[N_LISTS] = LISTS(.of = &task_schema, .large = true);
QUERY short_lists[N_LISTS] = LISTS(SHORT(TASK_UNLISTED));
QUERY brief_lists[N_LISTS] = LISTS(SHORT(TASK_UNLISTED | TASK_BULKY));

int64_t store_task_place(const struct task *row, bool open_first)
{
	enum part part = row->state == TASK_RUNNING  ? PART_RUNNING
			 : row->state == TASK_QUEUED ? PART_QUEUED
						     : PART_ENDED;

	return open_first ? row->seq * N_PARTS + (int64_t)part : row->seq;
}

/* A list, or a part of one: what its statement is bound to. */
struct task_find_listed {
	const struct store_task_query *query;
	unsigned by;
	int state;
	int64_t before_seq; /* 0: from the newest */
	unsigned limit;
};

static unsigned by_state(const struct store_task_query *query)
{
	if (query->state < 0)
		return 0;
	if (query->state != TASK_FAILED || query->skips == SKIPS_TOO)
		return BY_STATE;
	return query->skips == SKIPS_ONLY ? BY_SKIPPED : BY_FAILED;
}

static int list_some(struct connection *c, const struct task_find_listed *l, struct row_list *a)
{
	const struct store_task_query *query = l->query;
	const struct query *lists = query->cut == 0 ? whole_lists
				    : query->brief  ? brief_lists
						    : short_lists;
	unsigned by = (query->label.data ? BY_LABEL : 0) | (query->group.data ? BY_GROUP : 0) |
		      (query->project.data ? BY_PROJECT : 0) | l->by;
	CLEANUP(query_donep)
	struct statement *q = query_open(
		c, &lists[by], BIND_IF(":label", query->label), BIND_IF(":group", query->group),
		BIND_IF(":project", query->project), BIND_IF(":state", l->state),
		BIND(":before", l->before_seq > 0 ? l->before_seq : INT64_MAX),
		BIND(":limit", l->limit), BIND_IF(":cut", query->cut));

	return take_tasks(c, q, a);
}

static int list(struct connection *c, const struct store_task_query *query, struct row_list *a)
{
	static const struct {
		unsigned by;
		int state;
	} parts[N_PARTS] = {
		[PART_RUNNING] = {BY_STATE, TASK_RUNNING},
		[PART_QUEUED] = {BY_STATE, TASK_QUEUED},
		[PART_ENDED] = {BY_ENDED, -1},
	};
	struct task_find_listed l = {.query = query,
				     .by = by_state(query),
				     .state = query->state,
				     .before_seq = query->before,
				     .limit = query->limit};
	int r = 0;

	if (!query->open_first)
		return list_some(c, &l, a);
	l.before_seq = query->before / N_PARTS;
	for (int64_t p = query->before % N_PARTS; r == 0 && p < N_PARTS && a->n < query->limit;
	     p++) {
		l.by = parts[p].by;
		l.state = parts[p].state;
		l.limit = query->limit - a->n;
		r = list_some(c, &l, a);
		l.before_seq = 0;
	}
	return r;
}

int store_task_list(struct connection *c, const struct store_task_query *q, struct arena *arena,
		    struct task **ret_tasks, unsigned *ret_n)
{
	struct row_list a = {.arena = arena, .max_bytes = q->max_bytes};
	CLEANUP(query_end_reads) struct reads reads;

	return rows_give(query_begin_reads(c, &reads) ?: list(c, q, &a), &a, ret_tasks, ret_n);
}

/* Without the texts of a task that has much of them. */
#define UNLESS_LONG                                                                                \
	.of = &task_schema, .special = TASK_LONG,                                                  \
	.as = "CASE WHEN length(prompt) + coalesce(length(env), 0)"                                \
	      " + coalesce(length(metadata), 0) <= 8192 THEN % END"

int store_task_skipped(struct connection *c, struct text project, struct text id, int64_t after_seq,
		       unsigned limit, struct arena *arena, struct task **ret_tasks,
		       unsigned *ret_n)
{
	QUERY sql = {
		"SELECT {columns} FROM task WHERE seq IN (SELECT task FROM task_after"
		" WHERE id = :id) AND project = :project AND state = 3 AND skipped IS NOT NULL"
		" AND seq > :after ORDER BY seq LIMIT :limit",
		UNLESS_LONG,
	};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":id", id), BIND(":project", project),
					 BIND(":after", after_seq), BIND(":limit", limit));
	struct row_list a = {.arena = arena};

	return rows_give(take_tasks(c, q, &a), &a, ret_tasks, ret_n);
}

int store_task_state(struct connection *c, struct text project, struct text id,
		     enum task_state *ret_state, bool *ret_found)
{
	QUERY sql = {"SELECT state FROM task WHERE project = :project AND id = :id"};
	int64_t state;
	int r = query_find_ints(c, &sql, &state, 1, ret_found, BIND(":project", project),
				BIND(":id", id));

	if (r == 0 && (state < 0 || state >= N_TASK_STATES))
		r = -EBADMSG;
	if (r == 0 && *ret_found)
		*ret_state = (enum task_state)state;
	return r;
}

static int list_open(struct connection *c, struct row_list *a)
{
	/* Use the index of open tasks: ordered by seq alone, the whole table would be walked. */
	QUERY sql = {
		"SELECT {columns} FROM task WHERE seq IN"
		" (SELECT seq FROM task WHERE state < 2) ORDER BY seq",
		.large = true,
		UNLESS_LONG,
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return take_tasks(c, q, a);
}

int store_task_open(struct connection *c, struct arena *arena, struct task **ret_tasks,
		    unsigned *ret_n)
{
	struct row_list a = {.arena = arena};
	CLEANUP(query_end_reads) struct reads reads;

	return rows_give(query_begin_reads(c, &reads) ?: list_open(c, &a), &a, ret_tasks, ret_n);
}

/* ---- counts ---- */

/* By tallies and what came after them; a column for each state. */
#define COUNT(tallies, newest)                                                                     \
	"SELECT name, sum(CASE WHEN state = 0 THEN n ELSE 0 END),"                                 \
	" sum(CASE WHEN state = 1 THEN n ELSE 0 END), sum(CASE WHEN state = 2 THEN n ELSE 0 END)," \
	" sum(CASE WHEN state = 3 THEN n ELSE 0 END), sum(CASE WHEN state = 4 THEN n ELSE 0 END)"  \
	" FROM (SELECT " tallies " UNION ALL SELECT " newest " AND seq > " TALLY_MARK(             \
		"task") ") AS counted GROUP BY name HAVING sum(n) > 0 ORDER BY name"

#define TALLY(kind, field) COLUMN(struct task_tally, kind, field)
static const struct member tally_members[] = {TALLY(TEXT, name), TALLY(INT, n[0]),
					      TALLY(INT, n[1]),  TALLY(INT, n[2]),
					      TALLY(INT, n[3]),  TALLY(INT, n[4])};
static const struct schema tally_schema = SCHEMA(struct task_tally, tally_members);
_Static_assert(N_TASK_STATES == 5, "a column for each");

int store_task_count(struct connection *c, struct arena *arena, struct task_tally **ret_counts,
		     unsigned *ret_n)
{
	QUERY sql = {COUNT("name, number AS state, n FROM {tally} WHERE kind = 'project'",
			   "project, state, 1 FROM task WHERE true"),
		     .of = &tally_schema};

	return rows_all(c, &sql, arena, ret_counts, ret_n);
}

/* || '': otherwise an index by group would be walked, not only the newest. */
int store_task_groups(struct connection *c, struct text project, struct arena *arena,
		      struct task_tally **ret_groups, unsigned *ret_n)
{
	QUERY in_any = {COUNT("part AS name, number AS state, n FROM {tally} WHERE kind = 'group'",
			      "group_name, state, 1 FROM task WHERE group_name || '' IS NOT NULL"),
			.of = &tally_schema};
	QUERY in_project = {
		COUNT("part AS name, number AS state, n FROM {tally}"
		      " WHERE kind = 'group' AND name = :project",
		      "group_name, state, 1 FROM task"
		      " WHERE group_name || '' IS NOT NULL AND project || '' = :project"),
		.of = &tally_schema};
	return rows_all(c, project.data ? &in_project : &in_any, arena, ret_groups, ret_n,
			BIND_IF(":project", project));
}
