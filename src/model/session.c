#include "model/session.h"

static const char *const status_names[N_SESSION_STATUSES] = {
	"starting", "running", "waiting_input", "completing", "completed", "failed", "interrupted"};

const char *const session_event_type_names[N_SESSION_EVENT_TYPES] = {
	"message", "tool_call", "tool_result", "system", "raw", "thinking"};

static const char *const content_type_names[N_SESSION_EVENT_TYPES] = {
	"text", "tool_use", "tool_result", "system", "text", "thinking"};

static const char *const kind_names[N_SESSION_KINDS] = {NULL, "observed"};

static const char *const approval_names[N_SESSION_APPROVALS] = {NULL, "pending", "approved",
								"denied", "resolved"};

/* Short names, so that a member is one line. */
enum {
	MADE = MEMBER_MADE,
	CHANGES = MEMBER_CHANGES,
	LISTED = MEMBER_LISTED,
	CUT = MEMBER_CUT,
	NOT_NULL = MEMBER_NOT_NULL,
	BESIDE = SESSION_BESIDE,
	LONG = SESSION_LONG,
	HEAD = SESSION_EVENT_HEAD,
	TAIL = SESSION_EVENT_TAIL,
};

#define MEMBER(kind, field) MEMBER_OF(struct session, kind, field)

/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MADE},
	{"id", "id", MEMBER(TEXT, id), LISTED},
	{"run_id", "run", MEMBER(TEXT, run), LISTED},
	{"parent_session_id", "parent", MEMBER(TEXT, parent), LISTED},
	{"claude_session_id", "agent_session", MEMBER(TEXT, agent_session), LISTED | CHANGES},
	{"status", "status", MEMBER(ENUM, status), LISTED | CHANGES, MEMBER_NAMES(status_names)},
	{"archived", "archived", MEMBER(BOOL, archived), LISTED},
	{"title", "title", MEMBER(TEXT, title), LISTED | CUT},
	{"summary", "summary", MEMBER(TEXT, summary), LISTED | CUT | NOT_NULL},
	{"query", "query", MEMBER(BLOB, query), LISTED | CUT | NOT_NULL | BESIDE},
	{"kind", NULL, MEMBER(ENUM, kind), LISTED, MEMBER_NAMES(kind_names), .absent = ABSENT_LEFT_OUT},
	{"agent", "runner", MEMBER(TEXT, runner), LISTED | CHANGES | NOT_NULL},
	{"model", "model", MEMBER(TEXT, model), LISTED | CHANGES},
	{"working_dir", "working_dir", MEMBER(TEXT, working_dir), LISTED | NOT_NULL},
	{"project", NULL, MEMBER(TEXT, project), LISTED, .absent = ABSENT_LEFT_OUT},
	{"approvals", NULL, MEMBER(INT, waiting), LISTED, NONE_IS_ZERO, ABSENT_LEFT_OUT},
	{"created_at", "created_ms", MEMBER(TIME, created_ms), LISTED, NONE_IS_ZERO},
	{"active_at", "active_ms", MEMBER(TIME, active_ms), LISTED | CHANGES, NONE_IS_ZERO},
	{"ended_at", "ended_ms", MEMBER(TIME, ended_ms), LISTED | CHANGES, NONE_IS_ZERO},
	{"result", "result", MEMBER(BLOB, result), CHANGES | LONG},
	{"error", "error", MEMBER(BLOB, error), LISTED | CUT | CHANGES | LONG},
	{"cost_usd", "cost_usd", MEMBER(REAL, cost_usd), LISTED | CHANGES, NONE_IS_NEGATIVE},
	{"input_tokens", "input_tokens", MEMBER(INT, input_tokens), LISTED | CHANGES,
		NONE_IS_NEGATIVE},
	{"output_tokens", "output_tokens", MEMBER(INT, output_tokens), LISTED | CHANGES,
		NONE_IS_NEGATIVE},
	{"duration_ms", "duration_ms", MEMBER(INT, duration_ms), LISTED | CHANGES, NONE_IS_NEGATIVE},
	{"turns", "turns", MEMBER(INT, turns), LISTED | CHANGES, NONE_IS_NEGATIVE},
	{"host", "host", MEMBER(TEXT, host), LISTED, .absent = ABSENT_LEFT_OUT},
	{NULL, "mark", MEMBER(TEXT, mark), CHANGES},
	{NULL, "epoch", MEMBER(INT, epoch)},
	{NULL, "config", MEMBER(PACKED, config), BESIDE},
};

