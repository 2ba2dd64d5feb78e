/* The schema of ocg. */
#include "call/call.h"
#include "call/server.h"
#include "dialect/life.h"
#include "dialect/ocg/ocg.h"

/* Go's clients see only the message of an error; nobody reads the codes. */
static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_TEXT, 0},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_TEXT, 0},
	[REFUSE_METHOD] = {-32601, "rpc: can't find method", WORDS_TEXT, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_TEXT, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_TEXT, 0},
	[REFUSE_NOT_FOUND] = {-32603, "not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32603, "conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32603, "resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32603, "message too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32603, "not initialized", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32603, "forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32603, "call timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32603, "stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32603, "cancelled", WORDS_TEXT, 0},
};

static const struct field chat_fields[] = {
	FIELD_AS("Messages", ARRAY, ocg_chat_in, messages,
		 "The conversation: {Role, Content, ToolCalls, ToolExecutionResults}"),
	FIELD_AS("Tools", ARRAY, ocg_chat_in, tools,
		 "Tools that the agent may call: {Type, Function{Name, Description, Parameters}}"),
};

static const struct field search_fields[] = {
	FIELD_AS("Query", STRING, ocg_memory_in, query, "Search query; a full question works best",
		 .default_text = ""),
	FIELD_AS("Category", STRING, ocg_memory_in, category,
		 "Category to search: preference, decision, fact, entity or other; default: all",
		 .default_text = ""),
	FIELD_AS("Limit", INT, ocg_memory_in, limit,
		 "Maximum number of memories; 0 or less means 5"),
	FIELD_AS("MinScore", NUMBER, ocg_memory_in, min_score,
		 "Minimum similarity; 0 or less means 0.7, or no minimum without an embedding "
		 "model"),
};

static const struct field get_fields[] = {
	FIELD_AS("Path", STRING, ocg_memory_in, path,
		 "Id of the memory, or a unique prefix of the id", .default_text = ""),
};

static const struct field store_fields[] = {
	FIELD_AS("Text", STRING, ocg_memory_in, text, "Content of the memory", .default_text = ""),
	FIELD_AS("Category", STRING, ocg_memory_in, category,
		 "Category: preference, decision, fact, entity or other", .default_text = ""),
	FIELD_AS("Importance", NUMBER, ocg_memory_in, importance,
		 "Importance, up to 1; 0 or less means 0.7"),
};

static const struct field pulse_fields[] = {
	FIELD_AS("Action", STRING, ocg_pulse_in, action, "Action of the pulse", .default_text = ""),
	FIELD_AS("Title", STRING, ocg_pulse_in, title, "Title of the pulse", .default_text = ""),
	FIELD_AS("Content", STRING, ocg_pulse_in, content, "Content of the pulse",
		 .default_text = ""),
	FIELD_AS("Priority", INT, ocg_pulse_in, priority,
		 "Priority, 0 to 3; any other value means 2"),
	FIELD_AS("Channel", STRING, ocg_pulse_in, channel, "Channel of the pulse",
		 .default_text = ""),
	FIELD_AS("Limit", INT, ocg_pulse_in, limit, "Ignored"),
};

#define PULSE "{Result:string EventID:integer Status:string}"

/* Clients know the service by two names. */
#define METHOD(word, ...)                                                                          \
	{"RPCService." word, __VA_ARGS__},                                                         \
	{                                                                                          \
		"Agent." word, __VA_ARGS__                                                         \
	}

static const struct method methods[] = {
	METHOD("Chat", "Send a conversation to the agent; return its response or tool calls",
	       "{Content:string Tools:[object]}", FIELDS(chat_fields, ocg_chat_in),
	       .handle = ocg_chat, .flags = METHOD_LATER, .gob_args = &ocg_chat_args,
	       .gob_reply = &ocg_chat_reply),
	METHOD("Stats", "Count stored memories",
	       "{Stats:{sessions:integer messages:integer tools_calls:integer memories:integer "
	       "files:integer}}",
	       .handle = ocg_stats, .flags = METHOD_LATER, .gob_args = &gob_shape_empty_struct,
	       .gob_reply = &ocg_stats_reply),
	METHOD("MemorySearch", "Search memories, best match first; return JSON text",
	       "{Result:string}", FIELDS(search_fields, ocg_memory_in), .handle = ocg_search,
	       .before = ocg_before_search, .where = READER, .gob_args = &ocg_search_args,
	       .gob_reply = &ocg_result_reply),
	METHOD("MemoryGet", "Return one memory as JSON text", "{Result:string}",
	       FIELDS(get_fields, ocg_memory_in), .handle = ocg_get, .where = READER,
	       .gob_args = &ocg_get_args, .gob_reply = &ocg_result_reply),
	METHOD("MemoryStore", "Add a memory; return JSON text", "{Result:string}",
	       FIELDS(store_fields, ocg_memory_in), .handle = ocg_store, .flags = METHOD_LATER,
	       .gob_args = &ocg_store_args, .gob_reply = &ocg_result_reply),
	METHOD("PulseAdd", "Publish the event pulse.added", PULSE,
	       FIELDS(pulse_fields, ocg_pulse_in), .handle = ocg_pulse_add, .where = WRITER,
	       .gob_args = &ocg_pulse_args, .gob_reply = &ocg_pulse_reply),
	METHOD("PulseStatus", "Return the state of the event log as JSON text", PULSE,
	       FIELDS(pulse_fields, ocg_pulse_in), .handle = ocg_pulse_status, .where = READER,
	       .gob_args = &ocg_pulse_args, .gob_reply = &ocg_pulse_reply),
};

static const struct setting rows[] = {
	{"ocg", "user", SET_TEXT, SETTING_TEXT(struct ocg_settings, user),
	 "user who owns the memories that clients store and search; empty means that the memories "
	 "are common"},
};

static const struct ocg_settings defaults;

static const struct dialect_section section = {SECTION(rows, defaults)};

static const struct dialect_life life = {.numbered = OCG_CONVERSATION};

const struct dialect ocg_dialect = {
	.name = "ocg",
	.framing = SPEAKS_GOB,
	.message_max = 10 << 20,
	.concurrent = true,
	.errors = errors,
	.plain_errors = true,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.http_silent_status = 200,
	.home = {.socket = "ocg.sock",
		 .variable = "OPENCLAW_AGENT_SOCK",
		 .path = "/tmp/ocg-agent.sock"},
	.section = &section,
	.life = &life,
};

struct text ocg_user(const struct ocg_settings *s)
{
	return s && s->user[0] ? text_of(s->user) : (struct text) {0};
}

struct memory_asker ocg_asker(const struct call *c)
{
	const struct ocg_settings *settings =
		c->dialect == &ocg_dialect ? c->endpoint->settings : NULL;

	return (struct memory_asker) {.user = ocg_user(settings)};
}
