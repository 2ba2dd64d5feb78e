/* The options of the commands about approvals. */
#include <string.h>

#include "cli/approval/approval.h"
#include "cli/chat/chat.h"
#include "cli/kit/duration.h"

static bool set_agent(struct cli_options *o, const char *value)
{
	o->approval.agent = value;
	return value[0] != '\0';
}

static bool is_one_of(const char *value, const char *const *words)
{
	for (; *words; words++) {
		if (strcmp(value, *words) == 0)
			return true;
	}
	return false;
}

static bool set_format(struct cli_options *o, const char *value)
{
	static const char *const words[] = {"auto", "claude", "codex", "plain", NULL};

	o->approval.format = value;
	return is_one_of(value, words);
}

static bool set_wait(struct cli_options *o, const char *value)
{
	return duration_parse(value, &o->approval.wait_ms) && o->approval.wait_ms > 0;
}

static bool set_watch(struct cli_options *o, const char *value)
{
	o->approval.watch = true;
	return true;
}

static bool set_all(struct cli_options *o, const char *value)
{
	o->approval.all = true;
	return true;
}

static bool set_session(struct cli_options *o, const char *value)
{
	o->approval.session = value;
	return value[0] != '\0';
}

static bool set_limit(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->approval.limit) && o->approval.limit > 0 &&
	       o->approval.limit <= APPROVALS_MAX;
}

static bool set_exact(struct cli_options *o, const char *value)
{
	o->approval.exact = true;
	return true;
}

static bool set_comment(struct cli_options *o, const char *value)
{
	o->approval.comment = value;
	return true;
}

static bool set_grant(struct cli_options *o, const char *value)
{
	static const char *const words[] = {"session", "always", NULL};

	o->approval.grant = value;
	return is_one_of(value, words);
}

static bool set_for(struct cli_options *o, const char *value)
{
	return duration_parse(value, &o->approval.for_ms) && o->approval.for_ms > 0;
}

static bool set_uses(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->approval.uses) && o->approval.uses > 0;
}

const struct option hook_options[] = {
	{"--agent", "-a", "NAME", "who asks; else as the hook's JSON looks", set_agent},
	{"--format", "-f", "FORMAT", "auto, claude, codex or plain: how to answer", set_format,
	 "auto, claude, codex or plain"},
	{"--timeout", "-t", "TIME", "wait so long: 55, 10m; 55s, plain: as the daemon", set_wait,
	 "like 90, 10m or 2h"},
	{NULL},
};

#define EXACT                                                                                      \
	{                                                                                          \
		"--exact", NULL, NULL, "ID is whole, whatever else begins with it", set_exact      \
	}

const struct option approvals_options[] = {
	{"--watch", "-w", NULL, "a list that updates; in a pipe, a line for each change",
	 set_watch},
	{"--all", "-a", NULL, "those that were decided, too", set_all},
	{"--session", NULL, "ID", "those of one session, by its id or a beginning of it",
	 set_session},
	{"--limit", "-n", "N", "how many at most; 100", set_limit, "from 1 to 1000"},
	EXACT,
	{NULL},
};

#define COMMENT(help)                                                                              \
	{                                                                                          \
		"--comment", "-c", "TEXT", help, set_comment                                       \
	}
#define GRANTS                                                                                     \
	{"--grant", "-g", "session|always", "the same from now on, without asking", set_grant},    \
		{"--for", NULL,                                                                    \
		 "TIME",  "so long: 90, 10m, 2h; else for good",                                   \
		 set_for, "like 90, 10m or 2h"},                                                   \
	{                                                                                          \
		"--uses", NULL, "N", "so often; else any number", set_uses                         \
	}

const struct option approve_options[] = {
	COMMENT("what the agent is told"),
	GRANTS,
	EXACT,
	{NULL},
};

const struct option deny_options[] = {
	COMMENT("why: the agent is told; on a terminal you are asked for it"),
	GRANTS,
	EXACT,
	{NULL},
};

const struct option respond_options[] = {EXACT, {NULL}};
