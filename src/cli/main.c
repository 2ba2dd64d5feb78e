/* koine: talk to koined, or to any JSON-RPC server, from a shell. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/approval/approval.h"
#include "cli/chat/chat.h"
#include "cli/kit/cli.h"
#include "cli/event/event.h"
#include "cli/memory/memory.h"
#include "cli/session/session.h"
#include "cli/task/task.h"

static int cmd_help(struct cli *cli);
static int cmd_version(struct cli *cli);

#define PARAMS_HELP                                                                                \
	"Parameters:\n"                                                                            \
	"  key=value     a string\n"                                                               \
	"  key:=JSON     any JSON: n:=3, tags:='[\"a\",\"b\"]'\n"                                  \
	"  {...} [...]   all parameters as one JSON text\n"                                        \
	"  -             the same, read from stdin\n"                                              \
	"With --framing gob any JSON will do (koine call Arith.Double 21), and {\"$uint\": 7} "    \
	"says\n"                                                                                   \
	"what JSON cannot: see koine(1).\n"

/* A command is a row here and a file. */
const struct command commands[] = {
	{"call", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "call a method and print its result",
	 PARAMS_HELP "\nThe result is printed as indented JSON; with --json on one line.\n",
	 cmd_call},
	{"ping", "", "ask whether the server is there, and how fast",
	 "Other servers need not have the method: at nexus's port, koine tokens asks as much.\n",
	 cmd_ping},
	{"status", "", "show the daemon, its listeners and their counts",
	 "Koined tells it at its own socket only, not at that of another dialect.\n", cmd_status},
	{"discover", "[METHOD]", "list the methods, or show the fields of one",
	 "A parameter in brackets may be left out. With --json the OpenRPC document itself\n"
	 "(of one method: its part of it) is printed.\n",
	 cmd_discover},
	{"wire", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "call a method and show the bytes both ways",
	 PARAMS_HELP
	 "\nLines sent begin with \"> \", lines received with \"< \". What is no printable\n"
	 "ASCII is shown as \\xNN, and the token of --token-file as ***.\n",
	 cmd_wire},
	{"chat", "", "talk with an agent",
	 "On a terminal: a prompt with history and editing. Ctrl-C stops an answer and keeps what\n"
	 "came of it, or clears the line; Ctrl-D ends. /help says what else there is.\n"
	 "From a pipe every line is a question, and stdout gets the answers alone.\n",
	 cmd_chat, NULL, chat_options},
	{"send", "TEXT... | -", "ask an agent one thing and print its answer as it comes",
	 "- reads the text from stdin. Ctrl-C cancels: what came is printed, and kept in the\n"
	 "conversation.\n",
	 cmd_send, NULL, send_options},
	{"cancel", "ID", "stop the answer to the request of that id",
	 "An ID of digits alone is tried as a string, then as a number.\n", cmd_cancel, NULL,
	 cancel_options},
	{"tokens", "", "show what a conversation counts against its budget", NULL, cmd_tokens, NULL,
	 conversation_options},
	{"agents", "", "show which agents are configured, and whether they answer",
	 "* marks the one that answers unless another is named. Each is asked, and given ten\n"
	 "seconds.\n",
	 cmd_agents},
	{"conversations", "[purge NUMBER...]", "list conversations, the one changed last first",
	 "What was said in a conversation that was ended stays: --ended lists those, with a "
	 "number\n"
	 "for each, messages --ended NUMBER shows one, and purge deletes it for good.\n",
	 cmd_conversations, NULL, conversations_options},
	{"messages", "[NAME]", "show what was said last in a conversation", NULL, cmd_messages,
	 NULL, messages_options},
	{"memory", "COMMAND [ARGUMENT]...", "keep, find and change memories",
	 "The server is that of --url or --socket, else of KOINE_SOCKET, else of ASH_RPC_SOCKET\n"
	 "(ash's own socket, which has search, add, list and delete), else as koine --help says;\n"
	 "where that is missing, /run/ash/rpc.sock. One that refuses a connection is tried\n"
	 "again after 0.5, 1 and 2 seconds.\n\n"
	 "Whose memories: --user and --chat, else ASH_USER_ID and ASH_CHAT_ID; with neither,\n"
	 "everybody's. ASH_CONTEXT_TOKEN is sent along when it is set.\n",
	 NULL, memory_commands, memory_options},
	{"events", "", "show what has happened, and with -f what happens",
	 "Without --since the newest are shown. With -f a daemon that goes away is waited for, "
	 "and\n"
	 "the log is read on from where it was. With --json every event is an object on a line\n"
	 "of its own, and {\"gone\":N} stands for those that are not kept any more.\n",
	 cmd_events, NULL, event_options},
	{"approvals", "[ID]", "show what agents ask leave for, or all of one",
	 "ID may be its first characters. With -w on a terminal it is a list that updates: arrows, "
	 "j\n"
	 "and k move, a approves, d denies with a comment, r answers a question, v shows all of "
	 "it,\n"
	 "g approves for the rest of the session, q leaves. Into a pipe, or with --json, it is a "
	 "line\n"
	 "for each that waits, comes or is decided.\n",
	 cmd_approvals, NULL, approvals_options},
	{"approve", "ID", "let an agent do what it asks leave for",
	 "The first answer counts; whoever comes later is told which it was, and exits with 1.\n",
	 cmd_approve, NULL, approve_options},
	{"deny", "ID --comment TEXT", "do not let it, and tell it why",
	 "The first answer counts; whoever comes later is told which it was, and exits with 1.\n",
	 cmd_deny, NULL, deny_options},
	{"respond", "ID TEXT... | ID -", "answer an agent's question", "- reads it from stdin.\n",
	 cmd_respond, NULL, respond_options},
	{"grants", "[revoke ID]", "show what is allowed without asking, or end it", NULL,
	 cmd_grants},
	{"hook", "", "ask a human from an agent's own hook",
	 "Reads the hook's JSON from stdin (Claude Code's PreToolUse and PermissionRequest, "
	 "Codex's\n"
	 "PermissionRequest, or {\"tool_name\", \"tool_input\"}), waits until somebody decides, "
	 "and\n"
	 "prints the decision as that agent wants it. If koined cannot be reached, or nobody "
	 "answers\n"
	 "in time, the agent asks by itself. The exit status is 0. See koine-hook(1).\n",
	 cmd_hook, NULL, hook_options},
	{"task", "COMMAND [ARGUMENT]...", "give agents things to do, and see how they go",
	 "A task belongs to a project: that of --project, else the nearest folder above this one\n"
	 "that has .aiwg in it, else none.\n",
	 NULL, task_commands, task_options},
	{"session", "COMMAND [ARGUMENT]...", "run agents, and see what they say and do",
	 "What a session asks permission for waits among the approvals: see koine approvals.\n",
	 NULL, session_commands},
	{"automation", "COMMAND [ARGUMENT]...", "rules: what happens when", NULL, NULL,
	 automation_commands, automation_options},
	{"project", "[COMMAND] [DIR]", "see which projects are trusted, and trust one",
	 "A project's rules, watches and schedules (.aiwg/daemon.json), and the tasks that came "
	 "with\n"
	 "it, do nothing until it is trusted as it is: when its file changes it is to be trusted\n"
	 "again. Without a command: list. DIR is this folder, where it is not given.\n",
	 cmd_projects, project_commands},
	{"daemon", "COMMAND", "the daemon itself: its state, log and settings, and stopping it",
	 NULL, NULL, daemon_commands},
	{"backup", "FILE", "copy the daemon's store into a new file while it is in use",
	 "The daemon writes the file, as its own user; one that exists is left alone.\n",
	 cmd_backup},
	{"store", "COMMAND", "take over a store that somebody else has made", NULL, NULL,
	 store_commands},
	{"help", "[COMMAND]", "show help", NULL, cmd_help},
	{"version", "", "show the version", NULL, cmd_version},
	{NULL},
};

