/*
 * koine hook: an agent's own hook, which asks a human through koined.
 *
 * It reads what the agent says about a tool call from stdin, asks, waits, and prints the
 * decision in the form that this agent expects. If there is no decision, it prints nothing and
 * exits with 0: the agent then asks by itself. But an agent must not get around koined by what
 * it wants to do: if that cannot be read, or koined refuses the question, the agent is told to
 * ask.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/approval/approval.h"
#include "cli/approval/asking.h"
#include "cli/approval/hook.h"
#include "cli/kit/call.h"
#include "cli/kit/lines.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { INPUT_MAX = 4 << 20, HINT_MS = 1000 };

/* ---- what is printed ---- */

static void print_answer(struct hook_input *in, const struct hook_outcome *o)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

	if (koine_json_new(&j) != 0 || !hook_write_answer(in, o, j))
		return;
	text = koine_json_text(j, NULL);
	if (text)
		printf("%s\n", text);
	fflush(stdout);
}

/* why NULL: koined could not be asked; otherwise why it refused the question. */
static void print_unavailable(struct hook_input *in, const char *why)
{
	const struct hook_outcome o = {
		.status = TEXT("unavailable"), .comment = text_of(why), .refused = why != NULL};

	print_answer(in, &o);
}

static void print_end(const struct asking *a, struct hook_input *in, enum asking_end end)
{
	const struct koine_value *answer = koine_doc_root(a->answer);
	struct hook_outcome o = {.id = text_of(a->id)};

	switch (end) {
	case ASKING_DECIDED:
		o.status = member_string(answer, "status");
		o.comment = member_string(answer, "comment");
		o.decided_by = member_string(answer, "decided_by");
		break;
	case ASKING_LATE:
		o.status = TEXT("expired");
		break;
	case ASKING_REFUSED:
		o.status = TEXT("unavailable");
		o.comment = text_of(a->refusal);
		o.refused = true;
		break;
	case ASKING_NONE:
	case ASKING_UNAVAILABLE:
		o.status = TEXT("unavailable");
		break;
	case ASKING_GONE:
		return;
	}
	if (!text_is(o.status, "approved"))
		complain("%.*s: %.*s", TEXT_ARGS(in->hook.tool), TEXT_ARGS(o.status));
	print_answer(in, &o);
}

/* ---- the command ---- */

/* The beginning of an input that is too long still shows which agent it is from. */
static int read_hook(struct hook_input *in, struct buf *text, const struct approval_options *o,
		     struct why *why)
{
	int fault;
	int r;

	if (isatty(STDIN_FILENO))
		complain("waiting for hook input (JSON) on stdin");
	fault = lines_read_all(STDIN_FILENO, text);
	if (text->len > 0)
		mend_surrogates(text->data, text->len);
	r = hook_input_read(in, buf_text(text), o->format ? o->format : "auto", o->agent, why);
	if (fault == 0)
		return r;
	snprintf(why->text, sizeof(why->text), "%s", strerror(-fault));
	return fault;
}

static int64_t time_of(const struct cli *cli, const struct hook *hook)
{
	const struct approval_options *o = cli->own;

	return o->wait_ms == 0 && hook->form != HOOK_PLAIN ? HOOK_WAIT_MS : o->wait_ms;
}

static void ask_and_print(struct asking *a, struct hook_input *in)
{
	enum asking_end end;

	asking_find_run(a);
	asking_set_deadline(a, time_of(a->cli, &in->hook));
	if (uuid4(a->id) != 0 || talk_connect(a->cli) != 0) {
		print_unavailable(in, NULL);
		return;
	}
	asking_catch_signals(a);
	end = asking_wait(a);
	print_end(a, in, end);
	if (end == ASKING_GONE || end == ASKING_LATE)
		asking_withdraw(a);
	talk_hang_up(a->cli);
	koine_doc_free(a->answer);
}

/* Except for wrong usage the exit code is 0: anything else would be a decision. */
int cmd_hook(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf text;
	struct hook_input in = {.doc = NULL};
	struct asking a = {.cli = cli,
			   .hook = &in.hook,
			   .hint = "waiting for a decision: see koine approvals",
			   .hint_ms = HINT_MS,
			   .reader_counts = true};
	struct why why = {0};
	int r;

	buf_init(&text, INPUT_MAX);
	r = read_hook(&in, &text, cli->own, &why);
	if (r == 0) {
		ask_and_print(&a, &in);
	} else if (in.hook.told) {
		hook_tell(cli, &in);
	} else {
		complain("%s%s",
			 r == REFUSE_METHOD ? "" : "invalid hook input on stdin: ", why.text);
		print_unavailable(&in, why.text);
		hook_tell_unread(cli, &in, why.text);
	}
	hook_input_done(&in);
	asking_end_by_signal(&a);
	return EX_OK;
}
