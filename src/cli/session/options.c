/* The options of the commands about sessions. */
#include <string.h>

#include "cli/chat/chat.h"
#include "cli/session/session.h"

#define SET_WORD(member)                                                                           \
	static bool set_##member(struct cli_options *o, const char *value)                         \
	{                                                                                          \
		o->session.member = value;                                                         \
		return value[0] != '\0';                                                           \
	}
#define SET_FLAG(member)                                                                           \
	static bool set_##member(struct cli_options *o, const char *value)                         \
	{                                                                                          \
		o->session.member = true;                                                          \
		return true;                                                                       \
	}
#define SET_LIST(member)                                                                           \
	static bool set_##member(struct cli_options *o, const char *value)                         \
	{                                                                                          \
		if (o->session.n_##member == SESSION_TOOL_ARGS)                                    \
			return false;                                                              \
		o->session.member[o->session.n_##member++] = value;                                \
		return value[0] != '\0';                                                           \
	}

SET_WORD(model)
SET_WORD(cwd)
SET_WORD(agent)
SET_WORD(title)
SET_WORD(system_prompt)
SET_WORD(append_system_prompt)
SET_WORD(status)
SET_FLAG(follow)
SET_FLAG(all)
SET_FLAG(raw)
SET_FLAG(full)
SET_FLAG(chain)
SET_LIST(allow)
SET_LIST(deny)

static bool set_max_turns(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->session.max_turns) && o->session.max_turns > 0;
}

static bool set_limit(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->session.limit) && o->session.limit > 0 &&
	       o->session.limit <= 1000;
}

#define RUN_OPTIONS                                                                                \
	{"--follow", "-f", NULL, "print what is said until it ends, and exit so", set_follow},     \
		{"--model", "-m", "MODEL", "given to the agent's program", set_model},             \
		{"--agent", "-a", "NAME", "an agent of the daemon's settings, or claude",          \
		 set_agent},                                                                       \
		{"--title", NULL, "TITLE", "a name for people", set_title},                        \
		{"--max-turns",           NULL,          "N",                                      \
		 "so many turns at most", set_max_turns, "a number above 0"},                      \
		{"--system-prompt", NULL, "TEXT", "in the place of the agent's own",               \
		 set_system_prompt},                                                               \
		{"--append-system-prompt", NULL, "TEXT", "behind the agent's own",                 \
		 set_append_system_prompt},                                                        \
		{"--allow", NULL, "TOOL", "may be used without asking; may be given often",        \
		 set_allow},                                                                       \
	{                                                                                          \
		"--deny", NULL, "TOOL", "may not be used; may be given often", set_deny            \
	}

const struct option session_run_options[] = {
	RUN_OPTIONS,
	{"--cwd", "-C", "DIR", "where it runs; else in this folder", set_cwd},
	{NULL},
};

const struct option session_continue_options[] = {
	RUN_OPTIONS,
	{"--cwd", "-C", "DIR", "where it runs; else where it ran", set_cwd},
	{NULL},
};

const struct option session_list_options[] = {
	{"--all", "-a", NULL, "archived ones, too", set_all},
	{"--status", NULL, "STATUS", "those of one status: running, completed, ...", set_status},
	{"--limit", "-n", "N", "how many at most; 20", set_limit, "from 1 to 1000"},
	{NULL},
};

const struct option session_log_options[] = {
	{"--follow", "-f", NULL, "go on until it ends", set_follow},
	{"--full", NULL, NULL, "tools' inputs and results as they are", set_full},
	{"--raw", NULL, NULL, "lines that were not understood, too", set_raw},
	{"--chain", NULL, NULL, "begin with the sessions that it goes on from", set_chain},
	{NULL},
};

const struct option session_tree_options[] = {
	{"--all", "-a", NULL, "archived ones, too", set_all},
	{NULL},
};
