/* Tools: how they are listed, and how a call finds its tool. */

#include "mcp/inner.h"

/* ---- the schema that a row stands for ---- */

static const char *const types[] = {
	[FIELD_STRING] = "\"string\"", [FIELD_INT] = "\"integer\"",   [FIELD_NUMBER] = "\"number\"",
	[FIELD_BOOL] = "\"boolean\"",  [FIELD_OBJECT] = "\"object\"", [FIELD_ARRAY] = "\"array\"",
};

/* Some models and clients refuse a schema without a type, and an array without items. */
static const char any_item[] = "[\"string\",\"number\",\"boolean\",\"object\",\"null\"]";
static const char any_value[] = "[\"string\",\"number\",\"boolean\",\"object\",\"array\",\"null\"]";

static void write_type(struct json *j, const char *type)
{
	json_key(j, "type");
	json_raw(j, type, strlen(type));
}

static void write_items(struct json *j, enum field_type items)
{
	json_member_object(j, "items");
	write_type(j, types[items] ? types[items] : any_item);
	json_end_object(j);
}

static void write_words(struct json *j, const char *const *words)
{
	json_member_array(j, "enum");
	for (; *words; words++)
		json_str(j, *words);
	json_end_array(j);
}

static void write_kind(struct json *j, const struct field *f)
{
	write_type(j, types[f->type] ? types[f->type] : any_value);
	if (f->type == FIELD_ARRAY || f->type == FIELD_ANY)
		write_items(j, f->items);
	if (f->words)
		write_words(j, f->words);
}

static void write_default(struct json *j, const struct field *f)
{
	if (f->type == FIELD_STRING && f->default_text)
		json_member_str(j, "default", f->default_text);
	else if (f->type == FIELD_BOOL && f->default_number != 0)
		json_member_bool(j, "default", true);
	/* A negative default stands for "not given", which tells a client nothing. */
	else if ((f->type == FIELD_INT || f->type == FIELD_NUMBER) && f->default_number > 0)
		json_member_int(j, "default", f->default_number);
}

static void write_properties(struct json *j, const struct method *row)
{
	json_member_object(j, "properties");
	for (unsigned i = 0; i < row->n_fields; i++) {
		const struct field *f = &row->fields[i];

		json_member_object(j, f->name);
		write_kind(j, f);
		if (f->doc)
			json_member_str(j, "description", f->doc);
		if (!f->required)
			write_default(j, f);
		json_end_object(j);
	}
	json_end_object(j);
}

static bool any_required(const struct method *row)
{
	for (unsigned i = 0; i < row->n_fields; i++) {
		if (row->fields[i].required)
			return true;
	}
	return false;
}

static void write_schema(struct json *j, const struct method *row)
{
	json_begin_object(j);
	json_member_str(j, "type", "object");
	write_properties(j, row);
	if (any_required(row)) {
		json_member_array(j, "required");
		for (unsigned i = 0; i < row->n_fields; i++) {
			if (row->fields[i].required)
				json_str(j, row->fields[i].name);
		}
		json_end_array(j);
	}
	json_member_bool(j, "additionalProperties", false);
	json_end_object(j);
}

/* ---- the list ---- */

static void write_hints(struct json *j, unsigned hints)
{
	json_member_object(j, "annotations");
	json_member_bool(j, "readOnlyHint", hints & MCP_READ_ONLY);
	if (!(hints & MCP_READ_ONLY)) {
		json_member_bool(j, "destructiveHint", !(hints & MCP_HARMLESS));
		json_member_bool(j, "idempotentHint", hints & MCP_IDEMPOTENT);
	}
	json_member_bool(j, "openWorldHint", !(hints & MCP_CLOSED));
	json_end_object(j);
}

void mcp_write_tool(struct json *j, const struct mcp_entry *e)
{
	const struct mcp_tool *t = e->what;

	json_begin_object(j);
	json_member_str(j, "name", t->row.name);
	if (t->title)
		json_member_str(j, "title", t->title);
	json_member_str(j, "description", t->row.doc ? t->row.doc : "");
	json_key(j, "inputSchema");
	if (t->input_schema)
		json_raw(j, t->input_schema, strlen(t->input_schema));
	else
		write_schema(j, &t->row);
	if (t->output_schema) {
		json_key(j, "outputSchema");
		json_raw(j, t->output_schema, strlen(t->output_schema));
	}
	if (t->hints & ~(unsigned)MCP_TASK_ONLY)
		write_hints(j, t->hints);
	json_end_object(j);
}

/* ---- a call ---- */

static bool has_field(const struct method *row, const struct value *member)
{
	for (unsigned i = 0; i < row->n_fields; i++) {
		if (strlen(row->fields[i].name) == member->key_len &&
		    memcmp(row->fields[i].name, member->key, member->key_len) == 0)
			return true;
	}
	return false;
}

/* Where the schema is ours it says that nothing else is taken, and a model's slip shows. */
static int check_names(struct mcp_call *mc)
{
	const struct method *row = &mc->tool->row;

	if (mc->tool->input_schema || !mc->arguments)
		return 0;
	value_each (member, mc->arguments) {
		if (!has_field(row, member))
			return refuse_name(&mc->call->error, REFUSE_PARAMS, "unknown argument: ",
					   (struct text) {member->key, member->key_len});
	}
	return 0;
}

int mcp_read_arguments(struct mcp_call *mc)
{
	const struct value *v = value_find(mc->call->request.params, "arguments");

	if (v && v->kind == VALUE_NULL)
		v = NULL;
	if (v && v->kind != VALUE_OBJECT)
		return refuse_field(&mc->call->error, "arguments",
				    "arguments must be an object, not %s", value_kind_name(v));
	mc->arguments = v;
	return 0;
}

int mcp_open_tool(struct mcp_call *mc)
{
	struct call *c = mc->call;
	const struct mcp_entry *e;
	int r = mcp_text_param(mc, "name", &mc->name) ?: mcp_read_arguments(mc);

	if (r != 0)
		return r;
	e = mcp_find_tool(mc->mcp, mc->name);
	if (!e || (mc->mcp->opts.offers && !mc->mcp->opts.offers(c, e->what)))
		return refuse_name(&c->error, REFUSE_PARAMS, "tool not found: ", mc->name);
	mc->tool = e->what;
	r = mcp_check_param_headers(mc, e->schema)
			?: mcp_check_task_only(mc)
			?: mcp_read_answers(mc);
	if (r != 0)
		return r;
	/* From here on a refusal is the tool's. */
	mc->kind = MCP_TOOL;
	c->method = &mc->tool->row;
	c->request.params = mc->arguments;
	return check_names(mc);
}
