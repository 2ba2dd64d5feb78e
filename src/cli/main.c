/* koine: talk to koined, or to any JSON-RPC server, from a shell. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/command.h"
#include "cli/kit/glyph.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"

/* ---- help ---- */

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

		if (!o->help)
			continue;
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

/* The common commands, and where to read on. */
static void help_print(const struct command_group *groups)
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

static void print_shortcuts(void)
{
	fputs("\nShortcuts:\n", stdout);
	for (const struct alias *a = aliases; a->typed.noun; a++) {
		if (a->is_shown)
			printf("  %-*s  koine %s %s\n", COMMAND_WIDTH, a->typed.noun, a->means.noun,
			       a->means.verb);
	}
}

/* Every command, the common options and the exit codes. */
static void help_print_all(const struct command_group *groups)
{
	fputs(usage, stdout);
	for (const struct command_group *g = groups; g->title; g++)
		print_group(stdout, g);
	print_shortcuts();
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

/* `of` is the command that it belongs to, or NULL. */
static void help_print_command(const struct command *of, const struct command *c)
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

static int cmd_help(struct cli *cli);
static int cmd_version(struct cli *cli);

static const struct command help_commands[] = {
	{"help", "[COMMAND [COMMAND]] | all", "Show help about koine or one command",
	 "`koine help all` lists every command, the common options and the exit codes.\n", cmd_help,
	 .examples = {"koine help all", "koine help task add"}},
	{"version", "", "Print the version", NULL, cmd_version,
	 .examples = {"koine version", "koine version --json"}},
	{NULL},
};

/* A command is a row of a noun's table. `koine help all` shows the tables in this order. */
static const struct command_group groups[] = {
	{"Memory", {memory_commands}},
	{"Talk with agents", {chat_commands}},
	{"Run tasks and agents",
	 {task_commands, session_commands, automation_commands, project_commands}},
	{"Approve requests", {approval_commands, notify_commands, page_commands}},
	{"Connect agents", {connect_commands, mcp_commands}},
	{"Manage the daemon",
	 {top_commands, doctor_commands, metrics_commands, event_commands, host_commands,
	  daemon_commands, dialect_commands}},
	{"Call any JSON-RPC server", {server_commands}},
	{"Help", {help_commands}},
	{NULL},
};

static int cmd_version(struct cli *cli)
{
	printf(cli->options.json ? "{\"version\":\"%s\"}\n" : "koine %s\n", koine_version());
	return EX_OK;
}

static int cmd_help(struct cli *cli)
{
	const struct command *of = NULL;
	const struct command *c;
	const struct alias *a;
	const char *verb;

	if (cli->n_args == 0) {
		help_print(groups);
		return EX_OK;
	}
	if (cli->n_args == 1 && strcmp(cli->args[0], "all") == 0) {
		help_print_all(groups);
		return EX_OK;
	}
	a = alias_find(cli->args[0], NULL, NULL);
	verb = cli->n_args > 1 ? cli->args[1] : a ? a->means.verb : NULL;
	c = command_need(groups, NULL, cli->args[0]);
	if (c && c->subs && verb) {
		of = c;
		c = command_need(groups, of, verb);
	}
	if (!c)
		return EX_USAGE;
	help_print_command(of, c);
	return EX_OK;
}

static bool runs(const struct command *c)
{
	return c->run || c->request.method;
}

/* The command to run, with its name taken off the arguments. */
static const struct command *take_command(struct cli *cli)
{
	const struct command *c = command_need(groups, NULL, args_take(cli));

	if (!c || !c->subs || (cli->n_args == 0 && runs(c)))
		return c;
	return command_need(groups, c, args_take(cli));
}

static int cli_main_run(struct cli *cli)
{
	const struct command *c = cli->command;
	int r;

	if (cli->options.version)
		return cmd_version(cli);
	if (cli->options.help || cli->n_args == 0)
		return cmd_help(cli);
	/* Only a noun was typed: shows what can be done with it. */
	if (cli->n_args == 1 && c && c->subs && !runs(c)) {
		help_print_command(NULL, c);
		return EX_OK;
	}
	c = take_command(cli);
	if (!c)
		return EX_USAGE;
	r = args_check(cli);
	if (r == 0 && cli->command->begin)
		r = cli->command->begin(cli);
	if (r != 0)
		return r;
	return c->run ? c->run(cli) : request_run(cli);
}

/* If we are started with stdout closed, the socket would get its descriptor, and our result.
 * What is opened here cannot be written to, so that the failure still shows. */
static void fill_standard_files(void)
{
	int fd = open("/dev/null", O_RDONLY);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDONLY);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct cli cli = {.groups = groups};
	int r;

	fill_standard_files();
	/* It stands in no table: people have no use for it. */
	if (argc > 1 && strcmp(argv[1], complete_command) == 0)
		return complete_run(groups, argc - 2, argv + 2);
	r = options_parse(&cli, argc, argv) ?: cli_main_run(&cli);
	talk_hang_up(&cli);
	options_done(&cli);
	/* A full disk shows up here at the latest. */
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail_with(EX_IOERR, "cannot write to stdout: %s", strerror(errno));
	return r;
}
