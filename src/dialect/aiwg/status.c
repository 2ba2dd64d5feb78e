/* How the daemon and its parts are: as daemon.status tells it, and as state.json keeps it. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "call/server.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/daemon.h"
#include "engine/automation/automation.h"
#include "engine/services.h"

enum { PROMPT_SHOWN = 80, EXECUTIONS_SHOWN = 10 };

void aiwg_write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	clock_format_iso(ms, text);
	json_member_str(j, key, ms > 0 ? text : NULL);
}

/* So many characters, not bytes. */
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

static void write_running(struct json *j, const struct task *row)
{
	json_begin_object(j);
	json_member_text(j, "id", row->id);
	json_member_text(j, "prompt", shown(row->prompt));
	json_member_text(j, "agent", row->agent);
	aiwg_write_time(j, "startedAt", row->started_ms);
	json_key(j, "pid");
	if (row->pid > 0)
		json_int(j, row->pid);
	else
		json_null(j);
	json_end_object(j);
}

static void write_queued(struct json *j, const struct task *row)
{
	json_begin_object(j);
	json_member_text(j, "id", row->id);
	json_member_text(j, "prompt", shown(row->prompt));
	json_member_text(j, "agent", row->agent);
	json_key(j, "priority");
	json_double(j, row->priority);
	json_end_object(j);
}

static void write_tasks(struct json *j, const struct task *const *tasks, unsigned n, bool running)
{
	json_key(j, running ? "running" : "queued");
	json_begin_array(j);
	for (unsigned i = 0; i < n; i++) {
		const struct task *row = tasks[i];

		if (running && row->state == TASK_RUNNING)
			write_running(j, row);
		else if (!running && row->state == TASK_QUEUED)
			write_queued(j, row);
	}
	json_end_array(j);
}

/* `max` is how the reader spells the limit. */
static void write_supervisor(struct json *j, struct services *s, struct text folder,
			     const char *max)
{
	const struct task *const *tasks = NULL;
	struct task_load load = {0};
	unsigned n = 0;

	if (s->tasks)
		task_load(s, folder, &load, &tasks, &n);
	json_begin_object(j);
	json_member_uint(j, "running", load.n_running);
	json_member_uint(j, "queued", load.n_queued);
	json_member_uint(j, max, load.parallel);
	json_key(j, "tasks");
	json_begin_object(j);
	write_tasks(j, tasks, n, true);
	write_tasks(j, tasks, n, false);
	json_end_object(j);
	json_end_object(j);
}

static void write_stats(struct json *j, struct services *s, struct text folder)
{
	struct task_counts counts = {0};

	if (s->tasks)
		task_count(s, folder, &counts);
	json_begin_object(j);
	json_member_int(j, "total", counts.total);
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		json_member_int(j, task_state_name((enum task_state)i), counts.n[i]);
	json_end_object(j);
}

/* ---- files and times ---- */

/* The project of an endpoint, if that is one of the folder's; any folder for {NULL, 0}. */
static const struct aiwg_project *project_at(const struct endpoint *e, struct text folder)
{
	const struct aiwg_project *p = e->settings;

	if (e->dialect != &aiwg_dialect || !p)
		return NULL;
	return !folder.data || text_equal(p->folder, folder) ? p : NULL;
}

/* A folder may have a second socket: its project counts once. */
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

#define each_project(p, e, server, folder)                                                         \
	list_for_each (at, following, (struct list *)&(server)->endpoints)                         \
		for (const struct endpoint *e = list_entry(at, struct endpoint, link); e;          \
		     e = NULL)                                                                     \
			for (const struct aiwg_project *p = project_at(e, folder);                 \
			     p && is_first(server, e); p = NULL)

