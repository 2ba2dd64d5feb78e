/* koine approval, approve, deny, respond and grant: lists, decides and answers requests. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/lines.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"

/* ---- calls ---- */

struct koine_json *approval_id_params(struct text id, bool exact)
{
	struct koine_json *j = params_new();

	params_add_text(j, "id", id);
	if (exact)
		params_add_bool(j, "exact", true);
	return j;
}

/* Gets the approval that was typed, by its id or (without --exact) a prefix of it. */
static int approval_commands_find(struct cli *cli, const char *typed,
				  struct koine_answer **ret_answer)
{
	const struct approval_options *o = cli->own;

	return call_send(cli, "approval.get", approval_id_params(text_of(typed), o->exact),
			 ret_answer);
}

/* Completes the id of --session where only its beginning was typed.
 * koined does not know sessions that it did not start; their ids are used as typed. */
static int find_session(struct cli *cli)
{
	static char whole[APPROVAL_ID_SIZE];
	struct approval_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text id;
	int r = o->session ? talk_connect(cli) : 0;

	if (r != 0 || !o->session)
		return r;
	r = call_ask(cli, "session.get", approval_id_params(text_of(o->session), false), &a);
	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) != CODE_NOT_FOUND)
		return talk_failed(cli->client, "session.get", r, a);
	id = member_string(koine_answer_result(a), "id");
	if (r != 0 || id.len == 0 || id.len >= sizeof(whole))
		return 0;
	snprintf(whole, sizeof(whole), "%.*s", TEXT_ARGS(id));
	o->session = whole;
	return 0;
}

static void add_grant(struct koine_json *j, const struct approval_choice *choice)
{
	if (!params_begin_object(j, "grant"))
		return;
	params_add(j, "scope", choice->grant);
	if (choice->for_ms > 0)
		params_add_double(j, "for", (double)choice->for_ms / 1000);
	if (choice->uses > 0)
		params_add_int(j, "uses", choice->uses);
	koine_json_end_object(j);
}

struct koine_json *approval_choice_params(const struct approval_choice *choice)
{
	struct koine_json *j = approval_id_params(choice->id, true);

	params_add(j, "decision", choice->decision);
	params_add_text(j, "comment", choice->comment);
	if (choice->grant)
		add_grant(j, choice);
	return j;
}

const struct koine_value *approval_quicker(const struct koine_answer *error)
{
	if (koine_answer_error_code(error) != CODE_CONFLICT)
		return NULL;
	return koine_value_get(koine_answer_error_data(error), "approval");
}

/* ---- the options ---- */

#define AT(member) OPTION_AT(struct approval_options, member)

static const struct option hook_options[] = {
	{"--agent", "-a", "NAME", "set the agent name (default: detected from the hook input)",
	 option_word, AT(agent)},
	{"--format", "-f", "FORMAT",
	 "set the input and output format: auto, claude, codex, gemini, cursor, copilot or plain",
	 option_choice, AT(format), "one of auto, claude, codex, gemini, cursor, copilot or plain",
	 .choices = "auto|claude|codex|gemini|cursor|copilot|plain"},
	{"--timeout", "-t", "TIME",
	 "wait at most TIME: 90, 10m, 2h (default: 55s; with --format plain, the "
	 "approval.timeout setting)",
	 option_span, AT(wait_ms), "such as 90, 10m or 2h", .min = 1},
	{NULL},
};

static const struct option ask_options[] = {
	{"--choices", "-c", "LIST", "offer these answers, separated by commas: blue,green",
	 option_word, AT(choices)},
	{"--timeout", "-t", "TIME",
	 "wait at most TIME: 90, 10m, 2h (default: the approval.timeout setting)", option_span,
	 AT(wait_ms), "such as 90, 10m or 2h", .min = 1},
	{"--agent", "-a", "NAME", "set the agent name, which the inbox shows and policies match",
	 option_word, AT(agent)},
	{NULL},
};

/* clang-format off */
#define EXACT \
	{"--exact", NULL, NULL, "treat ID as a full id, not as a prefix", option_flag, AT(exact)}

/* What approve and deny share. */
#define DECIDE_OPTIONS(comment_help) \
	{"--comment", "-c", "TEXT", comment_help, option_text, AT(comment)}, \
	{"--grant", "-g", "session|always", "also create a grant, which decides later matching requests in the same way", option_choice, \
		AT(grant)}, \
	{"--for", NULL, "TIME", "let the grant expire after TIME: 90, 10m, 2h (default: never)", option_span, AT(for_ms), \
		"such as 90, 10m or 2h", 1}, \
	{"--uses", NULL, "N", "limit the grant to N uses (default: no limit)", option_number, AT(uses), NULL, 1}, \
	EXACT
