/*
 * koine chat: one question after another.
 *
 * On a terminal there is a prompt, and a line that begins with a slash is a command for us.
 * From a pipe every line is a question, and only answers go to stdout.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/chat/chat.h"
#include "cli/chat/prompt.h"
#include "cli/kit/command.h"
#include "cli/kit/lines.h"

/* ---- what may be typed after a slash at the prompt ---- */

enum { MESSAGES = 20 };

struct slash {
	const char *name;
	const char *arg; /* or "" */
	const char *help;
	/* arg is "" when none was typed. */
	int (*run)(struct cli_turn *t, const char *arg);
};

static int slash_help(struct cli_turn *t, const char *arg);

static int slash_tokens(struct cli_turn *t, const char *arg)
{
	return chat_print_tokens(t->cli, t->conversation);
}

static int slash_messages(struct cli_turn *t, const char *arg)
{
	const struct chat_conversation which = {.name = t->conversation};
	int64_t n = MESSAGES;

	if (arg[0] != '\0' && !chat_read_count(arg, &n)) {
		complain("/messages requires a number, not '%s'", arg);
		return 0;
	}
	return chat_print_messages(t->cli, &which, n);
}

static int slash_conversations(struct cli_turn *t, const char *arg)
{
	return chat_print_conversations(t->cli, MESSAGES);
}

static int slash_agents(struct cli_turn *t, const char *arg)
{
	return chat_print_agents(t->cli);
}

static int slash_compact(struct cli_turn *t, const char *arg)
{
	return chat_compact(t->cli, t->conversation);
}

static int slash_agent(struct cli_turn *t, const char *arg)
{
	int r;

	if (arg[0] == '\0') {
		t->agent = NULL;
		puts("Using the conversation's default agent.");
		return 0;
	}
	if (strlen(arg) > CHAT_NAME_BYTES) {
		complain("the agent name is longer than %d bytes", CHAT_NAME_BYTES);
		return 0;
	}
	r = chat_find_agent(t->cli, arg);
	if (r != 0)
		return r;
	memcpy(t->agent_name, arg, strlen(arg) + 1);
	t->agent = t->agent_name;
	printf("Using agent %s.\n", t->agent);
	return 0;
}

/* A name made from the time distinguishes it from others later. */
static int slash_new(struct cli_turn *t, const char *arg)
{
	struct tm tm;
	time_t now = time(NULL);

	if (t->plain) {
		turn_tell_plain(t);
		return 0;
	}
	if (arg[0] != '\0' && !chat_check_name(arg))
		return 0;
	localtime_r(&now, &tm);
	if (arg[0] != '\0')
		memcpy(t->conversation_name, arg, strlen(arg) + 1);
	else
		strftime(t->conversation_name, sizeof(t->conversation_name), "chat-%Y%m%d-%H%M%S",
			 &tm);
	t->conversation = t->conversation_name;
	return 0;
}

static const struct slash slashes[] = {
	{"help", "", "List the commands", slash_help},
	{"tokens", "", "Show the token count of the conversation", slash_tokens},
	{"messages", "[N]", "Show the last N messages (default: 20)", slash_messages},
	{"history", "[N]", "Same as /messages", slash_messages},
	{"compact", "", "Replace old messages with a summary", slash_compact},
	{"agents", "", "List agents", slash_agents},
	{"agent", "[NAME]", "Select an agent; without NAME, the default agent", slash_agent},
	{"conversations", "", "List conversations", slash_conversations},
	{"new", "[NAME]", "Start a conversation, or switch to an existing one", slash_new},
	{"quit", "", "Quit, like Ctrl-D", NULL},
	{NULL},
};

static int slash_help(struct cli_turn *t, const char *arg)
{
	for (const struct slash *s = slashes; s->name; s++) {
		char left[40];

		snprintf(left, sizeof(left), "/%s %s", s->name, s->arg);
		printf("  %-18s %s\n", left, s->help);
	}
	printf("  %-18s %s\n", "//TEXT", "Send a message that begins with /");
	return 0;
}

static void suggest(const char *name)
{
	struct nearest n;

	nearest_init(&n, name);
	for (const struct slash *s = slashes; s->name; s++)
		nearest_offer(&n, text_of(s->name));
	if (n.name[0])
		complain("unknown command /%s; did you mean /%s?", name, n.name);
	else
		complain("unknown command /%s; see /help, or write // to send it as text", name);
}

