#include "wire/jsonrpc.h"

#include <strings.h>

static const char begin_result[] = "{\"jsonrpc\":\"2.0\",\"result\":";
static const char begin_id[] = "{\"jsonrpc\":\"2.0\",\"id\":";
static const char begin_error[] = "{\"jsonrpc\":\"2.0\",\"error\":";

#define ADD(out, literal) buf_add(out, literal, sizeof(literal) - 1)

static int jsonrpc_say(struct error *error, const char *words)
{
	return refuse(error, REFUSE_REQUEST, "%s", words ? words : "Invalid Request");
}

static int wrong(const struct jsonrpc_rules *rules, enum jsonrpc_fault fault, const struct value *v,
		 struct error *error)
{
	if (rules->explain)
		return rules->explain(fault, v, error);
	switch (fault) {
	case JSONRPC_NOT_OBJECT:
		return jsonrpc_say(error, rules->not_object);
	case JSONRPC_NO_VERSION:
		return jsonrpc_say(error, rules->no_version);
	case JSONRPC_NO_METHOD:
		return jsonrpc_say(error, rules->no_method);
	case JSONRPC_BAD_PARAMS:
		return jsonrpc_say(error, rules->bad_params);
	case JSONRPC_POSITIONAL:
		return refuse(error, REFUSE_PARAMS,
			      "Positional params (array) not supported, use named params (object)");
	case JSONRPC_BAD_ID:
		break;
	}
	return jsonrpc_say(error, rules->bad_id);
}

struct envelope {
	const struct value *jsonrpc;
	const struct value *method;
	const struct value *params;
	const struct value *id;
};

static inline bool key_is(const struct value *v, const char *key, size_t len, bool any_case)
{
	return memcmp(v->key, key, len) == 0 || (any_case && strncasecmp(v->key, key, len) == 0);
}

/* Each member is looked at once; of equal names the last wins. */
static void open_envelope(const struct jsonrpc_rules *rules, const struct value *v,
			  struct envelope *e)
{
	bool any = rules->flags & JSONRPC_ANY_CASE;

	value_each (member, v) {
		switch (member->key_len) {
		case 2:
			if (key_is(member, "id", 2, any))
				e->id = member;
			break;
		case 6:
			if (key_is(member, "method", 6, any))
				e->method = member;
			else if (key_is(member, "params", 6, any))
				e->params = member;
			break;
		case 7:
			if (key_is(member, "jsonrpc", 7, any))
				e->jsonrpc = member;
			break;
		}
	}
}

static bool id_allowed(const struct jsonrpc_rules *rules, const struct value *id)
{
	if (!id || (rules->flags & JSONRPC_ANY_ID))
		return true;
	return id->kind == VALUE_STRING || id->kind == VALUE_NUMBER || id->kind == VALUE_NULL;
}

static bool is_silent(const struct jsonrpc_rules *rules, const struct value *id)
{
	if (!id)
		return !(rules->flags & JSONRPC_NO_SILENCE);
	return id->kind == VALUE_NULL && (rules->flags & JSONRPC_NULL_ID_SILENT);
}

static bool params_count(const struct jsonrpc_rules *rules, const struct value *params)
{
	if (rules->flags & JSONRPC_PARAMS_LOOSE)
		return params->kind == VALUE_OBJECT;
	return params->kind != VALUE_NULL || (rules->flags & JSONRPC_PARAMS_ANY);
}

static int check_params(const struct jsonrpc_rules *rules, const struct value *params,
			struct error *error)
{
	if (!params || params->kind == VALUE_OBJECT || (rules->flags & JSONRPC_PARAMS_ANY))
		return 0;
	if (params->kind != VALUE_ARRAY && (rules->flags & JSONRPC_PARAMS_WRONG))
		return refuse(error, REFUSE_PARAMS, "params must be an object, not %s",
			      value_kind_name(params));
	if (params->kind != VALUE_ARRAY)
		return wrong(rules, JSONRPC_BAD_PARAMS, params, error);
	if (rules->flags & JSONRPC_NO_POSITIONAL)
		return wrong(rules, JSONRPC_POSITIONAL, params, error);
	return 0;
}

