/* Children: real programs, their groups, and what they leave behind. */

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/process/child.h"
#include "tempdir.h"

/* Whether children are started beside the loop. */
static bool aside;

struct fixture {
	struct loop *loop;
	struct timer *timer;
	struct child *child;
	struct child_opts opts;
	const char *argv[4];
	struct error error;
	struct buf out, err;
	unsigned n_started;
	int start_result;
	unsigned n_exits;
	int status, signal;
	/* What to do when output comes. */
	bool stop_on_output, free_on_output, pause_on_output, child_stop_on_output;
};

static void on_started(void *arg, int result, const struct error *error)
{
	struct fixture *f = arg;

	f->n_started++;
	f->start_result = result;
	if (result != 0)
		f->error = *error;
	loop_stop(f->loop);
}

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct fixture *f = arg;

	assert_int_equal(f->n_exits, 0);
	assert_int_equal(f->n_started, f->opts.on_started ? 1 : 0);
	buf_add(is_stderr ? &f->err : &f->out, data, len);
	if (f->pause_on_output)
		child_read(f->child, false);
	if (f->child_stop_on_output)
		child_stop(f->child, 1, 1);
	if (f->free_on_output) {
		child_free(f->child);
		f->child = NULL;
	}
	if (f->stop_on_output)
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

static void on_timer(void *arg)
{
	struct fixture *f = arg;

	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(timer_new(f->loop, on_timer, f, &f->timer), 0);
	buf_init(&f->out, 8 << 20);
	buf_init(&f->err, 8 << 20);
	f->opts = (struct child_opts) {.argv = f->argv,
				       .on_output = on_output,
				       .on_exit = on_exited,
				       .grace_ms = 10000,
				       .arg = f};
	*state = f;
	return 0;
}

/* No test may leave a process: not a child, nor an orphan that became one. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	child_free(f->child);
	timer_free(f->timer);
	loop_free(f->loop);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(errno, ECHILD);
	buf_done(&f->out);
	buf_done(&f->err);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static int start(struct fixture *f)
{
	int r;

	f->opts.on_started = aside ? on_started : NULL;
	f->n_started = 0;
	r = child_start(f->loop, &f->opts, &f->child, &f->error);
	if (r != 0 || !aside)
		return r;
	assert_int_equal(f->n_started, 0);
	assert_int_equal(child_pid(f->child), 0);
	while (f->n_started == 0)
		loop_run(f->loop);
	assert_int_equal(f->n_started, 1);
	if (f->start_result != 0) {
		child_free(f->child);
		f->child = NULL;
	}
	return f->start_result;
}

static void start_script(struct fixture *f, const char *script)
{
	f->argv[0] = "sh";
	f->argv[1] = "-c";
	f->argv[2] = script;
	assert_int_equal(start(f), 0);
}

static void expect_text(struct buf *b, const char *text)
{
	assert_int_equal(b->err, 0);
	buf_add_char(b, '\0');
	assert_string_equal(b->data, text);
}

TEST(output_and_exit_code_arrive)
{
	struct fixture *f = *state;

	start_script(f, "printf out; printf err >&2; exit 3");
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->status, 3);
	assert_int_equal(f->signal, 0);
	expect_text(&f->out, "out");
	expect_text(&f->err, "err");
}

TEST(streams_can_be_reopened_by_name)
{
	struct fixture *f = *state;

	f->opts.input = "given";
	f->opts.input_len = 5;
	start_script(f, "cat /dev/stdin > /dev/stdout && echo well > /dev/stderr");
	loop_run(f->loop);
	assert_int_equal(f->status, 0);
	expect_text(&f->out, "given");
	expect_text(&f->err, "well\n");
}

TEST(large_input_comes_back_whole)
{
	struct fixture *f = *state;
	enum { LEN = 3 << 20 };
	char *input = malloc(LEN);

	for (unsigned i = 0; i < LEN; i++)
		input[i] = (char)(i * 31 + i / 1009);
	f->opts.input = input;
	f->opts.input_len = LEN;
	f->argv[0] = "cat";
	assert_int_equal(start(f), 0);
	loop_run(f->loop);
	assert_int_equal(f->status, 0);
	assert_int_equal(f->out.len, LEN);
	assert_memory_equal(f->out.data, input, LEN);
	free(input);
}

TEST(input_that_nobody_reads_does_no_harm)
{
	struct fixture *f = *state;
	char *input = calloc(1, 1 << 20);

	f->opts.input = input;
	f->opts.input_len = 1 << 20;
	f->argv[0] = "true";
	assert_int_equal(start(f), 0);
	free(input);
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->status, 0);
}

TEST(without_input_stdin_is_at_its_end)
{
	struct fixture *f = *state;

	f->argv[0] = "cat";
	assert_int_equal(start(f), 0);
	loop_run(f->loop);
	assert_int_equal(f->status, 0);
	assert_int_equal(f->out.len, 0);
}

TEST(missing_program_is_refused_by_name)
{
	struct fixture *f = *state;

	f->argv[0] = "no-such-program-here";
	assert_int_equal(start(f), REFUSE_NOT_FOUND);
	assert_string_equal(f->error.text, "no such program: no-such-program-here");
	assert_null(f->child);
	f->argv[0] = "";
	assert_int_equal(start(f), REFUSE_NOT_FOUND);
}

TEST(missing_directory_is_refused_by_name)
{
	struct fixture *f = *state;

	f->argv[0] = "true";
	f->opts.cwd = "/no/such/place";
	assert_int_equal(start(f), REFUSE_NOT_FOUND);
	assert_string_equal(f->error.text, "no such directory: /no/such/place");
}

TEST(file_without_permission_is_forbidden)
{
	struct fixture *f = *state;

	f->argv[0] = "/etc/passwd";
	assert_int_equal(start(f), REFUSE_FORBIDDEN);
	assert_non_null(strstr(f->error.text, "/etc/passwd"));
}

/* Looked up in PATH by a user to whom one of its folders is closed. */
TEST(missing_program_is_not_found_behind_a_closed_folder)
{
	struct fixture *f = *state;
	char dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 32];
	const char *env[] = {path, NULL};
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	tempdir_make(dir);
	snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", dir);
	f->opts.env = env;
	f->argv[0] = "no-such-program-here";
	pid = fork();
	if (pid == 0)
		_exit(setuid(65534) == 0 && loop_new(&f->loop) == 0 ? start(f) : 99);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), REFUSE_NOT_FOUND);
	tempdir_remove(dir);
}

