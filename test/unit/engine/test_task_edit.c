/* A task that has not begun may be changed; what waits for what stays sound. */
#include "task_stage.h"

#include <math.h>

static struct told edit(struct world *w, const char *id, const struct task_edit *in)
{
	struct told told = {0};

	note_refusal(&told, task_edit(tasks_of(w), text_of(w->project), text_of(id), in, on_done,
				      &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static struct told edit_after(struct world *w, const char *id, const char *before)
{
	const struct text items[] = {text_of(before)};
	const struct texts after = {.items = items, .n = before[0] ? 1 : 0};

	return edit(w, id, &(struct task_edit) {.after = &after});
}

static struct told prioritise(struct world *w, const char *id, double priority)
{
	return edit(w, id, &(struct task_edit) {.priority = &priority});
}

static struct told enqueue(struct world *w, const char *id)
{
	struct told told = {0};

	note_refusal(&told, task_hold(tasks_of(w), text_of(w->project), text_of(id), TASK_ENQUEUE,
				      0, on_done, &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

/* Stashed, so that it stays until the test lets it go. */
static struct told stashed(struct world *w, const char *prompt)
{
	struct task_new in = plain_task(w, prompt);
	struct told told;

	in.task.stashed = true;
	told = submit(w, &in);
	assert_int_equal(told.result, 0);
	return told;
}

FIXTURE(world_setup, world_teardown);

TEST(one_that_waits_takes_what_is_given)
{
	struct world *w = *state;
	struct told told = stashed(w, "exit 1");
	const int64_t timeout_ms = 4000;
	const double priority = 7;
	const struct task_edit all = {.prompt = TEXT("echo new"),
				      .label = TEXT("mine"),
				      .runner = TEXT("claude"),
				      .priority = &priority,
				      .timeout_ms = &timeout_ms};

	assert_int_equal(edit(w, told.id, &all).result, 0);
	for (int i = 0; i < 2; i++) {
		struct task task = get(w, told.id);

		assert_true(text_is(task.prompt, "echo new"));
		assert_true(text_is(task.label, "mine"));
		assert_true(text_is(task.runner, "claude"));
		assert_true(task.priority == 7);
		assert_int_equal(task.timeout_ms, 4000);
		assert_true(task.stashed);
		world_reopen(w);
	}
	/* What is not given stays; what is given as nothing goes. */
	assert_int_equal(
		edit(w, told.id, &(struct task_edit) {.label = TEXT(""), .runner = TEXT("")})
			.result,
		0);
	assert_null(get(w, told.id).label.data);
	assert_null(get(w, told.id).runner.data);
	assert_true(text_is(get(w, told.id).prompt, "echo new"));
	assert_int_equal(enqueue(w, told.id).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
	assert_true(text_has(printed(w, told.id), "new"));
}

TEST(what_is_wrong_is_refused)
{
	struct world *w = *state;
	struct told told = stashed(w, "true");
	const int64_t negative = -1;
	const double infinite = INFINITY;

	assert_int_equal(edit(w, told.id, &(struct task_edit) {0}).result, REFUSE_PARAMS);
	assert_string_equal(edit(w, told.id, &(struct task_edit) {.prompt = TEXT("")}).error.field,
			    "prompt");
	assert_string_equal(
		edit(w, told.id, &(struct task_edit) {.runner = TEXT("nobody")}).error.field,
		"runner");
	assert_string_equal(
		edit(w, told.id, &(struct task_edit) {.label = TEXT("a\nb")}).error.field, "label");
	assert_int_equal(edit(w, told.id, &(struct task_edit) {.timeout_ms = &negative}).result,
			 REFUSE_PARAMS);
	assert_string_equal(
		edit(w, told.id, &(struct task_edit) {.priority = &infinite}).error.field,
		"priority");
	assert_int_equal(prioritise(w, "task-0099", 1).result, REFUSE_NOT_FOUND);
	assert_true(text_is(get(w, told.id).prompt, "true"));
	assert_int_equal(enqueue(w, told.id).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(prioritise(w, told.id, 1).result, REFUSE_CONFLICT);
}

TEST(one_that_runs_is_not_changed)
{
	struct world *w = *state;
	struct told told = run(w, "sleep 100");
	struct told refused = prioritise(w, told.id, 3);

	assert_int_equal(refused.result, REFUSE_CONFLICT);
	assert_non_null(strstr(refused.error.text, "is running"));
	assert_true(get(w, told.id).priority == 0);
	assert_int_equal(cancel(w, told.id).result, 0);
}

TEST(a_new_priority_finds_its_place)
{
	struct world *w = *state;
	struct told told[3], holds[2];

	for (int i = 0; i < 2; i++)
		holds[i] = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	told[0] = run(w, "echo 0 >>order");
	told[1] = run(w, "echo 1 >>order");
	told[2] = run(w, "echo 2 >>order");
	assert_int_equal(prioritise(w, told[1].id, -1).result, 0);
	assert_int_equal(prioritise(w, told[2].id, 5).result, 0);
	assert_int_equal(cancel(w, holds[0].id).result, 0);
	for (int i = 0; i < 3; i++)
		wait_for(w, told[i].id, TASK_COMPLETED);
	assert_true(get(w, told[2].id).started_ms <= get(w, told[0].id).started_ms);
	assert_true(get(w, told[0].id).started_ms <= get(w, told[1].id).started_ms);
	make_file(w, "go");
	wait_for(w, holds[1].id, TASK_COMPLETED);
}

TEST(no_task_comes_after_itself)
{
	struct world *w = *state;
	struct told a = stashed(w, "true"), b = stashed(w, "true"), c = stashed(w, "true");
	struct told refused;

	assert_int_equal(edit_after(w, a.id, b.id).result, 0);
	assert_int_equal(edit_after(w, b.id, c.id).result, 0);
	refused = edit_after(w, c.id, a.id);
	assert_int_equal(refused.result, REFUSE_PARAMS);
	assert_string_equal(refused.error.field, "after");
	assert_string_equal(refused.error.text,
			    "dependency cycle: task-0002 would depend on itself: "
			    "task-0002 after task-0000 after "
			    "task-0001 after task-0002");
	assert_string_equal(
		edit_after(w, a.id, a.id).error.text,
		"dependency cycle: task-0000 would depend on itself: task-0000 after task-0000");
	/* Nothing of what was refused is left, in the store or here. */
	assert_int_equal(get(w, c.id).after.n, 0);
	world_reopen(w);
	assert_int_equal(get(w, a.id).after.n, 1);
	assert_int_equal(get(w, c.id).after.n, 0);
	/* Without the step between them there is no circle. */
	assert_int_equal(edit_after(w, b.id, "").result, 0);
	assert_int_equal(edit_after(w, c.id, a.id).result, 0);
	assert_int_equal(enqueue(w, c.id).result, 0);
	assert_int_equal(enqueue(w, a.id).result, 0);
	assert_true(is(w, a.id, TASK_QUEUED));
	assert_int_equal(enqueue(w, b.id).result, 0);
	wait_for(w, c.id, TASK_COMPLETED);
	assert_true(get(w, b.id).completed_ms <= get(w, a.id).started_ms);
	assert_true(get(w, a.id).completed_ms <= get(w, c.id).started_ms);
}

TEST(what_has_ended_counts_as_for_a_new_one)
{
	struct world *w = *state;
	struct told good = run(w, "true"), bad = run(w, "false"), told = stashed(w, "true");
	struct told refused;

	wait_for(w, good.id, TASK_COMPLETED);
	wait_for(w, bad.id, TASK_FAILED);
	refused = edit_after(w, told.id, bad.id);
	assert_string_equal(refused.error.text, "task-0001 is failed");
	assert_string_equal(edit_after(w, told.id, "task-0077").error.text,
			    "Task not found: task-0077");
	assert_int_equal(edit_after(w, told.id, good.id).result, 0);
	assert_int_equal(enqueue(w, told.id).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
}

TEST(it_waits_for_others_than_before)
{
	struct world *w = *state;
	struct told first = stashed(w, "true"), second = stashed(w, "true"),
		    last = stashed(w, "true");

	assert_int_equal(edit_after(w, last.id, first.id).result, 0);
	assert_int_equal(edit_after(w, last.id, second.id).result, 0);
	assert_int_equal(enqueue(w, last.id).result, 0);
	/* It no longer fails with the first. */
	assert_int_equal(cancel(w, first.id).result, 0);
	assert_true(is(w, last.id, TASK_QUEUED));
	assert_int_equal(enqueue(w, second.id).result, 0);
	wait_for(w, last.id, TASK_COMPLETED);
}

TEST(an_older_one_fails_with_a_younger_one_over_a_crash)
{
	struct world *w = *state;
	struct told oldest = stashed(w, "true"), middle = stashed(w, "true");
	struct told youngest = run(w, "sleep 100");

	assert_int_equal(edit_after(w, oldest.id, middle.id).result, 0);
	assert_int_equal(edit_after(w, middle.id, youngest.id).result, 0);
	assert_int_equal(enqueue(w, oldest.id).result, 0);
	wait_for(w, youngest.id, TASK_RUNNING);
	world_reopen(w);
	wait_for(w, youngest.id, TASK_FAILED);
	wait_for(w, middle.id, TASK_FAILED);
	wait_for(w, oldest.id, TASK_FAILED);
}

TEST(long_prompts_come_and_go)
{
	struct world *w = *state;
	struct told told = stashed(w, "true");
	char *large = malloc(TASK_LIGHT_MAX + 100);

	memset(large, 'x', TASK_LIGHT_MAX + 100);
	large[0] = ':';
	large[1] = ' ';
	for (int i = 0; i < 3; i++) {
		const struct text prompt = {.data = large, .len = TASK_LIGHT_MAX + 100};

		assert_int_equal(edit(w, told.id, &(struct task_edit) {.prompt = prompt}).result,
				 0);
		assert_int_equal(prioritise(w, told.id, i).result, 0);
		assert_int_equal(get(w, told.id).prompt.len, prompt.len);
		assert_int_equal(
			edit(w, told.id, &(struct task_edit) {.prompt = TEXT("echo small")}).result,
			0);
	}
	free(large);
	assert_int_equal(enqueue(w, told.id).result, 0);
	wait_for(w, told.id, TASK_COMPLETED);
	assert_true(text_has(printed(w, told.id), "small"));
}

/* Both changes are in the store, whichever of them was written first. */
TEST(a_change_beside_another_is_not_lost)
{
	struct world *w = *state;
	struct told told = stashed(w, "true"), edited = {0}, moved = {0};

	note_refusal(&edited, task_edit(tasks_of(w), text_of(w->project), text_of(told.id),
					&(struct task_edit) {.label = TEXT("new")}, on_done,
					&edited, &edited.error));
	note_refusal(&moved, task_hold(tasks_of(w), text_of(w->project), text_of(told.id),
				       TASK_ENQUEUE, 3600 * 1000, on_done, &moved, &moved.error));
	stage_until(&w->stage, edited.n && moved.n);
	assert_int_equal(edited.result, 0);
	assert_int_equal(moved.result, 0);
	world_reopen(w);
	assert_true(text_is(get(w, told.id).label, "new"));
	assert_false(get(w, told.id).stashed);
}

TEST(one_that_is_cancelled_meanwhile_is_not_changed)
{
	struct world *w = *state;
	struct told told = stashed(w, "true"), edited = {0}, gone = {0};

	note_refusal(&edited, task_edit(tasks_of(w), text_of(w->project), text_of(told.id),
					&(struct task_edit) {.label = TEXT("new")}, on_done,
					&edited, &edited.error));
	note_refusal(&gone, task_cancel(tasks_of(w), text_of(w->project), text_of(told.id), on_done,
					&gone, &gone.error));
	stage_until(&w->stage, edited.n && gone.n);
	assert_int_equal(gone.result, 0);
	assert_int_equal(edited.result, REFUSE_CONFLICT);
	assert_int_equal(get(w, told.id).state, TASK_CANCELLED);
}
