/*
 * Parameters and envelopes, read as Go's encoding/json reads them: names match in any case,
 * null leaves a field as it is, the last of equal names wins, and the first value of a wrong
 * type is refused in Go's words.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "call/client.h"
#include "dialect/hld/hld.h"
#include "wire/json.h"

enum { NUMBER_SHOWN = 40 }; /* characters of a number that are quoted */

/* ---- the envelope ---- */

int hld_explain_envelope(enum jsonrpc_fault fault, const struct value *v, struct error *error)
{
	switch (fault) {
	case JSONRPC_NO_VERSION:
		return refuse(error, REFUSE_REQUEST, "Invalid request: must be JSON-RPC 2.0");
	case JSONRPC_NO_METHOD:
		/* Go cannot decode any other type; null and "" give it an empty name. */
		if (v && v->kind != VALUE_STRING && v->kind != VALUE_NULL)
			return refuse(error, REFUSE_PARSE, "method must be a string");
		return refuse(error, REFUSE_METHOD, "%s", "");
	case JSONRPC_NOT_OBJECT:
	case JSONRPC_BAD_PARAMS:
	case JSONRPC_POSITIONAL:
	case JSONRPC_BAD_ID:
		break;
	}
	return refuse(error, REFUSE_REQUEST, "Invalid request");
}

/* ---- Go's words ---- */

static const char *kind_word(const struct value *v)
{
	return v->kind == VALUE_TRUE || v->kind == VALUE_FALSE ? "bool" : value_kind_name(v);
}

/* For launchSession it is LaunchSessionRequest. */
static void request_type(const struct method *m, char out[64])
{
	snprintf(out, 64, "%c%sRequest", m->name[0] & ~0x20, m->name + 1);
}

/* "WHATjson: cannot unmarshal KIND into Go struct field STRUCT.PATH of type TYPE" */
static int cannot(struct error *error, const char *what, const struct value *v, const char *field,
		  const char *type)
{
	return refuse(error, REFUSE_PARAMS,
		      "%sjson: cannot unmarshal %s into Go struct field %s of type %s", what,
		      kind_word(v), field, type);
}

static int cannot_number(struct error *error, const struct value *v, const char *field)
{
	return refuse(
		error, REFUSE_PARAMS,
		"invalid request: json: cannot unmarshal number %.*s into Go struct field %s of "
		"type int",
		(int)(v->len < NUMBER_SHOWN ? v->len : NUMBER_SHOWN), v->text, field);
}

/* ---- MCP servers ---- */

static bool is_kind(const struct value *v, enum value_kind kind)
{
	return v->kind == kind || v->kind == VALUE_NULL;
}

/* Finds the first child that is not a string. */
static const struct value *not_text(const struct value *v)
{
	value_each (child, v) {
		if (!is_kind(child, VALUE_STRING))
			return child;
	}
	return NULL;
}

struct mcp_field {
	const char *name;
	enum value_kind kind;
	const char *type;
};

static int check_server(const struct value *server, const char *what, const char *path,
			struct error *error)
{
	static const struct mcp_field fields[] = {
		{"command", VALUE_STRING, "string"},
		{"args", VALUE_ARRAY, "[]string"},
		{"env", VALUE_OBJECT, "map[string]string"},
	};

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct value *v = value_find(server, fields[i].name);
		const struct value *bad;
		char field[96];

		snprintf(field, sizeof(field), "MCPServer.%smcpServers.%s", path, fields[i].name);
		if (!v || v->kind == VALUE_NULL)
			continue;
		if (!is_kind(v, fields[i].kind))
			return cannot(error, what, v, field, fields[i].type);
		bad = v->kind == VALUE_STRING ? NULL : not_text(v);
		if (bad)
			return cannot(error, what, bad, field, "string");
	}
	return 0;
}

int hld_check_mcp(const struct value *config, const char *what, const char *path,
		  struct error *error)
{
	const struct value *servers = value_find(config, "mcpServers");
	char field[64];
	int r = 0;

	snprintf(field, sizeof(field), "MCPConfig.%smcpServers", path);
	if (!servers || servers->kind == VALUE_NULL)
		return 0;
	if (servers->kind != VALUE_OBJECT)
		return cannot(error, what, servers, field, "map[string]claudecode.MCPServer");
	value_each (server, servers) {
		if (!is_kind(server, VALUE_OBJECT))
			return cannot(error, what, server, field, "claudecode.MCPServer");
		if (server->kind == VALUE_OBJECT)
			r = check_server(server, what, path, error);
		if (r != 0)
			return r;
	}
	return 0;
}

#define BAD_MCP "invalid mcp_config JSON: "

