/*
 * koine ask: a question from a script, whose exit status is the answer.
 *
 *	koine ask "Deploy to production?" && deploy
 *
 * Without --choices it is a request that is approved or denied, otherwise a question that is
 * answered with one of the choices.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/approval/approval.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/lines.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"
#include "hook/hook.h"
#include "wire/json.h"

/* ---- a question, and the wait for its answer ---- */

/*
 * If the daemon leaves meanwhile, we wait for it and ask again with the same id, so that
 * nobody has to decide twice. When we are interrupted, or the reader of our stdout is gone, the
 * caller withdraws the question.
 */

/* How the wait ends. */
enum asking_end {
	ASKING_NONE, /* not yet */
	ASKING_DECIDED,
	ASKING_LATE,
	ASKING_UNAVAILABLE,
	ASKING_REFUSED, /* koined refuses the question */
	ASKING_GONE,    /* a signal ended us, or the agent is gone */
};

struct asking {
	struct cli *cli;
	const char *method;
	/* Adds its params, but for id, timeout, session_id and run_id. */
	void (*add)(const struct asking *a, struct koine_json *params);
	bool by_rules;      /* without a policy or grant that decides, koined refuses nothing */
	const char *hint;   /* tells people at a terminal what to do; the id follows it */
	unsigned hint_ms;   /* delay before the hint is printed */
	bool reader_counts; /* without a reader of stdout nobody waits */
	char id[UUID_LEN + 1];
	uint64_t deadline_ms; /* of the steady clock; UINT64_MAX: none */
	struct signals signals;
	bool under_way;
	bool said;                /* the hint was printed */
	int result;               /* of the last call */
	char refusal[256];        /* why it was */
	struct koine_doc *answer; /* NULL: none yet */
};

enum {
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	GRACE_MS = 2000, /* the daemon gets this long to report that the question has expired */
	WITHDRAW_MS = 1000,
	AWAY_MAX_MS = 5 * 60 * 1000, /* how long the daemon may be gone if there is no time limit */
};

/* ---- signals ---- */

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
	ended_by = number;
}

/* SIGINT, SIGTERM and SIGHUP end the wait. */
static void asking_catch_signals(struct asking *a)
{
	struct signals *s = &a->signals;

	signals_catch(s, numbers, sizeof(numbers) / sizeof(numbers[0]), on_signal);
	/* What nohup ignores stays ignored. */
	for (size_t i = 0; i < s->n; i++) {
		if (s->before[i].sa_handler == SIG_IGN)
			sigaction(numbers[i], &s->before[i], NULL);
	}
}

/* If a signal ended the wait, dies by it, as if we had never caught it. */
static void asking_end_by_signal(const struct asking *a)
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
	struct text reason = text_cut(talk_error(answer), sizeof(a->refusal) - 1);

	snprintf(a->refusal, sizeof(a->refusal), "%.*s", TEXT_ARGS(reason));
	talk_print_error(a->method, answer);
}

