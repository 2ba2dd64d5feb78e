/*
 * Schedules: one clock waits for the next occurrence of all rules. It is checked at least once
 * a minute, since the wall clock may be set. If it is set forward, the occurrences it skipped
 * were missed; if it is set back, what is claimed in the store is not done again.
 */

#include "base/clock.h"
#include "base/log.h"
#include "engine/automation/inner.h"

enum {
	CATCH_UP_MAX = 100,  /* occurrences */
	LOOK_MS = 60 * 1000, /* at the latest */
	JUMP_MS = 2000,      /* more than the loop can be late */
	ON_TIME_MS = 60 * 1000,
};

/* Look no further back than this, since looking takes time. */
static const int64_t look_back_ms = INT64_C(366) * 86400 * 1000;

/* ---- one rule ---- */

struct due {
	int64_t list[CATCH_UP_MAX]; /* the newest of them, as a ring */
	uint64_t n;
};

static int64_t due_at(const struct due *d, uint64_t i)
{
	return d->list[i % CATCH_UP_MAX];
}

static void collect(struct live_rule *r, int64_t now, struct due *d)
{
	int64_t from = r->base_ms;
	int64_t at;

	if (from < now - look_back_ms)
		from = now - look_back_ms;
	if (r->def.trigger == TRIGGER_EVERY && (now - from) / r->def.every_ms > CATCH_UP_MAX) {
		/* Earlier ones are only counted. */
		d->n = (uint64_t)((now - from) / r->def.every_ms) - CATCH_UP_MAX;
		from = now - CATCH_UP_MAX * r->def.every_ms;
	}
	for (at = schedule_next(r->schedule, from); at != 0 && at <= now;
	     at = schedule_next(r->schedule, at))
		d->list[d->n++ % CATCH_UP_MAX] = at;
	r->next_ms = at;
	r->base_ms = now;
}

/* After a short restart, an occurrence counts as missed only after half the time to the next
 * one. */
static bool is_on_time(const struct live_rule *r, int64_t occurrence, int64_t now)
{
	int64_t most = r->next_ms ? (r->next_ms - occurrence) / 2 : ON_TIME_MS;

	return now - occurrence <= (most < ON_TIME_MS ? most : ON_TIME_MS);
}

/* How many of them to run, counted from the newest. */
static uint64_t count_wanted(const struct live_rule *r, const struct due *d, bool missed,
			     int64_t now)
{
	uint64_t most = d->n < CATCH_UP_MAX ? d->n : CATCH_UP_MAX;

	if (!missed || r->def.catch_up == CATCH_UP_ALL)
		return most;
	if (r->def.catch_up == CATCH_UP_ONE || is_on_time(r, due_at(d, d->n - 1), now))
		return 1;
	return 0;
}

static void automation_trigger_time_look(struct live_rule *r, int64_t now, bool jumped)
{
	struct due d = {.n = 0};
	bool missed = jumped || !r->looked;
	uint64_t n;

	if (now < r->base_ms)
		r->base_ms = now; /* set back */
	collect(r, now, &d);
	r->looked = true;
	if (d.n == 0)
		return;
	n = count_wanted(r, &d, missed, now);
	if (n < d.n && rule_is_on(r))
		log_info("missed scheduled runs", "rule=%.*s missed=%llu done=%llu",
			 TEXT_ARGS(r->def.id), (unsigned long long)(d.n), (unsigned long long)n);
	for (uint64_t i = d.n - n; i < d.n; i++)
		rule_due(r, due_at(&d, i));
}

/* ---- all of them ---- */

void schedules_look(struct automation *a)
{
	int64_t now = automation_now(a);
	int64_t drift = now - (int64_t)clock_steady_ms();
	bool jumped = drift - a->drift_ms > JUMP_MS || drift - a->drift_ms < -JUMP_MS;

	a->drift_ms = drift;
	if (a->stopping)
		return;
	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (r->schedule && r->armed)
			automation_trigger_time_look(r, now, jumped);
	}
	schedules_set(a);
}

static void on_clock(void *arg)
{
	schedules_look(arg);
}

/* -1: there is nothing to wait for. */
static int64_t wait_ms(const struct automation *a, int64_t now)
{
	int64_t wait = -1;

	list_for_each (at, following, &a->rules) {
		const struct live_rule *r = list_entry(at, struct live_rule, link);

		if (!r->schedule || !r->armed)
			continue;
		if (wait < 0)
			wait = LOOK_MS;
		if (r->next_ms > 0 && r->next_ms - now < wait)
			wait = r->next_ms > now ? r->next_ms - now : 1;
	}
	return wait;
}

void schedules_set(struct automation *a)
{
	int64_t wait = a->stopping ? -1 : wait_ms(a, automation_now(a));

	ticker_free(a->clock);
	a->clock = NULL;
	/* Use a ticker, not a timer: a running timer would slow down every request. */
	if (wait > 0 && ticker_new(a->opts.loop, (uint64_t)wait, on_clock, a, &a->clock) != 0)
		log_err("schedules stopped", "reason=\"could not create a timer\"");
}
