/* The state of the daemon and its parts, for daemon.status and state.json. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "call/server.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/daemon.h"
#include "engine/automation/automation.h"
#include "wire/json.h"
#include "engine/engine.h"

enum { PROMPT_SHOWN = 80, EXECUTIONS_SHOWN = 10 };

void aiwg_write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	clock_format_iso(ms, text);
	json_member_str(j, key, ms > 0 ? text : NULL);
}

/* Returns the first characters (not bytes) of a text. */
static struct text shown(struct text t)
{
	size_t n = 0;

	for (unsigned i = 0; i < PROMPT_SHOWN && n < t.len; i++) {
		n++;
		while (n < t.len && ((unsigned char)t.data[n] & 0xc0) == 0x80)
			n++;
	}
	return (struct text) {.data = t.data ? t.data : "", .len = n};
}

/* ---- tasks ---- */

static void write_tasks(struct json *j, const struct task_now *tasks, unsigned n, bool running)
{
	json_member_array(j, running ? "running" : "queued");
	for (unsigned i = 0; i < n; i++) {
		struct task brief = *tasks[i].task;

		if (brief.state != (running ? TASK_RUNNING : TASK_QUEUED))
			continue;
		brief.prompt = shown(brief.prompt);
		json_begin_object(j);
		aiwg_write_task(j, &brief, running ? AIWG_RUNNING : AIWG_QUEUED);
		json_end_object(j);
	}
	json_end_array(j);
}

/* `max` is the name that the reader expects for the limit. */
static void write_supervisor(struct json *j, struct engine *s, struct text folder, const char *max)
{
	const struct task_filter f = {.project = folder, .in_turn = true};
	const struct task_now *tasks;
	struct task_counts counts;
	unsigned n;

	task_count(s->tasks, folder, &counts);
	(void)task_list_now(s->tasks, &f, &tasks, &n);
	json_begin_object(j);
	json_member_uint(j, "running", counts.n_here);
	json_member_int(j, "queued", counts.n[TASK_QUEUED]);
	json_member_uint(j, max, counts.parallel);
	json_member_object(j, "tasks");
	write_tasks(j, tasks, n, true);
	write_tasks(j, tasks, n, false);
	json_end_object(j);
	json_end_object(j);
}

static void write_stats(struct json *j, struct engine *s, struct text folder)
{
	struct task_counts counts = {0};

	task_count(s->tasks, folder, &counts);
	json_begin_object(j);
	json_member_int(j, "total", counts.total);
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		json_member_int(j, task_state_name((enum task_state)i), counts.n[i]);
	json_end_object(j);
}

/* ---- files and times ---- */

/* Returns the endpoint's project if it has that folder; {NULL, 0} means any folder. */
static const struct aiwg_project *project_at(const struct endpoint *e, struct text folder)
{
	const struct aiwg_project *p = e->settings;

	if (e->dialect != &aiwg_dialect || !p)
		return NULL;
	return !folder.data || text_equal(p->folder, folder) ? p : NULL;
}

/* A folder may have several sockets, but its project is counted once. */
static bool is_first(const struct server *s, const struct endpoint *e)
{
	const struct aiwg_project *p = e->settings;

	list_for_each (at, following, (struct list *)&s->endpoints) {
		const struct endpoint *other = list_entry(at, struct endpoint, link);

		if (other == e)
			return true;
		if (project_at(other, p->folder))
			return false;
	}
	return true;
}

/* Returns the next project of the folder, each only once. `at` starts at the first endpoint. */
static const struct aiwg_project *next_project(const struct server *s, struct text folder,
					       const struct list **at)
{
	while (*at != &s->endpoints) {
		const struct endpoint *e = list_entry(*at, struct endpoint, link);
		const struct aiwg_project *p = project_at(e, folder);

		*at = (*at)->next;
		if (p && is_first(s, e))
			return p;
	}
	return NULL;
}

