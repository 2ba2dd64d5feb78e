/* The portrait of hld. */
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
	[REFUSE_LIMIT] = {-32603, "Limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32600, "Message too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32603, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32603, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32603, "Timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32603, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32603, "Cancelled", WORDS_TEXT, 0},
};

#define TEXT_FIELD(in, member, about)                                                              \
	{                                                                                          \
		.name = #member, .type = FIELD_STRING, .doc = (about),                             \
		.offset = offsetof(in, member)                                                     \
	}
#define NEEDED(in, member, about)                                                                  \
	{                                                                                          \
		.name = #member, .type = FIELD_STRING, .required = true, .doc = (about),           \
		.offset = offsetof(in, member)                                                     \
	}
#define RUN(member, about) TEXT_FIELD(struct hld_run_in, member, about)

/* Chooses which programs run, or what they may do unasked. */
#define CHOICE(member, about)                                                                      \
	{                                                                                          \
		.name = #member, .type = FIELD_STRING, .for_humans = HUMANS, .doc = (about),       \
		.offset = offsetof(struct hld_run_in, member)                                      \
	}
#define CHOICES(member, about)                                                                     \
	{                                                                                          \
		.name = #member, .type = FIELD_ARRAY, .for_humans = HUMANS, .doc = (about),        \
		.offset = offsetof(struct hld_run_in, member)                                      \
	}

#define TOOLS(member, about)                                                                       \
	{                                                                                          \
		.name = #member, .type = FIELD_ARRAY, .doc = (about),                              \
		.offset = offsetof(struct hld_run_in, member)                                      \
	}

#define TURNS                                                                                      \
	{                                                                                          \
		.name = "max_turns", .type = FIELD_INT, .doc = "Maximum number of turns",          \
		.offset = offsetof(struct hld_run_in, max_turns)                                   \
	}

#define FLAG(in, member, about)                                                                    \
	{                                                                                          \
		.name = #member, .type = FIELD_BOOL, .doc = (about),                               \
		.offset = offsetof(in, member)                                                     \
	}

static const struct field launch_fields[] = {
	NEEDED(struct hld_run_in, query, "Prompt for the agent"),
	RUN(model, "Model: opus or sonnet; any other value selects the agent's default"),
	{.name = "mcp_config",
	 .type = FIELD_OBJECT,
	 .for_humans = HUMANS,
	 .doc = "MCP servers: {\"mcpServers\": {NAME: {\"command\", \"args\", \"env\"}}}",
	 .offset = offsetof(struct hld_run_in, mcp_config)},
	CHOICE(permission_prompt_tool, "MCP tool that decides permissions"),
	CHOICE(working_dir, "Working folder; default: the daemon's working folder"),
	TURNS,
	RUN(system_prompt, "Replace the agent's system prompt"),
	RUN(append_system_prompt, "Append to the agent's system prompt"),
	CHOICES(allowed_tools, "Tools to allow without approval"),
	TOOLS(disallowed_tools, "Tools to forbid"),
	CHOICES(additional_directories,
		"Folders that the agent can use in addition to working_dir"),
	RUN(custom_instructions, "Instructions to append after append_system_prompt"),
	RUN(title, "Title of the session"),
	FLAG(struct hld_run_in, verbose, "Ignored; output is always verbose"),
	FLAG(struct hld_run_in, dangerously_skip_permissions, "Not supported; must not be true"),
	{.name = "dangerously_skip_permissions_timeout",
	 .type = FIELD_INT,
	 .doc = "Not supported; must be 0 or omitted",
	 .offset = offsetof(struct hld_run_in, dangerously_skip_permissions_timeout)},
};

static const struct field continue_fields[] = {
	NEEDED(struct hld_run_in, session_id, "Id of the session to continue"),
	NEEDED(struct hld_run_in, query, "Prompt for the agent"),
	RUN(system_prompt, "Replace the agent's system prompt"),
	RUN(append_system_prompt, "Append to the agent's system prompt"),
	{.name = "mcp_config",
	 .type = FIELD_STRING,
	 .for_humans = HUMANS,
	 .doc = "MCP servers, as JSON text",
	 .offset = offsetof(struct hld_run_in, mcp_config_text)},
	CHOICE(permission_prompt_tool, "MCP tool that decides permissions"),
	CHOICES(allowed_tools, "Tools to allow without approval"),
	TOOLS(disallowed_tools, "Tools to forbid"),
	CHOICES(additional_directories,
		"Folders that the agent can use in addition to working_dir"),
	RUN(custom_instructions, "Instructions to append after append_system_prompt"),
	RUN(title, "Title of the new session"),
	TURNS,
};

