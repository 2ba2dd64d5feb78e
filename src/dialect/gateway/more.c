#include "dialect/gateway/more.h"

static const struct field start_fields[] = {
	FIELD(STRING, gateway_process_in, command, "Command line, which /bin/sh runs",
	      .required = true),
	FIELD(STRING, gateway_process_in, workdir,
	      "Working directory, inside the gateway's folder"),
	FIELD(ANY, gateway_process_in, env,
	      "Environment variables: lines of NAME=VALUE, a list of NAME=VALUE, or an object"),
	FIELD(BOOL, gateway_process_in, pty, "Run the command in a pseudo-terminal"),
};

static const struct field id_fields[] = {
	FIELD_AS("sessionId", STRING, gateway_process_in, session_id, "Id of the process",
		 .required = true),
};

static const struct field log_fields[] = {
	FIELD_AS("sessionId", STRING, gateway_process_in, session_id, "Id of the process",
		 .required = true),
	FIELD(INT, gateway_process_in, offset, "Offset of the first byte to return"),
	FIELD(INT, gateway_process_in, limit, "Maximum number of bytes; 0 means all stored output"),
};

static const struct field write_fields[] = {
	FIELD_AS("sessionId", STRING, gateway_process_in, session_id, "Id of the process",
		 .required = true),
	FIELD(STRING, gateway_process_in, data, "Input for the process", .default_text = ""),
	FIELD(BOOL, gateway_process_in, eof, "Close the input of the process after writing"),
};

#define KILL                                                                                       \
	ROUTE_ROW("process.kill", FIELDS(id_fields, gateway_process_in),                           \
		  .handle = gateway_process_kill, .flags = METHOD_LATER)

static const struct http_route rows[] = {
	{"POST", "/process/start",
	 ROUTE_ROW("process.start", FIELDS(start_fields, gateway_process_in),
		   .handle = gateway_process_start, .flags = METHOD_LATER),
	 .flags = ROUTE_WATCH},
	{"GET", "/process/list", ROUTE_ROW("process.list", .handle = gateway_process_list)},
	{"GET", "/process/log",
	 ROUTE_ROW("process.log", FIELDS(log_fields, gateway_process_in),
		   .handle = gateway_process_log)},
	{"POST", "/process/write",
	 ROUTE_ROW("process.write", FIELDS(write_fields, gateway_process_in),
		   .handle = gateway_process_write, .flags = METHOD_LATER),
	 .flags = ROUTE_WATCH},
	/* The original takes any method. */
	{"POST", "/process/kill", KILL},
	{"GET", "/process/kill", KILL},
	{"GET", "/ws/chat", ROUTE_ROW("ws.chat"), .flags = ROUTE_UPGRADE | ROUTE_TOKEN_QUERY,
	 .upgrade = gateway_ws},
};

const struct http_route_table gateway_more_routes = {
	.rows = rows,
	.n = sizeof(rows) / sizeof(rows[0]),
};
