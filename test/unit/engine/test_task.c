/* Tasks, from their submission to their end. */
#include "task_stage.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "children.h"
#include "io/process/child.h"
#include "io/process/supervisor.h"

FIXTURE(world_setup, world_teardown);

/* ---- tests ---- */

TEST(runs_and_completes)
{
	struct world *w = *state;
	struct told told = run(w, "pwd; echo \"$KOINE_TASK\"");
	struct task task;

	assert_string_equal(told.id, "task-0000");
	assert_int_equal(told.state, TASK_RUNNING);
	task = wait_for(w, told.id, TASK_COMPLETED);
	assert_true(text_has(task.result, w->project));
	assert_true(text_has(task.result, "task-0000"));
	assert_true(text_has(printed(w, told.id), "task-0000"));
	assert_int_equal(task.exit_status, 0);
	assert_int_equal(task.attempts, 1);
	assert_true(task.started_ms > 0 && task.completed_ms >= task.started_ms);
	assert_int_equal(counts(w).n[TASK_COMPLETED], 1);
	assert_int_equal(counts(w).total, 1);
}

TEST(fails_with_what_it_said)
{
	struct world *w = *state;
	struct told told = run(w, "echo out; echo wrong >&2; exit 3");
	struct task task = wait_for(w, told.id, TASK_FAILED);

	assert_true(text_is(task.error, "wrong\n"));
	assert_int_equal(task.exit_status, 3);
	told = run(w, "exit 4");
	task = wait_for(w, told.id, TASK_FAILED);
	assert_true(text_is(task.error, "Process exited with code 4"));
}

TEST(a_missing_program_fails)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "hello");
	struct told told;
	struct task task;

	assert_int_equal(unlink(w->program), 0);
	told = submit(w, &in);
	assert_int_equal(told.result, 0);
	task = wait_for(w, told.id, TASK_FAILED);
	assert_true(task.error.len > 0);
}

TEST(runs_no_more_than_there_is_room_for)
{
	struct world *w = *state;
	struct told a = run(w, "sleep 100");
	struct told b = run(w, "sleep 100");
	struct told c = run(w, "sleep 100");
	const struct task_filter f = {.project = text_of(w->project), .in_turn = true};
	const struct task_now *tasks;
	unsigned n;

	assert_int_equal(a.state, TASK_RUNNING);
	assert_int_equal(b.state, TASK_RUNNING);
	assert_int_equal(c.state, TASK_QUEUED);
	assert_true(task_list_now(tasks_of(w), &f, &tasks, &n));
	assert_int_equal(counts(w).n_here, 2);
	assert_int_equal(counts(w).n[TASK_QUEUED], 1);
	assert_int_equal(counts(w).parallel, 2);
	assert_int_equal(n, 3);
	assert_int_equal(tasks[0].task->state, TASK_RUNNING);
	cancel(w, a.id);
	wait_for(w, a.id, TASK_CANCELLED);
	wait_for(w, c.id, TASK_RUNNING);
	cancel(w, b.id);
	cancel(w, c.id);
	wait_for(w, b.id, TASK_CANCELLED);
	wait_for(w, c.id, TASK_CANCELLED);
}

TEST(higher_priority_goes_first)
{
	struct world *w = *state;
	struct told blockers[2] = {run(w, "sleep 100"), run(w, "sleep 100")};
	struct task_new low = plain_task(w, "echo low");
	struct task_new high = plain_task(w, "echo high");
	struct told a;
	struct told b;
	struct task first;
	struct task second;

	low.task.priority = -1.5;
	high.task.priority = 7;
	a = submit(w, &low);
	b = submit(w, &high);
	cancel(w, blockers[0].id);
	first = wait_for(w, b.id, TASK_COMPLETED);
	second = wait_for(w, a.id, TASK_COMPLETED);
	assert_true(first.started_ms <= second.started_ms);
	assert_true(first.seq > second.seq);
	cancel(w, blockers[1].id);
	wait_for(w, blockers[1].id, TASK_CANCELLED);
}

TEST(a_group_has_its_own_limit)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "sleep 100");
	struct told a;
	struct told b;
	struct told other;

	in.task.group = TEXT("alone");
	a = submit(w, &in);
	b = submit(w, &in);
	other = run(w, "echo past");
	assert_int_equal(a.state, TASK_RUNNING);
	assert_int_equal(b.state, TASK_QUEUED);
	wait_for(w, other.id, TASK_COMPLETED);
	assert_true(is(w, b.id, TASK_QUEUED));
	cancel(w, a.id);
	wait_for(w, b.id, TASK_RUNNING);
	cancel(w, b.id);
	wait_for(w, b.id, TASK_CANCELLED);
}

TEST(comes_after_others)
{
	struct world *w = *state;
	struct told a = run(w, "sleep 100");
	struct told ok = run(w, "echo fine");
	const struct text after[] = {text_of(a.id), text_of(ok.id), text_of(a.id)};
	const struct text unknown = TEXT("task-9999");
	struct task_new in = plain_task(w, "echo then");
	struct told b;
	struct told c;

	in.task.after = (struct texts) {after, 3};
	b = submit(w, &in);
	assert_int_equal(b.state, TASK_QUEUED);
	in.task.after = (struct texts) {&(struct text) {.data = b.id, .len = strlen(b.id)}, 1};
	c = submit(w, &in);
	wait_for(w, ok.id, TASK_COMPLETED);
	assert_true(is(w, b.id, TASK_QUEUED));
	/* What does not complete takes those with it that come after it. */
	cancel(w, a.id);
	assert_true(text_has(wait_for(w, b.id, TASK_FAILED).error, a.id));
	assert_true(text_has(wait_for(w, c.id, TASK_FAILED).error, b.id));
	in.task.after.items = &unknown;
	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	in.task.after.items = &(struct text) {.data = ok.id, .len = strlen(ok.id)};
	b = submit(w, &in);
	wait_for(w, b.id, TASK_COMPLETED);
}

