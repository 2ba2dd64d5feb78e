/* Calls, connections and the threads behind them. */
#include "dialect/metric/metric.h"

static const char *const refusal_names[N_REFUSALS] = {
	[0] = "other",
	[REFUSE_PARSE] = "parse",
	[REFUSE_REQUEST] = "request",
	[REFUSE_METHOD] = "method",
	[REFUSE_PARAMS] = "params",
	[REFUSE_INTERNAL] = "internal",
	[REFUSE_NOT_FOUND] = "not_found",
	[REFUSE_CONFLICT] = "conflict",
	[REFUSE_LIMIT] = "limit",
	[REFUSE_TOO_LARGE] = "too_large",
	[REFUSE_UNAVAILABLE] = "unavailable",
	[REFUSE_FORBIDDEN] = "forbidden",
	[REFUSE_TIMEOUT] = "timeout",
	[REFUSE_CANCELLED] = "cancelled",
	[REFUSE_STOPPING] = "stopping",
};

static const char *const refused_names[N_REFUSED_FOR] = {
	[REFUSED_UID] = "uid",
	[REFUSED_UNKNOWN] = "unidentified",
	[REFUSED_LIMIT] = "limit",
};

static const char *const gate_names[N_GATE_REASONS] = {
	[GATE_HOST] = "host",     [GATE_ORIGIN] = "origin", [GATE_TOKEN] = "token",
	[GATE_METHOD] = "method", [GATE_PATH] = "path",
};

/* ---- taking it together ---- */

static struct metric_listeners *listeners_of(struct metric_from *f, const struct dialect *d)
{
	for (unsigned i = 0; i < f->n_listeners; i++) {
		if (f->listeners[i].dialect == d)
			return &f->listeners[i];
	}
	if (f->n_listeners == METRIC_DIALECTS_MAX)
		return NULL;
	f->listeners[f->n_listeners].dialect = d;
	return &f->listeners[f->n_listeners++];
}

static void take_endpoint(struct metric_from *f, const struct endpoint *e)
{
	struct metric_listeners *l = listeners_of(f, e->dialect);

	if (!l)
		return;
	l->connections += e->n_connections;
	l->accepted += e->n_accepted;
	l->bytes_in += e->bytes_in;
	l->bytes_out += e->bytes_out;
	l->dropped += e->n_dropped;
	for (unsigned i = 0; i < N_REFUSED_FOR; i++)
		l->refused[i] += e->n_refused[i];
	for (unsigned i = 0; i < N_GATE_REASONS; i++)
		l->gate[i] += e->n_gate[i];
}

static void take_endpoints(struct metric_from *f, const struct list *endpoints)
{
	list_for_each (at, following, endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		take_endpoint(f, e);
		if (e->guest)
			take_endpoint(f, e->guest);
	}
}

void metric_server_take(struct metric_from *f, struct server *s)
{
	f->server = s;
	call_counts_fold(&s->counts);
	take_endpoints(f, &s->endpoints);
	take_endpoints(f, &s->closed_endpoints);
	if (s->workers)
		workers_figures(s->workers, &f->workers);
	f->start_ms = (uint64_t)s->started_utc_ms;
	f->calls_running = s->n_calls;
	list_for_each (at, following, &s->parked)
		f->calls_parked++;
	f->answers = room_used(&s->room);
	f->input = s->input_held;
	f->held = loop_held(s->loop);
	f->commits = &f->workers.commits;
	f->batches = &f->workers.batches;
}

/* ---- from one place ---- */

COLLECT(number)
{
	metric_count(sink, f, NULL, *(const uint64_t *)((const char *)from + f->at));
}

COLLECT(histogram)
{
	const struct histogram *h = *(const struct histogram *const *)((const char *)from + f->at);

	if (h)
		metric_histogram(sink, f, NULL, h);
}

/* ---- the daemon ---- */

COLLECT(build)
{
	const struct text version =
		text_of(((const struct metric_from *)from)->server->opts.version);

	metric_value(sink, f, &version, 1);
}

/* ---- calls ---- */

typedef void (*row_fn)(const struct call_count *row, const struct metric_family *f,
		       struct metric_sink *sink);