/* clang-format on */

static const struct option list_options[] = {
	/* Of the previous version: --exact may come before the ID that makes it approval show. */
	{"--watch", "-w", NULL, NULL, option_flag, AT(watch)},
	{"--exact", NULL, NULL, NULL, option_flag, AT(exact)},
	{"--all", "-a", NULL, "include decided approvals", option_flag, AT(all), .param = "status",
	 .json = {"\"any\"", "\"pending\""}},
	{"--session", NULL, "ID", "show only approvals for this session (id or prefix)",
	 option_word, AT(session), .completes = COMPLETES_SESSION},
	{"--limit", "-n", "N", "show at most N approvals (default: 100)", option_limit, 0,
	 "from 1 to 1000", 1, APPROVALS_MAX, .param = "limit", .usual = "100"},
	{NULL},
};

static const struct option watch_options[] = {
	{"--all", "-a", NULL, "include decided approvals", option_flag, AT(all)},
	{"--session", NULL, "ID", "show only approvals for this session (id or prefix)",
	 option_word, AT(session), .completes = COMPLETES_SESSION},
	{NULL},
};

static const struct option show_options[] = {EXACT, {NULL}};

static const struct option approve_options[] = {
	DECIDE_OPTIONS("send TEXT to the agent as a comment"), {NULL}};

static const struct option deny_options[] = {
	DECIDE_OPTIONS("send TEXT to the agent as the reason (required; on a terminal, koine "
		       "prompts for it)"),
	{NULL},
};

static const struct option respond_options[] = {EXACT, {NULL}};

enum { ANSWER_MAX = 256 << 10 }; /* koined accepts less, and says so */

/* ---- looking ---- */

static void add_session(const struct cli *cli, struct koine_json *params)
{
	const struct approval_options *o = cli->own;

	params_add(params, "session_id", o->session);
}

static int cmd_show(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = approval_commands_find(cli, cli->args[0], &a);

	return r != 0 ? r : call_print_result(cli, a, NULL, approval_print_one);
}

static int cmd_watch(struct cli *cli)
{
	int r = find_session(cli);

	if (r != 0)
		return r;
	if (!cli->options.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return approvals_watch(cli);
	return approvals_follow(cli);
}

static int cmd_list(struct cli *cli)
{
	const struct approval_options *o = cli->own;

	return o->watch ? cmd_watch(cli) : find_session(cli) ?: request_run(cli);
}

/* ---- deciding ---- */

/* Somebody was quicker. */
static int too_late(const struct koine_value *end)
{
	char said[APPROVAL_COMMENT_SIZE];

	approval_say_end(end, said, sizeof(said));
	return fail_with(EXIT_ERROR_ANSWER, "already decided: %s", said);
}

static const char *did(const char *decision)
{
	if (strcmp(decision, "approve") == 0)
		return "approved";
	return strcmp(decision, "deny") == 0 ? "denied" : "answered";
}

static int send_choice(struct cli *cli, struct approval_choice *choice,
		       const struct koine_value *approval)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text id = approval_short_id(approval, SHORT_ID);
	int r;

	choice->id = member_string(approval, "id");
	r = call_ask(cli, "approval.decide", approval_choice_params(choice), &a);
	if (r == KOINE_ERROR_ANSWER && approval_quicker(a))
		return too_late(approval_quicker(a));
	if (r != 0)
		return talk_failed(cli->client, "approval.decide", r, a);
	if (print_if_json(cli, koine_answer_result(a)))
		return 0;
	print_exact(stdout, id.data ? id : TEXT("-"));
	printf(" %s\n", did(choice->decision));
	return 0;
}

/* A question is not approved, and nothing else is answered: says which command to use. What is
 * already decided is left to the daemon, which says more about it. */
static bool is_other_kind(const struct koine_value *approval, const char *decision)
{
	bool question = approval_is_question(approval);
	bool answers = strcmp(decision, "respond") == 0;

	if (question == answers || !text_is(member_string(approval, "status"), "pending"))
		return false;
	complain(question ? "this is a question; answer it with koine respond"
			  : "this is not a question; use koine approve or koine deny");
	return true;
}

