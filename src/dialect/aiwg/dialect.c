/* The schema of aiwg. */
#include "call/server.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/daemon.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 0},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_TEXT, 0},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_BOTH, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_TEXT, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {-32000, "Task not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32001, "Task not cancellable", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32002, "Queue full", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32600, "Invalid Request", WORDS_BOTH, 0},
	[REFUSE_UNAVAILABLE] = {-32003, "Subsystem unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32003, "Subsystem unavailable", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_STOPPING] = {-32003, "Subsystem unavailable", WORDS_BOTH, 0},
	[REFUSE_CANCELLED] = {-32603, "Internal error", WORDS_BOTH, 0},
};

struct text aiwg_folder(const struct call *c, const struct value *named)
{
	const struct aiwg_project *p = c->endpoint->settings;

	return c->endpoint->dialect == &aiwg_dialect && p ? p->folder : value_text(named);
}

static const struct field stop_fields[] = {
	FIELD(BOOL, stop_in, force, "Stop without waiting for running calls and tasks"),
};

#define PROJECT(in)                                                                                \
	FIELD(ANY, in, project, "Folder of the project; ignored on the socket of a project")

static const struct field submit_fields[] = {
	FIELD(STRING, aiwg_submit_in, prompt, "Prompt of the task", .required = true),
	FIELD(STRING, aiwg_submit_in, agent, "Agent name to pass to claude --agent",
	      .for_humans = HUMANS_IF_PROGRAM),
	FIELD(NUMBER, aiwg_submit_in, priority, "Priority; tasks with higher numbers start first"),
	PROJECT(aiwg_submit_in),
};

static const struct field task_fields[] = {
	FIELD_AS("taskId", STRING, aiwg_task_in, id, "Id of the task", .required = true),
	PROJECT(aiwg_task_in),
};

static const struct field list_fields[] = {
	FIELD(ANY, aiwg_list_in, state,
	      "Return only tasks in this state: queued, running, completed, failed or cancelled"),
	FIELD(ANY, aiwg_list_in, limit, "Maximum number of tasks, up to 1000; default 20"),
	PROJECT(aiwg_list_in),
};

static const struct field rule_fields[] = {
	FIELD_AS("ruleId", STRING, aiwg_rule_in, id, "Name of a rule; default: all rules"),
	PROJECT(aiwg_rule_in),
};

static const struct field chat_fields[] = {
	FIELD_AS("message", STRING, aiwg_submit_in, prompt,
		 "Message to submit as the prompt of a task", .required = true),
	FIELD(NUMBER, aiwg_submit_in, priority, "Priority; tasks with higher numbers start first",
	      .default_number = 5),
	PROJECT(aiwg_submit_in),
};

static const struct field project_fields[] = {PROJECT(aiwg_project_in)};

#define ENABLED "{enabled:boolean success:true}"
static const struct method methods[] = {
	{"ping", "Return pong and the current time", "{pong:true timestamp:time}",
	 .handle = dialect_ping},
	{"daemon.status", "Return the process id, uptime and subsystems", "object",
	 .handle = aiwg_daemon_status},
	{"daemon.stop", "Stop the daemon gracefully", "{stopping:true}",
	 FIELDS(stop_fields, stop_in), .handle = dialect_stop},
	{"task.submit", "Add a task", "{taskId:string state:string}",
	 FIELDS(submit_fields, aiwg_submit_in), .handle = aiwg_task_submit, .flags = METHOD_LATER},
	{"task.cancel", "Cancel a task and end its processes", "{cancelled:true}",
	 FIELDS(task_fields, aiwg_task_in), .handle = aiwg_task_cancel, .flags = METHOD_LATER},
	{"task.list", "List tasks, newest first, without their output", "[object]",
	 FIELDS(list_fields, aiwg_list_in), .handle = aiwg_task_list, .flags = METHOD_LATER},
	{"task.get", "Return one task, with the end of its output", "object",
	 FIELDS(task_fields, aiwg_task_in), .handle = aiwg_task_get, .flags = METHOD_LATER},
	{"task.stats", "Count tasks by state", "object", FIELDS(project_fields, aiwg_project_in),
	 .handle = aiwg_task_stats},
	{"automation.status", "List rules and their last actions", "object",
	 FIELDS(project_fields, aiwg_project_in), .handle = aiwg_automation_status},
	{"automation.enable", "Enable a rule, or all rules", ENABLED,
	 FIELDS(rule_fields, aiwg_rule_in), .handle = aiwg_automation_switch, .arg = "on",
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"automation.disable", "Disable a rule, or all rules", ENABLED,
	 FIELDS(rule_fields, aiwg_rule_in), .handle = aiwg_automation_switch,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"chat.send", "Submit a message as a task", "{taskId:string}",
	 FIELDS(chat_fields, aiwg_submit_in), .handle = aiwg_chat_send, .flags = METHOD_LATER},
};

static const char no_version[] = "Invalid Request: missing jsonrpc 2.0";

const struct dialect aiwg_dialect = {
	.name = "aiwg",
	.framing = SPEAKS_LINE,
	.message_max = 16 << 20,
	.rules = {.flags = JSONRPC_NULL_ID_SILENT | JSONRPC_ANY_ID | JSONRPC_PARAMS_LOOSE,
		  .no_version = no_version,
		  .not_object = no_version,
		  .no_method = "Invalid Request: missing method"},
	.errors = errors,
	.plain_errors = true,
	.explain_field = aiwg_explain_field,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.home = {.socket = ".aiwg/daemon/daemon.sock", .in_project = true},
	.section = &aiwg_section,
	.life = &aiwg_life,
};
