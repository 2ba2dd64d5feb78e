/* What the engine does: tasks, approvals, sessions, agents, searches, events. */
#include "base/metric.h"
#include "dialect/metric/metric.h"
#include "engine/approval/approval.h"
#include "engine/chat/chat.h"
#include "engine/engine.h"
#include "engine/extract/extract.h"
#include "engine/session/session.h"

void metric_engine_take(struct metric_from *f, struct engine *e)
{
	const struct approval_figures *figures = approvals_figures(e->approvals);

	f->engine = e;
	event_figures(e->events, &f->events);
	f->has_memory = memory_figures(e->memories, &f->memory);
	task_count(e->tasks, (struct text) {0}, &f->tasks);
	f->writable = !engine_failing(e);
	f->approvals = approvals_pending(e->approvals);
	f->sessions = sessions_open(e->sessions);
	f->children = engine_children();
	f->approval_waits = figures ? &figures->waited : NULL;
	f->searches = &f->memory.searches;
}

static const struct engine *engine_of(const void *from)
{
	return ((const struct metric_from *)from)->engine;
}

COLLECT(tasks)
{
	const struct metric_from *all = from;

	for (unsigned i = 0; i < N_TASK_STATES; i++) {
		const struct text state = text_of(task_state_name((enum task_state)i));

		metric_value(sink, f, &state, all->tasks.n[i]);
	}
}

/* ---- approvals ---- */

/* Of what can be: nobody denies, and no rule lets anything expire. */
COLLECT(decisions)
{
	const struct approval_figures *figures = approvals_figures(engine_of(from)->approvals);

	for (unsigned i = APPROVAL_PENDING + 1; figures && i < N_APPROVAL_STATUSES; i++) {
		for (unsigned by = 0; by < N_APPROVAL_BY; by++) {
			const struct text labels[] = {text_of(approval_status_names[i]),
						      text_of(approval_by_names[by])};

			if (figures->n[i][by] > 0)
				metric_count(sink, f, labels, figures->n[i][by]);
		}
	}
}

/* ---- agents ---- */

typedef void (*spend_fn)(const struct spend_row *row, struct text *labels,
			 const struct metric_family *f, struct metric_sink *sink);

static void each_agent(const struct spend *spend, struct text via, spend_fn fn,
		       const struct metric_family *f, struct metric_sink *sink)
{
	static const struct spend_row unused;
	struct text labels[METRIC_LABELS_MAX] = {{0}, via};

	for (unsigned i = 0; spend && i < spend->n; i++) {
		labels[0] = text_of(spend->rows[i]->name);
		fn(spend->rows[i], labels, f, sink);
	}
	labels[0] = TEXT("other");
	if (spend && memcmp(&spend->other, &unused, sizeof(unused)) != 0)
		fn(&spend->other, labels, f, sink);
}

static void each_spend(const void *from, spend_fn fn, const struct metric_family *f,
		       struct metric_sink *sink)
{
	each_agent(chat_spend(engine_of(from)->chat), TEXT("chat"), fn, f, sink);
	each_agent(extracts_spend(engine_of(from)->extracts), TEXT("facts"), fn, f, sink);
	each_agent(sessions_spend(engine_of(from)->sessions), TEXT("session"), fn, f, sink);
}

static void show_turns(const struct spend_row *row, struct text *labels,
		       const struct metric_family *f, struct metric_sink *sink)
{
	static const char *const names[N_SPEND_OUTCOMES] = {
		[SPEND_DONE] = "done",
		[SPEND_FAILED] = "failed",
		[SPEND_CANCELLED] = "cancelled",
	};

	for (unsigned i = 0; i < N_SPEND_OUTCOMES; i++) {
		labels[2] = text_of(names[i]);
		metric_count(sink, f, labels, row->n[i]);
	}
}

COLLECT(turns)
{
	each_spend(from, show_turns, f, sink);
}

static void show_tokens(const struct spend_row *row, struct text *labels,
			const struct metric_family *f, struct metric_sink *sink)
{
	const struct {
		const char *name;
		uint64_t n;
	} kinds[] = {
		{"input", row->input},
		{"output", row->output},
		{"cache_read", row->cache_read},
		{"cache_written", row->cache_written},
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		labels[2] = text_of(kinds[i].name);
		if (kinds[i].n > 0)
			metric_count(sink, f, labels, kinds[i].n);
	}
}

COLLECT(tokens)
{
	each_spend(from, show_tokens, f, sink);
}

static void show_cost(const struct spend_row *row, struct text *labels,
		      const struct metric_family *f, struct metric_sink *sink)
{
	if (row->micro_usd > 0)
		metric_count(sink, f, labels, row->micro_usd);
}

COLLECT(cost)
{
	each_spend(from, show_cost, f, sink);
}

/* ---- memories ---- */

/* ---- events ---- */
