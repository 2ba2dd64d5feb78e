/* The options of the commands about approvals. */
#include "cli/approval/approval.h"

#define AT(member) offsetof(struct approval_options, member)

const struct option hook_options[] = {
	{"--agent", "-a", "NAME", "who asks; else as the hook's JSON looks", option_word,
	 AT(agent)},
	{"--format", "-f", "FORMAT",
	 "auto, claude, codex, gemini, cursor, copilot or plain; auto: as the JSON looks",
	 option_choice, AT(format), "one of auto, claude, codex, gemini, cursor, copilot or plain",
	 .choices = "auto|claude|codex|gemini|cursor|copilot|plain"},
	{"--timeout", "-t", "TIME", "wait so long: 55, 10m; 55s, plain: as the daemon", option_span,
	 AT(wait_ms), "like 90, 10m or 2h", .min = 1},
	{NULL},
};

const struct option ask_options[] = {
	{"--choices", "-c", "LIST", "answers to choose from, between commas: blue,green",
	 option_word, AT(choices)},
	{"--timeout", "-t", "TIME", "wait so long: 90, 10m, 2h; else as the daemon's settings say",
	 option_span, AT(wait_ms), "like 90, 10m or 2h", .min = 1},
	{"--agent", "-a", "NAME", "who asks, for people and policies", option_word, AT(agent)},
	{NULL},
};

/* clang-format off */
#define EXACT \
	{"--exact", NULL, NULL, "ID is whole, whatever else begins with it", option_flag, AT(exact)}

/* What approve and deny share. */
#define DECIDE_OPTIONS(comment_help) \
	{"--comment", "-c", "TEXT", comment_help, option_text, AT(comment)}, \
	{"--grant", "-g", "session|always", "the same from now on, without asking", option_choice, \
		AT(grant)}, \
	{"--for", NULL, "TIME", "so long: 90, 10m, 2h; else for good", option_span, AT(for_ms), \
		"like 90, 10m or 2h", 1}, \
	{"--uses", NULL, "N", "so often; else any number", option_number, AT(uses), NULL, 1}, \
	EXACT
/* clang-format on */

const struct option approvals_options[] = {
	{"--watch", "-w", NULL, "a list that updates; in a pipe, a line for each change",
	 option_flag, AT(watch)},
	{"--all", "-a", NULL, "those that were decided, too", option_flag, AT(all)},
	{"--session", NULL, "ID", "those of one session, by its id or a beginning of it",
	 option_word, AT(session), .completes = COMPLETES_SESSION},
	{"--limit", "-n", "N", "how many at most; 100", option_number, AT(limit), "from 1 to 1000",
	 1, APPROVALS_MAX},
	EXACT,
	{NULL},
};

const struct option approve_options[] = {DECIDE_OPTIONS("what the agent is told"), {NULL}};

const struct option deny_options[] = {
	DECIDE_OPTIONS("why: the agent is told; on a terminal you are asked for it"),
	{NULL},
};

const struct option respond_options[] = {EXACT, {NULL}};