TEST(a_delayed_one_waits)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "echo late");
	struct told told;
	struct task task;

	in.delay_ms = 1500;
	told = submit(w, &in);
	assert_int_equal(told.state, TASK_QUEUED);
	task = wait_for(w, told.id, TASK_COMPLETED);
	assert_true(task.started_ms - task.created_ms >= 1490);
}

TEST(one_that_fails_is_tried_again)
{
	struct world *w = *state;
	struct task_new in =
		plain_task(w, "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n > n; "
			      "[ $n -ge 3 ] || exit 1; echo done at $n");
	struct told told;
	struct task task;

	in.retries = 5;
	in.task.retry_ms = 20;
	told = submit(w, &in);
	task = wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(task.attempts, 3);
	assert_true(text_is(task.result, "done at 3\n"));
	in = plain_task(w, "exit 1");
	in.retries = 1;
	in.task.retry_ms = 10;
	told = submit(w, &in);
	task = wait_for(w, told.id, TASK_FAILED);
	assert_int_equal(task.attempts, 2);
	/* By hand, as often as one likes. */
	assert_int_equal(retry(w, told.id).result, 0);
	stage_until(&w->stage, get(w, told.id).attempts == 2 && is(w, told.id, TASK_FAILED));
	assert_int_equal(retry(w, "task-0000").result, REFUSE_CONFLICT);
	assert_int_equal(retry(w, "task-7777").result, REFUSE_NOT_FOUND);
}

TEST(takes_too_long)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "echo begun; sleep 100");
	struct told told;
	struct task task;

	in.task.timeout_ms = 1500; /* to have begun, on a busy machine too */
	told = submit(w, &in);
	task = wait_for(w, told.id, TASK_FAILED);
	assert_true(text_is(task.error, "Task timed out after 1500ms"));
	assert_true(text_is(task.result, "begun\n"));
}

TEST(cancelled_leaves_nobody)
{
	struct world *w = *state;
	struct told told = run(w, "trap '' TERM INT; echo $$; sleep 300 & "
				  "(setsid sh -c 'trap \"\" TERM; sleep 301' &) ; "
				  "env -i setsid sleep 302 & wait; sleep 303");
	struct task task;

	stage_until(&w->stage, text_has(printed(w, told.id), "\n"));
	stage_until(&w->stage, get(w, told.id).pid > 0);
	assert_int_equal(cancel(w, told.id).result, 0);
	task = wait_for(w, told.id, TASK_CANCELLED);
	assert_int_equal(task.pid, 0);
	assert_null(task.error.data);
	assert_int_equal(cancel(w, told.id).result, REFUSE_CONFLICT);
	assert_int_equal(cancel(w, "task-4444").result, REFUSE_NOT_FOUND);
	assert_int_equal(n_below(), 0);
}

TEST(cancelled_leaves_nobody_whatever_mark_a_client_gives)
{
	struct world *w = *state;
	const struct text env[] = {TEXT("KOINE_MARK=x"), TEXT("KOINE_MARK=y"), TEXT("KOINE_TASK=z"),
				   TEXT("KOINE_PROJECT=none")};
	struct task_new in = plain_task(w, "setsid sh -c 'trap \"\" TERM INT HUP; "
					   "echo $KOINE_TASK,$KOINE_PROJECT,; exec sleep 300' & "
					   "sleep 301");
	struct told told;
	char said[300];

	in.env = env;
	in.n_env = 4;
	told = submit(w, &in);
	assert_int_equal(told.result, 0);
	stage_until(&w->stage, text_has(printed(w, told.id), ",\n"));
	snprintf(said, sizeof(said), "%s,%s,\n", told.id, w->project);
	assert_true(text_has(printed(w, told.id), said));
	stage_until(&w->stage, get(w, told.id).pid > 0);
	/* By their marks: there may be no cgroup. */
	snprintf(said, sizeof(said), "%.*s", TEXT_ARGS(get(w, told.id).mark));
	assert_true(tree_signal(said, false, 0) >= 2);
	assert_int_equal(cancel(w, told.id).result, 0);
	wait_for(w, told.id, TASK_CANCELLED);
	assert_int_equal(n_below(), 0);
}

TEST(exits_well_although_cancelled)
{
	struct world *w = *state;
	struct told told = run(w, "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done");

	stage_until(&w->stage, text_has(printed(w, told.id), "up"));
	cancel(w, told.id);
	wait_for(w, told.id, TASK_CANCELLED);
}

TEST(a_queued_one_is_cancelled_at_once)
{
	struct world *w = *state;
	struct told a = run(w, "sleep 100");
	struct told b = run(w, "sleep 100");
	struct told c = run(w, "echo never");

	assert_int_equal(cancel(w, c.id).result, 0);
	assert_true(is(w, c.id, TASK_CANCELLED));
	assert_int_equal(get(w, c.id).attempts, 0);
	cancel(w, a.id);
	cancel(w, b.id);
	wait_for(w, a.id, TASK_CANCELLED);
	wait_for(w, b.id, TASK_CANCELLED);
}

