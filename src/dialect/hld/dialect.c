/* The schema of hld. */
#include "dialect/hld/hld.h"
#include "dialect/life.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 0},
	[REFUSE_REQUEST] = {-32600, "Invalid request", WORDS_TEXT, 0},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_BOTH, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_TEXT, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_TEXT, 0},
	[REFUSE_NOT_FOUND] = {-32603, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32603, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32603, "Resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32600, "Message too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32603, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32603, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32603, "Call timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32603, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32603, "Cancelled", WORDS_TEXT, 0},
};

static const struct field launch_fields[] = {
	FIELD(STRING, hld_run_in, query, "Prompt for the agent", .required = true),
	FIELD(STRING, hld_run_in, model,
	      "Model: opus or sonnet; any other value selects the agent's default"),
	FIELD(OBJECT, hld_run_in, mcp_config,
	      "MCP servers: {\"mcpServers\": {NAME: {\"command\", \"args\", \"env\"}}}",
	      .for_humans = HUMANS),
	FIELD(STRING, hld_run_in, permission_prompt_tool,
	      "MCP tool that decides permission requests", .for_humans = HUMANS),
	FIELD(STRING, hld_run_in, working_dir,
	      "Working directory; default: the daemon's working directory", .for_humans = HUMANS),
	FIELD(INT, hld_run_in, max_turns, "Maximum number of turns"),
	FIELD(STRING, hld_run_in, system_prompt, "Text that replaces the agent's system prompt"),
	FIELD(STRING, hld_run_in, append_system_prompt,
	      "Text to append to the agent's system prompt"),
	FIELD(ARRAY, hld_run_in, allowed_tools, "Tools to allow without approval",
	      .for_humans = HUMANS),
	FIELD(ARRAY, hld_run_in, disallowed_tools, "Tools to forbid"),
	FIELD(ARRAY, hld_run_in, additional_directories,
	      "Folders that the agent can use in addition to working_dir", .for_humans = HUMANS),
	FIELD(STRING, hld_run_in, custom_instructions,
	      "Instructions to append to the system prompt, after append_system_prompt"),
	FIELD(STRING, hld_run_in, title, "Title of the session"),
	FIELD(BOOL, hld_run_in, verbose, "Ignored, because output is always verbose"),
	FIELD(BOOL, hld_run_in, dangerously_skip_permissions,
	      "Not supported; must be false or omitted"),
	FIELD(INT, hld_run_in, dangerously_skip_permissions_timeout,
	      "Not supported; must be 0 or omitted"),
};

static const struct field continue_fields[] = {
	FIELD(STRING, hld_run_in, session_id, "Id of the session to continue", .required = true),
	FIELD(STRING, hld_run_in, query, "Prompt for the agent", .required = true),
	FIELD(STRING, hld_run_in, system_prompt, "Text that replaces the agent's system prompt"),
	FIELD(STRING, hld_run_in, append_system_prompt,
	      "Text to append to the agent's system prompt"),
	FIELD_AS("mcp_config", STRING, hld_run_in, mcp_config_text, "MCP servers, as JSON text",
		 .for_humans = HUMANS),
	FIELD(STRING, hld_run_in, permission_prompt_tool,
	      "MCP tool that decides permission requests", .for_humans = HUMANS),
	FIELD(ARRAY, hld_run_in, allowed_tools, "Tools to allow without approval",
	      .for_humans = HUMANS),
	FIELD(ARRAY, hld_run_in, disallowed_tools, "Tools to forbid"),
	FIELD(ARRAY, hld_run_in, additional_directories,
	      "Folders that the agent can use in addition to working_dir", .for_humans = HUMANS),
	FIELD(STRING, hld_run_in, custom_instructions,
	      "Instructions to append to the system prompt, after append_system_prompt"),
	FIELD(STRING, hld_run_in, title, "Title of the new session"),
	FIELD(INT, hld_run_in, max_turns, "Maximum number of turns"),
};

static const struct field session_fields[] = {
	FIELD(STRING, hld_session_in, session_id, "Id of the session", .required = true),
};

static const struct field conversation_fields[] = {
	FIELD(STRING, hld_session_in, session_id,
	      "Id of the session; the result includes its predecessors"),
	FIELD(STRING, hld_session_in, claude_session_id,
	      "Session id assigned by the agent; takes precedence over session_id"),
};

static const struct field archive_fields[] = {
	FIELD(STRING, hld_session_in, session_id, "Id of the session", .required = true),
	FIELD(BOOL, hld_session_in, archived, "true archives the session, false unarchives it"),
};

static const struct field title_fields[] = {
	FIELD(STRING, hld_session_in, session_id, "Id of the session", .required = true),
	FIELD(STRING, hld_session_in, title, "New title; an empty string removes the title"),
};

static const struct field leaves_fields[] = {
	FIELD(STRING, hld_session_in, filter,
	      "Sessions to list: normal, archived or draft; overrides the other filters"),
	FIELD(BOOL, hld_session_in, include_archived, "Include archived sessions"),
	FIELD(BOOL, hld_session_in, archived_only, "Return only archived sessions"),
};

static const struct field paths_fields[] = {
	FIELD(INT, hld_session_in, limit, "Maximum number of folders to return",
	      .default_number = 20),
};

static const struct field fetch_fields[] = {
	FIELD(STRING, hld_approval_in, session_id, "Return only approvals for this session"),
};

static const struct field decision_fields[] = {
	FIELD(STRING, hld_approval_in, decision,
	      "Decision: approve or deny; for a human_contact: respond", .required = true),
	FIELD(STRING, hld_approval_in, call_id,
	      "Id of the approval, as sent by older clients; requires type"),
	FIELD(STRING, hld_approval_in, approval_id, "Id of the approval, as sent by newer clients"),
	FIELD(STRING, hld_approval_in, type,
	      "Type of the approval: function_call or human_contact; required with call_id"),
	FIELD(STRING, hld_approval_in, comment,
	      "Reason or answer; required to deny and to respond"),
};

