/*
 * Processes that run away: into other groups, from their parents, out of their environment.
 *
 * The runaways are this very program, called by the name of what it is to do. Each ends by
 * itself after a while, should a test leave it.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "io/process/child.h"
#include "io/process/tree.h"

enum { LIFE_S = 60, OUT_MAX = 1 << 16 };

/* ---- the runaways ---- */

/* On in the child, once its parent has left it. */
static void fork_and_leave(void)
{
	pid_t parent = getpid();

	if (fork() != 0)
		_exit(0);
	while (getppid() == parent)
		sched_yield();
}

static void run(const char *what, char **env)
{
	char *argv[] = {(char *)(uintptr_t) "runaway", (char *)(uintptr_t)what, NULL};

	execve("/proc/self/exe", argv, env);
	_exit(99);
}

/* Tells its number, which is how a test knows that it has got there. */
static void stay(void)
{
	alarm(LIFE_S); /* which a fork forgets */
	dprintf(1, "%d\n", (int)getpid());
	for (;;)
		pause();
}

static void *stay_in_thread(void *arg)
{
	stay();
	return arg;
}

static void forget_limit(void)
{
	const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};

	setrlimit(RLIMIT_RTTIME, &none);
}

static void daemonise(void)
{
	fork_and_leave();
	setsid();
	fork_and_leave();
}

/* Never long under one number: the old one has left when the new one is seen. */
static void hop(void)
{
	for (unsigned i = 0; i < 200000; i++) {
		fork_and_leave();
		if (i == 10)
			dprintf(1, "%d\n", (int)getpid());
	}
}

static void ignore_all(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
}

static int runaway(const char *what)
{
	char *empty[] = {NULL};

	alarm(LIFE_S);
	if (strcmp(what, "stay") == 0) {
		stay();
	} else if (strcmp(what, "stubborn daemon") == 0) {
		ignore_all();
		daemonise();
		stay();
	} else if (strcmp(what, "bare daemon") == 0) {
		daemonise();
		run("stay", empty);
	} else if (strcmp(what, "unlimited daemon") == 0) {
		daemonise();
		forget_limit();
		stay();
	} else if (strcmp(what, "hidden child") == 0) {
		if (fork() == 0) {
			setsid();
			forget_limit();
			run("stay", empty);
		}
		pause();
	} else if (strcmp(what, "hidden daemon") == 0) {
		daemonise();
		forget_limit();
		run("stay", empty);
	} else if (strcmp(what, "headless") == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, stay_in_thread, NULL);
		pthread_exit(NULL);
	} else if (strcmp(what, "hopper") == 0) {
		hop();
	} else if (strcmp(what, "zombie") == 0) {
		if (fork() == 0)
			_exit(0);
		stay();
	} else if (strcmp(what, "marked killer") == 0) {
		/* It carries itself the mark that it kills. */
		return tree_signal(getenv(TREE_VARIABLE), false, SIGKILL) == 0 ? 7 : 8;
	}
	return 0;
}

/* ---- the tests ---- */

struct fixture {
	struct loop *loop;
	struct timer *tick;
	struct tree_keeper *keeper;
	struct child *child;
	struct error error;
	char owner[TREE_OWNER_MAX];
	char mark[TREE_MARK_MAX];
	char out[OUT_MAX];
	size_t out_len;
	unsigned n_exits;
	int status, signal;
};

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct fixture *f = arg;

	if (!is_stderr && f->out_len + len < OUT_MAX) {
		memcpy(f->out + f->out_len, data, len);
		f->out_len += len;
	}
	if (memchr(data, '\n', len))
		loop_stop(f->loop);
}

static void on_exited(void *arg, int status, int signal)
{
	struct fixture *f = arg;

	f->n_exits++;
	f->status = status;
	f->signal = signal;
	loop_stop(f->loop);
}

