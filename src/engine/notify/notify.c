/* All notifiers together. */
#include "engine/notify/notify.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/event/event.h"
#include "engine/notify/inner.h"

int notify_new(const struct notify_opts *opts, struct notify **ret_notify)
{
	struct notify *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->opts = *opts;
	list_init(&n->ways);
	list_init(&n->tests);
	n->wrong.per_minute = NOTIFY_WRONG_PER_MINUTE;
	*ret_notify = n;
	return 0;
}

void notify_clear(struct notify *n)
{
	struct list *first;

	while ((first = list_first(&n->ways)))
		way_free(list_entry(first, struct way, link));
	n->n_ways = 0;
}

void notify_stop(struct notify *n)
{
	if (!n || n->stopping)
		return;
	n->stopping = true;
	event_unsubscribe(n->subscriber);
	n->subscriber = NULL;
	tests_stop(n);
	notify_clear(n);
}

void notify_free(struct notify *n)
{
	struct list *first;

	if (!n)
		return;
	notify_stop(n);
	while ((first = list_first(&n->tests)))
		notify_test_leave(list_entry(first, struct notify_test, link));
	free(n);
}

unsigned notify_count(const struct notify *n)
{
	return n ? n->n_ways : 0;
}

static const char *state_of(const struct way *w)
{
	if (!w->notifier)
		return "off";
	if (w->failing)
		return "failing";
	return quiet_left(&w->quiet, clock_utc_ms()) > 0 ? "quiet" : "ok";
}

static void notify_fill(const struct way *w, struct notify_state *ret)
{
	*ret = (struct notify_state) {
		.name = w->name,
		.kind = notifier_kind_names[w->kind],
		.on = w->on,
		.state = state_of(w),
		.sent = w->sent,
		.failed = w->failed,
		.dropped = w->dropped,
		.answers = w->answers,
		.ignored = w->ignored,
		.sent_ms = w->sent_ms,
		.failed_ms = w->failed_ms,
		.error = w->error,
	};
	list_for_each (at, following, &w->messages)
		ret->waiting += list_entry(at, struct notify_message, link)->stage != MESSAGE_SENT;
}

void notify_get(const struct notify *n, unsigned i, struct notify_state *ret)
{
	list_for_each (at, following, &n->ways) {
		if (i-- == 0)
			notify_fill(list_entry(at, struct way, link), ret);
	}
}