static void each_row(const struct metric_from *from, row_fn fn, const struct metric_family *f,
		     struct metric_sink *sink)
{
	const struct call_counts *k = &from->server->counts;

	for (unsigned i = 0; i < k->n; i++)
		fn(k->rows[i], f, sink);
	if (histogram_count(&k->other.time) > 0)
		fn(&k->other, f, sink);
}

static struct text dialect_of(const struct call_count *row)
{
	return row->dialect ? text_of(row->dialect->name) : TEXT("other");
}

static void show_calls(const struct call_count *row, const struct metric_family *f,
		       struct metric_sink *sink)
{
	const uint64_t refused = call_count_refused(row);
	const uint64_t failed = row->refused[REFUSE_INTERNAL];
	struct text labels[] = {dialect_of(row), text_of(row->name), TEXT("ok")};

	/* Calls whose time is not known yet may be among the refused: never less than none. */
	metric_count(sink, f, labels, histogram_count(&row->time) - refused);
	labels[2] = TEXT("refused");
	metric_count(sink, f, labels, refused - failed);
	labels[2] = TEXT("failed");
	metric_count(sink, f, labels, failed);
}

COLLECT(calls)
{
	each_row(from, show_calls, f, sink);
}

static void show_time(const struct call_count *row, const struct metric_family *f,
		      struct metric_sink *sink)
{
	const struct text labels[] = {dialect_of(row), text_of(row->name)};

	metric_histogram(sink, f, labels, &row->time);
}

COLLECT(call_times)
{
	each_row(from, show_time, f, sink);
}

static void show_refusals(const struct metric_from *from, const struct dialect *d,
			  const struct metric_family *f, struct metric_sink *sink)
{
	const struct call_counts *k = &from->server->counts;
	uint64_t n[N_REFUSALS] = {0};
	struct text labels[2] = {text_of(d->name)};

	for (unsigned i = 0; i < k->n; i++) {
		for (unsigned error = 0; k->rows[i]->dialect == d && error < N_REFUSALS; error++)
			n[error] += k->rows[i]->refused[error];
	}
	for (unsigned error = 0; error < N_REFUSALS; error++) {
		labels[1] = text_of(refusal_names[error]);
		if (n[error] > 0)
			metric_count(sink, f, labels, n[error]);
	}
}

COLLECT(refusals)
{
	const struct metric_from *all = from;

	for (unsigned i = 0; i < all->n_listeners; i++)
		show_refusals(all, all->listeners[i].dialect, f, sink);
}

/* ---- connections ---- */

COLLECT(listeners)
{
	const struct metric_from *all = from;

	for (unsigned i = 0; i < all->n_listeners; i++) {
		const struct metric_listeners *l = &all->listeners[i];
		const struct text dialect = text_of(l->dialect->name);

		metric_count(sink, f, &dialect, *(const uint64_t *)((const char *)l + f->at));
	}
}

/* An array of every dialect's listeners, at this place in the struct: a number for each name. */
static void each_reason(const struct metric_from *from, size_t place, const char *const *names,
			unsigned n, const struct metric_family *f, struct metric_sink *sink)
{
	for (unsigned i = 0; i < from->n_listeners; i++) {
		const struct metric_listeners *l = &from->listeners[i];
		const uint64_t *counts = (const uint64_t *)((const char *)l + place);

		for (unsigned reason = 0; reason < n; reason++) {
			const struct text labels[] = {text_of(l->dialect->name),
						      text_of(names[reason])};

			metric_count(sink, f, labels, counts[reason]);
		}
	}
}

#define PLACE(member) offsetof(struct metric_listeners, member)

COLLECT(refused)
{
	each_reason(from, PLACE(refused), refused_names, N_REFUSED_FOR, f, sink);
}

COLLECT(gate)
{
	each_reason(from, PLACE(gate), gate_names, N_GATE_REASONS, f, sink);
}

/* ---- threads ---- */

COLLECT(work)
{
	const struct workers_figures *w = &((const struct metric_from *)from)->workers;
	const struct text reader = TEXT("reader");
	const struct text writer = TEXT("writer");

	metric_count(sink, f, &reader, w->n_reads);
	metric_count(sink, f, &writer, w->n_writes);
}
