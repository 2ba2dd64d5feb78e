#include "cli/screen/live.h"

#include "base/clock.h"
#include "cli/kit/talk.h"

enum {
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	EVERY_MS = 1000, /* how often ages are redrawn */
	FRAME_MS = 40,   /* a burst of events is not a burst of frames */
};

/* ---- the connection ---- */

void live_lost(struct live *l)
{
	bool was_here = l->here;

	l->here = l->subscribing = false;
	l->retry_ms = clock_steady_ms() + l->delay_ms;
	l->delay_ms = 2 * l->delay_ms < RETRY_MAX_MS ? 2 * l->delay_ms : RETRY_MAX_MS;
	l->changed = true;
	if (was_here)
		l->away(l->arg);
}

const char *live_away_words(const struct live *l)
{
	return l->was_here ? "lost connection to koined; reconnecting" : "connecting to koined";
}

bool live_is_loss(int result, const struct koine_answer *a)
{
	return result < 0 ||
	       (result == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == CODE_STOPPING);
}

bool live_took(struct live *l, const char *method, int result, const struct koine_answer *a)
{
	if (l->screen.leave || result == 0)
		return !l->screen.leave;
	if (live_is_loss(result, a)) {
		live_lost(l);
		return false;
	}
	screen_fail(&l->screen, EXIT_ERROR_ANSWER);
	if (a)
		talk_print_error(method, a);
	return false;
}

bool live_call(struct live *l, const char *method, struct koine_json *params, koine_answer_cb cb,
	       void *arg)
{
	l->n_calls++;
	if (call_async(l->cli->client, method, params, cb, arg, NULL) == 0)
		return true;
	live_lost(l);
	return false;
}

static void on_subscribed(void *arg, int result, const struct koine_answer *a)
{
	struct live *l = arg;

	if (!live_took(l, "event.subscribe", result, a))
		return;
	l->subscribing = false;
	l->here = l->was_here = l->changed = true;
	l->delay_ms = RETRY_MS;
	l->ask_ms = 0;
	l->back(l->arg);
}

/* Before anything is asked: what changes after the answer is told. */
static void subscribe(struct live *l)
{
	struct koine_json *j = params_new();

	params_add_list(j, "types", l->types);
	l->subscribing = true;
	(void)live_call(l, "event.subscribe", j, on_subscribed, l);
}

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	struct live *l = arg;

	if (!l->screen.leave && l->here)
		l->told(l->arg, koine_value_get(whole, "params"));
}

static bool is_talking(const struct live *l)
{
	return l->here || l->subscribing;
}

static void talk(struct live *l)
{
	if (is_talking(l) && koine_client_step(l->cli->client) != 0 && is_talking(l) &&
	    !l->screen.leave)
		live_lost(l);
	if (!is_talking(l) && !l->screen.leave && clock_steady_ms() >= l->retry_ms)
		subscribe(l);
	if (l->here && !l->screen.leave)
		l->ask_ms = clock_steady_ms() + (uint64_t)l->ask(l->arg);
}

/* ---- the round ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int time_left(const struct live *l)
{
	uint64_t now = clock_steady_ms();
	uint64_t next = l->drawn_ms + EVERY_MS;

	if (l->changed)
		next = l->drawn_ms + FRAME_MS;
	if (l->keys.escape > 0)
		next = sooner(next, l->keys.escape_ms + KEYS_ESCAPE_MS);
	if (!is_talking(l))
		next = sooner(next, l->retry_ms);
	if (l->here)
		next = sooner(next, l->ask_ms);
	return next <= now ? 0 : (int)(next - now);
}

static void on_key(void *arg, int key)
{
	struct live *l = arg;

	l->key(l->arg, key);
}

static void on_byte(void *arg, char byte)
{
	struct live *l = arg;

	keys_take(&l->keys, byte, on_key, l);
}

static void on_redraw(void *arg)
{
	struct live *l = arg;

	l->changed = true;
}

static void draw(struct live *l)
{
	l->changed = false;
	screen_draw(&l->screen, l->draw, l->arg);
	l->drawn_ms = clock_steady_ms();
}

static void go_on(void *arg)
{
	struct live *l = arg;

	screen_wait(&l->screen, is_talking(l) ? l->cli->client : NULL, time_left(l));
	if (l->keys.escape > 0 && clock_steady_ms() >= l->keys.escape_ms + KEYS_ESCAPE_MS)
		keys_give_up(&l->keys, on_key, l);
	if (!l->screen.leave)
		talk(l);
	if (!l->screen.leave &&
	    clock_steady_ms() >= l->drawn_ms + (unsigned)(l->changed ? FRAME_MS : EVERY_MS))
		draw(l);
}

int live_run(struct live *l)
{
	int r = talk_connect(l->cli);

	if (r != 0)
		return r;
	l->delay_ms = RETRY_MS;
	l->screen = (struct screen) {
		.arg = l,
		.color = l->cli->color,
		.key = on_byte,
		.redraw = on_redraw,
		.round = go_on,
	};
	koine_client_on_notification(l->cli->client, on_notification, l);
	r = screen_run(&l->screen);
	/* Callbacks of pending calls may still use what the caller has. */
	talk_hang_up(l->cli);
	return r;
}