static const struct field session_fields[] = {
	NEEDED(struct hld_session_in, session_id, "Id of the session"),
};

static const struct field conversation_fields[] = {
	TEXT_FIELD(struct hld_session_in, session_id,
		   "Id of the session; the result includes the sessions that it continues"),
	TEXT_FIELD(struct hld_session_in, claude_session_id,
		   "Session id assigned by the agent; an alternative to session_id"),
};

static const struct field archive_fields[] = {
	NEEDED(struct hld_session_in, session_id, "Id of the session"),
	FLAG(struct hld_session_in, archived, "true archives the session, false unarchives it"),
};

static const struct field title_fields[] = {
	NEEDED(struct hld_session_in, session_id, "Id of the session"),
	TEXT_FIELD(struct hld_session_in, title, "New title; an empty string removes the title"),
};

static const struct field leaves_fields[] = {
	TEXT_FIELD(struct hld_leaves_in, filter,
		   "Sessions to list: normal, archived or draft; overrides the other filters"),
	FLAG(struct hld_leaves_in, include_archived, "Include archived sessions"),
	FLAG(struct hld_leaves_in, archived_only, "Only archived sessions"),
};

static const struct field paths_fields[] = {
	{.name = "limit",
	 .type = FIELD_INT,
	 .default_number = 20,
	 .doc = "Maximum number of folders",
	 .offset = offsetof(struct hld_paths_in, limit)},
};

#define APPROVAL(member, about) TEXT_FIELD(struct hld_approval_in, member, about)

static const struct field fetch_fields[] = {
	APPROVAL(session_id, "Only approvals of this session"),
};

static const struct field decision_fields[] = {
	NEEDED(struct hld_approval_in, decision,
	       "Decision: approve or deny; for a human_contact: respond"),
	APPROVAL(call_id, "Id of the approval, from older clients; requires type"),
	APPROVAL(approval_id, "Id of the approval, from newer clients"),
	APPROVAL(type,
		 "Type of the approval: function_call or human_contact; required with call_id"),
	APPROVAL(comment, "Reason or answer; required to deny and to respond"),
};

static const struct field create_fields[] = {
	NEEDED(struct hld_approval_in, run_id, "Run id or session id of the requesting session"),
	NEEDED(struct hld_approval_in, tool_name, "Tool to call"),
	{.name = "tool_input",
	 .type = FIELD_ANY,
	 .required = true,
	 .doc = "Input of the tool",
	 .offset = offsetof(struct hld_approval_in, tool_input)},
	APPROVAL(tool_use_id, "Tool call id assigned by the agent"),
};

static const struct field approval_fields[] = {
	NEEDED(struct hld_approval_in, approval_id, "Id of the approval"),
};

static const struct field subscribe_fields[] = {
	{.name = "event_types",
	 .type = FIELD_ARRAY,
	 .doc = "Event types: session_status_changed, conversation_updated, new_approval, "
		"approval_resolved",
	 .offset = offsetof(struct hld_subscribe_in, event_types)},
	TEXT_FIELD(struct hld_subscribe_in, session_id, "Only events of this session"),
	TEXT_FIELD(struct hld_subscribe_in, run_id, "Only events of this run"),
};

#define PROPERTIES(list) "{\"type\":\"object\",\"properties\":{" list "}}"
#define STRING(name)     "\"" name "\":{\"type\":\"string\"}"
#define LIST(name)       "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define SUCCESS          "\"success\":{\"type\":\"boolean\"}"

