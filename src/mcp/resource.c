/* Resources: which one a URI names, and what of it the template's places stand for. */
#include <errno.h>

#include "base/cleanup.h"
#include "mcp/inner.h"

enum { PARTS_MAX = 8 };

struct part {
	struct text name;
	struct text value;
};

/* Takes one "{name}" off the template; the value reaches up to what follows, or to a '/'. */
static bool take_part(const char **at, struct text *rest, struct part *ret)
{
	const char *end = strchr(*at, '}');
	size_t n = 0;

	if (!end)
		return false;
	ret->name = (struct text) {.data = *at + 1, .len = (size_t)(end - *at - 1)};
	while (n < rest->len && rest->data[n] != '/' && rest->data[n] != end[1])
		n++;
	ret->value = (struct text) {.data = rest->data, .len = n};
	*rest = (struct text) {.data = rest->data + n, .len = rest->len - n};
	*at = end + 1;
	return n > 0;
}

static bool mcp_resource_fits(const char *uri, struct text asked, struct part *parts,
			      unsigned *ret_n)
{
	*ret_n = 0;
	while (*uri) {
		if (*uri == '{') {
			if (*ret_n == PARTS_MAX || !take_part(&uri, &asked, &parts[*ret_n]))
				return false;
			(*ret_n)++;
		} else {
			if (asked.len == 0 || asked.data[0] != *uri)
				return false;
			asked.data++;
			asked.len--;
			uri++;
		}
	}
	return asked.len == 0;
}

static const struct mcp_resource *mcp_resource_find_in(const struct list *entries, struct text uri,
						       struct part *parts, unsigned *ret_n)
{
	list_for_each (at, following, (struct list *)entries) {
		const struct mcp_entry *e = list_entry(at, struct mcp_entry, link);
		const struct mcp_resource *r = e->what;

		if (mcp_resource_fits(r->uri, uri, parts, ret_n))
			return r;
	}
	return NULL;
}

static struct value *add_member(struct arena *a, struct value **link, struct text key,
				struct text text)
{
	struct value *v = arena_zalloc(a, sizeof(*v));

	if (!v)
		return NULL;
	v->kind = VALUE_STRING;
	v->key = key.data;
	v->key_len = (uint32_t)key.len;
	v->text = text.data;
	v->len = (uint32_t)text.len;
	/* Nobody writes it back as JSON. */
	v->raw = text.data;
	v->raw_len = (uint32_t)text.len;
	*link = v;
	return v;
}

/* The handler's parameters: the URI, and its parts by name. */
static int make_params(struct mcp_call *mc, const struct part *parts, unsigned n)
{
	struct arena *a = &mc->call->arena;
	struct value *object = arena_zalloc(a, sizeof(*object));
	struct value *last;

	if (!object)
		return -ENOMEM;
	object->kind = VALUE_OBJECT;
	object->len = n + 1;
	last = add_member(a, &object->first, TEXT("uri"), mc->name);
	for (unsigned i = 0; last && i < n; i++)
		last = add_member(a, &last->next, parts[i].name, parts[i].value);
	mc->call->request.params = object;
	return last ? 0 : -ENOMEM;
}

/* With the URI, so that a client can tell which of several it was. */
static int unknown(struct mcp_call *mc)
{
	CLEANUP(buf_donep) struct buf data = {0};
	struct text kept = {0};
	struct json j;

	buf_init(&data, mc->name.len * 6 + 64);
	j = json_writer(&data);
	json_begin_object(&j);
	json_member_text(&j, "uri", mc->name);
	json_end_object(&j);
	if (data.err == 0)
		(void)arena_copy_text(&mc->call->arena, buf_bytes(&data), &kept);
	mc->data = kept;
	return refuse(&mc->call->error, REFUSE_NOT_FOUND, "Resource not found");
}

int mcp_open_resource(struct mcp_call *mc)
{
	struct part parts[PARTS_MAX];
	unsigned n = 0;
	int r = mcp_text_param(mc, "uri", &mc->name) ?: mcp_read_answers(mc);

	if (r != 0)
		return r;
	mc->resource = mcp_resource_find_in(&mc->mcp->offers[OFFER_RESOURCES], mc->name, parts, &n);
	if (!mc->resource)
		mc->resource = mcp_resource_find_in(&mc->mcp->offers[OFFER_TEMPLATES], mc->name,
						    parts, &n);
	if (!mc->resource)
		return unknown(mc);
	mc->call->method = &mc->resource->row;
	return make_params(mc, parts, n);
}
