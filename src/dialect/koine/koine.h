/*
 * koine's own dialect: the methods of all other dialects under one error table, and methods of
 * its own. Its socket takes any framing, recognised from the first bytes of each connection.
 */
#pragma once

#include "base/clock.h"
#include "call/dialect.h"
#include "engine/event/event.h"
#include "engine/session/session.h"
#include "model/rule.h"
#include "wire/json.h"

struct bridges;

extern const struct dialect koine_dialect;

/* For who speaks it elsewhere, too. */
extern const struct error_row koine_errors[];
extern const struct method_table *const koine_more_methods[];

/* Served only with --debug-methods. */
extern const struct method_table koine_debug_methods;

/* Conversations, streamed and ended. */
extern const struct method_table koine_chat_methods;
extern const struct method_table koine_chat_ended_methods;

/* The event log. */
extern const struct method_table koine_event_methods;

/* Memory, and the store. */
extern const struct method_table koine_memory_methods;
extern const struct method_table koine_memory_find_methods;

/* Tasks beyond aiwg's methods. */
extern const struct method_table koine_task_methods;
extern const struct method_table koine_task_add_methods;
extern const struct method_table koine_task_control_methods;

/* Rules beyond aiwg's methods. */
extern const struct method_table koine_project_methods;
extern const struct method_table koine_automation_methods;

/* Notifiers. */
extern const struct method_table koine_notify_methods;

/* Agent sessions. */
extern const struct method_table koine_session_methods;

/* Approvals, and grants. */
extern const struct method_table koine_approval_methods;

/* Reads seconds that a client gave; 0 means that none are given. */
int koine_read_seconds(double seconds, const char *field, int64_t *ret_ms, struct error *error);

/* Agents that koined did not start. */
extern const struct method_table koine_agent_methods;
extern const struct method_table koine_hook_methods;
/* An array: the servers that agents work in, and whether they answer. */
void koine_write_agent_servers(struct json *j, const struct bridges *m);

/* Handlers, by file. */
struct done koine_health(struct call *c);
struct done koine_daemon_status(struct call *c);
struct done koine_daemon_log(struct call *c);
struct done koine_daemon_reload(struct call *c);
struct done koine_daemon_drain(struct call *c);

struct done koine_daemon_restart(struct call *c);

struct daemon_restart_in {
	bool by_manager;
	const struct value *env;
};

struct daemon_drain_in {
	int64_t time_ms;
};

struct daemon_log_in {
	int64_t after;
	int64_t limit;
};

/* automation.c: the members "trigger" and "action" of a rule. */
void koine_rule_parts(struct json *j, const struct rule *r);

/* event.c: the members of an event, without braces, so that the caller may add others. */
void event_write_members(struct json *j, const struct event *e);

/* ---- members that several answers share ---- */

/* Writes null for 0. */
static inline void member_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	json_key(j, key);
	if (ms == 0) {
		json_null(j);
		return;
	}
	clock_format_iso(ms, text);
	json_str(j, text);
}

/*
 * session_json.c: an agent session and its events. A member that a session lacks is null. An event
 * has only the members that apply, named as in the event log's session.event.
 */

/* Escaping may turn one byte into six; even then a page must fit into a message. */
enum {
	SESSION_SHOWN = 200,          /* bytes of each text in a list */
	SESSION_TEXT_MAX = 1 << 20,   /* bytes of one text or input in a page */
	SESSION_PAGE_BYTES = 1 << 20, /* bytes of text before the last event of a page */
};

/* Writes the whole session, with its configuration. */
void session_json_write(struct json *j, struct arena *a, const struct session *row);

/* For lists: texts are cut, and the result is left out. */
void session_json_write_short(struct json *j, const struct session *row);

void session_json_write_event(struct json *j, const struct session_event *e);
