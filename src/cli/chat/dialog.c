/*
 * koine chat: one question after another.
 *
 * On a terminal there is a prompt, and a line that begins with a slash is a command for us.
 * From a pipe every line is a question, and only answers go to stdout.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/chat.h"
#include "cli/chat/prompt.h"
#include "cli/kit/lines.h"

enum { LINE_BYTES_MAX = 16 << 20 };

/* ---- from a pipe ---- */

static int ask_lines(struct turn *t, struct lines *l)
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

static int chat_in_pipe(struct turn *t)
{
	struct lines l;
	int r;

	lines_init(&l, STDIN_FILENO, LINE_BYTES_MAX);
	r = ask_lines(t, &l);
	lines_done(&l);
	return r;
}

/* ---- on a terminal ---- */

static void show_mark(const struct turn *t, char mark[160])
{
	snprintf(mark, 160, "%.140s> ", t->conversation ? t->conversation : "");
}

static int handle_line(struct turn *t, const char *line, bool *ret_quit)
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
static int chat_on_terminal(struct turn *t)
{
	struct prompt *p = prompt_new();
	enum prompt_event event;
	bool quit = false;
	char mark[160];
	int r = 0;

	if (!p)
		return out_of_memory();
	/* A Ctrl-C between an answer and the prompt was meant for the answer. */
	signal(SIGINT, SIG_IGN);
	fputs("/help lists commands; Ctrl-C stops an answer, Ctrl-D quits.\n", stdout);
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
	struct turn t;
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
