/*
 * The hooks of agents: what they say about a tool call, and in what form each expects the
 * decision.
 *
 * These functions need no server. The texts live as long as the hook.
 */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum hook_form {
	HOOK_NONE,       /* nothing to decide, or unknown: nothing is printed */
	HOOK_EMPTY,      /* the same, for an agent that wants an empty object then */
	HOOK_PLAIN,      /* of any program: {"decision", "comment", "approval_id"} */
	HOOK_PRE_TOOL,   /* Claude's PreToolUse: allow, deny or ask, with a reason */
	HOOK_VETO,       /* Codex's PreToolUse: deny, or nothing */
	HOOK_PERMISSION, /* PermissionRequest: allow or deny */
	HOOK_GEMINI,     /* BeforeTool: allow means no objection */
	HOOK_CURSOR,     /* permission: allow, deny or ask */
	HOOK_COPILOT,    /* permissionDecision: allow, deny or ask */
	N_HOOK_FORMS,
};

struct hook_vendor;

/* An event about which nobody decides, but which koined is told of. */
struct hook_told {
	const char *event;
	const char *what; /* as agent.note has it */
	const char *text; /* the member that says something; or NULL */
	bool recalls;     /* the agent wants to know what is remembered */
};

struct hook {
	struct koine_doc *doc;
	struct koine_doc *inner; /* of an input that is JSON within a string; or NULL */
	enum hook_form form;
	const struct hook_vendor *vendor; /* NULL: the plain form, or unknown */
	const char *agent;                /* NULL: unknown */
	struct text tool;
	const struct hook_told *told;    /* only with KOINE_METHOD; or NULL */
	const struct koine_value *input; /* or NULL */
	const char *const *members;      /* of the message, which are the input instead; or NULL */
};

/*
 * `format` is auto, plain, or the name of a vendor; `agent` may be NULL. KOINE_PARSE, KOINE_PARAMS:
 * `error` says what is wrong, and the form is the best guess. KOINE_METHOD: there is nothing to
 * decide about this event, but koined may be told of it.
 */
int hook_read(struct hook *h, const char *text, size_t len, const char *format, const char *agent,
	      char *error, size_t error_size);
void hook_done(struct hook *h);

/* What the agent is part of, if koined runs it; NULL: unknown. */
struct hook_run {
	const char *session;
	const char *id;
};

/* The params of approval.request. timeout_ms 0: the daemon's default. */
void hook_write_request(const struct hook *h, const struct hook_run *run, const char *id,
			int64_t timeout_ms, struct koine_json *j);

struct hook_outcome {
	struct text status; /* as koined says it, or "unavailable" */
	struct text comment;
	struct text decided_by;
	const char *id; /* of the approval; NULL: none was requested */
	/* It is unavailable because of the question itself, as `comment` says. The agent must
	 * not continue then. */
	bool refused;
};

/* What to print. False: nothing, so that the agent asks by itself. */
bool hook_write_answer(const struct hook *h, const struct hook_outcome *o, struct koine_json *j);

struct cli;

/* tell.c: for a hook with `told`. Prints what is remembered, if the agent wants that. */
void hook_tell(struct cli *cli, const struct hook *h);