static int decide(struct cli *cli, const char *typed, struct approval_choice *choice)
{
	CLEANUP(answer_freep) struct koine_answer *found = NULL;
	int r = approval_commands_find(cli, typed, &found);

	if (r != 0)
		return r;
	if (is_other_kind(koine_answer_result(found), choice->decision))
		return EXIT_ERROR_ANSWER;
	return send_choice(cli, choice, koine_answer_result(found));
}

/* Takes comment and grant from the options. */
static int read_choice(const struct cli *cli, struct approval_choice *choice)
{
	const struct approval_options *o = cli->own;

	if (!o->grant && (o->for_ms > 0 || o->uses > 0))
		return fail_with(EX_USAGE, "--for and --uses require --grant");
	if (o->grant)
		choice->grant = strcmp(o->grant, "session") == 0 ? "session" : "all";
	choice->comment = text_of(o->comment);
	choice->for_ms = o->for_ms;
	choice->uses = o->uses;
	return 0;
}

static int cmd_approve(struct cli *cli)
{
	struct approval_choice choice = {.decision = "approve"};
	int r = read_choice(cli, &choice);

	return r != 0 ? r : decide(cli, cli->args[0], &choice);
}

/* An agent that is denied something learns why. */
static int ask_reason(struct lines *in, struct text *ret)
{
	int r;

	if (!isatty(STDIN_FILENO))
		return fail_with(EX_USAGE, "deny requires --comment TEXT");
	fputs("Why? ", stderr);
	r = lines_next(in, ret);
	if (r == 0 && ret->len > 0)
		return 0;
	return fail_with(EX_USAGE, "not denied: a comment is required");
}

static int cmd_deny(struct cli *cli)
{
	struct approval_choice choice = {.decision = "deny"};
	struct lines in;
	int r = read_choice(cli, &choice);

	if (r != 0)
		return r;
	lines_init(&in, STDIN_FILENO, ANSWER_MAX);
	if (choice.comment.len == 0)
		r = ask_reason(&in, &choice.comment);
	if (r == 0)
		r = decide(cli, cli->args[0], &choice);
	lines_done(&in);
	return r;
}

static int cmd_respond(struct cli *cli)
{
	struct approval_choice choice = {.decision = "respond"};
	CLEANUP(buf_donep) struct buf answer;
	const char *typed = args_take(cli);
	int r;

	buf_init(&answer, ANSWER_MAX);
	r = args_text(cli, &answer);
	if (r != 0)
		return r;
	if (answer.err != 0)
		return fail_with(EX_DATAERR, "invalid answer: %s", strerror(-answer.err));
	choice.comment = buf_text(&answer);
	return decide(cli, typed, &choice);
}

/* ---- grants ---- */

enum { NARROW = 60 };

static const struct column grant_columns[] = {
	{"ID", "id", cell_short_id},
	{"VERDICT", "verdict"},
	{"SESSION", "session_id", cell_short_id},
	{"AGENT", "agent", NULL, 'l', NARROW},
	{"UNTIL", "expires_at", cell_time, 'n', NARROW},
	{"USES", "uses", NULL, 'r', NARROW},
	{"TOOL", "tool", NULL, 'n'},
	{"INPUT", "pattern", NULL, 'l', NARROW},
	{NULL},
};

static const struct command grant_subs[] = {
	{"list", "", "List grants", NULL, NO_ARGS,
	 .request = {"approval.grants", "grants", .columns = grant_columns, .none = "no grants"},
	 .examples = {"koine grant list", "koine grant list --json"}},
	{"delete", "ID...", "Delete grants", "ID may be a unique prefix.\n",
	 ARGS(1, INT_MAX, "requires at least one ID (koine grants lists IDs)"),
	 .request = {"approval.revoke", .arg = "id", .did = "deleted"},
	 .examples = {"koine grant delete 3f2a", "koine grant delete 3f2a 9bc1"}},
	{NULL},
};

/* ---- the table ---- */

#define OWN   sizeof(struct approval_options)
#define WAITS .completes = COMPLETES_APPROVAL
#define FIRST                                                                                      \
	"ID may be a unique prefix. If the request is already decided, the command prints the "    \
	"decision and exits with status 1.\n"

