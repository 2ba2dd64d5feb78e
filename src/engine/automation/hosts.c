/*
 * Rules of several hosts. A rule that several of them have is one rule: an occurrence of its schedule,
 * and an event that is meant for it, are claimed in the store, and so fire it once. What other hosts
 * switch and fire is followed.
 */
#include <errno.h>

#include "base/pack.h"
#include "engine/automation/inner.h"
#include "engine/event/event.h"
#include "store/rule.h"
#include "store/store.h"
#include "store/task.h"

/* ---- an event ---- */

/* The host that has submitted the task knows by itself. */
static int is_own_task(struct firing *f, struct connection *c, bool *ret_is)
{
	const struct live_rule *r = f->rule;
	struct value *metadata = NULL;
	struct task task;
	unsigned n = 0;
	int e;

	*ret_is = false;
	if (!f->about.data || r->sees_own)
		return 0;
	e = store_task_find(c, f->project.data ? f->project : TEXT(""), f->about, &f->arena, &task,
			    &n);
	if (e == 0 && n == 1 && task.metadata.bytes.data)
		e = value_unpack(&f->arena, task.metadata.bytes, &metadata);
	if (e == 0 && metadata)
		*ret_is = text_equal(value_text(value_find(metadata, "ruleId")), r->def.id);
	return e;
}

int firing_claim_event(struct firing *f, struct connection *c, bool *ret_claimed)
{
	struct rule_memory kept = {0};
	bool own = false;
	int e = store_rule_claim(c, f->rule->key, -f->seq, f->now_ms, ret_claimed);

	if (e == 0 && *ret_claimed)
		e = is_own_task(f, c, &own) ?: store_rule_find(c, f->rule->key, &f->arena, &kept);
	*ret_claimed = *ret_claimed && !own && !rule_cools(f->rule, kept.fired_ms, f->now_ms);
	return e;
}

/* ---- what others do ---- */

/* A rule's key is its project and its id, without an id that of the project's switch. */
static bool automation_hosts_heard(void *arg, const struct event *e, struct text *ret_project,
				   struct text *ret_id)
{
	struct text id = packed_text(packed_find(e->data, "rule_id"));

	*ret_project = e->project.data ? e->project : TEXT("");
	*ret_id = id.data ? id : TEXT("");
	return true;
}

/* One that the store does not have is as it was given. */
static int add_row(struct arena *a, struct record_found *found, struct text name,
		   struct rule_memory *rows, unsigned n_rows)
{
	struct rule_memory *row = arena_zalloc(a, sizeof(*row));

	if (!row)
		return -ENOMEM;
	*row = (struct rule_memory) {.name = name, .enabled = -1};
	found->row = row;
	for (unsigned i = 0; i < n_rows; i++) {
		if (text_equal(rows[i].name, name))
			found->row = &rows[i];
	}
	return 0;
}

static int automation_hosts_read_rows(void *arg, int lane, struct arena *a,
				      struct record_found *found, unsigned n)
{
	const struct automation *automation = arg;
	struct text *names = arena_alloc(a, (n + 1) * sizeof(names[0]));
	struct rule_memory *rows = NULL;
	unsigned n_rows = 0;
	int r = names ? 0 : -ENOMEM;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = rule_key(a, found[i].project, found[i].id, &names[i]);
	if (r == 0)
		r = store_rule_find_named(store_lane(automation->opts.store, lane), names, n, a,
					  &rows, &n_rows);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = add_row(a, &found[i], names[i], rows, n_rows);
	return r;
}

static void take_rule(struct live_rule *r, const struct rule_memory *kept)
{
	r->by_hand = (int)kept->enabled;
	r->def.fired_ms = kept->fired_ms;
	r->def.n_fired = kept->n_fired;
}

static void take_found(void *arg, const struct record_found *found)
{
	struct automation *a = arg;
	const struct rule_memory *kept = found->row;
	struct rule_switch *s = found->id.len == 0 ? switch_get(a, found->project) : NULL;

	if (s)
		s->on = kept->enabled != 0;
	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (found->id.len > 0 && r->armed && text_equal(r->key, kept->name))
			take_rule(r, kept);
	}
}

/* With the switches of their projects, and the global one. */
static int automation_hosts_reload(void *arg)
{
	struct automation *a = arg;
	int r = records_want(&a->records, TEXT(""), TEXT(""));

	list_for_each (at, following, &a->rules) {
		const struct rule *d = &list_entry(at, struct live_rule, link)->def;

		if (r == 0)
			r = records_want(&a->records, d->project, TEXT(""))
				    ?: records_want(&a->records, d->project, d->id);
	}
	return r;
}

int automation_follow(struct automation *a)
{
	static const struct text types[] = {TEXT("rule.*")};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 1,
		.heard = automation_hosts_heard,
		.read = automation_hosts_read_rows,
		.sync = take_found,
		.reload = automation_hosts_reload,
	};
	const struct records_opts opts = {
		.events = a->opts.events,
		.loop = a->opts.loop,
		.workers = a->opts.workers,
		.name = "rule",
		.arg = a,
		.reads = &reads,
	};

	return records_start(&a->records, &opts);
}
