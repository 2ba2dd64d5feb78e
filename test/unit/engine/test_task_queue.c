/* The queue when it is long: how many tasks are looked at, and how much one turn of the loop does. */
#include "task_stage.h"

#include <malloc.h>

#include "base/object_builder.h"
#include "store/store.h"
#include "store/task.h"

enum { CROWD = 2000, CHAIN = 500, AT_ONCE_MAX = 250, FEW = 60 };

static int crowd_setup(void **state)
{
	struct world *w;

	world_setup(state);
	w = *state;
	w->queue = 10000;
	world_reopen(w);
	return 0;
}

FIXTURE(crowd_setup, world_teardown);

static struct project *project_of(struct world *w)
{
	return project_find(tasks_of(w), text_of(w->project), false);
}

static struct live *live(struct world *w, const char *id)
{
	unsigned n;

	return live_find(tasks_of(w), text_of(w->project), text_of(id), &n);
}

/* Takes both places, so that everything else waits. */
static void block(struct world *w, struct told blockers[2])
{
	for (int i = 0; i < 2; i++) {
		blockers[i] = run(w, "sleep 100");
		assert_int_equal(blockers[i].state, TASK_RUNNING);
	}
}

struct crowd {
	unsigned n_told;
	char last[40];
};

static void on_one_of_many(void *arg, int result, const struct task_submitted *task,
			   const struct error *error)
{
	struct crowd *c = arg;

	assert_int_equal(result, 0);
	snprintf(c->last, sizeof(c->last), "%.*s", TEXT_ARGS(task->id));
	c->n_told++;
}

/* rising: each with a higher priority than the one before. */
static struct crowd submit_many(struct world *w, struct task_new in, unsigned n, bool rising)
{
	struct crowd c = {0};

	for (unsigned i = 0; i < n; i++) {
		in.task.priority += rising;
		assert_int_equal(
			task_submit(tasks_of(w), &in, on_one_of_many, &c, &w->stage.f->error), 0);
	}
	stage_until(&w->stage, c.n_told == n);
	return c;
}

/* A task, the next one after it, and so on: the store numbers them. Returns the last. */
static struct crowd submit_chain(struct world *w, const char *first, unsigned n)
{
	struct task_new in = plain_task(w, "true");
	struct crowd c = {0};
	unsigned number;

	assert_int_equal(sscanf(first, "task-%u", &number), 1);
	for (unsigned i = 0; i < n; i++) {
		char id[40];
		struct text after;

		snprintf(id, sizeof(id), "task-%04u", number + i);
		after = text_of(id);
		in.task.after = (struct texts) {&after, 1};
		assert_int_equal(
			task_submit(tasks_of(w), &in, on_one_of_many, &c, &w->stage.f->error), 0);
	}
	stage_until(&w->stage, c.n_told == n);
	return c;
}

static struct task_new delayed_task(struct world *w)
{
	struct task_new in = plain_task(w, "true");

	in.delay_ms = 3600 * 1000;
	return in;
}

/* ---- how many are looked at ---- */

TEST(adding_one_looks_at_few_others)
{
	struct world *w = *state;
	struct told blockers[2];
	uint64_t from;

	block(w, blockers);
	from = tasks_of(w)->n_looked;
	submit_many(w, plain_task(w, "true"), CROWD, true);
	submit_many(w, delayed_task(w), CROWD, false);
	assert_int_equal(counts(w).n[TASK_QUEUED], 2 * CROWD);
	assert_true(tasks_of(w)->n_looked - from < 2 * CROWD * FEW);
}

TEST(an_end_looks_at_few_of_those_that_wait)
{
	struct world *w = *state;
	struct told blockers[2], first;
	uint64_t from;

	block(w, blockers);
	submit_many(w, delayed_task(w), CROWD, false);
	first = run(w, "true");
	submit_chain(w, first.id, CHAIN);
	from = tasks_of(w)->n_looked;
	assert_int_equal(cancel(w, first.id).result, 0);
	stage_until(&w->stage, counts(w).n[TASK_FAILED] == CHAIN);
	assert_true(tasks_of(w)->n_looked - from < CHAIN * FEW);
	assert_int_equal(counts(w).n[TASK_QUEUED], CROWD);
}

