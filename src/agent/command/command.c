/*
 * A program as an agent; see command.h.
 *
 * A turn is its child: it ends when the child has ended and was reaped, whatever ended it.
 * What the sink does with its text may free the agent, and this turn with it.
 */
#include "agent/command/command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/command/inner.h"
#include "agent/command/words.h"
#include "agent/json_lines.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "io/process/child.h"
#include "io/process/confine.h"

enum {
	SOON_MS = 100,    /* that a cancelled turn waits for its program */
	GRACE_MS = 250,   /* for output that others hold open when the program has ended */
	STDERR_MAX = 400, /* bytes kept of its end */
	OUT_MAX = 2 * STREAM_JSON_LINE_MAX,
	OUT_KEEP = 64 * 1024,
};

struct command_agent {
	struct agent agent;
	struct loop *loop;
	char **words;             /* without those for disabled tools */
	char **tool_words;        /* with them; NULL: it has none */
	struct command_opts opts; /* without its texts */
	char *cwd;                /* "" for ours */
	char *state;              /* "": none */
	struct list turns;
	struct list probes;
};

struct agent_turn {
	struct list link;
	struct command_agent *command;
	struct agent_sink sink;
	struct child *child;
	char private_folder[PRIVATE_FOLDER_LEN]; /* "": none */
	struct timer *timeout;                   /* NULL: none */
	struct timer *soon;                      /* of a cancelled turn */
	bool cancelled;
	bool told; /* its end is known; it stays until its program is gone */
	bool timed_out;
	int fault;
	bool telling; /* inside a callback of its text, which may free it */
	bool freed;
	struct command_text text;
	struct stream_json lines;
	struct buf out;
	char stderr_end[STDERR_MAX];
	size_t n_stderr;
	bool stderr_cut;
};

static struct command_agent *command_of(struct agent *a)
{
	return (struct command_agent *)a;
}

/* ---- a turn's life ---- */

static void turn_free(struct agent_turn *t)
{
	if (!t)
		return;
	list_remove(&t->link);
	child_free(t->child);
	timer_free(t->timeout);
	timer_free(t->soon);
	if (t->private_folder[0])
		private_folder_remove(t->command->loop, t->private_folder);
	t->private_folder[0] = '\0';
	t->child = NULL;
	t->timeout = NULL;
	t->soon = NULL;
	t->freed = true;
	if (t->telling)
		return;
	stream_json_done(&t->lines);
	buf_done(&t->out);
	free(t);
}

CLEANUP_POINTER(agent_turn, turn_free)

static void stop(struct agent_turn *t)
{
	child_stop(t->child, t->command->opts.interrupt_ms, t->command->opts.terminate_ms);
}

/* The program takes its time to end; whoever cancelled does not wait for that. */
static void on_soon(void *arg)
{
	struct agent_turn *t = arg;
	const struct agent_end end = {.outcome = AGENT_CANCELLED, .usage = t->lines.usage};

	t->told = true;
	t->sink.on_end(t->sink.arg, &end);
}

static void command_cancel(struct agent_turn *t)
{
	if (t->cancelled)
		return;
	t->cancelled = true;
	stop(t);
	if (timer_new(t->command->loop, on_soon, t, &t->soon) == 0)
		timer_start(t->soon, SOON_MS);
}

static void on_timeout(void *arg)
{
	struct agent_turn *t = arg;

	t->timed_out = true;
	stop(t);
}

/* ---- what it prints ---- */

static bool command_is_over(const struct agent_turn *t)
{
	return t->cancelled || t->timed_out || t->fault != 0;
}

static int command_decode(struct agent_turn *t, const char *data, size_t len)
{
	if (t->command->opts.output == COMMAND_STREAM_JSON)
		return stream_json_feed(&t->lines, data, len, &t->out);
	command_text_feed(&t->text, data, len, &t->out);
	return t->out.err;
}

static int decode_end(struct agent_turn *t)
{
	if (t->command->opts.output == COMMAND_STREAM_JSON)
		return stream_json_finish(&t->lines, &t->out);
	command_text_finish(&t->text, &t->out);
	return t->out.err;
}

/* Hands on what was decoded. False if the turn is gone. */
static bool command_deliver(struct agent_turn *t)
{
	if (t->out.len == 0)
		return true;
	t->telling = true;
	t->sink.on_text(t->sink.arg, buf_bytes(&t->out));
	t->telling = false;
	if (t->freed) {
		turn_free(t);
		return false;
	}
	buf_trim(&t->out, OUT_KEEP);
	return true;
}

