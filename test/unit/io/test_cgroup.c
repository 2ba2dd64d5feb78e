/* A control group as a cage; only where this machine lets us have one. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/process/child.h"
#include "io/process/inner.h"
#include "io/process/spawn.h"

struct fixture {
	struct loop *loop;
	struct timer *tick;
	struct child *child;
	struct cgroup *group;
	struct error error;
	char name[64];
	bool has_output;
	bool has_exited;
	int signal;
};

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct fixture *f = arg;

	f->has_output = true;
	loop_stop(f->loop);
}

static void on_exited(void *arg, int status, int signal)
{
	struct fixture *f = arg;

	f->has_exited = true;
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
	int r;

	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(timer_new(f->loop, on_tick, f, &f->tick), 0);
	timer_repeat(f->tick, 5);
	snprintf(f->name, sizeof(f->name), "koine-test-%d", (int)getpid());
	r = cgroup_new(f->name, &f->group);
	assert_true(r == 0 || r == -EOPNOTSUPP);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	child_free(f->child);
	cgroup_free(f->group);
	while (cgroup_sweep(f->name) > 0)
		loop_run(f->loop);
	timer_free(f->tick);
	loop_free(f->loop);
	while (waitpid(-1, NULL, 0) > 0)
		;
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static const struct cgroup *its_group(void *arg)
{
	const struct fixture *f = arg;

	return f->group;
}

static void start_script(struct fixture *f, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const struct child_opts opts = {
		.argv = argv,
		.cgroup = its_group,
		.on_output = on_output,
		.on_exit = on_exited,
		.grace_ms = 60000,
		.arg = f,
	};

	assert_int_equal(child_start(f->loop, &opts, &f->child, &f->error), 0);
	while (!f->has_output)
		loop_run(f->loop);
}

/* One that left its group, its parent and its environment. */
static const char *const run_away = "trap '' INT TERM; (env -i setsid sh -c 'sleep 60 & echo here; "
				    "exec sleep 60' &) ; exec sleep 60";

TEST(kill_reaches_whoever_was_born_in_it)
{
	struct fixture *f = *state;

	if (!f->group)
		skip();
	assert_false(cgroup_is_populated(f->group));
	start_script(f, run_away);
	assert_true(cgroup_is_populated(f->group));
	assert_int_equal(cgroup_kill(f->group), 0);
	while (cgroup_is_populated(f->group) || !f->has_exited)
		loop_run(f->loop);
	assert_int_equal(f->signal, SIGKILL);
}

static int end_at_once(void *arg)
{
	return 0;
}

static bool can_clone_into(const struct cgroup *g)
{
	static char stack[64 * 1024] __attribute__((aligned(16)));
	pid_t told = 0;
	pid_t pid = clone_into(cgroup_folder(g), end_at_once, NULL, stack, sizeof(stack), &told);

	if (pid < 0)
		return false;
	assert_int_equal(told, pid);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return true;
}

/* With the way in that it is given: its folder, or the file that it enters by. */
static void is_in_it_by(const struct cgroup *g, int folder, int file)
{
	const char *const argv[] = {"sleep", "60", NULL};
	struct spawn_opts opts = {.argv = argv, .cgroup_folder = folder, .cgroup = file};
	enum spawn_step step;
	struct spawned s;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		opts.streams[i] = null;
	assert_false(cgroup_is_populated(g));
	assert_int_equal(spawn(&opts, &s, &step), 0);
	assert_true(cgroup_is_populated(g));
	spawn_kill(&s);
	close(s.pidfd);
	close(null);
	while (cgroup_is_populated(g))
		;
}

TEST(a_child_begins_in_it)
{
	struct fixture *f = *state;

	if (!f->group || !can_clone_into(f->group)) {
		print_message("skipped: no child can begin in a cgroup here\n");
		skip();
	}
	is_in_it_by(f->group, cgroup_folder(f->group), 0);
}

TEST(a_child_enters_it_where_it_cannot_begin_there)
{
	struct fixture *f = *state;
	int folder;

	if (!f->group)
		skip();
	is_in_it_by(f->group, 0, cgroup_fd(f->group));
	/* No cgroup at all: the kernel refuses that. */
	folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	is_in_it_by(f->group, folder, cgroup_fd(f->group));
	close(folder);
}

TEST(sweep_ends_what_a_crash_left)
{
	struct fixture *f = *state;
	struct cgroup *again;

	if (!f->group)
		skip();
	start_script(f, run_away);
	/* Not empty, so it stays. */
	cgroup_free(f->group);
	f->group = NULL;
	assert_int_equal(cgroup_new(f->name, &again), -EEXIST);
	while (cgroup_sweep(f->name) > 0)
		loop_run(f->loop);
	while (!f->has_exited)
		loop_run(f->loop);
	assert_int_equal(f->signal, SIGKILL);
	assert_int_equal(cgroup_new(f->name, &f->group), 0);
}

TEST(names_are_names_of_files)
{
	static const char *const names[] = {"", ".", "..", "a/b", ".hidden", "a\nb"};
	struct cgroup *group;

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(cgroup_new(names[i], &group), -EINVAL);
	assert_int_equal(cgroup_sweep(""), 0);
}

/* To a user who may not divide our group it is as if there were none. */
TEST(without_the_right_there_is_none)
{
	struct cgroup *group;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(setuid(65534) == 0 ? -cgroup_new("koine-test-other", &group) : 255);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), EOPNOTSUPP);
}

int main(void)
{
	/* Orphans become ours, so that their end can be waited for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return run_all_tests("tests");
}
