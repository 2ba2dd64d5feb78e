/* koine: talk to koined, or to any JSON-RPC server, from a shell. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/complete/complete.h"
#include "cli/help.h"
#include "cli/kit/args.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/request.h"
#include "cli/kit/talk.h"

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
	 {status_commands, top_commands, doctor_commands, metrics_commands, event_commands,
	  host_commands, daemon_commands, dialect_commands}},
	{"Call any JSON-RPC server", {server_commands}},
	{"Help", {help_commands}},
	{NULL},
};

static int cmd_version(struct cli *cli)
{
	printf("koine %s\n", koine_version());
	return EX_OK;
}

static int cmd_help(struct cli *cli)
{
	const struct command *of = NULL;
	const struct command *c;

	if (cli->n_args == 0) {
		help_print(groups);
		return EX_OK;
	}
	if (cli->n_args == 1 && strcmp(cli->args[0], "all") == 0) {
		help_print_all(groups);
		return EX_OK;
	}
	c = command_need(groups, NULL, cli->args[0]);
	if (c && c->subs && cli->n_args > 1) {
		of = c;
		c = command_need(groups, of, cli->args[1]);
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

static int run(struct cli *cli)
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
	r = options_parse(&cli, argc, argv) ?: run(&cli);
	talk_hang_up(&cli);
	options_done(&cli);
	/* A full disk shows up here at the latest. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		complain("cannot write to stdout: %s", strerror(errno));
		return EX_IOERR;
	}
	return r;
}
