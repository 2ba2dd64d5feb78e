/*
 * Chooses what runs a task: its own command; else the agent of the settings that it names; else the
 * project's own program, or the coding agent:
 *
 *	PROGRAM -p [--agent NAME] -- PROMPT
 *
 * A prompt that is too long for an argument is passed on standard input. If there is no such
 * program, the daemon's default agent runs the task, if it is able to do work.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/command/command.h"
#include "agent/command/words.h"
#include "base/buf.h"
#include "base/pack.h"
#include "engine/chat/chat.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "io/process/child.h"
#include "io/process/supervisor.h"

enum { N_OWN_VARIABLES = 4 };

struct program {
	const char **argv; /* one allocation */
	struct text input; /* {NULL, 0}: none */
	struct text cwd;   /* {NULL, 0}: ours */
	struct arena arena;
	const struct environment *base; /* its environment; NULL: ours */
	const char **env;               /* in addition to that */
};

/* ---- commands: a program works on the task, not an agent. Its words are never read by a shell unless they
 * name one. The line that a shell would read the same way is its prompt, for all lists of tasks ---- */

static int check_words(const struct value *words, struct error *error)
{
	size_t total = 0;
	unsigned n = 0;

	if (words->kind != VALUE_ARRAY || words->len == 0)
		return refuse_field(error, "command",
				    "command must be an array of a program and its arguments");
	if (words->len > TASK_WORDS_MAX)
		return refuse_field(error, "command", "command has more than %d elements",
				    TASK_WORDS_MAX);
	value_each (word, words) {
		if (word->kind != VALUE_STRING)
			return refuse_field(error, "command",
					    "command[%u] must be a string, not %s", n,
					    value_kind_name(word));
		if (memchr(word->text, '\0', word->len))
			return refuse_field(error, "command", "command[%u] has a NUL byte", n);
		if (word->len >= COMMAND_WORD_MAX)
			return refuse_field(error, "command", "command[%u] is longer than %d bytes",
					    n, COMMAND_WORD_MAX - 1);
		total += word->len + 1;
		n++;
	}
	if (words->first->len == 0)
		return refuse_field(error, "command", "command[0] is empty");
	if (total > TASK_COMMAND_MAX)
		return refuse_field(error, "command", "command is longer than %d bytes",
				    TASK_COMMAND_MAX);
	return 0;
}

/* ---- as a line ---- */

static bool is_plain(struct text word)
{
	for (size_t i = 0; i < word.len; i++) {
		char c = word.data[i];

		if (!ascii_alnum(c) && !strchr("_@%+=:,./-", c))
			return false;
	}
	return word.len > 0;
}

static void quote(struct buf *out, struct text word)
{
	buf_add_char(out, '\'');
	for (size_t i = 0; i < word.len; i++) {
		if (word.data[i] == '\'')
			buf_add_str(out, "'\\''");
		else
			buf_add_char(out, word.data[i]);
	}
	buf_add_char(out, '\'');
}

static int word_command(struct arena *a, const struct value *words, struct text *ret_line,
			struct error *error)
{
	struct buf line;
	int r = check_words(words, error);

	if (r != 0)
		return r;
	/* A quote becomes four bytes. */
	buf_init(&line, 4 * TASK_COMMAND_MAX + 2 * TASK_WORDS_MAX);
	value_each (word, words) {
		if (word != words->first)
			buf_add_char(&line, ' ');
		if (is_plain(value_text(word)))
			buf_add(&line, word->text, word->len);
		else
			quote(&line, value_text(word));
	}
	r = line.err
		    ?: arena_copy_text(a, (struct text) {.data = line.data, .len = line.len},
				       ret_line);
	buf_done(&line);
	return r;
}

/* ---- as a program ---- */

static int command_argv(struct arena *a, struct text packed, const char ***ret_argv)
{
	struct value *words;
	const char **argv;
	unsigned n = 0;
	int r = value_unpack(a, packed, &words);

	if (r != 0)
		return r;
	/* What this program has not written may be anything. */
	if (words->kind != VALUE_ARRAY || words->len == 0 || words->len > TASK_WORDS_MAX)
		return -EBADMSG;
	argv = calloc(words->len + 1, sizeof(argv[0]));
	if (!argv)
		return -ENOMEM;
	value_each (word, words) {
		argv[n] = word->kind == VALUE_STRING ? arena_copy(a, word->text, word->len) : NULL;
		if (!argv[n++]) {
			free((void *)argv);
			return -ENOMEM;
		}
	}
	*ret_argv = argv;
	return 0;
}

/* ---- programs ---- */

static const char *const coding_agent[] = {CODING_AGENT, NULL};

