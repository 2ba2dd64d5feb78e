/* koine discover: what a server says about its methods (rpc.discover, an OpenRPC document). */
#include <stdint.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/nearest.h"
#include "cli/kit/value.h"
#include "cli/server/server.h"

enum { INDENT = 4 };

static const struct koine_value *doc_line(const struct koine_value *v)
{
	const struct koine_value *summary = koine_value_get(v, "summary");

	return summary ? summary : koine_value_get(v, "description");
}

static bool is_required(const struct koine_value *param)
{
	return member_flag(param, "required");
}

/* "content [tags] [limit]", after `at` columns of `columns`. */
static void print_params(const struct koine_value *params, size_t at, size_t columns)
{
	const struct koine_value *p = koine_value_first(params);

	for (; p; p = koine_value_next(p)) {
		struct text name = member_text(p, "name");

		if (!name.data)
			continue;
		at += name.len + 3;
		if (at > columns) {
			printf("\n%*s", INDENT - 1, "");
			at = INDENT + name.len + 2;
		}
		fputs(is_required(p) ? " " : " [", stdout);
		print_text(stdout, name);
		fputs(is_required(p) ? "" : "]", stdout);
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
	const struct koine_value *m = koine_value_first(methods);

	for (; m; m = koine_value_next(m)) {
		struct text name = member_text(m, "name");

		print_style(cli, style_bold);
		print_text(stdout, name);
		print_plain(cli);
		print_params(koine_value_get(m, "params"), name.len, columns);
		fputc('\n', stdout);
		if (doc_line(m))
			print_doc(doc_line(m), columns);
	}
	return EX_OK;
}

static const struct koine_value *find_method(const struct koine_value *methods, const char *wanted)
{
	const struct koine_value *m = koine_value_first(methods);
	struct nearest n;

	nearest_init(&n, wanted);
	for (; m; m = koine_value_next(m)) {
		struct text name = member_text(m, "name");

		if (!name.data)
			continue;
		if (text_is(name, wanted))
			return m;
		nearest_offer(&n, name);
	}
	fprintf(stderr, "koine: the server has no method '%s'", wanted);
	if (n.name[0]) {
		fputs("; did you mean '", stderr);
		print_text(stderr, text_of(n.name));
		fputs("'?", stderr);
	}
	fputc('\n', stderr);
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

static void cell_required(const struct cell *c)
{
	table_cell_str(c->table, is_required(c->row) ? "required" : "optional");
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
		{"PARAMETER", "name"},           {"TYPE", "schema", cell_type},
		{"", "required", cell_required}, {"DEFAULT", "schema", cell_default},
		{"DESCRIPTION", NULL, cell_doc}, {NULL},
	};
	const struct list list = {.columns = columns, .wraps = true};
	const struct koine_value *params = koine_value_get(method, "params");

	print_text(stdout, member_text(method, "name"));
	fputs(doc_line(method) ? ": " : "", stdout);
	print_text(stdout, text_of_value(doc_line(method)));
	if (koine_value_first(params)) {
		fputs("\n\n", stdout);
		return list_print_as(cli, &list, params);
	}
	fputs("\n\nNo parameters.\n", stdout);
	return 0;
}

static int show(struct cli *cli, const struct koine_value *doc)
{
	const struct server_options *o = cli->own;
	const struct koine_value *methods = koine_value_get(doc, "methods");
	const struct koine_value *method = NULL;

	if (koine_value_kind(methods) != KOINE_ARRAY) {
		complain("rpc.discover did not return an OpenRPC document");
		return EX_PROTOCOL;
	}
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

int cmd_discover(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "rpc.discover", NULL, &a);

	return r != 0 ? r : show(cli, koine_answer_result(a));
}