TEST(a_full_group_is_passed_over_at_once)
{
	struct world *w = *state;
	struct task_new grouped = plain_task(w, "sleep 100");
	struct told first, other;
	uint64_t from;

	grouped.task.group = TEXT("alone");
	first = submit(w, &grouped);
	assert_int_equal(first.state, TASK_RUNNING);
	submit_many(w, grouped, CROWD, false);
	from = tasks_of(w)->n_looked;
	other = run(w, "sleep 100");
	assert_int_equal(other.state, TASK_RUNNING);
	assert_true(tasks_of(w)->n_looked - from < FEW);
}

static void set_limit(struct world *w, const char *group, unsigned parallel)
{
	assert_int_equal(
		tasks_set_parallel(tasks_of(w), text_of(group), parallel, &w->stage.f->error), 0);
}

static void on_cleaned(void *arg, int result, int64_t n, const struct error *error)
{
	on_done(arg, result, error);
}

TEST(a_group_without_tasks_and_limit_is_dropped)
{
	struct world *w = *state;
	const struct task_cleaning all = {.project = text_of(w->project)};
	struct task_new grouped = plain_task(w, "true");
	struct told told, cleaned = {0};

	grouped.task.group = TEXT("passing");
	set_limit(w, "passing", 1);
	told = submit(w, &grouped);
	wait_for(w, told.id, TASK_COMPLETED);
	assert_int_equal(task_clean(tasks_of(w), &all, on_cleaned, &cleaned), 0);
	stage_until(&w->stage, cleaned.n);
	set_limit(w, "passing", 0);
	assert_int_equal(tasks_of(w)->groups_by_name.n, 1); /* "alone" has a limit */
	told = run(w, "true");
	wait_for(w, told.id, TASK_COMPLETED);
}

static size_t bytes_of(const struct live *l)
{
	return malloc_usable_size((void *)l) + malloc_usable_size(l->texts) +
	       malloc_usable_size(l->waits) + (l->later ? l->later->used : 0);
}

TEST(one_that_comes_after_needs_little_more_memory)
{
	struct world *w = *state;
	struct told blockers[2], plain;
	struct crowd behind;

	block(w, blockers);
	plain = run(w, "true");
	behind = submit_chain(w, plain.id, 1);
	assert_true(bytes_of(live(w, behind.last)) < bytes_of(live(w, plain.id)) + 128);
}

/* Its metadata is kept unpacked for lists. */
TEST(one_with_metadata_needs_little_more_memory)
{
	struct world *w = *state;
	struct told blockers[2], plain, other;
	struct task_new in = plain_task(w, "true");
	struct object_builder metadata;

	block(w, blockers);
	object_begin(&metadata, &w->stage.f->arena);
	object_text(&metadata, "source", TEXT("ipc-chat"));
	in.task.metadata.value = metadata.root;
	plain = run(w, "true");
	other = submit(w, &in);
	assert_non_null(live(w, other.id)->task.metadata.value);
	assert_true(bytes_of(live(w, other.id)) < bytes_of(live(w, plain.id)) + 512);
}

/* ---- what one turn does ---- */

/* Turns the loop until all have failed; other calls are answered in between. */
static unsigned turns_until_failed(struct world *w, unsigned n)
{
	unsigned n_turns = 0;
	int64_t before = 0;

	while (before < n) {
		stage_turn(&w->stage);
		assert_true(counts(w).n[TASK_FAILED] - before <= AT_ONCE_MAX);
		before = counts(w).n[TASK_FAILED];
		assert_true(n_turns++ < 100000);
	}
	return n_turns;
}

