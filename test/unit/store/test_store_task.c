/* Tasks and rules in the store: ids, order, pages, counts, what is swept away, and claims. */
#include "store_rows.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>

#include "store/rule.h"
#include "store/host/chunk.h"
#include "store/event.h"
#include "store/task.h"
#include "store/host/task_number.h"

#define NONE ((struct text) {0})

struct added {
	int64_t seq;
	struct text id;
};

static struct added add_row(struct fixture *f, const struct task *row)
{
	struct added a = {0};

	assert_int_equal(store_task_add(writer(f), &f->arena, row, &a.seq, &a.id), 0);
	assert_true(a.seq > 0);
	assert_non_null(a.id.data);
	return a;
}

/* The prompt is a letter, by which lists are told. */
static struct added add(struct fixture *f, const char *project, const char *prompt,
			enum task_state state, const char *group)
{
	return add_row(f, &(struct task) {.project = text_of(project),
					  .prompt = text_of(prompt),
					  .state = state,
					  .group = text_of(group),
					  .exit_status = -1});
}

static struct task find(struct fixture *f, const char *project, struct text id)
{
	struct task row = {0};
	unsigned n = 0;

	assert_int_equal(store_task_find(reader(f), text_of(project), id, &f->arena, &row, &n), 0);
	assert_int_equal(n, 1);
	return row;
}

static void assert_letters(const struct task *rows, unsigned n, const char *want)
{
	char got[64] = "";

	assert_true(n < sizeof(got));
	for (unsigned i = 0; i < n; i++)
		got[i] = rows[i].prompt.data[0];
	got[n] = '\0';
	assert_string_equal(got, want);
}

static void assert_list(struct fixture *f, struct store_task_query q, const char *want)
{
	struct task *rows;
	unsigned n;

	if (q.limit == 0)
		q.limit = 50;
	assert_int_equal(store_task_list(reader(f), &q, &f->arena, &rows, &n), 0);
	assert_letters(rows, n, want);
}

#define LIST(f, want, ...) assert_list(f, (struct store_task_query) {__VA_ARGS__}, want)

static void assert_open(struct fixture *f, const char *want)
{
	struct task *rows;
	unsigned n;

	assert_int_equal(store_task_open(reader(f), &f->arena, &rows, &n), 0);
	assert_letters(rows, n, want);
}

/* ---- one task ---- */

static const struct text after[] = {TEXT("task-0007"), TEXT("task-0003")};

static const struct task full = {
	.project = TEXT("/a/b"),
	.id = TEXT("task-0041"),
	.prompt = TEXT("do \xc3\xa9 it"),
	.agent = TEXT("reviewer"),
	.priority = -1.5,
	.state = TASK_RUNNING,
	.created_ms = 1,
	.started_ms = 2,
	.completed_ms = 3,
	.pid = 4,
	.pid_started = INT64_MAX,
	.mark = TEXT("mark"),
	.result = {"out\0\xff", 5},
	.error = TEXT("bad"),
	.exit_status = 5,
	.signal = 6,
	.output_bytes = 7,
	.metadata.bytes = {"{\0\xff", 3},
	.group = TEXT("g"),
	.runner = TEXT("r"),
	.cwd = TEXT("/c"),
	.env = {"A=1\0B=2", 8},
	.timeout_ms = 8,
	.attempts = 9,
	.max_attempts = 10,
	.retry_ms = 11,
	.not_before_ms = 12,
	.after = {after, 2},
};

static void assert_bytes(struct text got, struct text want)
{
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
}

static void assert_progress(const struct task *got, const struct task *want)
{
	assert_int_equal(got->state, want->state);
	assert_int_equal(got->started_ms, want->started_ms);
	assert_int_equal(got->completed_ms, want->completed_ms);
	assert_int_equal(got->pid, want->pid);
	assert_int_equal(got->pid_started, want->pid_started);
	assert_text(got->mark, want->mark.data);
	assert_bytes(got->result, want->result);
	assert_text(got->error, want->error.data);
	assert_int_equal(got->exit_status, want->exit_status);
	assert_int_equal(got->signal, want->signal);
	assert_int_equal(got->output_bytes, want->output_bytes);
	assert_int_equal(got->attempts, want->attempts);
	assert_int_equal(got->not_before_ms, want->not_before_ms);
}

static void assert_given(const struct task *got, const struct task *want)
{
	assert_text(got->project, want->project.data);
	assert_text(got->id, want->id.data);
	assert_text(got->prompt, want->prompt.data);
	assert_text(got->agent, want->agent.data);
	assert_true(got->priority == want->priority);
	assert_int_equal(got->created_ms, want->created_ms);
	assert_bytes(got->metadata.bytes, want->metadata.bytes);
	assert_text(got->group, want->group.data);
	assert_text(got->runner, want->runner.data);
	assert_text(got->cwd, want->cwd.data);
	assert_bytes(got->env, want->env);
	assert_int_equal(got->timeout_ms, want->timeout_ms);
	assert_int_equal(got->max_attempts, want->max_attempts);
	assert_int_equal(got->retry_ms, want->retry_ms);
	assert_int_equal(got->after.n, 2);
	assert_text(got->after.items[0], "task-0007");
	assert_text(got->after.items[1], "task-0003");
}

FIXTURE(setup, teardown);

TEST(a_task_comes_back_as_it_was_added)
{
	struct fixture *f = *state;
	struct task row;
	struct added a;

	begin(f);
	a = add_row(f, &full);
	assert_text(a.id, "task-0041");
	commit(f);
	row = find(f, "/a/b", TEXT("task-0041"));
	assert_int_equal(row.seq, a.seq);
	assert_given(&row, &full);
	assert_progress(&row, &full);
}

TEST(what_is_none_stays_none)
{
	struct fixture *f = *state;
	struct task row;
	struct added a;

	begin(f);
	a = add_row(f, &(struct task) {.prompt = TEXT("x"), .exit_status = -1});
	commit(f);
	row = find(f, "", a.id);
	assert_text(row.project, "");
	assert_text(row.agent, NULL);
	assert_text(row.mark, NULL);
	assert_text(row.result, NULL);
	assert_text(row.error, NULL);
	assert_text(row.metadata.bytes, NULL);
	assert_text(row.group, NULL);
	assert_text(row.runner, NULL);
	assert_text(row.cwd, NULL);
	assert_text(row.env, NULL);
	assert_int_equal(row.exit_status, -1);
	assert_int_equal(row.started_ms, 0);
	assert_int_equal(row.after.n, 0);
	assert_null(row.after.items);
}