#define EVENT(kind, field) MEMBER_OF(struct session_event, kind, field)

static const struct member event_members[] = {
	{"id", "id", EVENT(INT, id), HEAD | MADE},
	{"session_id", "session", EVENT(TEXT, session), HEAD | SESSION_EVENT_SESSION},
	{"claude_session_id", "agent_session", EVENT(TEXT, agent_session), HEAD,
		.absent = ABSENT_LEFT_OUT},
	{"sequence", "sequence", EVENT(INT, sequence), HEAD},
	{"event_type", "type", EVENT(ENUM, type), HEAD, MEMBER_NAMES(session_event_type_names)},
	{"content_type", NULL, EVENT(ENUM, type), HEAD, MEMBER_NAMES(content_type_names)},
	{"created_at", "created_ms", EVENT(TIME, created_ms), HEAD, NONE_IS_ZERO},
	{"role", "role", EVENT(TEXT, role), HEAD, .absent = ABSENT_LEFT_OUT},
	{"content", "content", EVENT(BLOB, content)},
	{"tool_id", "tool_id", EVENT(TEXT, tool_id)},
	{"tool_name", "tool_name", EVENT(TEXT, tool_name)},
	{"tool_input", "tool_input", EVENT(PACKED, tool_input)},
	{"parent_tool_use_id", "parent_tool", EVENT(TEXT, parent_tool), TAIL,
		.absent = ABSENT_LEFT_OUT},
	{"completed", "completed", EVENT(BOOL, completed), TAIL | SESSION_EVENT_OF_CALL},
	{"approval_status", "approval", EVENT(ENUM, approval), TAIL, MEMBER_NAMES(approval_names),
		.absent = ABSENT_LEFT_OUT},
	{"approval_id", "approval_id", EVENT(TEXT, approval_id), TAIL, .absent = ABSENT_LEFT_OUT},
};
/* clang-format on */

const struct schema session_schema = SCHEMA(struct session, members);
const struct schema session_event_schema = SCHEMA(struct session_event, event_members);

const char *session_status_name(enum session_status status)
{
	return status_names[status];
}

bool session_status_parse(struct text t, enum session_status *ret_status)
{
	unsigned found;

	if (!member_find_word(status_names, N_SESSION_STATUSES, t, &found))
		return false;
	*ret_status = (enum session_status)found;
	return true;
}

const char *session_event_type_name(enum session_event_type type)
{
	return session_event_type_names[type];
}

#define OBSERVED(kind, field) MEMBER_OF(struct observed, kind, field)

/* Clients see a struct session, so no member of an observed one has a name. */
/* clang-format off */
static const struct member observed_members[] = {
	{NULL, "seq", OBSERVED(INT, seq), MADE},
	{NULL, "id", OBSERVED(TEXT, id)},
	{NULL, "agent", OBSERVED(TEXT, agent), NOT_NULL},
	{NULL, "folder", OBSERVED(TEXT, folder), NOT_NULL | CHANGES},
	{NULL, "project", OBSERVED(TEXT, project), CHANGES},
	{NULL, "query", OBSERVED(TEXT, query), NOT_NULL | CHANGES},
	{NULL, "host", OBSERVED(TEXT, host), CHANGES},
	{NULL, "pid", OBSERVED(INT, pid), CHANGES},
	{NULL, "started", OBSERVED(INT, started), CHANGES},
	{NULL, "created_ms", OBSERVED(TIME, created_ms)},
	{NULL, "active_ms", OBSERVED(TIME, active_ms), CHANGES},
	{NULL, "ended_ms", OBSERVED(TIME, ended_ms), CHANGES},
	{NULL, "reason", OBSERVED(TEXT, reason), CHANGES},
};
/* clang-format on */

const struct schema observed_schema = SCHEMA(struct observed, observed_members);
