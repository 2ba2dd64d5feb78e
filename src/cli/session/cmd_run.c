/* koine session run and continue. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/session/session.h"
#include "cli/task/task.h"

enum { QUERY_MAX = 16 << 20 };

static int gather(const struct cli *cli, struct buf *all)
{
	int r;

	if (cli->n_args == 0) {
		complain("session %s wants a QUERY, or - for stdin", cli->sub->name);
		return EX_USAGE;
	}
	r = params_words(cli, all);
	if (r != 0 || (all->err == 0 && all->len > 0))
		return r;
	if (all->err != 0)
		complain("the query is longer than %d bytes", QUERY_MAX);
	else
		complain("the query is empty");
	return EX_DATAERR;
}

/* One that is continued stays where it was. */
static int add_folder(const struct cli *cli, struct koine_json *j, bool here)
{
	const char *given = cli->options.session.cwd;
	char path[PATH_MAX] = "";
	int r = given || here ? params_folder(cli, "--cwd", given, path) : 0;

	session_add_text(j, "working_dir", path[0] ? path : NULL);
	return r;
}

static void add_tools(struct koine_json *j, const char *key, const char *const *tools, unsigned n)
{
	if (n == 0)
		return;
	koine_json_key(j, key);
	koine_json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		koine_json_string(j, tools[i]);
	koine_json_end_array(j);
}

static void add_options(struct koine_json *j, const struct session_options *o)
{
	session_add_text(j, "model", o->model);
	session_add_text(j, "agent", o->agent);
	session_add_text(j, "title", o->title);
	session_add_text(j, "system_prompt", o->system_prompt);
	session_add_text(j, "append_system_prompt", o->append_system_prompt);
	if (o->max_turns > 0) {
		koine_json_key(j, "max_turns");
		koine_json_int(j, o->max_turns);
	}
	add_tools(j, "allowed_tools", o->allow, o->n_allow);
	add_tools(j, "disallowed_tools", o->deny, o->n_deny);
}

/* With --follow stdout is for what is said. */
static void say_launched(const struct cli *cli, const struct koine_value *launched,
			 char id[SESSION_ID_MAX])
{
	bool follow = cli->options.session.follow;
	FILE *out = follow ? stderr : stdout;

	session_member(launched, "id", id, SESSION_ID_MAX);
	if (cli->options.json && !follow) {
		print_json_compact(stdout, launched);
	} else {
		fputs(follow ? "koine: session " : "", out);
		print_text(out, id, strlen(id));
		fputc('\n', out);
	}
	fflush(out);
}

/* parent NULL: a new one. */
static int launch(struct cli *cli, const char *parent, const struct buf *query)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const char *method = parent ? "session.continue" : "session.launch";
	struct koine_client *c = NULL;
	struct koine_json *j = session_params();
	char id[SESSION_ID_MAX];
	int status = 0;
	int r = j ? add_folder(cli, j, !parent) : EX_SOFTWARE;

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r != 0) {
		koine_json_free(j);
		return r;
	}
	session_add_text(j, "id", parent);
	koine_json_key(j, "query");
	koine_json_text_n(j, query->data ? query->data : "", query->len);
	add_options(j, &cli->options.session);
	r = session_send(c, method, j, &a);
	if (r == 0)
		say_launched(cli, koine_answer_result(a), id);
	if (r == 0 && cli->options.session.follow)
		r = session_follow(cli, c, id, &status);
	koine_client_free(c);
	return r == 0 ? status : r;
}

int cmd_session_run(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf query;
	int r;

	buf_init(&query, QUERY_MAX);
	r = gather(cli, &query);
	return r == 0 ? launch(cli, NULL, &query) : r;
}

int cmd_session_continue(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf query;
	const char *parent;
	int r;

	buf_init(&query, QUERY_MAX);
	if (cli->n_args < 2) {
		complain("session continue wants an ID and a QUERY, or - for stdin");
		return EX_USAGE;
	}
	parent = cli->args[0];
	cli->args++;
	cli->n_args--;
	r = gather(cli, &query);
	return r == 0 ? launch(cli, parent, &query) : r;
}