static int update(struct store *store, const struct task *task, struct store_task_guard guard)
{
	struct store_task_kept kept = {0};
	int r = store_task_update(store_writer(store), task, &guard, &kept);

	assert_true(r != 0 || kept.version == task->version + 1);
	return r;
}

/* As somebody who has just read it. */
static int change(struct fixture *f, const struct task *task)
{
	return update(f->store, task, (struct store_task_guard) {.version = task->version});
}

TEST(an_update_rewrites_what_may_change)
{
	static const struct text other_after[] = {TEXT("x")};
	struct fixture *f = *state;
	struct task row, changed = {
				 .project = TEXT("other"),
				 .id = TEXT("other"),
				 .prompt = TEXT("other"),
				 .priority = 99,
				 .state = TASK_FAILED,
				 .created_ms = 99,
				 .started_ms = 102,
				 .completed_ms = 103,
				 .mark = TEXT("m2"),
				 .result = TEXT("r2"),
				 .error = TEXT("e2"),
				 .exit_status = -1,
				 .signal = 9,
				 .output_bytes = 107,
				 .runner = TEXT("r3"),
				 .attempts = 109,
				 .not_before_ms = 112,
				 .after = {other_after, 1},
			 };

	begin(f);
	changed.seq = add_row(f, &full).seq;
	assert_int_equal(change(f, &changed), 0);
	commit(f);
	row = find(f, "/a/b", full.id);
	assert_given(&row, &full);
	assert_progress(&row, &changed);
	changed.seq += 1;
	begin(f);
	assert_int_equal(change(f, &changed), -ENOENT);
	commit(f);
}

static int edit(struct fixture *f, const struct task *task)
{
	struct store_task_kept kept;

	return store_task_edit(writer(f), task, true, &kept);
}

TEST(an_edit_counts_only_until_it_begins)
{
	static const struct text other_after[] = {TEXT("x")};
	struct fixture *f = *state;
	struct task row, edited = {.prompt = TEXT("other"),
				   .label = TEXT("l"),
				   .runner = TEXT("r3"),
				   .priority = 99,
				   .timeout_ms = 3,
				   .after = {other_after, 1}};
	struct task waits = full;

	waits.state = TASK_QUEUED;
	begin(f);
	edited.seq = add_row(f, &waits).seq;
	assert_int_equal(edit(f, &edited), 0);
	commit(f);
	row = find(f, "/a/b", full.id);
	assert_progress(&row, &waits);
	assert_text(row.prompt, "other");
	assert_text(row.label, "l");
	assert_text(row.runner, "r3");
	assert_text(row.group, "g");
	assert_true(row.priority == 99);
	assert_int_equal(row.timeout_ms, 3);
	assert_int_equal(row.after.n, 1);
	assert_text(row.after.items[0], "x");
	begin(f);
	row.state = TASK_RUNNING;
	assert_int_equal(change(f, &row), 0);
	edited.prompt = TEXT("too late");
	assert_int_equal(edit(f, &edited), -ENOENT);
	commit(f);
	assert_text(find(f, "/a/b", full.id).prompt, "other");
}

static void add_between(struct fixture *f, const char *id, const char *before,
			enum task_state state)
{
	const struct text items[] = {text_of(before)};
	struct task row = full;

	row.id = text_of(id);
	row.state = state;
	row.after = (struct texts) {items, 1};
	add_row(f, &row);
}

TEST(a_circle_is_found)
{
	struct fixture *f = *state;
	struct text *ids;
	unsigned n;

	begin(f);
	add_between(f, "a", "b", TASK_QUEUED);
	add_between(f, "b", "c", TASK_QUEUED);
	add_between(f, "c", "a", TASK_QUEUED);
	add_between(f, "d", "a", TASK_QUEUED);
	add_between(f, "x", "y", TASK_QUEUED);
	add_between(f, "y", "x", TASK_COMPLETED);
	assert_int_equal(store_task_circle(writer(f), full.project, TEXT("a"), &f->arena, &ids, &n),
			 0);
	assert_int_equal(n, 3);
	assert_text(ids[0], "a");
	assert_text(ids[1], "b");
	assert_text(ids[2], "c");
	/* One that has ended holds nobody up. */
	assert_int_equal(store_task_circle(writer(f), full.project, TEXT("x"), &f->arena, &ids, &n),
			 0);
	assert_int_equal(n, 0);
	commit(f);
}

/* ---- ids ---- */

TEST(ids_count_up_in_each_project)
{
	struct fixture *f = *state;

	begin(f);
	assert_text(add(f, "p", "a", TASK_QUEUED, NULL).id, "task-0000");
	assert_text(add(f, "p", "b", TASK_QUEUED, NULL).id, "task-0001");
	assert_text(add(f, "q", "c", TASK_QUEUED, NULL).id, "task-0000");
	assert_text(add(f, "", "d", TASK_QUEUED, NULL).id, "task-0000");
	assert_text(add(f, "p", "e", TASK_QUEUED, NULL).id, "task-0002");
	commit(f);
	assert_text(find(f, "p", TEXT("task-0000")).prompt, "a");
	assert_text(find(f, "q", TEXT("task-0000")).prompt, "c");
	assert_text(find(f, "", TEXT("task-0000")).prompt, "d");
}

static int add_id(struct fixture *f, const char *id)
{
	const struct task row = {.project = TEXT("p"), .id = text_of(id), .prompt = TEXT("x")};
	struct text got;
	int64_t seq;

	return store_task_add(writer(f), &f->arena, &row, &seq, &got);
}

