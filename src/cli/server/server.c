/*
 * koine call, wire, ping and discover: the commands for any server. doc/dialects/koine.md contains
 * what discover --markdown prints, and a test compares them.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/command.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"

/* ---- discover --markdown: a reference ---- */

struct server_options {
	bool markdown;
};

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
	for (EACH(v, first)) {
		fputs(v == first ? "" : bar, stdout);
		print_text(stdout, text_of_any(v));
	}
}

static void print_members(const struct koine_value *first, const char *bar)
{
	putchar('{');
	for (EACH(v, first)) {
		PRINT(stdout, v == first ? TEXT("\"") : TEXT(", \""), text_of_key(v), TEXT("\": "));
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
	PRINT(stdout, TEXT("| `"), p->name, TEXT("` | "));
	print_schema(p->schema, "\\|");
	fputs(" | ", stdout);
	if (given)
		PRINT(stdout, TEXT("`"), text_of_any(given), TEXT("`"));
	else
		fputs(p->required ? "required" : "", stdout);
	fputs(" | ", stdout);
	print_prose(p->doc);
	fputs(" |\n", stdout);
}

static void print_returned(const struct koine_value *schema)
{
	if (!koine_value_first(schema))
		return;
	fputs("\nResult: `", stdout);
	print_schema(schema, "|");
	fputs("`\n", stdout);
}

static void print_heading(const struct koine_value *row, const char *doc)
{
	PRINT(stdout, TEXT("\n### `"), member_text(row, "name"), TEXT("`\n\n"));
	print_prose(member_text(row, doc));
	putchar('\n');
}

static void print_method(const struct koine_value *m)
{
	const struct koine_value *first = member_first(m, "params");

	print_heading(m, "summary");
	for (EACH(v, first)) {
		const struct param p = {
			.name = member_text(v, "name"),
			.schema = koine_value_get(v, "schema"),
			.doc = member_text(v, "description"),
			.required = member_flag(v, "required"),
		};

		print_param(&p, v == first);
	}
	print_returned(koine_value_get(koine_value_get(m, "result"), "schema"));
}

/* ---- MCP ---- */

static void print_tool(const struct koine_value *tool)
{
	const struct koine_value *input = koine_value_get(tool, "inputSchema");
	const struct koine_value *first = member_first(input, "properties");

	print_heading(tool, "description");
	for (EACH(v, first)) {
		const struct param p = {
			.name = text_of_key(v),
			.schema = v,
			.doc = member_text(v, "description"),
			.required = value_has(koine_value_get(input, "required"), text_of_key(v)),
		};

		print_param(&p, v == first);
	}
	print_returned(koine_value_get(tool, "outputSchema"));
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

static int markdown_print(struct cli *cli, const struct koine_value *methods)
{
	fputs("## Methods\n", stdout);
	for (EACH(m, koine_value_first(methods)))
		print_method(m);
	print_tools(cli);
	return EX_OK;
}

/* ---- discover: an OpenRPC document ---- */

enum { INDENT = 4 };

static const struct koine_value *doc_line(const struct koine_value *v)
{
	const struct koine_value *summary = koine_value_get(v, "summary");

	return summary ? summary : koine_value_get(v, "description");
}

/* "content [tags] [limit]", after `at` columns of `columns`. */
static void print_params(const struct koine_value *params, size_t at, size_t columns)
{
	for (EACH(p, koine_value_first(params))) {
		struct text name = member_text(p, "name");

		if (!name.data)
			continue;
		at += name.len + 3;
		if (at > columns) {
			printf("\n%*s", INDENT - 1, "");
			at = INDENT + name.len + 2;
		}
		if (member_flag(p, "required"))
			PRINT(stdout, TEXT(" "), name);
		else
			PRINT(stdout, TEXT(" ["), name, TEXT("]"));
	}
}

static void print_doc(const struct koine_value *doc, size_t columns)
{
	printf("%*s", INDENT, "");
	print_wrapped(stdout, text_of_value(doc), NULL, columns - INDENT, INDENT, 0);
}

/* Two lines for each: some have more parameters than fit into a table. */
static int list_methods(const struct cli *cli, const struct koine_value *methods)
{
	size_t columns = cli->terminal ? terminal_columns() : SIZE_MAX;

	for (EACH(m, koine_value_first(methods))) {
		struct text name = member_text(m, "name");

		print_styled(cli, style_bold, name);
		print_params(koine_value_get(m, "params"), name.len, columns);
		fputc('\n', stdout);
		if (doc_line(m))
			print_doc(doc_line(m), columns);
	}
	return EX_OK;
}

static const struct koine_value *find_method(const struct koine_value *methods, const char *wanted)
{
	struct nearest n;

	nearest_init(&n, wanted);
	for (EACH(m, koine_value_first(methods))) {
		struct text name = member_text(m, "name");

		if (!name.data)
			continue;
		if (text_is(name, wanted))
			return m;
		nearest_offer(&n, name);
	}
	complain("the server has no method '%s'%s%s%s", wanted, n.name[0] ? "; did you mean '" : "",
		 n.name, n.name[0] ? "'?" : "");
	return NULL;
}

static void cell_type(const struct cell *c)
{
	const struct koine_value *type =
		koine_value_get(koine_value_get(c->row, c->member), "type");

	if (type)
		table_cell_value(c->table, type);
	else
		table_cell_str(c->table, "any");
}

static void cell_default(const struct cell *c)
{
	table_cell_value(c->table, koine_value_get(koine_value_get(c->row, c->member), "default"));
}

static void cell_doc(const struct cell *c)
{
	if (doc_line(c->row))
		table_cell_value(c->table, doc_line(c->row));
	else
		table_cell_str(c->table, "");
}

static int show_method(const struct cli *cli, const struct koine_value *method)
{
	static const struct column columns[] = {
		{"PARAMETER", "name"},
		{"TYPE", "schema", cell_type},
		{"", "required", .truth = {"optional", "required"}},
		{"DEFAULT", "schema", cell_default},
		{"DESCRIPTION", NULL, cell_doc},
		{NULL},
	};
	const struct cli_list list = {.columns = columns, .wraps = true};
	const struct koine_value *params = koine_value_get(method, "params");

	PRINT(stdout, member_text(method, "name"), doc_line(method) ? TEXT(": ") : TEXT(""),
	      text_of_value(doc_line(method)));
	if (koine_value_first(params)) {
		fputs("\n\n", stdout);
		return list_print_as(cli, &list, params);
	}
	fputs("\n\nNo parameters.\n", stdout);
	return 0;
}

static int server_show(struct cli *cli, const struct koine_value *doc)
{
	const struct server_options *o = cli->own;
	const struct koine_value *methods = koine_value_get(doc, "methods");
	const struct koine_value *method = NULL;

	if (koine_value_kind(methods) != KOINE_ARRAY)
		return fail_with(EX_PROTOCOL, "rpc.discover did not return an OpenRPC document");
	if (cli->n_args == 1) {
		method = find_method(methods, cli->args[0]);
		if (!method)
			return EXIT_ERROR_ANSWER;
	}
	if (cli->options.json) {
		print_json_compact(stdout, method ? method : doc);
		return EX_OK;
	}
	if (o->markdown)
		return markdown_print(cli, methods);
	return method ? show_method(cli, method) : list_methods(cli, methods);
}

static int cmd_discover(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "rpc.discover", NULL, &a);

	return r != 0 ? r : server_show(cli, koine_answer_result(a));
}

/* ---- wire: a call that shows its bytes ---- */

struct tap {
	bool out;    /* the direction of the current line */
	bool inside; /* it has begun and not ended */
	bool color;
	size_t matched; /* bytes of the current line that match `secret` */
	bool hides;     /* what follows them */
};

/* The line that contains a token starts with this. People show this output to others, so the
 * token is hidden. */
static const char secret[] = "Authorization: Bearer ";

static void begin_line(struct tap *tap, bool out)
{
	if (tap->color)
		fputs(out ? "\033[33m" : "\033[36m", stdout);
	fputs(out ? "> " : "< ", stdout);
	tap->out = out;
	tap->inside = true;
	tap->matched = 0;
	tap->hides = false;
}

static void end_line(struct tap *tap)
{
	if (!tap->inside)
		return;
	if (tap->color)
		fputs("\033[0m", stdout);
	fputc('\n', stdout);
	tap->inside = false;
}

/* True for a byte of the token; stars replace all of them. */
static bool hide(struct tap *tap, char byte)
{
	size_t len = strlen(secret);

	if (byte == '\r')
		tap->hides = false;
	if (tap->hides)
		return true;
	/* A line that has differed once cannot match any more. */
	if (tap->matched < len)
		tap->matched = byte == secret[tap->matched] ? tap->matched + 1 : len + 1;
	return false;
}

static void show_byte(struct tap *tap, char byte)
{
	if (hide(tap, byte))
		return;
	if (byte >= 0x20 && byte < 0x7f)
		fputc(byte, stdout);
	else
		printf("\\x%02x", (unsigned char)byte);
	if (tap->out && tap->matched == strlen(secret)) {
		fputs("***", stdout);
		tap->hides = true;
		tap->matched++;
	}
}

/* Bytes arrive in arbitrary pieces. A line is printed up to its end in the stream, or until the
 * other side begins. */
static void show_bytes(void *arg, bool out, const char *data, size_t len)
{
	struct tap *tap = arg;

	if (tap->out != out)
		end_line(tap);
	for (size_t i = 0; i < len; i++) {
		if (!tap->inside)
			begin_line(tap, out);
		if (data[i] == '\n')
			end_line(tap);
		else
			show_byte(tap, data[i]);
	}
	fflush(stdout);
}

static int cmd_wire(struct cli *cli)
{
	CLEANUP(freep) char *params = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct tap tap = {.color = cli->color};
	const char *method = args_take(cli);
	int r;

	talk_be_exact();
	r = args_params(cli, talk_is_gob(cli), &params)
		    ?: talk_dial(cli, show_bytes, &tap, &cli->client);
	if (r != 0)
		return r;
	r = koine_client_call(cli->client, method, params, &a);
	end_line(&tap);
	fflush(stdout);
	if (r != 0)
		r = talk_failed(cli->client, method, r, a);
	/* The tap is a local variable, and is called until the connection ends. */
	talk_hang_up(cli);
	return r;
}

/* ---- call and ping ---- */

static int print_result(const struct cli *cli, const struct koine_value *result)
{
	print_json_pretty(stdout, result, cli->color);
	return 0;
}

static int cmd_call(struct cli *cli)
{
	CLEANUP(freep) char *params = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const char *method = args_take(cli);
	int r;

	talk_be_exact();
	r = args_params(cli, talk_is_gob(cli), &params) ?: call_plain(cli, method, params, &a);
	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_result(cli, koine_answer_result(a));
	print_json_compact(stdout, koine_answer_result(a));
	return 0;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void print_pong(const struct cli *cli, const struct koine_value *result, double ms)
{
	struct text timestamp = member_text(result, "timestamp");

	printf("%s responded in %.3f ms", cli->address, ms);
	if (timestamp.data)
		PRINT(stdout, TEXT(", timestamp "), timestamp);
	fputc('\n', stdout);
}

/* The time is that of the call alone, without connecting. */
static int cmd_ping(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	double begin;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	begin = now_ms();
	r = call_plain(cli, "ping", NULL, &a);
	if (r == 0 && !print_if_json(cli, koine_answer_result(a)))
		print_pong(cli, koine_answer_result(a), now_ms() - begin);
	return r;
}

#define PARAMS_HELP                                                                                \
	"Parameters:\n"                                                                            \
	"  key=value     a string\n"                                                               \
	"  key:=JSON     a JSON value: n:=3, tags:='[\"a\",\"b\"]'\n"                              \
	"  {...} [...]   all parameters as JSON\n"                                                 \
	"  -             all parameters as JSON, read from stdin\n"                                \
	"With --framing gob the parameter may be any JSON value: koine call Arith.Double 21. "     \
	"See koine(1).\n"

static const struct option discover_options[] = {
	{"--markdown", NULL, NULL, "print a reference in Markdown, including koined's MCP tools",
	 option_flag, OPTION_AT(struct server_options, markdown)},
	{NULL},
};

const struct command server_commands[] = {
	{"ping", "", "Check that the server responds, and measure the response time",
	 "Other servers may not support ping. On the nexus port, use `koine conversation "
	 "tokens`.\n",
	 cmd_ping, NO_ARGS,
	 .examples = {"koine ping", "koine ping --url http://127.0.0.1:8080/rpc"}},
	{"call", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "Call a method and print its result",
	 PARAMS_HELP "\nThe result is indented JSON; with --json it is one line.\n", cmd_call,
	 ARGS(1, INT_MAX, "requires a method: koine call METHOD [key=value]..."),
	 .examples = {"koine call memory.search query=oslo limit:=3",
		      "koine call rpc.discover --url http://127.0.0.1:8080/rpc"}},
	{"discover", "[METHOD]", "List the methods of a server, or show one",
	 "Parameters in brackets are optional. With --json, koine prints the OpenRPC document, or "
	 "only its description of METHOD.\n",
	 cmd_discover, NULL, discover_options, sizeof(struct server_options),
	 ARGS(0, 1, "takes at most one method"),
	 .examples = {"koine discover", "koine discover task.add"}},
	{"wire", "METHOD [key=value | key:=JSON | JSON | -]...",
	 "Call a method and show the bytes sent and received",
	 PARAMS_HELP "\nSent lines begin with \"> \", received lines with \"< \". Bytes that are "
		     "not printable ASCII appear as \\xNN, and the token of --token-file as ***.\n",
	 cmd_wire, ARGS(1, INT_MAX, "requires a method: koine wire METHOD [key=value]..."),
	 .examples = {"koine wire ping", "koine wire memory.search query=oslo"}},
	{NULL},
};