static void keep_stderr(struct agent_turn *t, const char *data, size_t len)
{
	size_t over;

	if (len > STDERR_MAX) {
		data += len - STDERR_MAX;
		len = STDERR_MAX;
		t->stderr_cut = true;
	}
	over = t->n_stderr + len > STDERR_MAX ? t->n_stderr + len - STDERR_MAX : 0;
	if (over > 0) {
		t->stderr_cut = true;
		t->n_stderr -= over;
		memmove(t->stderr_end, t->stderr_end + over, t->n_stderr);
	}
	memcpy(t->stderr_end + t->n_stderr, data, len);
	t->n_stderr += len;
}

static void command_on_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct agent_turn *t = arg;

	if (is_stderr) {
		keep_stderr(t, data, len);
		return;
	}
	if (command_is_over(t))
		return;
	t->fault = command_decode(t, data, len);
	if (t->fault != 0)
		child_signal(t->child, SIGKILL);
	command_deliver(t);
}

/* ---- its end ---- */

/* The last lines of stderr joined into one, whole lines if there are any. */
static void add_stderr(struct agent_turn *t, struct buf *out)
{
	struct command_text text = {0};
	const char *from = t->stderr_end;
	const char *end = t->stderr_end + t->n_stderr;
	const char *line = t->stderr_cut ? memchr(from, '\n', t->n_stderr) : NULL;
	size_t start = out->len;

	if (line && line + 1 < end)
		from = line + 1;
	buf_add_str(out, ": ");
	command_text_feed(&text, from, (size_t)(end - from), out);
	command_text_finish(&text, out);
	for (size_t i = start; out->err == 0 && i < out->len; i++) {
		if ((unsigned char)out->data[i] < ' ')
			out->data[i] = ' ';
	}
	while (out->len > start && memchr(" :", out->data[out->len - 1], 2))
		out->len--;
}

/* How it failed, or "" if it did not. */
static const char *failure(struct agent_turn *t, int status, int signal, struct buf *text)
{
	const struct command_agent *c = t->command;

	buf_printf(text, "%s: ", c->agent.name);
	if (t->timed_out) {
		buf_printf(text, "timed out after %.3g s", c->opts.total_timeout_ms / 1000.0);
		return "CommandTimeout";
	}
	if (t->fault != 0)
		buf_add_str(text, t->fault == -ENOMEM
					  ? "out of memory for the command's output"
					  : "the command's output exceeds its size limit");
	else if (t->lines.failed)
		buf_add_str(text, t->lines.error[0]
					  ? t->lines.error
					  : "the program reported an error without a message");
	else if (signal != 0)
		buf_printf(text, "killed by signal %d (%s)", signal, strsignal(signal));
	else if (status != 0)
		buf_printf(text, "exit status %d", status);
	else if (!t->lines.has_text && t->lines.n_known == 0 && t->lines.n_long > 0)
		buf_printf(text, "an output line is longer than %d bytes", STREAM_JSON_LINE_MAX);
	else if (!t->lines.has_text && t->lines.n_known == 0 && t->lines.n_bad > 0)
		buf_printf(text, "output is not stream-json: %u line%s %s not JSON", t->lines.n_bad,
			   t->lines.n_bad == 1 ? "" : "s", t->lines.n_bad == 1 ? "is" : "are");
	else
		return NULL;
	if (t->n_stderr > 0)
		add_stderr(t, text);
	else if (status != 0 && !t->lines.failed && t->lines.error[0])
		buf_printf(text, ": %s", t->lines.error);
	return "CommandError";
}

static void turn_end(struct agent_turn *t, int status, int signal)
{
	const struct agent_sink sink = t->sink;
	struct agent_end end = {.outcome = AGENT_CANCELLED, .usage = t->lines.usage};
	CLEANUP(buf_donep) struct buf text;
	bool told;

	buf_init(&text, 4096);
	if (!t->cancelled) {
		end.type = failure(t, status, signal, &text);
		end.outcome = end.type ? AGENT_FAILED : AGENT_DONE;
	}
	if (end.type) {
		buf_add_char(&text, '\0');
		end.text = text.err == 0 ? text.data
					 : "the command failed; not enough memory for the details";
	}
	told = t->told;
	turn_free(t);
	if (!told)
		sink.on_end(sink.arg, &end);
}

static void on_exited(void *arg, int status, int signal)
{
	struct agent_turn *t = arg;

	if (t->timeout)
		timer_stop(t->timeout);
	if (!command_is_over(t)) {
		t->fault = decode_end(t);
		if (!command_deliver(t))
			return;
	}
	turn_end(t, status, signal);
}

