/* The lists, in pages. A cursor names its list and where its page begins, and is signed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/inner.h"

void mcp_cursor_add(const struct mcp *m, struct buf *out, const char *list, struct text at)
{
	seal_add(out, m->key, at, text_of(list));
}

int mcp_cursor_read(struct call *c, const char *list, struct text cursor, struct text *ret_at)
{
	int r = seal_open(&c->arena, opened(c)->mcp->key, cursor, text_of(list), ret_at);

	return r != -EBADMSG
		       ? r
		       : refuse_field(&c->error, "cursor",
				      "invalid cursor: expected a nextCursor value from %s", list);
}

/* Where the page begins; 0 without a cursor. */
static int read_start(struct call *c, unsigned *ret_start)
{
	const struct value *v = value_find(c->request.params, "cursor");
	struct text at;
	char number[16];
	int r;

	*ret_start = 0;
	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (v->kind != VALUE_STRING)
		return refuse_field(&c->error, "cursor", "cursor must be a string, not %s",
				    value_kind_name(v));
	r = mcp_cursor_read(c, opened(c)->row->method.name, value_text(v), &at);
	if (r != 0)
		return r;
	snprintf(number, sizeof(number), "%.*s", TEXT_ARGS(at));
	*ret_start = (unsigned)strtoul(number, NULL, 10);
	return 0;
}

static void write_cursor(struct call *c, struct json *j, unsigned next)
{
	char at[16];
	int n = snprintf(at, sizeof(at), "%u", next);

	json_key(j, "nextCursor");
	buf_add_char(j->out, '"');
	mcp_cursor_add(opened(c)->mcp, j->out, opened(c)->row->method.name,
		       (struct text) {.data = at, .len = (size_t)n});
	buf_add_char(j->out, '"');
	j->comma = true;
}

static void write_names(struct json *j, const struct method *row, const char *title)
{
	json_member_str(j, "name", row->name);
	if (title)
		json_member_str(j, "title", title);
	if (row->doc)
		json_member_str(j, "description", row->doc);
}

static void write_resource(struct json *j, const struct mcp_entry *e)
{
	const struct mcp_resource *r = e->what;

	json_begin_object(j);
	json_member_str(j, strchr(r->uri, '{') ? "uriTemplate" : "uri", r->uri);
	write_names(j, &r->row, r->title);
	if (r->mime_type)
		json_member_str(j, "mimeType", r->mime_type);
	json_end_object(j);
}

static void write_prompt(struct json *j, const struct mcp_entry *e)
{
	const struct mcp_prompt *p = e->what;

	json_begin_object(j);
	write_names(j, &p->row, p->title);
	json_member_array(j, "arguments");
	for (unsigned i = 0; i < p->row.n_fields; i++) {
		const struct field *f = &p->row.fields[i];

		json_begin_object(j);
		json_member_str(j, "name", f->name);
		if (f->doc)
			json_member_str(j, "description", f->doc);
		json_member_bool(j, "required", f->required);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

/* The owner's own row decodes and runs as it would anywhere. */
int mcp_open_resources(struct mcp_call *mc)
{
	if (mc->mcp->opts.resources_list)
		mc->call->method = mc->mcp->opts.resources_list;
	return 0;
}

static const struct {
	const char *key;
	void (*write)(struct json *j, const struct mcp_entry *e);
} lists[N_MCP_OFFERS] = {
	[OFFER_TOOLS] = {"tools", mcp_write_tool},
	[OFFER_RESOURCES] = {"resources", write_resource},
	[OFFER_TEMPLATES] = {"resourceTemplates", write_resource},
	[OFFER_PROMPTS] = {"prompts", write_prompt},
};

static bool is_offered(const struct call *c, enum mcp_offer offer, const struct mcp_entry *e)
{
	const struct mcp *m = opened(c)->mcp;

	return offer != OFFER_TOOLS || !m->opts.offers || m->opts.offers(c, e->what);
}

struct done mcp_list(struct call *c)
{
	const enum mcp_offer offer = opened(c)->row->offer;
	struct mcp *m = opened(c)->mcp;
	const unsigned page = m->opts.page;
	unsigned start;
	unsigned i = 0;
	struct json *j;
	int r = read_start(c, &start);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, lists[offer].key);
	list_for_each (at, following, &m->offers[offer]) {
		const struct mcp_entry *e = list_entry(at, struct mcp_entry, link);

		if (!is_offered(c, offer, e))
			continue;
		if (i >= start && i - start < page)
			lists[offer].write(j, e);
		i++;
	}
	json_end_array(j);
	if (i > start && i - start > page)
		write_cursor(c, j, start + page);
	return call_reply_object(c);
}