/* Does what was typed after the slash. Sets *ret_quit when the chat should end. Returns as
 * turn_ask. */
static int slash_run(struct cli_turn *t, const char *line, bool *ret_quit)
{
	CLEANUP(freep) char *copy = strdup(line);
	char *arg;
	char *rest;
	int r;

	if (!copy)
		return 0;
	arg = copy + strcspn(copy, " \t");
	rest = arg + strspn(arg, " \t");
	*arg = '\0';
	for (size_t n = strlen(rest); n > 0 && strchr(" \t", rest[n - 1]); n--)
		rest[n - 1] = '\0';
	for (const struct slash *s = slashes; s->name; s++) {
		if (strcmp(s->name, copy) != 0)
			continue;
		if (rest[0] != '\0' && s->arg[0] == '\0') {
			complain(
				"/%s takes no argument; to send the line as text, start it with //",
				copy);
			return 0;
		}
		*ret_quit = !s->run;
		r = s->run ? s->run(t, rest) : 0;
		fflush(stdout);
		return r;
	}
	suggest(copy);
	return 0;
}

enum { LINE_BYTES_MAX = 16 << 20 };

/* ---- from a pipe ---- */

static int ask_lines(struct cli_turn *t, struct lines *l)
{
	int worst = 0;

	for (;;) {
		struct text line = {0};
		int r = lines_next(l, &line);

		if (r != 0) {
			complain("cannot read stdin: %s", strerror(-r));
			return r == -EMSGSIZE ? EX_DATAERR : EX_NOINPUT;
		}
		if (!line.data)
			return worst;
		if (chat_is_blank(line))
			continue;
		r = turn_ask(t, line);
		if (r != 0 && r != EXIT_ERROR_ANSWER)
			return r;
		worst = r ? r : worst;
	}
}

static int chat_in_pipe(struct cli_turn *t)
{
	struct lines l;
	int r;

	lines_init(&l, STDIN_FILENO, LINE_BYTES_MAX);
	r = ask_lines(t, &l);
	lines_done(&l);
	return r;
}

/* ---- on a terminal ---- */

static void show_mark(const struct cli_turn *t, char mark[160])
{
	snprintf(mark, 160, "%.140s> ", t->conversation ? t->conversation : "");
}

static int handle_line(struct cli_turn *t, const char *line, bool *ret_quit)
{
	int r;

	if (chat_is_blank(text_of(line)))
		return 0;
	if (line[0] != '/')
		return turn_ask(t, text_of(line));
	/* Two slashes stand for a literal one. */
	if (line[1] == '/')
		return turn_ask(t, text_of(line + 1));
	signal(SIGINT, SIG_DFL);
	r = slash_run(t, line + 1, ret_quit);
	signal(SIGINT, SIG_IGN);
	return r;
}

/* Whether the exit code need not reflect how the last question ended. */
static bool went_well(int result)
{
	return result == 0 || result == EXIT_ERROR_ANSWER || result == EXIT_INTERRUPTED ||
	       result == EX_DATAERR;
}

/* The server may come back; meanwhile the question is in the history. */
static int chat_on_terminal(struct cli_turn *t)
{
	struct chat_prompt *p = prompt_new();
	enum prompt_event event;
	bool quit = false;
	char mark[160];
	int r = 0;

	if (!p)
		return out_of_memory();
	/* A Ctrl-C between an answer and the prompt was meant for the answer. */
	signal(SIGINT, SIG_IGN);
	fputs("/help lists commands; Ctrl-C cancels a response, Ctrl-D quits.\n", stdout);
	while (!quit) {
		const char *line = "";

		show_mark(t, mark);
		event = prompt_read(p, mark, &line);
		if (event == PROMPT_END)
			break;
		r = event == PROMPT_LINE ? handle_line(t, line, &quit) : 0;
		quit = quit || t->left || r == EX_SOFTWARE;
	}
	prompt_free(p);
	/* Answers and errors have been shown; only a server that is gone changes the exit code. */
	return went_well(r) && !t->left ? 0 : r;
}

int cmd_chat(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	struct cli_turn t;
	int r;

	if (o->conversation && !chat_check_name(o->conversation))
		return EX_USAGE;
	r = turn_begin(&t, cli);
	if (r != 0)
		return r;
	r = isatty(STDIN_FILENO) && cli->terminal ? chat_on_terminal(&t) : chat_in_pipe(&t);
	turn_end(&t);
	return r;
}
