/*
 * rpc.discover, the method tables as an OpenRPC document; rpc.cancel, for a
 * call of the same connection.
 */
#include "call/method.h"

#include <string.h>

#include "call/call.h"
#include "call/server.h"
#include "call/client.h"

static void write_schema(struct json *j, const struct field *f)
{
	json_begin_object(j);
	if (f->type != FIELD_ANY)
		json_member_str(j, "type", field_type_name(f->type));
	if (f->default_text)
		json_member_str(j, "default", f->default_text);
	else if (f->default_number != 0 && f->type == FIELD_BOOL)
		json_member_bool(j, "default", true);
	/* A negative default stands for "not given", which tells a client nothing. */
	else if (f->default_number > 0)
		json_member_int(j, "default", f->default_number);
	json_end_object(j);
}

static void write_field(struct json *j, const struct field *f)
{
	json_begin_object(j);
	json_member_str(j, "name", f->name);
	if (f->doc)
		json_member_str(j, "description", f->doc);
	json_member_bool(j, "required", f->required);
	json_key(j, "schema");
	write_schema(j, f);
	json_end_object(j);
}

/* OpenRPC wants required parameters first. */
static bool required_come_first(const struct method *m)
{
	for (unsigned i = 1; i < m->n_fields; i++)
		if (m->fields[i].required && !m->fields[i - 1].required)
			return false;
	return true;
}

static void write_fields(struct json *j, const struct method *m, bool required)
{
	for (unsigned i = 0; i < m->n_fields; i++)
		if (m->fields[i].required == required)
			write_field(j, &m->fields[i]);
}

/* ---- results: a row's short form as a JSON schema; each returns what follows ---- */

static const char *write_result(struct json *j, const char *at);

static bool is_type(struct text word)
{
	return text_is(word, "string") || text_is(word, "integer") || text_is(word, "number") ||
	       text_is(word, "boolean") || text_is(word, "object") || text_is(word, "array");
}

static const char *write_words(struct json *j, const char *at)
{
	struct text all = {.data = at, .len = strcspn(at, " ]}")};
	struct text rest = all;
	struct text word = {0};
	bool types = text_next(&rest, '|', &word) && is_type(word);

	if (text_is(all, "time")) {
		json_member_str(j, "type", "string");
		json_member_str(j, "format", "date-time");
	} else if (text_is(all, "true")) {
		json_member_bool(j, "const", true);
	} else if (rest.len > 0) {
		json_member_array(j, types ? "type" : "enum");
		for (rest = all; text_next(&rest, '|', &word);)
			json_text(j, types || !text_is(word, "null") ? word : (struct text) {0});
		json_end_array(j);
	} else if (!text_is(all, "any")) {
		json_member_text(j, types ? "type" : "const", word);
	}
	return all.data + all.len;
}

static const char *write_members(struct json *j, const char *at)
{
	json_member_str(j, "type", "object");
	json_member_object(j, "properties");
	while (*at != '}') {
		size_t n = strcspn(at, ":");

		json_key_text(j, (struct text) {.data = at, .len = n});
		at = write_result(j, at + n + 1);
		at += *at == ' ';
	}
	json_end_object(j);
	return at + 1;
}

static const char *write_result(struct json *j, const char *at)
{
	json_begin_object(j);
	if (*at == '{') {
		at = write_members(j, at + 1);
	} else if (*at == '[') {
		json_member_str(j, "type", "array");
		json_key(j, "items");
		at = write_result(j, at + 1) + 1;
	} else {
		at = write_words(j, at);
	}
	json_end_object(j);
	return at;
}

static void write_method(struct json *j, const struct method *m)
{
	json_begin_object(j);
	json_member_str(j, "name", m->name);
	if (m->doc)
		json_member_str(j, "summary", m->doc);
	/* Out of the row's order, a position means nothing. */
	json_member_str(j, "paramStructure", required_come_first(m) ? "either" : "by-name");
	json_member_array(j, "params");
	write_fields(j, m, true);
	write_fields(j, m, false);
	json_end_array(j);
	json_member_object(j, "result");
	json_member_str(j, "name", "result");
	json_key(j, "schema");
	(void)write_result(j, m->result ? m->result : "any");
	json_end_object(j);
	json_end_object(j);
}

static struct done handle_discover(struct call *c)
{
	const struct registry *r = c->client->endpoint->registry;
	struct json *j = call_result(c);

	json_begin_object(j);
	json_member_str(j, "openrpc", "1.2.6");
	json_member_object(j, "info");
	json_member_str(j, "title", c->dialect->name);
	json_member_str(j, "version", c->server->opts.version);
	json_end_object(j);
	json_member_array(j, "methods");
	for (unsigned i = 0; i < registry_count(r); i++)
		write_method(j, registry_at(r, i));
	json_end_array(j);
	json_end_object(j);
	return call_reply(c);
}

struct cancel_in {
	const struct value *id;
};

static struct done handle_cancel(struct call *c)
{
	const struct cancel_in *in = c->in;
	const struct text id = {.data = in->id->raw, .len = in->id->raw_len};
	bool cancelled = client_cancel(c->client, id);
	struct json *j = call_result(c);

	json_begin_object(j);
	json_member_bool(j, "cancelled", cancelled);
	json_end_object(j);
	return call_reply(c);
}

static const struct field cancel_fields[] = {
	FIELD(ANY, cancel_in, id, "Id of the call to cancel", .required = true),
};

static const struct method rows[] = {
	{"rpc.discover", "Return an OpenRPC document that describes all methods", "object",
	 .handle = handle_discover},
	{"rpc.cancel",
	 "Cancel a call on this connection; rpc.cancel itself runs before all queued calls",
	 "{cancelled:boolean}", FIELDS(cancel_fields, cancel_in), .handle = handle_cancel,
	 .flags = METHOD_OVERTAKES},
};

const struct method_table rpc_methods = METHOD_TABLE(rows);
