/* koine session run and continue. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/args.h"
#include "cli/kit/request.h"
#include "cli/kit/value.h"
#include "cli/session/session.h"

enum { QUERY_MAX = 16 << 20 };

static int gather(const struct cli *cli, struct buf *all)
{
	int r = args_text(cli, all);

	if (r != 0 || (all->err == 0 && all->len > 0))
		return r;
	if (all->err != 0)
		complain("the query is longer than %d bytes", QUERY_MAX);
	else
		complain("the query is empty");
	return EX_DATAERR;
}

/* A continued session stays where it was. */
static int add_folder(const struct cli *cli, struct koine_json *j, bool is_new)
{
	const struct session_options *o = cli->own;
	char path[PATH_MAX] = "";
	int r = o->folder || is_new ? args_folder(cli, "--cwd", o->folder, path) : 0;

	params_add(j, "working_dir", path[0] ? path : NULL);
	return r;
}

/* With --follow stdout is for what the session says. */
static void say_launched(const struct cli *cli, const struct koine_value *launched, const char *id)
{
	const struct session_options *o = cli->own;
	FILE *out = o->follow ? stderr : stdout;

	if (cli->options.json && !o->follow) {
		print_json_compact(stdout, launched);
	} else {
		fputs(o->follow ? "koine: session " : "", out);
		print_text(out, text_of(id));
		fputc('\n', out);
	}
	fflush(out);
}

/* parent NULL: a new session. */
static int launch(struct cli *cli, const char *parent)
{
	const struct session_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(buf_donep) struct buf query;
	struct koine_json *j;
	char id[SESSION_ID_MAX];
	int status = 0;
	int r;

	buf_init(&query, QUERY_MAX);
	r = gather(cli, &query);
	if (r != 0)
		return r;
	j = request_begin(cli, parent);
	r = add_folder(cli, j, !parent);
	if (r != 0) {
		koine_json_free(j);
		return r;
	}
	params_add_text(j, "query", buf_text(&query));
	r = request_send(cli, j, &a);
	if (r != 0)
		return r;
	member_copy(koine_answer_result(a), "id", id, sizeof(id));
	say_launched(cli, koine_answer_result(a), id);
	if (o->follow)
		r = session_follow(cli, id, &status);
	return r == 0 ? status : r;
}

int cmd_session_run(struct cli *cli)
{
	return launch(cli, NULL);
}

int cmd_session_continue(struct cli *cli)
{
	return launch(cli, args_take(cli));
}
