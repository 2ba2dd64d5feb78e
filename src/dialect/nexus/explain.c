/*
 * Refusals in the original's words: its clients, and the people who read their output, know
 * Python's names of types.
 */
#include "dialect/nexus/nexus.h"

#include "dialect/chat_wire.h"

enum { SHOWN = 80 }; /* bytes of a wrong value that are quoted */

const char *nexus_type_name(const struct value *v)
{
	switch ((enum value_kind)(v ? v->kind : VALUE_NULL)) {
	case VALUE_NULL:
		break;
	case VALUE_FALSE:
	case VALUE_TRUE:
		return "bool";
	case VALUE_NUMBER:
		return chat_wire_is_integer(v) ? "int" : "float";
	case VALUE_STRING:
		return "str";
	case VALUE_ARRAY:
		return "list";
	case VALUE_OBJECT:
		return "dict";
	}
	return "NoneType";
}

/* Quotes the value as Python would, at least for plain strings and simple values. */
static int refuse_version(const struct value *v, struct error *error)
{
	static const char words[] = "jsonrpc must be '2.0', got: ";

	switch ((enum value_kind)(v ? v->kind : VALUE_NULL)) {
	case VALUE_NULL:
		break;
	case VALUE_FALSE:
		return refuse(error, REFUSE_REQUEST, "%sFalse", words);
	case VALUE_TRUE:
		return refuse(error, REFUSE_REQUEST, "%sTrue", words);
	case VALUE_STRING:
		return refuse(error, REFUSE_REQUEST, "%s'%.*s'", words,
			      TEXT_ARGS(text_cut((struct text) {v->text, v->len}, SHOWN)));
	case VALUE_NUMBER:
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		return refuse(error, REFUSE_REQUEST, "%s%.*s", words,
			      TEXT_ARGS(text_cut((struct text) {v->raw, v->raw_len}, SHOWN)));
	}
	return refuse(error, REFUSE_REQUEST, "%sNone", words);
}

int nexus_explain_envelope(enum jsonrpc_fault fault, const struct value *v, struct error *error)
{
	const char *type = nexus_type_name(v);

	switch (fault) {
	case JSONRPC_NOT_OBJECT:
		return refuse(error, REFUSE_REQUEST, "Request must be a JSON object");
	case JSONRPC_NO_VERSION:
		return refuse_version(v, error);
	case JSONRPC_NO_METHOD:
		if (v && v->kind == VALUE_STRING)
			return refuse(error, REFUSE_REQUEST, "method must not be empty");
		return refuse(error, REFUSE_REQUEST, "method must be a string, got: %s", type);
	case JSONRPC_BAD_PARAMS:
		return refuse(error, REFUSE_REQUEST, "params must be object or array, got: %s",
			      type);
	case JSONRPC_POSITIONAL:
		return refuse(error, REFUSE_REQUEST,
			      "Positional params (array) not supported, use named params (object)");
	case JSONRPC_BAD_ID:
		break;
	}
	return refuse(error, REFUSE_REQUEST, "id must be string, number, or null, got: %s", type);
}

int nexus_explain_field(const struct field *f, const struct value *v, struct error *error)
{
	if (!v)
		return refuse_field(error, f->name, "Missing required parameter: %s", f->name);
	return refuse_field(error, f->name, "%s must be %s, got: %s", f->name,
			    field_type_name(f->type), nexus_type_name(v));
}

static enum refusal http_code(int status)
{
	switch (status) {
	case 401:
	case 403:
	case 405:
		return REFUSE_REQUEST;
	case 404:
		return REFUSE_PARAMS;
	default:
		return status >= 500 ? REFUSE_INTERNAL : REFUSE_PARSE;
	}
}

/* The original's clients expect a JSON-RPC answer in every body, whatever the status. */
void nexus_http_error(struct buf *body, int status, const char *text)
{
	static const char places[] = "Not found. Use /, /rpc, or /agent/{agent_id}.";
	struct json j = json_writer(body);

	jsonrpc_write_error(&nexus_dialect.rules, &j, (struct text) {0},
			    nexus_dialect.errors[http_code(status)].code,
			    text_of(status == 404 ? places : text), (struct text) {0});
}

static bool is_none(const struct value *v)
{
	int64_t n;

	if (!v || v->kind == VALUE_NULL)
		return true;
	return (v->kind == VALUE_STRING && v->len == 0) || (value_int(v, &n) && n == 0);
}

static int bad_request_id(struct call *c, const struct value *v)
{
	return refuse_field(&c->error, "request_id",
			    "request_id must be string or integer, got: %s", nexus_type_name(v));
}

int nexus_request_id(struct call *c, const struct value *v, struct text *ret_id)
{
	int r;

	*ret_id = (struct text) {0};
	if (is_none(v))
		return 0;
	r = chat_wire_request_id(&c->arena, v, ret_id);
	return r > 0 ? bad_request_id(c, v) : r;
}

int nexus_ask_id(struct call *c, const struct value *v, struct chat_ask *ask)
{
	int r = chat_wire_ask_id(&c->arena, is_none(v) ? NULL : v, ask);

	return r > 0 ? bad_request_id(c, v) : r;
}