TEST(the_queue_has_an_end)
{
	struct world *w = *state;
	const struct task_new in = plain_task(w, "sleep 100");
	struct told told = {0};
	unsigned n = 0;

	while (told.result == 0 && n < 100) {
		told = submit(w, &in);
		n++;
	}
	assert_int_equal(told.result, REFUSE_LIMIT);
	assert_int_equal(n, 2 + 50 + 1);
	assert_string_equal(told.error.text, "Queue full: 50/50");
}

TEST(bad_ones_are_refused)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "");
	const struct text bad_env = TEXT("NOVALUE");

	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	in.task.prompt = (struct text) {.data = "a\0b", .len = 3};
	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	in = plain_task(w, "x");
	in.task.project = TEXT("/nowhere");
	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	in = plain_task(w, "x");
	in.task.runner = TEXT("nobody");
	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	in = plain_task(w, "x");
	in.env = &bad_env;
	in.n_env = 1;
	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	in = plain_task(w, "x");
	in.task.cwd = TEXT("relative");
	assert_int_equal(submit(w, &in).result, REFUSE_PARAMS);
	assert_int_equal(counts(w).total, 0);
}

TEST(a_long_prompt_goes_by_standard_input)
{
	struct world *w = *state;
	size_t n = 300000;
	char *prompt = malloc(n + 1);
	struct told told;
	struct task task;

	memset(prompt, '#', n);
	memcpy(prompt, "echo long enough\n", 17);
	memcpy(prompt + n - 10, "\necho end\n", 10);
	prompt[n] = '\0';
	told = run(w, prompt);
	free(prompt);
	task = wait_for(w, told.id, TASK_COMPLETED);
	assert_true(text_is(task.result, "long enough\nend\n"));
	assert_int_equal(task.prompt.len, n);
}

TEST(env_and_folder_are_its_own)
{
	struct world *w = *state;
	const struct text env[] = {TEXT("COLOUR=green blue"), TEXT("KOINE_TASK=mine")};
	struct task_new in = plain_task(w, "echo $COLOUR $KOINE_TASK; pwd");
	struct told told;
	struct task task;

	in.env = env;
	in.n_env = 2;
	in.task.cwd = TEXT("/");
	told = submit(w, &in);
	task = wait_for(w, told.id, TASK_COMPLETED);
	assert_true(text_is(task.result, "green blue task-0000\n/\n"));
}

TEST(recall_may_run_it)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "What is the weather on the moon?");
	struct told told;
	struct task task;

	in.task.runner = TEXT("recall");
	told = submit(w, &in);
	task = wait_for(w, told.id, TASK_COMPLETED);
	assert_true(text_has(task.result, "offline responder"));
	assert_true(text_has(printed(w, told.id), "offline responder"));
}

TEST(an_agent_that_reads_stdin_gets_its_prompt_there)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "hello");
	struct told told;

	in.task.runner = TEXT("echo");
	told = submit(w, &in);
	assert_true(text_is(wait_for(w, told.id, TASK_COMPLETED).result, "hello"));
}

TEST(lists_the_newest_first)
{
	struct world *w = *state;
	struct task_filter f = {.project = text_of(w->project), .state = -1};
	const struct task_now *now;
	struct task *rows;
	unsigned n;
	unsigned m;

	for (int i = 0; i < 25; i++)
		run(w, i % 2 ? "exit 1" : "true");
	stage_until(&w->stage, counts(w).n[TASK_COMPLETED] + counts(w).n[TASK_FAILED] == 25);
	wait_for(w, "task-0024", TASK_COMPLETED);
	wait_for(w, "task-0023", TASK_FAILED);
	assert_true(task_list_now(tasks_of(w), &f, &now, &n));
	assert_int_equal(n, 20);
	assert_true(text_is(now[0].task->id, "task-0024"));
	assert_int_equal(task_list(tasks_of(w), 1, &w->stage.f->arena, &f, &rows, &m, NULL), 0);
	assert_int_equal(m, n);
	for (unsigned i = 0; i < n; i++) {
		assert_true(text_equal(rows[i].id, now[i].task->id));
		assert_true(text_equal(rows[i].result, now[i].task->result));
	}
	f.state = TASK_FAILED;
	f.limit = 3;
	assert_true(task_list_now(tasks_of(w), &f, &now, &n));
	assert_int_equal(n, 3);
	assert_true(text_is(now[0].task->id, "task-0023"));
}

static struct buf *words_now(struct world *w, const void *by)
{
	struct task_filter f = {.project = text_of(w->project), .state = -1, .rendered_by = by};
	const struct task_now *now;
	unsigned n;

	assert_true(task_list_now(tasks_of(w), &f, &now, &n));
	assert_true(n > 0);
	return now[0].words;
}

TEST(words_are_kept_until_it_changes)
{
	struct world *w = *state;
	struct told told = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	static const char me, other;
	struct buf *words = words_now(w, &me);

	assert_non_null(words);
	wait_for(w, told.id, TASK_RUNNING);
	words = words_now(w, &me);
	assert_int_equal(words->len, 0);
	buf_add_str(words, "it runs");
	words = words_now(w, &me);
	assert_int_equal(words->len, 7);
	assert_int_equal(words_now(w, &other)->len, 0);
	buf_add_str(words_now(w, &me), "it runs");
	make_file(w, "go");
	wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(words_now(w, &me)->len, 0);
}

