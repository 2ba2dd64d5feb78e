/* The options of koine session. */
#include "cli/session/session.h"

#define AT(member) offsetof(struct session_options, member)

/* clang-format off */
#define RUN_OPTIONS(where) \
	{"--follow", "-f", NULL, "print what is said until it ends, and exit so", option_flag, \
		AT(follow)}, \
	{"--model", "-m", "MODEL", "given to the agent's program", option_word, AT(model)}, \
	{"--agent", "-a", "NAME", "an agent of the daemon's settings, or claude", option_word, \
		AT(agent), .completes = COMPLETES_AGENT}, \
	{"--title", NULL, "TITLE", "a name for people", option_word, AT(title)}, \
	{"--max-turns", NULL, "N", "so many turns at most", option_number, AT(max_turns), \
		"a number above 0", 1}, \
	{"--system-prompt", NULL, "TEXT", "in the place of the agent's own", option_word, \
		AT(system_prompt)}, \
	{"--append-system-prompt", NULL, "TEXT", "behind the agent's own", option_word, \
		AT(append_system_prompt)}, \
	{"--allow", NULL, "TOOL", "may be used without asking; may be given often", option_list, \
		AT(allow)}, \
	{"--deny", NULL, "TOOL", "may not be used; may be given often", option_list, AT(deny)}, \
	{"--cwd", "-C", "DIR", "where it runs; else " where, option_word, AT(folder)}
/* clang-format on */

const struct option session_run_options[] = {RUN_OPTIONS("in this folder"), {NULL}};

const struct option session_continue_options[] = {RUN_OPTIONS("where it ran"), {NULL}};

const struct option session_list_options[] = {
	{"--all", "-a", NULL, "archived ones, too", option_flag, AT(all)},
	{"--status", NULL, "STATUS", "those of one status: running, completed, ...", option_word,
	 AT(status),
	 .choices = "starting|running|waiting_input|completing|completed|failed|interrupted"},
	{"--limit", "-n", "N", "how many at most; 20", option_number, AT(limit), "from 1 to 1000",
	 1, 1000},
	{NULL},
};

const struct option session_log_options[] = {
	{"--follow", "-f", NULL, "go on until it ends", option_flag, AT(follow)},
	{"--last", "-n", "N", "the last N events, not all of them", option_number, AT(last),
	 "a number above 0", 1},
	{"--full", NULL, NULL, "tools' inputs and results as they are", option_flag, AT(full)},
	{"--raw", NULL, NULL, "lines that were not understood, too", option_flag, AT(raw)},
	{"--chain", NULL, NULL, "begin with the sessions that it goes on from", option_flag,
	 AT(chain)},
	{NULL},
};

const struct option session_tree_options[] = {
	{"--all", "-a", NULL, "archived ones, too", option_flag, AT(all)},
	{NULL},
};