static const struct field create_fields[] = {
	FIELD(STRING, hld_approval_in, run_id, "Run id or session id of the requesting session",
	      .required = true),
	FIELD(STRING, hld_approval_in, tool_name, "Tool to call", .required = true),
	FIELD(ANY, hld_approval_in, tool_input, "Input of the tool", .required = true),
	FIELD(STRING, hld_approval_in, tool_use_id, "Tool call id assigned by the agent"),
};

static const struct field approval_fields[] = {
	FIELD(STRING, hld_approval_in, approval_id, "Id of the approval", .required = true),
};

static const struct field subscribe_fields[] = {
	FIELD(ARRAY, hld_subscribe_in, event_types,
	      "Types of the events to send: session_status_changed, conversation_updated, "
	      "new_approval, approval_resolved"),
	FIELD(STRING, hld_subscribe_in, session_id, "Send only events from this session"),
	FIELD(STRING, hld_subscribe_in, run_id, "Send only events from this run"),
};

static const struct method methods[] = {
	{"health", "Return the daemon's health, and a version number that hld clients accept",
	 "{status:ok version:string}", .handle = hld_health},
	{"launchSession", "Start a session", "{session_id:string run_id:string}",
	 FIELDS(launch_fields, hld_run_in), .handle = hld_launch, .flags = METHOD_LATER},
	{"listSessions", "List sessions, most recently active first", "{sessions:[object]}",
	 .handle = hld_list, .where = READER},
	{"getSessionLeaves",
	 "List sessions that no other session continues, most recently active first",
	 "{sessions:[object]}", FIELDS(leaves_fields, hld_session_in), .handle = hld_leaves,
	 .where = READER},
	{"getConversation", "List the events of a session and its predecessors, oldest first",
	 "{events:[object]}", FIELDS(conversation_fields, hld_session_in),
	 .handle = hld_conversation, .where = READER},
	{"getSessionState", "Return the state of a session", "{session:object}",
	 FIELDS(session_fields, hld_session_in), .handle = hld_state, .where = READER},
	{"continueSession", "Continue a session; interrupt it first if it is running",
	 "{session_id:string run_id:string claude_session_id:string parent_session_id:string}",
	 FIELDS(continue_fields, hld_run_in), .handle = hld_continue, .flags = METHOD_LATER},
	{"interruptSession", "Interrupt a running session",
	 "{success:boolean session_id:string status:string}",
	 FIELDS(session_fields, hld_session_in), .handle = hld_interrupt, .flags = METHOD_LATER},
	{"archiveSession", "Archive or unarchive a session", "{success:boolean}",
	 FIELDS(archive_fields, hld_session_in), .handle = hld_archive, .where = WRITER},
	{"updateSessionTitle", "Set the title of a session", "{success:boolean}",
	 FIELDS(title_fields, hld_session_in), .handle = hld_title, .where = WRITER},
	{"getRecentPaths", "List working directories, most recently used first", "{paths:[object]}",
	 FIELDS(paths_fields, hld_session_in), .handle = hld_paths, .where = READER},
	{"fetchApprovals", "List pending approvals, oldest first", "{approvals:[object]}",
	 FIELDS(fetch_fields, hld_approval_in), .handle = hld_fetch_approvals, .where = READER},
	{"sendDecision", "Decide an approval; the first decision is final",
	 "{success:boolean error:string}", FIELDS(decision_fields, hld_approval_in),
	 .handle = hld_send_decision, .flags = METHOD_LATER},
	{"createApproval",
	 "Request permission to call a tool, and return without waiting for the decision",
	 "{approval_id:string}", FIELDS(create_fields, hld_approval_in),
	 .handle = hld_create_approval, .flags = METHOD_LATER},
	{"getApproval", "Return one approval", "{approval:object}",
	 FIELDS(approval_fields, hld_approval_in), .handle = hld_get_approval, .where = READER},
	{"Subscribe", "Subscribe to events on this connection, which then accepts no other calls",
	 "{subscription_id:string message:string}", FIELDS(subscribe_fields, hld_subscribe_in),
	 .handle = hld_subscribe},
};

static const struct setting rows[] = {
	{"hld", "heartbeat", SET_SECONDS, offsetof(struct hld_settings, heartbeat_ms), 1, 86400,
	 "seconds without an event after which koined sends subscribers a heartbeat"},
};

static const struct hld_settings defaults = {.heartbeat_ms = 30000};

static const struct dialect_section section = {
	SECTION(rows, defaults),
	.renewed = true,
};

static const struct dialect_life life = {.session_wording = &hld_session_wording};

const struct dialect hld_dialect = {
	.name = "hld",
	.framing = SPEAKS_LINE,
	.message_max = HLD_MESSAGE_MAX,
	.rules = {.flags = JSONRPC_NO_BATCH | JSONRPC_ANY_ID | JSONRPC_PARAMS_ANY |
			   JSONRPC_ANY_CASE | JSONRPC_HTML_SAFE,
		  .explain = hld_explain_envelope},
	.errors = errors,
	.plain_errors = true,
	.decode = hld_decode,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.home = {.socket = "hld.sock",
		 .variable = "HUMANLAYER_SOCKET_PATH",
		 .old_variable = "HUMANLAYER_DAEMON_SOCKET",
		 .path = "~/.humanlayer/daemon.sock",
		 .told_by = "HUMANLAYER_DAEMON_SOCKET",
		 .told_sessions = true},
	.section = &section,
	.life = &life,
};
