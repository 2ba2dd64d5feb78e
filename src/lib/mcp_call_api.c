/* koine_mcp_*: what a handler says and asks while its call runs. */
#include <string.h>

#include "base/cleanup.h"
#include "lib/host.h"
#include "mcp/mcp.h"

void koine_mcp_text_n(struct koine_call *c, const char *text, size_t len)
{
	mcp_text(inner(c), (struct text) {.data = text, .len = len});
}

void koine_mcp_text(struct koine_call *c, const char *text)
{
	mcp_text(inner(c), text_of(text));
}

void koine_mcp_data(struct koine_call *c, const char *kind, const char *mime_type, const void *data,
		    size_t len)
{
	enum mcp_data k = strcmp(kind, "audio") == 0  ? MCP_AUDIO
			  : strcmp(kind, "blob") == 0 ? MCP_BLOB
						      : MCP_IMAGE;

	mcp_data(inner(c), k, mime_type, (struct text) {.data = data, .len = len});
}

void koine_mcp_embed(struct koine_call *c, const char *uri, const char *mime_type, const char *text)
{
	mcp_embed(inner(c), text_of(uri), mime_type, text_of(text));
}

void koine_mcp_link(struct koine_call *c, const char *uri, const char *name, const char *mime_type)
{
	mcp_link(inner(c), text_of(uri), name, mime_type);
}

void koine_mcp_item(struct koine_call *c, const char *json)
{
	mcp_item(inner(c), text_of(json));
}

void koine_mcp_role(struct koine_call *c, const char *role)
{
	mcp_role(inner(c), role);
}

void koine_mcp_refuse(struct koine_call *c, const char *sentence)
{
	(void)mcp_refuse(inner(c), "%s", sentence);
}

void koine_mcp_progress(struct koine_call *c, double progress, double total, const char *message)
{
	mcp_progress(inner(c), progress, total, message);
}

void koine_mcp_log(struct koine_call *c, const char *level, const char *text)
{
	CLEANUP(buf_donep) struct buf data = {0};
	struct json j;

	buf_init(&data, 1 << 20);
	j = json_writer(&data);
	json_str(&j, text);
	if (data.err == 0)
		mcp_log(inner(c), level, NULL, buf_bytes(&data));
}

bool koine_mcp_can(const struct koine_call *c, const char *capability)
{
	return mcp_can(inner_const(c), capability);
}

const char *koine_mcp_version(const struct koine_call *c)
{
	return mcp_version(inner_const(c));
}

/* ---- questions ---- */

const struct koine_value *koine_mcp_ask(struct koine_call *c, const char *key, const char *method,
					const char *params)
{
	struct text p = params ? text_of(params) : TEXT("{}");

	return (const struct koine_value *)mcp_ask(inner(c), key, method, p);
}

static void write_form(struct json *j, const struct koine_field *fields, size_t n)
{
	static const char *const types[] = {
		[KOINE_ANY] = "string",         [KOINE_TYPE_STRING] = "string",
		[KOINE_TYPE_INT] = "integer",   [KOINE_TYPE_NUMBER] = "number",
		[KOINE_TYPE_BOOL] = "boolean",  [KOINE_TYPE_OBJECT] = "object",
		[KOINE_TYPE_ARRAY] = "array",   [KOINE_TYPE_STRINGS] = "array",
		[KOINE_TYPE_NUMBERS] = "array", [KOINE_TYPE_OBJECTS] = "array",
	};

	json_begin_object(j);
	json_member_str(j, "type", "object");
	json_member_object(j, "properties");
	for (size_t i = 0; i < n; i++) {
		json_member_object(j, fields[i].name);
		json_member_str(j, "type", types[fields[i].type]);
		if (fields[i].doc)
			json_member_str(j, "description", fields[i].doc);
		json_end_object(j);
	}
	json_end_object(j);
	json_member_array(j, "required");
	for (size_t i = 0; i < n; i++) {
		if (fields[i].required)
			json_str(j, fields[i].name);
	}
	json_end_array(j);
	json_end_object(j);
}

const struct koine_value *koine_mcp_elicit(struct koine_call *c, const char *key,
					   const char *message, const struct koine_field *fields,
					   size_t n_fields)
{
	CLEANUP(buf_donep) struct buf params = {0};
	struct json j;

	buf_init(&params, 1 << 20);
	j = json_writer(&params);
	json_begin_object(&j);
	json_member_str(&j, "message", message);
	json_key(&j, "requestedSchema");
	write_form(&j, fields, n_fields);
	json_end_object(&j);
	return (const struct koine_value *)mcp_ask(inner(c), key, "elicitation/create",
						   params.err == 0 ? buf_bytes(&params)
								   : TEXT("{}"));
}

void koine_mcp_wait(struct koine_call *c)
{
	(void)mcp_wait(inner(c), NULL, NULL);
}

void koine_mcp_keep(struct koine_call *c, const char *json)
{
	mcp_keep(inner(c), text_of(json));
}

const struct koine_value *koine_mcp_kept(const struct koine_call *c)
{
	return (const struct koine_value *)mcp_kept(inner_const(c));
}

bool koine_mcp_task(struct koine_call *c)
{
	return mcp_task(inner(c));
}

void koine_mcp_hang_up(struct koine_call *c)
{
	mcp_hang_up(inner(c));
}
