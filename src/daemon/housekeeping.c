#include "daemon/housekeeping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/memory/memory.h"
#include "engine/services.h"
#include "engine/session/session.h"

enum { SWEEP_EVERY_MS = 60 * 1000 };

/* Something that is deleted a little at a time: what is left goes to the end of the writer's
 * queue, and calls come in between. */
struct sweep {
	struct work work;
	struct housekeeping *housekeeping;
	int (*run)(struct services *s, bool *ret_more);
	const char *failed; /* what the log says */
	bool under_way;
	bool more; /* is left to sweep */
};

struct housekeeping {
	struct server *server;
	struct services *services;
	struct ticker *ticker;
	struct sweep memories;
	struct sweep events;
	struct sweep sessions;
	struct sweep approvals;
	struct work check;
	struct store_health health;
};

static int sweep_run(struct work *w, int lane)
{
	struct sweep *s = list_entry(w, struct sweep, work);

	(void)lane;
	s->more = false;
	return s->run(s->housekeeping->services, &s->more);
}

static void sweep_start(struct sweep *s)
{
	struct server *server = s->housekeeping->server;

	if (!s->under_way && !server->stopping)
		s->under_way = server_submit(server, &s->work, WRITER) == 0;
}

static void sweep_finished(struct work *w, int result)
{
	struct sweep *s = list_entry(w, struct sweep, work);

	s->under_way = false;
	if (result != 0)
		log_err(s->failed, "error=%s", strerror(-result));
	else if (s->more)
		sweep_start(s);
}

static int sweep_memories(struct services *s, bool *ret_more)
{
	return memory_sweep(s->memories, ret_more);
}

static int sweep_events(struct services *s, bool *ret_more)
{
	return event_sweep(s->events, ret_more);
}

static void sweep_init(struct housekeeping *h, struct sweep *s,
		       int (*run)(struct services *s, bool *ret_more), const char *failed)
{
	s->work = (struct work) {.run = sweep_run, .finished = sweep_finished};
	s->housekeeping = h;
	s->run = run;
	s->failed = failed;
}

static int sweep_sessions(struct services *s, bool *ret_more)
{
	return session_sweep(s->sessions, ret_more);
}

static int sweep_approvals(struct services *s, bool *ret_more)
{
	return approval_sweep(s->approvals, ret_more);
}

static void on_tick(void *arg)
{
	struct housekeeping *h = arg;

	if (memory_expires(h->services->memories))
		sweep_start(&h->memories);
	if (event_sweeps(h->services->events))
		sweep_start(&h->events);
	sweep_start(&h->sessions);
	if (approval_sweeps(h->services->approvals))
		sweep_start(&h->approvals);
}

static int check_run(struct work *w, int lane)
{
	struct housekeeping *h = list_entry(w, struct housekeeping, check);

	services_check(h->services, lane, &h->health);
	return 0;
}

static void check_finished(struct work *w, int result)
{
	struct housekeeping *h = list_entry(w, struct housekeeping, check);

	(void)result;
	services_set_health(h->services, &h->health);
	if (h->health.failed)
		log_err("store is damaged", "what=%s", h->health.text);
	else if (h->health.checked)
		log_info("store checked", "path=%s", services_store_path(h->services));
}

int housekeeping_start(struct server *server, struct services *services,
		       struct housekeeping **ret_housekeeping)
{
	struct housekeeping *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->server = server;
	h->services = services;
	sweep_init(h, &h->memories, sweep_memories, "expired memories stay");
	sweep_init(h, &h->events, sweep_events, "old events stay");
	sweep_init(h, &h->sessions, sweep_sessions, "old sessions stay");
	sweep_init(h, &h->approvals, sweep_approvals, "old approvals stay");
	h->check = (struct work) {.run = check_run, .finished = check_finished};
	r = ticker_new(server->loop, SWEEP_EVERY_MS, on_tick, h, &h->ticker);
	if (r == 0 && services_need_check(services))
		r = server_submit(server, &h->check, READER);
	if (r != 0) {
		housekeeping_free(h);
		return r;
	}
	on_tick(h);
	*ret_housekeeping = h;
	return 0;
}

void housekeeping_free(struct housekeeping *h)
{
	if (!h)
		return;
	ticker_free(h->ticker);
	free(h);
}