static const struct method methods[] = {
	{.name = "health",
	 .doc = "Return the daemon's health, and a version number that hld clients accept",
	 .result = PROPERTIES("\"status\":{\"const\":\"ok\"}," STRING("version")),
	 .handle = hld_health},
	{.name = "launchSession",
	 .doc = "Start a session",
	 .result = PROPERTIES(STRING("session_id") "," STRING("run_id")),
	 FIELDS(launch_fields),
	 .in_size = sizeof(struct hld_run_in),
	 .handle = hld_launch,
	 .flags = METHOD_LATER},
	{.name = "listSessions",
	 .doc = "List sessions, last active first",
	 .result = PROPERTIES(LIST("sessions")),
	 .handle = hld_list,
	 .where = READER},
	{.name = "getSessionLeaves",
	 .doc = "List sessions that no other session continues, last active first",
	 .result = PROPERTIES(LIST("sessions")),
	 FIELDS(leaves_fields),
	 .in_size = sizeof(struct hld_leaves_in),
	 .handle = hld_leaves,
	 .where = READER},
	{.name = "getConversation",
	 .doc = "List events of a session and the sessions it continues, oldest first",
	 .result = PROPERTIES(LIST("events")),
	 FIELDS(conversation_fields),
	 .in_size = sizeof(struct hld_session_in),
	 .handle = hld_conversation,
	 .where = READER},
	{.name = "getSessionState",
	 .doc = "Return the state of a session",
	 .result = PROPERTIES("\"session\":{\"type\":\"object\"}"),
	 FIELDS(session_fields),
	 .in_size = sizeof(struct hld_session_in),
	 .handle = hld_state,
	 .where = READER},
	{.name = "continueSession",
	 .doc = "Continue a session; a running session is interrupted first",
	 .result = PROPERTIES(STRING("session_id") "," STRING("run_id") "," STRING(
		 "claude_session_id") "," STRING("parent_session_id")),
	 FIELDS(continue_fields),
	 .in_size = sizeof(struct hld_run_in),
	 .handle = hld_continue,
	 .flags = METHOD_LATER},
	{.name = "interruptSession",
	 .doc = "Interrupt a running session",
	 .result = PROPERTIES(SUCCESS "," STRING("session_id") "," STRING("status")),
	 FIELDS(session_fields),
	 .in_size = sizeof(struct hld_session_in),
	 .handle = hld_interrupt,
	 .flags = METHOD_LATER},
	{.name = "archiveSession",
	 .doc = "Archive or unarchive a session",
	 .result = PROPERTIES(SUCCESS),
	 FIELDS(archive_fields),
	 .in_size = sizeof(struct hld_session_in),
	 .handle = hld_archive,
	 .where = WRITER},
	{.name = "updateSessionTitle",
	 .doc = "Set the title of a session",
	 .result = PROPERTIES(SUCCESS),
	 FIELDS(title_fields),
	 .in_size = sizeof(struct hld_session_in),
	 .handle = hld_title,
	 .where = WRITER},
	{.name = "getRecentPaths",
	 .doc = "List working folders, last used first",
	 .result = PROPERTIES(LIST("paths")),
	 FIELDS(paths_fields),
	 .in_size = sizeof(struct hld_paths_in),
	 .handle = hld_paths,
	 .where = READER},
	{.name = "fetchApprovals",
	 .doc = "List pending approvals, oldest first",
	 .result = PROPERTIES(LIST("approvals")),
	 FIELDS(fetch_fields),
	 .in_size = sizeof(struct hld_approval_in),
	 .handle = hld_fetch_approvals,
	 .where = READER},
	{.name = "sendDecision",
	 .doc = "Decide an approval; the first decision wins",
	 .result = PROPERTIES(SUCCESS "," STRING("error")),
	 FIELDS(decision_fields),
	 .in_size = sizeof(struct hld_approval_in),
	 .handle = hld_send_decision,
	 .flags = METHOD_LATER},
	{.name = "createApproval",
	 .doc = "Request permission to call a tool; respond without waiting for the decision",
	 .result = PROPERTIES(STRING("approval_id")),
	 FIELDS(create_fields),
	 .in_size = sizeof(struct hld_approval_in),
	 .handle = hld_create_approval,
	 .flags = METHOD_LATER},
	{.name = "getApproval",
	 .doc = "Return one approval",
	 .result = PROPERTIES("\"approval\":{\"type\":\"object\"}"),
	 FIELDS(approval_fields),
	 .in_size = sizeof(struct hld_approval_in),
	 .handle = hld_get_approval,
	 .where = READER},
	{.name = "Subscribe",
	 .doc = "Subscribe to events on this connection, which then accepts no other calls",
	 .result = PROPERTIES(STRING("subscription_id") "," STRING("message")),
	 FIELDS(subscribe_fields),
	 .in_size = sizeof(struct hld_subscribe_in),
	 .handle = hld_subscribe},
};

static const struct setting rows[] = {
	{"hld", "heartbeat", SET_SECONDS, offsetof(struct hld_settings, heartbeat_ms), 1, 86400,
	 "seconds without events until koined sends subscribers a heartbeat"},
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
