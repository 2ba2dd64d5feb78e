/*
 * Programs that outlive their time, or their daemon, and the guard that ends them.
 *
 * Guards, daemons and programs are this very program, called by the name of what it is to do. A
 * program writes down again and again when it last lived. Each ends by itself after a while,
 * should a test leave it.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "children.h"
#include "io/process/child.h"
#include "io/process/guard.h"
#include "io/process/tree.h"
#include "tempdir.h"

enum {
	LIFE_S = 120,
	HOUR_MS = 3600 * 1000,
	LIMIT_MS = 300,
	/* Much more than the guard needs, and much less than a program that is left alone lives. */
	LATEST_MS = 60 * 1000,
	OUT_MAX = 4096,
};

/* The members of a family; when each last lived, in a file that all have in memory. */
enum { PARENT, LEFT_SESSION, WITHOUT_ENVIRONMENT, WITHOUT_LIMIT, N_BEATS };

static _Atomic uint64_t *map_beats(const char *path)
{
	size_t size = N_BEATS * sizeof(uint64_t);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *beats = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		beats = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (beats == MAP_FAILED)
		abort();
	close(fd);
	return beats;
}

/* ---- programs ---- */

static void beat(const char *path, unsigned who)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	_Atomic uint64_t *beats = map_beats(path);

	alarm(LIFE_S);
	for (;;) {
		atomic_store(&beats[who], clock_boot_ms());
		nanosleep(&pause, NULL);
	}
}

/* In a process that has left its parent, its group and its session. */
static bool daemonise(void)
{
	if (fork() != 0)
		return false;
	setsid();
	if (fork() != 0)
		_exit(0);
	return true;
}

static void family(const char *path)
{
	const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	char *argv[] = {(char *)(uintptr_t) "beat", (char *)(uintptr_t) "beat",
			(char *)(uintptr_t)path, NULL};
	char *empty[] = {NULL};

	signal(SIGTERM, SIG_IGN);
	if (daemonise())
		beat(path, LEFT_SESSION);
	if (daemonise()) {
		execve("/proc/self/exe", argv, empty);
		_exit(99);
	}
	if (daemonise()) {
		setrlimit(RLIMIT_RTTIME, &none);
		beat(path, WITHOUT_LIMIT);
	}
	beat(path, PARENT);
}

/* ---- a daemon, or a test in its place ---- */

struct fixture {
	struct loop *loop;
	struct timer *tick;
	struct tree_keeper *keeper;
	struct guard *guard;
	struct child *child;
	struct error error;
	char dir[TEMPDIR_MAX];
	char path[TEMPDIR_MAX + 16];
	_Atomic uint64_t *beats;
	char owner[TREE_OWNER_MAX];
	char out[OUT_MAX]; /* of the child */
	size_t out_len;
	unsigned n_ended, n_lost, n_exits, n_started;
	int started, signal;
	const struct cgroup *(*before)(void *fixture); /* on the thread that starts programs */
};

static void on_ended(void *arg, unsigned n)
{
	struct fixture *f = arg;

	f->n_ended++;
}

static void on_lost(void *arg)
{
	struct fixture *f = arg;

	f->n_lost++;
}

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct fixture *f = arg;

	if (is_stderr || f->out_len + len >= OUT_MAX)
		return;
	memcpy(f->out + f->out_len, data, len);
	f->out_len += len;
}

static void on_exited(void *arg, int status, int signal)
{
	struct fixture *f = arg;

	f->n_exits++;
	f->signal = signal;
}

static void on_started(void *arg, int result, const struct error *error)
{
	struct fixture *f = arg;

	f->n_started++;
	f->started = result;
}

static void on_tick(void *arg)
{
	struct fixture *f = arg;

	loop_stop(f->loop);
}

/* Waits for a condition; the test's own time limit ends what never comes. */
#define WAIT_UNTIL(f, condition)                                                                   \
	while (!(condition))                                                                       \
	loop_run((f)->loop)

static int open_fixture(struct fixture *f)
{
	int r = loop_new(&f->loop);

	if (r == 0)
		r = timer_new(f->loop, on_tick, f, &f->tick);
	if (r == 0)
		r = tree_keeper_new(f->loop, &f->keeper);
	if (r == 0)
		timer_repeat(f->tick, 5);
	return r;
}

