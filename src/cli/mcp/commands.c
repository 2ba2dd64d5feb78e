/* koine mcp: the MCP server that agents start. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/project.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/mcp/pipe.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

struct mcp_options {
	const char *project;
	const char *tools;
	bool start;
};

static void init_options(void *own)
{
	struct mcp_options *o = own;

	o->project = ".";
}

/* ---- starting the daemon ---- */

/* It outlives us, and the client that has started us. */
static void run_detached(char *program)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	if (fork() != 0)
		_exit(0);
	signal(SIGPIPE, SIG_DFL);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	execv(program, (char *[]) {program, NULL});
	_exit(EX_UNAVAILABLE);
}

static bool start_koined(void *arg)
{
	char program[PATH_MAX];
	pid_t child;

	(void)arg;
	if (!koined_find(program)) {
		complain("koined not found in koine's folder or in PATH");
		return false;
	}
	child = fork();
	if (child == 0)
		run_detached(program);
	if (child < 0) {
		complain("cannot start koined: %s", strerror(errno));
		return false;
	}
	waitpid(child, NULL, 0);
	complain("starting koined");
	return true;
}

/* ---- what we tell koined of our client ---- */

static bool is_group(struct text name)
{
	static const char *const groups[] = {"memory", "tasks", "human", "permission"};

	for (size_t i = 0; i < N_OF(groups); i++) {
		if (text_is(name, groups[i]))
			return true;
	}
	return false;
}

/* Also refused by koined, but then the agent is told, and not the user at the terminal. */
static int check_tools(const char *tools)
{
	struct text rest = text_of(tools);
	struct text one;

	while (tools && text_next(&rest, ',', &one)) {
		if (is_group(one))
			continue;
		complain("invalid --tools '%.*s': use memory, tasks, "
			 "human or permission",
			 TEXT_ARGS(one));
		return EX_USAGE;
	}
	return 0;
}

/* "memory,tasks" */
static void add_tools(struct koine_json *j, const char *tools)
{
	struct text rest = text_of(tools);
	struct text one;

	if (!tools || !params_begin_array(j, "tools"))
		return;
	while (text_next(&rest, ',', &one))
		koine_json_text_n(j, one.data, one.len);
	koine_json_end_array(j);
}

/* Tasks run in our own folder, whatever project is chosen: koined lets agents name no other. */
static int write_opening(const struct mcp_options *o, struct koine_json *j, bool with_folder)
{
	char name[PROJECT_NAME_MAX + 1];
	char folder[PATH_MAX];
	int r = project_of_word(o->project, name);

	if (r != 0) {
		complain("--project %s: %s", o->project, strerror(-r));
		return EX_NOINPUT;
	}
	params_add(j, "project", name);
	if (with_folder)
		params_add(j, "folder", getcwd(folder, sizeof(folder)));
	params_add(j, "session_id", option_from_environment("KOINE_SESSION_ID"));
	params_add(j, "run_id", option_from_environment("KOINE_RUN_ID"));
	add_tools(j, o->tools);
	return 0;
}

/* ---- the command ---- */

static int cmd_mcp(struct cli *cli)
{
	const struct mcp_options *o = cli->own;
	CLEANUP(json_freep) struct koine_json *j = params_new();
	CLEANUP(json_freep) struct koine_json *plain = params_new();
	CLEANUP(pipe_done) struct pipe p = {.cli = cli, .start = o->start ? start_koined : NULL};
	int r = check_tools(o->tools);

	if (r == 0)
		r = write_opening(o, j, true) ?: write_opening(o, plain, false);
	if (r != 0)
		return r;
	p.opening = params_end(j);
	p.plain_opening = params_end(plain);
	if (!p.opening || !p.plain_opening)
		return out_of_memory();
	if (talk_is_http(cli)) {
		complain("koine mcp requires a socket; an MCP client can connect to %s directly",
			 cli->address);
		return EX_USAGE;
	}
	cli->options.framing = "line";
	signal(SIGPIPE, SIG_IGN);
	return pipe_run(&p);
}

#define AT(member) OPTION_AT(struct mcp_options, member)

static const struct option options[] = {
	{"--project", NULL, "DIR|NAME",
	 "use the memories of this project; default: the project of the current folder",
	 option_word, AT(project)},
	{"--tools", NULL, "LIST",
	 "offer only these tools: memory,tasks,human,permission; default: memory,tasks,human",
	 option_word, AT(tools), .choices = "memory|tasks|human|permission"},
	{"--start", NULL, NULL, "start koined if it is not running", option_flag, AT(start)},
	{NULL},
};

const struct command mcp_commands[] = {
	{"mcp", "", "Run the MCP server for an agent",
	 "Agents start this command; `koine connect` sets it up. The server speaks the Model "
	 "Context Protocol on stdin and stdout and forwards requests to koined. When koined "
	 "restarts, the server reconnects: calls in progress fail, later calls succeed.\n",
	 cmd_mcp, NULL, options, sizeof(struct mcp_options), init_options, NO_ARGS,
	 .examples = {"koine mcp --start", "koine mcp --tools memory,tasks"}},
	{NULL},
};
