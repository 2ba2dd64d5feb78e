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

static int insert(struct connection *c, const struct task *task, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO task ({columns}) VALUES ({values})",
		.of = &task_portrait,
		.members = {.without = MEMBER_MADE},
		.key = "seq",
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return query_insert(q, task, ret_seq);
}

static int add_after(struct connection *c, int64_t task, unsigned place, struct text id)
{
	QUERY sql = {"INSERT INTO task_after (task, place, id) VALUES (:task, :place, :id)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":task", task);
	query_bind_int(q, ":place", place);
	query_bind_text(q, ":id", id);
	return query_run(q);
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
	r = insert(c, &row, &seq);
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
#define OF_TASK .of = &task_portrait, .members = {.with = MEMBER_CHANGES}

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
static int take_kept(struct statement *q, struct store_task_kept *ret_kept)
{
	struct store_task_kept kept;
	bool found;
	int r = query_next(q, &found);

	if (r != 0 || !found)
		return r != 0 ? r : -ENOENT;
	kept = (struct store_task_kept) {.version = query_int(q, 0), .cancel = query_int(q, 1)};
	r = query_run(q);
	if (r == 0)
		*ret_kept = kept;
	return r;
}

static struct statement *open_update(struct connection *c, const struct task *task,
				     const struct store_task_guard *guard)
{
	struct statement *q = query_open(c, &updates[guard->by]);

	query_bind_members(q, task);
	query_bind_int(q, ":seq", task->seq);
	if (guard->by != TASK_GUARD_RUN)
		query_bind_int(q, ":version", guard->version);
	else
		query_bind_int(q, ":attempt", guard->attempts);
	if (guard->by == TASK_GUARD_RUN)
		query_bind_text(q, ":holder", guard->host);
	if (guard->by != TASK_GUARD_VERSION)
		query_bind_int(q, ":life", guard->epoch);
	return q;
}

int store_task_update(struct connection *c, const struct task *task,
		      const struct store_task_guard *guard, struct store_task_kept *ret_kept)
{
	CLEANUP(query_donep) struct statement *q = open_update(c, task, guard);

	return take_kept(q, ret_kept);
}

int store_task_update_later(struct connection *c, const struct task *task,
			    const struct store_task_guard *guard, struct store_task_kept *kept)
{
	CLEANUP(query_donep) struct statement *q = open_update(c, task, guard);

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
		.of = &task_portrait,
	};
	static const struct row_kind kind = NOUN_KIND(struct task, &task_portrait);
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct row_list list = {.kind = &kind, .arena = arena};

	query_bind_int(q, ":limit", limit);
	return rows_take_all(q, &list, ret_tasks, ret_n);
}

int store_task_wish(struct connection *c, int64_t seq, struct store_task_kept *ret_kept)
{
	QUERY sql = {"UPDATE task SET cancel = 1, version = version + 1"
		     " WHERE seq = :seq AND state = 1"
		     " RETURNING version, cancel"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return take_kept(q, ret_kept);
}

int store_task_lock_project(struct connection *c, struct text project)
{
	QUERY sql = {"UPDATE task_project SET next = next WHERE name = :name",
		     .postgres = "UPDATE task_project SET next = next FROM " ONE_HOST
				 " WHERE name = :name"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", project);
	return query_run(q);
}

static int forget_after(struct connection *c, int64_t task)
{
	QUERY sql = {"DELETE FROM task_after WHERE task = :task"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":task", task);
	return query_run(q);
}

static int write_edited(struct connection *c, const struct task *task,
			struct store_task_kept *ret_kept)
{
	QUERY sql = {
		"UPDATE task SET {changes}, version = version + 1 WHERE seq = :seq AND state = 0"
		" AND version = :version RETURNING version, cancel",
		.of = &task_portrait,
		.members = {.with = TASK_EDITED},
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, task);
	query_bind_int(q, ":seq", task->seq);
	query_bind_int(q, ":version", task->version);
	return take_kept(q, ret_kept);
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
		.of = &task_portrait,
		.members = {.with = TASK_ENDS, .without = MEMBER_CUT},
	};
	static const struct row_kind kind = NOUN_KIND(struct task, &task_portrait);
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct row_list list = {.kind = &kind, .arena = arena};

	query_bind_int(q, ":before", before_ms);
	query_bind_int(q, ":limit", limit);
	return rows_take_all(q, &list, ret_tasks, ret_n);
}

/* ---- what its user wants gone ---- */

/* What open tasks come after is asked once for each statement. */
#define CLEAN(where)                                                                               \
	{                                                                                          \
		"DELETE FROM task WHERE seq IN (SELECT seq FROM task WHERE " where                 \
		" AND (project, id) NOT IN (SELECT o.project, a.id FROM task AS o"                 \
		" JOIN task_after AS a ON a.task = o.seq WHERE o.state < 2) LIMIT :limit)"         \
		" RETURNING {columns}",                                                            \
			.of = &task_portrait,                                                      \
			.members = {.with = TASK_ENDS, .without = MEMBER_CUT},                     \
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
	static const struct row_kind kind = NOUN_KIND(struct task, &task_portrait);
	unsigned by =
		(query->project.data ? CLEAN_PROJECT : 0) | (query->group.data ? CLEAN_GROUP : 0);
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, query->state == TASK_COMPLETED ? &completed[by] : &ended[by]);
	struct row_list list = {.kind = &kind, .arena = arena};

	if (query->project.data)
		query_bind_text(q, ":project", query->project);
	if (query->group.data)
		query_bind_text(q, ":group", query->group);
	query_bind_int(q, ":limit", query->limit);
	return rows_take_all(q, &list, ret_tasks, ret_n);
}

/* ---- pauses ---- */

int store_task_pause(struct connection *c, struct text group, int64_t now_ms, bool *ret_changed)
{
	QUERY sql = {"INSERT INTO task_pause (group_name, since_ms) VALUES (:group, :now)"
		     " ON CONFLICT (group_name) DO NOTHING RETURNING group_name"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":group", group.data ? group : TEXT(""));
	query_bind_int(q, ":now", now_ms);
	return query_run_found(q, ret_changed);
}

int store_task_resume(struct connection *c, struct text group, bool *ret_changed)
{
	QUERY sql = {"DELETE FROM task_pause WHERE group_name = :group RETURNING group_name"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":group", group.data ? group : TEXT(""));
	return query_run_found(q, ret_changed);
}

static int read_group(struct statement *q, void *ret)
{
	*(struct text *)ret = query_text(q, 0);
	return query_fault(q);
}

int store_task_pauses(struct connection *c, struct arena *arena, struct text **ret_groups,
		      unsigned *ret_n)
{
	static const uint16_t texts[] = {0};
	static const struct row_kind kind = ROW_KIND(struct text, read_group, texts);
	QUERY sql = {"SELECT group_name FROM task_pause ORDER BY group_name"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct row_list list = {.kind = &kind, .arena = arena};

	return rows_take_all(q, &list, ret_groups, ret_n);
}