/* ---- its beginning ---- */

static int spawn(struct agent_turn *t, const char *const *argv, struct text prompt,
		 const struct command_place *place, struct error *error)
{
	struct command_agent *c = t->command;
	bool by_stdin = c->opts.input == COMMAND_STDIN;
	const struct child_opts opts = {
		.argv = argv,
		.env = environment_list(c->opts.env),
		.more_env = place->env,
		.cwd = place->cwd,
		.confine = place->confine,
		.input = !by_stdin        ? NULL
			 : prompt.len > 0 ? prompt.data
					  : "",
		.input_len = by_stdin ? prompt.len : 0,
		.on_output = command_on_output,
		.on_exit = on_exited,
		.grace_ms = GRACE_MS,
		/* Nobody hears it any more, and an agent must not go on unseen. */
		.die_with_us = true,
		.arg = t,
	};
	int r = child_start(c->loop, &opts, &t->child, error);

	if (r == REFUSE_NOT_FOUND || r == REFUSE_FORBIDDEN) {
		if (error)
			error->code = REFUSE_UNAVAILABLE;
		return REFUSE_UNAVAILABLE;
	}
	if (r == -E2BIG)
		return refuse(error, REFUSE_TOO_LARGE,
			      "a prompt of %zu bytes is too long for an argument; set input = "
			      "stdin",
			      prompt.len);
	return r;
}

/* Where it runs; needed only until it has started. */
static int spawn_at(struct agent_turn *t, const struct agent_ask *ask, const char *const *argv,
		    struct text prompt, struct error *error)
{
	const struct command_agent *c = t->command;
	CLEANUP(command_place_close) struct command_place place;
	int r = command_place_open(ask, c->cwd, c->state, &place, error);

	if (r != 0)
		return r;
	memcpy(t->private_folder, place.private_folder, sizeof(t->private_folder));
	return spawn(t, argv, prompt, &place, error);
}

/* Another working directory must not turn it into another program. */
static bool is_relative(const char *program)
{
	return program[0] != '/' && strchr(program, '/');
}

static int check_bounds(const struct agent *a, const struct agent_bounds *b, struct error *error)
{
	const struct command_agent *c = (const struct command_agent *)a;
	struct error inner;

	if (b->cwd.data && is_relative(c->words[0]))
		return refuse_field(
			error, "cwd",
			"cwd is not supported for agent '%s', because its program has a relative "
			"path",
			a->name);
	if (b->disabled_tools.data && !c->tool_words)
		return refuse_field(error, "disable_tools",
				    "cannot disable tools: the command of agent '%s' has no "
				    "placeholder " COMMAND_TOOLS,
				    a->name);
	if (b->confined && confine_check(&inner) != 0)
		return refuse_field(error, "preset",
				    "cannot restrict write access of agent '%s' (preset, "
				    "allowed_write_paths): %s",
				    a->name, inner.text);
	return 0;
}

/* The arguments for this conversation; *ret_own must be freed. */
static int choose_words(const struct command_agent *c, const struct agent_bounds *b,
			char ***ret_own, char *const **ret_words)
{
	int r = 0;

	if (b->disabled_tools.data)
		r = command_with_tools(c->tool_words, b->disabled_tools, ret_own);
	*ret_words = *ret_own ? *ret_own : c->words;
	return r;
}

static int start_child(struct agent_turn *t, const struct agent_ask *ask, struct error *error)
{
	struct command_agent *c = t->command;
	CLEANUP(buf_donep) struct buf prompt;
	CLEANUP(freep) char **own = NULL;
	CLEANUP(freep) char **filled = NULL;
	char *const *words;
	char path[PATH_MAX];
	struct text text;
	int r;

	buf_init(&prompt, COMMAND_PROMPT_MAX);
	r = check_bounds(&c->agent, &ask->bounds, error)
		    ?: choose_words(c, &ask->bounds, &own, &words);
	if (r != 0)
		return r;
	command_prompt(ask, c->opts.input == COMMAND_ARGUMENT ? command_room(words) : 0, &prompt);
	if (prompt.err == -EMSGSIZE)
		return refuse(error, REFUSE_TOO_LARGE, "the prompt is longer than %d bytes",
			      COMMAND_PROMPT_MAX);
	if (prompt.err != 0)
		return prompt.err;
	text = buf_bytes(&prompt);
	r = command_find(c->words[0], c->cwd, path, sizeof(path), error);
	if (r == 0 && c->opts.input == COMMAND_ARGUMENT)
		r = command_fill(words, text, &filled, error);
	if (r != 0)
		return r;
	return spawn_at(t, ask, (const char *const *)(filled ? filled : words), text, error);
}

