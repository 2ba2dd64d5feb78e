/* The prompt with libedit. */
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chat/history.h"
#include "cli/chat/prompt.h"

struct chat_prompt {
	EditLine *edit;
	History *history;
	const char *mark;
	char path[PATH_MAX]; /* of the history file; "": none */
	char *line;
	bool interrupted;
};

static struct chat_prompt *prompt_of(EditLine *edit)
{
	void *p = NULL;

	el_get(edit, EL_CLIENTDATA, &p);
	return p;
}

static const char *show_mark(EditLine *edit)
{
	return prompt_of(edit)->mark;
}

/* Ends the line as Enter does; prompt_read sees that it does not count. */
static unsigned char on_interrupt(EditLine *edit, int key)
{
	prompt_of(edit)->interrupted = true;
	fputs("^C\n", stdout);
	return CC_NEWLINE;
}

static void remember(void *arg, const char *line)
{
	struct chat_prompt *p = arg;
	HistEvent event;

	history(p->history, &event, H_ENTER, line);
}

static void load_history(struct chat_prompt *p)
{
	HistEvent event;

	history(p->history, &event, H_SETSIZE, HISTORY_LINES);
	history(p->history, &event, H_SETUNIQUE, 1);
	if (!history_path(p->path))
		p->path[0] = '\0';
	else
		(void)history_load(p->path, remember, p);
}

/* What is typed is sent as UTF-8, whatever the user's locale. */
static void take_utf8(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

struct chat_prompt *prompt_new(void)
{
	struct chat_prompt *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	take_utf8();
	p->edit = el_init("koine", stdin, stdout, stderr);
	p->history = history_init();
	if (!p->edit || !p->history) {
		prompt_free(p);
		return NULL;
	}
	el_set(p->edit, EL_CLIENTDATA, p);
	el_set(p->edit, EL_PROMPT, show_mark);
	el_set(p->edit, EL_SIGNAL, 1);
	el_set(p->edit, EL_EDITOR, "emacs");
	el_set(p->edit, EL_HIST, history, p->history);
	/* libedit's narrow variant of this makes copies that nobody frees. */
	el_wset(p->edit, EL_ADDFN, L"koine-interrupt", L"discard the line", on_interrupt);
	el_set(p->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_source(p->edit, NULL);
	/* Set this after the user's own bindings: while a line is typed, Ctrl-C is a key, not a
	 * signal. */
	el_set(p->edit, EL_BIND, "^C", "koine-interrupt", NULL);
	el_set(p->edit, EL_SETTY, "-d", "-intr", NULL);
	load_history(p);
	return p;
}

void prompt_free(struct chat_prompt *p)
{
	if (!p)
		return;
	if (p->edit)
		el_end(p->edit);
	if (p->history)
		history_end(p->history);
	free(p->line);
	free(p);
}

static void chat_prompt_edit_keep(struct chat_prompt *p, const char *line)
{
	if (line[strspn(line, " \t")] == '\0')
		return;
	remember(p, line);
	if (p->path[0])
		(void)history_add(p->path, line);
}

enum prompt_event prompt_read(struct chat_prompt *p, const char *mark, const char **ret_line)
{
	const char *got;
	int n = 0;

	p->mark = mark;
	p->interrupted = false;
	/* libedit would show the mark first; a key typed in between would act as a signal, or be
	 * echoed twice. */
	el_set(p->edit, EL_PREP_TERM, 1);
	got = el_gets(p->edit, &n);
	if (p->interrupted)
		return PROMPT_INTERRUPTED;
	if (!got || n <= 0) {
		fputc('\n', stdout);
		return PROMPT_END;
	}
	free(p->line);
	p->line = strndup(got, strcspn(got, "\n"));
	if (!p->line)
		return PROMPT_END;
	chat_prompt_edit_keep(p, p->line);
	*ret_line = p->line;
	return PROMPT_LINE;
}
