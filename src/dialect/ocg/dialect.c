/* The portrait of ocg. */
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
	[REFUSE_LIMIT] = {-32603, "limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32603, "too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32603, "not initialized", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32603, "forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32603, "timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32603, "stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32603, "cancelled", WORDS_TEXT, 0},
};

static const struct field chat_fields[] = {
	{.name = "Messages",
	 .type = FIELD_ARRAY,
	 .doc = "The conversation: {Role, Content, ToolCalls, ToolExecutionResults}",
	 .offset = offsetof(struct ocg_chat_in, messages)},
	{.name = "Tools",
	 .type = FIELD_ARRAY,
	 .doc = "Tools the agent may call: {Type, Function{Name, Description, Parameters}}",
	 .offset = offsetof(struct ocg_chat_in, tools)},
};

static const struct field search_fields[] = {
	{.name = "Query",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Search query; a full question works best",
	 .offset = offsetof(struct ocg_search_in, query)},
	{.name = "Category",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Category to search: preference, decision, fact, entity or other; default: all",
	 .offset = offsetof(struct ocg_search_in, category)},
	{.name = "Limit",
	 .type = FIELD_INT,
	 .doc = "Maximum number of memories; 0 or less means 5",
	 .offset = offsetof(struct ocg_search_in, limit)},
	{.name = "MinScore",
	 .type = FIELD_NUMBER,
	 .doc = "Minimum similarity; 0 or less means 0.7; ignored without an embedding model",
	 .offset = offsetof(struct ocg_search_in, min_score)},
};

static const struct field get_fields[] = {
	{.name = "Path",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Id of the memory, or a unique prefix",
	 .offset = offsetof(struct ocg_get_in, path)},
};

static const struct field store_fields[] = {
	{.name = "Text",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Content of the memory",
	 .offset = offsetof(struct ocg_store_in, text)},
	{.name = "Category",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Category: preference, decision, fact, entity or other",
	 .offset = offsetof(struct ocg_store_in, category)},
	{.name = "Importance",
	 .type = FIELD_NUMBER,
	 .doc = "Importance, up to 1; 0 or less means 0.7",
	 .offset = offsetof(struct ocg_store_in, importance)},
};

static const struct field pulse_fields[] = {
	{.name = "Action",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Prompt of the task",
	 .offset = offsetof(struct ocg_pulse_in, action)},
	{.name = "Title",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Title of the task",
	 .offset = offsetof(struct ocg_pulse_in, title)},
	{.name = "Content",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Content of the task",
	 .offset = offsetof(struct ocg_pulse_in, content)},
	{.name = "Priority",
	 .type = FIELD_INT,
	 .doc = "Priority, 0 to 3; any other value means 2",
	 .offset = offsetof(struct ocg_pulse_in, priority)},
	{.name = "Channel",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Channel for the message",
	 .offset = offsetof(struct ocg_pulse_in, channel)},
	{.name = "Limit",
	 .type = FIELD_INT,
	 .doc = "Ignored",
	 .offset = offsetof(struct ocg_pulse_in, limit)},
};

#define STATS                                                                                      \
	"{\"type\":\"object\",\"properties\":{\"Stats\":{\"type\":\"object\",\"properties\":{"     \
	"\"sessions\":{\"type\":\"integer\"},\"messages\":{\"type\":\"integer\"},"                 \
	"\"tools_calls\":{\"type\":\"integer\"},\"memories\":{\"type\":\"integer\"},"              \
	"\"files\":{\"type\":\"integer\"}}}}}"
#define RESULT "{\"type\":\"object\",\"properties\":{\"Result\":{\"type\":\"string\"}}}"
#define PULSE                                                                                      \
	"{\"type\":\"object\",\"properties\":{\"Result\":{\"type\":\"string\"},"                   \
	"\"EventID\":{\"type\":\"integer\"},\"Status\":{\"type\":\"string\"}}}"
