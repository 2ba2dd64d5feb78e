#include "agent/embeddings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/endpoint.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "io/http_client.h"
#include "wire/json.h"

enum {
	REQUEST_MAX = 16 << 20,
	RESPONSE_MAX = 32 << 20,
	CONNECT_MS = 2000,
	CONNECTIONS = 16,
};

static const char USUAL[] = "/embeddings";

struct embeddings {
	struct http_client *http;
	struct list asks;
	struct endpoint at;
	char *model;
	char *authorization; /* a whole header line, or NULL */
};

struct embeddings_ask {
	struct list link;
	struct http_fetch *fetch;
	embeddings_fn fn;
	void *arg;
};

/* ---- life ---- */

int embeddings_check_url(const char *url, struct error *error)
{
	struct endpoint scratch;

	return endpoint_parse(url, "embedding", USUAL, &scratch, error);
}

static int take_key(struct embeddings *e, const char *key, struct error *error)
{
	if (!key || !key[0])
		return 0;
	if (!endpoint_key_fits(key))
		return refuse(error, REFUSE_PARAMS,
			      "the embedding key must be ASCII without spaces");
	if (asprintf(&e->authorization, "Authorization: Bearer %s", key) < 0) {
		e->authorization = NULL;
		return -ENOMEM;
	}
	return 0;
}

CLEANUP_POINTER(embeddings, embeddings_free)

int embeddings_new(struct loop *l, const struct embeddings_opts *opts,
		   struct embeddings **ret_embeddings, struct error *error)
{
	const struct http_client_opts http = {.connections = CONNECTIONS};
	CLEANUP(embeddings_freep) struct embeddings *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	list_init(&e->asks);
	r = endpoint_parse(opts->url, "embedding", USUAL, &e->at, error)
		    ?: take_key(e, opts->key, error);
	if (r == 0) {
		e->model = strdup(opts->model);
		r = e->model ? http_client_new(l, &http, &e->http) : -ENOMEM;
	}
	if (r == 0)
		*ret_embeddings = TAKE(e);
	return r;
}

void embeddings_free(struct embeddings *e)
{
	if (!e)
		return;
	while (!list_empty(&e->asks))
		embeddings_cancel(list_entry(list_first(&e->asks), struct embeddings_ask, link));
	http_client_free(e->http);
	secret_free(e->authorization);
	free(e->model);
	free(e);
}

/* ---- asking ---- */

static enum embeddings_outcome outcome_of(const struct http_answer *a)
{
	if (a->error != 0)
		return EMBEDDINGS_LATER;
	switch (a->status) {
	case 200:
		return EMBEDDINGS_OK;
	case 400: /* and whatever else says that the texts are at fault */
	case 413:
	case 422:
		return EMBEDDINGS_REFUSED;
	case 408:
	case 409:
	case 425:
	case 429:
		return EMBEDDINGS_LATER;
	default:
		return a->status >= 500 ? EMBEDDINGS_LATER : EMBEDDINGS_WRONG;
	}
}

static void embeddings_on_done(void *arg, const struct http_answer *a)
{
	struct embeddings_ask *ask = arg;
	struct embeddings_answer answer = {
		.outcome = outcome_of(a),
		.text = a->text,
		.retry_ms = a->retry_ms,
		.body = a->body,
	};
	char status[64];

	if (a->error == 0 && answer.outcome != EMBEDDINGS_OK) {
		snprintf(status, sizeof(status), "the endpoint returned HTTP %d", a->status);
		answer.text = status;
	}
	list_remove(&ask->link);
	ask->fn(ask->arg, &answer);
	free(ask);
}

static void write_request(struct buf *out, const char *model, const struct text *texts, unsigned n)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	if (model[0])
		json_member_str(&j, "model", model);
	json_member_array(&j, "input");
	for (unsigned i = 0; i < n; i++)
		json_text(&j, texts[i]);
	json_end_array(&j);
	json_end_object(&j);
}

static int send_request(struct embeddings *e, struct embeddings_ask *ask, const struct buf *body,
			unsigned timeout_ms)
{
	const char *const headers[] = {"Content-Type: application/json", "Accept: application/json",
				       e->authorization, NULL};
	const struct http_fetch_opts opts = {
		.url = e->at.url,
		.unix_socket = e->at.socket[0] ? e->at.socket : NULL,
		.headers = headers,
		.body = {.data = body->data, .len = body->len},
		.connect_timeout_ms = timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS,
		.total_timeout_ms = timeout_ms,
		.response_max = RESPONSE_MAX,
		.on_done = embeddings_on_done,
		.arg = ask,
	};

	return http_client_fetch(e->http, &opts, &ask->fetch);
}

