/* koine_mcp_*: what a host offers by the Model Context Protocol, and where. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/conn.h"
#include "lib/host.h"
#include "mcp/mcp.h"

enum { KEY_SIZE = 32 };

/* A tool, resource, prompt or completion, with everything that it points to. */
struct mcp_api_offer {
	struct list link;
	struct host_method *method;
	union {
		struct mcp_tool tool;
		struct mcp_resource resource;
		struct mcp_prompt prompt;
	};
	char *texts[4];
};

struct koine_mcp {
	struct list link; /* in the server's mcps */
	struct koine_server *server;
	struct mcp *mcp;
	struct list offers;
	struct pipes *stdio;
	char *texts[4];
	unsigned char key[KEY_SIZE];
};

static const struct dialect host_mcp_dialect = {.name = "mcp", MCP_DIALECT};

/* ---- texts ---- */

/* False without memory. NULL stays NULL. */
static bool mcp_api_keep(char **slot, const char *text, const char **ret)
{
	*slot = text ? strdup(text) : NULL;
	*ret = *slot;
	return !text || *slot;
}

static void free_texts(char *texts[4])
{
	for (int i = 0; i < 4; i++)
		free(texts[i]);
}

/* ---- making one ---- */

static void offer_free(struct mcp_api_offer *o)
{
	list_remove(&o->link);
	host_method_free(o->method);
	free_texts(o->texts);
	free(o);
}

static void mcp_done(struct koine_mcp *m)
{
	while (!list_empty(&m->offers))
		offer_free(list_entry(list_first(&m->offers), struct mcp_api_offer, link));
	mcp_free(m->mcp);
	free_texts(m->texts);
	list_remove(&m->link);
	free(m);
}

void host_mcps_close(struct koine_server *s)
{
	list_for_each (at, following, &s->mcps) {
		struct koine_mcp *m = list_entry(at, struct koine_mcp, link);

		pipes_free(m->stdio);
		m->stdio = NULL;
	}
}

void host_mcps_free(struct koine_server *s)
{
	while (!list_empty(&s->mcps))
		mcp_done(list_entry(list_first(&s->mcps), struct koine_mcp, link));
}

static int open_mcp(struct koine_mcp *m, const struct koine_mcp_info *info)
{
	struct mcp_opts opts = {
		.server = m->server->server,
		.page = info->page,
		.ttl_ms = info->ttl_ms,
		.logs = info->flags & KOINE_MCP_LOGS,
		.subscribes = info->flags & KOINE_MCP_UPDATES,
		.tasks = info->flags & KOINE_MCP_TASKS,
	};

	if (!mcp_api_keep(&m->texts[0], info->name, &opts.name) ||
	    !mcp_api_keep(&m->texts[1], info->version, &opts.version) ||
	    !mcp_api_keep(&m->texts[2], info->title, &opts.title) ||
	    !mcp_api_keep(&m->texts[3], info->instructions, &opts.instructions))
		return -ENOMEM;
	if (info->key) {
		memcpy(m->key, info->key, KEY_SIZE);
		opts.key = m->key;
	}
	return mcp_new(&opts, &m->mcp);
}

int koine_mcp_new(struct koine_server *s, const struct koine_mcp_info *info,
		  struct koine_mcp **ret_mcp)
{
	struct koine_mcp *m;
	int r;

	s->error.text[0] = '\0';
	if (!info->name || !info->version)
		return host_explain(s, -EINVAL);
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->server = s;
	list_init(&m->offers);
	list_append(&s->mcps, &m->link);
	r = open_mcp(m, info);
	if (r != 0) {
		mcp_done(m);
		return host_explain(s, r);
	}
	*ret_mcp = m;
	return 0;
}

/* ---- offers ---- */

static int offer_new(struct koine_mcp *m, const struct koine_method *method,
		     struct mcp_api_offer **ret)
{
	struct mcp_api_offer *o = calloc(1, sizeof(*o));
	int r;

	m->server->error.text[0] = '\0';
	if (!o)
		return -ENOMEM;
	list_append(&m->offers, &o->link);
	r = host_method_new(method, &o->method);
	if (r != 0) {
		offer_free(o);
		return host_explain(m->server, r);
	}
	*ret = o;
	return 0;
}

/* Takes the offer, also on failure. */
static int mcp_api_settle(struct koine_mcp *m, struct mcp_api_offer *o, int r)
{
	if (r != 0)
		offer_free(o);
	return host_explain(m->server, r);
}

