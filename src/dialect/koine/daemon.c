/* The daemon itself: its status, its log, its settings. */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"
#include "call/server.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/daemon.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/task.h"
#include "engine/approval/approval.h"
#include "engine/automation/automation.h"
#include "engine/chat/chat.h"
#include "engine/engine.h"
#include "engine/node/node.h"
#include "engine/session/session.h"

struct done koine_health(struct call *c)
{
	return call_answer(
		c, 0, NULL,
		PAIRS(JSON_STR("status", "ok"), JSON_STR("version", c->server->opts.version)));
}

/* Which host this is of those that share it, and whether it is there. */
static void write_node(struct json *j, const struct node *n)
{
	const char *fault = node_fault(n);
	unsigned rank;

	json_member_text(j, "host", node_name(n));
	json_member_uint(j, "hosts", node_count(n, &rank));
	json_member_bool(j, "lease", node_epoch(n) != 0);
	json_member_str(j, "answers", fault ? fault : "ok");
}

static void write_store(struct json *j, const struct engine *engine)
{
	const struct store_health *health = engine_health(engine);
	const char *failing = engine_failing(engine);

	json_member_object(j, "store");
	json_member_str(j, "path", engine_store_path(engine));
	json_member_str(j, "check",
			health->failed              ? health->text
			: health->checked           ? "ok"
			: engine_need_check(engine) ? "under way"
						    : "not needed");
	json_member_str(j, "writes", failing ? failing : "ok");
	if (engine->node)
		write_node(j, engine->node);
	json_end_object(j);
}

/* Whether sessions can run: this process may have another PATH than its user's shell. */
static void write_program(struct json *j, const struct sessions *sessions)
{
	bool found;
	struct text name = sessions_program(sessions, &found);

	json_member_object(j, "session_program");
	json_member_text(j, "name", name);
	json_member_bool(j, "found", found);
	json_end_object(j);
}

/* What people want to know first: who answers, and what is waiting. */
static void write_work(struct json *j, struct engine *engine)
{
	const struct agent *agent = chat_agent(engine->chat, (struct text) {0});
	struct task_counts tasks;

	json_key(j, "agent");
	if (agent) {
		json_begin_object(j);
		json_member_str(j, "name", agent->name);
		json_member_str(j, "kind", agent->ops->kind);
		json_end_object(j);
	} else {
		json_null(j);
	}
	json_member_uint(j, "sessions_running", sessions_open(engine->sessions));
	json_member_uint(j, "rules_running", automation_running(engine->automation));
	json_member_uint(j, "rules_invalid", engine->n_invalid_rules);
	write_program(j, engine->sessions);
	json_member_object(j, "tasks");
	task_json_pauses(j, engine->tasks);
	task_count(engine->tasks, (struct text) {0}, &tasks);
	json_member_bool(j, "draining", tasks.draining);
	json_end_object(j);
	json_member_uint(j, "approvals_pending", approvals_pending(engine->approvals));
	json_key(j, "agent_servers");
	koine_write_agent_servers(j, engine->bridges);
}

/* Guests have a row of their own, once there were any. */
static void write_listeners(struct json *j, const struct server *s)
{
	json_member_array(j, "listeners");
	list_for_each (at, following, &s->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		endpoint_write(e, j);
		if (e->guest && e->guest->n_accepted > 0)
			endpoint_write(e->guest, j);
	}
	json_end_array(j);
}

struct done koine_daemon_status(struct call *c)
{
	const struct server *s = c->server;
	struct json *j = call_result(c);
	char started[ISO_LEN + 1];

	clock_format_iso(s->started_utc_ms, started);
	json_begin_object(j);
	json_member_int(j, "pid", getpid());
	json_member_str(j, "version", s->opts.version);
	json_member_uint(j, "uptime_seconds", (clock_steady_ms() - s->started_ms) / 1000);
	json_member_str(j, "started_at", started);
	json_member_str(j, "health", dialect_health(s));
	json_member_uint(j, "connections", s->n_clients);
	json_member_uint(j, "calls_in_flight", s->n_calls);
	write_store(j, call_engine(c));
	write_work(j, call_engine(c));
	write_listeners(j, s);
	json_key(j, "subsystems");
	aiwg_write_subsystems(j, s, (struct text) {0});
	return call_reply_object(c);
}

