/* Changes to tasks. task_find.c finds them. */
#include "store/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/tally.h"
#include "store/host/task_number.h"

/* ---- ids ---- */

static const char id_start[] = "task-";

/* A higher number is somebody's own name, not one of ours. */
#define NUMBER_MAX INT64_C(999999999999999)

/* Whether an id is spelled as ours are, so that we might assign it again. */
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

static int make_id(struct connection *c, struct arena *arena, struct text project,
		   struct text *ret_id)
{
	char text[40];
	int64_t number;
	int r;

	r = task_number_take(c, project, &number);
	if (r != 0)
		return r;
	snprintf(text, sizeof(text), "%s%04" PRId64, id_start, number);
	*ret_id = text_of(text);
	return rows_copy_text(arena, ret_id);
}

/* ---- add ---- */

static int store_task_insert(struct connection *c, const struct task *task, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO task ({columns}) VALUES ({values})",
		.of = &task_schema,
		.members = {.without = MEMBER_MADE},
		.key = "seq",
	};

	return query_insert(c, &sql, ret_seq, BIND_NOUN(task));
}

static int add_after(struct connection *c, int64_t task, unsigned place, struct text id)
{
	QUERY sql = {"INSERT INTO task_after (task, place, id) VALUES (:task, :place, :id)"};

	return query_do(c, &sql, BIND(":task", task), BIND(":place", place), BIND(":id", id));
}

int store_task_add(struct connection *c, struct arena *arena, const struct task *task,
		   int64_t *ret_seq, struct text *ret_id)
{
	struct task row = *task;
	int64_t number, seq;
	int r;

	if (!row.project.data)
		row.project = TEXT("");
	r = row.id.data ? rows_copy_text(arena, &row.id) : make_id(c, arena, row.project, &row.id);
	if (r != 0)
		return r;
	r = store_task_insert(c, &row, &seq);
	if (r != 0)
		return r;
	/* Do this after the insert, so that an id that is taken leaves nothing behind. */
	if (task->id.data && parse_id(row.id, &number))
		r = task_number_skip(c, row.project, number);
	for (unsigned i = 0; i < row.after.n && r == 0; i++)
		r = add_after(c, seq, i, row.after.items[i]);
	if (r == 0)
		r = tally_added(c, TALLY_TASK, seq);
	if (r != 0)
		return r;
	*ret_seq = seq;
	*ret_id = row.id;
	return 0;
}

/* ---- update and sweep ---- */

#define CHANGE(where)                                                                              \
	"UPDATE task SET {changes}, version = version + 1,"                                        \
	" cancel = CASE WHEN state >= 2 THEN 0 ELSE cancel END WHERE " where                       \
	" RETURNING version, cancel"
/* Of many; `guards` are what the guard expects, beside :seq. */
#define LIST(name) "CAST(:" name " AS BIGINT[])"
#define CHANGE_MANY(guards, guard_names, where)                                                    \
	"UPDATE task SET {listed}, version = task.version + 1,"                                    \
	" cancel = CASE WHEN task.state >= 2 THEN 0 ELSE task.cancel END"                          \
	" FROM unnest({lists}, " LIST("seq") guards                                                \
		")"                                                                                \
		" WITH ORDINALITY AS one ({columns}, which" guard_names ", place) WHERE " where    \
		" RETURNING one.place, task.version, task.cancel"
#define OF_TASK .of = &task_schema, .members = {.with = MEMBER_CHANGES}

#define IS_ALIVE(life)                                                                             \
	"(" life " = 0 OR EXISTS (SELECT 1 FROM host WHERE host.epoch = " life                     \
	" AND host.state = 0))"

/* A claim never waits for that of another host, which would make it lose anyway. */
QUERY updates[] = {
	[TASK_GUARD_VERSION] =
		{
			CHANGE("seq = :seq AND version = :version"),
			.many = CHANGE_MANY(", " LIST("version"), ", was",
					    "task.seq = one.which AND task.version = one.was"),
			OF_TASK,
		},
	[TASK_GUARD_CLAIM] =
		{
			CHANGE("seq = (SELECT seq FROM task WHERE seq = :seq AND state = 0"
			       " AND version = :version AND " IS_ALIVE(":life") " {lock})"),
			.lock = QUERY_SKIPS_LOCKED,
			.many = CHANGE_MANY(
				"", "",
				"task.seq = one.which AND task.seq IN (SELECT t.seq FROM task AS t"
				" JOIN unnest(" LIST("seq") ", " LIST("version") ", " LIST(
					"life") ") AS w (seq, version, life)"
						" ON t.seq = w.seq AND t.version = w.version"
						" WHERE t.state = 0 AND " IS_ALIVE(
							"w.life") " FOR UPDATE OF t SKIP LOCKED)"),
			OF_TASK,
		},
	[TASK_GUARD_RUN] =
		{
			CHANGE("seq = :seq AND state = 1 AND attempts = :attempt AND epoch = "
			       ":life AND (CAST(:holder AS TEXT) IS NULL OR host = :holder)"),
			.many = CHANGE_MANY(
				", " LIST("attempt") ", " LIST("life") ", CAST(:holder AS TEXT[])",
				", was, life, holder",
				"task.seq = one.which AND task.state = 1"
				" AND task.attempts = one.was AND task.epoch = one.life"
				" AND (one.holder IS NULL OR task.host = one.holder)"),
			OF_TASK,
		},
};

