/*
 * koine hook: an agent's own hook, which koined runs: it gets what the agent says on stdin, and what
 * it returns is printed.
 *
 * Where koined cannot answer, the agent is answered here: koined is away or leaves, nobody decides in
 * time, koined refuses the question, or the input cannot be read. Without a decision the agent asks
 * by itself, but it must not get around koined by what it wants to do: what cannot be read, and what
 * koined refuses, the agent is told to ask about. src/hook knows the words of each agent.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/surrogate.h"
#include "cli/approval/approval.h"
#include "cli/approval/asking.h"
#include "cli/kit/call.h"
#include "cli/kit/lines.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "hook/hook.h"
#include "wire/json.h"

enum {
	INPUT_MAX = 4 << 20,
	ARENA_MAX = 256 << 20, /* a value for every two bytes of the longest input */
	ANSWER_MAX = 1 << 20,
	HINT_MS = 1000,
	TELL_MS = 3000, /* an agent never waits long where nobody decides */
};

struct run {
	struct asking asking;
	struct buf text;
	struct arena arena;
	struct hook hook;
};

/* ---- what is printed ---- */

static void print_said(struct text said)
{
	if (said.len > 0)
		printf("%.*s\n", TEXT_ARGS(said));
	fflush(stdout);
}

static void print_outcome(const struct run *run, const struct hook_outcome *o)
{
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, ANSWER_MAX);
	hook_answer(&run->hook, o, &out);
	if (out.err == 0)
		print_said(buf_text(&out));
}

/* why NULL: koined could not be asked; otherwise why it refused the question. */
static void print_unavailable(const struct run *run, const char *why)
{
	print_outcome(run, &(struct hook_outcome) {.status = TEXT("unavailable"),
						   .comment = text_of(why),
						   .refused = why != NULL});
}

static void print_result(const struct koine_value *result)
{
	const struct koine_value *output = koine_value_get(result, "output");
	struct text said = {0};

	if (koine_value_kind(output) == KOINE_OBJECT)
		said.data = koine_value_raw(output, &said.len);
	print_said(said);
}

/* A response without a status decides nothing. */
static void print_end(const struct run *run, enum asking_end end)
{
	const struct asking *a = &run->asking;
	const struct koine_value *result = koine_doc_root(a->answer);
	struct hook_outcome o = {.status = member_string(result, "status"), .id = text_of(a->id)};
	bool decided = o.status.len > 0;

	if (end == ASKING_GONE)
		return;
	if (!decided)
		o.status = end == ASKING_LATE ? TEXT("expired") : TEXT("unavailable");
	if (!decided && (end == ASKING_DECIDED || end == ASKING_REFUSED)) {
		o.refused = true;
		o.comment = end == ASKING_REFUSED ? text_of(a->refusal)
						  : TEXT("koined returned no decision");
	}
	if (!text_is(o.status, "approved"))
		complain("%.*s: %.*s", TEXT_ARGS(run->hook.tool), TEXT_ARGS(o.status));
	if (decided)
		print_result(result);
	else
		print_outcome(run, &o);
}

/* ---- what koined is told ---- */

static void add_hook(const struct asking *a, struct koine_json *j)
{
	const struct run *run = list_entry(a, struct run, asking);
	const struct approval_options *o = a->cli->own;

	params_add(j, "format", o->format);
	params_add(j, "agent", o->agent);
	if (!j)
		return;
	koine_json_key(j, "input");
	koine_json_raw(j, run->text.data, run->text.len);
}

static void ask_and_print(struct run *run)
{
	struct asking *a = &run->asking;
	const struct approval_options *o = a->cli->own;
	bool by_default = o->wait_ms == 0 && run->hook.form != HOOK_PLAIN;
	enum asking_end end;

	asking_set_deadline(a, by_default ? HOOK_WAIT_MS : o->wait_ms);
	if (uuid4(a->id) != 0 || talk_connect(a->cli) != 0) {
		print_unavailable(run, NULL);
		return;
	}
	asking_catch_signals(a);
	end = asking_wait(a);
	print_end(run, end);
	if (end == ASKING_GONE || end == ASKING_LATE)
		asking_withdraw(a);
	talk_hang_up(a->cli);
	koine_doc_free(a->answer);
}

