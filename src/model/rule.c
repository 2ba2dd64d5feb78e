#include "model/rule.h"

#define MEMBER(kind, field) MEMBER_OF(struct rule, kind, field)

/* clang-format off */
static const struct member members[] = {
	{"project", NULL, MEMBER(TEXT, project), RULE_NAME, .absent = ABSENT_EMPTY},
	{"rule", NULL, MEMBER(TEXT, id), RULE_NAME},
	{"enabled", NULL, MEMBER(BOOL, enabled), RULE_NAME},
	{"description", NULL, MEMBER(TEXT, description), RULE_NAME},
	{NULL, NULL, MEMBER(TEXT, where)},
	{"cron", NULL, MEMBER(TEXT, cron), RULE_IF_CRON},
	{"zone", NULL, MEMBER(TEXT, zone), RULE_IF_CRON, .absent = ABSENT_LEFT_OUT},
	{"every", NULL, MEMBER(INT, every_ms), RULE_IF_EVERY},
	{"files", NULL, MEMBER(TEXTS, paths), RULE_IF_FILES},
	{"type", NULL, MEMBER(TEXT, type), RULE_IF_EVENT, .absent = ABSENT_LEFT_OUT},
	{"source", NULL, MEMBER(TEXT, source), RULE_IF_EVENT, .absent = ABSENT_LEFT_OUT},
	{"pattern", NULL, MEMBER(TEXT, pattern), RULE_IF_EVENT, .absent = ABSENT_LEFT_OUT},
	{"task", NULL, MEMBER(TEXT, prompt), RULE_DOES_TASK},
	{"agent", NULL, MEMBER(TEXT, agent), RULE_DOES_TASK, .absent = ABSENT_LEFT_OUT},
	{"runner", NULL, MEMBER(TEXT, runner), RULE_DOES_TASK, .absent = ABSENT_LEFT_OUT},
	{"group", NULL, MEMBER(TEXT, group), RULE_DOES_TASK, .absent = ABSENT_LEFT_OUT},
	{"command", NULL, MEMBER(TEXT, command), RULE_DOES_COMMAND},
	{"webhook", NULL, MEMBER(TEXT, url), RULE_DOES_WEBHOOK},
	{"desktop", NULL, MEMBER(TEXT, message), RULE_DOES_DESKTOP},
	{"cooldown", NULL, MEMBER(INT, cooldown_ms), RULE_STATE},
	{"needs_approval", NULL, MEMBER(BOOL, needs_approval), RULE_STATE | RULE_LIMITS},
	{"forbidden", NULL, MEMBER(BOOL, forbidden), RULE_LIMITS},
	{"fired_at", NULL, MEMBER(TIME, fired_ms), RULE_STATE, NONE_IS_ZERO},
	{"next_at", NULL, MEMBER(TIME, next_ms), RULE_STATE, NONE_IS_ZERO},
	{"fired", NULL, MEMBER(INT, n_fired), RULE_STATE},
};
/* clang-format on */

const struct schema rule_schema = SCHEMA(struct rule, members);

struct text rule_subject(const struct rule *r)
{
	const struct text subjects[] = {
		[ACTION_TASK] = r->prompt,
		[ACTION_COMMAND] = r->command,
		[ACTION_WEBHOOK] = r->url,
		[ACTION_DESKTOP] = r->message,
	};

	return subjects[r->action];
}

/* ---- what a rule did ---- */

#define DONE(kind, field) MEMBER_OF(struct rule_execution, kind, field)

static const struct member execution_members[] = {
	{"time", NULL, DONE(TIME, time_ms), 0, NONE_IS_ZERO},
	{"project", NULL, DONE(TEXT, project), .absent = ABSENT_EMPTY},
	{"rule", NULL, DONE(TEXT, rule)},
	{"event", NULL, DONE(TEXT, event_type)},
	{"status", NULL, DONE(TEXT, status)},
	{"task", NULL, DONE(TEXT, task)},
	{"error", NULL, DONE(TEXT, error)},
	{"exit_status", NULL, DONE(INT, exit_status), 0, NONE_IS_NEGATIVE},
	{"signal", NULL, DONE(INT, signal), 0, NONE_IS_ZERO},
	{"duration", NULL, DONE(INT, duration_ms), 0, NONE_IS_NEGATIVE},
	{"output", NULL, DONE(TEXT, output)},
	{"output_bytes", NULL, DONE(INT, output_bytes)},
};

const struct schema rule_execution_schema = SCHEMA(struct rule_execution, execution_members);

/* ---- what is kept of it ---- */

#define KEPT(kind, field) MEMBER_OF(struct rule_memory, kind, field)

static const struct member memory_members[] = {
	{NULL, "name", KEPT(TEXT, name)},
	{NULL, "fired_ms", KEPT(INT, fired_ms)},
	{NULL, "enabled", KEPT(INT, enabled)},
	{NULL, "n_fired", KEPT(INT, n_fired)},
};

const struct schema rule_memory_schema = SCHEMA(struct rule_memory, memory_members);

#define JOB(kind, field) MEMBER_OF(struct job, kind, field)

static const struct member job_members[] = {
	{"id", "id", JOB(TEXT, id)},
	{"data", "data", JOB(PACKED, data)},
	{"created_at", "created_ms", JOB(TIME, created_ms)},
	{"updated_at", "updated_ms", JOB(TIME, updated_ms)},
};

const struct schema job_schema = SCHEMA(struct job, job_members);

#define TRUST(kind, field) MEMBER_OF(struct project_trust, kind, field)

static const struct member trust_members[] = {
	{"folder", "folder", TRUST(TEXT, folder)},
	{"digest", "digest", TRUST(TEXT, digest)},
	{"trusted_at", "trusted_ms", TRUST(TIME, trusted_ms)},
};

const struct schema trust_schema = SCHEMA(struct project_trust, trust_members);
