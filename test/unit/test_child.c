/* Children: real programs, their groups, and what they leave behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/child.h"
#include "tempdir.h"

struct fixture {
	struct loop *loop;
	struct timer *timer;
	struct child *child;
	struct child_opts opts;
	const char *argv[4];
	struct why why;
	struct buf out, err;
	unsigned n_exits;
	int status, signal;
	/* What to do when output comes. */
	bool stop_on_output, free_on_output, pause_on_output, child_stop_on_output;
};

static void on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct fixture *f = arg;

	assert_int_equal(f->n_exits, 0);
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

static int start(struct fixture *f)
{
	return child_start(f->loop, &f->opts, &f->child, &f->why);
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

static void output_and_exit_code_arrive(void **state)
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

static void streams_can_be_reopened_by_name(void **state)
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

static void large_input_comes_back_whole(void **state)
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

static void input_that_nobody_reads_does_no_harm(void **state)
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

static void without_input_stdin_is_at_its_end(void **state)
{
	struct fixture *f = *state;

	f->argv[0] = "cat";
	assert_int_equal(start(f), 0);
	loop_run(f->loop);
	assert_int_equal(f->status, 0);
	assert_int_equal(f->out.len, 0);
}

static void missing_program_is_refused_by_name(void **state)
{
	struct fixture *f = *state;

	f->argv[0] = "no-such-program-here";
	assert_int_equal(start(f), REFUSE_NOT_FOUND);
	assert_string_equal(f->why.text, "no such program: no-such-program-here");
	assert_null(f->child);
	f->argv[0] = "";
	assert_int_equal(start(f), REFUSE_NOT_FOUND);
}

static void missing_directory_is_refused_by_name(void **state)
{
	struct fixture *f = *state;

	f->argv[0] = "true";
	f->opts.cwd = "/no/such/place";
	assert_int_equal(start(f), REFUSE_NOT_FOUND);
	assert_string_equal(f->why.text, "no such directory: /no/such/place");
}

static void file_without_permission_is_forbidden(void **state)
{
	struct fixture *f = *state;

	f->argv[0] = "/etc/passwd";
	assert_int_equal(start(f), REFUSE_FORBIDDEN);
	assert_non_null(strstr(f->why.text, "/etc/passwd"));
}

/* Looked up in PATH by a user to whom one of its folders is closed. */
static void missing_program_is_not_found_behind_a_closed_folder(void **state)
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

static void program_in_path_without_permission_is_forbidden(void **state)
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

static void environment_and_directory_are_its_own(void **state)
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

static void leads_a_group_of_its_own(void **state)
{
	struct fixture *f = *state;

	start_script(f, "read x; exit");
	assert_int_equal(getpgid(child_pid(f->child)), child_pid(f->child));
	assert_int_not_equal(getpgid(child_pid(f->child)), getpgid(0));
	loop_run(f->loop);
}

static void inherits_nothing_but_its_streams(void **state)
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

static void ignored_signals_are_not_inherited(void **state)
{
	struct fixture *f = *state;

	signal(SIGPIPE, SIG_IGN);
	start_script(f, "kill -PIPE $$; echo alive");
	loop_run(f->loop);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(f->status, -1);
	assert_int_equal(f->signal, SIGPIPE);
}

static void end_by_signal_is_told(void **state)
{
	struct fixture *f = *state;

	start_script(f, "sleep 1000");
	child_signal(f->child, SIGTERM);
	loop_run(f->loop);
	assert_int_equal(f->status, -1);
	assert_int_equal(f->signal, SIGTERM);
}

static void stop_begins_politely(void **state)
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

static void stop_ends_with_a_kill(void **state)
{
	struct fixture *f = *state;

	f->child_stop_on_output = true;
	start_script(f, "trap '' INT TERM; echo ready; while :; do sleep 0.01; done");
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

static void free_kills_the_whole_group(void **state)
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

static void stop_reaches_those_who_outlive_the_leader(void **state)
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

static void grandchild_with_our_pipe_does_not_hold_us(void **state)
{
	struct fixture *f = *state;

	f->opts.grace_ms = 20;
	start_script(f, "sleep 1000 & echo hi; exit 5");
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->status, 5);
	expect_text(&f->out, "hi\n");
}

static void without_grace_its_own_output_still_arrives(void **state)
{
	struct fixture *f = *state;

	f->opts.grace_ms = 0;
	start_script(f, "sleep 1000 & head -c 60000 /dev/zero; head -c 50000 /dev/zero >&2");
	loop_run(f->loop);
	assert_int_equal(f->n_exits, 1);
	assert_int_equal(f->out.len, 60000);
	assert_int_equal(f->err.len, 50000);
}

static void paused_child_waits_in_its_own_write(void **state)
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

static void output_of_the_dead_waits_while_paused(void **state)
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

static void may_be_freed_from_its_own_output(void **state)
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

static void several_children_do_not_mix(void **state)
{
	struct fixture *f = *state, others[8];

	start_script(f, "read x; echo main");
	for (unsigned i = 0; i < 8; i++) {
		char script[64];

		others[i] = *f;
		others[i].child = NULL;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(output_and_exit_code_arrive),
		TEST(streams_can_be_reopened_by_name),
		TEST(large_input_comes_back_whole),
		TEST(input_that_nobody_reads_does_no_harm),
		TEST(without_input_stdin_is_at_its_end),
		TEST(missing_program_is_refused_by_name),
		TEST(missing_directory_is_refused_by_name),
		TEST(file_without_permission_is_forbidden),
		TEST(missing_program_is_not_found_behind_a_closed_folder),
		TEST(program_in_path_without_permission_is_forbidden),
		TEST(environment_and_directory_are_its_own),
		TEST(leads_a_group_of_its_own),
		TEST(inherits_nothing_but_its_streams),
		TEST(ignored_signals_are_not_inherited),
		TEST(end_by_signal_is_told),
		TEST(stop_begins_politely),
		TEST(stop_ends_with_a_kill),
		TEST(free_kills_the_whole_group),
		TEST(stop_reaches_those_who_outlive_the_leader),
		TEST(grandchild_with_our_pipe_does_not_hold_us),
		TEST(without_grace_its_own_output_still_arrives),
		TEST(paused_child_waits_in_its_own_write),
		TEST(output_of_the_dead_waits_while_paused),
		TEST(may_be_freed_from_its_own_output),
		TEST(several_children_do_not_mix),
	};

	/* Orphans become ours, so that their end can be waited for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* What the caller left open is not what we test. */
	for (int fd = 3; fd < 256; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