static int start_guard(struct fixture *f)
{
	const struct guard_opts opts = {
		.owner = f->owner, .on_ended = on_ended, .on_lost = on_lost, .arg = f};

	return guard_start(f->loop, &opts, &f->guard);
}

static int start(struct fixture *f, const char *const *argv, bool marked, bool aside)
{
	char mark[TREE_MARK_MAX] = "", variable[TREE_MARK_MAX + 32];
	const char *more[] = {variable, NULL};
	const struct child_opts opts = {
		.argv = argv,
		.more_env = marked ? more : NULL,
		.cgroup = f->before,
		.on_started = aside ? on_started : NULL,
		.on_output = on_output,
		.on_exit = on_exited,
		.arg = f,
	};
	int r = tree_mark(f->owner, mark);

	snprintf(variable, sizeof(variable), TREE_VARIABLE "=%s", mark);
	return r != 0 ? r : child_start(f->loop, &opts, &f->child, &f->error);
}

static int start_family(struct fixture *f, bool aside)
{
	const char *const argv[] = {"/proc/self/exe", "family", f->path, NULL};

	return start(f, argv, true, aside);
}

/* All of them were alive after that. */
static bool lived_after(const struct fixture *f, uint64_t ms)
{
	for (unsigned i = 0; i < N_BEATS; i++) {
		if (atomic_load(&f->beats[i]) <= ms)
			return false;
	}
	return true;
}

static uint64_t last_beat(const struct fixture *f)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < N_BEATS; i++) {
		uint64_t ms = atomic_load(&f->beats[i]);

		last = ms > last ? ms : last;
	}
	return last;
}

/* With a guard and a family: says so, and what time it has given them; then goes on, as a daemon
 * would, until it is killed. */
static int be_daemon(const char *owner, const char *path, uint64_t limit_ms)
{
	struct fixture f = {.beats = map_beats(path)};
	uint64_t until_ms;

	alarm(LIFE_S);
	snprintf(f.owner, sizeof(f.owner), "%s", owner);
	snprintf(f.path, sizeof(f.path), "%s", path);
	if (open_fixture(&f) != 0 || start_guard(&f) != 0 || start_family(&f, false) != 0)
		return 1;
	WAIT_UNTIL(&f, lived_after(&f, 0));
	until_ms = clock_boot_ms() + limit_ms;
	guard_renew(f.guard, until_ms);
	dprintf(1, "%d %llu\n", guard_pid(f.guard), (unsigned long long)until_ms);
	WAIT_UNTIL(&f, f.n_ended > 0);
	dprintf(1, "ended\n");
	WAIT_UNTIL(&f, false);
	return 0;
}