static const struct command *find_exactly(const struct command *list, const char *name)
{
	for (const struct command *c = list; c->name; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

/* What a shell calls it is understood, too. */
const struct command *command_find(const struct command *list, const char *name)
{
	static const char *const also[][2] = {
		{"ls", "list"},
		{"rm", "delete"},
		{"remove", "delete"},
		{"del", "delete"},
	};
	const struct command *found = find_exactly(list, name);

	for (size_t i = 0; !found && i < sizeof(also) / sizeof(also[0]); i++) {
		if (strcmp(also[i][0], name) == 0)
			found = find_exactly(list, also[i][1]);
	}
	return found;
}

/* What other tools call it, and our own lists among themselves. */
static const char *other_word(const struct command *list, const char *name)
{
	static const struct {
		const char *word;
		const char *ours[3]; /* the first that the list has */
	} words[] = {
		{"stop", {"interrupt", "cancel"}},
		{"kill", {"interrupt", "cancel"}},
		{"cancel", {"interrupt"}},
		{"interrupt", {"cancel"}},
		{"resume", {"continue", "retry"}},
		{"get", {"show"}},
		{"show", {"get"}},
		{"view", {"show", "get"}},
		{"add", {"run"}},
		{"launch", {"run"}},
		{"start", {"run", "add"}},
		{"follow", {"log"}},
		{"rm", {"cancel", "interrupt", "revoke"}},
		{"delete", {"cancel", "interrupt"}},
		{"remove", {"cancel", "interrupt"}},
		{"reject", {"deny"}},
		{"answer", {"respond"}},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (int k = 0; k < 3 && words[i].ours[k]; k++) {
			if (strcmp(words[i].word, name) == 0 &&
			    command_find(list, words[i].ours[k]))
				return words[i].ours[k];
		}
	}
	return NULL;
}

/* Complains when there is none. `of` is the command whose list it is, or NULL. */
static const struct command *need_command(const struct command *of, const char *name)
{
	const struct command *list = of ? of->subs : commands;
	const char *before = of ? of->name : "";
	const char *space = of ? " " : "";
	const struct command *found = command_find(list, name);
	const char *meant = other_word(list, name);
	struct nearest n;

	if (found)
		return found;
	nearest_init(&n, name);
	for (const struct command *c = list; c->name; c++)
		nearest_offer(&n, c->name, strlen(c->name));
	if (meant || n.name[0])
		complain("there is no command '%s%s%s'; did you mean '%s%s%s'?", before, space,
			 name, before, space, meant ? meant : n.name);
	else
		complain("there is no command '%s%s%s'; see koine %s%s--help", before, space, name,
			 before, space);
	return NULL;
}

static int cmd_version(struct cli *cli)
{
	(void)cli;
	printf("koine %s\n", koine_version());
	return EX_OK;
}

static int cmd_help(struct cli *cli)
{
	const struct command *of = NULL;
	const struct command *c;

	if (cli->n_args == 0) {
		help_print(stdout);
		return EX_OK;
	}
	c = need_command(NULL, cli->args[0]);
	if (c && c->subs && cli->n_args > 1) {
		of = c;
		c = need_command(of, cli->args[1]);
	}
	if (!c)
		return EX_USAGE;
	help_print_command(of, c);
	return EX_OK;
}

/* The one to run, with its name taken off the arguments. */
static const struct command *take_command(struct cli *cli)
{
	const struct command *c = need_command(NULL, cli->args[0]);

	cli->args++;
	cli->n_args--;
	if (!c || !c->subs || (cli->n_args == 0 && c->run))
		return c;
	c = need_command(c, cli->args[0]);
	cli->args++;
	cli->n_args--;
	return c;
}

static int run(struct cli *cli)
{
	const struct command *c;

	if (cli->options.version)
		return cmd_version(cli);
	if (cli->options.help)
		return cmd_help(cli);
	if (cli->n_args == 0) {
		help_print(stderr);
		return EX_USAGE;
	}
	/* A noun alone: what can be done with it. */
	c = cli->n_args == 1 ? command_find(commands, cli->args[0]) : NULL;
	if (c && c->subs && !c->run) {
		help_print_command(NULL, c);
		return EX_OK;
	}
	c = take_command(cli);
	return c ? c->run(cli) : EX_USAGE;
}

/* Started with stdout closed, the socket would get its number and our result.
 * What is opened here cannot be written to, so that is still told. */
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
	struct cli cli = {0};
	int r;

	fill_standard_files();
	r = options_parse(&cli, argc, argv);
	if (r == 0)
		r = run(&cli);
	/* A full disk shows here at the latest. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		complain("cannot write: %s", strerror(errno));
		return EX_IOERR;
	}
	return r;
}