TEST(program_in_path_without_permission_is_forbidden)
{
	struct fixture *f = *state;
	char dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 32], file[TEMPDIR_MAX + 8];
	const char *env[] = {path, NULL};

	tempdir_make(dir);
	snprintf(file, sizeof(file), "%s/prog", dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "PATH=/bin:%s", dir);
	f->opts.env = env;
	f->argv[0] = "prog";
	assert_int_equal(start(f), REFUSE_FORBIDDEN);
	tempdir_remove(dir);
}

TEST(environment_and_directory_are_its_own)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "X=from us", NULL};
	struct fixture *f = *state;

	setenv("KOINE_TEST", "ours", 1);
	f->opts.env = env;
	f->opts.cwd = "/";
	start_script(f, "echo \"$X,$KOINE_TEST\"; pwd");
	assert_string_equal(getenv("KOINE_TEST"), "ours");
	loop_run(f->loop);
	expect_text(&f->out, "from us,\n/\n");
}

TEST(more_environment_replaces_and_adds)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "A=1", "AB=2", "C=3", NULL};
	static const char *const more[] = {"A=new", "D=4", NULL};
	struct fixture *f = *state;

	f->opts.env = env;
	f->opts.more_env = more;
	start_script(f, "echo \"$A,$AB,$C,$D\"; env | grep -c ^A=");
	loop_run(f->loop);
	expect_text(&f->out, "new,2,3,4\n1\n");
}

TEST(more_environment_joins_ours)
{
	static const char *const more[] = {"KOINE_TEST_MORE=x", NULL};
	struct fixture *f = *state;

	setenv("KOINE_TEST", "ours", 1);
	f->opts.more_env = more;
	start_script(f, "echo \"$KOINE_TEST,$KOINE_TEST_MORE\"");
	loop_run(f->loop);
	expect_text(&f->out, "ours,x\n");
}

