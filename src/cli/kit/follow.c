#include "cli/kit/follow.h"

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"

enum { RETRY_MS = 100, RETRY_MAX_MS = 1000 };

static const char subscribe_method[] = "event.subscribe";

/* Waits until there is something to do for the client, or a signal. */
static void wait_for(struct koine_client *c, const struct signals *s)
{
	struct pollfd p = {.fd = koine_client_fd(c), .events = koine_client_events(c)};

	(void)signals_poll(s, &p, 1, koine_client_timeout_ms(c));
}

/* ---- events ---- */

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	struct follow *f = arg;

	f->has_news = true;
	f->told(f->arg, (struct text) {.data = method, .len = method ? len : 0},
		koine_value_get(whole, "params"));
}

/* Like koine_client_call; *ret_failed is the answer of an error. */
static int subscribe(struct follow *f, struct koine_answer **ret_failed)
{
	struct koine_answer *a = NULL;
	int r = call_ask(f->cli, subscribe_method, f->params(f->arg), &a);

	if (r != 0) {
		*ret_failed = a;
		return r;
	}
	if (f->subscribed)
		f->subscribed(f->arg, koine_answer_result(a));
	koine_answer_free(a);
	return 0;
}

static bool is_left(const struct follow *f)
{
	return f->leaves && signals_interrupts() > 0;
}

/* Subscribes again and again until the daemon is back, or Ctrl-C. 0 or an exit code. */
static int come_back(struct follow *f, const struct signals *s)
{
	unsigned ms = RETRY_MS;

	complain("lost connection to koined; reconnecting");
	for (;;) {
		CLEANUP(answer_freep) struct koine_answer *failed = NULL;
		int r;

		(void)signals_poll(s, NULL, 0, (int)ms);
		if (is_left(f))
			return 0;
		r = subscribe(f, &failed);
		if (r == 0)
			break;
		if (!talk_may_come_back(r, failed))
			return talk_failed(f->cli->client, subscribe_method, r, failed);
		ms = 2 * ms < RETRY_MAX_MS ? 2 * ms : RETRY_MAX_MS;
	}
	complain("reconnected to koined");
	return 0;
}

/* Looks for what is new, then waits once. 0 or an exit code. */
static int kit_follow_go_on(struct follow *f, const struct signals *s)
{
	CLEANUP(answer_freep) struct koine_answer *failed = NULL;
	int r = 0;

	f->has_news = false;
	if (f->look)
		r = f->look(f->arg, &failed);
	if (fflush(stdout) != 0 || ferror(stdout))
		return EX_IOERR;
	/* If events arrived during the look, look again at once. */
	if (r == 0 && !f->ended && !f->has_news) {
		wait_for(f->cli->client, s);
		r = is_left(f) ? 0 : koine_client_step(f->cli->client);
	}
	if (r == 0)
		return 0;
	if (!talk_may_come_back(r, failed))
		return talk_failed(f->cli->client, subscribe_method, r, failed);
	fflush(stdout);
	return come_back(f, s);
}

int follow_events(struct follow *f)
{
	CLEANUP(answer_freep) struct koine_answer *failed = NULL;
	struct signals s = {0};
	int r;

	koine_client_on_notification(f->cli->client, on_notification, f);
	r = subscribe(f, &failed);
	if (r != 0)
		r = talk_failed(f->cli->client, subscribe_method, r, failed);
	if (f->leaves)
		signals_catch_interrupt(&s);
	else
		signals_catch(&s, NULL, 0, NULL);
	while (r == 0 && !f->ended && !is_left(f))
		r = kit_follow_go_on(f, &s);
	signals_restore(&s);
	koine_client_on_notification(f->cli->client, NULL, NULL);
	return r == 0 && !f->ended ? EXIT_INTERRUPTED : r;
}

/* ---- one call ---- */

bool follow_answer(struct koine_client *c, const bool *is_done, void (*interrupted)(void *arg),
		   void *arg)
{
	struct signals s;
	int seen = 0;

	signals_catch_interrupt(&s);
	while (!*is_done && seen < 2) {
		wait_for(c, &s);
		if (signals_interrupts() > seen && ++seen == 1)
			interrupted(arg);
		else if (seen < 2)
			(void)koine_client_step(c);
	}
	signals_restore(&s);
	return *is_done;
}