static void program_done(struct program *p)
{
	free((void *)p->argv);
	p->argv = NULL;
	arena_done(&p->arena);
}

/* "NAME=VALUE" */
static int add_variable(struct program *p, unsigned *n, const char *name, struct text value)
{
	size_t length = strlen(name);
	char *at = arena_alloc(&p->arena, length + value.len + 2);

	if (!at)
		return -ENOMEM;
	memcpy(at, name, length);
	at[length] = '=';
	memcpy(at + length + 1, value.data, value.len);
	at[length + 1 + value.len] = '\0';
	p->env[(*n)++] = at;
	return 0;
}

static unsigned count_variables(struct text env)
{
	struct text variable;
	unsigned n = 0;

	while (member_next_variable(&env, &variable))
		n++;
	return n;
}

static int set_env(struct program *p, const struct live *l)
{
	const struct task *row = &l->task;
	struct text env = row->env;
	struct text variable;
	char attempt[24];
	unsigned n = 0;
	int r;

	p->env = arena_zalloc(&p->arena, (count_variables(row->env) + N_OWN_VARIABLES + 1) *
						 sizeof(p->env[0]));
	if (!p->env)
		return -ENOMEM;
	while (member_next_variable(&env, &variable)) {
		char *copy = arena_copy(&p->arena, variable.data, variable.len);

		if (!copy)
			return -ENOMEM;
		p->env[n++] = copy;
	}
	/* Ours come last: if a name occurs twice, the program gets the last value. */
	r = add_variable(p, &n, "KOINE_TASK", row->id)
		    ?: add_variable(p, &n, "KOINE_PROJECT", l->project->name);
	snprintf(attempt, sizeof(attempt), "%lld", (long long)row->attempts);
	if (r == 0)
		r = add_variable(p, &n, "KOINE_ATTEMPT", text_of(attempt));
	if (r == 0 && row->host.data)
		r = add_variable(p, &n, "KOINE_HOST", row->host);
	return r;
}

struct layout {
	const char *const *words; /* of the program */
	struct text agent;
	struct text prompt;
	bool by_stdin;
};

/* A prompt may come from a stranger: after "--" it cannot be an option, however it starts. */
static void lay_out(struct argv *a, const void *arg)
{
	const struct layout *l = arg;

	argv_add_words(a, l->words);
	argv_add(a, TEXT("-p"));
	argv_add_flag(a, "--agent", l->agent);
	if (l->by_stdin)
		return;
	argv_add(a, TEXT("--"));
	argv_add(a, l->prompt);
}

static int fill_coding_agent(struct program *p, const char *const *words, const struct live *l,
			     struct text prompt)
{
	const struct layout layout = {.words = words,
				      .agent = l->task.agent,
				      .prompt = prompt,
				      .by_stdin = prompt.len >= COMMAND_WORD_MAX};

	p->argv = (const char **)argv_make(lay_out, &layout);
	if (layout.by_stdin)
		p->input = prompt;
	return p->argv ? 0 : -ENOMEM;
}

static int fill_command(struct program *p, const struct agent *agent, struct text prompt,
			struct error *error)
{
	struct command_program command;
	int r = command_program(agent, prompt, &command, error);

	if (r != 0)
		return r;
	p->argv = (const char **)command.argv;
	if (command.by_stdin)
		p->input = prompt;
	if (command.cwd[0])
		p->cwd = text_of(command.cwd);
	p->base = command.env;
	return 0;
}

static bool in_path(const char *program)
{
	char path[4096];

	return command_find(program, "", path, sizeof(path), NULL) == 0;
}

/* An agent of the settings, by either of the names that a client may use; NULL: none. */
static struct agent *named_agent(const struct tasks *t, const struct task *row)
{
	if (row->runner.data && !text_is(row->runner, CODING_AGENT))
		return chat_agent(t->chat, row->runner);
	if (!row->runner.data && row->agent.data)
		return chat_agent(t->chat, row->agent);
	return NULL;
}

/* *ret_agent is NULL if the coding agent's own program runs the task. */
static int choose_agent(const struct tasks *t, const struct task *row,
			const struct project *project, struct agent **ret_agent,
			struct error *error)
{
	struct text runner = row->runner;
	bool for_coding_agent = !runner.data || text_is(runner, CODING_AGENT);

