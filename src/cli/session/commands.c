/* koine session: options, the table, and the commands that need one or two calls each. */

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/session/session.h"

/* ---- the options ---- */

#define AT(member) OPTION_AT(struct session_options, member)

/* clang-format off */
#define RUN_OPTIONS(where) \
	{"--follow", "-f", NULL, "print the events of the session until the session ends", \
		option_flag, AT(follow)}, \
	{"--model", "-m", "MODEL", "set the model that the agent uses", option_word, \
		.param = "model"}, \
	{"--agent", "-a", "NAME", "run this agent: claude, or an agent defined in koine.conf", \
		option_word, .param = "agent", .completes = COMPLETES_AGENT}, \
	{"--title", NULL, "TITLE", "set the title of the session", option_word, \
		.param = "title"}, \
	{"--max-turns", NULL, "N", "end the session after N turns", option_number, .min = 1, \
		.param = "max_turns"}, \
	{"--system-prompt", NULL, "TEXT", "replace the agent's system prompt with " \
					  "TEXT", option_word, \
		.param = "system_prompt"}, \
	{"--append-system-prompt", NULL, "TEXT", "append TEXT to the agent's system " \
						 "prompt", option_word, \
		.param = "append_system_prompt"}, \
	{"--allow", NULL, "TOOL", "allow TOOL without approval (repeatable)", option_list, \
		.param = "allowed_tools"}, \
	{"--deny", NULL, "TOOL", "deny TOOL (repeatable)", option_list, .param = "disallowed_tools"}, \
	{"--dir", "-C", "DIR", "run in DIR (default: " where ")", option_word, AT(folder)}
/* clang-format on */

static const struct option session_add_options[] = {RUN_OPTIONS("the current directory"), {NULL}};

static const struct option session_continue_options[] = {RUN_OPTIONS("the session's directory"),
							 {NULL}};

static const struct option session_list_options[] = {
	{"--all", "-a", NULL, "include archived sessions", option_flag, AT(all),
	 .param = "archived", .json = {"\"any\"", "\"no\""}},
	{"--state", NULL, "STATE", "show only sessions in this state: running, completed, ...",
	 option_word, AT(status), .param = "status",
	 .choices = "starting|running|waiting_input|completing|completed|failed|interrupted"},
	{"--limit", "-n", "N", "show at most N sessions (default: 20)", option_limit, 0,
	 "from 1 to 1000", 1, 1000, .param = "limit", .usual = "20"},
	{NULL},
};

static const struct option session_log_options[] = {
	{"--follow", "-f", NULL,
	 "print new messages until the session "
	 "ends",
	 option_flag, AT(follow)},
	{"--last", "-n", "N", "show only the last N events", option_number, AT(last),
	 "a positive integer", 1},
	{"--full", NULL, NULL, "show tool inputs and results in full", option_flag, AT(full)},
	{"--raw", NULL, NULL, "include output lines that koined could not parse", option_flag,
	 AT(raw)},
	{"--chain", NULL, NULL,
	 "first print the messages of the sessions that this session continues", option_flag,
	 AT(chain)},
	{NULL},
};

static const struct option session_tree_options[] = {
	{"--all", "-a", NULL, "include archived sessions", option_flag, AT(all)},
	{NULL},
};

/* ---- run and continue ---- */

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
	int r = o->folder || is_new ? args_folder(cli, "--dir", o->folder, path) : 0;

	params_add(j, "working_dir", path[0] ? path : NULL);
	return r;
}

/* With --follow stdout is for what the session says. */
static void say_launched(const struct cli *cli, const struct koine_value *launched, const char *id)
{
	const struct session_options *o = cli->own;
	FILE *out = o->follow ? stderr : stdout;

	if (cli->options.json && !o->follow)
		print_json_compact(stdout, launched);
	else
		PRINT(out, o->follow ? TEXT("koine: session ") : TEXT(""), text_of(id), TEXT("\n"));
	fflush(out);
}

/* A new session, or one that continues another. */
static int launch(struct cli *cli)
{
	const char *parent = cli->sub->request.arg ? args_take(cli) : NULL;
	const struct session_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(buf_donep) struct buf query;
	CLEANUP(json_freep) struct koine_json *j = NULL;
	char id[SESSION_ID_MAX];
	int status = 0;
	int r;

	buf_init(&query, QUERY_MAX);
	r = gather(cli, &query);
	if (r != 0)
		return r;
	j = request_begin(cli, parent);
	r = add_folder(cli, j, !parent);
	if (r != 0)
		return r;
	params_add_text(j, "query", buf_text(&query));
	r = request_send(cli, TAKE(j), &a);
	if (r != 0)
		return r;
	member_copy(koine_answer_result(a), "id", id, sizeof(id));
	say_launched(cli, koine_answer_result(a), id);
	if (o->follow)
		r = session_follow(cli, id, &status);
	return r == 0 ? status : r;
}

/* ---- the others ---- */

enum { TITLE_MAX = 4000 };

static int cmd_show(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *session;
	char id[SESSION_ID_MAX];
	int r = request_send(cli, request_begin(cli, cli->args[0]), &a)
			?: request_print(cli, a, NULL);

	session = koine_answer_result(a);
	if (r != 0 || cli->options.json || !member_is(session, "status", "waiting_input"))
		return r;
	fputc('\n', stdout);
	member_copy(session, "id", id, sizeof(id));
	return session_print_approvals(cli, id);
}

