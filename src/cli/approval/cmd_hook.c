/*
 * koine hook: an agent's own hook, which asks a human through koined.
 *
 * It reads what the agent tells of a tool call from stdin, asks, waits, and prints the decision in
 * the form that this agent wants. Where there is none, it prints nothing and exits with 0: the
 * agent then asks by itself. What it wants to do must be no way around koined, though: where that
 * cannot be read, or koined refuses to be asked it, the agent is told to ask.
 *
 * A daemon that leaves meanwhile is waited for and asked again, by the same id, so that nobody has
 * to decide twice. When the agent ends us, or is gone, the question goes with us.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/surrogate.h"
#include "base/uuid.h"
#include "cli/approval/approval.h"
#include "cli/approval/hook.h"

enum {
	INPUT_MAX = 4 << 20,
	READ_SIZE = 64 << 10,
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	WAIT_MS = 55 * 1000, /* agents end their hooks after 60 s, unless told otherwise */
	GRACE_MS = 2000,     /* for the daemon to say itself that time is over */
	WITHDRAW_MS = 1000,
	SAY_MS = 1000,               /* then who looks on is told that it waits */
	AWAY_MAX_MS = 5 * 60 * 1000, /* without a time limit, this long the daemon may be gone */
	STOPPING_CODE = -32008,
	CONFLICT_CODE = -32002, /* it is decided */
};

/* How the waiting ends. */
enum end {
	END_NONE, /* not yet */
	END_DECIDED,
	END_LATE,
	END_UNAVAILABLE,
	END_REFUSED, /* what is asked */
	END_GONE,    /* whoever asked */
};

struct asking {
	struct cli *cli;
	const struct hook *hook;
	struct hook_place place;
	struct koine_client *client;
	char id[UUID_LEN + 1];
	uint64_t deadline_ms; /* of the steady clock; UINT64_MAX: none */
	sigset_t mask;        /* while we wait */
	bool under_way;
	bool said;                /* that it waits */
	int result;               /* of the last call */
	char refusal[256];        /* why it was */
	struct koine_doc *answer; /* NULL: none yet */
};

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

/* ---- signals: blocked but while we wait, so that none comes in between ---- */

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
	ended_by = number;
}

static void catch_signals(struct asking *a)
{
	struct sigaction ours = {.sa_handler = on_signal};
	struct sigaction before;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaddset(&set, signals[i]);
		/* nohup has its reasons. */
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &ours, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, &a->mask);
}

/* As if we had never caught it. */
static void end_by_signal(const struct asking *a)
{
	if (ended_by == 0)
		return;
	signal(ended_by, SIG_DFL);
	raise(ended_by);
	sigprocmask(SIG_SETMASK, &a->mask, NULL);
}

/* ---- asking ---- */

static void take_refusal(struct asking *a, const struct koine_answer *answer)
{
	struct text why = {0};

	why.data = koine_answer_error_message(answer, &why.len);
	why = text_cut(why, sizeof(a->refusal) - 1);
	snprintf(a->refusal, sizeof(a->refusal), "%.*s", TEXT_ARGS(why));
	talk_print_error("approval.request", answer);
}

static void on_answer(void *arg, int result, const struct koine_answer *answer)
{
	struct asking *a = arg;
	const char *raw;
	size_t len;

	a->under_way = false;
	a->result = result;
	if (result == KOINE_ERROR_ANSWER && koine_answer_error_code(answer) == STOPPING_CODE)
		a->result = -ECONNRESET;
	else if (result == KOINE_ERROR_ANSWER)
		take_refusal(a, answer);
	if (result != 0)
		return;
	raw = koine_value_raw(koine_answer_result(answer), &len);
	if (koine_doc_parse(raw, len, &a->answer, NULL, 0) != 0)
		a->result = -ENOMEM;
}

/* What is left of the time; 0: there is no limit. */
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
	hook_write_request(a->hook, &a->place, a->id, time_left(a), j);
	params = koine_json_text(j, NULL);
	if (!params)
		return -ENOMEM;
	a->under_way = true;
	r = koine_client_call_async(a->client, "approval.request", params, on_answer, a, NULL);
	if (r != 0)
		a->under_way = false;
	return r;
}

/* Until the daemon has something to say, or so many milliseconds are over. True: go on. */
static bool wait_for(struct asking *a, bool with_daemon, int ms)
{
	struct pollfd p[] = {
		{.fd = STDOUT_FILENO}, /* whoever reads it is gone: only that is told */
		{.fd = with_daemon ? koine_client_fd(a->client) : -1,
		 .events = koine_client_events(a->client)},
	};
	int ours = koine_client_timeout_ms(a->client);
	struct timespec limit;

	if (with_daemon && ours >= 0 && ours < ms)
		ms = ours;
	limit = (struct timespec) {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	(void)ppoll(p, 2, &limit, &a->mask);
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

/* Who tries it by hand sees where to go on. Agents have no terminal there. */
static void say_waiting(struct asking *a)
{
	a->said = true;
	complain("it waits for a human: see koine approvals %.8s", a->id);
}

/* One question to the daemon. END_NONE: the connection was lost. */
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
		(void)koine_client_step(a->client);
		if (to_say && a->under_way && clock_steady_ms() >= say_ms)
			say_waiting(a);
	}
	if (r == 0)
		r = a->result;
	if (r == 0)
		return END_DECIDED;
	if (r == KOINE_ERROR_ANSWER)
		return END_REFUSED;
	/* Somebody else has taken the daemon's place: that is nobody who could decide. */
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
		/* It was there for a while: from here on it counts anew. */
		if (end == END_NONE && clock_steady_ms() - now > RETRY_MAX_MS) {
			asked_ms = clock_steady_ms();
			delay_ms = RETRY_MS;
		}
	}
	return end;
}

