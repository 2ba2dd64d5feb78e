/* What a handler says, item by item. An item's form depends on what the call asks for. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "mcp/inner.h"
#include "wire/crypto.h"

/* In the call's arena, so that it goes with the call, on whatever thread it was made. */
static void add(struct mcp_call *mc, const struct buf *item)
{
	struct mcp_text *t = arena_alloc(&mc->call->arena, sizeof(*t));

	if (!t || item->err != 0 ||
	    arena_copy_text(&mc->call->arena, (struct text) {item->data, item->len}, &t->json)) {
		mc->starved = true;
		mc->too_large |= item->err == -EMSGSIZE;
		return;
	}
	t->next = NULL;
	*mc->content_end = t;
	mc->content_end = &t->next;
	mc->n_content++;
}

/* A prompt's item is a message with a role. */
static void begin(struct mcp_call *mc, struct buf *out, struct json *j)
{
	buf_init(out, mc->call->out.max);
	*j = json_writer(out);
	json_begin_object(j);
	if (mc->kind != MCP_MESSAGES)
		return;
	json_member_str(j, "role", mc->role);
	json_key(j, "content");
	json_begin_object(j);
}

static void end(struct mcp_call *mc, struct buf *out, struct json *j)
{
	if (mc->kind == MCP_MESSAGES)
		json_end_object(j);
	json_end_object(j);
	add(mc, out);
}

static void write_uri(struct mcp_call *mc, struct json *j, const char *mime_type)
{
	const char *own = mc->resource ? mc->resource->mime_type : NULL;

	json_member_text(j, "uri", mc->name);
	if (mime_type || own)
		json_member_str(j, "mimeType", mime_type ? mime_type : own);
}

void mcp_text(struct call *c, struct text text)
{
	struct mcp_call *mc = opened(c);
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	if (mc->kind == MCP_COMPLETION) {
		buf_init(&out, c->out.max);
		j = json_writer(&out);
		json_text(&j, text);
		add(mc, &out);
		return;
	}
	begin(mc, &out, &j);
	if (mc->kind == MCP_CONTENTS)
		write_uri(mc, &j, NULL);
	else
		json_member_str(&j, "type", "text");
	json_member_text(&j, "text", text);
	end(mc, &out, &j);
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
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	begin(mc, &out, &j);
	if (mc->kind == MCP_CONTENTS) {
		write_uri(mc, &j, mime_type);
		write_base64(&j, "blob", bytes);
	} else {
		json_member_str(&j, "type", kind == MCP_AUDIO ? "audio" : "image");
		write_base64(&j, "data", bytes);
		json_member_str(&j, "mimeType", mime_type);
	}
	end(mc, &out, &j);
}

void mcp_embed(struct call *c, struct text uri, const char *mime_type, struct text text)
{
	struct mcp_call *mc = opened(c);
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	begin(mc, &out, &j);
	if (mc->kind != MCP_CONTENTS) {
		json_member_str(&j, "type", "resource");
		json_key(&j, "resource");
		json_begin_object(&j);
	}
	json_member_text(&j, "uri", uri);
	if (mime_type)
		json_member_str(&j, "mimeType", mime_type);
	json_member_text(&j, "text", text);
	if (mc->kind != MCP_CONTENTS)
		json_end_object(&j);
	end(mc, &out, &j);
}

void mcp_link(struct call *c, struct text uri, const char *name, const char *mime_type)
{
	struct mcp_call *mc = opened(c);
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	begin(mc, &out, &j);
	json_member_str(&j, "type", "resource_link");
	json_member_text(&j, "uri", uri);
	json_member_str(&j, "name", name);
	if (mime_type)
		json_member_str(&j, "mimeType", mime_type);
	end(mc, &out, &j);
}

void mcp_item(struct call *c, struct text json)
{
	struct mcp_call *mc = opened(c);
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, c->out.max);
	j = json_writer(&out);
	if (mc->kind == MCP_MESSAGES) {
		json_begin_object(&j);
		json_member_str(&j, "role", mc->role);
		json_key(&j, "content");
	}
	json_raw(&j, json.data, json.len);
	if (mc->kind == MCP_MESSAGES)
		json_end_object(&j);
	add(mc, &out);
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
	mc->content = NULL;
	mc->content_end = &mc->content;
	mc->n_content = 0;
	mc->is_error = true;
	mcp_text(c, text_of(text));
	return call_reply(c);
}