TEST(a_chain_fails_in_several_turns)
{
	struct world *w = *state;
	struct told blockers[2], first, told = {0};
	struct crowd chain;

	block(w, blockers);
	first = run(w, "true");
	chain = submit_chain(w, first.id, CHAIN);
	note_refusal(&told, task_cancel(tasks_of(w), text_of(w->project), text_of(first.id),
					on_done, &told, &told.error));
	assert_true(counts(w).n[TASK_FAILED] <= AT_ONCE_MAX);
	assert_true(turns_until_failed(w, CHAIN) > 1);
	assert_int_equal(told.n, 1);
	assert_true(text_has(wait_for(w, chain.last, TASK_FAILED).error, "dependency "));
}

/* Delayed, so that they do not run. */
static void submit_dependents(struct world *w, const char *id, unsigned n)
{
	struct task_new in = delayed_task(w);
	struct text after = text_of(id);

	in.task.after = (struct texts) {&after, 1};
	submit_many(w, in, n, false);
}

TEST(a_retry_stops_the_skipping_of_dependents)
{
	struct world *w = *state;
	struct told first, told = {0};

	tasks_of(w)->paused = true;
	first = run(w, "test -e mended");
	submit_dependents(w, first.id, CROWD);
	tasks_of(w)->paused = false;
	queue_run(tasks_of(w));
	stage_until(&w->stage, counts(w).n[TASK_FAILED] > 1);
	make_file(w, "mended");
	note_refusal(&told, task_retry(tasks_of(w), text_of(w->project), text_of(first.id),
				       on_retried, &told, &told.error));
	stage_until(&w->stage, told.n);
	assert_int_equal(told.result, 0);
	stage_until(&w->stage, counts(w).n[TASK_COMPLETED] == 1);
	assert_true(counts(w).n[TASK_QUEUED] > 0);
	stage_until(&w->stage, list_empty(&tasks_of(w)->dependents[TASK_FAILED]) &&
				       tasks_of(w)->records.n_changes == 0);
	assert_int_equal(counts(w).n[TASK_FAILED], 0);
	assert_int_equal(counts(w).n[TASK_QUEUED], CROWD);
}

/* More than may be queued, but another dependency of theirs has failed, too. */
TEST(a_retry_has_room_whatever_it_leaves_alone)
{
	struct world *w = *state;
	struct task_new in = delayed_task(w);
	struct told first, other;
	struct text after[2];

	tasks_of(w)->paused = true;
	first = run(w, "test -e mended");
	other = run(w, "exit 1");
	after[0] = text_of(first.id);
	after[1] = text_of(other.id);
	in.task.after = (struct texts) {after, 2};
	submit_many(w, in, CROWD, false);
	tasks_of(w)->paused = false;
	queue_run(tasks_of(w));
	stage_until(&w->stage, counts(w).n[TASK_FAILED] == CROWD + 2 &&
				       list_empty(&tasks_of(w)->dependents[TASK_FAILED]) &&
				       tasks_of(w)->records.n_changes == 0);
	make_file(w, "mended");
	tasks_of(w)->queue = 3;
	assert_int_equal(retry(w, first.id).result, 0);
	wait_for(w, first.id, TASK_COMPLETED);
	assert_int_equal(counts(w).n[TASK_FAILED], CROWD + 1);
}

/* While the retry of another one is on its way to the store, nothing is skipped. */
TEST(a_dependency_that_completed_in_a_retry_is_not_held_against_a_dependent)
{
	struct world *w = *state;
	struct told other = run(w, "exit 1"), first, told = {0};

	wait_for(w, other.id, TASK_FAILED);
	tasks_of(w)->paused = true;
	first = run(w, "test -e mended");
	submit_dependents(w, first.id, 1);
	w->stage.hold_writes = true;
	note_refusal(&told, task_retry(tasks_of(w), text_of(w->project), text_of(other.id),
				       on_retried, &told, &told.error));
	assert_non_null(w->stage.held);
	tasks_of(w)->paused = false;
	queue_run(tasks_of(w));
	wait_for(w, first.id, TASK_FAILED);
	make_file(w, "mended");
	assert_int_equal(retry(w, first.id).result, 0);
	wait_for(w, first.id, TASK_COMPLETED);
	workers_write(w->stage.workers, w->stage.held);
	stage_until(&w->stage, told.n && counts(w).n[TASK_FAILED] == 1);
	stage_until(&w->stage, list_empty(&tasks_of(w)->dependents[TASK_FAILED]) &&
				       tasks_of(w)->records.n_changes == 0);
	assert_int_equal(counts(w).n[TASK_QUEUED], 1);
}