/* ---- leaving ---- */

/* Nobody shall decide what nobody waits for. Another connection says so, for ours is busy with the
 * question itself; which may still be on its way, and is looked for again. Whoever ended us does
 * not wait long, either. */
static void withdraw(struct asking *a)
{
	const struct timespec soon = {.tv_nsec = RETRY_MS * 1000000L / 4};
	uint64_t most_ms = clock_steady_ms() + WITHDRAW_MS;
	struct koine_client *c = NULL;
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
		if (code == CONFLICT_CODE)
			break;
		if (r == KOINE_ERROR_ANSWER)
			nanosleep(&soon, NULL);
	}
	koine_client_free(c);
}

/* ---- what is printed ---- */

static struct text member(const struct koine_doc *doc, const char *key)
{
	const struct koine_value *v = koine_value_get(koine_doc_root(doc), key);
	struct text t = {0};

	if (koine_value_kind(v) == KOINE_STRING)
		t.data = koine_value_text(v, &t.len);
	return t;
}

static void print_answer(const struct hook *h, const struct hook_outcome *o)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

	if (koine_json_new(&j) != 0 || !hook_write_answer(h, o, j))
		return;
	text = koine_json_text(j, NULL);
	if (text)
		printf("%s\n", text);
	fflush(stdout);
}

static void print_unreadable(const struct hook *h, const char *why)
{
	const struct hook_outcome o = {
		.status = TEXT("unavailable"), .comment = text_of(why), .refused = true};

	print_answer(h, &o);
}

static void print_unavailable(const struct hook *h)
{
	const struct hook_outcome o = {.status = TEXT("unavailable")};

	print_answer(h, &o);
}

static void print_end(const struct asking *a, enum end end)
{
	struct hook_outcome o = {.id = a->id};

	switch (end) {
	case END_DECIDED:
		o.status = member(a->answer, "status");
		o.comment = member(a->answer, "comment");
		o.decided_by = member(a->answer, "decided_by");
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
		complain("%.*s: %.*s", TEXT_ARGS(a->hook->tool), TEXT_ARGS(o.status));
	print_answer(a->hook, &o);
}

/* ---- the command ---- */

static int read_input(struct buf *in)
{
	ssize_t n = 1;

	if (isatty(STDIN_FILENO))
		complain("reading a hook's JSON from stdin");
	while (n > 0 && buf_reserve(in, READ_SIZE) == 0) {
		n = read(STDIN_FILENO, in->data + in->len, READ_SIZE);
		in->len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		return -errno;
	return in->err;
}

/* Of what is too long the beginning still tells whose it is. */
static int read_hook(struct hook *h, struct buf *in, const char *format, const char *agent,
		     char *error, size_t size)
{
	int fault = read_input(in);
	int r;

	if (in->len > 0)
		mend_surrogates(in->data, in->len);
	r = hook_read(h, in->data ? in->data : "", in->len, format, agent, error, size);
	if (fault == 0)
		return r;
	snprintf(error, size, "%s", strerror(-fault));
	return fault;
}

static void set_deadline(struct asking *a)
{
	int64_t ms = a->cli->options.approval.wait_ms;

	if (ms == 0 && a->hook->form != HOOK_PLAIN)
		ms = WAIT_MS;
	a->deadline_ms = ms > 0 ? clock_steady_ms() + (uint64_t)ms : UINT64_MAX;
	/* Of one call, and of dialling: our own clock ends it first. */
	a->cli->options.timeout_ms =
		ms > 0 && ms < UINT32_MAX / 2 ? (uint32_t)ms + 2 * GRACE_MS : UINT32_MAX;
}

static void ask_and_print(struct asking *a)
{
	enum end end;

	a->place.session = getenv("KOINE_SESSION_ID");
	a->place.run = getenv("KOINE_RUN_ID");
	if (!a->place.run || !a->place.run[0])
		a->place.run = getenv("HUMANLAYER_RUN_ID");
	set_deadline(a);
	if (uuid4(a->id) != 0 || talk_dial(a->cli, NULL, NULL, &a->client) != 0) {
		print_unavailable(a->hook);
		return;
	}
	catch_signals(a);
	end = ask(a);
	print_end(a, end);
	if (end == END_GONE || end == END_LATE)
		withdraw(a);
	koine_client_free(a->client);
	koine_doc_free(a->answer);
}

/* Usage errors apart it is always 0: anything else would be a decision. */
int cmd_hook(struct cli *cli)
{
	const struct approval_options *o = &cli->options.approval;
	const char *format = o->format ? o->format : "auto";
	CLEANUP(buf_donep) struct buf in;
	struct hook hook = {0};
	struct asking a = {.cli = cli, .hook = &hook};
	char error[256] = "";
	int r;

	buf_init(&in, INPUT_MAX);
	if (cli->n_args > 0) {
		complain("hook takes no arguments; it reads JSON from stdin");
		return EX_USAGE;
	}
	r = read_hook(&hook, &in, format, o->agent, error, sizeof(error));
	if (r == 0) {
		ask_and_print(&a);
	} else {
		complain("no hook's JSON on stdin: %s", error);
		print_unreadable(&hook, error);
	}
	hook_done(&hook);
	end_by_signal(&a);
	return EX_OK;
}
