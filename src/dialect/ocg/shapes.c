/* The types of the original's rpcproto, as Go sends them. */
#include "dialect/ocg/ocg.h"

#define SHAPE_FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

/* A type of the package rpcproto. */
#define STRUCT(type, list)                                                                         \
	{                                                                                          \
		.kind = GOB_STRUCT, .name = type, .go = "rpcproto." type, SHAPE_FIELDS(list)       \
	}
#define SLICE(type, of)                                                                            \
	{                                                                                          \
		.kind = GOB_SLICE, .name = "[]rpcproto." type, .elem = &(of)                       \
	}

/* ---- a call of a tool ---- */

static const struct gob_shape_field function_fields[] = {
	{"Name", &gob_shape_string},
	{"Arguments", &gob_shape_string},
};
/* An anonymous struct is sent under its source text. */
static const struct gob_shape function = {
	.kind = GOB_STRUCT,
	.name = "struct { Name string \"json:\\\"name\\\"\"; Arguments string "
		"\"json:\\\"arguments\\\"\" }",
	SHAPE_FIELDS(function_fields)};
static const struct gob_shape_field tool_call_fields[] = {
	{"ID", &gob_shape_string},
	{"Type", &gob_shape_string},
	{"Function", &function},
};
static const struct gob_shape tool_call = STRUCT("ToolCall", tool_call_fields);
static const struct gob_shape tool_calls = SLICE("ToolCall", tool_call);

/* ---- a message ---- */

static const struct gob_shape_field tool_result_fields[] = {
	{"ID", &gob_shape_string},
	{"Type", &gob_shape_string},
	{"Result", &gob_shape_interface},
};
static const struct gob_shape tool_result = STRUCT("ToolResult", tool_result_fields);
static const struct gob_shape tool_results = SLICE("ToolResult", tool_result);
static const struct gob_shape_field message_fields[] = {
	{"Role", &gob_shape_string},
	{"Content", &gob_shape_string},
	{"ToolCalls", &tool_calls},
	{"ToolExecutionResults", &tool_results},
};
static const struct gob_shape message = STRUCT("Message", message_fields);
static const struct gob_shape messages = SLICE("Message", message);

/* ---- a tool ---- */

static const struct gob_shape_field tool_function_fields[] = {
	{"Name", &gob_shape_string},
	{"Description", &gob_shape_string},
	{"Parameters", &gob_shape_any_map},
};
static const struct gob_shape tool_function = STRUCT("ToolFunction", tool_function_fields);
static const struct gob_shape_field tool_fields[] = {
	{"Type", &gob_shape_string},
	{"Function", &tool_function},
};
static const struct gob_shape tool = STRUCT("Tool", tool_fields);
static const struct gob_shape tools = SLICE("Tool", tool);

/* ---- parameters and results of the methods ---- */

static const struct gob_shape_field chat_args_fields[] = {
	{"Messages", &messages},
	{"Tools", &tools},
};
const struct gob_shape ocg_chat_args = STRUCT("ChatArgs", chat_args_fields);
static const struct gob_shape_field chat_reply_fields[] = {
	{"Content", &gob_shape_string},
	{"Tools", &tool_calls},
};
const struct gob_shape ocg_chat_reply = STRUCT("ChatReply", chat_reply_fields);

static const struct gob_shape counts = {.kind = GOB_MAP,
					.name = "map[string]int",
					.key = &gob_shape_string,
					.elem = &gob_shape_int};
static const struct gob_shape_field stats_reply_fields[] = {{"Stats", &counts}};
const struct gob_shape ocg_stats_reply = STRUCT("StatsReply", stats_reply_fields);

static const struct gob_shape_field search_fields[] = {
	{"Query", &gob_shape_string},
	{"Category", &gob_shape_string},
	{"Limit", &gob_shape_int},
	{"MinScore", &gob_shape_float64},
};
const struct gob_shape ocg_search_args = STRUCT("MemorySearchArgs", search_fields);
static const struct gob_shape_field get_fields[] = {{"Path", &gob_shape_string}};
const struct gob_shape ocg_get_args = STRUCT("MemoryGetArgs", get_fields);
static const struct gob_shape_field store_fields[] = {
	{"Text", &gob_shape_string},
	{"Category", &gob_shape_string},
	{"Importance", &gob_shape_float64},
};
const struct gob_shape ocg_store_args = STRUCT("MemoryStoreArgs", store_fields);
static const struct gob_shape_field result_fields[] = {{"Result", &gob_shape_string}};
const struct gob_shape ocg_result_reply = STRUCT("ToolResultReply", result_fields);

static const struct gob_shape_field pulse_fields[] = {
	{"Action", &gob_shape_string},  {"Title", &gob_shape_string},
	{"Content", &gob_shape_string}, {"Priority", &gob_shape_int},
	{"Channel", &gob_shape_string}, {"Limit", &gob_shape_int},
};
const struct gob_shape ocg_pulse_args = STRUCT("PulseArgs", pulse_fields);
static const struct gob_shape_field pulse_reply_fields[] = {
	{"Result", &gob_shape_string},
	{"EventID", &gob_shape_int64},
	{"Status", &gob_shape_string},
};
const struct gob_shape ocg_pulse_reply = STRUCT("PulseReply", pulse_reply_fields);
