/* The options of the commands about approvals. */
#include "cli/approval/approval.h"

#define AT(member) OPTION_AT(struct approval_options, member)

const struct option hook_options[] = {
	{"--agent", "-a", "NAME", "set the agent name; default: detected from the hook input",
	 option_word, AT(agent)},
	{"--format", "-f", "FORMAT",
	 "set the input and output format: auto, claude, codex, gemini, cursor, copilot or plain",
	 option_choice, AT(format), "one of auto, claude, codex, gemini, cursor, copilot or plain",
	 .choices = "auto|claude|codex|gemini|cursor|copilot|plain"},
	{"--timeout", "-t", "TIME",
	 "wait at most TIME (55, 10m); default: 55s, or approval.timeout with --format plain",
	 option_span, AT(wait_ms), "like 90, 10m or 2h", .min = 1},
	{NULL},
};

const struct option ask_options[] = {
	{"--choices", "-c", "LIST", "offer these answers, separated by commas: blue,green",
	 option_word, AT(choices)},
	{"--timeout", "-t", "TIME", "wait at most TIME (90, 10m, 2h); default: approval.timeout",
	 option_span, AT(wait_ms), "like 90, 10m or 2h", .min = 1},
	{"--agent", "-a", "NAME", "set the agent name that the inbox shows and policies match",
	 option_word, AT(agent)},
	{NULL},
};

/* clang-format off */
#define EXACT \
	{"--exact", NULL, NULL, "treat ID as a full id, not as a prefix", option_flag, AT(exact)}

/* What approve and deny share. */
#define DECIDE_OPTIONS(comment_help) \
	{"--comment", "-c", "TEXT", comment_help, option_text, AT(comment)}, \
	{"--grant", "-g", "session|always", "decide matching requests the same way from now on", option_choice, \
		AT(grant)}, \
	{"--for", NULL, "TIME", "let the grant expire after TIME (90, 10m, 2h); default: never", option_span, AT(for_ms), \
		"like 90, 10m or 2h", 1}, \
	{"--uses", NULL, "N", "limit the grant to N uses; default: no limit", option_number, AT(uses), NULL, 1}, \
	EXACT
/* clang-format on */

const struct option approvals_options[] = {
	{"--watch", "-w", NULL, "show a live list; in a pipe, print a line for each change",
	 option_flag, AT(watch)},
	{"--all", "-a", NULL, "include decided approvals", option_flag, AT(all)},
	{"--session", NULL, "ID", "show only approvals of this session (id or prefix)", option_word,
	 AT(session), .completes = COMPLETES_SESSION},
	{"--limit", "-n", "N", "show at most N approvals; default 100", option_number, AT(limit),
	 "from 1 to 1000", 1, APPROVALS_MAX},
	EXACT,
	{NULL},
};

const struct option approve_options[] = {
	DECIDE_OPTIONS("send this comment to the agent with the decision"), {NULL}};

const struct option deny_options[] = {
	DECIDE_OPTIONS(
		"send this reason to the agent; on a terminal, koine asks for a missing reason"),
	{NULL},
};

const struct option respond_options[] = {EXACT, {NULL}};
