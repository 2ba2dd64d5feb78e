/*
 * One request: the loop sends its texts to the model, if there is one; a reader's thread makes
 * or decodes the vectors and writes them.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "call/server.h"
#include "dialect/daemon.h"
#include "dialect/embedding/embedding.h"
#include "engine/index/embedding.h"
#include "dialect/engine.h"
#include "engine/memory/memory.h"
#include "engine/index/vectors.h"

enum shape {
	SHAPE_ONE,
	SHAPE_BATCH,
	SHAPE_OPENAI,
};

struct embed {
	enum shape shape;
	bool base64;
	const struct text *texts;
	unsigned n;
	struct vectors_ask *ask; /* NULL: koine-hash makes them */
};

/* NULL means koine-hash. */
static struct embedding *model_of(const struct call *c)
{
	return memories_embedding(call_memories(c));
}

/* ---- the answer, on a reader's thread ---- */

/* If the settings name no model, the name in the model's answer is used. */
static struct text name_of(const struct call *c, const struct vectors *v)
{
	struct text ours = vectors_model(model_of(c));

	return ours.len > 0 || !v->model.data ? ours : v->model;
}

static void write_one(struct call *c, const struct vectors *v)
{
	struct json *j = call_object(c);

	json_key(j, "embedding");
	vector_write(j, v->numbers, v->dim);
	json_member_uint(j, "dim", v->dim);
	json_member_text(j, "model", name_of(c, v));
	json_end_object(j);
}

static void write_batch(struct call *c, const struct vectors *v)
{
	struct json *j = call_object(c);

	json_member_array(j, "embeddings");
	for (unsigned i = 0; i < v->n; i++)
		vector_write(j, v->numbers + (size_t)i * v->dim, v->dim);
	json_end_array(j);
	json_member_uint(j, "count", v->n);
	json_member_uint(j, "dim", v->dim);
	json_end_object(j);
}

static void write_entry(struct json *j, const struct vectors *v, unsigned i, bool base64)
{
	const float *numbers = v->numbers + (size_t)i * v->dim;

	json_begin_object(j);
	json_member_str(j, "object", "embedding");
	json_member_uint(j, "index", i);
	json_key(j, "embedding");
	if (base64)
		vector_write_base64(j, numbers, v->dim);
	else
		vector_write(j, numbers, v->dim);
	json_end_object(j);
}

/* The model's tokens are unknown here; four bytes for each is a common estimate. */
static uint64_t count_tokens(const struct embed *e)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < e->n; i++)
		n += (e->texts[i].len + 3) / 4;
	return n;
}

static void write_openai(struct call *c, const struct embed *e, const struct vectors *v)
{
	struct json *j = call_object(c);
	uint64_t tokens = count_tokens(e);

	json_member_str(j, "object", "list");
	json_member_array(j, "data");
	for (unsigned i = 0; i < v->n; i++)
		write_entry(j, v, i, e->base64);
	json_end_array(j);
	json_member_text(j, "model", name_of(c, v));
	json_member_object(j, "usage");
	json_member_uint(j, "prompt_tokens", tokens);
	json_member_uint(j, "total_tokens", tokens);
	json_end_object(j);
	json_end_object(j);
}

static int check_dimensions(struct call *c, const struct embed *e, unsigned dim)
{
	const struct embed_openai_in *in = c->in;

	if (e->shape != SHAPE_OPENAI || in->dimensions == 0 || in->dimensions == dim)
		return 0;
	return refuse_field(&c->error, "dimensions", "dimensions must be %u, not %lld", dim,
			    (long long)in->dimensions);
}

static int embedding_embed_make(struct call *c)
{
	const struct embed *e = c->state;
	struct vectors v;
	int r = e->ask ? vectors_read(e->ask, &v, &c->error)
		       : vectors_hash(&c->arena, e->texts, e->n, &v);

	if (r == 0)
		r = check_dimensions(c, e, v.dim);
	if (r != 0)
		return r;
	switch (e->shape) {
	case SHAPE_ONE:
		write_one(c, &v);
		break;
	case SHAPE_BATCH:
		write_batch(c, &v);
		break;
	case SHAPE_OPENAI:
		write_openai(c, e, &v);
		break;
	}
	return 0;
}

static struct done made(struct call *c, int r)
{
	struct embed *e = c->state;