TEST(of_one_name_the_last_counts)
{
	static const char *const env[] = {"A=1", "B=2", "A=3", "C=4", NULL};
	static const char *const more[] = {"PATH=/nowhere",      "B=5", "D=6", "B=7",
					   "PATH=/usr/bin:/bin", NULL};
	struct fixture *f = *state;

	f->opts.env = env;
	f->opts.more_env = more;
	f->argv[0] = "env";
	assert_int_equal(start(f), 0);
	loop_run(f->loop);
	expect_text(&f->out, "A=3\nC=4\nD=6\nB=7\nPATH=/usr/bin:/bin\n");
}

static const char *printed_pwd(struct fixture *f, const char *cwd, const char *const *more)
{
	f->opts.cwd = cwd;
	f->opts.more_env = more;
	f->argv[0] = "printenv";
	f->argv[1] = "PWD";
	buf_clear(&f->out);
	f->n_exits = 0;
	assert_int_equal(start(f), 0);
	loop_run(f->loop);
	child_free(f->child);
	f->child = NULL;
	buf_add_char(&f->out, '\0');
	return f->out.data;
}

TEST(pwd_names_the_folder_that_it_is_in)
{
	static const char *const whole[] = {"PATH=/usr/bin:/bin", "PWD=/usr", NULL};
	static const char *const more[] = {"PWD=/given", NULL};
	struct fixture *f = *state;

	setenv("PWD", "/ours", 1);
	assert_string_equal(printed_pwd(f, NULL, NULL), "/ours\n");
	assert_string_equal(printed_pwd(f, "/etc", NULL), "/etc\n");
	assert_string_equal(printed_pwd(f, "/etc", more), "/given\n");
	unsetenv("PWD");
	assert_string_equal(printed_pwd(f, "/etc", NULL), "/etc\n");
	/* An environment that was copied from ours has ours. */
	f->opts.env = whole;
	assert_string_equal(printed_pwd(f, "/etc", NULL), "/etc\n");
}

static void make_program(const char *file, const char *text)
{
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* As execvp does it; PATH may come last, and names places that are none. */
TEST(script_without_first_line_runs_in_a_shell)
{
	struct fixture *f = *state;
	char dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 64], file[TEMPDIR_MAX + 8];
	const char *more[] = {path, NULL};
	int r;

	tempdir_make(dir);
	snprintf(file, sizeof(file), "%s/prog", dir);
	make_program(file, "echo \"$1,$#\"\n");
	snprintf(path, sizeof(path), "PATH=/no/such:/etc/passwd:%s:/bin", dir);
	f->opts.more_env = more;
	f->argv[0] = "prog";
	f->argv[1] = "an argument";
	r = start(f);
	if (r == 0)
		loop_run(f->loop);
	tempdir_remove(dir);
	assert_int_equal(r, 0);
	expect_text(&f->out, "an argument,1\n");
}

TEST(argument_that_is_too_long_is_told_as_such)
{
	struct fixture *f = *state;
	enum { LEN = 1 << 20 };
	char *text = malloc(LEN + 1);
	int r;

	memset(text, 'x', LEN);
	text[LEN] = '\0';
	f->argv[0] = "true";
	f->argv[1] = text;
	r = start(f);
	free(text);
	assert_int_equal(r, -E2BIG);
}

TEST(closed_directory_is_forbidden)
{
	struct fixture *f = *state;
	char dir[TEMPDIR_MAX];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	tempdir_make(dir);
	f->opts.cwd = dir;
	f->argv[0] = "true";
	pid = fork();
	if (pid == 0)
		_exit(setuid(65534) == 0 && loop_new(&f->loop) == 0 ? start(f) : 99);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	tempdir_remove(dir);
	assert_int_equal(WEXITSTATUS(status), REFUSE_FORBIDDEN);
}