static void write_paths(struct json *j, const struct server *s, struct text folder)
{
	const struct aiwg_project *p;

	json_member_array(j, "paths");
	for (const struct list *at = s->endpoints.next; (p = next_project(s, folder, &at));) {
		for (unsigned i = 0; p->watches && i < p->n_paths; i++)
			json_text(j, p->paths[i]);
	}
	json_end_array(j);
}

static void write_watcher(struct json *j, const struct server *s, struct text folder)
{
	const struct aiwg_project *p;
	bool enabled = false;
	uint64_t n = 0;

	for (const struct list *at = s->endpoints.next; (p = next_project(s, folder, &at));) {
		enabled = enabled || p->watches;
		n += p->n_changes;
	}
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	if (enabled) {
		write_paths(j, s, folder);
		json_member_uint(j, "events_received", n);
	}
	json_end_object(j);
}

static void write_fires(struct json *j, const struct aiwg_project *p)
{
	for (unsigned i = 0; p->schedules && i < p->n_jobs; i++) {
		char id[128];

		snprintf(id, sizeof(id), "%.*s", TEXT_ARGS(p->jobs[i].id));
		if (p->jobs[i].fired_ms > 0)
			aiwg_write_time(j, id, p->jobs[i].fired_ms);
	}
}

static void write_scheduler(struct json *j, const struct server *s, struct text folder)
{
	const struct aiwg_project *p;
	bool enabled = false;
	unsigned n = 0;

	for (const struct list *at = s->endpoints.next; (p = next_project(s, folder, &at));) {
		enabled = enabled || p->schedules;
		n += p->schedules ? p->n_jobs : 0;
	}
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	if (enabled) {
		json_member_uint(j, "jobs", n);
		json_member_object(j, "last_fires");
		for (const struct list *at = s->endpoints.next; (p = next_project(s, folder, &at));)
			write_fires(j, p);
		json_end_object(j);
	}
	json_end_object(j);
}

static void write_off(struct json *j, const char *key)
{
	json_member_object(j, key);
	json_member_bool(j, "enabled", false);
	json_end_object(j);
}

static unsigned count_clients(const struct server *s, struct text folder)
{
	unsigned n = 0;

	if (!folder.data)
		return s->n_clients;
	list_for_each (at, following, (struct list *)&s->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		n += project_at(e, folder) ? e->n_connections : 0;
	}
	return n;
}

/* ---- rules ---- */

#define MEMBER(kind, field) MEMBER_OF(struct rule, kind, field)

static const char *const trigger_names[] = {
	[TRIGGER_CRON] = "cron", [TRIGGER_EVERY] = "every", [TRIGGER_FILES] = "files"};
static const char *const action_names[] = {[ACTION_TASK] = "agent",
					   [ACTION_COMMAND] = "command",
					   [ACTION_WEBHOOK] = "webhook",
					   [ACTION_DESKTOP] = "notify"};

