/*
 * Programs with all that they start, as real children: shells that fork, leave their group, and
 * do not listen. Each ends by itself after a while, should a test leave it.
 */
#include "stage.h"

#include <signal.h>
#include <sys/stat.h>

#include "io/process/inner.h"
#include "children.h"
#include "io/process/child.h"
#include "io/process/tree.h"
#include "io/process/supervisor.h"

/* Of this process alone: the same test may run in another build at the same time. */
static char owner[TREE_OWNER_MAX + 1];

/* Whether programs are started beside the loop. */
static bool aside;

struct world {
	struct stage stage;
	struct tree_keeper *keeper;
	struct supervised *program;
	char mark[TREE_MARK_MAX];
	char out[4096]; /* what it printed */
	size_t n_out;
	char err[4096];
	size_t n_err;
	int n_ended; /* sweeps was asked */
	bool wants_sweeps;
	bool frees_at_exit;
	bool frees_at_output;
	int n_started;
	int start_result;
	int n_exits;
	int n_left; /* when its end was told */
	int status;
	int signal;
	struct error error;
};

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	snprintf(owner, sizeof(owner), "supervisor-test%d.", (int)getpid());
	stage_make(&w->stage, NULL);
	assert_int_equal(tree_keeper_new(w->stage.loop, &w->keeper), 0);
	assert_int_equal(tree_mark(owner, w->mark), 0);
	*state = w;
	return 0;
}

static int world_teardown(void **state)
{
	struct world *w = *state;

	supervised_free(w->program);
	stage_until(&w->stage, tree_signal(owner, true, SIGKILL) == 0);
	tree_keeper_free(w->keeper);
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

static void keep(char *to, size_t *n, const char *data, size_t len)
{
	assert_true(*n + len < 4096);
	memcpy(to + *n, data, len);
	*n += len;
}

static void drop(struct world *w)
{
	supervised_free(w->program);
	w->program = NULL;
}

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct world *w = arg;

	if (is_stderr)
		keep(w->err, &w->n_err, data, len);
	else
		keep(w->out, &w->n_out, data, len);
	if (w->frees_at_output)
		drop(w);
}

static bool sweeps(void *arg, int status, int signal)
{
	struct world *w = arg;

	w->n_ended++;
	return w->wants_sweeps;
}

static void on_exited(void *arg, int status, int signal)
{
	struct world *w = arg;

	w->n_exits++;
	w->status = status;
	w->signal = signal;
	w->n_left = (int)tree_signal(w->mark, false, 0);
	if (w->frees_at_exit)
		drop(w);
}

static void on_started(void *arg, int result, const struct error *error)
{
	struct world *w = arg;

	w->n_started++;
	w->start_result = result;
	if (result != 0)
		w->error = *error;
}

static int start_as(struct world *w, struct supervised_opts opts)
{
	int r;

	opts.mark = w->mark;
	opts.what = "program=test";
	opts.on_output = on_output;
	opts.sweeps = sweeps;
	opts.on_exit = on_exited;
	opts.arg = w;
	opts.on_started = aside ? on_started : NULL;
	r = supervised_start(w->stage.loop, &opts, &w->program, &w->error);
	if (r != 0 || !aside)
		return r;
	stage_until(&w->stage, w->n_started > 0);
	assert_int_equal(w->n_started, 1);
	if (w->start_result != 0)
		drop(w);
	return w->start_result;
}

static void start(struct world *w, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	assert_int_equal(start_as(w, (struct supervised_opts) {.argv = argv}), 0);
}

static bool has_printed(const struct world *w, const char *part)
{
	return strstr(w->out, part) != NULL;
}

/* Up to where it says so. */
static void start_until_up(struct world *w, const char *script)
{
	start(w, script);
	stage_until(&w->stage, has_printed(w, "up\n"));
}

static void wait_exit(struct world *w)
{
	stage_until(&w->stage, w->n_exits > 0);
	assert_int_equal(w->n_exits, 1);
	assert_int_equal(w->n_ended, 1);
}

static void nobody_is_left(struct world *w)
{
	stage_until(&w->stage, n_below() == 0);
}

/* ---- how it starts ---- */

TEST(has_its_input_its_folder_and_its_environment)
{
	struct world *w = *state;
	const char *const argv[] = {"sh", "-c", "cat; pwd; echo $A,$KOINE_MARK >&2; exit 3", NULL};
	const char *const env[] = {"A=b", "KOINE_MARK=a lie", NULL};
	char expected[TREE_MARK_MAX + 8];

	assert_int_equal(start_as(w, (struct supervised_opts) {.argv = argv,
							       .env = env,
							       .cwd = "/",
							       .input = TEXT("read\n")}),
			 0);
	assert_true(supervised_pid(w->program) > 0);
	assert_true(supervised_started(w->program) > 0);
	wait_exit(w);
	assert_int_equal(w->status, 3);
	assert_int_equal(w->signal, 0);
	assert_string_equal(w->out, "read\n/\n");
	snprintf(expected, sizeof(expected), "b,%s\n", w->mark);
	assert_string_equal(w->err, expected);
}

