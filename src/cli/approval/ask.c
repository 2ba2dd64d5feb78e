/*
 * koine hook: an agent's own hook, which asks a human through koined.
 *
 * It reads what the agent says about a tool call from stdin, asks, waits, and prints the
 * decision in the form that this agent expects. If there is no decision, it prints nothing and
 * exits with 0: the agent then asks by itself. But an agent must not get around koined by what
 * it wants to do: if that cannot be read, or koined refuses the question, the agent is told to
 * ask.
 *
 * If the daemon leaves meanwhile, we wait for it and ask again with the same id, so that
 * nobody has to decide twice. When the agent ends us, or is gone, the question is withdrawn.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/surrogate.h"
#include "base/uuid.h"
#include "cli/approval/approval.h"
#include "cli/approval/hook.h"
#include "cli/kit/call.h"
#include "cli/kit/lines.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum {
	INPUT_MAX = 4 << 20,
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	GRACE_MS = 2000, /* the daemon gets this long to say that time is up */
	WITHDRAW_MS = 1000,
	SAY_MS = 1000,               /* after this, people at a terminal are told that it waits */
	AWAY_MAX_MS = 5 * 60 * 1000, /* how long the daemon may be gone if there is no time limit */
};

/* How the waiting ends. */
enum end {
	END_NONE, /* not yet */
	END_DECIDED,
	END_LATE,
	END_UNAVAILABLE,
	END_REFUSED, /* koined refuses the question */
	END_GONE,    /* the agent is gone, or ended us */
};

struct asking {
	struct cli *cli;
	struct hook_input *in;
	struct hook_run run;
	char id[UUID_LEN + 1];
	uint64_t deadline_ms; /* of the steady clock; UINT64_MAX: none */
	struct signals signals;
	bool under_way;
	bool said;                /* we have said that it waits */
	int result;               /* of the last call */
	char refusal[256];        /* why it was */
	struct koine_doc *answer; /* NULL: none yet */
};

/* ---- signals ---- */

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
	ended_by = number;
}

static void catch_signals(struct asking *a)
{
	struct signals *s = &a->signals;

	signals_catch(s, numbers, sizeof(numbers) / sizeof(numbers[0]), on_signal);
	/* What nohup ignores stays ignored. */
	for (size_t i = 0; i < s->n; i++) {
		if (s->before[i].sa_handler == SIG_IGN)
			sigaction(numbers[i], &s->before[i], NULL);
	}
}

/* Behave as if we had never caught it. */
static void end_by_signal(const struct asking *a)
{
	if (ended_by == 0)
		return;
	signal(ended_by, SIG_DFL);
	raise(ended_by);
	sigprocmask(SIG_SETMASK, &a->signals.mask, NULL);
}

/* ---- asking ---- */

static void take_refusal(struct asking *a, const struct koine_answer *answer)
{
	struct text why = text_cut(talk_error(answer), sizeof(a->refusal) - 1);

	snprintf(a->refusal, sizeof(a->refusal), "%.*s", TEXT_ARGS(why));
	talk_print_error("approval.request", answer);
}

static void on_answer(void *arg, int result, const struct koine_answer *answer)
{
	struct asking *a = arg;

	a->under_way = false;
	a->result = result;
	if (result == KOINE_ERROR_ANSWER && koine_answer_error_code(answer) == CODE_STOPPING)
		a->result = -ECONNRESET;
	else if (result == KOINE_ERROR_ANSWER && a->in->hook.by_rules &&
		 koine_answer_error_code(answer) == CODE_UNAVAILABLE)
		a->result = -EACCES; /* nobody decides: nothing is wrong with the question */
	else if (result == KOINE_ERROR_ANSWER)
		take_refusal(a, answer);
	if (result != 0)
		return;
	a->answer = doc_of_value(koine_answer_result(answer));
	if (!a->answer)
		a->result = -ENOMEM;
}

/* Milliseconds left; 0: no limit. */
static int64_t time_left(const struct asking *a)
{
	uint64_t now = clock_steady_ms();

	if (a->deadline_ms == UINT64_MAX)
		return 0;
	return now >= a->deadline_ms ? 1 : (int64_t)(a->deadline_ms - now);
}

static int request(struct asking *a)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *params;
	int r;

	if (koine_json_new(&j) != 0)
		return -ENOMEM;
	hook_write_request(&a->in->hook, &a->run, a->id, time_left(a), j);
	params = koine_json_text(j, NULL);
	if (!params)
		return -ENOMEM;
	a->under_way = true;
	r = koine_client_call_async(a->cli->client, "approval.request", params, on_answer, a, NULL);
	if (r != 0)
		a->under_way = false;
	return r;
}