/* -ENOENT: no row is changed. */
static int take_kept(struct connection *c, const struct query *query,
		     struct store_task_kept *ret_kept, const struct query_value *values)
{
	int64_t kept[2];
	bool found;
	int r = query_find_ints_with(c, query, kept, 2, &found, values);

	if (r == 0 && found)
		*ret_kept = (struct store_task_kept) {.version = kept[0], .cancel = kept[1]};
	return r != 0 || found ? r : -ENOENT;
}

/* What is bound for a guard; each has some of these. */
#define BIND_GUARD(task, guard)                                                                    \
	BIND_NOUN(task), BIND(":seq", (task)->seq), BIND_IF(":version", (guard)->version),         \
		BIND_IF(":attempt", (guard)->attempts), BIND_IF(":holder", (guard)->host),         \
		BIND_IF(":life", (guard)->epoch)

int store_task_update(struct connection *c, const struct task *task,
		      const struct store_task_guard *guard, struct store_task_kept *ret_kept)
{
	return take_kept(c, &updates[guard->by], ret_kept, QUERY_VALUES(BIND_GUARD(task, guard)));
}

int store_task_update_later(struct connection *c, const struct task *task,
			    const struct store_task_guard *guard, struct store_task_kept *kept)
{
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &updates[guard->by], BIND_GUARD(task, guard));

	_Static_assert(sizeof(*kept) == 2 * sizeof(int64_t), "numbers side by side");
	*kept = (struct store_task_kept) {.version = -1};
	return query_later(q, &kept->version, 2);
}

/* One that waits and is wanted cancelled was put back by a host that had not heard of it yet. */
int store_task_abandoned(struct connection *c, unsigned limit, struct arena *arena,
			 struct task **ret_tasks, unsigned *ret_n)
{
	QUERY sql = {
		"SELECT {columns} FROM task WHERE (state = 1 AND NOT EXISTS (SELECT 1 FROM host"
		" WHERE host.epoch = task.epoch AND host.state = 0)) OR (state = 0 AND cancel = 1)"
		" ORDER BY seq LIMIT :limit {lock}",
		.lock = QUERY_SKIPS_LOCKED,
		.of = &task_schema,
	};

	return rows_all(c, &sql, arena, ret_tasks, ret_n, BIND(":limit", limit));
}

int store_task_wish(struct connection *c, int64_t seq, struct store_task_kept *ret_kept)
{
	QUERY sql = {"UPDATE task SET cancel = 1, version = version + 1"
		     " WHERE seq = :seq AND state = 1"
		     " RETURNING version, cancel"};
	return take_kept(c, &sql, ret_kept, QUERY_VALUES(BIND(":seq", seq)));
}

int store_task_lock_project(struct connection *c, struct text project)
{
	QUERY sql = {"UPDATE task_project SET next = next WHERE name = :name",
		     .postgres = "UPDATE task_project SET next = next FROM " ONE_HOST
				 " WHERE name = :name"};

	return query_do(c, &sql, BIND(":name", project));
}

static int forget_after(struct connection *c, int64_t task)
{
	QUERY sql = {"DELETE FROM task_after WHERE task = :task"};

	return query_do(c, &sql, BIND(":task", task));
}

static int write_edited(struct connection *c, const struct task *task,
			struct store_task_kept *ret_kept)
{
	QUERY sql = {
		"UPDATE task SET {changes}, version = version + 1 WHERE seq = :seq AND state = 0"
		" AND version = :version RETURNING version, cancel",
		.of = &task_schema,
		.members = {.with = TASK_EDITED},
	};
	return take_kept(c, &sql, ret_kept,
			 QUERY_VALUES(BIND_NOUN(task), BIND(":seq", task->seq),
				      BIND(":version", task->version)));
}

