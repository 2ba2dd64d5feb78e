/* What the methods about approvals share. */
#pragma once

#include "call/call.h"
#include "engine/approval/approval.h"

struct approval_in {
	struct text id;
	struct text kind;
	struct text tool;
	const struct value *input;
	struct text session_id;
	struct text run_id;
	struct text agent;
	struct text origin;
	struct text tool_use_id;
	double timeout;
	bool by_rules;
};

/* ---- grant.c ---- */

struct done koine_grant_list(struct call *c);
struct done koine_grant_add(struct call *c);
struct done koine_grant_remove(struct call *c);

struct grant_in {
	struct text id;
	struct text tool;
	struct text pattern;
	struct text session_id;
	struct text agent;
	struct text verdict;
	struct text comment;
	double seconds;
	int64_t uses;
};

/* ---- json.c ---- */

/*
 * How koine's own methods write an approval. A member without a value is null.
 *
 * The status and the decision. approval.request, approval.create, approval.decide and
 * approval.withdraw answer with it, and the error for a second decision has it as `approval`:
 *
 *	{"id":"local-6f1c…","status":"approved","comment":null,"decided_by":"human",
 *	 "decided_at":"2026-11-15T07:47:17.177Z"}
 *
 * `status` is pending, approved, denied, responded, expired or superseded. `decided_by` is "human",
 * "policy:NAME" or "grant:ID".
 *
 * The whole approval. approval.get answers with it, and approval.list with
 * {"approvals":[…],"pending":N}, a list of them:
 *
 *	{"id":…,"status":…,"kind":"function_call","tool":"Bash","input":{"command":"ls"},
 *	 "session_id":null,"run_id":null,"agent":"claude","origin":null,"tool_use_id":null,
 *	 "event_id":null,"created_at":…,"deadline":null,"comment":null,"decided_by":null,
 *	 "decided_at":null}
 *
 * `kind` is function_call or human_contact. In a list a large input is null, followed by
 * "input_omitted":true; approval.get shows it. "input_text" is the input as a text, where a reader of
 * JSON might change it: a name stands twice in an object, or a number has many digits.
 *
 * A grant. approval.grant answers with it, and approval.grants with {"grants":[…]}:
 *
 *	{"id":…,"verdict":"allow","tool":"Bash","pattern":"git *","session_id":null,"agent":null,
 *	 "comment":null,"created_at":…,"expires_at":null,"uses":null}
 *
 * `verdict` is allow or deny. `uses` is how many are left; null means any number.
 */
enum {
	APPROVAL_SHOWN = 64 << 10,    /* bytes of an input in a list */
	APPROVALS_SHOWN_MAX = 4 << 20 /* ... and of all inputs together */
};

/* Writes the status and the decision. */
void approval_json_write_end(struct json *j, const struct approval *a);

/* Writes the whole approval. *left is what inputs may still take in a list, and shrinks; NULL
 * outside of lists. */
void approval_json_write(struct json *j, const struct approval *a, size_t *left);