/* Waits for the daemon, or so many milliseconds. False: nobody waits for the answer any more. */
static bool wait_for(struct asking *a, bool with_daemon, int ms)
{
	struct pollfd p[] = {
		{.fd = STDOUT_FILENO}, /* no events: poll only reports that the reader is gone */
		{.fd = with_daemon ? koine_client_fd(a->cli->client) : -1,
		 .events = koine_client_events(a->cli->client)},
	};
	int ours = koine_client_timeout_ms(a->cli->client);

	if (with_daemon && ours >= 0 && ours < ms)
		ms = ours;
	(void)signals_poll(&a->signals, p, 2, ms);
	return ended_by == 0 && !(p[0].revents & (POLLERR | POLLHUP));
}

/* Milliseconds until then, as poll takes them. */
static int until(uint64_t then_ms)
{
	uint64_t now = clock_steady_ms();

	if (then_ms <= now)
		return 0;
	return then_ms - now > 60 * 1000 ? 60 * 1000 : (int)(then_ms - now);
}

/* Tells people who try it by hand how to continue. Agents have no terminal there. */
static void say_waiting(struct asking *a)
{
	a->said = true;
	complain("it waits for a human: see koine approvals %.8s", a->id);
}

/* Asks once, and waits. END_NONE: the connection was lost. */
static enum end ask_once(struct asking *a)
{
	uint64_t late_ms = a->deadline_ms == UINT64_MAX ? UINT64_MAX : a->deadline_ms + GRACE_MS;
	bool shown = isatty(STDERR_FILENO);
	uint64_t say_ms = clock_steady_ms() + SAY_MS;
	int r = request(a);

	while (r == 0 && a->under_way) {
		bool to_say = shown && !a->said;

		if (!wait_for(a, true, until(to_say && say_ms < late_ms ? say_ms : late_ms)))
			return END_GONE;
		if (clock_steady_ms() >= late_ms)
			return END_LATE;
		(void)koine_client_step(a->cli->client);
		if (to_say && a->under_way && clock_steady_ms() >= say_ms)
			say_waiting(a);
	}
	if (r == 0)
		r = a->result;
	if (r == 0)
		return END_DECIDED;
	if (r == KOINE_ERROR_ANSWER)
		return END_REFUSED;
	/* If another program has taken the daemon's place, nobody can decide. */
	return r > 0 || r == -ENOMEM || r == -EACCES ? END_UNAVAILABLE : END_NONE;
}

static enum end ask(struct asking *a)
{
	unsigned delay_ms = RETRY_MS;
	uint64_t asked_ms = clock_steady_ms();
	enum end end = ask_once(a);

	while (end == END_NONE) {
		uint64_t now = clock_steady_ms();
		uint64_t most_ms =
			a->deadline_ms == UINT64_MAX ? asked_ms + AWAY_MAX_MS : a->deadline_ms;

		if (delay_ms == RETRY_MS)
			complain("koined has left; waiting for it");
		if (now >= most_ms)
			return END_UNAVAILABLE;
		if (!wait_for(a, false, (int)delay_ms))
			return END_GONE;
		delay_ms = 2 * delay_ms < RETRY_MAX_MS ? 2 * delay_ms : RETRY_MAX_MS;
		now = clock_steady_ms();
		end = ask_once(a);
		/* The daemon was there for a while, so the time it may be away starts over. */
		if (end == END_NONE && clock_steady_ms() - now > RETRY_MAX_MS) {
			asked_ms = clock_steady_ms();
			delay_ms = RETRY_MS;
		}
	}
	return end;
}

/* ---- leaving ---- */

/* Nobody should decide what nobody waits for. Another connection withdraws it, since ours is
 * busy with the question. The question may still be on its way, so we retry, but not for long:
 * the agent that ended us does not wait either. */
