/* The schema of nexus. */
#include <string.h>
#include <strings.h>

#include "dialect/life.h"
#include "dialect/nexus/nexus.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Invalid JSON", WORDS_BOTH, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_TEXT, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_BOTH, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_TEXT, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {-32602, "Agent not found", WORDS_TEXT, 404},
	[REFUSE_CONFLICT] = {-32602, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32000, "Resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32000, "Message too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32000, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32000, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32000, "Call timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32000, "Server shutting down", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32000, "Cancelled", WORDS_TEXT, 0},
};

#define AGENT_ID(in)                                                                               \
	FIELD(STRING, in, agent_id,                                                                \
	      "Id of the conversation; over HTTP, the path can contain the id instead")

static const struct field send_fields[] = {
	FIELD(STRING, nexus_in, content, "Message to the agent", .required = true),
	FIELD(ANY, nexus_in, request_id,
	      "Id for `cancel`, a string or an integer; default: generated"),
	AGENT_ID(nexus_in),
};

static const struct field cancel_fields[] = {
	FIELD(ANY, nexus_in, request_id, "request_id of the send call", .required = true),
	AGENT_ID(nexus_in),
};

static const struct field place_fields[] = {AGENT_ID(nexus_in)};

static const struct field agents_fields[] = {
	FIELD(INT, nexus_in, offset,
	      "Number of conversations to skip, beginning with the most recently changed"),
	FIELD(INT, nexus_in, limit, "Maximum number of conversations, 1 to 2000",
	      .default_number = CHAT_PAGE_MAX),
};

static const struct field messages_fields[] = {
	FIELD(INT, nexus_in, offset,
	      "Number of messages to skip, beginning with the oldest message"),
	FIELD(INT, nexus_in, limit, "Maximum number of messages, 1 to 2000", .default_number = 200),
	AGENT_ID(nexus_in),
};

static const struct field compact_fields[] = {
	FIELD(BOOL, nexus_in, force, "Ignored", .default_number = 1),
	AGENT_ID(nexus_in),
};

static const struct field create_fields[] = {
	FIELD(STRING, nexus_in, agent_id, "Id of the conversation; default: generated"),
	FIELD(STRING, nexus_in, system_prompt,
	      "System prompt; default: the configured system prompt"),
	FIELD(STRING, nexus_in, model, "Name of an agent in koine.conf; default: the default agent",
	      .for_humans = HUMANS_IF_PROGRAM),
	FIELD(STRING, nexus_in, preset,
	      "Permissions: trusted, or sandboxed (programs may write only inside cwd)"),
	FIELD(STRING, nexus_in, cwd, "Working directory of the conversation's programs",
	      .for_humans = HUMANS),
	FIELD(STRING, nexus_in, parent_agent_id,
	      "Id of the parent conversation, which limits the permissions of the new "
	      "conversation"),
	FIELD(ARRAY, nexus_in, disable_tools, "Tools to disable"),
	FIELD(ARRAY, nexus_in, allowed_write_paths,
	      "Folders that the conversation's programs may write to", .for_humans = HUMANS),
	FIELD(STRING, nexus_in, initial_message, "First message to the agent"),
	FIELD(BOOL, nexus_in, wait_for_initial_response,
	      "Wait for the response to the first message"),
};

static const struct field destroy_fields[] = {
	FIELD(STRING, nexus_in, agent_id, "Id of the conversation", .required = true),
};

