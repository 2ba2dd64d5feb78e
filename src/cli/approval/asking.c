#include "cli/approval/asking.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

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

void asking_catch_signals(struct asking *a)
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
void asking_end_by_signal(const struct asking *a)
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
	talk_print_error(a->method, answer);
}

static void on_answer(void *arg, int result, const struct koine_answer *answer)
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
	r = call_async(a->cli->client, a->method, j, on_answer, a, NULL);
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

/* Tells people who try it by hand how to continue. Agents have no terminal there. */
static void say_waiting(struct asking *a)
{
	a->said = true;
	complain("%s %.8s", a->hint, a->id);
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
		if (to_say && a->under_way && clock_steady_ms() >= say_ms)
			say_waiting(a);
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

enum asking_end asking_wait(struct asking *a)
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
void asking_withdraw(struct asking *a)
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

void asking_set_deadline(struct asking *a, int64_t ms)
{
	a->deadline_ms = ms > 0 ? clock_steady_ms() + (uint64_t)ms : UINT64_MAX;
	/* The time limits of a call and of dialling end later than our own. */
	a->cli->options.timeout_ms =
		ms > 0 && ms < UINT32_MAX / 2 ? (uint32_t)ms + 2 * GRACE_MS : UINT32_MAX;
}

void asking_add_run(struct koine_json *params)
{
	const char *run = option_from_environment("KOINE_RUN_ID");

	params_add(params, "session_id", option_from_environment("KOINE_SESSION_ID"));
	params_add(params, "run_id", run ? run : option_from_environment("HUMANLAYER_RUN_ID"));
}

bool asking_interrupted(void)
{
	return ended_by == SIGINT;
}