/* Then our own ends of its pipes have the numbers that are its. */
TEST(works_where_our_own_streams_are_closed)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		close(0);
		close(1);
		close(2);
		f->argv[0] = "sh";
		f->argv[1] = "-c";
		f->argv[2] = "cat; echo err >&2";
		f->opts.input = "in";
		f->opts.input_len = 2;
		if (loop_new(&f->loop) != 0 || start(f) != 0)
			_exit(1);
		loop_run(f->loop);
		_exit(f->out.len == 2 && f->err.len == 4 && f->status == 0 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(leads_a_group_of_its_own)
{
	struct fixture *f = *state;

	start_script(f, "read x; exit");
	assert_int_equal(getpgid(child_pid(f->child)), child_pid(f->child));
	assert_int_not_equal(getpgid(child_pid(f->child)), getpgid(0));
	loop_run(f->loop);
}

TEST(inherits_nothing_but_its_streams)
{
	struct fixture *f = *state;

	f->opts.input = "";
	f->argv[0] = "ls";
	f->argv[1] = "/proc/self/fd";
	assert_int_equal(start(f), 0);
	loop_run(f->loop);
	/* 3 is the folder being listed. */
	expect_text(&f->out, "0\n1\n2\n3\n");
}

TEST(ignored_signals_are_not_inherited)
{
	struct fixture *f = *state;

	signal(SIGPIPE, SIG_IGN);
	start_script(f, "kill -PIPE $$; echo alive");
	loop_run(f->loop);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(f->status, -1);
	assert_int_equal(f->signal, SIGPIPE);
}

TEST(blocked_signals_are_not_inherited)
{
	struct fixture *f = *state;
	sigset_t set, before, after;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	start_script(f, "kill -TERM $$; echo alive");
	sigprocmask(SIG_SETMASK, &before, &after);
	loop_run(f->loop);
	assert_int_equal(f->signal, SIGTERM);
	/* And ours are what they were. */
	assert_int_equal(sigismember(&after, SIGTERM), 1);
	assert_int_equal(sigismember(&after, SIGINT), 0);
}

TEST(no_descriptor_is_inherited_that_lacks_the_flag)
{
	struct fixture *f = *state;
	int fd = dup(0);

	f->argv[0] = "ls";
	f->argv[1] = "/proc/self/fd";
	assert_int_equal(start(f), 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
	loop_run(f->loop);
	expect_text(&f->out, "0\n1\n2\n3\n");
}

TEST(end_by_signal_is_told)
{
	struct fixture *f = *state;

	start_script(f, "sleep 1000");
	child_signal(f->child, SIGTERM);
	loop_run(f->loop);
	assert_int_equal(f->status, -1);
	assert_int_equal(f->signal, SIGTERM);
}

TEST(stop_begins_politely)
{
	struct fixture *f = *state;

	f->stop_on_output = true;
	start_script(f, "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done");
	loop_run(f->loop);
	child_stop(f->child, 60000, 60000);
	f->stop_on_output = false;
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->status, 7);
}

TEST(stop_ends_with_a_kill)
{
	struct fixture *f = *state;

	f->child_stop_on_output = true;
	start_script(f, "trap '' INT TERM; echo ready; while :; do sleep 0.01; done");
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->signal, SIGKILL);
}

TEST(terminate_begins_with_sigterm)
{
	struct fixture *f = *state;

	f->stop_on_output = true;
	start_script(f,
		     "trap 'exit 6' INT; trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; "
		     "done");
	loop_run(f->loop);
	child_terminate(f->child, 60000);
	/* The first counts. */
	child_stop(f->child, 0, 0);
	f->stop_on_output = false;
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->status, 8);
}

TEST(terminate_ends_with_a_kill)
{
	struct fixture *f = *state;

	f->stop_on_output = true;
	start_script(f, "trap '' TERM; echo ready; while :; do sleep 0.01; done");
	loop_run(f->loop);
	f->stop_on_output = false;
	child_terminate(f->child, 1);
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->signal, SIGKILL);
}

/* The number that a script printed. */
static pid_t printed_pid(struct fixture *f)
{
	buf_add_char(&f->out, '\0');
	return (pid_t)atoi(f->out.data);
}

TEST(free_kills_the_whole_group)
{
	struct fixture *f = *state;
	pid_t grandchild;
	int status;

	f->stop_on_output = true;
	start_script(f, "sleep 1000 & echo $!; wait");
	loop_run(f->loop);
	grandchild = printed_pid(f);
	assert_true(grandchild > 0);
	child_free(f->child);
	f->child = NULL;
	/* The orphan is ours to wait for, see main. */
	loop_run(f->loop);
	assert_int_equal(waitpid(grandchild, &status, 0), grandchild);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(f->n_exits, 0);
}