/* The daemon dies when a part of them has failed. */
TEST(the_rest_of_a_chain_fails_at_the_next_start)
{
	struct world *w = *state;
	struct told blockers[2], first, told = {0};

	block(w, blockers);
	first = run(w, "true");
	submit_chain(w, first.id, CHAIN);
	note_refusal(&told, task_cancel(tasks_of(w), text_of(w->project), text_of(first.id),
					on_done, &told, &told.error));
	stage_until(&w->stage, told.n);
	assert_true(counts(w).n[TASK_QUEUED] > 0);
	world_reopen(w);
	assert_int_equal(counts(w).n[TASK_QUEUED], 0);
	/* The blockers were running. */
	assert_int_equal(counts(w).n[TASK_FAILED], CHAIN + 2);
}

TEST(held_ones_are_released_in_several_turns)
{
	struct world *w = *state;
	struct told blockers[2];
	struct task_new in = plain_task(w, "true");
	struct crowd crowd;
	unsigned left;

	block(w, blockers);
	in.task.held = true;
	crowd = submit_many(w, in, CROWD, false);
	assert_int_equal(tasks_each_held(tasks_of(w), text_of(w->project), NULL, NULL), CROWD);
	for (unsigned i = 2; i < CROWD + 2; i++) {
		char id[40];

		snprintf(id, sizeof(id), "task-%04u", i);
		assert_int_equal(task_hold(tasks_of(w), text_of(w->project), text_of(id),
					   TASK_RELEASE, 0, NULL, NULL, &w->stage.f->error),
				 0);
	}
	left = project_of(w)->n_held;
	assert_int_equal(left, CROWD);
	while (left > 0) {
		stage_turn(&w->stage);
		assert_true(left - project_of(w)->n_held <= AT_ONCE_MAX);
		left = project_of(w)->n_held;
	}
	assert_int_equal(project_of(w)->n_ready, CROWD);
	stage_until(&w->stage, !get(w, crowd.last).held);
}

/* The one that was added last has the highest priority. */
TEST(nothing_starts_until_all_are_in_line)
{
	struct world *w = *state;
	struct told first = run(w, "while [ ! -e go ]; do sleep 0.01; done");
	const struct text after = text_of(first.id);
	struct task_new in = plain_task(w, "sleep 100");
	struct crowd crowd;

	in.task.after = (struct texts) {&after, 1};
	crowd = submit_many(w, in, CROWD, true);
	make_file(w, "go");
	stage_until(&w->stage, counts(w).n[TASK_RUNNING] == 2);
	assert_int_equal(live(w, crowd.last)->task.state, TASK_RUNNING);
	assert_int_equal(project_of(w)->n_ready, CROWD - 2);
}

/* ---- listing ---- */

TEST(those_that_wait_are_listed_in_the_order_of_their_start)
{
	struct world *w = *state;
	struct told blockers[2];
	struct task_new in = plain_task(w, "true");
	const struct task_now *tasks;
	const struct task_filter f = {.project = text_of(w->project), .in_turn = true};
	unsigned n;

	block(w, blockers);
	submit_many(w, delayed_task(w), 1, false);
	submit_many(w, in, CROWD, true);
	in.task.group = TEXT("alone");
	in.task.priority = 0.5;
	submit_many(w, in, CROWD, true);
	assert_true(task_list_now(tasks_of(w), &f, &tasks, &n));
	assert_int_equal(counts(w).n[TASK_QUEUED], 2 * CROWD + 1);
	assert_true(n > 100 && n <= 1000);
	for (unsigned i = 3; i < n; i++)
		assert_true(tasks[i - 1].task->priority - tasks[i].task->priority == 0.5);
}