TEST(leads_a_group_of_its_own)
{
	struct world *w = *state;
	pid_t pid;

	start_until_up(w, "echo up; sleep 60");
	pid = supervised_pid(w->program);
	assert_int_equal(getpgid(pid), pid);
	assert_true(tree_signal(w->mark, false, 0) >= 1);
}

TEST(a_program_that_is_not_there)
{
	struct world *w = *state;
	const char *const argv[] = {"no-such-program-anywhere", NULL};

	assert_int_equal(start_as(w, (struct supervised_opts) {.argv = argv}), REFUSE_NOT_FOUND);
	assert_non_null(strstr(w->error.text, "no-such-program-anywhere"));
	assert_null(w->program);
	nobody_is_left(w);
	assert_int_equal(w->n_exits, 0);
}

TEST(a_folder_that_is_not_there)
{
	struct world *w = *state;
	const char *const argv[] = {"true", NULL};

	assert_int_equal(
		start_as(w, (struct supervised_opts) {.argv = argv, .cwd = "/no/such/folder"}),
		REFUSE_NOT_FOUND);
	assert_non_null(strstr(w->error.text, "/no/such/folder"));
	assert_null(w->program);
	nobody_is_left(w);
	assert_int_equal(w->n_exits, 0);
}

TEST(nothing_starts_without_a_mark)
{
	struct world *w = *state;
	const char *const argv[] = {"true", NULL};

	w->mark[0] = '\0';
	assert_int_equal(start_as(w, (struct supervised_opts) {.argv = argv}), -EINVAL);
	assert_null(w->program);
}

TEST(callbacks_may_be_missing)
{
	struct world *w = *state;
	const char *const argv[] = {"echo", "unheard", NULL};
	const struct supervised_opts opts = {.argv = argv, .mark = w->mark};

	assert_int_equal(supervised_start(w->stage.loop, &opts, &w->program, &w->error), 0);
	nobody_is_left(w);
}

TEST(reading_can_wait)
{
	struct world *w = *state;

	start(w, "echo late");
	supervised_read(w->program, false);
	nobody_is_left(w);
	assert_int_equal(w->n_out, 0);
	assert_int_equal(w->n_exits, 0);
	supervised_read(w->program, true);
	wait_exit(w);
	assert_string_equal(w->out, "late\n");
}

/* ---- how it ends ---- */

/* Of all that a shell can do to stay. */
static const char stubborn[] = "trap '' TERM INT HUP; sleep 60 & "
			       "(setsid sh -c 'trap \"\" TERM INT; sleep 61' &) ; "
			       "env -i setsid sleep 62 & "
			       "echo up; while :; do sleep 60; done";

TEST(ended_leaves_nobody)
{
	struct world *w = *state;

	start_until_up(w, stubborn);
	supervised_end(w->program, 50);
	supervised_end(w->program, 50);
	wait_exit(w);
	assert_int_equal(w->signal, SIGKILL);
	assert_int_equal(w->n_left, 0);
	assert_int_equal(n_below(), 0);
}

TEST(ended_is_asked_first)
{
	struct world *w = *state;

	start_until_up(w, "trap 'echo bye; exit 4' TERM; "
			  "setsid sh -c 'trap \"\" TERM; sleep 61' & "
			  "echo up; while :; do sleep 0.01; done");
	supervised_end(w->program, 60000);
	wait_exit(w);
	assert_int_equal(w->status, 4);
	assert_true(has_printed(w, "bye\n"));
	assert_int_equal(w->n_left, 0);
}

TEST(a_sooner_end_counts)
{
	struct world *w = *state;

	start_until_up(w, stubborn);
	supervised_interrupt(w->program, 600000, 600000);
	supervised_end(w->program, 600000);
	supervised_end(w->program, 50);
	supervised_end(w->program, 600000);
	supervised_interrupt(w->program, 600000, 600000);
	wait_exit(w);
	assert_int_equal(w->signal, SIGKILL);
	assert_int_equal(w->n_left, 0);
}

TEST(without_any_time_it_is_killed)
{
	struct world *w = *state;

	start_until_up(w, "trap 'echo heard' TERM INT; echo up; while :; do sleep 0.01; done");
	supervised_end(w->program, 0);
	wait_exit(w);
	assert_int_equal(w->signal, SIGKILL);
	assert_false(has_printed(w, "heard"));
}