TEST(an_id_that_was_given_is_not_made_again)
{
	struct fixture *f = *state;

	begin(f);
	assert_int_equal(add_id(f, "task-0005"), 0);
	assert_text(add(f, "p", "a", TASK_QUEUED, NULL).id, "task-0006");
	assert_int_equal(add_id(f, "task-0002"), 0);
	assert_text(add(f, "p", "b", TASK_QUEUED, NULL).id, "task-0007");
	assert_int_equal(add_id(f, "task-9999"), 0);
	assert_text(add(f, "p", "c", TASK_QUEUED, NULL).id, "task-10000");
	assert_int_equal(add_id(f, "task-12345"), 0);
	assert_text(add(f, "p", "d", TASK_QUEUED, NULL).id, "task-12346");
	/* What we would not spell so is only a name. */
	assert_int_equal(add_id(f, "task-20000x"), 0);
	assert_int_equal(add_id(f, "task-020000"), 0);
	assert_int_equal(add_id(f, "task-999"), 0);
	assert_int_equal(add_id(f, "task-9223372036854775807"), 0);
	assert_int_equal(add_id(f, "task-99999999999999999999999999"), 0);
	assert_int_equal(add_id(f, "20000"), 0);
	assert_int_equal(add_id(f, ""), 0);
	assert_text(add(f, "p", "e", TASK_QUEUED, NULL).id, "task-12347");
	commit(f);
}

TEST(an_id_that_is_taken_is_told)
{
	struct fixture *f = *state;

	begin(f);
	assert_int_equal(add_id(f, "task-0005"), 0);
	assert_int_equal(add_id(f, "task-0005"), -EEXIST);
	assert_int_equal(add_id(f, "mine"), 0);
	assert_int_equal(add_id(f, "mine"), -EEXIST);
	assert_text(add(f, "p", "a", TASK_QUEUED, NULL).id, "task-0006");
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM task"), 3);
}

/* One call of a batch, which may be undone. */
static void call(struct fixture *f, const char *project, const char *want, bool undone)
{
	assert_int_equal(store_savepoint(f->store), 0);
	assert_text(add(f, project, "x", TASK_QUEUED, NULL).id, want);
	assert_int_equal((undone ? store_rollback_to : store_release)(f->store), 0);
}

/* Whichever calls are undone, and wherever a batch ends. */
TEST(no_number_is_given_twice)
{
	struct fixture *f = *state;

	begin(f);
	call(f, "p", "task-0000", true);
	call(f, "p", "task-0001", false);
	call(f, "p", "task-0002", false);
	call(f, "p", "task-0003", true);
	call(f, "q", "task-0000", true);
	call(f, "p", "task-0004", false);
	commit(f);
	begin(f);
	call(f, "p", "task-0005", false);
	call(f, "p", "task-0006", true);
	commit(f);
	begin(f);
	call(f, "p", "task-0007", false);
	call(f, "p", "task-0008", false);
	store_rollback(f->store);
	begin(f);
	call(f, "p", "task-0007", false);
	call(f, "p", "task-0008", false);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(add_id(f, "task-0100"), 0);
	assert_int_equal(store_rollback_to(f->store), 0);
	call(f, "p", "task-0101", true);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(add_id(f, "task-0200"), 0);
	assert_int_equal(add_id(f, "task-0150"), 0);
	assert_int_equal(store_release(f->store), 0);
	call(f, "p", "task-0201", false);
	commit(f);
	begin(f);
	call(f, "p", "task-0202", false);
	call(f, "q", "task-0000", false);
	commit(f);
	fixture_close(f);
	fixture_open(f);
	begin(f);
	call(f, "p", "task-0203", false);
	commit(f);
}

/* More than are counted beside the database. */
TEST(many_projects_of_a_batch_are_numbered)
{
	struct fixture *f = *state;
	char project[20], want[20];

	for (unsigned round = 0; round < 6; round++) {
		if (round % 2 == 0)
			begin(f);
		for (unsigned i = 0; i < 2 * TASK_NUMBERED_MAX; i++) {
			snprintf(project, sizeof(project), "p%u", i);
			snprintf(want, sizeof(want), "task-%04u", round);
			call(f, project, want, false);
		}
		if (round % 2 == 1)
			commit(f);
	}
}

static void sweep(struct fixture *f, int64_t before_ms, unsigned limit, const char *want)
{
	char got[200] = "";
	struct task *rows;
	unsigned n;

	begin(f);
	assert_int_equal(store_task_sweep(writer(f), before_ms, limit, &f->arena, &rows, &n), 0);
	commit(f);
	for (unsigned i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s/%.*s/%d ",
			 TEXT_ARGS(rows[i].project), TEXT_ARGS(rows[i].id), (int)rows[i].seq);
	assert_string_equal(got, want);
}

TEST(numbers_never_come_again)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "p", "a", TASK_COMPLETED, NULL);
	assert_int_equal(add(f, "p", "b", TASK_COMPLETED, NULL).seq, 2);
	commit(f);
	sweep(f, INT64_MAX, 9, "p/task-0000/1 p/task-0001/2 ");
	assert_int_equal(number(f, "SELECT count(*) FROM task"), 0);
	fixture_close(f);
	fixture_open(f);
	begin(f);
	assert_text(add(f, "p", "c", TASK_QUEUED, NULL).id, "task-0002");
	assert_int_equal(add(f, "p", "d", TASK_QUEUED, NULL).seq, 4);
	commit(f);
}

static unsigned find_any(struct fixture *f, const char *id, struct task *ret_row)
{
	unsigned n = 99;

	assert_int_equal(
		store_task_find(reader(f), (struct text) {0}, text_of(id), &f->arena, ret_row, &n),
		0);
	return n;
}

TEST(an_id_alone_finds_the_one_that_has_it)
{
	struct fixture *f = *state;
	struct task row = {.seq = 77};
	unsigned n = 9;

	begin(f);
	add(f, "p", "a", TASK_QUEUED, NULL);
	add(f, "p", "b", TASK_QUEUED, NULL);
	add(f, "q", "c", TASK_QUEUED, NULL);
	add(f, "r", "d", TASK_QUEUED, NULL);
	add_row(f, &full);
	commit(f);
	assert_int_equal(find_any(f, "task-9000", &row), 0);
	assert_int_equal(find_any(f, "task-0000", &row), 2);
	assert_int_equal(row.seq, 77);
	assert_int_equal(find_any(f, "task-0001", &row), 1);
	assert_text(row.project, "p");
	assert_text(row.prompt, "b");
	assert_int_equal(find_any(f, "task-0041", &row), 1);
	assert_given(&row, &full);
	assert_int_equal(
		store_task_find(reader(f), TEXT("q"), TEXT("task-0001"), &f->arena, &row, &n), 0);
	assert_int_equal(n, 0);
}

