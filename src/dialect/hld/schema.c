/*
 * Sessions, their events, and approvals as hld's clients know them: tables over the same
 * structs as koine's own, with Go's rules. A member is left out where Go's omitempty leaves it
 * out: for "", 0 and false.
 */
#include "dialect/hld/hld.h"

/* The statuses that clients know. They have no words for two of ours. */
static const char *const session_statuses[N_SESSION_STATUSES] = {
	[SESSION_STARTING] = "starting",     [SESSION_RUNNING] = "running",
	[SESSION_WAITING] = "waiting_input", [SESSION_COMPLETING] = "running",
	[SESSION_COMPLETED] = "completed",   [SESSION_FAILED] = "failed",
	[SESSION_INTERRUPTED] = "completed",
};

static const char *const approval_statuses[N_APPROVAL_STATUSES] = {
	[APPROVAL_PENDING] = "pending",  [APPROVAL_APPROVED] = "approved",
	[APPROVAL_DENIED] = "denied",    [APPROVAL_RESPONDED] = "responded",
	[APPROVAL_EXPIRED] = "resolved", [APPROVAL_SUPERSEDED] = "resolved",
};

static const char *const event_types[N_SESSION_EVENT_TYPES] = {
	"message", "tool_call", "tool_result", "system", "raw", "thinking"};

static const char *const call_approvals[N_SESSION_APPROVALS] = {NULL, "pending", "approved",
								"denied", "resolved"};

const char *hld_approval_status(enum approval_status status)
{
	return approval_statuses[status];
}

/* Short names, so that a member is one line. */
enum {
	FIT = MEMBER_CUT,
	SECONDS = HLD_SECONDS,
	BEHIND = HLD_BEHIND,
	LAST = HLD_LAST,
};

#define OMITTED .absent = ABSENT_LEFT_OUT

/* clang-format off */
#define MEMBER(kind, field) NULL, MEMBER_OF(struct session, kind, field)

static const struct member info_members[] = {
	{"id", MEMBER(TEXT, id)},
	{"run_id", MEMBER(TEXT, run)},
	{"claude_session_id", MEMBER(TEXT, agent_session), OMITTED},
	{"parent_session_id", MEMBER(TEXT, parent), OMITTED},
	{"status", MEMBER(ENUM, status), MEMBER_NAMES(session_statuses)},
	{"start_time", MEMBER(TIME, created_ms)},
	{"end_time", MEMBER(TIME, ended_ms), OMITTED},
	{"last_activity_at", MEMBER(TIME, active_ms)},
	{"error", MEMBER(BLOB, error), FIT, OMITTED},
	{"query", MEMBER(BLOB, query), FIT},
	{"summary", MEMBER(TEXT, summary)},
	{"title", MEMBER(TEXT, title), OMITTED},
	{"model", MEMBER(TEXT, model), OMITTED},
	{"working_dir", MEMBER(TEXT, working_dir), OMITTED},
	{"archived", MEMBER(BOOL, archived), LAST, OMITTED},
};

/* input_tokens must hold the sum of both kinds here. */
static const struct member state_members[] = {
	{"id", MEMBER(TEXT, id)},
	{"run_id", MEMBER(TEXT, run)},
	{"claude_session_id", MEMBER(TEXT, agent_session), OMITTED},
	{"parent_session_id", MEMBER(TEXT, parent), OMITTED},
	{"status", MEMBER(ENUM, status), MEMBER_NAMES(session_statuses)},
	{"query", MEMBER(BLOB, query)},
	{"summary", MEMBER(TEXT, summary)},
	{"title", MEMBER(TEXT, title), OMITTED},
	{"model", MEMBER(TEXT, model), OMITTED},
	{"working_dir", MEMBER(TEXT, working_dir), OMITTED},
	{"created_at", MEMBER(TIME, created_ms), SECONDS},
	{"last_activity_at", MEMBER(TIME, active_ms), SECONDS},
	{"completed_at", MEMBER(TIME, ended_ms), SECONDS, OMITTED},
	{"error_message", MEMBER(BLOB, error), OMITTED},
	{"cost_usd", MEMBER(REAL, cost_usd), OMITTED},
	{"total_tokens", MEMBER(INT, input_tokens), OMITTED},
	{"duration_ms", MEMBER(INT, duration_ms), OMITTED},
	{"archived", MEMBER(BOOL, archived), OMITTED},
};

#undef MEMBER

#define MEMBER(kind, field) NULL, MEMBER_OF(struct session_event, kind, field)

