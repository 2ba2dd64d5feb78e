/* The options of koine session. */
#include "cli/session/session.h"

#define AT(member) OPTION_AT(struct session_options, member)

/* clang-format off */
#define RUN_OPTIONS(where) \
	{"--follow", "-f", NULL, "print the events of the session until the session ends", \
		option_flag, AT(follow)}, \
	{"--model", "-m", "MODEL", "set the model that the agent uses", option_word, \
		.param = "model"}, \
	{"--agent", "-a", "NAME", "run this agent: claude, or an agent of koine.conf", \
		option_word, .param = "agent", .completes = COMPLETES_AGENT}, \
	{"--title", NULL, "TITLE", "set the title of the session", option_word, \
		.param = "title"}, \
	{"--max-turns", NULL, "N", "stop after N turns", option_number, .min = 1, \
		.param = "max_turns"}, \
	{"--system-prompt", NULL, "TEXT", "replace the agent's system prompt", option_word, \
		.param = "system_prompt"}, \
	{"--append-system-prompt", NULL, "TEXT", "append to the agent's system prompt", option_word, \
		.param = "append_system_prompt"}, \
	{"--allow", NULL, "TOOL", "allow TOOL without approval (repeatable)", option_list, \
		.param = "allowed_tools"}, \
	{"--deny", NULL, "TOOL", "deny TOOL (repeatable)", option_list, .param = "disallowed_tools"}, \
	{"--cwd", "-C", "DIR", "run in DIR; default: " where, option_word, AT(folder)}
/* clang-format on */

const struct option session_run_options[] = {RUN_OPTIONS("this folder"), {NULL}};

const struct option session_continue_options[] = {RUN_OPTIONS("the same folder"), {NULL}};

const struct option session_list_options[] = {
	{"--all", "-a", NULL, "include archived sessions", option_flag, AT(all)},
	{"--status", NULL, "STATUS", "show only sessions with this status: running, completed, ...",
	 option_word, AT(status), .param = "status",
	 .choices = "starting|running|waiting_input|completing|completed|failed|interrupted"},
	{"--limit", "-n", "N", "show at most N sessions; default 20", option_number, AT(limit),
	 "from 1 to 1000", 1, 1000},
	{NULL},
};

const struct option session_log_options[] = {
	{"--follow", "-f", NULL, "keep printing until the session ends", option_flag, AT(follow)},
	{"--last", "-n", "N", "show only the last N events", option_number, AT(last),
	 "a whole number above 0", 1},
	{"--full", NULL, NULL, "show tool inputs and results in full", option_flag, AT(full)},
	{"--raw", NULL, NULL, "include output lines that koined could not parse", option_flag,
	 AT(raw)},
	{"--chain", NULL, NULL, "first print the earlier sessions that this session continues",
	 option_flag, AT(chain)},
	{NULL},
};

const struct option session_tree_options[] = {
	{"--all", "-a", NULL, "include archived sessions", option_flag, AT(all)},
	{NULL},
};
