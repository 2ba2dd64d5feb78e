/* The schema of the gateway. */
#include "call/http.h"
#include "dialect/daemon.h"
#include "dialect/gateway/gateway.h"
#include "dialect/gateway/more.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {0, "invalid JSON", WORDS_BOTH, 400},
	[REFUSE_INTERNAL] = {0, "internal error", WORDS_TEXT, 500},
	DIALECT_HTTP_ERRORS,
};

static const struct field search_fields[] = {
	FIELD(STRING, gateway_memory_in, query, NULL),
	FIELD(STRING, gateway_memory_in, category, NULL),
	FIELD(NUMBER, gateway_memory_in, limit, NULL),
	FIELD_AS("minScore", NUMBER, gateway_memory_in, min_score, NULL),
};

static const struct field get_fields[] = {
	FIELD(STRING, gateway_memory_in, path, NULL),
};

static const struct field store_fields[] = {
	FIELD(STRING, gateway_memory_in, text, NULL),
	FIELD(STRING, gateway_memory_in, category, NULL),
	FIELD(NUMBER, gateway_memory_in, importance, NULL),
};

static const struct field chat_fields[] = {
	FIELD(STRING, gateway_chat_in, model, NULL, .for_humans = HUMANS_IF_PROGRAM),
	FIELD(ARRAY, gateway_chat_in, messages, NULL, .required = true),
	FIELD(ARRAY, gateway_chat_in, tools, NULL),
	FIELD(ANY, gateway_chat_in, tool_choice, NULL),
	FIELD(ANY, gateway_chat_in, response_format, NULL),
	FIELD(BOOL, gateway_chat_in, stream, NULL),
	FIELD(OBJECT, gateway_chat_in, stream_options, NULL),
	FIELD(INT, gateway_chat_in, n, NULL, .default_number = 1),
};

static const struct field job_fields[] = {
	FIELD_AS("jobId", STRING, gateway_job_in, job_id, NULL),
	FIELD(STRING, gateway_job_in, id, NULL),
	FIELD(OBJECT, gateway_job_in, patch, NULL),
};

/* A method with parameters that answers later. */
#define TAKES_FOR(who, word, fields_, in, fn)                                                      \
	ROUTE_ROW(word, FIELDS(fields_, in), .handle = (fn), .flags = METHOD_LATER | (who))
#define TAKES(word, fields_, in, fn) TAKES_FOR(0, word, fields_, in, fn)

static const struct http_route routes[] = {
	{"GET", "/health", ROUTE_ROW("health", .handle = gateway_health)},
	{"GET", "/storage/stats",
	 ROUTE_ROW("storage/stats", .handle = gateway_stats, .flags = METHOD_LATER)},
	{"GET", "/v1/models", ROUTE_ROW("v1/models", .handle = gateway_models)},
	{"GET", "/v1/models/*", ROUTE_ROW("v1/models/*", .handle = gateway_model)},
	{"GET", "/memory/search",
	 TAKES("memory/search", search_fields, gateway_memory_in, gateway_memory_search),
	 ROUTE_WATCH},
	{"GET", "/memory/get",
	 TAKES("memory/get", get_fields, gateway_memory_in, gateway_memory_get), ROUTE_WATCH},
	{"POST", "/memory/store",
	 TAKES("memory/store", store_fields, gateway_memory_in, gateway_memory_store)},
	{"POST", "/v1/chat/completions",
	 TAKES("v1/chat/completions", chat_fields, gateway_chat_in, gateway_chat), ROUTE_WATCH},
	{"GET", "/cron/status", ROUTE_ROW("cron/status", .handle = gateway_cron_status)},
	{"GET", "/cron/list", ROUTE_ROW("cron/list", .handle = gateway_cron_list)},
	{"POST", "/cron/add",
	 ROUTE_ROW("cron/add", .handle = gateway_cron_add,
		   .flags = METHOD_LATER | METHOD_FOR_HUMANS)},
	{"POST", "/cron/update",
	 TAKES_FOR(METHOD_FOR_HUMANS, "cron/update", job_fields, gateway_job_in,
		   gateway_cron_update)},
	{"POST", "/cron/remove",
	 TAKES("cron/remove", job_fields, gateway_job_in, gateway_cron_remove)},
	{"POST", "/cron/run",
	 TAKES_FOR(METHOD_FOR_HUMANS, "cron/run", job_fields, gateway_job_in, gateway_cron_run)},
};

static const char *openai_type(int status)
{
	switch (status) {
	case 401:
		return "authentication_error";
	case 403:
		return "permission_error";
	case 429:
		return "rate_limit_error";
	case 504:
		return "timeout_error";
	default:
		return status < 500 ? "invalid_request_error" : "server_error";
	}
}

static const char *openai_code(const struct http_refusal *no)
{
	switch (no->status) {
	case 401:
		return "invalid_api_key";
	case 404:
		return no->route ? "model_not_found" : NULL;
	case 429:
		return "rate_limit_exceeded";
	case 504:
		return "timeout";
	default:
		return NULL;
	}
}

static void write_refusal(struct buf *body, const struct http_refusal *no)
{
	dialect_openai_refusal(body, no, openai_type(no->status), openai_code(no));
}

const struct dialect gateway_dialect = {
	.name = "gateway",
	.framing = SPEAKS_HTTP,
	.message_max = 8 << 20,
	.errors = errors,
	.http_routes = routes,
	.n_http_routes = sizeof(routes) / sizeof(routes[0]),
	.http_refusal = write_refusal,
	.http_token_header = "X-OCG-UI-Token",
	.http_token_bare = true,
	.http_token_unset = "unauthorized (ui token not set)",
	.http_token_wrong = "unauthorized",
	.http_more_routes = &gateway_more_routes,
	.home = {.address = "http:127.0.0.1:55003", .optional = true},
	.section = &gateway_section,
	.life = &gateway_life,
};
