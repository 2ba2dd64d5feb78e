/* Tasks by their names, many at once, with the states of those that they come after. */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/db/driver.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/task.h"

enum { ARRAYS_MAX = 16 << 20 };

/* ---- the rows ---- */

static int find_one(struct connection *c, const struct task_named *t, struct row_list *list)
{
	QUERY sql = {
		"SELECT {columns} FROM task WHERE id = :id AND project = :project",
		.of = &task_schema,
	};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":id", t->id), BIND(":project", t->project));

	return rows_take(q, list);
}

#define LIST(name, type) "unnest(CAST(CAST(:" name " AS TEXT) AS " type "[]))"

static int find_many(struct connection *c, const struct task_named *tasks, unsigned n,
		     struct row_list *list)
{
	QUERY sql = {
		"SELECT {columns} FROM task WHERE (project, id) IN"
		" (SELECT " LIST("projects", "TEXT") ", " LIST("ids", "TEXT") ")",
		.of = &task_schema,
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	CLEANUP(buf_donep) struct buf projects, ids;
	int r;

	buf_init(&projects, ARRAYS_MAX);
	buf_init(&ids, ARRAYS_MAX);
	for (unsigned i = 0; i < n; i++) {
		rows_add_name(c, &projects, tasks[i].project);
		rows_add_name(c, &ids, tasks[i].id);
	}
	r = rows_bind_names(q, ":projects", &projects) ?: rows_bind_names(q, ":ids", &ids);
	return r ?: rows_take(q, list);
}

/* A task may be named twice. */
static void take_rows(struct task_named *tasks, unsigned n, const struct row_list *list)
{
	const struct task *rows = list->rows;

	for (unsigned i = 0; i < n; i++) {
		struct task_named *t = &tasks[i];

		for (unsigned j = 0; j < list->n && !t->found; j++) {
			t->found = text_equal(t->id, rows[j].id) &&
				   text_equal(t->project, rows[j].project);
			if (t->found)
				t->row = rows[j];
		}
	}
}

static int find_rows(struct connection *c, struct arena *arena, struct task_named *tasks,
		     unsigned n)
{
	struct row_list list = {.arena = arena};
	int r = n == 1 ? find_one(c, tasks, &list) : find_many(c, tasks, n, &list);

	if (r == 0)
		take_rows(tasks, n, &list);
	return r;
}

/* ---- what they come after ---- */

/* A state below 0: that task is no longer in the store. */
struct before {
	int64_t task;
	struct text id;
	int64_t state;
};

#define ROW(kind, field) COLUMN(struct before, kind, field)
static const struct member before_members[] = {ROW(INT, task), ROW(TEXT, id), ROW(INT, state)};
static const struct schema before_schema = SCHEMA(struct before, before_members);

#define BEFORE(which)                                                                              \
	"SELECT a.task, a.id, COALESCE(b.state, -1) FROM task_after AS a"                          \
	" JOIN task AS t ON t.seq = a.task"                                                        \
	" LEFT JOIN task AS b ON b.project = t.project AND b.id = a.id"                            \
	" WHERE a.task " which " ORDER BY a.task, a.place"

static int find_before(struct connection *c, const struct task_named *tasks, unsigned n,
		       struct row_list *list)
{
	QUERY of_one = {BEFORE("= :task"), .of = &before_schema};
	QUERY of_many = {BEFORE("IN (SELECT " LIST("tasks", "BIGINT") ")"), .of = &before_schema};
	CLEANUP(query_donep) struct statement *q = query_open(c, n == 1 ? &of_one : &of_many);
	CLEANUP(buf_donep) struct buf seqs;
	int r = 0;

	buf_init(&seqs, ARRAYS_MAX);
	for (unsigned i = 0; i < n; i++) {
		char seq[24];

		if (!tasks[i].found || tasks[i].row.after.n == 0)
			continue;
		snprintf(seq, sizeof(seq), "%lld", (long long)tasks[i].row.seq);
		rows_add_name(c, &seqs, text_of(seq));
	}
	if (n == 1)
		query_bind(q, BIND(":task", tasks[0].row.seq));
	else
		r = rows_bind_names(q, ":tasks", &seqs);
	return r ?: rows_take(q, list);
}

/* The rows are in order of their tasks. A task that is no longer in the store was completed long ago. */
static int take_before(struct arena *arena, struct task_named *t, const struct before *rows,
		       unsigned n)
{
	struct text *ids;
	unsigned n_before = 0;

	for (; n > 0 && rows->task != t->row.seq; n--)
		rows++;
	while (n_before < n && rows[n_before].task == t->row.seq)
		n_before++;
	ids = arena_alloc(arena, (n_before + 1) * sizeof(ids[0]));
	t->after_states = arena_zalloc(arena, (n_before + 1) * sizeof(t->after_states[0]));
	if (!ids || !t->after_states)
		return -ENOMEM;
	t->row.after = (struct texts) {.items = ids, .n = n_before};
	for (unsigned i = 0; i < n_before; i++) {
		ids[i] = rows[i].id;
		t->after_states[i] = rows[i].state < 0 || rows[i].state >= N_TASK_STATES
					     ? TASK_COMPLETED
					     : (enum task_state)rows[i].state;
	}
	return 0;
}

static int find_named(struct connection *c, struct arena *arena, struct task_named *tasks,
		      unsigned n)
{
	struct row_list list = {.arena = arena};
	bool any = false;
	int r = find_rows(c, arena, tasks, n);

	for (unsigned i = 0; i < n; i++)
		any = any || (tasks[i].found && tasks[i].row.after.n > 0);
	if (r == 0 && any)
		r = find_before(c, tasks, n, &list);
	for (unsigned i = 0; i < n && r == 0; i++) {
		if (tasks[i].found && tasks[i].row.after.n > 0)
			r = take_before(arena, &tasks[i], list.rows, list.n);
	}
	return r;
}

#define NAME(field) COLUMN(struct task_named, TEXT, field)
static const struct member name_members[] = {NAME(project), NAME(id)};
static const struct schema name_schema = SCHEMA(struct task_named, name_members);

int store_task_open_names(struct connection *c, struct arena *arena, struct task_named **ret_tasks,
			  unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM task WHERE state < 2", .of = &name_schema};

	return rows_all(c, &sql, arena, ret_tasks, ret_n);
}

int store_task_find_named(struct connection *c, struct arena *arena, struct task_named *tasks,
			  unsigned n)
{
	unsigned at_once = c->ops->is_shared ? n : 1;
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i += at_once)
		r = find_named(c, arena, tasks + i, at_once);
	return r;
}