static void write_watcher(struct json *j, const struct server *s, struct text folder)
{
	bool enabled = false;
	uint64_t n = 0;

	each_project(p, e, s, folder)
	{
		enabled = enabled || p->watches;
		n += p->n_changes;
	}
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	if (enabled) {
		json_key(j, "paths");
		json_begin_array(j);
		each_project(p, e, s, folder) for (unsigned i = 0; p->watches && i < p->n_paths;
						   i++) json_text(j, p->paths[i]);
		json_end_array(j);
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
	bool enabled = false;
	unsigned n = 0;

	each_project(p, e, s, folder)
	{
		enabled = enabled || p->schedules;
		n += p->schedules ? p->n_jobs : 0;
	}
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	if (enabled) {
		json_member_uint(j, "jobs", n);
		json_key(j, "last_fires");
		json_begin_object(j);
		each_project(p, e, s, folder) write_fires(j, p);
		json_end_object(j);
	}
	json_end_object(j);
}

static void write_off(struct json *j, const char *key)
{
	json_key(j, key);
	json_begin_object(j);
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

static void write_if(struct json *j, const char *key, struct text t)
{
	if (t.data)
		json_member_text(j, key, t);
}

static void write_trigger(struct json *j, const struct rule_new *r)
{
	json_key(j, "trigger");
	if (r->written_trigger) {
		json_value(j, r->written_trigger);
		return;
	}
	json_begin_object(j);
	switch (r->trigger) {
	case TRIGGER_CRON:
		json_member_str(j, "type", "cron");
		write_if(j, "cron", r->cron);
		write_if(j, "zone", r->zone);
		break;
	case TRIGGER_EVERY:
		json_member_str(j, "type", "every");
		json_member_int(j, "everyMs", r->every_ms);
		break;
	case TRIGGER_FILES:
		json_member_str(j, "type", "files");
		json_key(j, "paths");
		json_begin_array(j);
		for (unsigned i = 0; i < r->n_paths; i++)
			json_text(j, r->paths[i]);
		json_end_array(j);
		break;
	case TRIGGER_EVENT:
		write_if(j, "type", r->type);
		write_if(j, "source", r->source);
		write_if(j, "pattern", r->pattern);
		break;
	}
	json_end_object(j);
}

static void write_task_action(struct json *j, const struct rule_new *r)
{
	json_member_str(j, "type", "agent");
	write_if(j, "prompt", r->prompt);
	write_if(j, "agent", r->agent);
	if (r->priority != 0) {
		json_key(j, "priority");
		json_double(j, r->priority);
	}
}

static void write_action(struct json *j, const struct rule_new *r)
{
	json_key(j, "action");
	if (r->written_action) {
		json_value(j, r->written_action);
		return;
	}
	json_begin_object(j);
	switch (r->action) {
	case ACTION_TASK:
		write_task_action(j, r);
		break;
	case ACTION_COMMAND:
		json_member_str(j, "type", "command");
		write_if(j, "command", r->command);
		break;
	case ACTION_WEBHOOK:
		json_member_str(j, "type", "webhook");
		write_if(j, "url", r->url);
		break;
	case ACTION_DESKTOP:
		json_member_str(j, "type", "notify");
		write_if(j, "message", r->message);
		break;
	}
	json_end_object(j);
}

static void write_rule(struct json *j, const struct rule_info *info)
{
	json_begin_object(j);
	json_member_text(j, "id", info->id);
	write_trigger(j, info->rule);
	write_action(j, info->rule);
	json_member_bool(j, "enabled", info->enabled);
	json_member_int(j, "cooldownMs", info->rule->cooldown_ms);
	json_member_bool(j, "requiresApproval", info->rule->needs_approval);
	json_end_object(j);
}

static void write_execution(struct json *j, const struct rule_execution *e)
{
	json_begin_object(j);
	json_member_text(j, "ruleId", e->rule);
	json_member_text(j, "eventType", e->event_type);
	json_member_text(j, "status", e->status);
	aiwg_write_time(j, "timestamp", e->time_ms);
	write_if(j, "taskId", e->task);
	write_if(j, "error", e->error);
	json_end_object(j);
}

void aiwg_write_automation(struct json *j, struct services *s, struct text folder)
{
	const struct rule_info *rules = NULL;
	const struct rule_execution *log = NULL;
	bool enabled = false;
	unsigned n = 0;
	unsigned n_log = 0;

	if (s->automation) {
		automation_rules(s->automation, folder, &rules, &n, &enabled);
		automation_log(s->automation, folder, &log, &n_log);
	}
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	json_member_uint(j, "ruleCount", n);
	json_key(j, "rules");
	json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		write_rule(j, &rules[i]);
	json_end_array(j);
	json_key(j, "recentExecutions");
	json_begin_array(j);
	for (unsigned i = n_log > EXECUTIONS_SHOWN ? n_log - EXECUTIONS_SHOWN : 0; i < n_log; i++)
		write_execution(j, &log[i]);
	json_end_array(j);
	json_end_object(j);
}

/* ---- all of it ---- */

void aiwg_write_subsystems(struct json *j, const struct server *server, struct text folder)
{
	struct services *s = server->opts.services;

	json_begin_object(j);
	json_key(j, "ipc");
	json_begin_object(j);
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
	struct json *j = call_result(c);

	json_begin_object(j);
	json_member_int(j, "pid", getpid());
	json_member_uint(j, "uptime_seconds", (clock_steady_ms() - s->started_ms) / 1000);
	aiwg_write_time(j, "started_at", s->started_utc_ms);
	json_member_str(j, "health", dialect_health(s));
	json_key(j, "subsystems");
	aiwg_write_subsystems(j, s, aiwg_folder(c, NULL));
	json_end_object(j);
	return call_reply(c);
}

/* ---- the file ---- */

static void write_monitors(struct json *j, const struct server *s, struct text folder)
{
	json_key(j, "monitors");
	json_begin_object(j);
	json_key(j, "file_watcher");
	write_watcher(j, s, folder);
	write_off(j, "webhook");
	json_key(j, "scheduler");
	write_scheduler(j, s, folder);
	json_end_object(j);
}

static void write_rule_count(struct json *j, struct services *s, struct text folder)
{
	const struct rule_info *rules;
	bool enabled = false;
	unsigned n = 0;

	if (s->automation)
		automation_rules(s->automation, folder, &rules, &n, &enabled);
	json_key(j, "automation");
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	json_member_uint(j, "rule_count", n);
	json_end_object(j);
}

static void write_health(struct json *j, const struct server *s, const char *health, int64_t now_ms)
{
	int failing = services_failing(s->opts.services);

	json_key(j, "health");
	json_begin_object(j);
	json_member_str(j, "status", health);
	aiwg_write_time(j, "last_check", now_ms);
	json_key(j, "issues");
	json_begin_array(j);
	if (failing != 0) {
		char issue[120];

		snprintf(issue, sizeof(issue), "the store cannot be written: %s",
			 strerror(-failing));
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
	json_key(j, "ipc");
	json_begin_object(j);
	json_member_str(j, "socket", socket_name);
	json_member_uint(j, "clients", count_clients(s, p->folder));
	json_end_object(j);
	json_key(j, "agents");
	write_supervisor(j, s->opts.services, p->folder, "max_concurrency");
	json_key(j, "task_stats");
	write_stats(j, s->opts.services, p->folder);
	write_monitors(j, s, p->folder);
	write_rule_count(j, s->opts.services, p->folder);
	write_health(j, s, health, now_ms);
	json_end_object(j);
}