#define CHAT                                                                                       \
	"{\"type\":\"object\",\"properties\":{\"Content\":{\"type\":\"string\"},"                  \
	"\"Tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"

/* All methods, for a service of that name. */
#define SERVICE(service)                                                                           \
	{.name = service ".Chat",                                                                  \
	 .doc = "Send a conversation to the agent; return its response or tool calls",             \
	 .result = CHAT,                                                                           \
	 FIELDS(chat_fields),                                                                      \
	 .in_size = sizeof(struct ocg_chat_in),                                                    \
	 .handle = ocg_chat,                                                                       \
	 .flags = METHOD_LATER,                                                                    \
	 .gob_args = &ocg_chat_args,                                                               \
	 .gob_reply = &ocg_chat_reply},                                                            \
		{.name = service ".Stats",                                                         \
		 .doc = "Count stored memories",                                                   \
		 .result = STATS,                                                                  \
		 .handle = ocg_stats,                                                              \
		 .flags = METHOD_LATER,                                                            \
		 .gob_args = &gob_shape_empty_struct,                                              \
		 .gob_reply = &ocg_stats_reply},                                                   \
		{.name = service ".MemorySearch",                                                  \
		 .doc = "Search memories, best match first; return JSON text",                     \
		 .result = RESULT,                                                                 \
		 FIELDS(search_fields),                                                            \
		 .in_size = sizeof(struct ocg_search_in),                                          \
		 .handle = ocg_search,                                                             \
		 .before = ocg_before_search,                                                      \
		 .where = READER,                                                                  \
		 .gob_args = &ocg_search_args,                                                     \
		 .gob_reply = &ocg_result_reply},                                                  \
		{.name = service ".MemoryGet",                                                     \
		 .doc = "Return one memory as JSON text",                                          \
		 .result = RESULT,                                                                 \
		 FIELDS(get_fields),                                                               \
		 .in_size = sizeof(struct ocg_get_in),                                             \
		 .handle = ocg_get,                                                                \
		 .where = READER,                                                                  \
		 .gob_args = &ocg_get_args,                                                        \
		 .gob_reply = &ocg_result_reply},                                                  \
		{.name = service ".MemoryStore",                                                   \
		 .doc = "Add a memory; return JSON text",                                          \
		 .result = RESULT,                                                                 \
		 FIELDS(store_fields),                                                             \
		 .in_size = sizeof(struct ocg_store_in),                                           \
		 .handle = ocg_store,                                                              \
		 .flags = METHOD_LATER,                                                            \
		 .gob_args = &ocg_store_args,                                                      \
		 .gob_reply = &ocg_result_reply},                                                  \
		{.name = service ".PulseAdd",                                                      \
		 .doc = "Publish the event pulse.added",                                           \
		 .result = PULSE,                                                                  \
		 FIELDS(pulse_fields),                                                             \
		 .in_size = sizeof(struct ocg_pulse_in),                                           \
		 .handle = ocg_pulse_add,                                                          \
		 .where = WRITER,                                                                  \
		 .gob_args = &ocg_pulse_args,                                                      \
		 .gob_reply = &ocg_pulse_reply},                                                   \
	{                                                                                          \
		.name = service ".PulseStatus",                                                    \
		.doc = "Return the state of the event log as JSON text", .result = PULSE,          \
		FIELDS(pulse_fields), .in_size = sizeof(struct ocg_pulse_in),                      \
		.handle = ocg_pulse_status, .where = READER, .gob_args = &ocg_pulse_args,          \
		.gob_reply = &ocg_pulse_reply                                                      \
	}

static const struct method methods[] = {SERVICE("RPCService"), SERVICE("Agent")};

static const struct setting rows[] = {
	{"ocg", "user", SET_TEXT, SETTING_TEXT(struct ocg_settings, user),
	 "user whose memories clients store and search; empty for common memories"},
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