TEST(words_that_are_long_are_not_kept)
{
	struct world *w = *state;
	struct told told = run(w, "true");
	static const char me;

	wait_for(w, told.id, TASK_COMPLETED);
	for (int i = 0; i < 10000; i++)
		buf_add_char(words_now(w, &me), 'x');
	assert_true(words_now(w, &me)->err != 0);
}

TEST(output_is_there_while_it_runs)
{
	struct world *w = *state;
	struct told told = run(w, "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two");
	struct task_output out = {.offset = 4, .max = 100};
	struct task row;

	stage_until(&w->stage, text_is(printed(w, told.id), "one\n"));
	make_file(w, "go");
	wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(task_get(tasks_of(w), 1, &w->stage.f->arena, text_of(w->project),
				  text_of(told.id), &row, &out, &w->stage.f->error),
			 0);
	assert_true(text_is(out.bytes, "two\n"));
	assert_int_equal(out.end, 8);
	assert_false(out.running);
}

TEST(much_output_is_bounded)
{
	struct world *w = *state;
	struct told told = run(w, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end");
	struct task task = wait_for(w, told.id, TASK_COMPLETED);

	assert_true(task.result.len <= TASK_RESULT_MAX);
	assert_true(text_has(task.result, "the end"));
}

TEST(survives_a_crash)
{
	struct world *w = *state;
	struct task_new again = plain_task(w, "[ -e once ] && exit 0; touch once; sleep 100");
	struct told running = run(w, "sleep 100");
	struct told trying;
	struct told queued;
	struct told gone;

	again.retries = 1;
	trying = submit(w, &again);
	queued = run(w, "echo at last");
	gone = run(w, "echo never");
	cancel(w, gone.id);
	wait_for(w, running.id, TASK_RUNNING);
	stage_until(&w->stage, file_there(w, "once"));
	world_reopen(w);
	assert_true(text_is(wait_for(w, running.id, TASK_FAILED).error, "daemon restarted"));
	wait_for(w, queued.id, TASK_COMPLETED);
	assert_int_equal(wait_for(w, trying.id, TASK_COMPLETED).attempts, 2);
	assert_true(is(w, gone.id, TASK_CANCELLED));
	assert_int_equal(counts(w).total, 4);
	assert_string_equal(run(w, "true").id, "task-0004");
}

static void on_stopped(void *arg)
{
	*(bool *)arg = true;
}

TEST(stopping_ends_what_runs)
{
	struct world *w = *state;
	const struct task_new late = plain_task(w, "late");
	struct told running = run(w, "sleep 100");
	struct told quick = run(w, "touch up; sleep 0.05; echo quick");
	struct told queued = run(w, "echo queued");
	bool stopped = false;

	stage_until(&w->stage, file_there(w, "up"));
	tasks_stop(tasks_of(w), 2000, on_stopped, &stopped);
	assert_int_equal(submit(w, &late).result, REFUSE_STOPPING);
	stage_until(&w->stage, stopped);
	assert_true(text_is(wait_for(w, running.id, TASK_FAILED).error, "Killed during shutdown"));
	wait_for(w, quick.id, TASK_COMPLETED);
	assert_true(is(w, queued.id, TASK_QUEUED));
	world_reopen(w);
	wait_for(w, queued.id, TASK_COMPLETED);
}

TEST(changes_are_events)
{
	struct world *w = *state;
	const struct text types[] = {TEXT("task.*")};
	const struct event_filter f = {.types = types, .n_types = 1};
	struct told told = run(w, "echo hi");
	struct event_page page;

	wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(event_list(w->stage.f->engine->events, 1, &w->stage.f->arena, &f, -1, 0,
				    100, &page),
			 0);
	assert_int_equal(page.n, 3);
	assert_true(text_is(page.events[0].type, "task.queued"));
	assert_true(text_is(page.events[1].type, "task.started"));
	assert_true(text_is(page.events[2].type, "task.completed"));
	assert_true(text_is(page.events[2].project, w->project));
	assert_true(text_is(page.events[2].run, "task-0000"));
	assert_true(text_is(packed_text(packed_find(page.events[2].data, "result")), "hi\n"));
}

static struct text told_result(struct world *w, const char *id)
{
	const struct text types[] = {TEXT("task.completed")};
	const struct event_filter f = {.types = types, .n_types = 1, .run = text_of(id)};
	struct event_page page;

	wait_for(w, id, TASK_COMPLETED);
	assert_int_equal(event_list(w->stage.f->engine->events, 1, &w->stage.f->arena, &f, -1, 0,
				    100, &page),
			 0);
	assert_int_equal(page.n, 1);
	return packed_text(packed_find(page.events[0].data, "result"));
}

TEST(an_event_has_64_kib_of_a_result_in_whole_characters)
{
	struct world *w = *state;
	struct told whole = run(w, "printf 'x%.0s' $(seq 65536)");
	struct told longer = run(w, "printf x; printf 'é%.0s' $(seq 40000)");

	assert_int_equal(told_result(w, whole.id).len, 65536);
	assert_int_equal(told_result(w, longer.id).len, 65535);
}

/* Over 200 that ended are not at hand; several ask for one of them at once. */
TEST(tried_again_once_however_many_ask)
{
	struct world *w = *state;
	struct told told[4] = {0};
	struct told first = run(w, "exit 1");

	wait_for(w, first.id, TASK_FAILED);
	for (int i = 0; i < 205; i++) {
		run(w, "true");
		stage_until(&w->stage, counts(w).n[TASK_QUEUED] < w->queue);
	}
	stage_until(&w->stage, counts(w).n[TASK_COMPLETED] == 205);
	wait_for(w, "task-0205", TASK_COMPLETED);
	run(w, "true");
	for (int i = 0; i < 4; i++)
		note_refusal(&told[i],
			     task_retry(tasks_of(w), text_of(w->project), text_of(first.id),
					on_retried, &told[i], &told[i].error));
	stage_until(&w->stage, told[0].n && told[1].n && told[2].n && told[3].n);
	assert_int_equal((told[0].result == 0) + (told[1].result == 0) + (told[2].result == 0) +
				 (told[3].result == 0),
			 1);
	stage_until(&w->stage, counts(w).n[TASK_FAILED] == 1 && counts(w).n[TASK_QUEUED] == 0 &&
				       counts(w).n[TASK_RUNNING] == 0);
}

/* Told to end for its time, it takes long: who cancels it meanwhile is not told of another try. */
TEST(cancelled_while_its_time_runs_out)
{
	struct world *w = *state;
	struct task_new in = plain_task(w, "trap 'touch told' TERM; "
					   "while [ ! -e go ]; do sleep 0.01; done");
	struct told told;
	unsigned tried;

	w->interrupt_ms = 60000;
	world_reopen(w);
	in.task.timeout_ms = 500;
	in.retries = 9; /* for a machine where a shell is slow to begin */
	in.task.retry_ms = 1;
	told = submit(w, &in);
	stage_until(&w->stage, file_there(w, "told"));
	tried = get(w, told.id).attempts;
	assert_int_equal(cancel(w, told.id).result, 0);
	make_file(w, "go");
	assert_int_equal(wait_for(w, told.id, TASK_CANCELLED).attempts, tried);
}

/* What it comes after is cancelled while it is on its way to the store. */
TEST(what_it_comes_after_ends_meanwhile)
{
	struct world *w = *state;
	struct told blockers[2] = {run(w, "sleep 100"), run(w, "sleep 100")};
	struct told before = run(w, "true");
	const struct text after = text_of(before.id);
	struct task_new in = plain_task(w, "true");
	struct told behind = {0};
	struct told gone = {0};

	in.task.after = (struct texts) {&after, 1};
	note_refusal(&behind, task_submit(tasks_of(w), &in, on_submitted, &behind, &behind.error));
	note_refusal(&gone, task_cancel(tasks_of(w), text_of(w->project), after, on_done, &gone,
					&gone.error));
	stage_until(&w->stage, behind.n && gone.n);
	assert_int_equal(gone.result, 0);
	assert_int_equal(behind.result, 0);
	wait_for(w, behind.id, TASK_FAILED);
	cancel(w, blockers[0].id);
	cancel(w, blockers[1].id);
	wait_for(w, blockers[1].id, TASK_CANCELLED);
}

TEST(long_prompts_are_no_burden_at_a_start)
{
	struct world *w = *state;
	struct told blockers[2] = {run(w, "sleep 100"), run(w, "sleep 100")};
	size_t n = 1 << 20;
	char *prompt = malloc(n + 1);

	memset(prompt, '#', n);
	memcpy(prompt, "echo it was long\n", 17);
	prompt[n] = '\0';
	for (int i = 0; i < 20; i++)
		run(w, prompt);
	free(prompt);
	assert_int_equal(counts(w).n[TASK_QUEUED], 20);
	world_reopen(w);
	assert_true(text_is(wait_for(w, blockers[0].id, TASK_FAILED).error, "daemon restarted"));
	stage_until(&w->stage, counts(w).n[TASK_COMPLETED] == 20);
	assert_true(text_is(wait_for(w, "task-0021", TASK_COMPLETED).result, "it was long\n"));
}

TEST(those_behind_fail_at_a_start)
{
	struct world *w = *state;
	struct told running = run(w, "sleep 100");
	struct text after = text_of(running.id);
	struct task_new in = plain_task(w, "true");
	struct told first;
	struct told second;

	in.task.after = (struct texts) {&after, 1};
	first = submit(w, &in);
	after = text_of(first.id);
	second = submit(w, &in);
	stage_until(&w->stage, get(w, running.id).pid > 0);
	world_reopen(w);
	wait_for(w, running.id, TASK_FAILED);
	wait_for(w, first.id, TASK_FAILED);
	wait_for(w, second.id, TASK_FAILED);
	assert_int_equal(counts(w).n[TASK_FAILED], 3);
}

/* While nothing can be kept, nothing is lost and nothing is written in another order. */
TEST(a_store_that_fails_for_a_while)
{
	struct world *w = *state;
	struct told told = run(w, "while [ ! -e go ]; do sleep 0.01; done; echo done");
	struct told gone = {0};

	stage_until(&w->stage, get(w, told.id).pid > 0);
	w->stage.fail_writes = -ENOSPC;
	make_file(w, "go");
	stage_until(&w->stage, counts(w).n[TASK_COMPLETED] == 1);
	assert_true(is(w, told.id, TASK_RUNNING));
	w->stage.fail_writes = 0;
	wait_for(w, told.id, TASK_COMPLETED);
	told = run(w, "sleep 100");
	stage_until(&w->stage, get(w, told.id).pid > 0);
	w->stage.fail_writes = -ENOSPC;
	note_refusal(&gone, task_cancel(tasks_of(w), text_of(w->project), text_of(told.id), on_done,
					&gone, &gone.error));
	stage_until(&w->stage, gone.n);
	assert_int_equal(gone.result, -ENOSPC);
	w->stage.fail_writes = 0;
	wait_for(w, told.id, TASK_CANCELLED);
}

/* It is held, and from now on nothing can be kept. */
static struct told hold_then_fail_writes(struct world *w)
{
	struct task_new in = plain_task(w, "exit 1");
	struct told told;

	in.task.held = true;
	told = submit(w, &in);
	stage_until(&w->stage, w->stage.f->engine->tasks->records.n_changes == 0);
	w->stage.fail_writes = -ENOSPC;
	return told;
}

/* In memory of its own: whoever is told when it is gone is seen. */
static struct told *begin_release(struct world *w, const char *id)
{
	struct told *told = calloc(1, sizeof(*told));

	assert_non_null(told);
	note_refusal(told, task_hold(tasks_of(w), text_of(w->project), text_of(id), TASK_RELEASE, 0,
				     on_done, told, &told->error));
	return told;
}

/* The write of the release fails, and its caller has got the error. */
static void fail_release(struct world *w, const char *id)
{
	struct told *told = begin_release(w, id);

	/* Never inside the call. */
	assert_int_equal(told->n, 0);
	stage_until(&w->stage, told->n == 1);
	assert_int_equal(told->result, -ENOSPC);
	free(told);
}

static void begin_cancel(struct world *w, const char *id, struct told *told)
{
	note_refusal(told, task_cancel(tasks_of(w), text_of(w->project), text_of(id), on_done, told,
				       &told->error));
}

TEST(wishes_behind_a_write_that_failed_are_told)
{
	struct world *w = *state;
	struct told id = hold_then_fail_writes(w);
	struct told behind[2] = {{0}};

	fail_release(w, id.id);
	begin_cancel(w, id.id, &behind[0]);
	assert_int_equal(behind[0].n, 0);
	note_refusal(&behind[1], task_retry(tasks_of(w), text_of(w->project), text_of(id.id),
					    on_retried, &behind[1], &behind[1].error));
	stage_until(&w->stage, behind[0].n && behind[1].n);
	assert_int_equal(behind[0].result, -ENOSPC);
	assert_int_equal(behind[1].result, -ENOSPC);
	w->stage.fail_writes = 0;
	/* What was changed in memory is stored in the end, in its order. */
	wait_for(w, id.id, TASK_CANCELLED);
}

/* They wait in calls, and those are gone before the tasks are. */
TEST(nobody_is_told_who_may_be_gone)
{
	struct world *w = *state;
	struct told id = hold_then_fail_writes(w);
	struct told *behind = calloc(1, sizeof(*behind));

	assert_non_null(behind);
	fail_release(w, id.id);
	begin_cancel(w, id.id, behind);
	assert_int_equal(behind->n, 0);
	free(behind);
	world_close(w);
	fixture_open(w->stage.f, 64 << 20);
	w->stage.fail_writes = 0;
	world_open(w);
	assert_true(is(w, id.id, TASK_QUEUED));
}

TEST(a_stop_does_not_wait_for_what_has_not_begun)
{
	struct world *w = *state;
	struct told id = hold_then_fail_writes(w);
	bool stopped = false;

	fail_release(w, id.id);
	tasks_stop(tasks_of(w), 0, on_stopped, &stopped);
	assert_false(stopped);
	stage_until(&w->stage, stopped);
	w->stage.fail_writes = 0;
}

/* It is submitted, and that it runs is on its way to the store. */
static struct told run_until_it_begins(struct world *w)
{
	struct told told = {0};
	const struct task_new in = plain_task(w, "touch begun");

	note_refusal(&told, task_submit(tasks_of(w), &in, on_submitted, &told, &told.error));
	w->stage.hold_writes = true;
	stage_until(&w->stage, w->stage.held);
	assert_int_equal(told.n, 1);
	assert_int_equal(w->stage.f->engine->tasks->n_running, 1);
	return told;
}

static void tell_held(struct world *w, int result)
{
	struct work *held = w->stage.held;

	w->stage.held = NULL;
	held->finished(held, result);
}

TEST(one_that_has_not_begun_is_cancelled_at_once)
{
	struct world *w = *state;
	struct told told = run_until_it_begins(w);
	struct told gone = {0};

	begin_cancel(w, told.id, &gone);
	assert_int_equal(counts(w).n[TASK_CANCELLED], 1);
	tell_held(w, -ENOSPC);
	/* Not in the store yet, but nobody waits for it any longer. */
	assert_int_equal(gone.result, -ENOSPC);
	wait_for(w, told.id, TASK_CANCELLED);
	assert_false(file_there(w, "begun"));
}

TEST(one_that_has_not_begun_waits_for_the_next_start)
{
	struct world *w = *state;
	struct told told = run_until_it_begins(w);
	bool stopped = false;

	/* It may come to its end in that time, but it does not begin in it. */
	tasks_stop(tasks_of(w), 60000, on_stopped, &stopped);
	tell_held(w, 0);
	stage_until(&w->stage, stopped);
	assert_true(is(w, told.id, TASK_QUEUED));
	assert_false(file_there(w, "begun"));
	world_reopen(w);
	wait_for(w, told.id, TASK_COMPLETED);
	assert_true(file_there(w, "begun"));
}

TEST(one_that_has_not_begun_is_freed_with_the_rest)
{
	struct world *w = *state;
	struct told told = run_until_it_begins(w);

	world_reopen(w);
	w->stage.held = NULL;
	wait_for(w, told.id, TASK_COMPLETED);
}

/* Its program is being started, which takes its time. */
static void start_held(struct world *w, struct told *told)
{
	const struct task_new in = plain_task(w, "touch begun");

	child_pause_starts(true);
	note_refusal(told, task_submit(tasks_of(w), &in, on_submitted, told, &told->error));
	stage_until(&w->stage, counts(w).n[TASK_RUNNING] == 1);
}

TEST(others_are_served_while_a_program_is_started)
{
	struct world *w = *state;
	struct told first = {0}, second = {0};
	struct task_new in = plain_task(w, "true");

	start_held(w, &first);
	in.delay_ms = 3600 * 1000;
	note_refusal(&second, task_submit(tasks_of(w), &in, on_submitted, &second, &second.error));
	stage_until(&w->stage, second.n == 1);
	assert_int_equal(second.result, 0);
	cancel(w, second.id);
	wait_for(w, second.id, TASK_CANCELLED);
	assert_false(file_there(w, "begun"));
	child_pause_starts(false);
	stage_until(&w->stage, first.n == 1);
	wait_for(w, first.id, TASK_COMPLETED);
	assert_true(file_there(w, "begun"));
}

TEST(one_that_is_being_started_is_cancelled)
{
	struct world *w = *state;
	struct told told = {0}, gone = {0};

	start_held(w, &told);
	stage_until(&w->stage, told.n == 1);
	begin_cancel(w, told.id, &gone);
	stage_until(&w->stage, gone.n == 1);
	assert_int_equal(gone.result, 0);
	child_pause_starts(false);
	wait_for(w, told.id, TASK_CANCELLED);
}

TEST(one_that_is_being_started_is_freed_with_the_rest)
{
	struct world *w = *state;
	struct told told = {0};

	start_held(w, &told);
	stage_until(&w->stage, told.n == 1);
	child_pause_starts(false);
	world_reopen(w);
	assert_false(is(w, told.id, TASK_RUNNING));
}

/* Each second it is tried again; what waits does not grow with that. */
TEST(a_run_that_is_not_kept_waits_for_the_store)
{
	struct world *w = *state;
	struct told id = hold_then_fail_writes(w);
	unsigned from = w->stage.n_failed;

	fail_release(w, id.id);
	stage_until(&w->stage, w->stage.n_failed >= from + 5);
	assert_in_range(w->stage.f->engine->tasks->records.n_changes, 1, 3);
	assert_int_equal(w->stage.f->engine->tasks->n_running, 0);
	w->stage.fail_writes = 0;
	stage_until(&w->stage, w->stage.f->engine->tasks->records.n_changes == 0 &&
				       get(w, id.id).state == TASK_FAILED);
	assert_int_equal(get(w, id.id).attempts, 1);
}

struct watcher {
	struct task_watch watch;
	char printed[100];
	unsigned n_printed;
	unsigned n_ended;
	enum task_state state;
	struct watcher *leaves; /* with it */
};

static void on_watched_print(struct task_watch *watch, struct task_piece *piece)
{
	struct watcher *w = list_entry(watch, struct watcher, watch);
	size_t len = strlen(w->printed);

	w->n_printed++;
	snprintf(w->printed + len, sizeof(w->printed) - len, "%.*s", TEXT_ARGS(piece->bytes));
}

static void on_watched_end(struct task_watch *watch, const struct task *task)
{
	struct watcher *w = list_entry(watch, struct watcher, watch);

	w->n_ended++;
	w->state = task->state;
	if (w->leaves)
		task_unwatch(&w->leaves->watch);
	assert_true(text_is(task->id, "task-0000"));
}

struct piece_watcher {
	struct task_watch watch;
	int64_t offset;
	size_t len;
};

static void on_watched_piece(struct task_watch *watch, struct task_piece *piece)
{
	struct piece_watcher *w = list_entry(watch, struct piece_watcher, watch);

	w->offset = piece->offset;
	w->len = piece->bytes.len;
}

TEST(watchers_get_the_newest_output_if_all_of_it_does_not_fit)
{
	enum { MUCH = 60000, LITTLE = 10000 };
	static const char printed[MUCH];
	struct world *w = *state;
	struct told told = run(w, "sleep 100");
	struct piece_watcher watcher = {.watch.printed = on_watched_piece,
					.watch.ended = on_watched_end};
	struct run *r;
	int64_t end;

	stage_until(&w->stage, get(w, told.id).pid > 0);
	assert_true(task_watch(tasks_of(w), text_of(w->project), text_of(told.id), &watcher.watch,
			       &end));
	r = watcher.watch.live->run;
	r->attempt.ops->on_output(r, false, printed, MUCH);
	assert_int_equal(watcher.len, MUCH);
	/* A pause follows; meanwhile output is collected. */
	r->attempt.ops->on_output(r, false, printed, MUCH);
	r->attempt.ops->on_output(r, false, printed, LITTLE);
	assert_int_equal(watcher.offset, 0);
	stage_until(&w->stage, watcher.offset > 0);
	assert_int_equal(watcher.offset, 2 * MUCH);
	assert_int_equal(watcher.len, LITTLE);
	task_unwatch(&watcher.watch);
	cancel(w, told.id);
	wait_for(w, told.id, TASK_CANCELLED);
}

/* Nobody is told of an end that may be lost; then all are, before the next turn of the loop. */
TEST(an_end_is_told_as_soon_as_it_is_kept)
{
	struct world *w = *state;
	struct told told = run(w, "while [ ! -e go ]; do sleep 0.01; done; printf x");
	struct watcher watchers[3] = {{{.live = NULL}}};
	int64_t end;

	stage_until(&w->stage,
		    get(w, told.id).pid > 0 && w->stage.f->engine->tasks->records.n_changes == 0);
	for (int i = 0; i < 3; i++) {
		watchers[i].watch.printed = on_watched_print;
		watchers[i].watch.ended = on_watched_end;
		assert_true(task_watch(tasks_of(w), text_of(w->project), text_of(told.id),
				       &watchers[i].watch, &end));
		assert_int_equal(end, 0);
	}
	task_unwatch(&watchers[1].watch);
	w->stage.hold_writes = true;
	make_file(w, "go");
	stage_until(&w->stage, w->stage.held);
	assert_string_equal(watchers[0].printed, "x");
	assert_int_equal(watchers[0].n_ended, 0);
	tell_held(w, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(watchers[i].n_ended, i != 1);
		assert_int_equal(watchers[i].n_printed, i != 1);
	}
	assert_int_equal(watchers[2].state, TASK_COMPLETED);
	assert_false(task_watch(tasks_of(w), text_of(w->project), text_of(told.id),
				&watchers[0].watch, &end));
}

/* More than one turn of the loop tells; and one that is told ends the wait of another. */
TEST(an_end_is_told_to_many_in_several_turns)
{
	enum { MANY = 1200 };
	struct world *w = *state;
	struct told told = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	struct watcher *watchers = calloc(MANY, sizeof(watchers[0]));
	unsigned n = 0;
	int64_t end;

	assert_non_null(watchers);
	for (int i = 0; i < MANY; i++) {
		watchers[i].watch.ended = on_watched_end;
		assert_true(task_watch(tasks_of(w), text_of(w->project), text_of(told.id),
				       &watchers[i].watch, &end));
	}
	watchers[0].leaves = &watchers[1];
	watchers[2].leaves = &watchers[MANY - 1];
	make_file(w, "go");
	stage_until(&w->stage, watchers[0].n_ended);
	assert_int_equal(watchers[MANY - 2].n_ended, 0);
	stage_until(&w->stage, watchers[MANY - 2].n_ended);
	for (int i = 0; i < MANY; i++)
		n += watchers[i].n_ended;
	assert_int_equal(n, MANY - 2);
	assert_int_equal(watchers[1].n_ended + watchers[MANY - 1].n_ended, 0);
	free(watchers);
}

TEST(many_short_ones)
{
	struct world *w = *state;
	struct task_counts n;

	for (int i = 0; i < 40; i++)
		run(w, "true");
	stage_until(&w->stage, (n = counts(w)).n[TASK_COMPLETED] == 40);
	assert_int_equal(n.total, 40);
	assert_int_equal(n.n[TASK_RUNNING] + n.n[TASK_QUEUED], 0);
}

struct left_running {
	struct supervised *program;
	char mark[TREE_MARK_MAX];
	bool up;
	bool exited;
};

static void left_prints(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct left_running *l = arg;

	l->up |= memmem(data, len, "up", 2) != NULL;
}

static void left_exits(void *arg, int status, int signal)
{
	struct left_running *l = arg;

	l->exited = true;
}

/* One that no task knows of, and one that it has started. Both stay what they are, so it starts nothing
 * that would wait: whoever is just becoming another program shows no mark. */
static void leave_running(struct world *w, const char *owner, struct left_running *l)
{
	const char *const argv[] = {
		"sh", "-c",
		"setsid nice -n 19 sh -c 'ulimit -t 60; echo up; while :; do :; done' & wait",
		NULL};
	const struct supervised_opts opts = {.argv = argv,
					     .mark = l->mark,
					     .on_output = left_prints,
					     .on_exit = left_exits,
					     .arg = l};
	struct error error;

	assert_int_equal(tree_mark(owner, l->mark), 0);
	assert_int_equal(supervised_start(w->stage.loop, &opts, &l->program, &error), 0);
	stage_until(&w->stage, l->up);
}

TEST(the_next_start_ends_whoever_carries_our_mark)
{
	struct world *w = *state;
	struct left_running ours = {0}, others = {0};
	char owner[TREE_OWNER_MAX + 1];

	snprintf(owner, sizeof(owner), "%s", w->stage.f->engine->owner);
	world_close(w);
	/* As a daemon leaves them that was killed: nothing of the store knows them. */
	leave_running(w, owner, &ours);
	leave_running(w, "somebody-else", &others);
	fixture_open(w->stage.f, 64 << 20);
	world_open(w);
	assert_string_equal(w->stage.f->engine->owner, owner);
	assert_int_equal(tree_signal(ours.mark, false, 0), 0);
	assert_true(tree_signal(others.mark, false, 0) >= 2);
	stage_until(&w->stage, ours.exited);
	supervised_free(ours.program);
	supervised_free(others.program);
	stage_until(&w->stage, n_below() == 0);
}
