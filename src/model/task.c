#include "model/task.h"

static const char *const state_names[N_TASK_STATES] = {
	[TASK_QUEUED] = "queued", [TASK_RUNNING] = "running",     [TASK_COMPLETED] = "completed",
	[TASK_FAILED] = "failed", [TASK_CANCELLED] = "cancelled",
};

#define MEMBER(kind, field) MEMBER_OF(struct task, kind, field)

/* Short names, so that a member is one line. */
enum {
	MADE = MEMBER_MADE,
	CHANGES = MEMBER_CHANGES,
	LISTED = MEMBER_LISTED,
	ENDS = TASK_ENDS,
	CUT = MEMBER_CUT,
	LONG = TASK_LONG,
	EDITED = TASK_EDITED,
};

/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MADE | ENDS},
	{"project", "project", MEMBER(TEXT, project), LISTED | ENDS | MEMBER_NOT_NULL,
		.absent = ABSENT_EMPTY},
	{"id", "id", MEMBER(TEXT, id), LISTED | ENDS},
	{"prompt", "prompt", MEMBER(TEXT, prompt), LISTED | CUT | LONG | EDITED | MEMBER_NOT_NULL},
	{"command", "command", MEMBER(PACKED, command), LONG | TASK_BULKY},
	{"label", "label", MEMBER(TEXT, label), LISTED | EDITED},
	{"agent", "agent", MEMBER(TEXT, agent), LISTED},
	{"runner", "runner", MEMBER(TEXT, runner), LISTED | EDITED},
	{"group", "group_name", MEMBER(TEXT, group), LISTED},
	{"priority", "priority", MEMBER(REAL, priority), LISTED | EDITED},
	{"state", "state", MEMBER(ENUM, state), LISTED | ENDS | CHANGES,
		MEMBER_NAMES(state_names)},
	{"held", "held", MEMBER(BOOL, held), LISTED | CHANGES},
	{"stashed", "stashed", MEMBER(BOOL, stashed), LISTED | CHANGES},
	{"paused", NULL, MEMBER(BOOL, paused), LISTED},
	{"created_at", "created_ms", MEMBER(TIME, created_ms), LISTED, NONE_IS_ZERO},
	{"started_at", "started_ms", MEMBER(TIME, started_ms), LISTED | CHANGES, NONE_IS_ZERO},
	{"completed_at", "completed_ms", MEMBER(TIME, completed_ms), LISTED | CHANGES, NONE_IS_ZERO},
	{"not_before", "not_before_ms", MEMBER(TIME, not_before_ms), LISTED | CHANGES, NONE_IS_ZERO},
	{"after", "n_after", MEMBER(TEXTS, after), LISTED | EDITED},
	{"attempts", "attempts", MEMBER(INT, attempts), LISTED | CHANGES},
	{NULL, "stops", MEMBER(INT, stops), CHANGES},
	{"max_attempts", "max_attempts", MEMBER(INT, max_attempts), LISTED},
	{"retry_delay", "retry_ms", MEMBER(INT, retry_ms)},
	{"timeout", "timeout_ms", MEMBER(INT, timeout_ms), EDITED},
	{"cwd", "cwd", MEMBER(TEXT, cwd), TASK_BULKY},
	{"env", "env", MEMBER(ENV, env), LONG | TASK_UNLISTED},
	{"pid", "pid", MEMBER(INT, pid), CHANGES, NONE_IS_ZERO},
	{NULL, "pid_started", MEMBER(INT, pid_started), CHANGES},
	{NULL, "mark", MEMBER(TEXT, mark), CHANGES},
	{"exit_status", "exit_status", MEMBER(INT, exit_status), LISTED | ENDS | CHANGES,
		NONE_IS_NEGATIVE},
	{"signal", "signal", MEMBER(INT, signal), LISTED | ENDS | CHANGES, NONE_IS_ZERO},
	{"result", "result", MEMBER(BLOB, result), CUT | LONG | CHANGES | TASK_BULKY},
	{"error", "error", MEMBER(TEXT, error), LISTED | ENDS | CUT | CHANGES},
	{"skipped", "skipped", MEMBER(TEXT, skipped), LISTED | ENDS | CHANGES, .absent = ABSENT_LEFT_OUT},
	{"output_bytes", "output_bytes", MEMBER(INT, output_bytes), LISTED | CHANGES},
	{"host", "host", MEMBER(TEXT, host), LISTED | CHANGES, .absent = ABSENT_LEFT_OUT},
	{"on_host", "on_host", MEMBER(TEXT, on_host), LISTED | EDITED, .absent = ABSENT_LEFT_OUT},
	{"on_label", "on_label", MEMBER(TEXT, on_label), LISTED | EDITED, .absent = ABSENT_LEFT_OUT},
	{NULL, "version", MEMBER(INT, version)},
	{NULL, "epoch", MEMBER(INT, epoch), CHANGES},
	{NULL, "cancel", MEMBER(BOOL, cancel)},
	{"metadata", "metadata", MEMBER(PACKED, metadata), LONG | TASK_BULKY, .absent = ABSENT_EMPTY},
};
/* clang-format on */

const struct schema task_schema = SCHEMA(struct task, members);

const char *task_state_name(enum task_state state)
{
	return state_names[state];
}

bool task_state_parse(struct text t, enum task_state *ret_state)
{
	unsigned found;

	if (!member_find_word(state_names, N_TASK_STATES, t, &found))
		return false;
	*ret_state = (enum task_state)found;
	return true;
}

const char *task_word(const struct task *task)
{
	return task->state == TASK_FAILED && task->skipped.data ? "skipped"
								: task_state_name(task->state);
}

bool task_word_parse(struct text t, enum task_state *ret_state, enum task_skips *ret_skips)
{
	if (text_is(t, "skipped")) {
		*ret_state = TASK_FAILED;
		*ret_skips = SKIPS_ONLY;
		return true;
	}
	if (!task_state_parse(t, ret_state))
		return false;
	*ret_skips = *ret_state == TASK_FAILED ? SKIPS_NOT : SKIPS_TOO;
	return true;
}

bool task_is_id(struct text text)
{
	static const struct text prefix = TEXT("task-");
	size_t n = prefix.len;

	if (!text_begins(text, prefix))
		return false;
	while (n < text.len && text.data[n] >= '0' && text.data[n] <= '9')
		n++;
	return n == text.len && n > prefix.len;
}
