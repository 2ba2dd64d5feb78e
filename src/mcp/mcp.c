#include "mcp/mcp.h"

#include <errno.h>
#include <stdlib.h>

#include "mcp/inner.h"
#include "mcp/session.h"
#include "wire/json.h"

/* A refusal's code outside what JSON-RPC and the protocol reserve: they keep -32768 to -32000. */
const struct error_row mcp_errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_BOTH, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid request", WORDS_BOTH, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_BOTH, 404},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {-32602, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-31001, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-31002, "Resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-31003, "Size limit exceeded", WORDS_BOTH, 0},
	[REFUSE_UNAVAILABLE] = {-31004, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-31005, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-31006, "Call timed out", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-31007, "Cancelled", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-31008, "Stopping", WORDS_TEXT, 0},
};

int mcp_new(const struct mcp_opts *opts, struct mcp **ret_mcp)
{
	struct mcp *m = calloc(1, sizeof(*m));
	int r = 0;

	if (!m)
		return -ENOMEM;
	m->opts = *opts;
	if (opts->key)
		memcpy(m->key, opts->key, SEAL_KEY);
	else
		r = seal_key_new(m->key);
	if (m->opts.keep_alive_ms == 0)
		m->opts.keep_alive_ms = MCP_KEEP_ALIVE_MS;
	if (m->opts.session_idle_ms == 0)
		m->opts.session_idle_ms = MCP_SESSION_IDLE_MS;
	if (m->opts.page == 0)
		m->opts.page = MCP_PAGE;
	for (unsigned i = 0; i < N_MCP_OFFERS; i++)
		list_init(&m->offers[i]);
	list_init(&m->sessions);
	list_init(&m->listens);
	list_init(&m->streams);
	list_init(&m->tasks);
	if (r != 0) {
		free(m);
		return r;
	}
	*ret_mcp = m;
	return 0;
}

static void free_entry(struct mcp_entry *e)
{
	list_remove(&e->link);
	arena_done(&e->arena);
	free(e);
}

void mcp_free(struct mcp *m)
{
	if (!m)
		return;
	mcp_sessions_free(m);
	mcp_tasks_free(m);
	timer_free(m->keep_alive);
	ticker_free(m->sweep);
	for (unsigned i = 0; i < N_MCP_OFFERS; i++) {
		while (!list_empty(&m->offers[i]))
			free_entry(list_entry(list_first(&m->offers[i]), struct mcp_entry, link));
	}
	free(m);
}

struct mcp *call_mcp(const struct call *c)
{
	return opened(c)->mcp;
}

/* ---- what is offered ---- */

/* Every kind of entry begins with its row. */
static const struct method *row_of(const struct mcp_entry *e)
{
	return e->what;
}

static const struct mcp_entry *find_named(const struct list *entries, struct text name)
{
	list_for_each (at, following, (struct list *)entries) {
		const struct mcp_entry *e = list_entry(at, struct mcp_entry, link);

		if (text_is(name, row_of(e)->name))
			return e;
	}
	return NULL;
}

const struct mcp_entry *mcp_find_tool(const struct mcp *m, struct text name)
{
	return find_named(&m->offers[OFFER_TOOLS], name);
}

const struct mcp_prompt *mcp_find_prompt(const struct mcp *m, struct text name)
{
	const struct mcp_entry *e = find_named(&m->offers[OFFER_PROMPTS], name);

	return e ? e->what : NULL;
}

static int mcp_add(struct mcp *m, enum mcp_offer offer, const void *what, struct mcp_entry **ret)
{
	struct mcp_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->what = what;
	arena_init(&e->arena, 4 << 20);
	list_append(&m->offers[offer], &e->link);
	*ret = e;
	return 0;
}

static int read_schema(struct arena *a, const char *json, struct value **ret)
{
	struct error error;
	int r;

	if (!json)
		return 0;
	r = json_read(a, json, strlen(json), &json_default_limits, ret, &error);
	if (r == 0 && (*ret)->kind != VALUE_OBJECT)
		r = REFUSE_PARSE;
	return r > 0 ? -EINVAL : r;
}

static bool name_will_do(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n >= 1 && n <= 128 &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
		       n;
}

int mcp_add_tool(struct mcp *m, const struct mcp_tool *tool)
{
	struct value *output = NULL;
	struct mcp_entry *e;
	int r;

	if (!name_will_do(tool->row.name) || !tool->row.handle)
		return -EINVAL;
	if (find_named(&m->offers[OFFER_TOOLS], text_of(tool->row.name)))
		return -EEXIST;
	r = mcp_add(m, OFFER_TOOLS, tool, &e);
	if (r != 0)
		return r;
	r = read_schema(&e->arena, tool->input_schema, &e->schema)
		    ?: read_schema(&e->arena, tool->output_schema, &output);
	if (r != 0)
		free_entry(e);
	return r;
}

static bool uri_taken(const struct list *entries, const char *uri)
{
	list_for_each (at, following, (struct list *)entries) {
		const struct mcp_entry *e = list_entry(at, struct mcp_entry, link);

		if (strcmp(((const struct mcp_resource *)e->what)->uri, uri) == 0)
			return true;
	}
	return false;
}

int mcp_add_resource(struct mcp *m, const struct mcp_resource *resource)
{
	enum mcp_offer offer =
		resource->uri && strchr(resource->uri, '{') ? OFFER_TEMPLATES : OFFER_RESOURCES;
	struct mcp_entry *e;

	if (!resource->uri || !resource->row.name || !resource->row.handle)
		return -EINVAL;
	if (uri_taken(&m->offers[offer], resource->uri))
		return -EEXIST;
	return mcp_add(m, offer, resource, &e);
}

int mcp_add_prompt(struct mcp *m, const struct mcp_prompt *prompt)
{
	struct mcp_entry *e;

	if (!prompt->row.name || !prompt->row.name[0] || !prompt->row.handle)
		return -EINVAL;
	if (find_named(&m->offers[OFFER_PROMPTS], text_of(prompt->row.name)))
		return -EEXIST;
	return mcp_add(m, OFFER_PROMPTS, prompt, &e);
}

void mcp_set_complete(struct mcp *m, const struct method *complete)
{
	m->opts.complete = complete;
}

bool mcp_has(const struct mcp *m, enum mcp_part part)
{
	const struct mcp_opts *o = &m->opts;

	switch (part) {
	case PART_BASE:
		return true;
	case PART_TOOLS:
		return !list_empty(&m->offers[OFFER_TOOLS]);
	case PART_RESOURCES:
		return !list_empty(&m->offers[OFFER_RESOURCES]) ||
		       !list_empty(&m->offers[OFFER_TEMPLATES]);
	case PART_PROMPTS:
		return !list_empty(&m->offers[OFFER_PROMPTS]);
	case PART_COMPLETIONS:
		return o->complete;
	case PART_LOGGING:
		return o->logs;
	case PART_SUBSCRIBE:
		return o->subscribes && mcp_has(m, PART_RESOURCES);
	case PART_TASKS:
		return o->tasks;
	case PART_CHANGES:
		return mcp_has(m, PART_TOOLS) || mcp_has(m, PART_RESOURCES) ||
		       mcp_has(m, PART_PROMPTS);
	}
	return false;
}
