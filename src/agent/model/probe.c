/*
 * Whether a model would answer: we ask for its list of models, which costs nothing. A server
 * without such a list is there all the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/inner.h"
#include "base/cleanup.h"

enum { PROBE_MS = 5000 };

struct probe {
	struct list link;
	struct model *model;
	struct timer *timer; /* reports the result: never from within */
	struct model_key_wait key_wait;
	struct http_fetch *fetch;
	char *key;
	agent_health_fn fn;
	void *arg;
	bool ok;
	char text[MODEL_TEXT_MAX];
};

static void probe_free(struct probe *p)
{
	list_remove(&p->link);
	model_key_wait_cancel(&p->key_wait);
	http_fetch_cancel(p->fetch);
	timer_free(p->timer);
	secret_free(p->key);
	free(p);
}

CLEANUP_POINTER(probe, probe_free)

static void model_probe_notify(void *arg)
{
	struct probe *p = arg;
	const struct agent_health health = {.ok = p->ok, .text = p->text};

	/* fn may free the agent. */
	list_remove(&p->link);
	p->fn(p->arg, &health);
	probe_free(p);
}

void probe_drop_all(struct model *m)
{
	struct list *first;

	while ((first = list_first(&m->probes))) {
		struct probe *p = list_entry(first, struct probe, link);

		p->ok = false;
		snprintf(p->text, sizeof(p->text), "agent '%s' was removed", m->agent.name);
		http_fetch_cancel(p->fetch);
		p->fetch = NULL;
		model_probe_notify(p);
	}
}

static void result(struct probe *p, bool ok, struct text text)
{
	p->ok = ok;
	phrase_clean(p->text, sizeof(p->text), text, p->key);
	timer_start(p->timer, 0);
}

/* ---- what came ---- */

static int count_models(struct model *m, struct text body)
{
	const struct value *list;
	struct value *v;

	arena_reset(&m->arena);
	if (body.len == 0 ||
	    json_read(&m->arena, body.data, body.len, &json_default_limits, &v, NULL) != 0)
		return -1;
	list = value_find(v, "data");
	return list && list->kind == VALUE_ARRAY ? (int)list->len : -1;
}

static void model_probe_on_done(void *arg, const struct http_answer *a)
{
	struct probe *p = arg;
	struct model *m = p->model;
	const char *const name = m->agent.name;
	struct phrase said = {.text = ""};
	char text[MODEL_TEXT_MAX];
	bool ok = false;
	int n;

	p->fetch = NULL;
	if (a->status == 0 || (a->error != 0 && a->error != -EMSGSIZE)) {
		said = phrase_after_colon(text_of(a->text), p->key);
		snprintf(text, sizeof(text), "agent '%s': cannot reach the provider%s", name,
			 said.text);
	} else if (a->status == 401 || a->status == 403) {
		snprintf(text, sizeof(text), "agent '%s': the provider rejected the key (HTTP %d)",
			 name, a->status);
	} else if (a->status >= 500) {
		snprintf(text, sizeof(text), "agent '%s': the provider returned HTTP %d", name,
			 a->status);
	} else {
		ok = true;
		n = a->status == 200 ? count_models(m, a->body) : -1;
		if (n >= 0)
			snprintf(text, sizeof(text), "HTTP 200, %d model%s", n, n == 1 ? "" : "s");
		else
			snprintf(text, sizeof(text), "HTTP %d", a->status);
	}
	result(p, ok, text_of(text));
}

/* ---- asking ---- */

static int model_probe_ask(struct probe *p, const char *key)
{
	struct model *m = p->model;
	struct model_headers headers;
	struct endpoint at;
	const struct http_fetch_opts opts = {
		.url = at.url,
		.unix_socket = m->at.socket[0] ? m->at.socket : NULL,
		.headers = headers.lines,
		.connect_timeout_ms = PROBE_MS,
		.total_timeout_ms = PROBE_MS,
		.on_done = model_probe_on_done,
		.arg = p,
	};
	int r;

	p->key = strdup(key);
	if (!p->key)
		return -ENOMEM;
	endpoint_beside(&m->at, m->provider->usual, "/models", &at);
	r = model_headers_make(m, key, &headers);
	if (r != 0)
		return r;
	r = http_client_fetch(m->http, &opts, &p->fetch);
	model_headers_done(&headers);
	return r;
}

static void on_key(void *arg, const char *key, const struct error *error)
{
	struct probe *p = arg;
	int r;

	if (!key) {
		result(p, false, text_of(error->text));
		return;
	}
	r = model_probe_ask(p, key);
	if (r != 0)
		result(p, false, text_of(strerror(-r)));
}

int probe_start(struct agent *a, agent_health_fn fn, void *arg)
{
	CLEANUP(probe_freep) struct probe *p = calloc(1, sizeof(*p));
	struct model *m = (struct model *)a;
	const char *key;
	struct error error;
	int r;

	if (!p)
		return -ENOMEM;
	list_init(&p->link);
	list_init(&p->key_wait.link);
	p->key_wait.fn = on_key;
	p->key_wait.arg = p;
	p->model = m;
	p->fn = fn;
	p->arg = arg;
	r = timer_new(m->loop, model_probe_notify, p, &p->timer);
	if (r != 0)
		return r;
	r = model_keys_get(m->keys, &p->key_wait, &key, &error);
	if (r < 0)
		return r;
	if (r > 0)
		result(p, false, text_of(error.text));
	else if (key && (r = model_probe_ask(p, key)) != 0)
		return r;
	list_append(&m->probes, &p->link);
	p = NULL;
	return 0;
}