static const struct method methods[] = {
	{"send", "Send a message to the agent and return its complete response",
	 "{content:string request_id:any cancelled:true}", FIELDS(send_fields, nexus_in),
	 .handle = nexus_send, .flags = METHOD_LATER},
	{"cancel", "Cancel a send call in progress, and keep the text generated so far",
	 "{cancelled:boolean request_id:any reason:string}", FIELDS(cancel_fields, nexus_in),
	 .handle = nexus_cancel, .flags = METHOD_LATER | METHOD_OVERTAKES},
	{"get_tokens", "Return the token count and budget of the conversation", "object",
	 FIELDS(place_fields, nexus_in), .handle = nexus_get_tokens, .flags = METHOD_LATER},
	{"get_context",
	 "Return the number of messages, and whether the conversation has a system prompt",
	 "object", FIELDS(place_fields, nexus_in), .handle = nexus_get_context,
	 .flags = METHOD_LATER},
	{"get_messages", "List messages of the conversation, oldest first", "object",
	 FIELDS(messages_fields, nexus_in), .handle = nexus_get_messages, .where = READER},
	{"compact", "Replace older turns with a summary", "object",
	 FIELDS(compact_fields, nexus_in), .handle = nexus_compact, .flags = METHOD_LATER},
	{"create_agent", "Create a conversation", "object", FIELDS(create_fields, nexus_in),
	 .handle = nexus_create_agent, .flags = METHOD_LATER},
	{"list_agents", "List conversations, most recently changed first", "object",
	 FIELDS(agents_fields, nexus_in), .handle = nexus_list_agents, .where = READER},
	{"destroy_agent", "End a conversation", "object", FIELDS(destroy_fields, nexus_in),
	 .handle = nexus_destroy_agent, .flags = METHOD_LATER},
	{"shutdown",
	 "Stop the server; on the path /agent/ID, only set the agent's should_shutdown flag",
	 "object", .handle = nexus_shutdown, .flags = METHOD_LATER},
	{"shutdown_server", "Stop the server", "object", .handle = nexus_shutdown_server},
};

static const char *const paths[] = {"/", "/rpc", "/agent/*", NULL};

/* ---- in a daemon ---- */

static const char *const shutdown_words[] = {"daemon", "listener", "off", NULL};

static const struct setting rows[] = {
	{"nexus", "token_file", SET_PATH, SETTING_TEXT(struct nexus_settings, token_file),
	 "file (mode 0600) with the token that calls must send; empty means koine.token_file"},
	{"nexus", "shutdown", SET_WORD, offsetof(struct nexus_settings, shutdown), 0, 0,
	 "effect of the shutdown method: daemon (stop koined), listener (close the listener) or "
	 "off (reject the call)",
	 .words = shutdown_words},
};

static const struct nexus_settings defaults;

static const struct dialect_section section = {SECTION(rows, defaults)};

/* Refuses in the words that the original's users know. */
static int check_address(const char *address, struct error *error)
{
	static const char *const hosts[] = {"127.0.0.1:", "localhost:", "[::1]:", "::1:"};
	const char *host = strchr(address, ':');
	const char *port = strrchr(address, ':');

	if (!host || port == host || strncmp(address, "unix:", 5) == 0)
		return 0;
	host++;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		if (strncasecmp(host, hosts[i], strlen(hosts[i])) == 0)
			return 0;
	}
	return refuse(error, REFUSE_FORBIDDEN,
		      "Security: HTTP server must bind to localhost only, not '%.*s'",
		      (int)(port - host), host);
}

static const struct dialect_token token = {.file = offsetof(struct nexus_settings, token_file)};
static const struct dialect_life life = {.check_address = check_address, .token = &token};

const struct dialect nexus_dialect = {
	.name = "nexus",
	.framing = SPEAKS_HTTP,
	.message_max = 1 << 20,
	.rules = {.flags = JSONRPC_ID_SECOND | JSONRPC_NO_BATCH | JSONRPC_NO_POSITIONAL |
			   JSONRPC_NULL_ID_SILENT | JSONRPC_FAULT_NULL_ID,
		  .explain = nexus_explain_envelope},
	.errors = errors,
	.plain_errors = true,
	.explain_field = nexus_explain_field,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.http_paths = paths,
	.http_silent_status = 200,
	.http_timeout_status = 400,
	.http_error = nexus_http_error,
	.home = {.address = "http:127.0.0.1:8765"},
	.section = &section,
	.life = &life,
};
