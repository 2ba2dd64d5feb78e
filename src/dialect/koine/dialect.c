/* The portrait of koine's own dialect. */
#include "dialect/koine/koine.h"

#include "base/log.h"
#include "call/method.h"
#include "dialect/daemon.h"
#include "dialect/metric/metric.h"

enum { SECONDS_MAX = 10 * 366 * 24 * 3600 }; /* ten years */

int koine_read_seconds(double seconds, const char *field, int64_t *ret_ms, struct why *why)
{
	if (!(seconds >= 0 && seconds <= SECONDS_MAX))
		return refuse_field(why, field, "%s must be between 0 and %d seconds, not %g",
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
		 "Maximum time to wait for running tasks and sessions, in milliseconds; 0 means no "
		 "limit"),
};

static const struct field restart_fields[] = {
	FIELD(BOOL, daemon_restart_in, by_manager,
	      "Do not stop koined; the caller restarts it through the service manager before "
	      "closing the connection"),
	FIELD(ARRAY, daemon_restart_in, env,
	      "Environment variables of the new process, as NAME=value; default: unchanged",
	      .items = FIELD_STRING),
};

static const struct field log_fields[] = {
	FIELD(INT, daemon_log_in, after, "Return only lines after this line number", AT_LEAST(0)),
	FIELD(INT, daemon_log_in, limit, "Maximum number of lines; koined omits older lines",
	      .default_number = LOG_TAIL_LINES, RANGE(1, LOG_TAIL_LINES)),
};

static const struct method methods[] = {
	{.name = "ping",
	 .doc = "Return pong and the current time",
	 .result = "{\"type\":\"object\",\"properties\":{\"pong\":{\"const\":true},"
		   "\"timestamp\":{\"type\":\"string\",\"format\":\"date-time\"}}}",
	 .handle = dialect_ping},
	{.name = "health",
	 .doc = "Return the health and version of the daemon",
	 .result = "{\"type\":\"object\",\"properties\":{\"status\":{\"const\":\"ok\"},"
		   "\"version\":{\"type\":\"string\"}}}",
	 .handle = koine_health},
	{.name = "daemon.status",
	 .doc = "Return the process id, uptime, store and listeners",
	 .result = "{\"type\":\"object\",\"properties\":{\"pid\":{\"type\":\"integer\"},"
		   "\"version\":{\"type\":\"string\"},\"uptime_seconds\":{\"type\":\"integer\"},"
		   "\"started_at\":{\"type\":\"string\",\"format\":\"date-time\"},"
		   "\"health\":{\"type\":\"string\"},\"connections\":{\"type\":\"integer\"},"
		   "\"calls_in_flight\":{\"type\":\"integer\"},\"store\":{\"type\":\"object\"},"
		   "\"agent\":{\"type\":[\"object\",\"null\"]},"
		   "\"sessions_running\":{\"type\":\"integer\"},"
		   "\"rules_running\":{\"type\":\"integer\"},"
		   "\"rules_invalid\":{\"type\":\"integer\"},"
		   "\"tasks\":{\"type\":\"object\"},"
		   "\"approvals_pending\":{\"type\":\"integer\"},"
		   "\"session_program\":{\"type\":\"object\"},"
		   "\"agent_servers\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
		   "\"listeners\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
		   "\"subsystems\":{\"type\":\"object\"}}}",
	 .handle = koine_daemon_status},
	{.name = "daemon.log",
	 .doc = "Return the last lines of the log, oldest first",
	 .result = "{\"type\":\"object\",\"properties\":{\"lines\":{\"type\":\"array\",\"items\":{"
		   "\"type\":\"object\",\"properties\":{\"number\":{\"type\":\"integer\"},"
		   "\"time\":{\"type\":\"string\",\"format\":\"date-time\"},"
		   "\"level\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"}}}}}}",
	 FIELDS(log_fields, daemon_log_in),
	 .handle = koine_daemon_log},
	{.name = "daemon.reload",
	 .doc = "Reload the settings: agents, rules, policies, notifiers, limits",
	 .result = "{\"type\":\"object\",\"properties\":{\"reloaded\":{\"const\":true},"
		   "\"settings\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}",
	 .handle = koine_daemon_reload},
	{.name = "daemon.drain",
	 .doc = "Start no tasks or sessions until the connection closes; respond when no task or "
		"session is running",
	 .result = "{\"type\":\"object\",\"properties\":{\"tasks\":{\"type\":\"integer\"},"
		   "\"sessions\":{\"type\":\"integer\"},\"rules\":{\"type\":\"integer\"}}}",
	 FIELDS(drain_fields, daemon_drain_in),
	 .handle = koine_daemon_drain,
	 .flags = METHOD_LATER},
	{.name = "daemon.restart",
	 .doc = "Restart the daemon; listening sockets stay open, and page sessions stay valid",
	 .result = "{\"type\":\"object\",\"properties\":{\"restarting\":{\"const\":true}}}",
	 FIELDS(restart_fields, daemon_restart_in),
	 .handle = koine_daemon_restart,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{.name = "daemon.stop",
	 .doc = "Stop the daemon gracefully",
	 .result = "{\"type\":\"object\",\"properties\":{\"stopping\":{\"const\":true}}}",
	 FIELDS(stop_fields, stop_in),
	 .handle = dialect_stop},
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