static int setup(void **state)
{
	static unsigned n_tests;
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/beats", f->dir);
	snprintf(f->owner, sizeof(f->owner), "guard%d.%u", (int)getpid(), n_tests++);
	f->beats = map_beats(f->path);
	assert_int_equal(open_fixture(f), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	guard_free(f->guard);
	kill_all_below(f->loop);
	child_free(f->child);
	WAIT_UNTIL(f, !has_children());
	timer_free(f->tick);
	tree_keeper_free(f->keeper);
	loop_free(f->loop);
	munmap((void *)(uintptr_t)f->beats, N_BEATS * sizeof(*f->beats));
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static unsigned n_alive(const struct fixture *f)
{
	return tree_signal(f->owner, true, 0);
}

/* Those that are not our own. */
static unsigned n_guards(const struct fixture *f)
{
	char owner[TREE_OWNER_MAX + 2];

	snprintf(owner, sizeof(owner), "~%s", f->owner);
	return tree_signal(owner, true, 0);
}

static void start_guard_and_family(struct fixture *f)
{
	assert_int_equal(start_guard(f), 0);
	assert_int_equal(start_family(f, false), 0);
	WAIT_UNTIL(f, lived_after(f, 0));
}

static void end_time(struct fixture *f)
{
	unsigned before = f->n_ended;

	guard_renew(f->guard, 1);
	WAIT_UNTIL(f, f->n_ended > before);
}

/* ---- the time ---- */

TEST(renewal_in_time_keeps_programs)
{
	struct fixture *f = *state;
	uint64_t first_ms;

	assert_int_equal(start_guard(f), 0);
	assert_true(guard_allows(f->guard));
	/* Where we stood still in between, it was not in time: then once more. */
	do {
		first_ms = clock_boot_ms() + LIMIT_MS;
		guard_renew(f->guard, first_ms);
		guard_renew(f->guard, first_ms + HOUR_MS);
	} while (clock_boot_ms() >= first_ms);
	WAIT_UNTIL(f, guard_allows(f->guard));
	f->n_ended = 0;
	assert_int_equal(start_family(f, false), 0);
	WAIT_UNTIL(f, lived_after(f, first_ms + LIMIT_MS));
	assert_int_equal(f->n_ended, 0);
	assert_int_equal(n_alive(f), N_BEATS);
	assert_true(guard_allows(f->guard));
}

TEST(without_a_renewal_all_are_ended)
{
	struct fixture *f = *state;
	uint64_t until_ms;

	start_guard_and_family(f);
	until_ms = clock_boot_ms() + LIMIT_MS;
	guard_renew(f->guard, until_ms);
	WAIT_UNTIL(f, f->n_ended > 0);
	assert_int_equal(n_alive(f), 0);
	assert_true(clock_boot_ms() >= until_ms);
	assert_true(last_beat(f) < until_ms + LATEST_MS);
	assert_false(guard_allows(f->guard));
	WAIT_UNTIL(f, f->n_exits > 0);
	assert_int_equal(f->signal, SIGKILL);
	assert_int_equal(kill(guard_pid(f->guard), 0), 0);
}

TEST(late_renewal_saves_nobody_and_then_counts)
{
	struct fixture *f = *state;
	uint64_t ended_ms;
	unsigned n_ended;

	start_guard_and_family(f);
	guard_renew(f->guard, 1);
	guard_renew(f->guard, clock_boot_ms() + HOUR_MS);
	assert_false(guard_allows(f->guard));
	WAIT_UNTIL(f, guard_allows(f->guard));
	assert_true(f->n_ended > 0);
	assert_int_equal(n_alive(f), 0);
	n_ended = f->n_ended;
	ended_ms = clock_boot_ms();
	child_free(f->child);
	assert_int_equal(start_family(f, false), 0);
	WAIT_UNTIL(f, lived_after(f, ended_ms));
	assert_int_equal(f->n_ended, n_ended);
}

TEST(program_started_when_the_time_is_over_is_ended)
{
	struct fixture *f = *state;

	assert_int_equal(start_guard(f), 0);
	end_time(f);
	assert_int_equal(start_family(f, false), REFUSE_UNAVAILABLE);
	assert_int_equal(n_alive(f), 0);
	/* As if all had stood still after the last look at the time. */
	child_begin_until(0);
	assert_int_equal(start_family(f, false), 0);
	WAIT_UNTIL(f, f->n_exits > 0);
	assert_int_equal(f->signal, SIGKILL);
	WAIT_UNTIL(f, n_alive(f) == 0);
}

TEST(start_that_was_asked_for_before_is_cancelled)
{
	struct fixture *f = *state;

	assert_int_equal(start_guard(f), 0);
	child_pause_starts(true);
	assert_int_equal(start_family(f, true), 0);
	end_time(f);
	guard_renew(f->guard, clock_boot_ms() + HOUR_MS);
	WAIT_UNTIL(f, guard_allows(f->guard));
	child_pause_starts(false);
	WAIT_UNTIL(f, f->n_started > 0);
	assert_int_equal(f->started, REFUSE_UNAVAILABLE);
	assert_int_equal(n_alive(f), 0);
}

/* It is asked when it has been found to be allowed. */
static const struct cgroup *stand_still(void *fixture)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct fixture *f = fixture;
	uint64_t until_ms = clock_boot_ms() + 20;

	guard_renew(f->guard, until_ms);
	while (clock_boot_ms() <= until_ms)
		nanosleep(&pause, NULL);
	return NULL;
}

/* A thread may stand still at any point, and the guard looks only now and then. */
TEST(start_that_stood_still_until_the_time_was_over_is_none)
{
	struct fixture *f = *state;

	assert_int_equal(start_guard(f), 0);
	guard_renew(f->guard, clock_boot_ms() + HOUR_MS);
	assert_int_equal(kill(guard_pid(f->guard), SIGSTOP), 0);
	f->before = stand_still;
	assert_int_equal(start_family(f, true), 0);
	WAIT_UNTIL(f, f->n_started > 0);
	assert_int_equal(kill(guard_pid(f->guard), SIGCONT), 0);
	assert_int_equal(f->started, REFUSE_UNAVAILABLE);
	assert_int_equal(last_beat(f), 0);
}

static const struct cgroup *come_back(void *fixture)
{
	struct fixture *f = fixture;

	stand_still(f);
	guard_renew(f->guard, clock_boot_ms() + HOUR_MS);
	return NULL;
}

/* A new time is for what is asked for in it. */
TEST(start_under_an_earlier_time_is_none)
{
	struct fixture *f = *state;

	assert_int_equal(start_guard(f), 0);
	guard_renew(f->guard, clock_boot_ms() + HOUR_MS);
	assert_int_equal(kill(guard_pid(f->guard), SIGSTOP), 0);
	f->before = come_back;
	assert_int_equal(start_family(f, true), 0);
	WAIT_UNTIL(f, f->n_started > 0);
	assert_int_equal(kill(guard_pid(f->guard), SIGCONT), 0);
	assert_int_equal(f->started, REFUSE_UNAVAILABLE);
	WAIT_UNTIL(f, guard_allows(f->guard));
	assert_int_equal(last_beat(f), 0);
	f->before = NULL;
	child_free(f->child);
	assert_int_equal(start_family(f, false), 0);
	WAIT_UNTIL(f, n_alive(f) == N_BEATS);
}

/* ---- the daemon ---- */

static pid_t start_daemon(struct fixture *f, unsigned limit_ms, int *ret_guard, uint64_t *ret_until)
{
	char limit[16];
	const char *const argv[] = {"/proc/self/exe", "daemon", f->owner, f->path, limit, NULL};
	unsigned long long until_ms;

	snprintf(limit, sizeof(limit), "%u", limit_ms);
	assert_int_equal(start(f, argv, false, false), 0);
	WAIT_UNTIL(f, memchr(f->out, '\n', f->out_len) || f->n_exits > 0);
	assert_int_equal(sscanf(f->out, "%d %llu", ret_guard, &until_ms), 2);
	*ret_until = until_ms;
	return child_pid(f->child);
}

TEST(killed_daemon_leaves_nobody)
{
	struct fixture *f = *state;
	uint64_t until_ms;
	int guard;
	pid_t pid = start_daemon(f, HOUR_MS, &guard, &until_ms);

	assert_int_equal(n_alive(f), N_BEATS);
	assert_int_equal(kill(pid, SIGKILL), 0);
	WAIT_UNTIL(f, n_alive(f) == 0);
	WAIT_UNTIL(f, n_guards(f) == 0);
	assert_true(last_beat(f) < until_ms);
}

TEST(stopped_daemon_loses_its_programs_at_the_limit)
{
	struct fixture *f = *state;
	uint64_t until_ms;
	int guard;
	/* It must be stopped before that; if it is not, it has ended them by then all the same. */
	pid_t pid = start_daemon(f, 3 * LIMIT_MS, &guard, &until_ms);

	assert_int_equal(kill(pid, SIGSTOP), 0);
	WAIT_UNTIL(f, n_alive(f) == 0);
	assert_true(clock_boot_ms() >= until_ms);
	assert_true(last_beat(f) < until_ms + LATEST_MS);
	assert_int_equal(n_guards(f), 1);
	/* When it goes on, it is told. */
	assert_int_equal(kill(pid, SIGCONT), 0);
	WAIT_UNTIL(f, memmem(f->out, f->out_len, "ended\n", 6));
	assert_int_equal(f->n_exits, 0);
}

/* It could take the programs of the next for those of the one that it guarded. */
TEST(guard_of_an_earlier_daemon_is_killed)
{
	struct fixture *f = *state;
	uint64_t until_ms;
	int guard;
	pid_t pid = start_daemon(f, HOUR_MS, &guard, &until_ms);

	assert_int_equal(kill(guard, SIGSTOP), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	WAIT_UNTIL(f, f->n_exits > 0);
	assert_int_equal(n_guards(f), 1);
	assert_int_equal(start_guard(f), 0);
	assert_int_equal(n_guards(f), 0);
	WAIT_UNTIL(f, kill(guard, 0) != 0);
}

/* ---- the guard itself ---- */

TEST(guard_is_none_of_our_programs)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct fixture *f = *state;
	int pid;

	start_guard_and_family(f);
	pid = guard_pid(f->guard);
	assert_int_equal(n_alive(f), N_BEATS);
	assert_int_equal(n_below(), N_BEATS);
	assert_int_equal(getsid(pid), pid);
	assert_int_equal(getpgid(pid), pid);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		assert_int_equal(kill(pid, numbers[i]), 0);
	kill_all_below(f->loop);
	end_time(f);
	assert_int_equal(guard_pid(f->guard), pid);
}

static void expect_another(struct fixture *f, int number)
{
	int pid = guard_pid(f->guard);

	assert_int_equal(kill(pid, number), 0);
	guard_renew(f->guard, clock_boot_ms() + 2 * HOUR_MS);
	WAIT_UNTIL(f, guard_pid(f->guard) != pid);
	assert_true(guard_pid(f->guard) > 0);
	assert_int_not_equal(kill(pid, 0), 0);
	assert_int_equal(f->n_lost, 0);
	assert_int_equal(n_alive(f), N_BEATS);
	end_time(f);
	assert_int_equal(n_alive(f), 0);
}

TEST(guard_that_dies_is_replaced)
{
	start_guard_and_family(*state);
	expect_another(*state, SIGKILL);
}

TEST(guard_that_does_not_answer_is_replaced)
{
	start_guard_and_family(*state);
	expect_another(*state, SIGSTOP);
}

/* The new one knows the time that the old one had. */
TEST(replaced_guard_knows_the_time)
{
	struct fixture *f = *state;
	int pid;

	start_guard_and_family(f);
	pid = guard_pid(f->guard);
	/* Stopped, it cannot act on it itself. */
	assert_int_equal(kill(pid, SIGSTOP), 0);
	guard_renew(f->guard, clock_boot_ms() + 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	WAIT_UNTIL(f, f->n_ended > 0);
	assert_int_equal(n_alive(f), 0);
}

TEST(without_another_the_guard_is_lost)
{
	struct fixture *f = *state;
	struct rlimit before, none;

	start_guard_and_family(f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	kill(guard_pid(f->guard), SIGKILL);
	WAIT_UNTIL(f, f->n_lost > 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(guard_pid(f->guard), 0);
	assert_false(guard_allows(f->guard));
	guard_renew(f->guard, clock_boot_ms() + HOUR_MS);
	assert_false(guard_allows(f->guard));
	guard_free(f->guard);
	assert_int_equal(start_guard(f), 0);
	assert_true(guard_allows(f->guard));
	assert_int_equal(f->n_lost, 1);
}

TEST(end_of_the_guard_is_the_end_of_all)
{
	struct fixture *f = *state;
	int pid;

	start_guard_and_family(f);
	pid = guard_pid(f->guard);
	guard_free(f->guard);
	f->guard = NULL;
	assert_int_equal(n_alive(f), 0);
	assert_int_not_equal(kill(pid, 0), 0);
	assert_int_equal(f->n_ended, 0);
}

TEST(owner_must_leave_room_for_its_guard)
{
	struct fixture *f = *state;
	char owner[TREE_OWNER_MAX + 1];
	struct guard_opts opts = {.owner = owner};

	memset(owner, 'x', sizeof(owner));
	owner[TREE_OWNER_MAX] = '\0';
	assert_int_equal(guard_start(f->loop, &opts, &f->guard), -EINVAL);
	owner[0] = '\0';
	assert_int_equal(guard_start(f->loop, &opts, &f->guard), -EINVAL);
}

static int play(int argc, char **argv)
{
	if (strcmp(argv[1], guard_command) == 0)
		return guard_main(argc, argv);
	if (strcmp(argv[1], "family") == 0)
		family(argv[2]);
	else if (strcmp(argv[1], "beat") == 0)
		beat(argv[2], WITHOUT_ENVIRONMENT);
	else if (strcmp(argv[1], "daemon") == 0)
		return be_daemon(argv[2], argv[3], strtoull(argv[4], NULL, 10));
	return 98;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return play(argc, argv);
	return run_all_tests("tests");
}
