#include "dialect/gateway/more.h"

static const struct field start_fields[] = {
	{.name = "command",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Command line, run by /bin/sh",
	 .offset = offsetof(struct gateway_process_start_in, command)},
	{.name = "workdir",
	 .type = FIELD_STRING,
	 .doc = "Working folder, inside the gateway's folder",
	 .offset = offsetof(struct gateway_process_start_in, workdir)},
	{.name = "env",
	 .type = FIELD_ANY,
	 .doc = "Environment variables: lines of NAME=VALUE, a list of NAME=VALUE, or an object",
	 .offset = offsetof(struct gateway_process_start_in, env)},
	{.name = "pty",
	 .type = FIELD_BOOL,
	 .doc = "Run the command in a terminal",
	 .offset = offsetof(struct gateway_process_start_in, pty)},
};

static const struct field id_fields[] = {
	{.name = "sessionId",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Id of the process",
	 .offset = offsetof(struct gateway_process_id_in, session_id)},
};

static const struct field log_fields[] = {
	{.name = "sessionId",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Id of the process",
	 .offset = offsetof(struct gateway_process_log_in, session_id)},
	{.name = "offset",
	 .type = FIELD_INT,
	 .doc = "First byte of the output to return",
	 .offset = offsetof(struct gateway_process_log_in, offset)},
	{.name = "limit",
	 .type = FIELD_INT,
	 .doc = "Maximum number of bytes; 0 means all stored output",
	 .offset = offsetof(struct gateway_process_log_in, limit)},
};

static const struct field write_fields[] = {
	{.name = "sessionId",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Id of the process",
	 .offset = offsetof(struct gateway_process_write_in, session_id)},
	{.name = "data",
	 .type = FIELD_STRING,
	 .default_text = "",
	 .doc = "Input for the process",
	 .offset = offsetof(struct gateway_process_write_in, data)},
	{.name = "eof",
	 .type = FIELD_BOOL,
	 .doc = "Close the input of the process after writing",
	 .offset = offsetof(struct gateway_process_write_in, eof)},
};

#define KILL                                                                                       \
	{                                                                                          \
		.name = "process.kill", FIELDS(id_fields),                                         \
		.in_size = sizeof(struct gateway_process_id_in), .handle = gateway_process_kill,   \
		.flags = METHOD_LATER                                                              \
	}

static const struct http_route rows[] = {
	{"POST",
	 "/process/start",
	 {.name = "process.start",
	  FIELDS(start_fields),
	  .in_size = sizeof(struct gateway_process_start_in),
	  .handle = gateway_process_start,
	  .flags = METHOD_LATER},
	 .flags = ROUTE_WATCH},
	{"GET", "/process/list", {.name = "process.list", .handle = gateway_process_list}},
	{"GET",
	 "/process/log",
	 {.name = "process.log",
	  FIELDS(log_fields),
	  .in_size = sizeof(struct gateway_process_log_in),
	  .handle = gateway_process_log}},
	{"POST",
	 "/process/write",
	 {.name = "process.write",
	  FIELDS(write_fields),
	  .in_size = sizeof(struct gateway_process_write_in),
	  .handle = gateway_process_write,
	  .flags = METHOD_LATER},
	 .flags = ROUTE_WATCH},
	/* The original takes any method. */
	{"POST", "/process/kill", KILL},
	{"GET", "/process/kill", KILL},
	{"GET",
	 "/ws/chat",
	 {.name = "ws.chat"},
	 .flags = ROUTE_UPGRADE | ROUTE_TOKEN_QUERY,
	 .upgrade = gateway_ws},
};

const struct http_route_table gateway_more_routes = {
	.rows = rows,
	.n = sizeof(rows) / sizeof(rows[0]),
};