static void approval_ask_on_answer(void *arg, int result, const struct koine_answer *answer)
{
	struct asking *a = arg;

	a->under_way = false;
	a->result = result;
	if (result == KOINE_ERROR_ANSWER && koine_answer_error_code(answer) == CODE_STOPPING)
		a->result = -ECONNRESET;
	else if (result == KOINE_ERROR_ANSWER && a->by_rules &&
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

/* A question that cannot even be sent, because it is too large or too deep, is refused. */
static int refuse_here(struct asking *a, int r)
{
	if (r != -EMSGSIZE && r <= 0)
		return r;
	snprintf(a->refusal, sizeof(a->refusal), "%s", koine_client_error(a->cli->client));
	complain("%s", a->refusal);
	return KOINE_ERROR_ANSWER;
}

/* The session and the run that a question belongs to, from the environment, as params. */
static void asking_add_run(struct koine_json *params)
{
	const char *run = option_from_environment("KOINE_RUN_ID");

	params_add(params, "session_id", option_from_environment("KOINE_SESSION_ID"));
	params_add(params, "run_id", run ? run : option_from_environment("HUMANLAYER_RUN_ID"));
}

static int request(struct asking *a)
{
	struct koine_json *j = params_new();
	int64_t left_ms = time_left(a);
	int r;

	params_add(j, "id", a->id);
	a->add(a, j);
	asking_add_run(j);
	if (left_ms > 0)
		params_add_double(j, "timeout", (double)left_ms / 1000);
	a->under_way = true;
	r = call_async(a->cli->client, a->method, j, approval_ask_on_answer, a, NULL);
	if (r != 0)
		a->under_way = false;
	return refuse_here(a, r);
}

/* Waits for the daemon, or so many milliseconds. False: nobody waits for the answer any more. */
static bool wait_for(struct asking *a, bool with_daemon, int ms)
{
	struct pollfd p[] = {
		/* no events: poll only reports that the reader is gone */
		{.fd = a->reader_counts ? STDOUT_FILENO : -1},
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

/* Asks once, and waits. ASKING_NONE: the connection was lost. */
static enum asking_end ask_once(struct asking *a)
{
	uint64_t late_ms = a->deadline_ms == UINT64_MAX ? UINT64_MAX : a->deadline_ms + GRACE_MS;
	bool shown = isatty(STDERR_FILENO);
	uint64_t say_ms = clock_steady_ms() + a->hint_ms;
	int r = request(a);

	while (r == 0 && a->under_way) {
		bool to_say = shown && !a->said;

		if (!wait_for(a, true, until(to_say && say_ms < late_ms ? say_ms : late_ms)))
			return ASKING_GONE;
		if (clock_steady_ms() >= late_ms)
			return ASKING_LATE;
		(void)koine_client_step(a->cli->client);
		/* Tells people who try it by hand how to continue. Agents have no terminal there. */
		if (to_say && a->under_way && clock_steady_ms() >= say_ms) {
			a->said = true;
			complain("%s %.8s", a->hint, a->id);
		}
	}
	if (r == 0)
		r = a->result;
	if (r == 0)
		return ASKING_DECIDED;
	if (r == KOINE_ERROR_ANSWER)
		return ASKING_REFUSED;
	/* If another program has taken the daemon's place, nobody can decide. */
	return r > 0 || r == -ENOMEM || r == -EACCES ? ASKING_UNAVAILABLE : ASKING_NONE;
}

/* Needs an id and a connection. Never returns ASKING_NONE. */
static enum asking_end asking_wait(struct asking *a)
{
	unsigned delay_ms = RETRY_MS;
	uint64_t asked_ms = clock_steady_ms();
	enum asking_end end = ask_once(a);

	while (end == ASKING_NONE) {
		uint64_t now = clock_steady_ms();
		uint64_t most_ms =
			a->deadline_ms == UINT64_MAX ? asked_ms + AWAY_MAX_MS : a->deadline_ms;

		if (delay_ms == RETRY_MS)
			complain("lost connection to koined; reconnecting");
		if (now >= most_ms)
			return ASKING_UNAVAILABLE;
		if (!wait_for(a, false, (int)delay_ms))
			return ASKING_GONE;
		delay_ms = 2 * delay_ms < RETRY_MAX_MS ? 2 * delay_ms : RETRY_MAX_MS;
		now = clock_steady_ms();
		end = ask_once(a);
		/* The daemon was there for a while, so the time it may be away starts over. */
		if (end == ASKING_NONE && clock_steady_ms() - now > RETRY_MAX_MS) {
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
static void asking_withdraw(struct asking *a)
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

/* 0: no limit. Call it before the daemon is dialled. */
static void asking_set_deadline(struct asking *a, int64_t ms)
{
	a->deadline_ms = ms > 0 ? clock_steady_ms() + (uint64_t)ms : UINT64_MAX;
	/* The time limits of a call and of dialling end later than our own. */
	a->cli->options.timeout_ms =
		ms > 0 && ms < UINT32_MAX / 2 ? (uint32_t)ms + 2 * GRACE_MS : UINT32_MAX;
}

enum { QUESTION_MAX = 64 << 10, CHOICES_MAX = 64 };

struct question {
	struct asking asking;
	struct text text;
	struct text choices[CHOICES_MAX];
	unsigned n; /* 0: it is approved or denied */
};

/* ---- what is asked ---- */

static const char blanks[] = " \t\r\n";

/* "blue,green" */
static int read_choices(struct question *q, const char *list)
{
	const char *at = list;

	while (at) {
		const char *comma = strchr(at, ',');
		struct text choice = {at, comma ? (size_t)(comma - at) : strlen(at)};

		choice = text_trim(choice, blanks);
		if (choice.len == 0 || q->n == CHOICES_MAX)
			return fail_with(EX_USAGE,
					 "invalid --choices '%s': expected 1 to %d answers "
					 "separated by commas",
					 list, CHOICES_MAX);
		q->choices[q->n++] = choice;
		at = comma ? comma + 1 : NULL;
	}
	return 0;
}

static int read_question(const struct cli *cli, struct question *q, struct buf *text)
{
	const struct approval_options *o = cli->own;
	int r = o->choices ? read_choices(q, o->choices) : 0;

	if (r == 0)
		r = args_text(cli, text);
	if (r != 0)
		return r;
	if (text->err != 0 || text->len > QUESTION_MAX ||
	    text_trim(buf_text(text), blanks).len == 0)
		return fail_with(EX_DATAERR,
				 text->len > QUESTION_MAX || text->err != 0
					 ? "the question is longer than %d bytes"
					 : "the question is empty: expected 1 to %d bytes",
				 QUESTION_MAX);
	return 0;
}

/* The inbox shows a question's {"msg", "choices"}. */
static void add_question(const struct asking *a, struct koine_json *j)
{
	const struct question *q = list_entry(a, struct question, asking);
	const struct approval_options *o = a->cli->own;

	params_add(j, "kind", q->n > 0 ? "human_contact" : "function_call");
	params_add(j, "tool", "ask");
	params_add(j, "agent", o->agent);
	if (!params_begin_object(j, "input"))
		return;
	params_add_text(j, q->n > 0 ? "msg" : "question", q->text);
	if (q->n > 0 && params_begin_array(j, "choices")) {
		for (unsigned i = 0; i < q->n; i++)
			koine_json_text_n(j, q->choices[i].data, q->choices[i].len);
		koine_json_end_array(j);
	}
	koine_json_end_object(j);
}

/* ---- what came of it ---- */

static bool equals(struct text a, struct text b)
{
	return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static const struct text *find_choice(const struct question *q, struct text answer)
{
	for (unsigned i = 0; i < q->n; i++) {
		if (text_equal(q->choices[i], answer))
			return &q->choices[i];
	}
	for (unsigned i = 0; i < q->n; i++) {
		if (equals(q->choices[i], answer))
			return &q->choices[i];
	}
	return NULL;
}

static int take_choice(const struct cli *cli, const struct question *q, struct text answer)
{
	const struct text *choice = find_choice(q, text_trim(answer, blanks));

	if (choice) {
		if (!cli->options.json)
			printf("%.*s\n", TEXT_ARGS(*choice));
		return EX_OK;
	}
	fputs("koine: declined: ", stderr);
	print_exact(stderr, answer);
	fputc('\n', stderr);
	return EXIT_ERROR_ANSWER;
}

static int take_decision(const struct cli *cli, const struct question *q,
			 const struct koine_value *answer)
{
	struct text status = member_string(answer, "status");
	struct text comment = member_string(answer, "comment");
	char said[APPROVAL_COMMENT_SIZE];

	(void)print_if_json(cli, answer);
	if (text_is(status, "responded"))
		return take_choice(cli, q, comment);
	if (text_is(status, "approved") && comment.len == 0)
		return EX_OK;
	approval_say_end(answer, said, sizeof(said));
	complain("%s", said);
	if (text_is(status, "approved"))
		return EX_OK;
	return text_is(status, "denied") ? EXIT_ERROR_ANSWER : EX_TEMPFAIL;
}

static int take_end(const struct asking *a, const struct question *q, enum asking_end end)
{
	switch (end) {
	case ASKING_DECIDED:
		return take_decision(a->cli, q, koine_doc_root(a->answer));
	case ASKING_LATE:
		return fail_with(EX_TEMPFAIL, "timed out waiting for an answer");
	case ASKING_GONE:
		return fail_with(EXIT_INTERRUPTED, "interrupted; the request was withdrawn");
	case ASKING_NONE:
	case ASKING_UNAVAILABLE:
		return fail_with(EX_UNAVAILABLE, "koined is not running (try: koine daemon start)");
	case ASKING_REFUSED: /* it has been printed */
		break;
	}
	return EX_UNAVAILABLE;
}

/* ---- the command ---- */

static int ask(struct cli *cli, struct question *q)
{
	const struct approval_options *o = cli->own;
	struct asking *a = &q->asking;
	enum asking_end end;
	int r;

	*a = (struct asking) {
		.cli = cli,
		.method = "approval.request",
		.add = add_question,
		.hint = q->n > 0 ? "waiting for an answer: koine respond"
				 : "waiting for approval: koine approve",
	};
	asking_set_deadline(a, o->wait_ms);
	if (uuid4(a->id) != 0)
		return EX_OSERR;
	r = talk_connect(cli);
	if (r != 0)
		return r;
	asking_catch_signals(a);
	end = asking_wait(a);
	if (end == ASKING_GONE || end == ASKING_LATE)
		asking_withdraw(a);
	r = take_end(a, q, end);
	talk_hang_up(cli);
	koine_doc_free(a->answer);
	if (end == ASKING_GONE && ended_by != SIGINT)
		asking_end_by_signal(a);
	return r;
}

int cmd_ask(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf text;
	struct question q = {.n = 0};
	int r;

	buf_init(&text, 4 * QUESTION_MAX);
	r = read_question(cli, &q, &text);
	q.text = text_trim(buf_text(&text), blanks);
	return r != 0 ? r : ask(cli, &q);
}

/*
 * koine hook: an agent's own hook, which koined runs: it gets what the agent says on stdin, and what
 * it returns is printed.
 *
 * Where koined cannot answer, the agent is answered here: koined is away or leaves, nobody decides in
 * time, koined refuses the question, or the input cannot be read. Without a decision the agent asks
 * by itself, but it must not get around koined by what it wants to do: what cannot be read, and what
 * koined refuses, the agent is told to ask about. src/hook knows the words of each agent.
 */

enum {
	INPUT_MAX = 4 << 20,
	ARENA_MAX = 256 << 20, /* a value for every two bytes of the longest input */
	ANSWER_MAX = 1 << 20,
	HINT_MS = 1000,
	TELL_MS = 3000, /* an agent never waits long where nobody decides */
};

struct approval_ask_run {
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

static void print_outcome(const struct approval_ask_run *run, const struct hook_outcome *o)
{
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, ANSWER_MAX);
	hook_answer(&run->hook, o, &out);
	if (out.err == 0)
		print_said(buf_text(&out));
}

/* error NULL: koined could not be asked; otherwise why it refused the question. */
static void print_unavailable(const struct approval_ask_run *run, const char *reason)
{
	print_outcome(run, &(struct hook_outcome) {.status = TEXT("unavailable"),
						   .comment = text_of(reason),
						   .refused = reason != NULL});
}

/* False: there is nothing to print. */
static bool print_result(const struct koine_value *result)
{
	const struct koine_value *output = koine_value_get(result, "output");
	bool says = koine_value_kind(output) == KOINE_OBJECT;

	print_said(says ? text_of_raw(output) : (struct text) {0});
	return says;
}

/* A response without a status decides nothing. If there is no output, all but a yes is worded here:
 * agents take silence for consent. */
static void print_end(const struct approval_ask_run *run, enum asking_end end)
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
	if (!decided || (!print_result(result) && !text_among(o.status, "approved|responded")))
		print_outcome(run, &o);
}

/* ---- what koined is told ---- */

static void add_hook(const struct asking *a, struct koine_json *j)
{
	const struct approval_ask_run *run = list_entry(a, struct approval_ask_run, asking);
	const struct approval_options *o = a->cli->own;

	params_add(j, "format", o->format);
	params_add(j, "agent", o->agent);
	params_add_raw(j, "input", buf_text(&run->text));
}

static void ask_and_print(struct approval_ask_run *run)
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
static void approval_ask_notify(struct approval_ask_run *run)
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
		(void)print_result(koine_answer_result(answer));
	talk_hang_up(cli);
}

/* koined's log says why, if koined is there. */
static void tell_unread(const struct approval_ask_run *run, const char *reason)
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
	params_add(j, "text", reason);
	params = params_end(j);
	if (params)
		(void)koine_client_call(c, "agent.note", params, &answer);
	koine_answer_free(answer);
}

/* ---- the command ---- */

/* The beginning of an input that is too long still shows which agent it is from. */
static int read_hook(struct approval_ask_run *run, struct error *error)
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
	r = json_read(&run->arena, from.text.data, from.text.len, &json_default_limits, &tree,
		      error);
	if (r < 0)
		snprintf(error->text, sizeof(error->text), "out of memory");
	from.tree = tree;
	r = hook_read(&run->arena, &from, &run->hook, error);
	if (fault == 0)
		return r;
	snprintf(error->text, sizeof(error->text), "%s", strerror(-fault));
	return fault;
}

/* Except for wrong usage the exit code is 0: anything else would be a decision. */
int cmd_hook(struct cli *cli)
{
	struct approval_ask_run run = {
		.asking = {.cli = cli,
			   .method = "hook.run",
			   .add = add_hook,
			   .hint = "waiting for a decision (see: koine approvals)",
			   .hint_ms = HINT_MS,
			   .reader_counts = true}};
	struct error error = {0};
	int r;

	buf_init(&run.text, INPUT_MAX);
	arena_init(&run.arena, ARENA_MAX);
	r = read_hook(&run, &error);
	run.asking.by_rules = run.hook.by_rules;
	if (r == 0) {
		ask_and_print(&run);
	} else if (run.hook.told) {
		approval_ask_notify(&run);
	} else {
		complain("%s%s",
			 r == REFUSE_METHOD ? "" : "invalid hook input on stdin: ", error.text);
		print_unavailable(&run, error.text);
		tell_unread(&run, error.text);
	}
	arena_done(&run.arena);
	buf_done(&run.text);
	asking_end_by_signal(&run.asking);
	return EX_OK;
}
