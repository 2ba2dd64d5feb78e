/* koine session: its table, and the commands that are a call or two each. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/session/session.h"
#include "cli/task/task.h"

enum { ROWS = 20, TITLE_MAX = 4000 };

static int need(const struct cli *cli, int n, const char *what)
{
	if (cli->n_args == n)
		return 0;
	complain("session %s wants %s", cli->sub->name, what);
	return EX_USAGE;
}

static int cmd_list(struct cli *cli)
{
	const struct session_options *o = &cli->options.session;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_client *c = NULL;
	const struct koine_value *sessions;
	struct koine_json *j;
	int r = need(cli, 0, "no arguments");

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r != 0)
		return r;
	j = session_params();
	if (j) {
		session_add_text(j, "archived", o->all ? "any" : "no");
		session_add_text(j, "status", o->status);
		koine_json_key(j, "limit");
		koine_json_int(j, o->limit ? o->limit : ROWS);
	}
	r = j ? session_send(c, "session.list", j, &a) : EX_SOFTWARE;
	sessions = koine_value_get(koine_answer_result(a), "sessions");
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, sessions);
	else if (r == 0 && cli->terminal && !koine_value_first(sessions))
		session_say_none(o->all || o->status);
	else if (r == 0)
		r = session_print_list(cli, sessions);
	koine_client_free(c);
	return r;
}

static int cmd_show(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_client *c = NULL;
	const struct koine_value *session;
	char id[SESSION_ID_MAX];
	int r = need(cli, 1, "one ID");

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = session_send_id(c, "session.get", cli->args[0], &a);
	session = koine_answer_result(a);
	if (r == 0 && cli->options.json) {
		print_json_compact(stdout, session);
	} else if (r == 0) {
		session_print_one(cli, session);
		session_member(session, "id", id, sizeof(id));
		if (value_is(koine_value_get(session, "status"), "waiting_input")) {
			fputc('\n', stdout);
			r = session_print_approvals(cli, c, id);
		}
	}
	koine_client_free(c);
	return r;
}

/* Prints the bare answer, or that it was done. */
static void say(const struct cli *cli, const struct koine_value *answer, const char *did)
{
	char id[SESSION_ID_MAX];

	if (cli->options.json) {
		print_json_compact(stdout, answer);
		return;
	}
	session_member(answer, "id", id, sizeof(id));
	print_text(stdout, id, strlen(id));
	printf(" %s\n", did);
}

static int cmd_interrupt(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_client *c = NULL;
	int r = need(cli, 1, "one ID");

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = session_send_id(c, "session.interrupt", cli->args[0], &a);
	if (r == 0)
		say(cli, koine_answer_result(a), "was told to end");
	koine_client_free(c);
	return r;
}

/* One after another; what goes wrong with one does not keep the others. */
static int archive(struct cli *cli, bool archived)
{
	struct koine_client *c = NULL;
	int all = 0;
	int r;

	if (cli->n_args == 0) {
		complain("session %s wants one ID or more", cli->sub->name);
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	for (int i = 0; r == 0 && i < cli->n_args; i++) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		struct koine_json *j = session_params();
		int one = EX_SOFTWARE;

		if (j) {
			session_add_text(j, "id", cli->args[i]);
			koine_json_key(j, "archived");
			koine_json_bool(j, archived);
			one = session_send(c, "session.archive", j, &a);
		}
		all = all ? all : one;
		if (one == EX_UNAVAILABLE)
			break;
		if (one == 0)
			say(cli, koine_answer_result(a), archived ? "archived" : "is back");
	}
	koine_client_free(c);
	return r == 0 ? all : r;
}

static int cmd_archive(struct cli *cli)
{
	return archive(cli, true);
}

static int cmd_unarchive(struct cli *cli)
{
	return archive(cli, false);
}

static int cmd_rename(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(buf_donep) struct buf title;
	struct koine_client *c = NULL;
	struct koine_json *j;
	int r;

	buf_init(&title, TITLE_MAX);
	if (cli->n_args < 2)
		return need(cli, -1, "an ID and a TITLE");
	for (int i = 1; i < cli->n_args; i++) {
		buf_add(&title, " ", i > 1);
		buf_add(&title, cli->args[i], strlen(cli->args[i]));
	}
	if (title.err != 0) {
		complain("the title is longer than %d bytes", TITLE_MAX);
		return EX_DATAERR;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r != 0)
		return r;
	j = session_params();
	if (j) {
		session_add_text(j, "id", cli->args[0]);
		koine_json_key(j, "title");
		koine_json_text_n(j, title.data ? title.data : "", title.len);
	}
	r = j ? session_send(c, "session.rename", j, &a) : EX_SOFTWARE;
	if (r == 0)
		say(cli, koine_answer_result(a), "renamed");
	koine_client_free(c);
	return r;
}

int cmd_session_log(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *session;
	struct koine_client *c = NULL;
	char id[SESSION_ID_MAX];
	int64_t last = 0;
	int status;
	int r = need(cli, 1, "one ID");

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = session_send_id(c, "session.get", cli->args[0], &a);
	session = koine_answer_result(a);
	session_member(session, "id", id, sizeof(id));
	if (r == 0 && cli->options.session.follow)
		r = session_follow(cli, c, id, &status);
	else if (r == 0)
		r = session_print_events(cli, c, id, &last);
	if (r == 0 && !cli->options.session.follow &&
	    value_is(koine_value_get(session, "status"), "waiting_input"))
		r = session_print_approvals(cli, c, id);
	koine_client_free(c);
	/* However it ended, its log was printed. */
	return r;
}

#define BY_ID "ID is a session's id, or a beginning that only one has.\n"
#define EXITS                                                                                      \
	"With --follow the exit status follows the session: 0 completed, 1 failed, 130\n"          \
	"interrupted. Ctrl-C leaves (130) and says how to come back; the session goes on.\n"

const struct command session_commands[] = {
	{"run", "[OPTION]... [--] QUERY... | -", "start an agent on a query, and print its id",
	 "- reads the query from stdin.\n" EXITS, cmd_session_run, NULL, session_run_options},
	{"list", "", "list sessions, the last active first", NULL, cmd_list, NULL,
	 session_list_options},
	{"show", "ID", "show all of one session", BY_ID, cmd_show},
	{"log", "ID", "print what was said in a session",
	 BY_ID "A call of a tool is one line (*), its result another (=); --full shows all of\n"
	       "them. With -f Ctrl-C leaves, and the session goes on. With --json every event is\n"
	       "an object on a line of its own; behind the last, -f prints the session.\n",
	 cmd_session_log, NULL, session_log_options},
	{"continue", "ID [OPTION]... [--] QUERY... | -", "go on where a session ended",
	 BY_ID "One that runs is interrupted first. What is not said is as it was.\n" EXITS,
	 cmd_session_continue, NULL, session_continue_options},
	{"interrupt", "ID", "tell a session that runs to end", BY_ID, cmd_interrupt},
	{"archive", "ID...", "put sessions out of the way", BY_ID, cmd_archive},
	{"unarchive", "ID...", "put sessions back among the others", BY_ID, cmd_unarchive},
	{"rename", "ID TITLE...", "give a session a title", BY_ID "\"\" takes it away.\n",
	 cmd_rename},
	{"tree", "[ID]", "show which session goes on from which",
	 BY_ID "With it only the tree that it is in.\n", cmd_session_tree, NULL,
	 session_tree_options},
	{NULL},
};
