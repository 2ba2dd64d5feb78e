/* The prompt without libedit: the terminal's own editing, and no history. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/chat/prompt.h"
#include "cli/kit/lines.h"

enum { LINE_MAX_BYTES = 1 << 20 };

struct chat_prompt {
	struct lines lines;
	struct buf line;
};

struct chat_prompt *prompt_new(void)
{
	struct chat_prompt *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	lines_init(&p->lines, STDIN_FILENO, LINE_MAX_BYTES);
	buf_init(&p->line, LINE_MAX_BYTES + 1);
	return p;
}

void prompt_free(struct chat_prompt *p)
{
	if (!p)
		return;
	lines_done(&p->lines);
	buf_done(&p->line);
	free(p);
}

/* It is caught only so that read(2) returns. */
static void on_signal(int number)
{
}

enum prompt_event prompt_read(struct chat_prompt *p, const char *mark, const char **ret_line)
{
	struct sigaction ours = {.sa_handler = on_signal};
	struct sigaction before;
	struct text line = {0};
	int r;

	fputs(mark, stdout);
	fflush(stdout);
	sigaction(SIGINT, &ours, &before);
	r = lines_next(&p->lines, &line);
	sigaction(SIGINT, &before, NULL);
	if (r == -EINTR || (r == 0 && !line.data))
		fputc('\n', stdout);
	if (r == -EINTR)
		return PROMPT_INTERRUPTED;
	if (r != 0 || !line.data)
		return PROMPT_END;
	buf_clear(&p->line);
	buf_add(&p->line, line.data, line.len);
	buf_add_char(&p->line, '\0');
	*ret_line = p->line.data;
	return p->line.err == 0 ? PROMPT_LINE : PROMPT_END;
}
