#include "cli/help.h"

#include <ctype.h>
#include <string.h>

#include "cli/kit/glyph.h"
#include "cli/kit/options.h"

enum { ROW_MIN = 60, ROW_MAX = 80, COMMAND_WIDTH = 13, SUB_WIDTH = 9, OPTION_WIDTH = 30 };

static const char usage[] = "Usage: koine [OPTION]... COMMAND [ARGUMENT]...\n";

static const char exit_codes[] =
	"Exit codes (as in sysexits.h, except 1 and 130):\n"
	"   0  success\n"
	"   1  the server returned an error; a task or session failed; a request was\n"
	"      denied; doctor found a problem\n"
	"  64  wrong usage\n"
	"  65  invalid parameter or input\n"
	"  66  a file or stdin cannot be read\n"
	"  69  the server cannot be reached, or closed the connection\n"
	"  70  internal error\n"
	"  73  a file cannot be created\n"
	"  74  the result cannot be written\n"
	"  75  timeout; try again later\n"
	"  76  the response is not JSON-RPC, is too large, or is an HTTP error\n"
	"  77  access denied (HTTP 401 or 403), or the server is not trusted\n"
	" 130  cancelled or interrupted\n"
	"Commands that wait for a task exit with the exit code of its program.\n";

/* The commands that most people use, as they are typed. */
static const char *const common[] = {
	"daemon start", "connect",   "doctor", "top",           "page",
	"task add",     "approvals", "send",   "memory search", "memory add",
};

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
			 !o->value    ? ""
			 : o->implied ? "[="
				      : " ",
			 o->value ? o->value : "", o->value && o->implied ? "]" : "");
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

static void print_common(const struct command_group *groups)
{
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		print_row(stdout, COMMAND_WIDTH, common[i], command_named(groups, common[i])->help);
}

void help_print(const struct command_group *groups)
{
	printf("%s"
	       "Control koined, the daemon that AI agents share.\n"
	       "\nCommon commands:\n",
	       usage);
	print_common(groups);
	fputs("\nGetting started:\n"
	      "  koine daemon start               start koined in the background\n"
	      "  koine connect claude             add koine to Claude Code\n"
	      "  koine doctor                     check your setup\n"
	      "  koine task add -f fix the tests  give an agent a task and watch it\n"
	      "\nMore help:\n"
	      "  koine help COMMAND               show the help of one command\n"
	      "  koine help all                   list all commands and common options\n"
	      "  man koine                        read the manual\n",
	      stdout);
}

void help_print_all(const struct command_group *groups)
{
	fputs(usage, stdout);
	for (const struct command_group *g = groups; g->title; g++)
		print_group(stdout, g);
	fputs("\nCommon options (accepted anywhere before --):\n", stdout);
	print_options(stdout, options_of_all);
	fputs("\nkoine connects to the server given by --url or --socket. Without them it uses\n"
	      "KOINE_SOCKET, then $XDG_RUNTIME_DIR/koine/koine.sock. If XDG_RUNTIME_DIR is not\n"
	      "set, it uses /run/koine/koine.sock (root) or /tmp/koine-UID/koine.sock.\n\n",
	      stdout);
	fputs(exit_codes, stdout);
}

static void print_subs(const struct command *c)
{
	if (!c->subs)
		return;
	printf("\nCommands:\n");
	for (const struct command *s = c->subs; s->name; s++)
		print_row(stdout, SUB_WIDTH, s->name, s->help);
}

static void print_examples(const struct command *c)
{
	if (!c->examples[0])
		return;
	printf("\nExamples:\n");
	for (int i = 0; i < EXAMPLES_MAX && c->examples[i]; i++)
		printf("  %s\n", c->examples[i]);
}

void help_print_command(const struct command *of, const struct command *c)
{
	const struct option *shared = of ? of->options : NULL;

	printf("%s.\n\nUsage: koine %s%s%s%s%s\n", c->help, of ? of->name : "", of ? " " : "",
	       c->name, c->args[0] ? " " : "", c->args);
	if (c->more) {
		fputc('\n', stdout);
		flow(stdout, c->more);
	}
	print_subs(c);
	if (c->options || shared)
		printf("\nOptions:\n");
	if (c->options)
		print_options(stdout, c->options);
	if (shared)
		print_options(stdout, shared);
	print_examples(c);
	printf("\nRun 'koine help all' for the common options and exit codes.\n");
}