static const struct member event_members[] = {
	{"id", MEMBER(INT, id)},
	{"session_id", MEMBER(TEXT, session)},
	{"claude_session_id", MEMBER(TEXT, agent_session)},
	{"sequence", MEMBER(INT, sequence)},
	{"event_type", MEMBER(ENUM, type), MEMBER_NAMES(event_types)},
	{"created_at", MEMBER(TIME, created_ms), SECONDS},
	/* The original keeps no role for a call. */
	{"role", MEMBER(TEXT, role), HLD_NOT_OF_CALL, OMITTED},
	{"content", MEMBER(BLOB, content), HLD_NOT_OF_RESULT | FIT, OMITTED},
	{"tool_id", MEMBER(TEXT, tool_id), HLD_NOT_OF_RESULT, OMITTED},
	{"tool_name", MEMBER(TEXT, tool_name), OMITTED},
	{"parent_tool_use_id", MEMBER(TEXT, parent_tool), BEHIND, OMITTED},
	{"tool_result_for_id", MEMBER(TEXT, tool_id), BEHIND | HLD_OF_RESULT, OMITTED},
	{"tool_result_content", MEMBER(BLOB, content), BEHIND | HLD_OF_RESULT | FIT, OMITTED},
	{"is_completed", MEMBER(BOOL, completed), LAST},
	{"approval_status", MEMBER(ENUM, approval), LAST, MEMBER_NAMES(call_approvals)},
	{"approval_id", MEMBER(TEXT, approval_id), LAST, OMITTED},
};
#undef MEMBER

#define MEMBER(kind, field) NULL, MEMBER_OF(struct approval, kind, field)

static const struct member approval_members[] = {
	{"id", MEMBER(TEXT, id)},
	{"run_id", MEMBER(TEXT, run)},
	{"session_id", MEMBER(TEXT, session)},
	{"status", MEMBER(ENUM, status), MEMBER_NAMES(approval_statuses)},
	{"created_at", MEMBER(TIME, created_ms)},
	{"responded_at", MEMBER(TIME, decided_ms), OMITTED},
	{"tool_name", MEMBER(TEXT, tool)},
	{"comment", MEMBER(BLOB, comment), LAST, OMITTED},
	{"tool_use_id", MEMBER(TEXT, tool_use_id), LAST, OMITTED},
};
/* clang-format on */

const struct schema hld_session_info = SCHEMA(struct session, info_members);
const struct schema hld_session_state = SCHEMA(struct session, state_members);
const struct schema hld_session_event = SCHEMA(struct session_event, event_members);
const struct schema hld_approval = SCHEMA(struct approval, approval_members);

/* ---- writing ---- */

static void hld_schema_write_time(struct json *j, const struct member *m, int64_t ms)
{
	if (m->flags & HLD_SECONDS)
		hld_write_seconds(j, m->name, ms);
	else
		hld_write_time(j, m->name, ms);
}

/* A negative number means unknown, and is shown as 0. */
static void write_real(struct json *j, const struct member *m, double d)
{
	json_key(j, m->name);
	json_double(j, d > 0 ? d : 0);
}

static bool is_empty(const struct member *m, const void *at)
{
	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_BLOB:
		return ((const struct text *)at)->len == 0;
	case MEMBER_INT:
	case MEMBER_TIME:
		return *(const int64_t *)at <= 0;
	case MEMBER_REAL:
		return *(const double *)at <= 0;
	case MEMBER_BOOL:
		return !*(const bool *)at;
	case MEMBER_ENUM:
	case MEMBER_LINES:
	case MEMBER_JSON:
	case MEMBER_ENV:
	case MEMBER_TEXTS:
	case MEMBER_PACKED:
		break;
	}
	return false;
}

static void write_member(struct json *j, const struct member *m, const void *noun,
			 const struct hld_fit *fit, bool *ret_cut)
{
	const void *at = member_at(m, noun);
	const char *word;

	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
		hld_write_text(j, m->name, *(const struct text *)at);
		break;
	case MEMBER_BLOB:
		hld_write_text(j, m->name,
			       m->flags & FIT ? hld_fit_text(fit, *(const struct text *)at, ret_cut)
					      : *(const struct text *)at);
		break;
	case MEMBER_TIME:
		hld_schema_write_time(j, m, *(const int64_t *)at);
		break;
	case MEMBER_INT:
		json_member_int(j, m->name, *(const int64_t *)at);
		break;
	case MEMBER_REAL:
		write_real(j, m, *(const double *)at);
		break;
	case MEMBER_BOOL:
		json_member_bool(j, m->name, *(const bool *)at);
		break;
	case MEMBER_ENUM:
		word = member_word(m, noun);
		if (word)
			json_member_str(j, m->name, word);
		break;
	case MEMBER_LINES:
	case MEMBER_JSON:
	case MEMBER_ENV:
	case MEMBER_TEXTS:
	case MEMBER_PACKED:
		/* The caller writes these by hand. */
		break;
	}
}

void hld_members(struct json *j, const struct schema *p, struct selection s, const void *noun,
		 const struct hld_fit *fit, bool *ret_cut)
{
	schema_each(m, p)
	{
		bool omitted = m->absent == ABSENT_LEFT_OUT && is_empty(m, member_at(m, noun));

		if (member_is_in(m, s) && !omitted)
			write_member(j, m, noun, fit, ret_cut);
	}
}
