/* The tool that runs a shell command for a limited time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "io/process/supervisor.h"
#include "engine/program/tool_inner.h"

enum { KILL_AFTER_MS = 2000 };

/* Its time begins when it does. */
static void on_started(void *arg, int result, const struct error *error)
{
	struct tool_run *r = arg;

	if (result == 0)
		timer_start(r->timer, (uint64_t)r->seconds * 1000);
	else
		tool_done(r, result, error);
}

static void program_tool_exec_on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct tool_run *r = arg;
	struct buf *b = is_stderr ? &r->err : &r->out;
	size_t room = b->max - b->len;

	/* The rest is read and discarded, so that the command can continue. */
	buf_add(b, data, len < room ? len : room);
}

/* What the command leaves behind ends with it: the user of the tool could not see it. */
static bool sweeps(void *arg, int status, int signal)
{
	return true;
}

static void write_error(struct object_builder *w, const struct tool_run *r, int status, int number)
{
	char text[80];

	if (r->late)
		snprintf(text, sizeof(text), "timed out after %lld s", (long long)r->seconds);
	else if (number != 0)
		snprintf(text, sizeof(text), "killed by signal %d", number);
	else if (status != 0)
		snprintf(text, sizeof(text), "exit status %d", status);
	else
		return;
	object_text(w, "error", text_of(text));
}

/* If it was cut, the last character may be incomplete. */
static struct text kept(const struct buf *b)
{
	struct text t = {.data = b->data ? b->data : "", .len = b->len};

	if (t.len == b->max)
		t.len = utf8_whole(t.data, t.len);
	return t;
}

static void on_exit_of(void *arg, int status, int number)
{
	struct tool_run *r = arg;
	struct object_builder w;

	object_begin(&w, &r->arena);
	object_text(&w, "command", value_text(value_find(r->input, "command")));
	object_int(&w, "timeout", r->seconds);
	if (r->workdir.len > 0)
		object_text(&w, "workdir", r->workdir);
	object_bool(&w, "success", status == 0 && !r->late);
	object_int(&w, "exit_code", status);
	object_text(&w, "stdout", kept(&r->out));
	object_text(&w, "stderr", kept(&r->err));
	write_error(&w, r, status, number);
	r->got.value = w.root;
	tool_done(r, w.err, NULL);
}

static void on_late(void *arg)
{
	struct tool_run *r = arg;

	r->late = true;
	supervised_end(r->program, KILL_AFTER_MS);
}

static int read_input(struct tool_run *r, struct text *ret_command, struct error *error)
{
	double seconds;
	int e = tool_text(r, "command", true, ret_command, error)
			?: tool_text(r, "workdir", false, &r->workdir, error)
			?: tool_number(r, "timeout", 0, &seconds, error);

	if (e != 0)
		return e;
	if (text_find(*ret_command, '\0'))
		return refuse_field(error, "command", "command has a NUL byte");
	if (!(seconds >= 1))
		seconds = TOOL_EXEC_SECONDS;
	r->seconds = seconds > TOOL_EXEC_SECONDS_MAX ? TOOL_EXEC_SECONDS_MAX : (int64_t)seconds;
	return 0;
}

int tool_exec_start(struct tool_run *r, struct error *error)
{
	struct tools *t = r->tools;
	const char *cwd = t->folder;
	struct supervised_opts opts = {.mark = r->mark,
				       .what = "tool=exec",
				       .on_started = on_started,
				       .on_output = program_tool_exec_on_output,
				       .sweeps = sweeps,
				       .on_exit = on_exit_of,
				       .arg = r};
	const char *argv[] = {"/bin/sh", "-c", "--", NULL, NULL};
	struct text command;
	int e = read_input(r, &command, error);

	if (e == 0 && r->workdir.len > 0)
		e = tool_path_folder(r, r->workdir, &cwd, error);
	if (e == 0 && !t->opts.owner)
		e = refuse(error, REFUSE_UNAVAILABLE, "the program supervisor is not running");
	if (e == 0)
		e = tree_mark(t->opts.owner, r->mark);
	if (e == 0)
		e = timer_new(t->opts.loop, on_late, r, &r->timer);
	if (e != 0)
		return e;
	argv[3] = arena_copy(&r->arena, command.data, command.len);
	if (!argv[3])
		return -ENOMEM;
	opts.argv = argv;
	opts.base = t->opts.env;
	opts.cwd = cwd;
	return supervised_start(t->opts.loop, &opts, &r->program, error);
}
