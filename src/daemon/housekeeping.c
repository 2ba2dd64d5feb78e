#include "daemon/life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/approval/approval.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/memory/memory.h"
#include "engine/session/session.h"

enum { SWEEP_EVERY_MS = 60 * 1000 };

/* What is swept, and the log line for a failure. */
struct kind {
	bool (*due)(const struct engine *s); /* NULL: always */
	int (*run)(struct engine *s, bool *ret_more);
	const char *failed;
	unsigned pause_ms; /* between two steps; 0: the next goes to the end of the queue at once */
};

/* A sweep deletes a little at a time: the rest goes to the end of the writer's queue, so that
 * calls get in between. */
struct housekeeping_sweep {
	struct work work;
	struct housekeeping *housekeeping;
	const struct kind *kind;
	struct timer *pause; /* NULL: none */
	bool under_way;
	bool more; /* there is more to sweep */
};

static bool memories_due(const struct engine *s)
{
	return memory_expires(s->memories);
}

static int sweep_memories(struct engine *s, bool *ret_more)
{
	return memory_sweep(s->memories, ret_more);
}

static bool events_due(const struct engine *s)
{
	return event_sweeps(s->events);
}

static int sweep_events(struct engine *s, bool *ret_more)
{
	return event_sweep(s->events, ret_more);
}

static int sweep_sessions(struct engine *s, bool *ret_more)
{
	return session_sweep(s->sessions, ret_more);
}

static bool approvals_due(const struct engine *s)
{
	return approval_claim_sweep(s->approvals);
}

static int sweep_approvals(struct engine *s, bool *ret_more)
{
	return approval_sweep(s->approvals, ret_more);
}

static bool conversations_due(const struct engine *s)
{
	return chat_sweeps(s->chat);
}

static int sweep_conversations(struct engine *s, bool *ret_more)
{
	return chat_sweep(s->chat, ret_more);
}

/* The steps of a large store last minutes, so they leave the writer to others in between. */
static int shrink_store(struct engine *s, bool *ret_more)
{
	return engine_shrink(s, ret_more);
}

static const struct kind kinds[] = {
	{memories_due, sweep_memories, "could not delete expired memories"},
	{events_due, sweep_events, "could not delete old events"},
	{NULL, sweep_sessions, "could not delete old sessions"},
	{approvals_due, sweep_approvals, "could not delete old approvals"},
	{conversations_due, sweep_conversations, "could not delete old conversations"},
	{NULL, shrink_store, "could not shrink the store", .pause_ms = 20},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct housekeeping {
	struct server *server;
	struct engine *engine;
	struct ticker *ticker;
	struct housekeeping_sweep sweeps[N_KINDS];
	struct work check;
	struct store_health health;
};

static int sweep_run(struct work *w, int lane)
{
	struct housekeeping_sweep *s = list_entry(w, struct housekeeping_sweep, work);

	s->more = false;
	return s->kind->run(s->housekeeping->engine, &s->more);
}

static void sweep_start(struct housekeeping_sweep *s)
{
	struct server *server = s->housekeeping->server;

	if (!s->under_way && !server->stopping)
		s->under_way = server_submit(server, &s->work, WRITER) == 0;
}

static void sweep_finished(struct work *w, int result)
{
	struct housekeeping_sweep *s = list_entry(w, struct housekeeping_sweep, work);

	s->under_way = false;
	if (result != 0)
		log_err(s->kind->failed, "error=%s", fault_words(result));
	else if (s->more && s->pause)
		timer_start(s->pause, s->kind->pause_ms);
	else if (s->more)
		sweep_start(s);
}

static void sweep_go_on(void *sweep)
{
	sweep_start(sweep);
}

static int sweep_init(struct housekeeping_sweep *s, struct housekeeping *h, const struct kind *kind)
{
	*s = (struct housekeeping_sweep) {
		.work = {.run = sweep_run, .finished = sweep_finished},
		.housekeeping = h,
		.kind = kind,
	};
	return kind->pause_ms > 0 ? timer_new(h->server->loop, sweep_go_on, s, &s->pause) : 0;
}

static void on_tick(void *arg)
{
	struct housekeeping *h = arg;

	memories_tick(h->engine->memories);
	for (unsigned i = 0; i < N_KINDS; i++) {
		if (!kinds[i].due || kinds[i].due(h->engine))
			sweep_start(&h->sweeps[i]);
	}
}

static int check_run(struct work *w, int lane)
{
	struct housekeeping *h = list_entry(w, struct housekeeping, check);

	engine_check(h->engine, lane, &h->health);
	return 0;
}

static void check_finished(struct work *w, int result)
{
	struct housekeeping *h = list_entry(w, struct housekeeping, check);

	engine_set_health(h->engine, &h->health);
	if (h->health.failed)
		log_err("store is damaged", "what=\"%s\"", h->health.text);
	else if (h->health.checked)
		log_info("store checked", "path=%s", engine_store_path(h->engine));
}

int housekeeping_start(struct server *server, struct engine *engine,
		       struct housekeeping **ret_housekeeping)
{
	struct housekeeping *h = calloc(1, sizeof(*h));
	int r = 0;

	if (!h)
		return -ENOMEM;
	h->server = server;
	h->engine = engine;
	for (unsigned i = 0; i < N_KINDS && r == 0; i++)
		r = sweep_init(&h->sweeps[i], h, &kinds[i]);
	h->check = (struct work) {.run = check_run, .finished = check_finished};
	if (r == 0)
		r = ticker_new(server->loop, SWEEP_EVERY_MS, on_tick, h, &h->ticker);
	if (r == 0 && engine_need_check(engine))
		r = server_submit(server, &h->check, READER);
	if (r != 0) {
		housekeeping_free(h);
		return r;
	}
	if (!engine_shrinks(engine))
		log_info("store file cannot shrink",
			 "path=%s hint=\"see MAINTENANCE in koined(8)\"",
			 engine_store_path(engine));
	on_tick(h);
	*ret_housekeeping = h;
	return 0;
}

void housekeeping_free(struct housekeeping *h)
{
	if (!h)
		return;
	ticker_free(h->ticker);
	for (unsigned i = 0; i < N_KINDS; i++)
		timer_free(h->sweeps[i].pause);
	free(h);
}
