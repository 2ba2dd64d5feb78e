/* koine approvals, approve, deny and respond: what agents want to do, and whether they may. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/kit/glyph.h"
#include "cli/kit/lines.h"

enum { ROWS = 100, ANSWER_MAX = 256 << 10 }; /* koined takes less, and says so */

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

static void approval_answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

static void client_freep(struct koine_client **c)
{
	koine_client_free(*c);
}

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

/* ---- looking ---- */

static int list(struct cli *cli)
{
	const struct approval_options *o = &cli->options.approval;
	CLEANUP(json_freep)
	struct koine_json *j = approval_list_params(cli, o->all, o->limit > 0 ? o->limit : ROWS);
	CLEANUP(approval_answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *found;
	int r;

	if (!j)
		return out_of_memory();
	r = talk_once(cli, "approval.list", koine_json_text(j, NULL), &a);
	if (r != 0)
		return r;
	found = koine_value_get(koine_answer_result(a), "approvals");
	if (cli->options.json) {
		print_json_compact(stdout, found);
		return 0;
	}
	if (!koine_value_first(found) && cli->terminal) {
		fputs("nobody asks for anything\n", stderr);
		return 0;
	}
	return approval_print_list(cli, found);
}

static int show(struct cli *cli, const char *typed)
{
	CLEANUP(approval_answer_freep) struct koine_answer *a = NULL;
	CLEANUP(client_freep) struct koine_client *c = NULL;
	int r = talk_dial(cli, NULL, NULL, &c);

	if (r == 0)
		r = approval_find(c, typed, cli->options.approval.exact, &a);
	if (r != 0)
		return r;
	if (cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
		return 0;
	}
	return approval_print_one(cli, koine_answer_result(a));
}

/* Whoever asks for what is not there yet may wait for it, so a daemon that is away is no fault. */
static int find_session(struct cli *cli)
{
	CLEANUP(client_freep) struct koine_client *c = NULL;
	int r = cli->options.approval.session ? talk_dial(cli, NULL, NULL, &c) : 0;

	return r == 0 && c ? approval_find_session(cli, c) : r;
}

int cmd_approvals(struct cli *cli)
{
	bool watch = cli->options.approval.watch;
	int r;

	if (cli->n_args > 1 || (watch && cli->n_args > 0)) {
		complain("approvals takes one ID at most, and none with -w");
		return EX_USAGE;
	}
	r = find_session(cli);
	if (r != 0)
		return r;
	if (watch && !cli->options.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return approvals_watch(cli);
	if (watch)
		return approvals_follow(cli);
	return cli->n_args == 1 ? show(cli, cli->args[0]) : list(cli);
}

/* ---- deciding ---- */

static void say(const struct koine_value *approval, const char *did)
{
	struct text id = approval_short_id(approval, 8);

	print_exact(stdout, id.data ? id : TEXT("-"));
	printf(" %s\n", did);
}

/* Somebody was quicker. */
static int too_late(const struct koine_value *end)
{
	char words[APPROVAL_COMMENT_SIZE];

	approval_say_end(end, words, sizeof(words));
	fputs("koine: it is decided already: ", stderr);
	print_exact(stderr, text_of(words));
	fputc('\n', stderr);
	return EXIT_ERROR_ANSWER;
}

static int send_choice(struct cli *cli, struct koine_client *c, struct approval_choice *choice,
		       const struct koine_value *approval)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	CLEANUP(approval_answer_freep) struct koine_answer *a = NULL;
	int r;

	choice->id = approval_member(approval, "id");
	j = approval_choice_params(choice);
	if (!j)
		return out_of_memory();
	r = koine_client_call(c, "approval.decide", koine_json_text(j, NULL), &a);
	if (r == KOINE_ERROR_ANSWER && approval_quicker(a))
		return too_late(approval_quicker(a));
	if (r != 0)
		return talk_failed(c, "approval.decide", r, TAKE(a));
	if (cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else
		say(approval, strcmp(choice->decision, "approve") == 0 ? "approved"
			      : strcmp(choice->decision, "deny") == 0  ? "denied"
								       : "answered");
	return 0;
}

/* Says what to do instead of what cannot be. Of what is decided already, the daemon tells more. */
static bool is_other_kind(const struct koine_value *approval, const char *decision)
{
	bool question = text_is(approval_member(approval, "kind"), "human_contact");
	bool answers = strcmp(decision, "respond") == 0;

	if (question == answers || !text_is(approval_member(approval, "status"), "pending"))
		return false;
	complain(question ? "it is a question: koine respond answers it"
			  : "it is no question: koine approve or koine deny decides it");
	return true;
}

static int decide(struct cli *cli, const char *typed, struct approval_choice *choice)
{
	CLEANUP(approval_answer_freep) struct koine_answer *found = NULL;
	CLEANUP(client_freep) struct koine_client *c = NULL;
	int r = talk_dial(cli, NULL, NULL, &c);

	if (r == 0)
		r = approval_find(c, typed, cli->options.approval.exact, &found);
	if (r == 0 && is_other_kind(koine_answer_result(found), choice->decision))
		r = EXIT_ERROR_ANSWER;
	return r != 0 ? r : send_choice(cli, c, choice, koine_answer_result(found));
}

static int read_grant(const struct cli *cli, struct approval_choice *choice)
{
	const struct approval_options *o = &cli->options.approval;

	if (!o->grant && (o->for_ms > 0 || o->uses > 0)) {
		complain("--for and --uses belong to --grant");
		return EX_USAGE;
	}
	if (o->grant)
		choice->grant = strcmp(o->grant, "session") == 0 ? "session" : "all";
	choice->for_ms = o->for_ms;
	choice->uses = o->uses;
	return 0;
}

int cmd_approve(struct cli *cli)
{
	struct approval_choice choice = {
		.decision = "approve",
		.comment = text_of(cli->options.approval.comment),
	};
	int r;

	if (cli->n_args != 1) {
		complain("approve wants one ID; see koine approvals");
		return EX_USAGE;
	}
	r = read_grant(cli, &choice);
	return r != 0 ? r : decide(cli, cli->args[0], &choice);
}

/* Whoever is denied something is told why. */
static int ask_why(struct lines *in, struct text *ret)
{
	int r;

	if (!isatty(STDIN_FILENO)) {
		complain("deny wants --comment TEXT");
		return EX_USAGE;
	}
	fputs("Why? ", stderr);
	r = lines_next(in, ret);
	if (r != 0 || ret->len == 0) {
		complain("without a comment it is not denied");
		return EX_USAGE;
	}
	return 0;
}

int cmd_deny(struct cli *cli)
{
	struct approval_choice choice = {
		.decision = "deny",
		.comment = text_of(cli->options.approval.comment),
	};
	struct lines in;
	int r;

	if (cli->n_args != 1) {
		complain("deny wants one ID and --comment TEXT; see koine approvals");
		return EX_USAGE;
	}
	lines_init(&in, STDIN_FILENO, ANSWER_MAX);
	r = read_grant(cli, &choice);
	if (r == 0 && choice.comment.len == 0)
		r = ask_why(&in, &choice.comment);
	if (r == 0)
		r = decide(cli, cli->args[0], &choice);
	lines_done(&in);
	return r;
}

int cmd_respond(struct cli *cli)
{
	struct approval_choice choice = {.decision = "respond"};
	CLEANUP(buf_donep) struct buf words;
	const char *typed = cli->n_args > 0 ? cli->args[0] : NULL;
	int r;

	buf_init(&words, ANSWER_MAX);
	if (cli->n_args < 2) {
		complain("respond wants an ID and a TEXT; see koine approvals");
		return EX_USAGE;
	}
	cli->args++;
	cli->n_args--;
	r = params_words(cli, &words);
	if (r != 0)
		return r;
	if (words.err != 0) {
		complain("the text is too much: %s", strerror(-words.err));
		return EX_DATAERR;
	}
	choice.comment = (struct text) {.data = words.len > 0 ? words.data : "", .len = words.len};
	return decide(cli, typed, &choice);
}