	*ret_agent = named_agent(t, row);
	if (*ret_agent || (project->program && for_coding_agent))
		return 0;
	if (!runner.data && t->runner[0]) {
		runner = text_of(t->runner);
		*ret_agent = chat_agent(t->chat, runner);
	}
	if (!*ret_agent && runner.data && !text_is(runner, CODING_AGENT))
		return refuse(error, REFUSE_UNAVAILABLE, "agent '%.*s' is not configured",
			      TEXT_ARGS(runner));
	if (*ret_agent || runner.data || in_path(CODING_AGENT))
		return 0;
	*ret_agent = chat_worker(t->chat);
	return *ret_agent ? 0 : chat_refuse_work(error, "tasks");
}

static int check_possible(const struct tasks *t, const struct task *row, bool is_command,
			  const struct project *project, struct error *error)
{
	struct agent *agent = NULL;
	unsigned rank;
	int r;

	if (node_count(t->node, &rank) > 1) /* another one may have what this one has not */
		return 0;
	/* Some agent could: no need to look for a program in every folder of PATH. */
	if (child_check_allowed(NULL) == 0 &&
	    (is_command || chat_agent(t->chat, (struct text) {0})))
		return 0;
	r = is_command ? 0 : choose_agent(t, row, project, &agent, error);
	if (r > 0 && !chat_agent(t->chat, (struct text) {0}))
		return r;
	return agent && !agent_is_command(agent) ? 0 : child_check_allowed(error);
}

int program_check(const struct tasks *t, struct arena *a, struct task *row,
		  const struct project *project, struct error *error)
{
	const struct value *command = row->command.value;

	return (command ? word_command(a, command, &row->prompt, error) : 0)
		       ?: check_possible(t, row, command != NULL, project, error);
}

static int choose(struct tasks *t, const struct live *l, struct text prompt, struct program *p,
		  struct agent **ret_agent, struct error *error)
{
	const char *const *own = (const char *const *)l->project->program;
	struct agent *agent;
	int r;

	if (l->task.command.bytes.data)
		return command_argv(&p->arena, l->task.command.bytes, &p->argv);
	r = choose_agent(t, &l->task, l->project, &agent, error);
	if (r != 0)
		return r;
	if (!agent)
		return fill_coding_agent(p, own ? own : coding_agent, l, prompt);
	if (agent_is_command(agent))
		return fill_command(p, agent, prompt, error);
	*ret_agent = agent;
	return 0;
}

static int choose_program(struct tasks *t, const struct live *l, struct text prompt,
			  struct program *ret_program, struct agent **ret_agent,
			  struct error *error)
{
	int r;

	*ret_program = (struct program) {0};
	*ret_agent = NULL;
	ret_program->base = t->opts.env;
	arena_init(&ret_program->arena, TASK_ARENA_MAX);
	if (l->project->name.len > 0)
		ret_program->cwd = l->project->name;
	r = choose(t, l, prompt, ret_program, ret_agent, error);
	if (l->task.cwd.data)
		ret_program->cwd = l->task.cwd;
	if (r == 0 && !*ret_agent)
		r = set_env(ret_program, l);
	if (r != 0)
		program_done(ret_program);
	return r;
}

/* ---- starting it ---- */

static int start_turn(struct run *r, const struct agent *agent, struct text prompt,
		      struct error *error)
{
	char id[40];
	struct chat_ask ask = {.agent = text_of(agent->name), .content = prompt};

	snprintf(id, sizeof(id), "task:%lld", (long long)r->live->task.seq);
	ask.conversation = text_of(id);
	return attempt_ask(&r->attempt, r->tasks->chat, &ask, error);
}

static int note_program(struct run *r, const struct program *p)
{
	r->named = strdup(p->argv[0]);
	r->folder = p->cwd.data ? strndup(p->cwd.data, p->cwd.len) : NULL;
	return !r->named || (p->cwd.data && !r->folder) ? -ENOMEM : 0;
}

static int start_program(struct run *r, const struct program *p, struct error *error)
{
	char what[TASK_NAME_MAX + 8];
	int e = note_program(r, p);
	struct supervised_opts opts = {
		.argv = (const char *const *)p->argv,
		.base = p->base,
		.env = p->env,
		.cwd = r->folder,
		.input = p->input,
		.mark = r->mark,
		.what = what,
	};

	if (e != 0)
		return e;
	snprintf(what, sizeof(what), "task=%.*s", TEXT_ARGS(r->live->task.id));
	return attempt_run(&r->attempt, r->tasks->loop, &opts, error);
}

int program_start(struct run *r, struct text prompt, struct error *error)
{
	struct tasks *t = r->tasks;
	struct agent *agent;
	struct program program;
	int e;

	e = choose_program(t, r->live, prompt, &program, &agent, error);
	if (e != 0)
		return e;
	e = agent ? start_turn(r, agent, prompt, error) : start_program(r, &program, error);
	program_done(&program);
	return e;
}