static int check_envelope(const struct jsonrpc_rules *rules, const struct envelope *e,
			  struct jsonrpc_request *ret, struct error *error)
{
	int r;

	if (!e->jsonrpc || !text_is(value_text(e->jsonrpc), "2.0"))
		return wrong(rules, JSONRPC_NO_VERSION, e->jsonrpc, error);
	if (!e->method || e->method->kind != VALUE_STRING || e->method->len == 0)
		return wrong(rules, JSONRPC_NO_METHOD, e->method, error);
	ret->method = value_text(e->method);
	if (e->params && params_count(rules, e->params))
		ret->params = e->params;
	r = check_params(rules, ret->params, error);
	if (r != REFUSE_REQUEST && !id_allowed(rules, e->id))
		return wrong(rules, JSONRPC_BAD_ID, e->id, error);
	return r;
}

int jsonrpc_read(const struct jsonrpc_rules *rules, const struct value *v,
		 struct jsonrpc_request *ret, struct error *error)
{
	struct envelope e = {0};
	int r;

	*ret = (struct jsonrpc_request) {0};
	if (v->kind != VALUE_OBJECT)
		return wrong(rules, JSONRPC_NOT_OBJECT, v, error);
	open_envelope(rules, v, &e);
	if (e.id && id_allowed(rules, e.id))
		ret->id = (struct text) {.data = e.id->raw, .len = e.id->raw_len};
	r = check_envelope(rules, &e, ret, error);
	/* Only a valid request can be a notification: anything else is answered, with id null. */
	ret->silent = r != REFUSE_REQUEST && r != REFUSE_PARSE && is_silent(rules, e.id);
	if (r == REFUSE_PARSE || (r == REFUSE_REQUEST && (rules->flags & JSONRPC_FAULT_NULL_ID)))
		ret->id = (struct text) {0};
	return r;
}

static void add_id(struct buf *out, struct text id)
{
	if (id.data)
		buf_add(out, id.data, id.len);
	else
		ADD(out, "null");
}

/* Leaves the writer where a value must follow. */
static void jsonrpc_begin(const struct jsonrpc_rules *rules, struct json *j, struct text id,
			  bool error)
{
	struct buf *out = j->out;

	if (rules->flags & JSONRPC_ID_SECOND) {
		ADD(out, begin_id);
		add_id(out, id);
		if (error)
			ADD(out, ",\"error\":");
		else
			ADD(out, ",\"result\":");
	} else if (error) {
		ADD(out, begin_error);
	} else {
		ADD(out, begin_result);
	}
	j->comma = false;
}

static void jsonrpc_end(const struct jsonrpc_rules *rules, struct json *j, struct text id)
{
	if (!(rules->flags & JSONRPC_ID_SECOND)) {
		ADD(j->out, ",\"id\":");
		add_id(j->out, id);
	}
	buf_add_char(j->out, '}');
	j->comma = true;
	if (rules->flags & JSONRPC_HTML_SAFE)
		json_escape_html(j->out);
}

void jsonrpc_begin_result(const struct jsonrpc_rules *rules, struct json *j, struct text id)
{
	jsonrpc_begin(rules, j, id, false);
}

void jsonrpc_end_result(const struct jsonrpc_rules *rules, struct json *j, struct text id)
{
	jsonrpc_end(rules, j, id);
}

void jsonrpc_write_error(const struct jsonrpc_rules *rules, struct json *j, struct text id,
			 int64_t code, struct text message, struct text data)
{
	jsonrpc_begin(rules, j, id, true);
	json_begin_object(j);
	json_member_int(j, "code", code);
	json_member_text(j, "message", message);
	if (data.data) {
		json_key(j, "data");
		json_raw(j, data.data, data.len);
	}
	json_end_object(j);
	jsonrpc_end(rules, j, id);
}

void jsonrpc_write_request(struct json *j, struct text method, struct text params, struct text id)
{
	json_begin_object(j);
	json_member_str(j, "jsonrpc", "2.0");
	json_member_text(j, "method", method);
	if (params.data) {
		json_key(j, "params");
		json_raw(j, params.data, params.len);
	}
	if (id.data) {
		json_key(j, "id");
		json_raw(j, id.data, id.len);
	}
	json_end_object(j);
}