static void withdraw(struct asking *a)
{
	const struct timespec soon = {.tv_nsec = RETRY_MS * 1000000L / 4};
	uint64_t most_ms = clock_steady_ms() + WITHDRAW_MS;
	CLEANUP(client_freep) struct koine_client *c = NULL;
	char params[UUID_LEN + 32];
	int r = KOINE_ERROR_ANSWER;

	snprintf(params, sizeof(params), "{\"id\":\"%s\",\"exact\":true}", a->id);
	a->cli->options.timeout_ms = WITHDRAW_MS;
	if (talk_dial(a->cli, NULL, NULL, &c) != 0)
		return;
	while (r == KOINE_ERROR_ANSWER && clock_steady_ms() < most_ms) {
		struct koine_answer *answer = NULL;
		int64_t code;

		r = koine_client_call(c, "approval.withdraw", params, &answer);
		code = koine_answer_error_code(answer);
		koine_answer_free(answer);
		if (code == CODE_CONFLICT) /* it has been decided */
			break;
		if (r == KOINE_ERROR_ANSWER)
			nanosleep(&soon, NULL);
	}
}

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

static void print_end(const struct asking *a, enum end end)
{
	const struct koine_value *answer = koine_doc_root(a->answer);
	struct hook_outcome o = {.id = text_of(a->id)};

	switch (end) {
	case END_DECIDED:
		o.status = member_string(answer, "status");
		o.comment = member_string(answer, "comment");
		o.decided_by = member_string(answer, "decided_by");
		break;
	case END_LATE:
		o.status = TEXT("expired");
		break;
	case END_REFUSED:
		o.status = TEXT("unavailable");
		o.comment = text_of(a->refusal);
		o.refused = true;
		break;
	case END_NONE:
	case END_UNAVAILABLE:
		o.status = TEXT("unavailable");
		break;
	case END_GONE:
		return;
	}
	if (!text_is(o.status, "approved"))
		complain("%.*s: %.*s", TEXT_ARGS(a->in->hook.tool), TEXT_ARGS(o.status));
	print_answer(a->in, &o);
}

/* ---- the command ---- */

/* The beginning of an input that is too long still shows which agent it is from. */
static int read_hook(struct hook_input *in, struct buf *text, const struct approval_options *o,
		     struct why *why)
{
	int fault;
	int r;

	if (isatty(STDIN_FILENO))
		complain("reading a hook's JSON from stdin");
	fault = lines_read_all(STDIN_FILENO, text);
	if (text->len > 0)
		mend_surrogates(text->data, text->len);
	r = hook_input_read(in, buf_text(text), o->format ? o->format : "auto", o->agent, why);
	if (fault == 0)
		return r;
	snprintf(why->text, sizeof(why->text), "%s", strerror(-fault));
	return fault;
}

static void set_deadline(struct asking *a)
{
	const struct approval_options *o = a->cli->own;
	int64_t ms = o->wait_ms;

	if (ms == 0 && a->in->hook.form != HOOK_PLAIN)
		ms = HOOK_WAIT_MS;
	a->deadline_ms = ms > 0 ? clock_steady_ms() + (uint64_t)ms : UINT64_MAX;
	/* The time limits of a call and of dialling end later than our own. */
	a->cli->options.timeout_ms =
		ms > 0 && ms < UINT32_MAX / 2 ? (uint32_t)ms + 2 * GRACE_MS : UINT32_MAX;
}

static void ask_and_print(struct asking *a)
{
	enum end end;

	a->run.session = text_of(option_from_environment("KOINE_SESSION_ID"));
	a->run.id = text_of(option_from_environment("KOINE_RUN_ID"));
	if (!a->run.id.data)
		a->run.id = text_of(option_from_environment("HUMANLAYER_RUN_ID"));
	set_deadline(a);
	if (uuid4(a->id) != 0 || talk_connect(a->cli) != 0) {
		print_unavailable(a->in, NULL);
		return;
	}
	catch_signals(a);
	end = ask(a);
	print_end(a, end);
	if (end == END_GONE || end == END_LATE)
		withdraw(a);
	talk_hang_up(a->cli);
	koine_doc_free(a->answer);
}

/* Except for wrong usage the exit code is 0: anything else would be a decision. */
int cmd_hook(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf text;
	struct hook_input in = {.doc = NULL};
	struct asking a = {.cli = cli, .in = &in};
	struct why why = {0};
	int r;

	buf_init(&text, INPUT_MAX);
	r = read_hook(&in, &text, cli->own, &why);
	if (r == 0) {
		ask_and_print(&a);
	} else if (in.hook.told) {
		hook_tell(cli, &in);
	} else {
		complain("%s%s", r == REFUSE_METHOD ? "" : "no hook's JSON on stdin: ", why.text);
		print_unavailable(&in, why.text);
		hook_tell_unread(cli, &in, why.text);
	}
	hook_input_done(&in);
	end_by_signal(&a);
	return EX_OK;
}