/* Who claims the task changes its state: of two at once, the second finds no row. */
int store_task_edit(struct connection *c, const struct task *task, bool after,
		    struct store_task_kept *ret_kept)
{
	int r = write_edited(c, task, ret_kept);

	if (r == 0 && after)
		r = forget_after(c, task->seq);
	for (unsigned i = 0; after && i < task->after.n && r == 0; i++)
		r = add_after(c, task->seq, i, task->after.items[i]);
	return r;
}

int store_task_sweep(struct connection *c, int64_t before_ms, unsigned limit, struct arena *arena,
		     struct task **ret_tasks, unsigned *ret_n)
{
	/* The states are spelled out; otherwise the index of ended tasks cannot be used. */
	QUERY sql = {
		"DELETE FROM task WHERE seq IN (SELECT seq FROM task WHERE state >= 2"
		" AND completed_ms < :before ORDER BY completed_ms, seq LIMIT :limit)"
		" RETURNING {columns}",
		.of = &task_schema,
		.members = {.with = TASK_ENDS, .without = MEMBER_CUT},
	};

	return rows_all(c, &sql, arena, ret_tasks, ret_n, BIND(":before", before_ms),
			BIND(":limit", limit));
}

/* ---- what its user wants gone ---- */

/* What open tasks come after is asked once for each statement. */
#define CLEAN(where)                                                                               \
	{                                                                                          \
		"DELETE FROM task WHERE seq IN (SELECT seq FROM task WHERE " where                 \
		" AND (project, id) NOT IN (SELECT o.project, a.id FROM task AS o"                 \
		" JOIN task_after AS a ON a.task = o.seq WHERE o.state < 2) LIMIT :limit)"         \
		" RETURNING {columns}",                                                            \
			.of = &task_schema, .members = {.with = TASK_ENDS, .without = MEMBER_CUT}, \
	}

enum { CLEAN_PROJECT = 1, CLEAN_GROUP = 2, N_CLEANS = 4 };

#define CLEANS(state)                                                                              \
	{                                                                                          \
		[0] = CLEAN(state), [CLEAN_PROJECT] = CLEAN("project = :project AND " state),      \
		[CLEAN_GROUP] = CLEAN("group_name = :group AND " state),                           \
		[CLEAN_PROJECT | CLEAN_GROUP] =                                                    \
			CLEAN("group_name = :group AND project = :project AND " state),            \
	}

int store_task_clean(struct connection *c, const struct store_task_query *query,
		     struct arena *arena, struct task **ret_tasks, unsigned *ret_n)
{
	QUERY ended[N_CLEANS] = CLEANS("state >= 2");
	QUERY completed[N_CLEANS] = CLEANS("state = 2");
	QUERY one = CLEAN("seq = :seq AND state >= 2");
	unsigned by =
		(query->project.data ? CLEAN_PROJECT : 0) | (query->group.data ? CLEAN_GROUP : 0);

	if (query->seq > 0)
		return rows_all(c, &one, arena, ret_tasks, ret_n, BIND(":seq", query->seq),
				BIND(":limit", query->limit));
	return rows_all(c, query->state == TASK_COMPLETED ? &completed[by] : &ended[by], arena,
			ret_tasks, ret_n, BIND_IF(":project", query->project),
			BIND_IF(":group", query->group), BIND(":limit", query->limit));
}

/* ---- pauses ---- */

int store_task_pause(struct connection *c, struct text group, int64_t now_ms, bool *ret_changed)
{
	QUERY sql = {"INSERT INTO task_pause (group_name, since_ms) VALUES (:group, :now)"
		     " ON CONFLICT (group_name) DO NOTHING RETURNING group_name"};

	return query_find(c, &sql, ret_changed, BIND(":group", group.data ? group : TEXT("")),
			  BIND(":now", now_ms));
}

int store_task_resume(struct connection *c, struct text group, bool *ret_changed)
{
	QUERY sql = {"DELETE FROM task_pause WHERE group_name = :group RETURNING group_name"};

	return query_find(c, &sql, ret_changed, BIND(":group", group.data ? group : TEXT("")));
}

int store_task_last(struct connection *c, int64_t *ret_seq)
{
	QUERY sql = {"SELECT coalesce(max(seq), 0) FROM task"};

	return query_find_int(c, &sql, ret_seq);
}

int store_task_pauses(struct connection *c, struct arena *arena, struct text **ret_groups,
		      unsigned *ret_n)
{
	QUERY sql = {"SELECT group_name FROM task_pause ORDER BY group_name", .of = &rows_of_texts};

	return rows_all(c, &sql, arena, ret_groups, ret_n);
}