static const struct command approval_subs[] = {
	{"list", "", "List pending approvals", NULL, cmd_list, NULL, list_options, NO_ARGS,
	 .request = {"approval.list", "approvals", .print = approval_print_list},
	 .examples = {"koine approval list", "koine approval list --all -n 20"}},
	{"show", "ID", "Show one approval in full", "ID may be a unique prefix.\n", cmd_show, NULL,
	 show_options, ARGS(1, 1, "requires one ID (koine approvals lists IDs)"),
	 .examples = {"koine approval show local-6f1c", "koine approval show local-6f1c --json"}},
	{"watch", "", "Watch pending approvals and decide them",
	 "Keys: arrows, j and k select a request; a approves it; d denies it with a comment; r "
	 "answers a question; v shows the whole request; g approves it for the rest of the "
	 "session; q quits. If stdin or stdout is not a terminal, or with --json, the command "
	 "prints one line for each new request and for each decision.\n",
	 cmd_watch, NULL, watch_options, NO_ARGS,
	 .request = {"approval.list", "approvals", .print = approval_print_list},
	 .examples = {"koine approval watch", "koine approval watch --json"}},
	{NULL},
};

const struct command approval_commands[] = {
	{"ask", "TEXT... | -", "Ask a human from a script",
	 "The command waits for the decision. The exit status is 0 if the request was "
	 "approved, 1 if it was denied, 69 if koined is not running, 75 after a "
	 "timeout, and 130 after Ctrl-C, which withdraws the question. With "
	 "--choices, the command prints the chosen answer. Use - to read the question "
	 "from stdin.\n",
	 cmd_ask, NULL, ask_options, OWN, ARGS(1, INT_MAX, "requires TEXT, or - for stdin"),
	 .examples = {"koine ask \"Deploy to production?\" && ./deploy",
		      "koine ask --choices blue,green --timeout 10m \"Which color?\""}},
	{"approval", "COMMAND [ID]", "List and watch requests for approval", NULL, NULL,
	 approval_subs, NULL, OWN, WAITS, .scope = add_session,
	 .examples = {"koine approval list", "koine approval watch"}},
	{"approve", "ID", "Approve a request", FIRST, cmd_approve, NULL, approve_options, OWN,
	 ARGS(1, 1, "requires one ID (koine approvals lists IDs)"), WAITS,
	 .examples = {"koine approve local-6f1c",
		      "koine approve local-6f1c --grant session --for 1h"}},
	{"deny", "ID --comment TEXT", "Deny a request, with a reason", FIRST, cmd_deny, NULL,
	 deny_options, OWN,
	 ARGS(1, 1, "requires ID and --comment TEXT (koine approvals lists IDs)"), WAITS,
	 .examples = {"koine deny local-6f1c -c \"use the staging database\"",
		      "koine deny --exact local-6f1c --comment no"}},
	{"respond", "ID TEXT... | ID -", "Answer an agent's question",
	 "Use - to read the answer from stdin.\n", cmd_respond, NULL, respond_options, OWN,
	 ARGS(2, INT_MAX, "requires ID and TEXT (koine approvals lists IDs)"), WAITS,
	 .examples = {"koine respond local-6f1c \"Round each line\"",
		      "echo blue | koine respond local-6f1c -"}},
	{"grant", "COMMAND [ID]...", "List and delete grants",
	 "A grant approves or denies matching requests automatically. `koine approve --grant` and "
	 "`koine deny --grant` create grants.\n",
	 NULL, grant_subs, .completes = COMPLETES_GRANT,
	 .examples = {"koine grant list", "koine grant delete 3f2a"}},
	{"hook", "", "Ask a human for approval from an agent's hook",
	 "The command reads the hook input (JSON) from stdin, waits for the decision "
	 "and prints it in the agent's format. Supported events are PreToolUse and "
	 "PermissionRequest (Claude Code, Codex), BeforeTool (Gemini) and preToolUse "
	 "(Cursor, Copilot). With --format plain, the input is {\"tool_name\", "
	 "\"tool_input\"}. If koined cannot be reached or no decision arrives in "
	 "time, the agent shows its own permission dialog. Gemini has no dialog for "
	 "hooks, so a timeout denies the call. For Claude Code's SessionStart and "
	 "UserPromptSubmit, the command prints relevant memories. The exit status is "
	 "always 0. `koine connect` sets up hooks. See koine-hook(1).\n",
	 cmd_hook, NULL, hook_options, OWN,
	 ARGS(0, 0, "takes no arguments; it reads JSON from stdin"),
	 .examples = {"koine hook --agent claude --format claude",
		      "koine hook --format plain --timeout 10m <request.json"}},
	{NULL},
};