/* ---- many ---- */

static void add_some(struct fixture *f)
{
	begin(f);
	add(f, "p", "a", TASK_QUEUED, "g");
	add(f, "p", "b", TASK_COMPLETED, NULL);
	add(f, "q", "c", TASK_RUNNING, "g");
	add(f, "p", "d", TASK_FAILED, "g");
	add(f, "q", "e", TASK_CANCELLED, "h");
	add(f, "p", "f", TASK_RUNNING, "h");
	add(f, "p", "g", TASK_QUEUED, NULL);
	commit(f);
}

TEST(lists_have_the_newest_first)
{
	struct fixture *f = *state;

	LIST(f, "", .state = -1);
	add_some(f);
	LIST(f, "gfedcba", .state = -1);
	LIST(f, "gfdba", .state = -1, .project = TEXT("p"));
	LIST(f, "", .state = -1, .project = TEXT(""));
	LIST(f, "ga", .state = TASK_QUEUED);
	LIST(f, "fc", .state = TASK_RUNNING);
	LIST(f, "c", .state = TASK_RUNNING, .project = TEXT("q"));
	LIST(f, "b", .state = TASK_COMPLETED, .project = TEXT("p"));
	LIST(f, "", .state = TASK_COMPLETED, .project = TEXT("q"));
	LIST(f, "dca", .state = -1, .group = TEXT("g"));
	LIST(f, "da", .state = -1, .group = TEXT("g"), .project = TEXT("p"));
	LIST(f, "d", .state = TASK_FAILED, .group = TEXT("g"), .project = TEXT("p"));
	LIST(f, "", .state = -1, .group = TEXT(""));
}

TEST(a_page_goes_on_where_the_last_ended)
{
	struct fixture *f = *state;

	add_some(f);
	LIST(f, "gfe", .state = -1, .limit = 3);
	LIST(f, "dcb", .state = -1, .limit = 3, .before = 5);
	LIST(f, "a", .state = -1, .limit = 3, .before = 2);
	LIST(f, "", .state = -1, .before = 1);
	LIST(f, "db", .state = -1, .limit = 2, .before = 6, .project = TEXT("p"));
	LIST(f, "a", .state = TASK_QUEUED, .before = 7, .project = TEXT("p"));
	LIST(f, "ca", .state = -1, .before = 4, .group = TEXT("g"));
}

TEST(a_page_ends_at_its_bytes)
{
	static char prompt[1000] = "abc";
	struct fixture *f = *state;
	struct task row = {.project = TEXT("p"), .prompt = {prompt, sizeof(prompt)}};

	begin(f);
	for (unsigned i = 0; i < 3; i++)
		add_row(f, &row);
	commit(f);
	LIST(f, "a", .state = -1, .max_bytes = 1);
	LIST(f, "a", .state = -1, .max_bytes = 2 * 1010 - 1);
	LIST(f, "aa", .state = -1, .max_bytes = 2 * 1010);
	LIST(f, "aaa", .state = -1);
}