int koine_mcp_add_tool(struct koine_mcp *m, const struct koine_tool *tool)
{
	const struct koine_method method = {tool->name,   tool->handler,  tool->arg,
					    tool->fields, tool->n_fields, tool->description};
	struct mcp_api_offer *o = NULL;
	int r = offer_new(m, &method, &o);

	if (r != 0)
		return r;
	o->tool.row = o->method->row;
	o->tool.hints = tool->hints;
	if (!mcp_api_keep(&o->texts[0], tool->title, &o->tool.title) ||
	    !mcp_api_keep(&o->texts[1], tool->input_schema, &o->tool.input_schema) ||
	    !mcp_api_keep(&o->texts[2], tool->output_schema, &o->tool.output_schema))
		return mcp_api_settle(m, o, -ENOMEM);
	return mcp_api_settle(m, o, mcp_add_tool(m->mcp, &o->tool));
}

int koine_mcp_add_resource(struct koine_mcp *m, const struct koine_resource *resource)
{
	const struct koine_method method = {
		resource->name, resource->handler, resource->arg, NULL, 0, resource->description};
	struct mcp_api_offer *o = NULL;
	int r = offer_new(m, &method, &o);

	if (r != 0)
		return r;
	o->resource.row = o->method->row;
	if (!mcp_api_keep(&o->texts[0], resource->uri, &o->resource.uri) ||
	    !mcp_api_keep(&o->texts[1], resource->title, &o->resource.title) ||
	    !mcp_api_keep(&o->texts[2], resource->mime_type, &o->resource.mime_type))
		return mcp_api_settle(m, o, -ENOMEM);
	return mcp_api_settle(m, o, mcp_add_resource(m->mcp, &o->resource));
}

int koine_mcp_add_prompt(struct koine_mcp *m, const struct koine_prompt *prompt)
{
	const struct koine_method method = {prompt->name,   prompt->handler,  prompt->arg,
					    prompt->fields, prompt->n_fields, prompt->description};
	struct mcp_api_offer *o = NULL;
	int r = offer_new(m, &method, &o);

	if (r != 0)
		return r;
	o->prompt.row = o->method->row;
	if (!mcp_api_keep(&o->texts[0], prompt->title, &o->prompt.title))
		return mcp_api_settle(m, o, -ENOMEM);
	return mcp_api_settle(m, o, mcp_add_prompt(m->mcp, &o->prompt));
}

int koine_mcp_on_complete(struct koine_mcp *m, koine_handler handler, void *arg)
{
	const struct koine_method method = {"completion/complete", handler, arg, NULL, 0, NULL};
	struct mcp_api_offer *o = NULL;
	int r = offer_new(m, &method, &o);

	if (r == 0)
		mcp_set_complete(m->mcp, &o->method->row);
	return r;
}

void koine_mcp_changed(struct koine_mcp *m, unsigned lists)
{
	mcp_changed(m->mcp, lists);
}

void koine_mcp_updated(struct koine_mcp *m, const char *uri)
{
	mcp_updated(m->mcp, text_of(uri));
}

/* ---- where ---- */

int koine_mcp_listen(struct koine_mcp *m, const char *address, const char *token, char *bound,
		     size_t bound_size)
{
	struct koine_server *s = m->server;
	struct endpoint_opts opts = {.dialect = &host_mcp_dialect, .framing = SPEAKS_ANY};
	char bearer[256];
	struct endpoint *e;
	int r;

	s->error.text[0] = '\0';
	if (token) {
		if ((size_t)snprintf(bearer, sizeof(bearer), "%s", token) >= sizeof(bearer))
			return host_explain(s, -EINVAL);
		opts.token = bearer;
	}
	r = host_listen(s, &opts, address, bound, bound_size, &e);
	if (r == 0)
		e->state = m->mcp;
	return r;
}

static void stdio_ended(void *arg)
{
	struct koine_mcp *m = arg;

	koine_server_stop(m->server);
}

static int accept_stdio(struct koine_mcp *m, int fd)
{
	struct server *server = m->server->server;
	const struct endpoint_opts opts = {.dialect = &host_mcp_dialect,
					   .registry = m->server->registry,
					   .framing = SPEAKS_LINE,
					   .fd = -1};
	struct peer peer = {.known = true, .uid = geteuid(), .pid = -1};
	struct endpoint *e;
	int r = server_inside(server, &opts, &e);

	if (r != 0) {
		close(fd);
		return r;
	}
	e->state = m->mcp;
	return server_accept(server, e, fd, &peer);
}

int koine_mcp_stdio(struct koine_mcp *m, int in, int out)
{
	int fd;
	int r;

	m->server->error.text[0] = '\0';
	if (m->stdio)
		return host_explain(m->server, -EALREADY);
	r = pipes_new(m->server->loop, in, out, stdio_ended, m, &m->stdio, &fd)
		    ?: accept_stdio(m, fd);
	if (r != 0) {
		pipes_free(m->stdio);
		m->stdio = NULL;
	}
	return host_explain(m->server, r);
}