/* clang-format off */
static const struct member rule_members[] = {
	{"id", NULL, MEMBER(TEXT, id), RULE_NAME},
	{"type", NULL, MEMBER(ENUM, trigger), RULE_IF_CRON | RULE_IF_EVERY | RULE_IF_FILES,
		MEMBER_NAMES(trigger_names)},
	{"cron", NULL, MEMBER(TEXT, cron), RULE_IF_CRON, .absent = ABSENT_LEFT_OUT},
	{"zone", NULL, MEMBER(TEXT, zone), RULE_IF_CRON, .absent = ABSENT_LEFT_OUT},
	{"everyMs", NULL, MEMBER(INT, every_ms), RULE_IF_EVERY},
	{"paths", NULL, MEMBER(TEXTS, paths), RULE_IF_FILES},
	{"type", NULL, MEMBER(TEXT, type), RULE_IF_EVENT, .absent = ABSENT_LEFT_OUT},
	{"source", NULL, MEMBER(TEXT, source), RULE_IF_EVENT, .absent = ABSENT_LEFT_OUT},
	{"pattern", NULL, MEMBER(TEXT, pattern), RULE_IF_EVENT, .absent = ABSENT_LEFT_OUT},
	{"type", NULL, MEMBER(ENUM, action),
		RULE_DOES_TASK | RULE_DOES_COMMAND | RULE_DOES_WEBHOOK | RULE_DOES_DESKTOP,
		MEMBER_NAMES(action_names)},
	{"prompt", NULL, MEMBER(TEXT, prompt), RULE_DOES_TASK, .absent = ABSENT_LEFT_OUT},
	{"agent", NULL, MEMBER(TEXT, agent), RULE_DOES_TASK, .absent = ABSENT_LEFT_OUT},
	{"priority", NULL, MEMBER(REAL, priority), RULE_DOES_TASK, NONE_IS_ZERO, ABSENT_LEFT_OUT},
	{"command", NULL, MEMBER(TEXT, command), RULE_DOES_COMMAND, .absent = ABSENT_LEFT_OUT},
	{"url", NULL, MEMBER(TEXT, url), RULE_DOES_WEBHOOK, .absent = ABSENT_LEFT_OUT},
	{"message", NULL, MEMBER(TEXT, message), RULE_DOES_DESKTOP, .absent = ABSENT_LEFT_OUT},
	{"enabled", NULL, MEMBER(BOOL, enabled), RULE_STATE},
	{"cooldownMs", NULL, MEMBER(INT, cooldown_ms), RULE_STATE},
	{"requiresApproval", NULL, MEMBER(BOOL, needs_approval), RULE_STATE},
};
/* clang-format on */

static const struct schema rule_shown = SCHEMA(struct rule, rule_members);

#define DONE(kind, field) MEMBER_OF(struct rule_execution, kind, field)

static const struct member execution_members[] = {
	{"ruleId", NULL, DONE(TEXT, rule)},
	{"eventType", NULL, DONE(TEXT, event_type)},
	{"status", NULL, DONE(TEXT, status)},
	{"timestamp", NULL, DONE(TIME, time_ms), 0, NONE_IS_ZERO},
	{"taskId", NULL, DONE(TEXT, task), .absent = ABSENT_LEFT_OUT},
	{"error", NULL, DONE(TEXT, error), .absent = ABSENT_LEFT_OUT},
};

static const struct schema execution_shown = SCHEMA(struct rule_execution, execution_members);

/* Written as in the file, if that is known. */
static void write_part(struct json *j, const char *key, const struct value *written,
		       const struct rule *r, uint32_t members)
{
	json_key(j, key);
	if (written) {
		json_value(j, written);
		return;
	}
	json_noun(j, &rule_shown, (struct selection) {members}, r, 0);
}

static void write_rule(struct json *j, const struct rule *r)
{
	json_begin_object(j);
	json_members(j, &rule_shown, (struct selection) {RULE_NAME}, r, 0);
	write_part(j, "trigger", r->written_trigger, r, RULE_OF_TRIGGER(r->trigger));
	write_part(j, "action", r->written_action, r, RULE_OF_ACTION(r->action));
	json_members(j, &rule_shown, (struct selection) {RULE_STATE}, r, 0);
	json_end_object(j);
}

static unsigned count_rules(struct engine *s, struct text folder)
{
	const struct rule *rule = NULL;
	unsigned n = 0;

	while ((rule = automation_next_rule(s->automation, folder, rule)))
		n++;
	return n;
}

void aiwg_write_automation(struct json *j, struct engine *s, struct text folder)
{
	const struct rule *rule = NULL;
	const struct rule_execution *log;
	unsigned n_log;

	automation_recent(s->automation, folder, &log, &n_log);
	json_begin_object(j);
	json_member_bool(j, "enabled", automation_is_enabled(s->automation, folder));
	json_member_uint(j, "ruleCount", count_rules(s, folder));
	json_member_array(j, "rules");
	while ((rule = automation_next_rule(s->automation, folder, rule)))
		write_rule(j, rule);
	json_end_array(j);
	if (n_log > EXECUTIONS_SHOWN) {
		log += n_log - EXECUTIONS_SHOWN;
		n_log = EXECUTIONS_SHOWN;
	}
	json_nouns(j, "recentExecutions", &execution_shown, log, n_log);
	json_end_object(j);
}

