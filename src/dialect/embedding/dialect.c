/* The schema of the embedding service. */
#include "call/http.h"
#include "dialect/daemon.h"
#include "dialect/embedding/embedding.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {0, "invalid JSON", WORDS_BOTH, 400},
	[REFUSE_INTERNAL] = {0, "internal error", WORDS_BOTH, 500},
	DIALECT_HTTP_ERRORS,
};

static const struct field embed_fields[] = {
	FIELD(STRING, embed_in, text, "Text to embed", .required = true),
};

static const struct field batch_fields[] = {
	FIELD(ARRAY, embed_batch_in, texts, "Strings to embed", .required = true),
};

static const struct field openai_fields[] = {
	FIELD(ANY, embed_openai_in, input, "Input text to embed, or a list of strings",
	      .required = true),
	FIELD(STRING, embed_openai_in, model, "Name of the configured model (optional)"),
	FIELD(STRING, embed_openai_in, encoding_format, "Format of the vectors: float or base64",
	      .default_text = "float", WORDS("float", "base64")),
	FIELD(INT, embed_openai_in, dimensions,
	      "Number of dimensions of the configured model (optional)"),
};

static const struct http_route routes[] = {
	{"GET", "/health", ROUTE_ROW("health", .handle = embedding_health)},
	{"GET", "/info", ROUTE_ROW("info", .handle = embedding_info)},
	{"GET", "/v1/models", ROUTE_ROW("v1/models", .handle = embedding_models)},
	{"POST", "/embed",
	 ROUTE_ROW("embed", FIELDS(embed_fields, embed_in), .handle = embedding_embed,
		   .flags = METHOD_LATER),
	 .flags = ROUTE_WATCH},
	{"POST", "/embed-batch",
	 ROUTE_ROW("embed-batch", FIELDS(batch_fields, embed_batch_in), .handle = embedding_batch,
		   .flags = METHOD_LATER),
	 .flags = ROUTE_WATCH},
	{"POST", "/v1/embeddings",
	 ROUTE_ROW("v1/embeddings", FIELDS(openai_fields, embed_openai_in),
		   .handle = embedding_openai, .flags = METHOD_LATER),
	 .flags = ROUTE_WATCH},
};

static void write_refusal(struct buf *body, const struct http_refusal *no)
{
	dialect_openai_refusal(body, no,
			       no->status < 500 ? "invalid_request_error" : "server_error",
			       no->status == 404 && no->route ? "model_not_found" : NULL);
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
