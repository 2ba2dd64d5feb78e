/* The agent of a model behind HTTP, and which of its turns may have a connection. */
#include "agent/model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/inner.h"
#include "base/cleanup.h"

enum {
	CONNECT_MS = 10 * 1000,
	IDLE_MS = 120 * 1000,
	TOTAL_MS = 3600 * 1000,
	CONNECTIONS = 512,
	PROBE_CONNECTIONS = 4,
	EVENT_MEMORY = 32 << 20,
};

int model_check_url(const char *url, struct error *error)
{
	struct endpoint scratch;

	return endpoint_parse(url, "model", "/chat/completions", &scratch, error);
}

/* ---- headers ---- */

int model_headers_make(const struct model *m, const char *key, struct model_headers *ret_headers)
{
	struct model_headers h = {.lines = {"Content-Type: application/json",
					    "Accept: text/event-stream, application/json"}};
	unsigned n = 2;

	if (m->provider->version_header)
		h.lines[n++] = m->provider->version_header;
	if (key[0]) {
		if (asprintf(&h.key_line, "%s%s", m->provider->key_header, key) < 0)
			return -ENOMEM;
		h.lines[n++] = h.key_line;
	}
	*ret_headers = h;
	return 0;
}

void model_headers_done(struct model_headers *h)
{
	secret_free(h->key_line);
}

/* ---- connections ---- */

void model_queue(struct agent_turn *t)
{
	struct model *m = t->model;

	if (m->n_open >= m->opts.connections) {
		list_append(&m->waiting, &t->waiting);
		return;
	}
	m->n_open++;
	turn_send(t);
}

void model_release(struct model *m)
{
	struct list *first;

	m->n_open--;
	first = list_first(&m->waiting);
	if (!first)
		return;
	list_remove(first);
	m->n_open++;
	turn_send(list_entry(first, struct agent_turn, waiting));
}

/* ---- life ---- */

void model_free(struct agent *a)
{
	struct model *m = (struct model *)a;
	struct list *first;

	/* Otherwise every turn that ends would start one that waits. */
	m->opts.connections = 0;
	while ((first = list_first(&m->waiting)))
		list_remove(first);
	while ((first = list_first(&m->turns)))
		turn_drop(list_entry(first, struct agent_turn, link));
	probe_drop_all(m);
	model_keys_free(m->keys);
	http_client_free(m->http);
	arena_done(&m->arena);
	free(m);
}

static void model_freep(struct model **m)
{
	if (*m)
		model_free(&(*m)->agent);
}

static int take_names(struct model *m, const struct model_opts *opts, struct error *error)
{
	const char *model = opts->model ? opts->model : "";

	if (!opts->name || !opts->name[0] || strlen(opts->name) >= sizeof(m->agent.name))
		return refuse(error, REFUSE_PARAMS,
			      "invalid agent name '%.45s': expected 1 to %zu characters",
			      opts->name ? opts->name : "", sizeof(m->agent.name) - 1);
	if (strlen(model) >= sizeof(m->agent.model))
		return refuse(error, REFUSE_PARAMS,
			      "agent '%s': the model name is longer than %zu characters",
			      opts->name, sizeof(m->agent.model) - 1);
	strcpy(m->agent.name, opts->name);
	strcpy(m->agent.model, model);
	return 0;
}

static void take_opts(struct model *m, const struct model_opts *opts)
{
	m->agent.budget = opts->budget;
	m->agent.reserve = opts->reserve;
	m->opts = *opts;
	m->opts.name = m->opts.url = m->opts.model = NULL;
	m->opts.key = (struct model_key) {0};
	m->opts.connect_timeout_ms = opts->connect_timeout_ms ?: CONNECT_MS;
	m->opts.idle_timeout_ms = opts->idle_timeout_ms ?: IDLE_MS;
	m->opts.total_timeout_ms = opts->total_timeout_ms ?: TOTAL_MS;
	m->opts.connections = opts->connections ?: CONNECTIONS;
}

int model_new(struct loop *l, const struct provider *provider, const struct model_opts *opts,
	      struct agent **ret_agent, struct error *error)
{
	CLEANUP(model_freep) struct model *m = calloc(1, sizeof(*m));
	struct http_client_opts http;
	int r;

	if (!m)
		return -ENOMEM;
	m->agent.ops = &provider->ops;
	m->provider = provider;
	m->loop = l;
	list_init(&m->turns);
	list_init(&m->waiting);
	list_init(&m->probes);
	arena_init(&m->arena, EVENT_MEMORY);
	take_opts(m, opts);
	http.connections = m->opts.connections + PROBE_CONNECTIONS;
	r = take_names(m, opts, error) ?:
		endpoint_parse(opts->url, "model", provider->usual, &m->at, error) ?:
		model_keys_new(l, m->agent.name, &opts->key, &m->keys, error) ?:
		http_client_new(l, &http, &m->http);
	if (r == 0)
		*ret_agent = &TAKE(m)->agent;
	return r;
}
