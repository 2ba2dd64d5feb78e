/*
 * The hooks of agents: what they say about a tool call, and in what form each expects the
 * decision. koined reads and answers hooks by these; `koine hook` answers where koined cannot.
 *
 * A hook points into the tree that was read; what is made for it lives in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"
#include "base/error.h"

enum hook_form {
	HOOK_NONE,        /* nothing to decide, or unknown: nothing is said */
	HOOK_EMPTY,       /* the same, for an agent that wants an empty object then */
	HOOK_PLAIN,       /* of any program: {"decision", "comment", "approval_id"} */
	HOOK_PRE_TOOL,    /* Claude's PreToolUse: allow, deny or ask, with a reason */
	HOOK_VETO,        /* Codex's PreToolUse: deny, or nothing; deny what koine refuses */
	HOOK_PERMISSION,  /* PermissionRequest: allow or deny */
	HOOK_GEMINI,      /* BeforeTool: allow means no objection */
	HOOK_CURSOR,      /* permission: allow, deny or ask */
	HOOK_COPILOT,     /* permissionDecision: allow, deny or ask */
	HOOK_ELICITATION, /* Claude's: accept with content, decline or cancel */
	N_HOOK_FORMS,
};

/* An event about which nobody decides, but which koined is told of. */
struct hook_told {
	const char *event;
	const char *what; /* as agent.note has it */
	const char *text; /* the member that says something; or NULL */
	bool recalls;     /* the agent wants to know what is remembered */
};

struct hook_event {
	const char *name;
	enum hook_form form;
	const char *tool;       /* of an event that is about one tool only; else NULL */
	const char *members[3]; /* what that is for */
};

/* What an agent's hooks look like. */
struct hook_vendor {
	const char *name; /* as --format and approvals have it */
	const char *tool; /* the member that names the tool */
	const char *input;
	const char *session;
	enum hook_form without; /* the form of an event without a name */
	enum hook_form unread;  /* of what cannot be read: whether the agent can be told to ask */
	enum hook_form silent;  /* of an event that nobody decides about */
	bool inner;             /* its input may be JSON within a string */
	/* Bytes by which it is known; what nobody else writes. */
	const char *known_by;
	const char *own; /* what the names of koine's own tools begin with; or NULL */
	/* It does not tell its mode, and decides by its own rules if nothing is said. */
	bool has_no_mode;
	struct hook_event events[5];
	struct hook_told told[7];
};

/* What came, and how it is to be read. */
struct hook_source {
	struct text text;
	const struct value *tree; /* NULL: it is no JSON, as `error` says already */
	struct text format;       /* "auto", "plain", or the name of a vendor; empty: "auto" */
	struct text agent;        /* who asks; {NULL, 0}: as it looks */
};

/* Texts are {NULL, 0} where they are not given. Ids and folders are cut to what koined takes. */
struct hook {
	enum hook_form form;
	const struct hook_vendor *vendor; /* NULL: the plain form, or unknown */
	struct text agent;
	struct text kind; /* of the approval, as the asker says; else {NULL, 0}: a function call */
	struct text tool;
	const struct value *input; /* an object; NULL: none */
	const struct value
		*field;      /* of an elicitation: what it asks for; NULL: only to be accepted */
	struct text session; /* the agent's own id of its session */
	struct text folder;
	struct text tool_use_id;
	/* It is about a tool of koine's, and the agent decides by its own rules if nothing is said. So
	 * policies and grants decide, and no human is asked whether a human may be asked. */
	bool by_rules;
	const struct hook_told *told; /* only with REFUSE_METHOD; or NULL */
	struct text said;             /* of what koined is told */
};

/*
 * REFUSE_PARSE, REFUSE_PARAMS: `error` says what is wrong, and the form is the best guess.
 * REFUSE_METHOD: there is nothing to decide about this event, but koined may be told of it.
 */
int hook_read(struct arena *a, const struct hook_source *from, struct hook *ret,
	      struct error *error);

/* What the agent is part of, if koined runs it; {NULL, 0}: unknown. */
struct hook_run {
	struct text session;
	struct text id;
};

/* What the approval says of where the question comes from. */
struct hook_place {
	struct text session;
	struct text run;
	struct text origin;
};

struct hook_place hook_place(const struct hook *h, const struct hook_run *run);

struct hook_outcome {
	struct text status; /* as koined says it, or "unavailable" */
	struct text comment;
	struct text decided_by;
	struct text id; /* of the approval; {NULL, 0}: none was requested */
	/* It is unavailable because of the question itself, as `comment` says. The agent must
	 * not continue then. */
	bool refused;
};

/* Reads what was not received as a whole: the form of the agent of this name, or else of Claude Code,
 * the one that posts its hooks. */
void hook_read_unreceived(struct text agent, struct hook *ret);

/* Adds what to say, which is JSON, or nothing, so that the agent asks by itself. */
void hook_answer(const struct hook *h, const struct hook_outcome *o, struct buf *out);

/* ---- what is remembered, for an event that `recalls` ---- */

enum {
	HOOK_RECALLED = 8,          /* memories */
	HOOK_MEMORY_SHOWN = 600,    /* bytes of each */
	HOOK_CONTEXT_MAX = 8 << 10, /* bytes of all */
	HOOK_TEXT_MAX = 4096,       /* bytes of what was asked or said that koined is told */
	HOOK_ID_MAX = 256,          /* of names that decide nothing */
	HOOK_FOLDER_MAX = 4096,
	HOOK_WAIT_MS = 55 * 1000, /* agents end their hooks after 60 s, unless told otherwise */
};

struct hook_memory {
	struct text id;
	struct text created; /* an ISO time, of which the day is shown */
	struct text content;
};

/* Begins an empty text, or adds a memory to it if there is still space for it. */
void hook_context_begin(struct buf *out);
void hook_context_add(struct buf *out, const struct hook_memory *m);
/* Adds the answer to such an event: nothing if nothing is remembered. */
void hook_context_answer(const struct hook_told *told, const struct buf *context, struct buf *out);