TEST(stop_reaches_those_who_outlive_the_leader)
{
	struct fixture *f = *state;
	pid_t grandchild;
	int status;

	f->stop_on_output = true;
	/* Told by the grandchild itself, when all traps are in place. */
	start_script(
		f, "trap 'exit 7' INT; (trap '' INT TERM; exec sh -c 'echo $$; exec sleep 1000') &"
		   "while :; do sleep 0.01; done");
	loop_run(f->loop);
	grandchild = printed_pid(f);
	f->stop_on_output = false;
	child_stop(f->child, 100, 100);
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(waitpid(grandchild, &status, 0), grandchild);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(grandchild_with_our_pipe_does_not_hold_us)
{
	struct fixture *f = *state;

	f->opts.grace_ms = 20;
	start_script(f, "sleep 1000 & echo hi; exit 5");
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->status, 5);
	expect_text(&f->out, "hi\n");
}

TEST(without_grace_its_own_output_still_arrives)
{
	struct fixture *f = *state;

	f->opts.grace_ms = 0;
	start_script(f, "sleep 1000 & head -c 60000 /dev/zero; head -c 50000 /dev/zero >&2");
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->out.len, 60000);
	assert_int_equal(f->err.len, 50000);
}

TEST(paused_child_waits_in_its_own_write)
{
	struct fixture *f = *state;
	size_t before;

	f->pause_on_output = true;
	f->stop_on_output = true;
	start_script(f, "head -c 2000000 /dev/zero");
	loop_run(f->loop);
	before = f->out.len;
	assert_true(before > 0 && before < 100000);
	timer_start(f->timer, 30);
	loop_run(f->loop);
	assert_int_equal(f->out.len, before);
	assert_int_equal(f->n_exits, 0);
	f->pause_on_output = false;
	f->stop_on_output = false;
	child_read(f->child, true);
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->out.len, 2000000);
}

TEST(output_of_the_dead_waits_while_paused)
{
	struct fixture *f = *state;
	siginfo_t info;

	f->opts.grace_ms = 0;
	start_script(f, "printf last");
	child_read(f->child, false);
	assert_int_equal(waitid(P_PID, (id_t)child_pid(f->child), &info, WEXITED | WNOWAIT), 0);
	timer_start(f->timer, 30);
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 0);
	child_read(f->child, true);
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	expect_text(&f->out, "last");
}

/* Another open file than ours: a program that asks for no such thing must never see EAGAIN. */
TEST(its_own_ends_are_blocking)
{
	struct fixture *f = *state;

	start_script(f, "for fd in 1 2; do while read -r name value; do"
			" test $name != flags: || echo $((value & 04000)); done"
			" < /proc/self/fdinfo/$fd; done");
	loop_run(f->loop);
	expect_text(&f->out, "0\n0\n");
}

/* It makes its end of a pipe non-blocking itself, and does not wait for what is left over. */
TEST(what_node_prints_before_it_exits_arrives)
{
	struct fixture *f = *state;
	siginfo_t info;

	f->argv[0] = "node";
	f->argv[1] = "-e";
	f->argv[2] = "process.stdout.write('o'.repeat(190000) + 'END');"
		     "process.stderr.write('e'.repeat(190000)); process.exit(0)";
	if (start(f) == REFUSE_NOT_FOUND)
		skip();
	child_read(f->child, false);
	assert_int_equal(waitid(P_PID, (id_t)child_pid(f->child), &info, WEXITED | WNOWAIT), 0);
	child_read(f->child, true);
	loop_run(f->loop);
	assert_int_equal(f->status, 0);
	assert_int_equal(f->out.len, 190003);
	assert_int_equal(f->err.len, 190000);
}