/* Says what people get wrong most often in Go's words. */
static int not_json(struct text json, const struct error *found, struct error *error)
{
	size_t at = 0;

	while (at < json.len && memchr(" \t\r\n", json.data[at], 4))
		at++;
	if (at == json.len)
		return refuse(error, REFUSE_PARAMS, BAD_MCP "unexpected end of JSON input");
	if (!memchr("{[\"-0123456789tfn", json.data[at], 17) && json.data[at] > ' ' &&
	    json.data[at] < 0x7f)
		return refuse(error, REFUSE_PARAMS,
			      BAD_MCP "invalid character '%c' looking for beginning of value",
			      json.data[at]);
	return refuse(error, REFUSE_PARAMS, BAD_MCP "%.150s", found->text);
}

int hld_read_mcp(struct arena *a, struct text json, const struct value **ret_config,
		 struct error *error)
{
	struct error found = {.text = ""};
	struct value *config;
	int r = json_read(a, json.data, json.len, &json_default_limits, &config, &found);

	if (r < 0)
		return r;
	if (r > 0)
		return not_json(json, &found, error);
	if (!is_kind(config, VALUE_OBJECT))
		return refuse(
			error, REFUSE_PARAMS,
			BAD_MCP
			"json: cannot unmarshal %s into Go value of type claudecode.MCPConfig",
			kind_word(config));
	r = hld_check_mcp(config, BAD_MCP, "", error);
	if (r == 0)
		*ret_config = config->kind == VALUE_OBJECT ? config : NULL;
	return r;
}

/* ---- members ---- */

static const char invalid[] = "invalid request: ";

static const struct field *find_field(const struct method *m, const struct value *member)
{
	const struct field *found = NULL;

	for (unsigned i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];

		if (strlen(f->name) != member->key_len ||
		    strncasecmp(f->name, member->key, member->key_len) != 0)
			continue;
		if (memcmp(f->name, member->key, member->key_len) == 0)
			return f;
		found = f;
	}
	return found;
}

static int set_tools(const struct value *v, const char *name, void *slot, struct error *error)
{
	const struct value *bad = v->kind == VALUE_ARRAY ? not_text(v) : NULL;

	if (v->kind != VALUE_ARRAY)
		return cannot(error, invalid, v, name, "[]string");
	if (bad)
		return cannot(error, invalid, bad, name, "string");
	*(const struct value **)slot = v;
	return 0;
}

static int set_member(const struct field *f, const struct value *v, const char *name, void *slot,
		      struct error *error)
{
	switch (f->type) {
	case FIELD_STRING:
		if (v->kind != VALUE_STRING)
			return cannot(error, invalid, v, name, "string");
		*(struct text *)slot = value_text(v);
		return 0;
	case FIELD_INT:
	case FIELD_NUMBER:
		if (v->kind != VALUE_NUMBER)
			return cannot(error, invalid, v, name, "int");
		return value_int(v, slot) ? 0 : cannot_number(error, v, name);
	case FIELD_BOOL:
		if (v->kind != VALUE_TRUE && v->kind != VALUE_FALSE)
			return cannot(error, invalid, v, name, "bool");
		*(bool *)slot = v->kind == VALUE_TRUE;
		return 0;
	case FIELD_ARRAY:
		return set_tools(v, name, slot, error);
	case FIELD_OBJECT:
		if (v->kind != VALUE_OBJECT)
			return cannot(error, invalid, v, name, "claudecode.MCPConfig");
		*(const struct value **)slot = v;
		return hld_check_mcp(v, invalid, "mcp_config.", error);
	case FIELD_ANY:
		break;
	}
	*(const struct value **)slot = v;
	return 0;
}

static int set_members(struct call *c, void *in)
{
	const struct method *m = c->method;
	char type[64];
	char name[128];

	request_type(m, type);
	value_each (member, c->request.params) {
		const struct field *f = find_field(m, member);
		int r;

		/* null means absent, except where any type is allowed. */
		if (!f || (member->kind == VALUE_NULL && f->type != FIELD_ANY))
			continue;
		snprintf(name, sizeof(name), "%s.%s", type, f->name);
		r = set_member(f, member, name, (char *)in + f->offset, &c->error);
		if (r != 0)
			return r;
		c->given[f - m->fields] = member;
	}
	return 0;
}

static int decode(struct call *c)
{
	const struct method *m = c->method;
	const struct value *params = c->request.params;
	char type[64];
	void *in = arena_zalloc(&c->arena, m->in_size + 1);

	c->given = arena_zalloc(&c->arena, (m->n_fields + 1) * sizeof(c->given[0]));
	if (!in || !c->given)
		return -ENOMEM;
	c->in = in;
	request_type(m, type);
	if (!params)
		return 0;
	if (!is_kind(params, VALUE_OBJECT))
		return refuse(&c->error, REFUSE_PARAMS,
			      "%sjson: cannot unmarshal %s into Go value of type rpc.%s", invalid,
			      kind_word(params), type);
	return params->kind == VALUE_OBJECT ? set_members(c, in) : 0;
}

int hld_decode(struct call *c)
{
	int r = decode(c);

	/* A client whose subscription fails gets no other answer either. */
	if (r != 0 && c->method->handle == hld_subscribe) {
		client_deafen(c->client);
		client_end(c->client);
	}
	return r;
}
