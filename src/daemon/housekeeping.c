#include "daemon/housekeeping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "service/memory.h"

enum { SWEEP_EVERY_MS = 60 * 1000 };

struct housekeeping {
	struct server *server;
	struct services *services;
	struct ticker *ticker;
	struct job sweep;
	struct job check;
	bool sweeping;
	bool more;  /* is left to sweep */
	int result; /* of the sweep */
	struct store_health health;
};

static void sweep_run(struct job *job, int lane)
{
	struct housekeeping *h = list_entry(job, struct housekeeping, sweep);

	(void)lane;
	h->more = false;
	h->result = memory_sweep(h->services, &h->more);
	job->keep = h->result == 0;
}

static void on_tick(void *arg)
{
	struct housekeeping *h = arg;

	if (h->sweeping || h->server->stopping || !memory_expires(h->services))
		return;
	h->sweeping = server_submit(h->server, &h->sweep, WRITER) == 0;
}

/* What is left goes to the end of the writer's queue: calls come in between. */
static void sweep_finished(struct job *job, int result)
{
	struct housekeeping *h = list_entry(job, struct housekeeping, sweep);

	h->sweeping = false;
	if (result == 0)
		result = h->result;
	if (result != 0)
		log_err("expired memories stay", "error=%s", strerror(-result));
	else if (h->more)
		on_tick(h);
}

static void check_run(struct job *job, int lane)
{
	struct housekeeping *h = list_entry(job, struct housekeeping, check);

	services_check(h->services, lane, &h->health);
}

static void check_finished(struct job *job, int result)
{
	struct housekeeping *h = list_entry(job, struct housekeeping, check);

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
	h->sweep = (struct job) {.run = sweep_run, .finished = sweep_finished};
	h->check = (struct job) {.run = check_run, .finished = check_finished};
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
