/*
 * Parameters as people type them:
 *
 *	key=value    a string
 *	key:=JSON    anything
 *	{...} [...]  all of them at once; for Go any JSON, which may be a number alone
 *	-            the same, from stdin
 */
#include "cli/kit/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/lines.h"
#include "cli/kit/print.h"

enum { STDIN_MAX = 64 << 20 };

static const struct command *command_of(const struct cli *cli)
{
	return cli->sub ? cli->sub : cli->command;
}

int args_check(const struct cli *cli)
{
	const struct command *c = command_of(cli);

	if (!c->wants || (cli->n_args >= c->least && cli->n_args <= c->most))
		return 0;
	return args_refuse(cli);
}

int args_refuse(const struct cli *cli)
{
	return fail_with(EX_USAGE, "%s%s%s %s", cli->command->name, cli->sub ? " " : "",
			 cli->sub ? cli->sub->name : "", command_of(cli)->wants);
}

const char *args_take(struct cli *cli)
{
	cli->n_args--;
	return *cli->args++;
}

/* Reports where it is not JSON. */
static int check_json(const char *what, struct text json, enum koine_kind *ret_kind)
{
	struct koine_doc *doc = NULL;
	char error[256];
	int r = koine_doc_parse(json.data, json.len, &doc, error, sizeof(error));

	if (r < 0)
		return out_of_memory();
	if (r > 0)
		return fail_with(EX_DATAERR, "%s is not JSON: %s", what, error);
	*ret_kind = koine_value_kind(koine_doc_root(doc));
	koine_doc_free(doc);
	return 0;
}

static int whole(const char *what, struct text json, bool is_any, char **ret_params)
{
	enum koine_kind kind = KOINE_NULL;
	int r = check_json(what, json, &kind);

	if (r != 0)
		return r;
	if (!is_any && kind != KOINE_OBJECT && kind != KOINE_ARRAY)
		return fail_with(EX_DATAERR, "%s must be an object or an array", what);
	*ret_params = strndup(json.data, json.len);
	return *ret_params ? 0 : out_of_memory();
}

int args_stdin(struct buf *all)
{
	int r = lines_read_all(STDIN_FILENO, all);

	if (r == 0 || r == all->err)
		return 0;
	return fail_with(EX_NOINPUT, "cannot read stdin: %s", strerror(-r));
}

bool args_confirm(const char *question)
{
	char line[16];

	printf("%s [y/N] ", question);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

void args_join(const struct cli *cli, struct buf *all)
{
	for (int i = 0; i < cli->n_args; i++) {
		buf_add_str(all, i > 0 ? " " : "");
		buf_add_str(all, cli->args[i]);
	}
}

bool args_is_stdin(const struct cli *cli)
{
	return cli->n_args == 1 && strcmp(cli->args[0], "-") == 0;
}

int args_text(const struct cli *cli, struct buf *all)
{
	if (args_is_stdin(cli))
		return args_stdin(all);
	args_join(cli, all);
	return 0;
}

static int from_stdin(bool is_any, char **ret_params)
{
	CLEANUP(buf_donep) struct buf all;
	int r;

	buf_init(&all, STDIN_MAX);
	r = args_stdin(&all);
	if (r != 0)
		return r;
	if (all.err != 0)
		return fail_with(EX_DATAERR, "cannot read stdin: %s", strerror(-all.err));
	return whole("stdin", buf_text(&all), is_any, ret_params);
}

static int add_pair(struct koine_json *j, const char *arg)
{
	const char *equals = strchr(arg, '=');
	bool is_json = equals && equals > arg && equals[-1] == ':';
	size_t key_len = equals ? (size_t)(equals - arg) - is_json : 0;
	CLEANUP(freep) char *key = NULL;
	enum koine_kind kind;
	int r;

	if (key_len == 0)
		return fail_with(EX_USAGE,
				 "invalid parameter '%s': expected key=value or key:=JSON", arg);
	key = strndup(arg, key_len);
	if (!key)
		return out_of_memory();
	koine_json_key(j, key);
	if (!is_json) {
		koine_json_string(j, equals + 1);
		return 0;
	}
	r = check_json(key, text_of(equals + 1), &kind);
	if (r == 0)
		koine_json_raw(j, equals + 1, strlen(equals + 1));
	return r;
}

/* Whether the argument is all parameters at once, rather than one of them. */
static bool is_whole(const char *arg, bool is_any)
{
	return arg[0] != '\0' &&
	       (strchr("{[", arg[0]) || (is_any && !strchr(arg, '=')) || (is_any && arg[0] == '"'));
}

int args_params(const struct cli *cli, bool is_any, char **ret_params)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

	*ret_params = NULL;
	if (cli->n_args == 0)
		return 0;
	if (args_is_stdin(cli))
		return from_stdin(is_any, ret_params);
	if (cli->n_args == 1 && is_whole(cli->args[0], is_any))
		return whole("the parameters", text_of(cli->args[0]), is_any, ret_params);
	if (koine_json_new(&j) != 0)
		return out_of_memory();
	koine_json_begin_object(j);
	for (int i = 0; i < cli->n_args; i++) {
		int r = add_pair(j, cli->args[i]);

		if (r != 0)
			return r;
	}
	koine_json_end_object(j);
	text = koine_json_text(j, NULL);
	*ret_params = text ? strdup(text) : NULL;
	return *ret_params ? 0 : out_of_memory();
}

int args_folder(const struct cli *cli, const char *option, const char *given, char path[PATH_MAX])
{
	path[0] = '\0';
	if (!given && cli->options.url)
		return 0;
	if (realpath(given ? given : ".", path))
		return 0;
	return fail_with(EX_NOINPUT, "%s %s: %s", option, given ? given : ".", strerror(errno));
}
