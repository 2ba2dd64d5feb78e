/*
 * Headers of modern requests: they repeat parts of the body, so that others can route by them. What
 * differs could be routed by one and acted on by the other, and is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/inner.h"
#include "wire/crypto.h"
#include "wire/http/http1.h"

enum { HEADER_MISMATCH = -32020 };

static int mismatch(struct mcp_call *mc, const char *header, const char *what)
{
	return mcp_refuse_with(mc, HEADER_MISMATCH, 400, (struct text) {0},
			       "Header mismatch: %s %s", header, what);
}

/* "=?base64?…?=" stands for the bytes in it; without both marks it is what it is. */
static int header_decode(struct mcp_call *mc, const char *header, struct text *value)
{
	static const char begin[] = "=?base64?";
	static const char end[] = "?=";
	const size_t n = sizeof(begin) - 1 + sizeof(end) - 1;
	struct text inner;
	int r;

	if (value->len < n || memcmp(value->data, begin, sizeof(begin) - 1) != 0 ||
	    memcmp(value->data + value->len - 2, end, 2) != 0)
		return 0;
	inner = (struct text) {.data = value->data + sizeof(begin) - 1, .len = value->len - n};
	r = base64_read(&mc->call->arena, inner, value);
	return r == -EINVAL ? mismatch(mc, header, "is not valid base64") : r;
}

/* -ENOENT: it is not there. */
static int header_find(struct mcp_call *mc, const struct http_request *http, const char *header,
		       struct text *ret)
{
	*ret = http_header_find(http, header);
	if (!ret->data)
		return -ENOENT;
	if (http_header_count(http, header) > 1)
		return mismatch(mc, header, "is duplicated");
	return header_decode(mc, header, ret);
}

static int compare(struct mcp_call *mc, const struct http_request *http, const char *header,
		   struct text want)
{
	struct text given;
	int r = header_find(mc, http, header, &given);

	if (r == -ENOENT)
		return mismatch(mc, header, "is missing");
	if (r != 0)
		return r;
	return text_equal(given, want) ? 0 : mismatch(mc, header, "does not match the body");
}

int mcp_check_headers(struct mcp_call *mc, const struct http_request *http)
{
	const struct jsonrpc_request *request = &mc->call->request;
	const struct mcp_row *row = mcp_find_row(request->method);
	struct text version =
		value_text(value_find(mc->meta, "io.modelcontextprotocol/protocolVersion"));
	struct text name = {0};
	int r = compare(mc, http, "MCP-Protocol-Version", version)
			?: compare(mc, http, "Mcp-Method", request->method);

	if (r != 0)
		return r;
	if (row && row->named_by)
		name = value_text(value_find(request->params, row->named_by));
	/* Without a name in the body the method says what is missing. */
	return name.data ? compare(mc, http, "Mcp-Name", name) : 0;
}

/* ---- headers that a tool's schema asks for ---- */

static bool same_number(struct text given, const struct value *want)
{
	char text[64];
	double a;
	double b;
	char *end;

	if (given.len == 0 || given.len >= sizeof(text) || !value_double(want, &b))
		return false;
	memcpy(text, given.data, given.len);
	text[given.len] = '\0';
	a = strtod(text, &end);
	return *end == '\0' && a == b;
}

static bool same_value(struct text given, const struct value *want)
{
	switch ((enum value_kind)want->kind) {
	case VALUE_STRING:
		return text_equal(given, value_text(want));
	case VALUE_NUMBER:
		return same_number(given, want);
	case VALUE_TRUE:
		return text_is(given, "true");
	case VALUE_FALSE:
		return text_is(given, "false");
	case VALUE_NULL:
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		break;
	}
	return false;
}

static int check_param(struct mcp_call *mc, const struct http_request *http, struct text name,
		       const struct value *argument)
{
	char header[160];
	struct text given;
	int r;

	if (!argument || argument->kind == VALUE_NULL || name.len > 100)
		return 0;
	snprintf(header, sizeof(header), "Mcp-Param-%.*s", TEXT_ARGS(name));
	r = header_find(mc, http, header, &given);
	if (r == -ENOENT)
		return mismatch(mc, header, "is missing");
	if (r != 0)
		return r;
	return same_value(given, argument) ? 0 : mismatch(mc, header, "does not match the body");
}

static const struct value *find_member(const struct value *object, const struct value *key)
{
	const struct value *found = NULL;

	if (!object || object->kind != VALUE_OBJECT)
		return NULL;
	value_each (member, object) {
		if (member->key_len == key->key_len &&
		    memcmp(member->key, key->key, key->key_len) == 0)
			found = member;
	}
	return found;
}

enum { DEPTH_MAX = 8 };

static int check_level(struct mcp_call *mc, const struct http_request *http,
		       const struct value *schema, const struct value *arguments, unsigned depth)
{
	const struct value *properties = value_find(schema, "properties");

	if (!properties || properties->kind != VALUE_OBJECT || depth > DEPTH_MAX)
		return 0;
	value_each (property, properties) {
		const struct value *argument = find_member(arguments, property);
		struct text name = value_text(value_find(property, "x-mcp-header"));
		int r = name.data ? check_param(mc, http, name, argument) : 0;

		if (r == 0)
			r = check_level(mc, http, property, argument, depth + 1);
		if (r != 0)
			return r;
	}
	return 0;
}

int mcp_check_param_headers(struct mcp_call *mc, const struct value *schema)
{
	if (!schema || !mc->headers || mc->era != MCP_MODERN)
		return 0;
	return check_level(mc, mc->headers, schema, mc->arguments, 0);
}
