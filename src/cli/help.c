#include "cli/help.h"

#include <ctype.h>
#include <string.h>

#include "cli/kit/glyph.h"
#include "cli/kit/options.h"

enum { ROW_MIN = 60, ROW_MAX = 80, COMMAND_WIDTH = 13, SUB_WIDTH = 9, OPTION_WIDTH = 30 };

static const char exit_codes[] =
	"Exit codes (those of sysexits.h, but for 1 and 130):\n"
	"   0  done\n"
	"   1  the server answered with an error, or has no such method or memory; a\n"
	"      task or a session failed; doctor has found something bad\n"
	"  64  wrong usage\n"
	"  65  a parameter, a line or a text is not what it must be, or cannot be sent\n"
	"  66  a file or stdin cannot be read\n"
	"  69  the server cannot be reached, or left without an answer\n"
	"  70  something failed inside\n"
	"  73  a file cannot be created\n"
	"  74  the result could not be written\n"
	"  75  no answer in time; trying later may help\n"
	"  76  what came back is no JSON-RPC, or too large, or HTTP refused the call\n"
	"  77  the server does not let you in (HTTP 401 or 403), or is not one to trust\n"
	" 130  the answer or the task was cancelled; the session was interrupted or left\n"
	"What waits for a task exits as its program did.\n";

static const char examples[] =
	"Examples:\n"
	"  koine memory add \"Anna moved to Oslo in May\"  keep something\n"
	"  koine memory search where does anna live      find it again\n"
	"  koine task add --follow -- fix the tests      let an agent do it, and watch\n"
	"  koine approvals -w                            answer what agents ask\n"
	"  koine help task                               all about one command\n";

/* Rows stay narrow enough to read well, even where there is more room. */
static size_t row_columns(void)
{
	size_t columns = terminal_columns();

	if (columns > ROW_MAX)
		return ROW_MAX;
	return columns < ROW_MIN ? ROW_MIN : columns;
}

/*
 * Prints one paragraph; its first row starts at column `at`, the others at `indent`. It ends
 * with the text, or before a line that is empty or starts with a blank. Returns the rest of
 * the text.
 */
static const char *flow_paragraph(FILE *out, const char *text, size_t at, size_t indent)
{
	size_t columns = row_columns();
	bool is_first = true;

	while (*text && *text != '\n') {
		size_t n = strcspn(text, " \n");

		if (!is_first && at + 1 + n > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!is_first) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += n;
		is_first = false;
		text += n;
		text += strspn(text, " ");
		if (*text == '\n' && *++text == ' ')
			break;
	}
	fputc('\n', out);
	return text;
}

/* Lines that start with a blank are printed as they are; others are refilled. */
static void flow(FILE *out, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n") + 1;

		if (*text != '\n' && *text != ' ') {
			text = flow_paragraph(out, text, 0, 0);
			continue;
		}
		fwrite(text, 1, n, out);
		text += n;
	}
}

static void print_row(FILE *out, int width, const char *left, const char *right)
{
	size_t indent = (size_t)width + 4;

	if (strlen(left) > (size_t)width)
		fprintf(out, "  %s\n%*s", left, (int)indent, "");
	else
		fprintf(out, "  %-*s  ", width, left);
	flow_paragraph(out, right, indent, indent);
}

static void print_options(FILE *out, const struct option *rows)
{
	for (const struct option *o = rows; o->name; o++) {
		char left[64];

		snprintf(left, sizeof(left), "%s%s%s%s%s%s", o->short_name ? o->short_name : "  ",
			 o->short_name ? ", " : "  ", o->name,
			 o->implied ? "[="
			 : o->value ? " "
				    : "",
			 o->value ? o->value : "", o->implied ? "]" : "");
		print_row(out, OPTION_WIDTH, left, o->help);
	}
}

static void print_group(FILE *out, const struct command_group *g)
{
	fprintf(out, "\n%s:\n", g->title);
	for (int i = 0; i < GROUP_TABLES_MAX && g->tables[i]; i++) {
		for (const struct command *c = g->tables[i]; c->name; c++)
			print_row(out, COMMAND_WIDTH, c->name, c->help);
	}
}

void help_print(FILE *out, const struct command_group *groups)
{
	fputs("Usage: koine [OPTION]... COMMAND [ARGUMENT]...\n"
	      "Talks to koined, or to any JSON-RPC 2.0 server.\n",
	      out);
	for (const struct command_group *g = groups; g->title; g++)
		print_group(out, g);
	fprintf(out, "\n%s", examples);
	fputs("\nOptions (anywhere; -- ends them):\n", out);
	print_options(out, options_of_all);
	fputs("\nThe server is that of --url or --socket, else of KOINE_SOCKET, else\n"
	      "$XDG_RUNTIME_DIR/koine/koine.sock (without that variable /run/koine/koine.sock\n"
	      "for root and /tmp/koine-UID/koine.sock for others).\n\n",
	      out);
	fputs(exit_codes, out);
}

static void print_subs(const struct command *c)
{
	if (!c->subs)
		return;
	printf("\nCommands:\n");
	for (const struct command *s = c->subs; s->name; s++)
		print_row(stdout, SUB_WIDTH, s->name, s->help);
}

void help_print_command(const struct command *of, const struct command *c)
{
	const struct option *shared = of ? of->options : NULL;

	printf("Usage: koine %s%s%s%s%s\n\n", of ? of->name : "", of ? " " : "", c->name,
	       c->args[0] ? " " : "", c->args);
	printf("%c%s.\n", toupper((unsigned char)c->help[0]), c->help + 1);
	print_subs(c);
	if (c->options || shared)
		printf("\nOptions of its own:\n");
	if (c->options)
		print_options(stdout, c->options);
	if (shared)
		print_options(stdout, shared);
	if (c->more) {
		fputc('\n', stdout);
		flow(stdout, c->more);
	}
	printf("\nThe %soptions and exit codes are those of every command: see koine --help.\n",
	       c->options || shared ? "other " : "");
}
