/*
 * koine discover --markdown: the reference of a server's methods, and of its MCP tools if it is
 * koined. doc/dialects/koine.md contains this text, and a test compares them.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/server/server.h"

/* A request of this form makes the connection one of MCP (2026-07-28). */
static const char mcp_meta[] =
	"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
	"\"io.modelcontextprotocol/clientCapabilities\":{}}}";

/* One parameter: a row of OpenRPC's, or a property of a tool's input. */
struct param {
	struct text name;
	const struct koine_value *schema;
	struct text doc;
	bool required;
};

/* Text of a paragraph or a cell, without what Markdown would take for markup. */
static void print_prose(struct text t)
{
	while (t.len > 0) {
		struct text plain = {.data = t.data};

		while (plain.len < t.len && !strchr("|*<", t.data[plain.len]))
			plain.len++;
		print_text(stdout, plain);
		if (plain.len == t.len)
			return;
		printf("\\%c", t.data[plain.len]);
		t = text_skip(t, plain.len + 1);
	}
}

/* ---- a JSON schema in short: {"id": string, "state": queued|running} ---- */

static void print_schema(const struct koine_value *schema, const char *bar);

static void print_choices(const struct koine_value *first, const char *bar)
{
	for (const struct koine_value *v = first; v; v = koine_value_next(v)) {
		fputs(v == first ? "" : bar, stdout);
		print_text(stdout, text_of_any(v));
	}
}

static void print_members(const struct koine_value *first, const char *bar)
{
	putchar('{');
	for (const struct koine_value *v = first; v; v = koine_value_next(v)) {
		fputs(v == first ? "\"" : ", \"", stdout);
		print_text(stdout, text_of_key(v));
		fputs("\": ", stdout);
		print_schema(v, bar);
	}
	putchar('}');
}

static void print_schema(const struct koine_value *schema, const char *bar)
{
	const struct koine_value *type = koine_value_get(schema, "type");
	const struct koine_value *items = koine_value_get(schema, "items");

	if (member_first(schema, "enum")) {
		print_choices(member_first(schema, "enum"), bar);
	} else if (koine_value_get(schema, "const")) {
		print_text(stdout, text_of_any(koine_value_get(schema, "const")));
	} else if (member_first(schema, "properties")) {
		print_members(member_first(schema, "properties"), bar);
	} else if (items) {
		putchar('[');
		print_schema(items, bar);
		putchar(']');
	} else if (koine_value_first(type)) {
		print_choices(koine_value_first(type), bar);
	} else {
		print_text(stdout, type ? text_of_value(type) : TEXT("any"));
	}
}

/* ---- parameters ---- */

static void print_param(const struct param *p, bool first)
{
	const struct koine_value *given = koine_value_get(p->schema, "default");

	if (first)
		fputs("\n| parameter | type | default | |\n|---|---|---|---|\n", stdout);
	fputs("| `", stdout);
	print_text(stdout, p->name);
	fputs("` | ", stdout);
	print_schema(p->schema, "\\|");
	fputs(" | ", stdout);
	if (given) {
		putchar('`');
		print_text(stdout, text_of_any(given));
		putchar('`');
	} else {
		fputs(p->required ? "required" : "", stdout);
	}
	fputs(" | ", stdout);
	print_prose(p->doc);
	fputs(" |\n", stdout);
}

static void print_result(const struct koine_value *schema)
{
	if (!koine_value_first(schema))
		return;
	fputs("\nResult: `", stdout);
	print_schema(schema, "|");
	fputs("`\n", stdout);
}

static void print_heading(const struct koine_value *row, const char *doc)
{
	fputs("\n### `", stdout);
	print_text(stdout, member_text(row, "name"));
	fputs("`\n\n", stdout);
	print_prose(member_text(row, doc));
	putchar('\n');
}

static void print_method(const struct koine_value *m)
{
	const struct koine_value *first = member_first(m, "params");

	print_heading(m, "summary");
	for (const struct koine_value *v = first; v; v = koine_value_next(v)) {
		const struct param p = {
			.name = member_text(v, "name"),
			.schema = koine_value_get(v, "schema"),
			.doc = member_text(v, "description"),
			.required = member_flag(v, "required"),
		};

		print_param(&p, v == first);
	}
	print_result(koine_value_get(koine_value_get(m, "result"), "schema"));
}

/* ---- MCP ---- */

static bool is_required(const struct koine_value *input, struct text name)
{
	const struct koine_value *v = member_first(input, "required");

	while (v && !text_equal(text_of_value(v), name))
		v = koine_value_next(v);
	return v != NULL;
}

static void print_tool(const struct koine_value *tool)
{
	const struct koine_value *input = koine_value_get(tool, "inputSchema");
	const struct koine_value *first = member_first(input, "properties");

	print_heading(tool, "description");
	for (const struct koine_value *v = first; v; v = koine_value_next(v)) {
		const struct param p = {
			.name = text_of_key(v),
			.schema = v,
			.doc = member_text(v, "description"),
			.required = is_required(input, text_of_key(v)),
		};

		print_param(&p, v == first);
	}
	print_result(koine_value_get(tool, "outputSchema"));
}

/* Other servers have no tools; that is no error. */
static void print_tools(struct cli *cli)
{
	CLEANUP(client_freep) struct koine_client *mcp = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char error[TALK_ERROR];
	const struct koine_value *v;

	if (talk_try(cli, &mcp, error) != 0 ||
	    koine_client_call(mcp, "tools/list", mcp_meta, &a) != 0)
		return;
	v = member_first(koine_answer_result(a), "tools");
	if (v)
		fputs("\n## MCP tools\n", stdout);
	for (; v; v = koine_value_next(v))
		print_tool(v);
}

int markdown_print(struct cli *cli, const struct koine_value *methods)
{
	fputs("## Methods\n", stdout);
	for (const struct koine_value *m = koine_value_first(methods); m; m = koine_value_next(m))
		print_method(m);
	print_tools(cli);
	return EX_OK;
}
