/* What its user keeps back does not start, and everything else does. */
#include "task_stage.h"

#include <errno.h>

#include "failing/nomem.h"

static struct told stash(struct world *w, const char *id)
{
	struct told told = {0};

	note_refusal(&told, task_hold(tasks_of(w), text_of(w->project), text_of(id), TASK_STASH, 0,
				      on_done, &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static struct told enqueue(struct world *w, const char *id, int64_t delay_ms)
{
	struct told told = {0};

	note_refusal(&told, task_hold(tasks_of(w), text_of(w->project), text_of(id), TASK_ENQUEUE,
				      delay_ms, on_done, &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static struct told set_pause(struct world *w, const char *group, bool paused)
{
	struct text name = group ? text_of(group) : (struct text) {0};
	struct told told = {0};

	note_refusal(&told, task_pause(tasks_of(w), name, paused, on_done, &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static struct told add_like(struct world *w, struct task task)
{
	struct task_new in = plain_task(w, "true");
	struct told told;

	in.task.group = task.group;
	in.task.stashed = task.stashed;
	in.task.label = task.label;
	in.task.after = task.after;
	told = submit(w, &in);
	return told;
}

/* Whoever comes behind it has run: it had its chance. */
static void let_another_run(struct world *w)
{
	wait_for(w, run(w, "true").id, TASK_COMPLETED);
}

FIXTURE(world_setup, world_teardown);

TEST(a_stashed_one_waits_until_it_is_enqueued)
{
	struct world *w = *state;
	struct told told = add_like(w, (struct task) {.stashed = true});

	assert_int_equal(told.result, 0);
	assert_int_equal(told.state, TASK_QUEUED);
	let_another_run(w);
	assert_true(is(w, told.id, TASK_QUEUED));
	assert_true(get(w, told.id).stashed);
	assert_int_equal(stash(w, told.id).result, REFUSE_CONFLICT);
	world_reopen(w);
	let_another_run(w);
	assert_true(is(w, told.id, TASK_QUEUED));
	assert_int_equal(enqueue(w, told.id, -1).result, REFUSE_PARAMS);
	assert_int_equal(enqueue(w, told.id, 0).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(enqueue(w, told.id, 0).result, REFUSE_CONFLICT);
	assert_int_equal(stash(w, told.id).result, REFUSE_CONFLICT);
	assert_int_equal(stash(w, "task-0099").result, REFUSE_NOT_FOUND);
}

TEST(one_that_runs_is_not_stashed)
{
	struct world *w = *state;
	struct told told = run(w, "sleep 100");

	assert_int_equal(stash(w, told.id).result, REFUSE_CONFLICT);
	assert_int_equal(cancel(w, told.id).result, 0);
}

TEST(enqueued_with_a_delay_it_waits_for_that)
{
	struct world *w = *state;
	struct told told = add_like(w, (struct task) {.stashed = true});

	assert_int_equal(enqueue(w, told.id, 3600 * 1000).result, 0);
	let_another_run(w);
	assert_true(is(w, told.id, TASK_QUEUED));
	assert_true(get(w, told.id).not_before_ms > 0);
	/* It may be stashed and enqueued again, for at once. */
	assert_int_equal(stash(w, told.id).result, 0);
	assert_int_equal(enqueue(w, told.id, 1).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
}

TEST(a_retry_does_not_stay_stashed)
{
	struct world *w = *state;
	struct told told = add_like(w, (struct task) {.stashed = true});

	assert_int_equal(cancel(w, told.id).result, 0);
	assert_int_equal(retry(w, told.id).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
}

/* The retry is of the task that failed. */
TEST(a_retry_of_its_dependency_leaves_a_dependent_stashed_and_delayed)
{
	struct world *w = *state;
	struct told first, stashed, delayed;
	struct task_new in;
	struct text id;

	assert_int_equal(set_pause(w, NULL, true).result, 0);
	first = run(w, "test -e mended");
	id = text_of(first.id);
	stashed = add_like(w, (struct task) {.stashed = true, .after = {.items = &id, .n = 1}});
	in = plain_task(w, "true");
	in.task.after = (struct texts) {&id, 1};
	in.delay_ms = 3600 * 1000;
	delayed = submit(w, &in);
	assert_int_equal(set_pause(w, NULL, false).result, 0);
	wait_for(w, stashed.id, TASK_FAILED);
	wait_for(w, delayed.id, TASK_FAILED);
	make_file(w, "mended");
	assert_int_equal(retry(w, first.id).result, 0);
	wait_for(w, first.id, TASK_COMPLETED);
	let_another_run(w);
	assert_true(is(w, stashed.id, TASK_QUEUED));
	assert_true(is(w, delayed.id, TASK_QUEUED));
	assert_int_equal(enqueue(w, stashed.id, 0).result, 0);
	wait_for(w, stashed.id, TASK_COMPLETED);
}

TEST(what_comes_after_a_stashed_one_waits)
{
	struct world *w = *state;
	struct told first = add_like(w, (struct task) {.stashed = true});
	struct text id = text_of(first.id);
	struct told second = add_like(w, (struct task) {.after = {.items = &id, .n = 1}});

	let_another_run(w);
	assert_true(is(w, second.id, TASK_QUEUED));
	assert_int_equal(stash(w, second.id).result, 0);
	assert_int_equal(enqueue(w, first.id, 0).result, 0);
	wait_for(w, first.id, TASK_COMPLETED);
	let_another_run(w);
	assert_true(is(w, second.id, TASK_QUEUED));
	assert_int_equal(enqueue(w, second.id, 0).result, 0);
	wait_for(w, second.id, TASK_COMPLETED);
}

TEST(nothing_of_a_paused_group_starts)
{
	static const char *const groups[] = {"docs", "alone"};
	struct world *w = *state;

	/* One that the settings do not know, and one that has a limit there. */
	for (int i = 0; i < 2; i++) {
		struct text group = text_of(groups[i]);
		struct told before, after;

		assert_int_equal(set_pause(w, groups[i], true).result, 0);
		before = add_like(w, (struct task) {.group = group});
		let_another_run(w);
		assert_true(is(w, before.id, TASK_QUEUED));
		assert_true(task_group_state(tasks_of(w), group).paused);
		world_reopen(w);
		assert_true(task_group_state(tasks_of(w), group).paused);
		after = add_like(w, (struct task) {.group = group});
		let_another_run(w);
		assert_true(is(w, before.id, TASK_QUEUED));
		assert_true(is(w, after.id, TASK_QUEUED));
		assert_int_equal(set_pause(w, groups[i], false).result, 0);
		wait_for(w, before.id, TASK_COMPLETED);
		wait_for(w, after.id, TASK_COMPLETED);
		assert_false(task_group_state(tasks_of(w), group).paused);
	}
}

TEST(what_waits_already_is_paused_with_its_group)
{
	struct world *w = *state;
	struct told a = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	struct told b = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	struct told waits = add_like(w, (struct task) {.group = TEXT("docs")});
	struct told free = add_like(w, (struct task) {.group = TEXT("other")});

	assert_int_equal(waits.state, TASK_QUEUED);
	assert_int_equal(set_pause(w, "docs", true).result, 0);
	make_file(w, "go");
	wait_for(w, a.id, TASK_COMPLETED);
	wait_for(w, b.id, TASK_COMPLETED);
	wait_for(w, free.id, TASK_COMPLETED);
	assert_true(is(w, waits.id, TASK_QUEUED));
	assert_int_equal(cancel(w, waits.id).result, 0);
	assert_int_equal(set_pause(w, "docs", false).result, 0);
	assert_true(is(w, waits.id, TASK_CANCELLED));
}

TEST(nothing_starts_while_all_are_paused_and_what_runs_goes_on)
{
	struct world *w = *state;
	struct told runs = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	struct told waits;

	assert_int_equal(set_pause(w, NULL, true).result, 0);
	/* Again: it is so already. */
	assert_int_equal(set_pause(w, NULL, true).result, 0);
	assert_true(task_group_state(tasks_of(w), (struct text) {0}).paused);
	waits = run(w, "true");
	assert_int_equal(waits.state, TASK_QUEUED);
	make_file(w, "go");
	wait_for(w, runs.id, TASK_COMPLETED);
	assert_true(is(w, waits.id, TASK_QUEUED));
	world_reopen(w);
	assert_true(task_group_state(tasks_of(w), (struct text) {0}).paused);
	assert_int_equal(run(w, "true").state, TASK_QUEUED);
	assert_true(is(w, waits.id, TASK_QUEUED));
	assert_int_equal(set_pause(w, NULL, false).result, 0);
	assert_false(task_group_state(tasks_of(w), (struct text) {0}).paused);
	wait_for(w, waits.id, TASK_COMPLETED);
}

TEST(pauses_are_bounded_and_have_names)
{
	struct world *w = *state;
	char long_name[TASK_NAME_MAX + 2];
	char name[20];

	memset(long_name, 'x', sizeof(long_name));
	long_name[TASK_NAME_MAX + 1] = '\0';
	assert_int_equal(set_pause(w, long_name, true).result, REFUSE_PARAMS);
	assert_int_equal(set_pause(w, "", true).result, REFUSE_PARAMS);
	for (int i = 0; i < TASK_PAUSES_MAX; i++) {
		snprintf(name, sizeof(name), "group%d", i);
		assert_int_equal(set_pause(w, name, true).result, 0);
	}
	assert_int_equal(set_pause(w, "one more", true).result, REFUSE_LIMIT);
	assert_int_equal(set_pause(w, "group0", false).result, 0);
	assert_int_equal(set_pause(w, "one more", true).result, 0);
}

TEST(labels_are_short_plain_texts)
{
	static const char *const wrong[] = {"", "a\nb", "\033[31m", "a\x7f"};
	struct world *w = *state;
	char long_one[TASK_LABEL_MAX + 2];
	struct told told;

	memset(long_one, 'x', sizeof(long_one));
	long_one[TASK_LABEL_MAX + 1] = '\0';
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		told = add_like(w, (struct task) {.label = text_of(wrong[i])});
		assert_int_equal(told.result, REFUSE_PARAMS);
	}
	assert_int_equal(add_like(w, (struct task) {.label = text_of(long_one)}).result,
			 REFUSE_PARAMS);
	told = add_like(w, (struct task) {.label = TEXT("für Anna")});
	assert_int_equal(told.result, 0);
	assert_true(text_is(wait_for(w, told.id, TASK_COMPLETED).label, "für Anna"));
}

TEST(pause_without_memory_is_a_fault)
{
	struct world *w = *state;
	const struct text group = TEXT("new");

	nomem_fail(1, true);
	assert_int_equal(task_pauses_set(tasks_of(w), &group, 1), -ENOMEM);
	nomem_stop();
	assert_int_equal(task_pauses_set(tasks_of(w), &group, 1), 0);
	assert_true(task_group_state(tasks_of(w), group).paused);
}