	vectors_end(e->ask);
	e->ask = NULL;
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

/* ---- asking the model, on the loop ---- */

static void embedding_embed_on_answer(void *arg, int r, const struct error *error)
{
	struct call *c = arg;

	if (r == 0) {
		(void)call_work(c, READER, embedding_embed_make, made);
		return;
	}
	c->error = *error;
	(void)made(c, r);
}

static void embedding_embed_on_cancel(struct call *c, void *arg)
{
	(void)made(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done embedding_embed_start(struct call *c, struct embed *e)
{
	struct embedding *model = model_of(c);
	int r;

	c->state = e;
	if (!model)
		return call_work(c, READER, embedding_embed_make, made);
	r = vectors_ask(model, &c->arena, e->texts, e->n, embedding_embed_on_answer, c, &e->ask,
			&c->error);
	return r != 0 ? call_fail(c, r) : call_later(c, embedding_embed_on_cancel, NULL);
}

/* ---- parameters ---- */

static bool embedding_embed_is_blank(struct text t)
{
	size_t i = 0;

	while (i < t.len && (t.data[i] == ' ' || (t.data[i] >= '\t' && t.data[i] <= '\r')))
		i++;
	return i == t.len;
}

static int take_texts(struct call *c, const char *name, const struct value *list, struct embed *e)
{
	struct text *texts;
	unsigned n = 0;

	if (list->len > VECTORS_TEXTS_MAX)
		return refuse_field(&c->error, name, "%s has more than %d strings", name,
				    VECTORS_TEXTS_MAX);
	texts = arena_alloc(&c->arena, list->len * sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	value_each (item, list) {
		if (item->kind != VALUE_STRING)
			return refuse_field(&c->error, name, "%s must contain strings, not %s",
					    name, value_kind_name(item));
		if (e->shape == SHAPE_BATCH && embedding_embed_is_blank(value_text(item)))
			return refuse_field(&c->error, name, "empty text in batch");
		texts[n++] = value_text(item);
	}
	e->texts = texts;
	e->n = n;
	return vectors_check_list(name, texts, n, &c->error);
}

static struct done embedding_embed_begin(struct call *c, const char *name, const struct value *list,
					 struct text one, struct embed wish)
{
	struct embed *e = arena_alloc(&c->arena, sizeof(*e));
	struct text *text = arena_alloc(&c->arena, sizeof(*text));
	int r;

	if (!e || !text)
		return call_fail(c, -ENOMEM);
	*e = wish;
	*text = one;
	e->texts = text;
	e->n = 1;
	r = list ? take_texts(c, name, list, e) : vectors_check(name, one, &c->error);
	return r != 0 ? call_fail(c, r) : embedding_embed_start(c, e);
}

struct done embedding_embed(struct call *c)
{
	const struct embed_in *in = c->in;

	return embedding_embed_begin(c, "text", NULL, in->text,
				     (struct embed) {.shape = SHAPE_ONE});
}

struct done embedding_batch(struct call *c)
{
	const struct embed_batch_in *in = c->in;

	return embedding_embed_begin(c, "texts", in->texts, (struct text) {0},
				     (struct embed) {.shape = SHAPE_BATCH});
}

/* Vectors of one model must not be taken for those of another. */
static int check_model(struct call *c, struct text asked)
{
	struct text ours = vectors_model(model_of(c));

	if (asked.len == 0 || ours.len == 0 || text_equal(asked, ours))
		return 0;
	refuse_field(&c->error, "model", "model not found: '%.*s' (available: '%.*s')",
		     (int)text_cut(asked, 60).len, asked.data, (int)text_cut(ours, 60).len,
		     ours.data);
	c->error.code = REFUSE_NOT_FOUND;
	return REFUSE_NOT_FOUND;
}

struct done embedding_openai(struct call *c)
{
	const struct embed_openai_in *in = c->in;
	bool list = in->input->kind == VALUE_ARRAY;
	struct embed wish = {.shape = SHAPE_OPENAI};
	int r = 0;

	wish.base64 = text_is(in->encoding_format, "base64");
	if (!list && in->input->kind != VALUE_STRING)
		r = refuse_field(&c->error, "input",
				 "input must be a string or a list of strings, not %s",
				 value_kind_name(in->input));
	else
		r = check_model(c, in->model);
	if (r != 0)
		return call_fail(c, r);
	return embedding_embed_begin(c, "input", list ? in->input : NULL, value_text(in->input),
				     wish);
}

/* ---- about the service ---- */

static int64_t port_of(const struct call *c)
{
	const char *colon = strrchr(c->endpoint->address, ':');
	int port = 0;

	if (!c->endpoint->tcp || !colon || sscanf(colon, ":%d", &port) != 1)
		return 0;
	return port;
}

struct done embedding_health(struct call *c)
{
	return call_answer(c, 0, NULL,
			   PAIRS(JSON_STR("status", "ok"), JSON_INT("serverPort", port_of(c)),
				 JSON_STR("llmServer", embedding_url(model_of(c))),
				 JSON_TEXT("model", vectors_model(model_of(c))),
				 JSON_INT("timestamp", clock_utc_ms() / 1000)));
}

static void write_endpoints(struct json *j, const struct dialect *d)
{
	json_member_array(j, "endpoints");
	for (unsigned i = 0; i < d->n_http_routes; i++)
		json_str(j, d->http_routes[i].path);
	json_end_array(j);
}

static const char built_in_words[] =
	"built-in model that compares words and characters, not meaning";

struct done embedding_info(struct call *c)
{
	const struct embedding *model = model_of(c);
	unsigned dim = vectors_dim(model);
	struct json *j = call_object(c);

	json_member_str(j, "service", "koine");
	json_member_str(j, "version", c->server->opts.version);
	json_member_text(j, "model", vectors_model(model));
	json_key(j, "dim");
	if (dim > 0)
		json_uint(j, dim);
	else
		json_null(j); /* until the model has been asked once */
	json_member_bool(j, "builtin", !model);
	json_member_str(j, "description",
			model ? "model set by memory.embedding_url" : built_in_words);
	json_member_int(j, "maxTexts", VECTORS_TEXTS_MAX);
	json_member_int(j, "maxTextBytes", VECTORS_TEXT_MAX);
	json_member_int(j, "serverPort", port_of(c));
	json_member_str(j, "llmServer", embedding_url(model_of(c)));
	write_endpoints(j, c->dialect);
	return call_reply_object(c);
}

/* In OpenAI's shape of a list, with a single model. */
struct done embedding_models(struct call *c)
{
	struct json *j = call_object(c);

	json_member_str(j, "object", "list");
	json_member_array(j, "data");
	dialect_openai_model(j, c, vectors_model(model_of(c)));
	json_end_array(j);
	return call_reply_object(c);
}