/* What goes wrong is said on stderr alone. */
static void tell(struct run *run)
{
	CLEANUP(answer_freep) struct koine_answer *answer = NULL;
	struct cli *cli = run->asking.cli;
	struct koine_json *j;
	int r;

	cli->options.timeout_ms = TELL_MS;
	if (talk_connect(cli) != 0)
		return;
	j = params_new();
	add_hook(&run->asking, j);
	asking_add_run(j);
	r = call_ask(cli, "hook.run", j, &answer);
	if (r != 0)
		(void)talk_failed(cli->client, "hook.run", r, answer);
	else
		print_result(koine_answer_result(answer));
	talk_hang_up(cli);
}

/* koined's log says why, if koined is there. */
static void tell_unread(const struct run *run, const char *why)
{
	CLEANUP(client_freep) struct koine_client *c = NULL;
	CLEANUP(json_freep) struct koine_json *j = params_new();
	struct cli *cli = run->asking.cli;
	char error[TALK_ERROR];
	struct koine_answer *answer = NULL;
	const char *params;

	cli->options.timeout_ms = TELL_MS;
	if (!j || talk_try(cli, &c, error) != 0)
		return;
	params_add(j, "what", "unread");
	params_add_text(j, "agent", run->hook.agent);
	params_add(j, "text", why);
	params = params_end(j);
	if (params)
		(void)koine_client_call(c, "agent.note", params, &answer);
	koine_answer_free(answer);
}

/* ---- the command ---- */

/* The beginning of an input that is too long still shows which agent it is from. */
static int read_hook(struct run *run, struct why *why)
{
	const struct approval_options *o = run->asking.cli->own;
	struct hook_source from = {.format = text_of(o->format), .agent = text_of(o->agent)};
	struct value *tree = NULL;
	int fault;
	int r;

	if (isatty(STDIN_FILENO))
		complain("waiting for hook input (JSON) on stdin");
	fault = lines_read_all(STDIN_FILENO, &run->text);
	if (run->text.len > 0)
		mend_surrogates(run->text.data, run->text.len);
	from.text = buf_text(&run->text);
	r = json_read(&run->arena, from.text.data, from.text.len, &json_default_limits, &tree, why);
	if (r < 0)
		snprintf(why->text, sizeof(why->text), "out of memory");
	from.tree = tree;
	r = hook_read(&run->arena, &from, &run->hook, why);
	if (fault == 0)
		return r;
	snprintf(why->text, sizeof(why->text), "%s", strerror(-fault));
	return fault;
}

/* Except for wrong usage the exit code is 0: anything else would be a decision. */
int cmd_hook(struct cli *cli)
{
	struct run run = {.asking = {.cli = cli,
				     .method = "hook.run",
				     .add = add_hook,
				     .hint = "waiting for a decision: see koine approvals",
				     .hint_ms = HINT_MS,
				     .reader_counts = true}};
	struct why why = {0};
	int r;

	buf_init(&run.text, INPUT_MAX);
	arena_init(&run.arena, ARENA_MAX);
	r = read_hook(&run, &why);
	run.asking.by_rules = run.hook.by_rules;
	if (r == 0) {
		ask_and_print(&run);
	} else if (run.hook.told) {
		tell(&run);
	} else {
		complain("%s%s",
			 r == REFUSE_METHOD ? "" : "invalid hook input on stdin: ", why.text);
		print_unavailable(&run, why.text);
		tell_unread(&run, why.text);
	}
	arena_done(&run.arena);
	buf_done(&run.text);
	asking_end_by_signal(&run.asking);
	return EX_OK;
}
