/* The portrait of the embedding service. */
#include "call/http.h"
#include "dialect/embedding/embedding.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {0, "invalid JSON", WORDS_BOTH, 400},
	[REFUSE_REQUEST] = {0, "invalid request", WORDS_TEXT, 400},
	[REFUSE_METHOD] = {0, "path not found", WORDS_TEXT, 404},
	[REFUSE_PARAMS] = {0, "invalid parameter", WORDS_TEXT, 400},
	[REFUSE_INTERNAL] = {0, "internal error", WORDS_BOTH, 500},
	[REFUSE_NOT_FOUND] = {0, "object not found", WORDS_TEXT, 404},
	[REFUSE_CONFLICT] = {0, "conflict", WORDS_TEXT, 409},
	[REFUSE_LIMIT] = {0, "too many requests", WORDS_TEXT, 429},
	[REFUSE_TOO_LARGE] = {0, "message too large", WORDS_TEXT, 413},
	[REFUSE_UNAVAILABLE] = {0, "unavailable", WORDS_TEXT, 503},
	[REFUSE_FORBIDDEN] = {0, "forbidden", WORDS_TEXT, 403},
	[REFUSE_TIMEOUT] = {0, "request timed out", WORDS_TEXT, 504},
	[REFUSE_CANCELLED] = {0, "cancelled", WORDS_TEXT, 503},
	[REFUSE_STOPPING] = {0, "koined is stopping", WORDS_TEXT, 503},
};

static const struct field embed_fields[] = {
	FIELD(STRING, embed_in, text, "Text to embed", .required = true),
};

static const struct field batch_fields[] = {
	FIELD(ARRAY, embed_batch_in, texts, "Texts to embed", .required = true),
};

static const struct field openai_fields[] = {
	FIELD(ANY, embed_openai_in, input, "Text to embed, or a list of texts", .required = true),
	FIELD(STRING, embed_openai_in, model, "Name of the configured model (optional)"),
	FIELD(STRING, embed_openai_in, encoding_format, "Format of the vectors: float or base64",
	      .default_text = "float"),
	FIELD(INT, embed_openai_in, dimensions,
	      "Number of dimensions of the configured model (optional)"),
};

static const struct http_route routes[] = {
	{"GET", "/health", {.name = "health", .handle = embedding_health}},
	{"GET", "/info", {.name = "info", .handle = embedding_info}},
	{"GET", "/v1/models", {.name = "v1/models", .handle = embedding_models}},
	{"POST",
	 "/embed",
	 {.name = "embed",
	  FIELDS(embed_fields, embed_in),
	  .handle = embedding_embed,
	  .flags = METHOD_LATER},
	 .flags = ROUTE_WATCH},
	{"POST",
	 "/embed-batch",
	 {.name = "embed-batch",
	  FIELDS(batch_fields, embed_batch_in),
	  .handle = embedding_batch,
	  .flags = METHOD_LATER},
	 .flags = ROUTE_WATCH},
	{"POST",
	 "/v1/embeddings",
	 {.name = "v1/embeddings",
	  FIELDS(openai_fields, embed_openai_in),
	  .handle = embedding_openai,
	  .flags = METHOD_LATER},
	 .flags = ROUTE_WATCH},
};

/* OpenAI's clients expect an object, the others a message. */
static void write_refusal(struct buf *body, const struct http_refusal *no)
{
	struct json j = json_writer(body);
	const char *field = no->why ? no->why->field : "";

	json_begin_object(&j);
	json_key(&j, "error");
	if (!http_refusal_below(no, "/v1/")) {
		json_text(&j, no->message);
		json_end_object(&j);
		return;
	}
	json_begin_object(&j);
	json_member_text(&j, "message", no->message);
	json_member_str(&j, "type", no->status < 500 ? "invalid_request_error" : "server_error");
	json_member_str(&j, "param", field[0] ? field : NULL);
	json_member_str(&j, "code", no->status == 404 && no->route ? "model_not_found" : NULL);
	json_end_object(&j);
	json_end_object(&j);
}

const struct dialect embedding_dialect = {
	.name = "embedding",
	.framing = SPEAKS_HTTP,
	.message_max = 4 << 20,
	.errors = errors,
	.http_routes = routes,
	.n_http_routes = sizeof(routes) / sizeof(routes[0]),
	.http_refusal = write_refusal,
	.home = {.address = "http:127.0.0.1:50001", .optional = true},
	.makes_vectors = true,
};