static int command_start(struct agent *a, const struct agent_ask *ask,
			 const struct agent_sink *sink, struct agent_turn **ret_turn,
			 struct error *error)
{
	struct command_agent *c = command_of(a);
	CLEANUP(turn_freep) struct agent_turn *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t)
		return -ENOMEM;
	list_init(&t->link);
	t->command = c;
	t->sink = *sink;
	stream_json_init(&t->lines);
	buf_init(&t->out, OUT_MAX);
	if (c->opts.total_timeout_ms > 0)
		r = timer_new(c->loop, on_timeout, t, &t->timeout);
	if (r == 0)
		r = start_child(t, ask, error);
	if (r != 0)
		return r;
	if (t->timeout)
		timer_start(t->timeout, c->opts.total_timeout_ms);
	list_append(&c->turns, &t->link);
	*ret_turn = TAKE(t);
	return 0;
}

/* ---- the agent ---- */

static int command_probe(struct agent *a, agent_health_fn fn, void *arg)
{
	struct command_agent *c = command_of(a);
	char path[PATH_MAX];
	struct error error;
	bool ok = command_find(c->words[0], c->cwd, path, sizeof(path), &error) == 0;

	return health_later(c->loop, &c->probes, ok, ok ? path : error.text, fn, arg);
}

static void command_free(struct agent *a)
{
	struct command_agent *c = command_of(a);

	while (!list_empty(&c->turns))
		turn_free(list_entry(list_first(&c->turns), struct agent_turn, link));
	health_drop(&c->probes);
	free(c->words);
	free(c->tool_words);
	free(c->cwd);
	free(c->state);
	free(c);
}

static const struct agent_ops command_ops = {
	.kind = "command",
	.check_bounds = check_bounds,
	.start = command_start,
	.cancel = command_cancel,
	.probe = command_probe,
	.free = command_free,
};

static void command_freep(struct command_agent **c)
{
	if (*c)
		command_free(&(*c)->agent);
}

static int take_words(struct command_agent *c, const char *command, struct error *error)
{
	int r = command_split(command, &c->words, NULL, error);

	if (r != 0)
		return r;
	if (strstr(c->words[0], COMMAND_PROMPT) || strstr(c->words[0], COMMAND_TOOLS))
		return refuse(
			error, REFUSE_PARAMS,
			"the first word of the command must be a program, not the placeholder "
			"'%.40s'",
			c->words[0]);
	if (!command_has_tools(c->words))
		return 0;
	c->tool_words = c->words;
	c->words = NULL;
	return command_with_tools(c->tool_words, (struct text) {0}, &c->words);
}

int command_new(struct loop *l, const struct command_opts *opts, struct agent **ret_agent,
		struct error *error)
{
	CLEANUP(command_freep) struct command_agent *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->agent.ops = &command_ops;
	list_init(&c->turns);
	list_init(&c->probes);
	r = take_words(c, opts->command, error);
	if (r != 0)
		return r;
	c->cwd = strdup(opts->cwd ? opts->cwd : "");
	c->state = strdup(opts->state ? opts->state : "");
	if (!c->cwd || !c->state)
		return -ENOMEM;
	snprintf(c->agent.name, sizeof(c->agent.name), "%s", opts->name);
	snprintf(c->agent.model, sizeof(c->agent.model), "%s", c->words[0]);
	c->agent.budget = opts->budget;
	c->agent.reserve = opts->reserve;
	c->loop = l;
	c->opts = *opts;
	c->opts.name = c->opts.command = c->opts.cwd = c->opts.state = NULL;
	*ret_agent = &TAKE(c)->agent;
	return 0;
}

bool agent_is_command(const struct agent *a)
{
	return a->ops == &command_ops;
}

/* A prompt that goes by stdin leaves the arguments as they are. */
static void copy_words(struct argv *a, const void *words)
{
	argv_add_words(a, words);
}

int command_program(const struct agent *a, struct text prompt, struct command_program *ret,
		    struct error *error)
{
	const struct command_agent *c = (const struct command_agent *)a;

	ret->by_stdin = c->opts.input == COMMAND_STDIN;
	ret->cwd = c->cwd;
	ret->env = c->opts.env;
	if (!ret->by_stdin)
		return command_fill(c->words, prompt, &ret->argv, error);
	ret->argv = argv_make(copy_words, c->words);
	return ret->argv ? 0 : -ENOMEM;
}
