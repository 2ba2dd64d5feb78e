/* The types of a Go program, as it has declared them. */
#pragma once

#include "wire/gob/gob.h"

#define GOB_FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

static const struct gob_shape_field function_fields[] = {
	{"Name", &gob_shape_string},
	{"Arguments", &gob_shape_string},
};
/* A struct without a name travels under its source. */
#define FUNCTION_SOURCE                                                                            \
	"struct { Name string \"json:\\\"name\\\"\"; Arguments string \"json:\\\"arguments\\\"\" " \
	"}"
static const struct gob_shape function_shape = {
	.kind = GOB_STRUCT, .name = FUNCTION_SOURCE, GOB_FIELDS(function_fields)};
static const struct gob_shape_field tool_call_fields[] = {
	{"ID", &gob_shape_string},
	{"Type", &gob_shape_string},
	{"Function", &function_shape},
};
static const struct gob_shape tool_call = {.kind = GOB_STRUCT,
					   .name = "ToolCall",
					   .go = "rpcproto.ToolCall",
					   GOB_FIELDS(tool_call_fields)};
static const struct gob_shape tool_calls = {
	.kind = GOB_SLICE, .name = "[]rpcproto.ToolCall", .elem = &tool_call};
static const struct gob_shape_field chat_reply_fields[] = {
	{"Content", &gob_shape_string},
	{"Tools", &tool_calls},
};
static const struct gob_shape chat_reply = {.kind = GOB_STRUCT,
					    .name = "ChatReply",
					    .go = "rpcproto.ChatReply",
					    GOB_FIELDS(chat_reply_fields)};

static const struct gob_shape counts = {.kind = GOB_MAP,
					.name = "map[string]int",
					.key = &gob_shape_string,
					.elem = &gob_shape_int};
static const struct gob_shape_field stats_fields[] = {{"Stats", &counts}};
static const struct gob_shape stats_reply = {.kind = GOB_STRUCT,
					     .name = "StatsReply",
					     .go = "rpcproto.StatsReply",
					     GOB_FIELDS(stats_fields)};

static const struct gob_shape_field result_fields[] = {{"Result", &gob_shape_string}};
static const struct gob_shape result_reply = {.kind = GOB_STRUCT,
					      .name = "ToolResultReply",
					      .go = "rpcproto.ToolResultReply",
					      GOB_FIELDS(result_fields)};

static const struct gob_shape_field pulse_fields[] = {
	{"Result", &gob_shape_string},
	{"EventID", &gob_shape_int64},
	{"Status", &gob_shape_string},
};
static const struct gob_shape pulse_reply = {.kind = GOB_STRUCT,
					     .name = "PulseReply",
					     .go = "rpcproto.PulseReply",
					     GOB_FIELDS(pulse_fields)};

static const struct gob_shape_field search_fields[] = {
	{"Query", &gob_shape_string},
	{"Category", &gob_shape_string},
	{"Limit", &gob_shape_int},
	{"MinScore", &gob_shape_float64},
};
static const struct gob_shape search_args = {.kind = GOB_STRUCT,
					     .name = "MemorySearchArgs",
					     .go = "rpcproto.MemorySearchArgs",
					     GOB_FIELDS(search_fields)};

static const struct gob_shape_field get_fields[] = {{"Path", &gob_shape_string}};
static const struct gob_shape get_args = {.kind = GOB_STRUCT,
					  .name = "MemoryGetArgs",
					  .go = "rpcproto.MemoryGetArgs",
					  GOB_FIELDS(get_fields)};

static const struct gob_shape_field tool_result_fields[] = {
	{"ID", &gob_shape_string},
	{"Type", &gob_shape_string},
	{"Result", &gob_shape_interface},
};
static const struct gob_shape tool_result = {.kind = GOB_STRUCT,
					     .name = "ToolResult",
					     .go = "rpcproto.ToolResult",
					     GOB_FIELDS(tool_result_fields)};
static const struct gob_shape tool_results = {
	.kind = GOB_SLICE, .name = "[]rpcproto.ToolResult", .elem = &tool_result};
static const struct gob_shape_field message_fields[] = {
	{"Role", &gob_shape_string},
	{"Content", &gob_shape_string},
	{"ToolCalls", &tool_calls},
	{"ToolExecutionResults", &tool_results},
};
static const struct gob_shape message_shape = {.kind = GOB_STRUCT,
					       .name = "Message",
					       .go = "rpcproto.Message",
					       GOB_FIELDS(message_fields)};
static const struct gob_shape messages_shape = {
	.kind = GOB_SLICE, .name = "[]rpcproto.Message", .elem = &message_shape};
static const struct gob_shape parameters_shape = {.kind = GOB_MAP,
						  .name = "map[string]interface {}",
						  .key = &gob_shape_string,
						  .elem = &gob_shape_interface};
static const struct gob_shape_field tool_function_fields[] = {
	{"Name", &gob_shape_string},
	{"Description", &gob_shape_string},
	{"Parameters", &parameters_shape},
};
static const struct gob_shape tool_function = {.kind = GOB_STRUCT,
					       .name = "ToolFunction",
					       .go = "rpcproto.ToolFunction",
					       GOB_FIELDS(tool_function_fields)};
static const struct gob_shape_field tool_fields[] = {
	{"Type", &gob_shape_string},
	{"Function", &tool_function},
};
static const struct gob_shape tool_shape = {
	.kind = GOB_STRUCT, .name = "Tool", .go = "rpcproto.Tool", GOB_FIELDS(tool_fields)};
static const struct gob_shape tools_shape = {
	.kind = GOB_SLICE, .name = "[]rpcproto.Tool", .elem = &tool_shape};
static const struct gob_shape_field chat_args_fields[] = {
	{"Messages", &messages_shape},
	{"Tools", &tools_shape},
};
static const struct gob_shape chat_args = {.kind = GOB_STRUCT,
					   .name = "ChatArgs",
					   .go = "rpcproto.ChatArgs",
					   GOB_FIELDS(chat_args_fields)};