TEST(interrupted_ends_as_it_likes)
{
	struct world *w = *state;

	start_until_up(w, "trap 'echo saved; exit 5' INT; "
			  "setsid sh -c 'trap \"\" INT TERM; sleep 61' & "
			  "echo up; while :; do sleep 0.01; done");
	supervised_interrupt(w->program, 600000, 600000);
	wait_exit(w);
	assert_int_equal(w->status, 5);
	assert_true(has_printed(w, "saved\n"));
	/* Whom it has left behind did not go on by itself. */
	assert_int_equal(w->n_left, 0);
}

TEST(after_an_interrupt_all_of_it_is_asked)
{
	struct world *w = *state;

	/* The one that has left the group says "up", and hears what goes to the mark alone. */
	start_until_up(w, "trap : INT TERM; "
			  "setsid sh -c 'trap \"echo asked\" TERM; echo up; "
			  "while :; do sleep 0.01; done' & "
			  "while :; do sleep 0.01; done");
	supervised_interrupt(w->program, 20, 600000);
	stage_until(&w->stage, has_printed(w, "asked\n"));
	assert_int_equal(w->n_exits, 0);
	supervised_end(w->program, 0);
	wait_exit(w);
	assert_int_equal(w->signal, SIGKILL);
	assert_int_equal(w->n_left, 0);
}

TEST(an_interrupt_ends_with_a_kill)
{
	struct world *w = *state;

	start_until_up(w, stubborn);
	supervised_interrupt(w->program, 20, 20);
	wait_exit(w);
	assert_int_equal(w->signal, SIGKILL);
	assert_int_equal(w->n_left, 0);
	assert_int_equal(n_below(), 0);
}

TEST(an_end_after_the_end_is_nothing)
{
	struct world *w = *state;

	start(w, "exit 6");
	wait_exit(w);
	supervised_end(w->program, 10);
	supervised_interrupt(w->program, 0, 0);
	supervised_read(w->program, false);
	for (int i = 0; i < 20; i++)
		stage_turn(&w->stage);
	assert_int_equal(w->n_exits, 1);
	assert_int_equal(w->status, 6);
}

/* ---- what it leaves behind ---- */

/* What stays has left the group when it says so; its parent then ends. */
static void start_leaver(struct world *w)
{
	start_until_up(w, "trap 'exit 7' USR1; setsid sh -c 'echo up; exec sleep 60' & "
			  "while :; do sleep 0.01; done");
	kill(supervised_pid(w->program), SIGUSR1);
	wait_exit(w);
	assert_int_equal(w->status, 7);
}

TEST(what_it_leaves_behind_goes_on)
{
	struct world *w = *state;

	start_leaver(w);
	assert_int_equal(w->n_left, 1);
	drop(w);
	for (int i = 0; i < 20; i++)
		stage_turn(&w->stage);
	assert_int_equal(tree_signal(w->mark, false, 0), 1);
}

TEST(what_it_leaves_behind_is_swept_if_wanted)
{
	struct world *w = *state;

	w->wants_sweeps = true;
	start_leaver(w);
	assert_int_equal(w->n_left, 0);
	assert_int_equal(n_below(), 0);
}

/* ---- many of them ---- */

enum { N_MANY = 40 };

struct many {
	struct supervised *all[N_MANY];
	int n_up;
	int n_ended;
	int n_exits;
	int n_left;
};

static void one_of_many_prints(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct many *m = arg;

	m->n_up += memmem(data, len, "up", 2) != NULL;
}

static bool one_of_many_ended(void *arg, int status, int signal)
{
	struct many *m = arg;

	m->n_ended++;
	return false;
}

static void one_of_many_exited(void *arg, int status, int signal)
{
	struct many *m = arg;

	m->n_exits++;
}

static void start_many(struct world *w, struct many *m, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	char mark[TREE_MARK_MAX];
	const struct supervised_opts opts = {
		.argv = argv,
		.mark = mark,
		.on_output = one_of_many_prints,
		.sweeps = one_of_many_ended,
		.on_exit = one_of_many_exited,
		.arg = m,
	};

	for (int i = 0; i < N_MANY; i++) {
		assert_int_equal(tree_mark(owner, mark), 0);
		assert_int_equal(supervised_start(w->stage.loop, &opts, &m->all[i], &w->error), 0);
	}
	stage_until(&w->stage, m->n_up == N_MANY);
}

static void free_many(struct many *m)
{
	for (int i = 0; i < N_MANY; i++)
		supervised_free(m->all[i]);
}

/* However many they are, /proc is read a few times: while one search is under way, the others
 * gather for the next. */
