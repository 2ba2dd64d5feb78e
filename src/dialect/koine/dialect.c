/* The schema of koine's own dialect. */
#include "dialect/koine/koine.h"

#include "base/log.h"
#include "call/method.h"
#include "dialect/daemon.h"
#include "dialect/metric/metric.h"

enum { SECONDS_MAX = 10 * 366 * 24 * 3600 }; /* ten years */

int koine_read_seconds(double seconds, const char *field, int64_t *ret_ms, struct error *error)
{
	if (!(seconds >= 0 && seconds <= SECONDS_MAX))
		return refuse_field(error, field, "%s must be between 0 and %d seconds, not %g",
				    field, SECONDS_MAX, seconds);
	*ret_ms = (int64_t)(seconds * 1000);
	/* A very short time must not become 0, which means that none is given. */
	if (seconds > 0 && *ret_ms == 0)
		*ret_ms = 1;
	return 0;
}

const struct error_row koine_errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_ONLY, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_ONLY, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {-32001, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32002, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32003, "Resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32004, "Size limit exceeded", WORDS_BOTH, 0},
	[REFUSE_UNAVAILABLE] = {-32005, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32006, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32007, "Call timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32008, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32800, "Cancelled", WORDS_ONLY, 0},
};

static const struct field stop_fields[] = {
	FIELD(BOOL, stop_in, force, "Stop without waiting for running calls and tasks"),
};

static const struct field drain_fields[] = {
	FIELD_AS("time", INT, daemon_drain_in, time_ms,
		 "Maximum time in milliseconds to wait for running tasks and sessions; 0 means no "
		 "limit",
		 AT_LEAST(0)),
};

static const struct field restart_fields[] = {
	FIELD(BOOL, daemon_restart_in, by_manager,
	      "Prepare for a restart, but do not stop; the caller then restarts koined through the "
	      "service manager"),
	FIELD(ARRAY, daemon_restart_in, env,
	      "Environment variables of the new process, as NAME=value; default: unchanged",
	      .items = FIELD_STRING),
};

static const struct field log_fields[] = {
	FIELD(INT, daemon_log_in, after, "Return only lines with a higher line number than this",
	      AT_LEAST(0)),
	FIELD(INT, daemon_log_in, limit, "Maximum number of lines; koined returns the newest lines",
	      .default_number = LOG_TAIL_LINES, RANGE(1, LOG_TAIL_LINES)),
};

static const struct method methods[] = {
	{"ping", "Return pong and the current time", "{pong:true timestamp:time}",
	 .handle = dialect_ping},
	{"health", "Return the health and version of the daemon", "{status:ok version:string}",
	 .handle = koine_health},
	{"daemon.status", "Return the process id, uptime, store and listeners",
	 "{pid:integer version:string uptime_seconds:integer started_at:time health:string "
	 "connections:integer calls_in_flight:integer store:object agent:object|null "
	 "sessions_running:integer rules_running:integer rules_invalid:integer tasks:object "
	 "approvals_pending:integer session_program:object agent_servers:[object] "
	 "listeners:[object] subsystems:object}",
	 .handle = koine_daemon_status},
	{"daemon.log", "Return the last lines of the log, oldest first",
	 "{lines:[{number:integer time:time level:string text:string}]}",
	 FIELDS(log_fields, daemon_log_in), .handle = koine_daemon_log},
	{"daemon.reload", "Reload the settings: agents, rules, policies, notifiers, limits",
	 "{reloaded:true settings:[object]}", .handle = koine_daemon_reload},
	{"daemon.drain",
	 "Start no new tasks or sessions while this connection is open; return when none is "
	 "running",
	 "{tasks:integer sessions:integer rules:integer}", FIELDS(drain_fields, daemon_drain_in),
	 .handle = koine_daemon_drain, .flags = METHOD_LATER},
	{"daemon.restart",
	 "Restart the daemon; listening sockets stay open, and page sessions stay valid",
	 "{restarting:true}", FIELDS(restart_fields, daemon_restart_in),
	 .handle = koine_daemon_restart, .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"daemon.stop", "Stop the daemon gracefully", "{stopping:true}",
	 FIELDS(stop_fields, stop_in), .handle = dialect_stop},
};

static const char *const paths[] = {"/", "/rpc", NULL};

const struct method_table *const koine_more_methods[] = {
	&rpc_methods,
	&koine_memory_find_methods,
	&koine_memory_methods,
	&koine_chat_methods,
	&koine_chat_ended_methods,
	&koine_event_methods,
	&host_methods,
	&koine_task_add_methods,
	&koine_task_methods,
	&koine_task_control_methods,
	&koine_automation_methods,
	&koine_project_methods,
	&koine_session_methods,
	&koine_approval_methods,
	&koine_notify_methods,
	&koine_agent_methods,
	&koine_hook_methods,
	&metric_methods,
	NULL,
};

const struct dialect koine_dialect = {
	.name = "koine",
	.framing = SPEAKS_ANY,
	.message_max = 16 << 20,
	.errors = koine_errors,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.more_methods = koine_more_methods,
	.debug_methods = &koine_debug_methods,
	.speaks_all = true,
	.home = {.socket = "koine.sock", .told_by = "KOINE_SOCKET"},
	.http_paths = paths,
	.http_silent_status = 200,
	.http_routes = metric_routes,
	.n_http_routes = N_METRIC_ROUTES,
};
