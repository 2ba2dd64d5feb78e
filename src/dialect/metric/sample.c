/*
 * What the last day was like: once a minute the figures that people look at are noted, in memory. The
 * counters only grow, so the difference of two samples is what happened between them.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/metric.h"
#include "dialect/metric/metric.h"
#include "engine/approval/approval.h"
#include "engine/chat/chat.h"
#include "engine/extract/extract.h"
#include "engine/session/session.h"
#include "engine/engine.h"

enum { SAMPLES_MAX = 24 * 60, SAMPLE_MS = 60 * 1000 };

struct sample {
	int64_t utc_ms;
	uint64_t calls;
	uint64_t call_ns; /* of those that are in a histogram */
	uint64_t timed;
	uint64_t errors;
	uint64_t connections;
	uint64_t tasks_running;
	uint64_t tasks_queued;
	uint64_t sessions;
	uint64_t approvals;
	uint64_t tokens_in;
	uint64_t tokens_out;
	uint64_t micro_usd;
};

struct samples {
	struct server *server;
	struct engine *engine;
	struct ticker *ticker;
	unsigned first;
	unsigned n;
	struct sample rows[SAMPLES_MAX]; /* a ring */
};

static void take_calls(const struct server *s, struct sample *to)
{
	list_for_each (at, following, &s->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		to->calls += e->n_calls;
		to->errors += e->n_errors;
	}
	for (unsigned i = 0; i < s->counts.n; i++) {
		to->call_ns += s->counts.rows[i]->time.sum;
		to->timed += histogram_count(&s->counts.rows[i]->time);
	}
}

static void take_row(const struct spend_row *row, struct sample *to)
{
	to->tokens_in += row->input + row->cache_read + row->cache_written;
	to->tokens_out += row->output;
	to->micro_usd += row->micro_usd;
}

static void take_spend(const struct spend *spend, struct sample *to)
{
	for (unsigned i = 0; spend && i < spend->n; i++)
		take_row(spend->rows[i], to);
	if (spend)
		take_row(&spend->other, to);
}

static void metric_sample_take(const struct samples *s, struct sample *to)
{
	const struct engine *e = s->engine;
	struct task_counts tasks = {0};

	*to = (struct sample) {.utc_ms = clock_utc_ms(), .connections = s->server->n_clients};
	take_calls(s->server, to);
	task_count(e->tasks, (struct text) {0}, &tasks);
	to->tasks_running = (uint64_t)tasks.n[TASK_RUNNING];
	to->tasks_queued = (uint64_t)tasks.n[TASK_QUEUED];
	to->sessions = sessions_open(e->sessions);
	to->approvals = approvals_pending(e->approvals);
	take_spend(chat_spend(e->chat), to);
	take_spend(extracts_spend(e->extracts), to);
	take_spend(sessions_spend(e->sessions), to);
}

static void on_minute(void *arg)
{
	struct samples *s = arg;

	metric_sample_take(s, &s->rows[(s->first + s->n) % SAMPLES_MAX]);
	if (s->n < SAMPLES_MAX)
		s->n++;
	else
		s->first = (s->first + 1) % SAMPLES_MAX;
}

int samples_start(struct server *server, struct engine *engine, struct samples **ret_samples)
{
	struct samples *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->server = server;
	s->engine = engine;
	r = ticker_new(server->loop, SAMPLE_MS, on_minute, s, &s->ticker);
	if (r != 0) {
		free(s);
		return r;
	}
	on_minute(s);
	*ret_samples = s;
	return 0;
}

void samples_free(struct samples *s)
{
	if (!s)
		return;
	ticker_free(s->ticker);
	free(s);
}

/* ---- daemon.samples ---- */

static void write(struct json *j, const struct sample *s)
{
	char time[ISO_LEN + 1];

	clock_format_iso(s->utc_ms, time);
	json_begin_object(j);
	json_member_str(j, "time", time);
	json_member_uint(j, "calls", s->calls);
	json_member_uint(j, "timed", s->timed);
	json_member_uint(j, "call_us", s->call_ns / 1000);
	json_member_uint(j, "errors", s->errors);
	json_member_uint(j, "connections", s->connections);
	json_member_uint(j, "tasks_running", s->tasks_running);
	json_member_uint(j, "tasks_queued", s->tasks_queued);
	json_member_uint(j, "sessions", s->sessions);
	json_member_uint(j, "approvals", s->approvals);
	json_member_uint(j, "tokens_in", s->tokens_in);
	json_member_uint(j, "tokens_out", s->tokens_out);
	json_member_uint(j, "micro_usd", s->micro_usd);
	json_end_object(j);
}

/* The last one is of now. */
struct done metric_samples(struct call *c)
{
	const struct samples *s = c->server->samples;
	struct json *j = call_object(c);
	struct sample now;

	json_member_array(j, "samples");
	for (unsigned i = 0; s && i < s->n; i++)
		write(j, &s->rows[(s->first + i) % SAMPLES_MAX]);
	if (s) {
		metric_sample_take(s, &now);
		write(j, &now);
	}
	json_end_array(j);
	return call_reply_object(c);
}