/* ---- its log ---- */

static void write_line(void *arg, const struct log_tail_line *line)
{
	struct json *j = arg;
	char time[ISO_LEN + 1];

	clock_format_iso(line->utc_ms, time);
	json_begin_object(j);
	json_member_uint(j, "number", line->number);
	json_member_str(j, "time", time);
	json_member_str(j, "level", log_level_name(line->level));
	json_member_str(j, "text", line->text);
	json_end_object(j);
}

struct done koine_daemon_log(struct call *c)
{
	const struct daemon_log_in *in = c->in;
	struct json *j = call_object(c);

	json_member_array(j, "lines");
	log_tail_read((uint64_t)in->after, (unsigned)in->limit, write_line, j);
	json_end_array(j);
	return call_reply_object(c);
}

/* ---- its settings ---- */

struct reload_row {
	enum reload_fate fate;
	struct text key, file, reason;
	unsigned line;
};

enum { RELOAD_ROWS_MAX = 1000 };

struct reload_rows {
	struct call *call;
	struct reload_row *rows;
	unsigned n;
};

static void on_reload_note(void *arg, const struct reload_note *note)
{
	struct reload_rows *r = arg;
	struct reload_row *row = r->n < RELOAD_ROWS_MAX ? &r->rows[r->n] : NULL;
	struct arena *a = &r->call->arena;

	if (!row || arena_copy_text(a, text_of(note->key), &row->key) != 0 ||
	    arena_copy_text(a, text_of(note->file), &row->file) != 0 ||
	    arena_copy_text(a, text_of(note->reason), &row->reason) != 0)
		return;
	row->fate = note->fate;
	row->line = note->line;
	r->n++;
}

static void write_reload(struct json *j, const struct reload_rows *rows)
{
	static const char *const fates[] = {[RELOAD_TAKEN] = "applied",
					    [RELOAD_LATER] = "at the next start",
					    [RELOAD_INVALID] = "invalid",
					    [RELOAD_KEPT] = "unchanged"};

	json_begin_object(j);
	json_member_bool(j, "reloaded", true);
	json_member_array(j, "settings");
	for (unsigned i = 0; i < rows->n; i++) {
		const struct reload_row *row = &rows->rows[i];

		json_begin_object(j);
		json_member_text(j, "key", row->key);
		json_member_str(j, "state", fates[row->fate]);
		if (row->file.len > 0)
			json_member_text(j, "file", row->file);
		if (row->line > 0)
			json_member_uint(j, "line", row->line);
		if (row->reason.len > 0)
			json_member_text(j, "reason", row->reason);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

struct done koine_daemon_reload(struct call *c)
{
	const struct server_opts *opts = &c->server->opts;
	struct reload_rows rows = {
		.call = c,
		.rows = arena_alloc(&c->arena, RELOAD_ROWS_MAX * sizeof(struct reload_row))};
	const struct reload_listener report = {.note = on_reload_note, .arg = &rows};
	struct error error = {.text = ""};
	int r;

	if (!rows.rows)
		return call_fail(c, -ENOMEM);
	if (!opts->on_reload_asked)
		return call_fail(c, refuse(&c->error, REFUSE_FORBIDDEN,
					   "this server does not accept reload requests"));
	r = opts->on_reload_asked(opts->arg, c->endpoint->dialect, &report, &error);
	if (r > 0)
		r = refuse(&c->error, (enum refusal)r,
			   "%.500s; the current settings remain in effect", error.text);
	if (r != 0)
		return call_fail(c, r);
	write_reload(call_result(c), &rows);
	return call_reply(c);
}