/* The exit code does not reflect the session: its log was printed. */
static int cmd_log(struct cli *cli)
{
	const struct session_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char id[SESSION_ID_MAX];
	int status;
	int r = request_send(cli, request_begin(cli, cli->args[0]), &a);

	if (r != 0)
		return r;
	if (!o->follow)
		return session_print_log(cli, koine_answer_result(a));
	member_copy(koine_answer_result(a), "id", id, sizeof(id));
	return session_follow(cli, id, &status);
}

static int cmd_rename(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf title;
	const char *id = args_take(cli);
	struct koine_json *j;

	buf_init(&title, TITLE_MAX);
	args_join(cli, &title);
	if (title.err != 0)
		return fail_with(EX_DATAERR, "the title is longer than %d bytes", TITLE_MAX);
	j = request_begin(cli, id);
	params_add_text(j, "title", buf_text(&title));
	return request_finish(cli, j, id);
}

/* ---- the table ---- */

#define ONE_ID ARGS(1, 1, "requires one ID")
#define IDS    ARGS(1, INT_MAX, "requires at least one ID")
#define BY_ID  "ID may be a unique prefix.\n"
#define EXITS                                                                                      \
	"With --follow, the exit code is 0 if the session completed, 1 if it failed, and 130 if "  \
	"it was interrupted or you pressed Ctrl-C. The session keeps running after Ctrl-C.\n"

#define ARCHIVE(json, what)                                                                        \
	{                                                                                          \
		"session.archive", .arg = "id", .with = {"archived", json}, .named = "id",         \
				   .did = (what)                                                   \
	}

static const struct command subs[] = {
	{"add", "[OPTION]... [--] QUERY... | -", "Start a session and print its id",
	 "Use - to read the query from stdin.\n" EXITS, launch, NULL, session_add_options,
	 .request = {"session.launch"}, ARGS(1, INT_MAX, "requires QUERY, or - for stdin"),
	 .examples = {"koine session add \"fix the tests\"",
		      "koine session add -f -C ~/src/app --model opus \"review the diff\""}},
	{"list", "", "List sessions, most recently active first", NULL, NULL, NULL,
	 session_list_options, NO_ARGS,
	 .request = {"session.list", "sessions", .print = session_print_list},
	 .examples = {"koine session list --state running", "koine session list --all -n 50"}},
	{"show", "ID", "Show one session in full", BY_ID, cmd_show, ONE_ID,
	 .request = {"session.get", .arg = "id", .form = &session_form},
	 .examples = {"koine session show 6f1c", "koine session show 6f1c --json"}},
	{"log", "ID", "Print the messages of a session",
	 BY_ID "Tool calls begin with *, tool results with =. Without --full, koine "
	       "truncates each call and result to one line. With -f, Ctrl-C exits and the "
	       "session keeps running. With --json, each line is one event (a JSON object); "
	       "with -f, the last line is the session object.\n",
	 cmd_log, NULL, session_log_options, ONE_ID, .request = {"session.get", .arg = "id"},
	 .examples = {"koine session log 6f1c", "koine session log -f 6f1c"}},
	{"continue", "ID [OPTION]... [--] QUERY... | -", "Continue a session with a new query",
	 BY_ID "If the session is running, koined interrupts it first. Options that you "
	       "omit keep the session's values.\n" EXITS,
	 launch, NULL, session_continue_options, .request = {"session.continue", .arg = "id"},
	 ARGS(2, INT_MAX, "requires ID and QUERY, or - for stdin"),
	 .examples = {"koine session continue 6f1c \"now add a test\"",
		      "koine session continue 6f1c -f \"now fix it\""}},
	{"cancel", "ID", "Cancel a running session", BY_ID, ONE_ID,
	 .request = {"session.interrupt", .arg = "id", .named = "id", .did = "is being cancelled"},
	 .examples = {"koine session cancel 6f1c", "koine session cancel 6f1c --json"}},
	{"archive", "ID...", "Archive sessions", BY_ID, IDS, .request = ARCHIVE("true", "archived"),
	 .examples = {"koine session archive 6f1c 22ab", "koine session archive 6f1c"}},
	{"unarchive", "ID...", "Unarchive sessions", BY_ID, IDS,
	 .request = ARCHIVE("false", "unarchived"),
	 .examples = {"koine session unarchive 6f1c", "koine session unarchive 6f1c 22ab"}},
	{"rename", "ID TITLE...", "Set the title of a session", BY_ID "\"\" removes the title.\n",
	 cmd_rename, ARGS(2, INT_MAX, "requires ID and TITLE"),
	 .request = {"session.rename", .arg = "id", .named = "id", .did = "renamed"},
	 .examples = {"koine session rename 6f1c \"Fix the cart\"",
		      "koine session rename 6f1c \"\""}},
	{"tree", "[ID]", "Show sessions and their continuations as a tree",
	 BY_ID "With ID, the command shows only the tree that contains this session.\n",
	 cmd_session_tree, NULL, session_tree_options, ARGS(0, 1, "takes at most one ID"),
	 .examples = {"koine session tree", "koine session tree 6f1c"}},
	{NULL},
};

const struct command session_commands[] = {
	{"session", "COMMAND [ARGUMENT]...", "Run agents and follow their sessions",
	 "Tool calls of a session that need permission appear as approvals: see `koine "
	 "approvals`.\n",
	 NULL, subs, NULL, sizeof(struct session_options), .completes = COMPLETES_SESSION,
	 .examples = {"koine session add \"fix the tests\"", "koine session log -f 6f1c"}},
	{NULL},
};
