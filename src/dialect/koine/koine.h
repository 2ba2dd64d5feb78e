/*
 * koine's own dialect: the methods of all other dialects under one error table, and methods of
 * its own. Its socket takes any framing, recognised from the first bytes of each connection.
 */
#pragma once

#include "call/dialect.h"

struct mirrors;

extern const struct dialect koine_dialect;

/* For who speaks it elsewhere, too. */
extern const struct error_row koine_errors[];
extern const struct method_table koine_more_methods[];

/* Served only with --debug-methods. */
extern const struct method koine_debug_methods[];
extern const unsigned koine_n_debug_methods;

/* Conversations, streamed and ended. */
extern const struct method koine_chat_methods[];
extern const unsigned koine_n_chat_methods;
extern const struct method koine_chat_ended_methods[];
extern const unsigned koine_n_chat_ended_methods;

/* The event log. */
extern const struct method koine_event_methods[];
extern const unsigned koine_n_event_methods;

/* Memory, and the store. */
extern const struct method koine_memory_methods[];
extern const unsigned koine_n_memory_methods;
extern const struct method koine_memory_find_methods[];
extern const unsigned koine_n_memory_find_methods;

/* Tasks beyond aiwg's methods. */
extern const struct method koine_task_methods[];
extern const unsigned koine_n_task_methods;
extern const struct method koine_task_add_methods[];
extern const unsigned koine_n_task_add_methods;
extern const struct method koine_task_control_methods[];
extern const unsigned koine_n_task_control_methods;

/* Rules beyond aiwg's methods. */
extern const struct method koine_project_methods[];
extern const unsigned koine_n_project_methods;
extern const struct method koine_automation_methods[];
extern const unsigned koine_n_automation_methods;

/* Notifiers. */
extern const struct method koine_notify_methods[];
extern const unsigned koine_n_notify_methods;

/* Agent sessions. */
extern const struct method koine_session_methods[];
extern const unsigned koine_n_session_methods;

/* Approvals, and grants. */
extern const struct method koine_approval_methods[];
extern const unsigned koine_n_approval_methods;

/* Reads seconds that a client gave; 0 means that none are given. */
int koine_read_seconds(double seconds, const char *field, int64_t *ret_ms, struct why *why);

/* Agents that koined did not start. */
extern const struct method koine_agent_methods[];
extern const unsigned koine_n_agent_methods;
extern const struct method koine_hook_methods[];
extern const unsigned koine_n_hook_methods;
/* An array: the servers that agents work in, and whether they answer. */
void koine_write_agent_servers(struct json *j, const struct mirrors *m);

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
