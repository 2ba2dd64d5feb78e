#include "model/approval.h"

const char *const approval_kind_names[N_APPROVAL_KINDS] = {
	[APPROVAL_FUNCTION] = "function_call", [APPROVAL_CONTACT] = "human_contact"};

const char *const approval_status_names[N_APPROVAL_STATUSES] = {
	[APPROVAL_PENDING] = "pending", [APPROVAL_APPROVED] = "approved",
	[APPROVAL_DENIED] = "denied",   [APPROVAL_RESPONDED] = "responded",
	[APPROVAL_EXPIRED] = "expired", [APPROVAL_SUPERSEDED] = "superseded",
};

static const char *const verdict_names[] = {[GRANT_ALLOWS] = "allow", [GRANT_DENIES] = "deny"};

/* Short names, so that a member is one line. */
enum {
	MADE = MEMBER_MADE,
	CHANGES = MEMBER_CHANGES,
	HEAD = APPROVAL_HEAD,
	ENDS = APPROVAL_ENDS,
	DECIDER = APPROVAL_DECIDER,
};

#define MEMBER(kind, field) MEMBER_OF(struct approval, kind, field)

/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MADE},
	{"id", "id", MEMBER(TEXT, id), HEAD | ENDS},
	{"status", "status", MEMBER(ENUM, status), HEAD | ENDS | CHANGES, MEMBER_NAMES(approval_status_names)},
	{"kind", "kind", MEMBER(ENUM, kind), HEAD, MEMBER_NAMES(approval_kind_names)},
	{"tool", "tool", MEMBER(TEXT, tool), HEAD | MEMBER_NOT_NULL},
	{"input", "input", MEMBER(PACKED, input), APPROVAL_INPUT, .absent = ABSENT_EMPTY},
	{"session_id", "session", MEMBER(TEXT, session)},
	{"run_id", "run", MEMBER(TEXT, run)},
	{"agent", "agent", MEMBER(TEXT, agent)},
	{"origin", "origin", MEMBER(TEXT, origin)},
	{"tool_use_id", "tool_use_id", MEMBER(TEXT, tool_use_id)},
	{"event_id", "event_id", MEMBER(INT, event_id), 0, NONE_IS_ZERO},
	{"created_at", "created_ms", MEMBER(TIME, created_ms), 0, NONE_IS_ZERO},
	{"deadline", "deadline_ms", MEMBER(TIME, deadline_ms), 0, NONE_IS_ZERO},
	{"comment", "comment", MEMBER(BLOB, comment), ENDS | CHANGES},
	{"decided_by", "decided_by", MEMBER(TEXT, decided_by), ENDS | CHANGES},
	{"decided_at", "decided_ms", MEMBER(TIME, decided_ms), ENDS | CHANGES, NONE_IS_ZERO},
	{"host", "host", MEMBER(TEXT, host), .absent = ABSENT_LEFT_OUT},
	{NULL, "asker_pid", MEMBER(INT, asker_pid)},
	{NULL, "asker_started", MEMBER(INT, asker_started)},
	{NULL, "bond", MEMBER(INT, bond)},
	{NULL, "waiter_pid", MEMBER(INT, waiter_pid)},
	{NULL, "waiter_started", MEMBER(INT, waiter_started)},
	{NULL, "decider_uid", MEMBER(INT, decider_uid), DECIDER | CHANGES},
	{NULL, "decider_pid", MEMBER(INT, decider_pid), DECIDER | CHANGES},
	{NULL, "decider_program", MEMBER(BLOB, decider_program), DECIDER | CHANGES},
	{NULL, "decider_terminal", MEMBER(TEXT, decider_terminal), DECIDER | CHANGES},
};

#define GRANT(kind, field) MEMBER_OF(struct grant, kind, field)

static const struct member grant_members[] = {
	{"id", "id", GRANT(TEXT, id)},
	{"verdict", "denies", GRANT(ENUM, verdict), 0, MEMBER_NAMES(verdict_names)},
	{"tool", "tool", GRANT(TEXT, tool)},
	{"pattern", "pattern", GRANT(TEXT, pattern)},
	{"session_id", "session", GRANT(TEXT, session)},
	{"agent", "agent", GRANT(TEXT, agent)},
	{"comment", "comment", GRANT(BLOB, comment)},
	{"created_at", "created_ms", GRANT(TIME, created_ms), 0, NONE_IS_ZERO},
	{"expires_at", "expires_ms", GRANT(TIME, expires_ms), 0, NONE_IS_ZERO},
	{"uses", "uses", GRANT(INT, uses), 0, NONE_IS_NEGATIVE},
};
/* clang-format on */

const struct schema approval_schema = SCHEMA(struct approval, members);
const struct schema grant_schema = SCHEMA(struct grant, grant_members);

const char *approval_kind_name(enum approval_kind kind)
{
	return approval_kind_names[kind];
}

bool approval_kind_parse(struct text t, enum approval_kind *ret_kind)
{
	unsigned found;

	if (!member_find_word(approval_kind_names, N_APPROVAL_KINDS, t, &found))
		return false;
	*ret_kind = (enum approval_kind)found;
	return true;
}

const char *approval_status_name(enum approval_status status)
{
	return approval_status_names[status];
}

bool approval_status_parse(struct text t, enum approval_status *ret_status)
{
	unsigned found;

	if (!member_find_word(approval_status_names, N_APPROVAL_STATUSES, t, &found))
		return false;
	*ret_status = (enum approval_status)found;
	return true;
}
