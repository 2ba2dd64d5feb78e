/* What a handler says, item by item. An item's form depends on what the call asks for. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "mcp/inner.h"
#include "wire/crypto.h"

void mcp_drop_items(struct mcp_call *mc)
{
	buf_clear(&mc->items);
	mc->n_items = 0;
}

void mcp_start_over(struct call *c)
{
	struct mcp_call *mc = opened(c);

	buf_done(&mc->items);
	mc->n_items = 0;
	mc->role = "user";
	mc->starved = mc->too_large = mc->is_error = false;
}

/* Items are written one after another: the answer only puts brackets around them. They are counted as
 * the answer is. */
static struct json begin_plain(struct mcp_call *mc)
{
	if (!mc->items.data) {
		buf_init(&mc->items, mc->call->out.max);
		mc->items.room = mc->call->out.room;
	}
	mc->items.sure = mc->call->out.sure;
	return (struct json) {.out = &mc->items, .comma = mc->n_items > 0};
}

static void end_plain(struct mcp_call *mc)
{
	mc->n_items++;
	if (mc->items.err == 0)
		return;
	/* The call waits for room and begins again. */
	if (mc->items.err == -ENOBUFS)
		mc->call->out.err = -ENOBUFS;
	mc->starved = true;
	mc->too_large |= mc->items.err == -EMSGSIZE;
}

/* A prompt's item is a message with a role. */
static void begin_message(struct mcp_call *mc, struct json *j)
{
	if (mc->kind != MCP_MESSAGES)
		return;
	json_begin_object(j);
	json_member_str(j, "role", mc->role);
	json_key(j, "content");
}

static void end_message(struct mcp_call *mc, struct json *j)
{
	if (mc->kind == MCP_MESSAGES)
		json_end_object(j);
	end_plain(mc);
}

static struct json content_begin(struct mcp_call *mc)
{
	struct json j = begin_plain(mc);

	begin_message(mc, &j);
	json_begin_object(&j);
	return j;
}

static void content_end(struct mcp_call *mc, struct json *j)
{
	json_end_object(j);
	end_message(mc, j);
}

static void write_uri(struct mcp_call *mc, struct json *j, const char *mime_type)
{
	const char *own = mc->resource ? mc->resource->mime_type : NULL;

	json_member_text(j, "uri", mc->name);
	if (mime_type || own)
		json_member_str(j, "mimeType", mime_type ? mime_type : own);
}

/* Those beyond the limit are only counted. */
static void add_completion(struct mcp_call *mc, struct text text)
{
	struct json j = begin_plain(mc);

	if (mc->n_items < MCP_COMPLETIONS_MAX)
		json_text(&j, text);
	end_plain(mc);
}

void mcp_text(struct call *c, struct text text)
{
	struct mcp_call *mc = opened(c);
	struct json j;

	if (mc->kind == MCP_COMPLETION) {
		add_completion(mc, text);
		return;
	}
	j = content_begin(mc);
	if (mc->kind == MCP_CONTENTS)
		write_uri(mc, &j, NULL);
	else
		json_member_str(&j, "type", "text");
	json_member_text(&j, "text", text);
	content_end(mc, &j);
}

static void write_base64(struct json *j, const char *key, struct text bytes)
{
	json_key(j, key);
	buf_add_char(j->out, '"');
	base64_add(j->out, bytes);
	buf_add_char(j->out, '"');
	j->comma = true;
}

void mcp_data(struct call *c, enum mcp_data kind, const char *mime_type, struct text bytes)
{
	struct mcp_call *mc = opened(c);
	struct json j = content_begin(mc);

	if (mc->kind == MCP_CONTENTS) {
		write_uri(mc, &j, mime_type);
		write_base64(&j, "blob", bytes);
	} else {
		json_member_str(&j, "type", kind == MCP_AUDIO ? "audio" : "image");
		write_base64(&j, "data", bytes);
		json_member_str(&j, "mimeType", mime_type);
	}
	content_end(mc, &j);
}

void mcp_embed(struct call *c, struct text uri, const char *mime_type, struct text text)
{
	struct mcp_call *mc = opened(c);
	struct json j = content_begin(mc);

	if (mc->kind != MCP_CONTENTS) {
		json_member_str(&j, "type", "resource");
		json_member_object(&j, "resource");
	}
	json_member_text(&j, "uri", uri);
	if (mime_type)
		json_member_str(&j, "mimeType", mime_type);
	json_member_text(&j, "text", text);
	if (mc->kind != MCP_CONTENTS)
		json_end_object(&j);
	content_end(mc, &j);
}

void mcp_link(struct call *c, struct text uri, const char *name, const char *mime_type)
{
	struct mcp_call *mc = opened(c);
	struct json j = content_begin(mc);

	json_member_str(&j, "type", "resource_link");
	json_member_text(&j, "uri", uri);
	json_member_str(&j, "name", name);
	if (mime_type)
		json_member_str(&j, "mimeType", mime_type);
	content_end(mc, &j);
}

void mcp_item(struct call *c, struct text json)
{
	struct mcp_call *mc = opened(c);
	struct json j = begin_plain(mc);

	begin_message(mc, &j);
	json_raw(&j, json.data, json.len);
	end_message(mc, &j);
}

void mcp_role(struct call *c, const char *role)
{
	opened(c)->role = role;
}

struct done mcp_refuse(struct call *c, const char *format, ...)
{
	struct mcp_call *mc = opened(c);
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (mc->kind != MCP_TOOL)
		return call_fail_with(c, -32603, text_of(text), (struct text) {0});
	mcp_drop_items(mc);
	mc->is_error = true;
	mcp_text(c, text_of(text));
	return call_reply(c);
}