static void on_tick(void *arg)
{
	struct fixture *f = arg;

	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(timer_new(f->loop, on_tick, f, &f->tick), 0);
	assert_int_equal(tree_keeper_new(f->loop, &f->keeper), 0);
	snprintf(f->owner, sizeof(f->owner), "test%d", (int)getpid());
	assert_int_equal(tree_mark(f->owner, f->mark), 0);
	timer_repeat(f->tick, 5);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kill_all_below(f->loop);
	child_free(f->child);
	while (has_children())
		loop_run(f->loop);
	timer_free(f->tick);
	tree_keeper_free(f->keeper);
	loop_free(f->loop);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static int start(struct fixture *f, const char *const *argv, const char *mark)
{
	char variable[TREE_MARK_MAX + 32];
	const char *more[] = {variable, NULL};
	const struct child_opts opts = {
		.argv = argv,
		.more_env = mark ? more : NULL,
		.grace_ms = LIFE_S * 1000, /* daemons tell their numbers late */
		.on_output = on_output,
		.on_exit = on_exited,
		.arg = f,
	};

	snprintf(variable, sizeof(variable), TREE_VARIABLE "=%s", mark ? mark : "");
	return child_start(f->loop, &opts, &f->child, &f->error);
}

static void start_runaway(struct fixture *f, const char *what, const char *mark)
{
	const char *const argv[] = {"/proc/self/exe", what, NULL};

	assert_int_equal(start(f, argv, mark), 0);
}

/* The number of the runaway, once it is where it wants to be. */
static pid_t wait_for_it(struct fixture *f)
{
	char *end;
	pid_t pid;

	while (!memchr(f->out, '\n', f->out_len))
		loop_run(f->loop);
	pid = (pid_t)strtol(f->out, &end, 10);
	assert_true(pid > 0 && *end == '\n');
	return pid;
}

static void wait_for_exit(struct fixture *f)
{
	while (f->n_exits == 0)
		loop_run(f->loop);
}

/* As whoever wants them gone does it. */
static void kill_until_none(struct fixture *f, const char *mark, bool prefix)
{
	while (tree_signal(mark, prefix, SIGKILL) > 0)
		loop_run(f->loop);
}

static void expect_gone(struct fixture *f, pid_t pid)
{
	while (kill(pid, 0) == 0)
		loop_run(f->loop);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(tree_started(pid), 0);
}

static void expect_found(struct fixture *f, const char *what)
{
	pid_t pid;

	start_runaway(f, what, f->mark);
	pid = wait_for_it(f);
	assert_true(tree_signal(f->mark, false, 0) > 0);
	assert_int_equal(kill(pid, 0), 0);
	kill_until_none(f, f->mark, false);
	expect_gone(f, pid);
}

TEST(daemon_that_ignores_signals_is_found)
{
	struct fixture *f = *state;
	pid_t pid;

	start_runaway(f, "stubborn daemon", f->mark);
	pid = wait_for_it(f);
	assert_int_equal(tree_signal(f->mark, false, SIGTERM), 1);
	assert_int_equal(tree_signal(f->mark, false, SIGTERM), 1);
	assert_int_equal(kill(pid, 0), 0);
	kill_until_none(f, f->mark, false);
	expect_gone(f, pid);
	assert_int_equal(tree_signal(f->mark, false, 0), 0);
}

TEST(daemon_without_environment_is_found)
{
	expect_found(*state, "bare daemon");
}

TEST(daemon_without_the_limit_is_found)
{
	expect_found(*state, "unlimited daemon");
}

TEST(child_without_any_mark_is_found_by_its_parent)
{
	expect_found(*state, "hidden child");
}

TEST(process_without_its_first_thread_is_found)
{
	expect_found(*state, "headless");
}

TEST(process_that_changes_its_number_is_found)
{
	struct fixture *f = *state;

	start_runaway(f, "hopper", f->mark);
	wait_for_it(f);
	kill_until_none(f, f->mark, false);
	while (has_children())
		loop_run(f->loop);
}

TEST(hidden_daemon_is_still_below_us)
{
	struct fixture *f = *state;
	pid_t pid;

	start_runaway(f, "hidden daemon", f->mark);
	pid = wait_for_it(f);
	assert_int_equal(tree_signal(f->mark, false, SIGKILL), 0);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(tree_signal_below(SIGKILL), 1);
	expect_gone(f, pid);
}

TEST(zombies_do_not_count)
{
	struct fixture *f = *state;

	start_runaway(f, "zombie", f->mark);
	wait_for_it(f);
	while (tree_signal(f->mark, false, 0) != 1)
		loop_run(f->loop);
	kill_until_none(f, f->mark, false);
	wait_for_exit(f);
	assert_int_equal(f->signal, SIGKILL);
}

TEST(marks_of_others_are_left_alone)
{
	struct fixture *f = *state;
	char other[TREE_MARK_MAX], shorter[TREE_MARK_MAX];

	start_runaway(f, "stay", f->mark);
	wait_for_it(f);
	assert_int_equal(tree_mark(f->owner, other), 0);
	assert_int_equal(tree_signal(other, false, SIGKILL), 0);
	assert_int_equal(tree_signal("test-", true, SIGKILL), 0);
	assert_int_equal(tree_signal("", true, SIGKILL), 0);
	strcpy(shorter, f->mark);
	shorter[strlen(shorter) - 1] = '\0';
	assert_int_equal(tree_signal(shorter, false, SIGKILL), 0);
	assert_int_equal(tree_signal(shorter, true, 0), 1);
	assert_int_equal(tree_signal(f->owner, true, 0), 1);
	assert_int_equal(tree_signal(f->mark, false, SIGTERM), 1);
	wait_for_exit(f);
	assert_int_equal(f->signal, SIGTERM);
}

/* Each by its own mark, and a process that carries one below a process that carries another. */
TEST(many_marks_take_the_looks_of_one)
{
	struct fixture *f = *state;
	char others[3][TREE_MARK_MAX];
	struct tree_wish wishes[] = {{.mark = others[0]}, {.mark = others[1]}, {.mark = f->mark}};
	char script[512];
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	unsigned long before;

	for (int i = 0; i < 3; i++)
		assert_int_equal(tree_mark(f->owner, others[i]), 0);
	snprintf(script, sizeof(script),
		 "env -i " TREE_VARIABLE "=%s prlimit --rttime=unlimited sleep 60 & "
		 "env -i " TREE_VARIABLE "=%s prlimit --rttime=unlimited sleep 60 & "
		 "echo 1; wait",
		 others[0], others[2]);
	assert_int_equal(start(f, argv, f->mark), 0);
	wait_for_it(f);
	while (tree_signal(others[0], false, 0) == 0 || tree_signal(others[2], false, 0) == 0)
		loop_run(f->loop);
	before = tree_n_looks();
	tree_signal_many(wishes, 3, 0);
	assert_int_equal(tree_n_looks(), before + 1);
	assert_int_equal(wishes[0].n, 1);
	assert_int_equal(wishes[1].n, 0);
	assert_int_equal(wishes[2].n, 3);
	tree_signal_many(wishes, 1, SIGKILL);
	while (tree_signal(others[0], false, 0) > 0)
		loop_run(f->loop);
	assert_int_equal(tree_signal(others[2], false, 0), 1);
	assert_int_equal(tree_signal(f->mark, false, 0), 2);
}

/* They have got it by another way. */
TEST(a_group_that_was_told_is_not_told_again)
{
	struct fixture *f = *state;
	struct tree_wish wish = {.mark = f->mark};

	start_runaway(f, "stay", f->mark);
	wish.told_group = wait_for_it(f);
	tree_signal_many(&wish, 1, SIGTERM);
	assert_int_equal(wish.n, 1);
	assert_int_equal(tree_signal(f->mark, false, 0), 1);
	wish.told_group++;
	tree_signal_many(&wish, 1, SIGTERM);
	wait_for_exit(f);
	assert_int_equal(f->signal, SIGTERM);
}

TEST(who_kills_a_mark_spares_itself)
{
	struct fixture *f = *state;

	start_runaway(f, "marked killer", f->mark);
	wait_for_exit(f);
	assert_int_equal(f->status, 7);
}

TEST(marks_are_never_the_same)
{
	char a[TREE_MARK_MAX], b[TREE_MARK_MAX], owner[64];

	assert_int_equal(tree_mark("me", a), 0);
	assert_int_equal(tree_mark("me", b), 0);
	assert_string_not_equal(a, b);
	assert_memory_equal(a, "me-", 3);
	memset(owner, 'x', sizeof(owner));
	owner[TREE_OWNER_MAX] = '\0';
	assert_int_equal(tree_mark(owner, a), 0);
	owner[TREE_OWNER_MAX] = 'x';
	owner[TREE_OWNER_MAX + 1] = '\0';
	assert_int_equal(tree_mark(owner, a), -EINVAL);
	assert_int_equal(tree_mark("", a), -EINVAL);
}

/* As a daemon that starts a child, and is killed by -9. */
static pid_t start_and_die(const char *what, const char *mark, bool die_with_us)
{
	int ends[2], status;
	char text[32] = "";
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct fixture f = {0};
		char variable[TREE_MARK_MAX + 32];
		const char *const argv[] = {"/proc/self/exe", what, NULL};
		const char *const more[] = {variable, NULL};
		const struct child_opts opts = {.argv = argv,
						.more_env = more,
						.die_with_us = die_with_us,
						.grace_ms = LIFE_S * 1000,
						.on_output = on_output,
						.on_exit = on_exited,
						.arg = &f};

		alarm(LIFE_S);
		snprintf(variable, sizeof(variable), TREE_VARIABLE "=%s", mark);
		if (loop_new(&f.loop) != 0 || child_start(f.loop, &opts, &f.child, &f.error) != 0)
			_exit(1);
		while (!memchr(f.out, '\n', f.out_len))
			loop_run(f.loop);
		if (write(ends[1], f.out, f.out_len) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return (pid_t)atoi(text);
}

TEST(child_dies_with_us)
{
	struct fixture *f = *state;
	pid_t pid = start_and_die("stay", f->mark, true);
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(otherwise_it_lives_on)
{
	struct fixture *f = *state;
	pid_t pid = start_and_die("stay", f->mark, false);
	int status;

	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* After a crash: nobody's children any more, and not below us. */
TEST(orphans_of_an_earlier_life_are_found_anywhere)
{
	struct fixture *f = *state;
	char owner[TREE_OWNER_MAX], mark[TREE_MARK_MAX];
	pid_t bare, stubborn;

	snprintf(owner, sizeof(owner), "earlier-%d", (int)getpid());
	assert_int_equal(tree_mark(owner, mark), 0);
	tree_keeper_free(f->keeper);
	f->keeper = NULL;
	bare = start_and_die("bare daemon", mark, true);
	stubborn = start_and_die("stubborn daemon", mark, true);
	assert_int_equal(tree_signal(owner, true, 0), 2);
	assert_int_equal(tree_signal(mark, false, 0), 2);
	kill_until_none(f, owner, true);
	expect_gone(f, bare);
	expect_gone(f, stubborn);
}

TEST(there_is_one_keeper)
{
	struct fixture *f = *state;
	struct tree_keeper *second;
	int is_subreaper = 0;

	assert_int_equal(tree_keeper_new(f->loop, &second), -EBUSY);
	assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper), 0);
	assert_int_equal(is_subreaper, 1);
}

/* Many orphans beside many children of ours: each child has its own exit code, nobody is left. */
TEST(strangers_are_reaped_and_nobody_is_robbed)
{
	enum { N = 150 };
	struct fixture *f = *state, *all = calloc(N, sizeof(*all));

	for (unsigned i = 0; i < N; i++) {
		char script[80];
		const char *const argv[] = {"sh", "-c", script, NULL};

		all[i].loop = f->loop;
		snprintf(script, sizeof(script), "(:) & (sh -c '(:) & exit' & ) & exit %u", i);
		assert_int_equal(start(&all[i], argv, NULL), 0);
	}
	for (unsigned i = 0; i < N; i++) {
		wait_for_exit(&all[i]);
		assert_int_equal(all[i].status, (int)i);
		child_free(all[i].child);
	}
	while (has_children())
		loop_run(f->loop);
	free(all);
}

/* Other threads have loops and children of their own. */
static void *start_some(void *arg)
{
	unsigned *n_wrong = arg;
	struct fixture f = {0};
	const char *const argv[] = {"sh", "-c", "exit 33", NULL};

	if (loop_new(&f.loop) != 0)
		return NULL;
	for (unsigned i = 0; i < 40; i++) {
		f.n_exits = 0;
		if (start(&f, argv, NULL) != 0)
			continue;
		wait_for_exit(&f);
		*n_wrong -= f.status == 33;
		child_free(f.child);
	}
	loop_free(f.loop);
	return NULL;
}

TEST(other_threads_are_not_robbed)
{
	struct fixture *f = *state;
	unsigned n_wrong[3] = {40, 40, 40};
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_some, &n_wrong[i]), 0);
	strangers_are_reaped_and_nobody_is_robbed(state);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(n_wrong[i], 0);
	}
	while (has_children())
		loop_run(f->loop);
}

TEST(beginning_of_a_process_is_its_own)
{
	struct fixture *f = *state;
	long long began;

	start_runaway(f, "stay", f->mark);
	began = child_started(f->child);
	assert_true(began >= tree_started(getpid()));
	assert_int_equal(began, tree_started(child_pid(f->child)));
	assert_true(tree_started(getpid()) > 0);
	assert_int_equal(tree_started(-1), 0);
	assert_int_equal(tree_started(0), 0);
	child_signal(f->child, SIGKILL);
	wait_for_exit(f);
	assert_int_equal(child_started(f->child), began);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return runaway(argv[1]);
	return run_all_tests("tests");
}