TEST(those_that_end_together_are_looked_for_together)
{
	struct world *w = *state;
	static struct many m;
	unsigned long before;

	m = (struct many) {.n_up = 0};
	start_many(w, &m, "setsid sleep 60 & echo up; wait");
	before = tree_n_looks();
	helper_pause(&reaper, true);
	for (int i = 0; i < N_MANY; i++)
		supervised_end(m.all[i], 600000);
	stage_until(&w->stage, m.n_ended == N_MANY);
	/* Nobody's end is told before the search. */
	assert_int_equal(m.n_exits, 0);
	assert_int_equal(tree_n_looks(), before);
	helper_pause(&reaper, false);
	stage_until(&w->stage, m.n_exits == N_MANY);
	assert_in_range(tree_n_looks() - before, 2, N_MANY / 2);
	assert_int_equal(n_below(), 0);
	free_many(&m);
}

TEST(those_that_are_killed_together_are_looked_for_together)
{
	struct world *w = *state;
	static struct many m;
	unsigned long before;

	m = (struct many) {.n_up = 0};
	start_many(w, &m, "trap '' TERM; setsid sleep 60 & echo up; wait");
	before = tree_n_looks();
	helper_pause(&reaper, true);
	free_many(&m);
	helper_pause(&reaper, false);
	nobody_is_left(w);
	/* Some of them are ours, and the world's. */
	assert_in_range(tree_n_looks() - before, 2, N_MANY / 2);
	assert_int_equal(m.n_exits, 0);
}

/* A program in a group of its own is killed with the group, also what a search cannot find. */
TEST(its_cgroup_is_killed)
{
	struct world *w = *state;
	struct cgroup *g;

	if (cgroup_new("test-supervisor-probe", &g) != 0) {
		print_message("skipped: no cgroup can be made here\n");
		skip();
	}
	cgroup_free(g);
	/* Neither an environment nor the limit, and its parent has left it. */
	start_until_up(w, "(setsid env -i prlimit --rttime=unlimited sh -c "
			  "'echo up; exec sleep 63' &) ; sleep 60");
	supervised_end(w->program, 0);
	wait_exit(w);
	assert_int_equal(n_below(), 0);
}

/* ---- before it has started ---- */

static void begin_held(struct world *w, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const struct supervised_opts opts = {.argv = argv,
					     .mark = w->mark,
					     .on_started = on_started,
					     .on_output = on_output,
					     .sweeps = sweeps,
					     .on_exit = on_exited,
					     .arg = w};

	child_pause_starts(true);
	assert_int_equal(supervised_start(w->stage.loop, &opts, &w->program, &w->error), 0);
	assert_int_equal(supervised_pid(w->program), 0);
}

TEST(an_end_before_the_start_comes_after_it)
{
	struct world *w = *state;

	begin_held(w, "exec sleep 60");
	supervised_end(w->program, 600000);
	supervised_end(w->program, 0);
	supervised_end(w->program, 600000);
	assert_int_equal(w->n_started, 0);
	child_pause_starts(false);
	wait_exit(w);
	assert_int_equal(w->n_started, 1);
	assert_int_equal(w->signal, SIGKILL);
	assert_int_equal(w->n_left, 0);
}

TEST(an_interrupt_before_the_start_comes_after_it)
{
	struct world *w = *state;

	begin_held(w, "exec sleep 60");
	supervised_interrupt(w->program, 600000, 600000);
	supervised_interrupt(w->program, 0, 0);
	child_pause_starts(false);
	wait_exit(w);
	assert_int_equal(w->signal, SIGINT);
}

TEST(freed_before_the_start_it_is_killed_after_it)
{
	struct world *w = *state;

	begin_held(w, stubborn);
	drop(w);
	child_pause_starts(false);
	nobody_is_left(w);
	assert_int_equal(w->n_started, 0);
	assert_int_equal(w->n_exits, 0);
}

/* ---- freed ---- */

TEST(freed_while_it_runs)
{
	struct world *w = *state;

	start_until_up(w, stubborn);
	drop(w);
	nobody_is_left(w);
	assert_int_equal(w->n_exits, 0);
	assert_int_equal(w->n_ended, 0);
}

TEST(freed_while_it_is_told_to_end)
{
	struct world *w = *state;

	start_until_up(w, stubborn);
	supervised_interrupt(w->program, 600000, 600000);
	drop(w);
	nobody_is_left(w);
	assert_int_equal(w->n_exits, 0);
}

TEST(freed_when_it_has_ended)
{
	struct world *w = *state;

	w->frees_at_exit = true;
	start_until_up(w, stubborn);
	supervised_end(w->program, 20);
	wait_exit(w);
	assert_null(w->program);
	nobody_is_left(w);
}

TEST(freed_when_it_prints)
{
	struct world *w = *state;

	w->frees_at_output = true;
	start(w, stubborn);
	stage_until(&w->stage, w->n_out > 0);
	assert_null(w->program);
	nobody_is_left(w);
	assert_int_equal(w->n_exits, 0);
}

int main(void)
{
	int n_failed = run_all_tests("programs");

	aside = true;
	return n_failed + run_all_tests("programs beside the loop");
}