/* ---- what another host has done ---- */

static struct task_named read_row(struct world *w, const char *id)
{
	struct task_named f = {.project = text_of(w->project), .id = text_of(id)};

	assert_int_equal(store_task_find_named(store_lane(w->stage.f->engine->store, 0),
					       &w->stage.f->arena, &f, 1),
			 0);
	assert_true(f.found);
	return f;
}

/* Ends more tasks than stay in memory. Returns the first, which does not. */
static struct told end_many(struct world *w)
{
	struct told first = run(w, "true");
	struct task_counts n;

	submit_many(w, plain_task(w, "true"), TASK_RECENT_MAX, false);
	stage_until(&w->stage, counts(w).n[TASK_COMPLETED] == TASK_RECENT_MAX + 1);
	n = counts(w);
	assert_int_equal(n.n[TASK_QUEUED] + n.n[TASK_RUNNING], 0);
	return first;
}

TEST(a_task_that_ended_long_ago_is_not_counted_again)
{
	struct world *w = *state;
	struct told first = end_many(w);
	struct task_named f = read_row(w, first.id);

	assert_null(live(w, first.id));
	task_sync(tasks_of(w), &f);
	assert_null(live(w, first.id));
	assert_int_equal(counts(w).n[TASK_COMPLETED], TASK_RECENT_MAX + 1);
	assert_int_equal(project_of(w)->n_recent, TASK_RECENT_MAX);
	assert_true(tasks_of(w)->recount.wanted);
}

static void open_again(struct world *w, enum task_state state)
{
	struct told first = end_many(w);
	struct task_named f = read_row(w, first.id);

	f.row.state = state;
	f.row.epoch = 7; /* another host's */
	f.row.not_before_ms = INT64_MAX / 2;
	task_sync(tasks_of(w), &f);
	assert_non_null(live(w, first.id));
	assert_int_equal(counts(w).n[state], 1);
}

TEST(a_task_that_is_queued_again_comes_back)
{
	open_again(*state, TASK_QUEUED);
}

TEST(a_task_that_runs_again_elsewhere_comes_back)
{
	open_again(*state, TASK_RUNNING);
}

TEST(a_task_that_ended_elsewhere_unseen_is_counted)
{
	struct world *w = *state;
	struct told first = end_many(w);
	struct task_named f = read_row(w, first.id);

	f.id = f.row.id = TEXT("task-9999");
	f.row.seq = project_of(w)->whole_from;
	task_sync(tasks_of(w), &f);
	assert_int_equal(counts(w).n[TASK_COMPLETED], TASK_RECENT_MAX + 2);
}

/* ---- what goes together ---- */

TEST_WITH(state_place_run_and_edits_go_together, NULL, NULL)
{
	struct run run = {.printed = 0};
	struct live l = {.task = {.state = TASK_QUEUED}, .place = PLACE_READY};

	list_init(&l.link);
	assert_true(task_is_legal(&l));
	l.n_after_open = 1;
	assert_false(task_is_legal(&l));
	l.place = PLACE_ASIDE;
	assert_true(task_is_legal(&l));
	l.n_edits = 1;
	assert_true(task_is_legal(&l));
	l.place = PLACE_TIMED;
	l.n_after_open = 0;
	assert_false(task_is_legal(&l));
	/* A queued task without a place would never start, unless its row is going to be read. */
	l.place = PLACE_NONE;
	assert_false(task_is_legal(&l));
	l.record.stale = true;
	assert_true(task_is_legal(&l));
	l.record.stale = false;
	l.task.state = TASK_RUNNING;
	assert_false(task_is_legal(&l));
	l.run = &run;
	assert_true(task_is_legal(&l));
	l.place = PLACE_READY;
	assert_false(task_is_legal(&l));
	l.place = PLACE_NONE;
	l.task.state = TASK_COMPLETED;
	assert_false(task_is_legal(&l));
	l.run = NULL;
	assert_true(task_is_legal(&l));
}
