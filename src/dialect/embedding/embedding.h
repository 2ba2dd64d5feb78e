/*
 * embedding: vectors for other programs' texts, over HTTP. It has two endpoints of ocg's
 * embedding service, and OpenAI's /v1/embeddings. There is no JSON-RPC here.
 */
#pragma once

#include "call/call.h"
#include "call/http.h"

extern const struct dialect embedding_dialect;

struct embed_in {
	struct text text;
};

struct embed_batch_in {
	const struct value *texts;
};

struct embed_openai_in {
	const struct value *input;
	struct text model;
	struct text encoding_format;
	int64_t dimensions; /* 0: not given */
};

struct done embedding_health(struct call *c);
struct done embedding_info(struct call *c);
struct done embedding_models(struct call *c);
struct done embedding_embed(struct call *c);
struct done embedding_batch(struct call *c);
struct done embedding_openai(struct call *c);

/* ---- vector_json.c ---- */

/* Writes a list of numbers, with enough digits to read back the same floats. */
void vector_write(struct json *j, const float *numbers, unsigned dim);

/* Writes them as a string: base64 of little-endian floats. */
void vector_write_base64(struct json *j, const float *numbers, unsigned dim);