/* ---- all subsystems ---- */

void aiwg_write_subsystems(struct json *j, const struct server *server, struct text folder)
{
	struct engine *s = server->opts.engine;

	json_begin_object(j);
	json_member_object(j, "ipc");
	json_member_uint(j, "clients", count_clients(server, folder));
	json_end_object(j);
	json_key(j, "supervisor");
	write_supervisor(j, s, folder, "maxConcurrency");
	json_key(j, "automation");
	aiwg_write_automation(j, s, folder);
	json_key(j, "file_watcher");
	write_watcher(j, server, folder);
	json_key(j, "scheduler");
	write_scheduler(j, server, folder);
	write_off(j, "messaging");
	json_end_object(j);
}

struct done aiwg_daemon_status(struct call *c)
{
	const struct server *s = c->server;
	struct json *j = call_object(c);

	json_member_int(j, "pid", getpid());
	json_member_uint(j, "uptime_seconds", (clock_steady_ms() - s->started_ms) / 1000);
	aiwg_write_time(j, "started_at", s->started_utc_ms);
	json_member_str(j, "health", dialect_health(s));
	json_key(j, "subsystems");
	aiwg_write_subsystems(j, s, aiwg_folder(c, NULL));
	return call_reply_object(c);
}

/* ---- state.json ---- */

static void write_monitors(struct json *j, const struct server *s, struct text folder)
{
	json_member_object(j, "monitors");
	json_key(j, "file_watcher");
	write_watcher(j, s, folder);
	write_off(j, "webhook");
	json_key(j, "scheduler");
	write_scheduler(j, s, folder);
	json_end_object(j);
}

static void write_rule_count(struct json *j, struct engine *s, struct text folder)
{
	json_member_object(j, "automation");
	json_member_bool(j, "enabled", automation_is_enabled(s->automation, folder));
	json_member_uint(j, "rule_count", count_rules(s, folder));
	json_end_object(j);
}

static void write_health(struct json *j, const struct server *s, const char *health, int64_t now_ms)
{
	const char *failing = engine_failing(s->opts.engine);
	const char *ailing = engine_ailing(s->opts.engine);

	json_member_object(j, "health");
	json_member_str(j, "status", health);
	aiwg_write_time(j, "last_check", now_ms);
	json_member_array(j, "issues");
	if (ailing) {
		char issue[320];

		snprintf(issue, sizeof(issue), "%s%s", failing ? "the store is not writable: " : "",
			 ailing);
		json_str(j, issue);
	}
	json_end_array(j);
	json_end_object(j);
}

static const char socket_name[] = ".aiwg/daemon/daemon.sock";

void aiwg_write_state(struct json *j, const struct endpoint *e, const char *health)
{
	const struct aiwg_project *p = e->settings;
	const struct server *s = e->server;
	int64_t now_ms = clock_utc_ms();

	json_begin_object(j);
	json_member_int(j, "pid", getpid());
	aiwg_write_time(j, "started_at", s->started_utc_ms);
	aiwg_write_time(j, "last_heartbeat", now_ms);
	json_member_uint(j, "uptime_seconds", (clock_steady_ms() - s->started_ms) / 1000);
	json_member_int(j, "restart_count", 0);
	json_member_object(j, "ipc");
	json_member_str(j, "socket", socket_name);
	json_member_uint(j, "clients", count_clients(s, p->folder));
	json_end_object(j);
	json_key(j, "agents");
	write_supervisor(j, s->opts.engine, p->folder, "max_concurrency");
	json_key(j, "task_stats");
	write_stats(j, s->opts.engine, p->folder);
	write_monitors(j, s, p->folder);
	write_rule_count(j, s->opts.engine, p->folder);
	write_health(j, s, health, now_ms);
	json_end_object(j);
}