TEST(may_be_freed_from_its_own_output)
{
	struct fixture *f = *state;
	pid_t pid;

	f->free_on_output = true;
	start_script(f, "while :; do echo more; done");
	pid = child_pid(f->child);
	loop_run(f->loop);
	assert_null(f->child);
	assert_int_equal(f->n_exits, 0);
	/* The loop ran dry, so it was waited for. */
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

TEST(several_children_do_not_mix)
{
	struct fixture *f = *state, others[8];

	start_script(f, "read x; echo main");
	for (unsigned i = 0; i < 8; i++) {
		char script[64];

		others[i] = *f;
		others[i].child = NULL;
		others[i].n_exits = 0;
		buf_init(&others[i].out, 100);
		buf_init(&others[i].err, 100);
		others[i].opts.argv = others[i].argv;
		others[i].opts.arg = &others[i];
		snprintf(script, sizeof(script), "echo %u; exit %u", i, i);
		start_script(&others[i], script);
	}
	for (unsigned i = 0; i < 8; i++) {
		char text[8];

		while (others[i].n_exits == 0)
			loop_run(f->loop);
		snprintf(text, sizeof(text), "%u\n", i);
		expect_text(&others[i].out, text);
		assert_int_equal(others[i].status, (int)i);
		child_free(others[i].child);
		buf_done(&others[i].out);
		buf_done(&others[i].err);
	}
}

TEST(many_quick_children_leave_nothing)
{
	enum { AT_ONCE = 50 };
	const unsigned n = (unsigned)rounds(500, 2000);
	struct fixture *f = *state, *all = calloc(AT_ONCE, sizeof(*all));
	int first_fd = dup(0), last_fd;

	close(first_fd);
	for (unsigned i = 0; i < n; i++) {
		struct fixture *one = &all[i % AT_ONCE];

		while (one->child && one->n_exits == 0)
			loop_run(f->loop);
		assert_int_equal(one->status, 0);
		child_free(one->child);
		*one = (struct fixture) {.loop = f->loop, .argv = {"true"}, .opts = f->opts};
		one->opts.argv = one->argv;
		one->opts.arg = one;
		assert_int_equal(start(one), 0);
	}
	for (unsigned i = 0; i < AT_ONCE; i++) {
		while (all[i].n_exits == 0)
			loop_run(f->loop);
		child_free(all[i].child);
	}
	loop_run(f->loop);
	free(all);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	last_fd = dup(0);
	close(last_fd);
	/* The loop may have opened its own for signals. */
	assert_true(last_fd <= first_fd + 2);
}

/* ---- a start that takes its time ---- */

static void begin_held(struct fixture *f, const char *script)
{
	child_pause_starts(true);
	f->argv[0] = "sh";
	f->argv[1] = "-c";
	f->argv[2] = script;
	f->opts.on_started = on_started;
	assert_int_equal(child_start(f->loop, &f->opts, &f->child, &f->error), 0);
}

static void release_until_exit(struct fixture *f)
{
	assert_int_equal(f->n_started, 0);
	child_pause_starts(false);
	while (f->n_exits == 0)
		loop_run(f->loop);
	assert_int_equal(f->n_started, 1);
	assert_int_equal(f->start_result, 0);
}

TEST(the_loop_turns_while_one_is_started)
{
	struct fixture *f = *state;

	begin_held(f, "echo done");
	for (int i = 0; i < 3; i++) {
		timer_start(f->timer, 1);
		loop_run(f->loop);
		assert_int_equal(f->n_started, 0);
	}
	/* What it was given may be gone by now. */
	f->argv[2] = NULL;
	release_until_exit(f);
	expect_text(&f->out, "done\n");
}

TEST(what_is_asked_before_the_start_is_done_after_it)
{
	struct fixture *f = *state;

	begin_held(f, "trap '' INT; kill -INT $$; sleep 60");
	child_stop(f->child, 1, 60000);
	child_stop(f->child, 60000, 60000);
	release_until_exit(f);
	assert_true(f->signal == SIGTERM || f->signal == SIGINT);
}

TEST(a_pause_before_the_start_holds_after_it)
{
	struct fixture *f = *state;

	begin_held(f, "echo said; exit 3");
	child_read(f->child, false);
	child_pause_starts(false);
	while (f->n_started == 0)
		loop_run(f->loop);
	timer_start(f->timer, 20);
	loop_run(f->loop);
	assert_int_equal(f->out.len, 0);
	child_read(f->child, true);
	while (f->n_exits == 0)
		loop_run(f->loop);
	assert_int_equal(f->status, 3);
	expect_text(&f->out, "said\n");
}

TEST(freed_before_the_start_it_is_killed_after_it)
{
	struct fixture *f = *state;

	begin_held(f, "sleep 60");
	child_free(f->child);
	f->child = NULL;
	child_pause_starts(false);
	/* The teardown waits until it is gone. */
}

/* From here on the kernel is one without pidfd_open. */
static int forget_pidfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 4, .filter = rules};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -errno;
}

int main(void)
{
	int n_failed;

	/* Orphans become ours, so that their end can be waited for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* What the caller left open is not what we test. */
	for (int fd = 3; fd < 256; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	n_failed = run_all_tests("children");
	aside = true;
	n_failed += run_all_tests("children beside the loop");
	aside = false;
	if (forget_pidfd() == 0)
		n_failed += run_all_tests("children by SIGCHLD");
	return n_failed;
}
