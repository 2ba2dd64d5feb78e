/*
 * Rules of several hosts. A rule that several of them have is one rule: an occurrence of its schedule,
 * and an event that is meant for it, are claimed in the store, and so fire it once. What other hosts
 * switch and fire is followed.
 */
#include <errno.h>

#include "base/pack.h"
#include "engine/automation/inner.h"
#include "engine/event/follow.h"
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
	bool found = false;
	int e;

	*ret_is = false;
	if (!f->about.data || r->sees_own)
		return 0;
	e = store_task_find(c, f->project, f->about, &f->arena, &task, &found);
	if (e == 0 && found && task.metadata.bytes.data)
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

struct found {
	struct text project, id;
	struct rule_memory kept;
};

static int read(void *arg, int lane, struct arena *arena, const struct event *e, void **ret_found)
{
	struct automation *a = arg;
	struct found *f = arena_zalloc(arena, sizeof(*f));
	struct value *data = NULL;
	struct text key;

	if (!f || value_unpack(arena, e->data, &data) != 0)
		return -ENOMEM;
	f->project = e->project.data ? e->project : TEXT("");
	f->id = value_text(value_find(data, "rule_id"));
	if (!f->id.data)
		f->id = TEXT("");
	*ret_found = f;
	return rule_key(arena, f->project, f->id, &key)
		       ?: store_rule_find(store_lane(a->opts.store, lane), key, arena, &f->kept);
}

static void take_rule(struct live_rule *r, const struct rule_memory *kept)
{
	r->by_hand = (int)kept->enabled;
	r->def.fired_ms = kept->fired_ms;
	r->def.n_fired = kept->n_fired;
}

static void apply(void *arg, const struct event *e, void *found)
{
	struct automation *a = arg;
	const struct found *f = found;
	struct rule_switch *s = f->id.len == 0 ? switch_get(a, f->project) : NULL;

	(void)e;
	if (s)
		s->on = f->kept.enabled != 0;
	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (f->id.len > 0 && r->armed && text_equal(r->key, f->kept.name))
			take_rule(r, &f->kept);
	}
}

int automation_follow(struct automation *a)
{
	static const struct text types[] = {TEXT("rule.*")};
	const struct follower_opts opts = {
		.events = a->opts.events,
		.loop = a->opts.loop,
		.background = a->opts.background,
		.types = types,
		.n_types = 1,
		.read = read,
		.apply = apply,
		.n_changes = &a->n_switched,
		.arg = a,
	};

	return follower_start(&opts, &a->follower);
}