int embeddings_ask(struct embeddings *e, const struct text *texts, unsigned n, unsigned timeout_ms,
		   embeddings_fn fn, void *arg, struct embeddings_ask **ret_ask)
{
	CLEANUP(freep) struct embeddings_ask *ask = calloc(1, sizeof(*ask));
	struct buf body;
	int r;

	if (!ask)
		return -ENOMEM;
	ask->fn = fn;
	ask->arg = arg;
	buf_init(&body, REQUEST_MAX);
	write_request(&body, e->model, texts, n);
	r = body.err != 0 ? body.err : send_request(e, ask, &body, timeout_ms);
	buf_done(&body);
	if (r != 0)
		return r;
	list_append(&e->asks, &ask->link);
	*ret_ask = TAKE(ask);
	return 0;
}

void embeddings_cancel(struct embeddings_ask *a)
{
	if (!a)
		return;
	http_fetch_cancel(a->fetch);
	list_remove(&a->link);
	free(a);
}

/* ---- reading ---- */

static int garbage(struct error *error, const char *what)
{
	return refuse(error, REFUSE_PARSE, "the response is not a list of vectors: %s", what);
}

/* Where the entry belongs: by its index, or by its position. */
static bool embeddings_place_of(const struct value *entry, unsigned position, unsigned n,
				unsigned *ret)
{
	const struct value *index = value_find(entry, "index");
	int64_t i = position;

	if (index && !value_int(index, &i))
		return false;
	if (i < 0 || i >= (int64_t)n)
		return false;
	*ret = (unsigned)i;
	return true;
}

static bool read_numbers(const struct value *list, float *out)
{
	value_each (item, list) {
		double d;

		/* Too large for a float is as bad as not a number. */
		if (!value_double(item, &d) || !(d >= -1e30 && d <= 1e30))
			return false;
		*out++ = (float)d;
	}
	return true;
}

static const char *read_entries(const struct value *data, bool *seen,
				struct embeddings_vectors *out)
{
	unsigned position = 0;
	unsigned place;

	value_each (entry, data) {
		const struct value *list = value_find(entry, "embedding");

		if (!list || list->kind != VALUE_ARRAY)
			return "an entry in data has no embedding";
		if (list->len != out->dim)
			return "the vectors have different lengths";
		if (!embeddings_place_of(entry, position++, out->n, &place) || seen[place])
			return "an entry in data has an invalid or duplicate index";
		seen[place] = true;
		if (!read_numbers(list, out->numbers + (size_t)place * out->dim))
			return "a vector contains an element that is not a number";
	}
	return NULL;
}

int embeddings_read(struct arena *a, struct text body, unsigned n,
		    struct embeddings_vectors *ret_vectors, struct error *error)
{
	const struct json_limits limits = {.depth = 16, .values = JSON_VALUES_DEFAULT};
	struct embeddings_vectors out = {.n = n};
	const struct value *data;
	const struct value *first;
	const char *wrong;
	struct value *tree;
	bool *seen;
	int r = json_read(a, body.data, body.len, &limits, &tree, error);

	if (r != 0)
		return r > 0 ? garbage(error,
				       "the response is not valid JSON, or exceeds its size limit")
			     : r;
	data = value_find(tree, "data");
	if (!data || data->kind != VALUE_ARRAY || data->len != n)
		return garbage(error, "data does not contain one vector for each input");
	first = value_find(data->first, "embedding");
	if (!first || first->kind != VALUE_ARRAY || first->len == 0 ||
	    first->len > EMBEDDINGS_DIM_MAX)
		return garbage(error, "the first entry in data has no valid vector");
	out.dim = first->len;
	out.model = value_text(value_find(tree, "model"));
	out.numbers = arena_alloc(a, (size_t)n * out.dim * sizeof(float));
	seen = arena_zalloc(a, n * sizeof(*seen));
	if (!out.numbers || !seen)
		return -ENOMEM;
	wrong = read_entries(data, seen, &out);
	if (wrong)
		return garbage(error, wrong);
	*ret_vectors = out;
	return 0;
}