TEST(in_short_only_the_beginnings_are_read)
{
	static char prompt[1000] = "\xc3\xa4\xc3\xb6\xc3\xbc and so on";
	struct store_task_query q = {
		.project = TEXT("/a/b"), .state = -1, .limit = 9, .max_bytes = 200};
	struct fixture *f = *state;
	struct task row = full;
	struct task *rows;
	unsigned n;

	row.prompt = (struct text) {prompt, strlen(prompt)};
	row.metadata.bytes = (struct text) {prompt, sizeof(prompt)};
	row.id = (struct text) {0};
	begin(f);
	for (unsigned i = 0; i < 3; i++)
		add_row(f, &row);
	commit(f);
	assert_int_equal(store_task_list(reader(f), &q, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 1);
	q.cut = 2;
	q.brief = true;
	assert_int_equal(store_task_list(reader(f), &q, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++) {
		assert_text(rows[i].prompt, "\xc3\xa4\xc3\xb6");
		assert_int_equal(rows[i].error.len, 2);
		assert_null(rows[i].result.data);
		assert_null(rows[i].env.data);
		assert_null(rows[i].metadata.bytes.data);
		assert_text(rows[i].group, full.group.data);
		assert_int_equal(rows[i].after.n, full.after.n);
	}
	q.brief = false;
	assert_int_equal(store_task_list(reader(f), &q, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].result.len, 2);
	assert_int_equal(rows[0].metadata.bytes.len, sizeof(prompt));
	assert_null(rows[0].env.data);
}

TEST(what_is_open_comes_oldest_first)
{
	struct fixture *f = *state;
	struct task *rows;
	unsigned n;

	assert_open(f, "");
	add_some(f);
	assert_open(f, "acfg");
	begin(f);
	add_row(f, &full);
	commit(f);
	assert_int_equal(store_task_open(reader(f), &f->arena, &rows, &n), 0);
	assert_int_equal(n, 5);
	assert_given(&rows[4], &full);
	rows[1].state = TASK_COMPLETED;
	begin(f);
	assert_int_equal(change(f, &rows[1]), 0);
	commit(f);
	assert_open(f, "afgd");
}

static void assert_counts(const int64_t n[N_TASK_STATES], const char *want)
{
	char got[64] = "";

	for (unsigned i = 0; i < N_TASK_STATES; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%d ", (int)n[i]);
	assert_string_equal(got, want);
}

TEST(tasks_are_counted_by_project_and_state)
{
	struct fixture *f = *state;
	struct task_tally *counts;
	unsigned n;

	assert_int_equal(store_task_count(reader(f), &f->arena, &counts, &n), 0);
	assert_int_equal(n, 0);
	add_some(f);
	assert_int_equal(store_task_count(reader(f), &f->arena, &counts, &n), 0);
	assert_int_equal(n, 2);
	assert_text(counts[0].name, "p");
	assert_counts(counts[0].n, "2 1 1 1 0 ");
	assert_text(counts[1].name, "q");
	assert_counts(counts[1].n, "0 1 0 0 1 ");
}

TEST(groups_are_counted_by_state)
{
	struct fixture *f = *state;
	struct task_tally *groups;
	unsigned n;

	add_some(f);
	assert_int_equal(store_task_groups(reader(f), TEXT("p"), &f->arena, &groups, &n), 0);
	assert_int_equal(n, 2);
	assert_text(groups[0].name, "g");
	assert_counts(groups[0].n, "1 0 0 1 0 ");
	assert_text(groups[1].name, "h");
	assert_counts(groups[1].n, "0 1 0 0 0 ");
	assert_int_equal(store_task_groups(reader(f), NONE, &f->arena, &groups, &n), 0);
	assert_int_equal(n, 2);
	assert_counts(groups[0].n, "1 1 0 1 0 ");
	assert_int_equal(store_task_groups(reader(f), TEXT("none"), &f->arena, &groups, &n), 0);
	assert_int_equal(n, 0);
}

TEST(a_sweep_takes_what_ended_before)
{
	struct fixture *f = *state;
	struct task row = full;

	begin(f);
	row.id = NONE;
	row.project = TEXT("p");
	row.completed_ms = 2000;
	row.state = TASK_COMPLETED;
	add_row(f, &row);
	row.completed_ms = 1000;
	row.state = TASK_CANCELLED;
	add_row(f, &row);
	row.completed_ms = 1500; /* of an attempt before: it is queued again */
	row.state = TASK_QUEUED;
	add_row(f, &row);
	row.completed_ms = 3000;
	row.state = TASK_FAILED;
	add_row(f, &row);
	commit(f);
	sweep(f, 1000, 9, "");
	sweep(f, 9999, 0, "");
	sweep(f, 9999, 1, "p/task-0001/2 ");
	sweep(f, 3000, 9, "p/task-0000/1 ");
	assert_int_equal(number(f, "SELECT count(*) FROM task"), 2);
	/* What they came after went with them. */
	assert_int_equal(number(f, "SELECT count(*) FROM task_after WHERE task < 3"), 0);
	assert_int_equal(number(f, "SELECT count(*) FROM task_after"), 4);
}

TEST(what_is_rolled_back_leaves_nothing)
{
	struct fixture *f = *state;
	struct task *rows;
	unsigned n;

	add_some(f);
	begin(f);
	assert_int_equal(store_savepoint(f->store), 0);
	add_row(f, &full);
	assert_text(add(f, "p", "x", TASK_QUEUED, NULL).id, "task-0005");
	assert_int_equal(store_task_sweep(writer(f), INT64_MAX, 9, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(store_rollback_to(f->store), 0);
	assert_text(add(f, "p", "y", TASK_QUEUED, NULL).id, "task-0006");
	commit(f);
	LIST(f, "ygfedcba", .state = -1);
	assert_int_equal(number(f, "SELECT count(*) FROM task_after"), 0);
	assert_int_equal(number(f, "SELECT count(*) FROM task_project"), 2);
}

TEST(a_small_arena_is_told)
{
	struct fixture *f = *state;
	struct store_task_query q = {.state = -1, .limit = 500};
	struct task *rows = NULL;
	struct arena small;
	unsigned n = 7;

	begin(f);
	for (unsigned i = 0; i < 200; i++)
		add(f, "p", "a", TASK_COMPLETED, "g");
	commit(f);
	arena_init(&small, 4096);
	assert_int_equal(store_task_list(reader(f), &q, &small, &rows, &n), -ENOMEM);
	arena_reset(&small);
	begin(f);
	assert_int_equal(store_task_sweep(writer(f), 9, 500, &small, &rows, &n), -ENOMEM);
	store_rollback(f->store);
	arena_done(&small);
	assert_null(rows);
	assert_int_equal(n, 7);
	assert_int_equal(number(f, "SELECT count(*) FROM task"), 200);
}

/* ---- rules ---- */

static bool claim(struct fixture *f, const char *rule, int64_t occurrence_ms, int64_t now_ms)
{
	bool claimed = false;

	begin(f);
	assert_int_equal(
		store_rule_claim(writer(f), text_of(rule), occurrence_ms, now_ms, &claimed), 0);
	commit(f);
	return claimed;
}

static int64_t last(struct fixture *f, const char *rule)
{
	int64_t ms = -1;

	assert_int_equal(store_rule_last(reader(f), text_of(rule), &ms), 0);
	return ms;
}

TEST(an_occurrence_is_claimed_once)
{
	struct fixture *f = *state;

	assert_int_equal(last(f, "r"), 0);
	assert_true(claim(f, "r", 1000, 1001));
	assert_false(claim(f, "r", 1000, 1002));
	assert_true(claim(f, "s", 1000, 1003));
	assert_true(claim(f, "r", 3000, 3001));
	assert_true(claim(f, "r", 2000, 3002));
	fixture_close(f);
	fixture_open(f);
	assert_false(claim(f, "r", 1000, 9000));
	assert_false(claim(f, "r", 2000, 9000));
	assert_false(claim(f, "r", 3000, 9000));
	assert_int_equal(last(f, "r"), 3000);
	assert_int_equal(last(f, "s"), 1000);
}

TEST(a_claim_that_is_undone_can_be_made_again)
{
	struct fixture *f = *state;
	bool claimed = false;

	begin(f);
	assert_int_equal(store_rule_claim(writer(f), TEXT("r"), 5, 5, &claimed), 0);
	assert_true(claimed);
	store_rollback(f->store);
	assert_int_equal(last(f, "r"), 0);
	assert_true(claim(f, "r", 5, 6));
}

enum { MINUTE = 60000, DAY_MINUTES = 24 * 60 };

TEST(old_claims_are_forgotten)
{
	enum { STEP = 15000, N = DAY_MINUTES * MINUTE / STEP, HOUR = 60 * MINUTE };
	const int64_t end = (int64_t)N * STEP;
	struct fixture *f = *state;
	bool claimed;

	assert_true(claim(f, "other", 1, 1));
	begin(f);
	for (int64_t at = STEP; at <= end; at += STEP)
		assert_int_equal(store_rule_claim(writer(f), TEXT("r"), at, at, &claimed), 0);
	commit(f);
	/* The last two hours. */
	assert_in_range(number(f, "SELECT count(*) FROM rule_claim WHERE rule = 'r'"),
			2 * HOUR / STEP, 2 * HOUR / STEP + 10);
	assert_int_equal(number(f, "SELECT count(*) FROM rule_claim WHERE rule = 'other'"), 1);
	assert_int_equal(last(f, "r"), end);
	/* The clock was set back an hour. */
	assert_false(claim(f, "r", end - HOUR, end - HOUR));

	begin(f);
	for (int64_t i = 1; i <= 150; i++)
		assert_int_equal(store_rule_claim(writer(f), TEXT("daily"),
						  i * DAY_MINUTES * MINUTE,
						  i * DAY_MINUTES * MINUTE, &claimed),
				 0);
	commit(f);
	assert_int_equal(number(f, "SELECT count(*) FROM rule_claim WHERE rule = 'daily'"), 100);
}

/* The clock was years ahead for a while; what is claimed now is not what goes first. */
TEST(a_claim_made_now_is_kept_whatever_the_clock_said)
{
	const int64_t ahead = INT64_C(1) << 42;
	struct fixture *f = *state;
	bool claimed;

	begin(f);
	for (int64_t i = 1; i <= 150; i++)
		assert_int_equal(store_rule_claim(writer(f), TEXT("r"), ahead + i * MINUTE,
						  ahead + i * MINUTE, &claimed),
				 0);
	commit(f);
	assert_true(claim(f, "r", MINUTE, MINUTE));
	assert_false(claim(f, "r", MINUTE, MINUTE));
}

static struct rule_memory find_rule(struct fixture *f, const char *rule)
{
	struct rule_memory row = {.enabled = 99};

	assert_int_equal(store_rule_find(reader(f), text_of(rule), &f->arena, &row), 0);
	assert_text(row.name, rule);
	return row;
}

static void put_rule(struct fixture *f, const char *rule, int64_t fired_ms, int enabled)
{
	const struct rule_memory row = {text_of(rule), fired_ms, enabled};

	begin(f);
	assert_int_equal(store_rule_put(writer(f), &row), 0);
	commit(f);
}

TEST(a_rule_is_remembered)
{
	struct fixture *f = *state;

	assert_int_equal(find_rule(f, "r").fired_ms, 0);
	assert_int_equal(find_rule(f, "r").enabled, -1);
	put_rule(f, "r", 1000, -1);
	put_rule(f, "s", 0, 1);
	assert_int_equal(find_rule(f, "r").fired_ms, 1000);
	assert_int_equal(find_rule(f, "r").enabled, -1);
	put_rule(f, "r", 2000, 0);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(find_rule(f, "r").fired_ms, 2000);
	assert_int_equal(find_rule(f, "r").enabled, 0);
	assert_int_equal(find_rule(f, "s").enabled, 1);
}

/* ---- several hosts ---- */

static struct task queued_task(struct fixture *f)
{
	struct task task = full;

	task.state = TASK_QUEUED;
	task.attempts = 0;
	task.epoch = 0;
	begin(f);
	task.seq = add_row(f, &task).seq;
	commit(f);
	return task;
}

static struct task claimed(struct task task, int64_t epoch)
{
	task.state = TASK_RUNNING;
	task.attempts++;
	task.epoch = epoch;
	return task;
}

static struct store_task_guard claim_of(const struct task *task)
{
	return (struct store_task_guard) {.by = TASK_GUARD_CLAIM, .version = task->version};
}

static struct store_task_guard run_of(int64_t attempts, int64_t epoch)
{
	return (struct store_task_guard) {
		.by = TASK_GUARD_RUN, .attempts = attempts, .epoch = epoch};
}

TEST(a_change_that_knows_an_older_row_finds_none)
{
	struct fixture *f = *state;
	struct task task = queued_task(f);

	begin(f);
	assert_int_equal(change(f, &task), 0);
	assert_int_equal(change(f, &task), -ENOENT);
	assert_int_equal(update(f->store, &task, claim_of(&task)), -ENOENT);
	task.version = 1;
	assert_int_equal(change(f, &task), 0);
	commit(f);
}

TEST(only_the_host_that_runs_it_can_end_it)
{
	struct fixture *f = *state;
	struct task task = queued_task(f), run = claimed(task, 0), end;
	struct store_task_guard guard;

	run.host = TEXT("alpha");
	begin(f);
	assert_int_equal(update(f->store, &run, claim_of(&task)), 0);
	run.version = 1;
	end = run;
	end.state = TASK_COMPLETED;
	/* Another host's life that was given the same number. */
	guard = run_of(run.attempts, run.epoch);
	guard.host = TEXT("beta");
	assert_int_equal(update(f->store, &end, guard), -ENOENT);
	guard.host = TEXT("alpha");
	assert_int_equal(update(f->store, &end, guard), 0);
	commit(f);
}

TEST(only_the_attempt_that_runs_can_end)
{
	struct fixture *f = *state;
	struct task task = queued_task(f), run = claimed(task, 0), end;

	begin(f);
	assert_int_equal(update(f->store, &run, claim_of(&task)), 0);
	run.version = 1;
	assert_int_equal(update(f->store, &run, claim_of(&run)), -ENOENT);
	end = run;
	end.state = TASK_COMPLETED;
	assert_int_equal(update(f->store, &end, run_of(2, 0)), -ENOENT);
	assert_int_equal(update(f->store, &end, run_of(1, 7)), -ENOENT);
	assert_int_equal(update(f->store, &end, run_of(1, 0)), 0);
	assert_int_equal(update(f->store, &end, run_of(1, 0)), -ENOENT);
	commit(f);
}

/* Of a life that is not among the hosts: nobody's. */
TEST(a_life_that_is_over_claims_nothing)
{
	struct fixture *f = *state;
	struct task task = queued_task(f), run = claimed(task, 5);
	struct store_task_guard guard = claim_of(&task);

	guard.epoch = 5;
	begin(f);
	assert_int_equal(update(f->store, &run, guard), -ENOENT);
	commit(f);
}

TEST(what_nobody_runs_is_found)
{
	struct fixture *f = *state;
	struct task task = queued_task(f), run = claimed(task, 0);
	struct store_task_kept kept;
	struct task *rows;
	unsigned n;

	begin(f);
	assert_int_equal(store_task_wish(writer(f), task.seq, &kept), -ENOENT);
	assert_int_equal(store_task_abandoned(writer(f), 10, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(update(f->store, &run, claim_of(&task)), 0);
	assert_int_equal(store_task_wish(writer(f), task.seq, &kept), 0);
	assert_true(kept.cancel);
	assert_int_equal(store_task_abandoned(writer(f), 10, &f->arena, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_true(rows[0].cancel);
	assert_int_equal(rows[0].attempts, 1);
	/* A wish counts until its task has ended and is queued again. */
	run = rows[0];
	run.state = TASK_CANCELLED;
	assert_int_equal(update(f->store, &run, run_of(1, 0)), 0);
	run.version++;
	run.state = TASK_QUEUED;
	assert_int_equal(store_task_update(writer(f), &run,
					   &(struct store_task_guard) {.version = run.version},
					   &kept),
			 0);
	assert_false(kept.cancel);
	commit(f);
}

/* ---- many at once ---- */

/* Texts and bytes as they may come. */
static const struct text oddities[] = {
	TEXT(""),       TEXT("NULL"),     TEXT("{a,\"b\"}"), TEXT("\\ \\\" '"),
	TEXT("a\nb\t"), TEXT("\xc3\xa4"), {"a\0b", 3},       TEXT("\xff\xfe"),
};
enum { N_ODD = sizeof(oddities) / sizeof(oddities[0]) };

static struct task odd_change(const struct task *task, unsigned i)
{
	struct task row = *task;

	row.state = TASK_RUNNING;
	row.attempts = 1;
	row.error = i % 2 ? oddities[i] : (struct text) {0};
	row.result = oddities[i];
	row.started_ms = 1000 + i;
	return row;
}

static void check_odd(struct fixture *f, const struct task *task, unsigned i)
{
	struct task row = find(f, "", task->id);

	assert_int_equal(row.started_ms, 1000 + i);
	assert_true(text_equal(row.result, oddities[i]));
	assert_true(i % 2 ? text_equal(row.error, oddities[i]) : !row.error.data);
}

static void change_later(struct fixture *f, const struct task *row, struct store_task_guard guard,
			 struct store_task_kept *kept, bool keep)
{
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(store_task_update_later(writer(f), row, &guard, kept), 0);
	assert_int_equal(keep ? store_release(f->store) : store_rollback_to(f->store), 0);
}

TEST(changes_are_left_for_later)
{
	struct fixture *f = *state;
	struct task tasks[N_ODD], changed[N_ODD];
	struct store_task_kept claims[N_ODD], ends[N_ODD], undone, late;

	begin(f);
	for (unsigned i = 0; i < N_ODD; i++) {
		struct added a = add(f, "", "p", TASK_QUEUED, NULL);

		tasks[i] = (struct task) {.seq = a.seq, .id = a.id};
	}
	commit(f);
	begin(f);
	for (unsigned i = 0; i < N_ODD; i++) {
		changed[i] = odd_change(&tasks[i], i);
		change_later(f, &changed[i], claim_of(&tasks[i]), &claims[i], true);
	}
	assert_int_equal(store_event_settle(writer(f)), 0);
	/* One that is undone, and one that comes too late. */
	change_later(f, &tasks[0], run_of(1, 0), &undone, false);
	change_later(f, &changed[1], claim_of(&tasks[1]), &late, true);
	commit(f);
	assert_true(late.version < 0);
	begin(f);
	for (unsigned i = 0; i < N_ODD; i++) {
		assert_int_equal(claims[i].version, 1);
		assert_false(claims[i].cancel);
		check_odd(f, &tasks[i], i);
		changed[i].state = TASK_COMPLETED;
		change_later(f, &changed[i], run_of(i == 3 ? 2 : 1, 0), &ends[i], true);
	}
	commit(f);
	for (unsigned i = 0; i < N_ODD; i++) {
		assert_int_equal(ends[i].version, i == 3 ? -1 : 2);
		assert_int_equal(find(f, "", tasks[i].id).state,
				 i == 3 ? TASK_RUNNING : TASK_COMPLETED);
	}
}

static int add_to(struct store *store, struct arena *a, const char *project)
{
	const struct task task = {.project = text_of(project), .prompt = TEXT("p")};
	struct text id;
	int64_t seq;

	return store_task_add(store_writer(store), a, &task, &seq, &id);
}

static void *add_to_b_and_a(void *store)
{
	struct arena a;
	int r = store_begin(store);

	arena_init(&a, 1 << 20);
	r = r ?: add_to(store, &a, "/b") ?: add_to(store, &a, "/a") ?: store_commit(store);
	arena_done(&a);
	return (void *)(intptr_t)r;
}

TEST(two_that_add_to_several_projects_do_not_wait_for_each_other)
{
	const struct store_opts opts = {.n_readers = 1, .host = "other"};
	struct fixture *f = *state;
	struct store *other;
	pthread_t thread;
	void *result;

	if (!on_server())
		skip();
	assert_int_equal(store_open(f->url, &opts, &other, &f->error), 0);
	for (unsigned i = 0; i < 5; i++) {
		begin(f);
		assert_int_equal(add_to(f->store, &f->arena, "/a"), 0);
		assert_int_equal(pthread_create(&thread, NULL, add_to_b_and_a, other), 0);
		assert_int_equal(add_to(f->store, &f->arena, "/b"), 0);
		commit(f);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_int_equal((intptr_t)result, 0);
	}
	store_close(other);
}

static void print_at(struct fixture *f, const struct task *run, int64_t place, const char *text,
		     bool first)
{
	const struct task_chunk chunk = {.task = run->seq,
					 .attempts = run->attempts,
					 .epoch = run->epoch,
					 .place = place,
					 .first = first,
					 .bytes = text_of(text)};

	begin(f);
	assert_int_equal(store_chunk_add(writer(f), &chunk), 0);
	commit(f);
}

static void assert_printed(struct fixture *f, int64_t seq, int64_t offset, size_t max,
			   const char *want, int64_t want_offset, int64_t want_end)
{
	struct text got;
	int64_t from, end;

	assert_int_equal(
		store_chunk_read(reader(f), seq, offset, max, &f->arena, &got, &from, &end), 0);
	assert_text(got, want);
	assert_int_equal(from, want_offset);
	assert_int_equal(end, want_end);
}

TEST(what_a_run_prints_is_found_by_its_place)
{
	static char long_text[TASK_CHUNKS_MAX];
	struct fixture *f = *state;
	struct task task = queued_task(f), run = claimed(task, 0), late = run;

	assert_printed(f, task.seq, 0, 10, "", 0, 0);
	print_at(f, &run, 0, "too early", true);
	begin(f);
	assert_int_equal(update(f->store, &run, claim_of(&task)), 0);
	commit(f);
	print_at(f, &run, 0, "one ", true);
	print_at(f, &run, 4, "two ", false);
	print_at(f, &run, 8, "three", false);
	late.attempts = 2;
	print_at(f, &late, 13, "not ours", false);
	assert_printed(f, task.seq, 0, 100, "one two three", 0, 13);
	assert_printed(f, task.seq, 2, 8, "e two th", 2, 13);
	assert_printed(f, task.seq, -7, 100, "o three", 6, 13);
	assert_printed(f, task.seq, -70, 3, "one", 0, 13);
	assert_printed(f, task.seq, 50, 100, "", 50, 13);
	/* The next attempt, at a host that has not printed so much. */
	print_at(f, &run, 4, "2", true);
	assert_printed(f, task.seq, 0, 100, "one 2", 0, 5);
	memset(long_text, 'x', sizeof(long_text) - 1);
	print_at(f, &run, 5, long_text, false);
	assert_printed(f, task.seq, 0, 4, "2xxx", 4, 5 + TASK_CHUNKS_MAX - 1);
}

TEST(of_two_claims_one_loses_without_waiting)
{
	const struct store_opts opts = {.n_readers = 1, .host = "other"};
	struct fixture *f = *state;
	struct task task = queued_task(f), run = claimed(task, 0);
	struct store *other;

	if (!on_server())
		skip();
	assert_int_equal(store_open(f->url, &opts, &other, &f->error), 0);
	begin(f);
	assert_int_equal(update(f->store, &run, claim_of(&task)), 0);
	/* The first one is not committed yet. */
	assert_int_equal(store_begin(other), 0);
	assert_int_equal(update(other, &run, claim_of(&task)), -ENOENT);
	assert_int_equal(store_commit(other), 0);
	commit(f);
	assert_int_equal(store_begin(other), 0);
	assert_int_equal(update(other, &run, claim_of(&task)), -ENOENT);
	run.version = 1;
	run.state = TASK_COMPLETED;
	assert_int_equal(update(other, &run, run_of(1, 9)), -ENOENT);
	assert_int_equal(store_commit(other), 0);
	store_close(other);
}

/* ---- by their names ---- */

static void add_named(struct fixture *f, const char *project, const char *id, enum task_state state,
		      const struct text *comes_after, unsigned n)
{
	const struct task row = {.project = text_of(project),
				 .id = text_of(id),
				 .prompt = text_of(id),
				 .state = state,
				 .after = {comes_after, n},
				 .exit_status = -1};

	add_row(f, &row);
}

TEST(named_tasks_come_with_the_states_of_their_dependencies)
{
	static const struct text comes_after[] = {TEXT("b"), TEXT("gone"), TEXT("a")};
	struct fixture *f = *state;
	struct task_named one = {.project = TEXT("/p"), .id = TEXT("c")};

	begin(f);
	add_named(f, "/p", "a", TASK_QUEUED, NULL, 0);
	add_named(f, "/p", "b", TASK_FAILED, NULL, 0);
	add_named(f, "/other", "b", TASK_RUNNING, NULL, 0);
	add_named(f, "/p", "c", TASK_QUEUED, comes_after, 3);
	commit(f);
	assert_int_equal(store_task_find_named(reader(f), &f->arena, &one, 1), 0);
	assert_true(one.found);
	assert_int_equal(one.row.after.n, 3);
	assert_text(one.row.after.items[0], "b");
	assert_int_equal(one.after_states[0], TASK_FAILED);
	assert_int_equal(one.after_states[1], TASK_COMPLETED);
	assert_int_equal(one.after_states[2], TASK_QUEUED);
}

TEST(many_named_tasks_are_found_at_once)
{
	static const struct text comes_after[] = {TEXT("a")};
	struct fixture *f = *state;
	struct task_named all[] = {
		{.project = TEXT("/p"), .id = TEXT("c")},
		{.project = TEXT("/with \"quotes\", {\\} and spaces"), .id = TEXT("a")},
		{.project = TEXT("/p"), .id = TEXT("unknown")},
		{.project = TEXT(""), .id = TEXT("b\\")},
	};

	begin(f);
	add_named(f, "/with \"quotes\", {\\} and spaces", "a", TASK_RUNNING, NULL, 0);
	add_named(f, "", "b\\", TASK_QUEUED, comes_after, 1);
	add_named(f, "/p", "a", TASK_RUNNING, NULL, 0);
	add_named(f, "/p", "c", TASK_QUEUED, comes_after, 1);
	commit(f);
	assert_int_equal(store_task_find_named(reader(f), &f->arena, all, 4), 0);
	assert_true(all[0].found && all[1].found && !all[2].found && all[3].found);
	assert_text(all[0].row.prompt, "c");
	assert_int_equal(all[0].after_states[0], TASK_RUNNING);
	assert_int_equal(all[1].row.state, TASK_RUNNING);
	assert_int_equal(all[1].row.after.n, 0);
	assert_int_equal(all[3].after_states[0], TASK_COMPLETED);
}

TEST(a_task_that_is_named_twice_is_found_twice)
{
	static const struct text comes_after[] = {TEXT("a")};
	struct fixture *f = *state;
	struct task_named all[] = {
		{.project = TEXT("/p"), .id = TEXT("b")},
		{.project = TEXT("/p"), .id = TEXT("a")},
		{.project = TEXT("/p"), .id = TEXT("b")},
	};

	begin(f);
	add_named(f, "/p", "a", TASK_RUNNING, NULL, 0);
	add_named(f, "/p", "b", TASK_QUEUED, comes_after, 1);
	commit(f);
	assert_int_equal(store_task_find_named(reader(f), &f->arena, all, 3), 0);
	assert_true(all[0].found && all[1].found && all[2].found);
	assert_int_equal(all[0].after_states[0], TASK_RUNNING);
	assert_int_equal(all[2].row.after.n, 1);
	assert_int_equal(all[2].after_states[0], TASK_RUNNING);
}
