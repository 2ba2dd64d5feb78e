/*
 * The log of what rules did. It is read from the events that report it, so that it survives a restart, and
 * every host shows what the others' rules did.
 */
#include "model/event.h"
#include "engine/automation/inner.h"
#include "store/event.h"
#include "store/store.h"

enum {
	LOOKS = 20, /* pages that are searched for the rules of one project */
	PAGE_ROWS = 1000,
	PAGE_BYTES = 4 << 20,
	PAGE_ARENA_MAX = 4 * PAGE_BYTES,
};

static int64_t number_of(const struct value *data, const char *key, int64_t none)
{
	int64_t n;

	return value_int(value_find(data, key), &n) ? n : none;
}

/* Copies what it needs of the event. */
static int read_execution(struct arena *a, const struct event *from, struct rule_execution *ret)
{
	struct value *data = NULL;
	struct event e = *from;
	int r = arena_copy_text(a, from->project, &e.project)
			?: arena_copy_text(a, from->data, &e.data)
			?: event_unpack(a, &e, &data);

	if (r == -ENOMEM)
		return r;
	*ret = (struct rule_execution) {
		.rule = value_text(value_find(data, "ruleId")),
		.project = e.project,
		.event_type = value_text(value_find(data, "eventType")),
		.status = value_text(value_find(data, "status")),
		.time_ms = e.time_ms,
		.task = value_text(value_find(data, "taskId")),
		.error = value_text(value_find(data, "error")),
		.exit_status = number_of(data, "exitCode", -1),
		.signal = number_of(data, "signal", 0),
		.duration_ms = number_of(data, "duration", -1),
		.output = value_text(value_find(data, "output")),
	};
	ret->output_bytes = number_of(data, "output_bytes", (int64_t)ret->output.len);
	return 0;
}

static bool automation_log_is_wanted(const struct event *e, struct text project)
{
	return !project.data || text_equal(e->project.data ? e->project : TEXT(""), project);
}

static void turn_round(struct rule_execution *log, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		struct rule_execution first = log[i];

		log[i] = log[n - 1 - i];
		log[n - 1 - i] = first;
	}
}

/* Adds the wanted entries of the next page, and moves the query on. */
static int read_page(struct connection *c, struct store_event_query *q, struct text project,
		     unsigned limit, struct arena *arena, struct rule_execution *log, unsigned *n,
		     bool *ret_end)
{
	struct store_event_rows rows = {0};
	struct arena page;
	int r;

	arena_init(&page, PAGE_ARENA_MAX);
	r = store_event_list(c, q, &page, &rows);
	for (unsigned k = 0; r == 0 && k < rows.n && *n < limit; k++) {
		if (automation_log_is_wanted(&rows.rows[k], project))
			r = read_execution(arena, &rows.rows[k], &log[(*n)++]);
	}
	arena_done(&page);
	q->before_seq = rows.at;
	*ret_end = rows.end;
	return r;
}

int automation_log_read(struct automation *a, int lane, struct arena *arena, struct text project,
			unsigned limit, struct rule_execution **ret_log, unsigned *ret_n)
{
	static const struct text types[] = {TEXT("rule.executed"), TEXT("rule.failed")};
	struct store_event_query q = {
		.project = project.len > 0 ? project : (struct text) {0},
		.types = types,
		.n_types = 2,
		.limit =
			limit < PAGE_ROWS && (!project.data || project.len > 0) ? limit : PAGE_ROWS,
		.max_bytes = PAGE_BYTES,
		.newest_first = true,
	};
	struct rule_execution *log = arena_alloc(arena, limit * sizeof(log[0]));
	bool end = false;
	unsigned n = 0;
	int r = log ? 0 : -ENOMEM;

	for (int i = 0; r == 0 && i < LOOKS && n < limit && !end; i++)
		r = read_page(store_lane(a->opts.store, lane), &q, project, limit, arena, log, &n,
			      &end);
	if (r != 0)
		return r;
	turn_round(log, n);
	*ret_log = log;
	*ret_n = n;
	return 0;
}
