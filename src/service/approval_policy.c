/*
 * What is answered without a human: by the rules of the settings, of which the last that matches
 * wins, then by grants, of which one that denies wins. A rule that says `ask` leaves it to the
 * grants, and after them to a human. Questions are always for a human.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pack.h"
#include "service/approval_inner.h"
#include "service/pattern.h"

/* ---- matching ---- */

/* Any text in the tree. The unpacker bounds its depth. */
static bool any_text_fits(struct text glob, const struct value *v)
{
	if (v->kind == VALUE_STRING)
		return glob_fits(glob, (struct text) {.data = v->text, .len = v->len});
	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return false;
	value_each (child, v) {
		if (any_text_fits(glob, child))
			return true;
	}
	return false;
}

/* "NAME=PATTERN": only the member of that name, for an agent writes other texts beside the one that
 * counts. A pattern that begins so and means a text begins with a star. */
static bool split_member(struct text glob, struct text *ret_name, struct text *ret_rest)
{
	const char *equals = glob.len > 0 ? memchr(glob.data, '=', glob.len) : NULL;
	size_t n = equals ? (size_t)(equals - glob.data) : 0;

	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)glob.data[i]) && !strchr("_-.", glob.data[i]))
			return false;
	}
	*ret_name = (struct text) {.data = glob.data, .len = n};
	*ret_rest = (struct text) {.data = glob.data + n + 1, .len = glob.len - n - 1};
	return n > 0;
}

/* All of the name, should there be several. */
static bool tree_fits(struct text glob, const struct value *v)
{
	struct text name;
	struct text rest;
	bool fits = false;

	if (!split_member(glob, &name, &rest))
		return any_text_fits(glob, v);
	if (v->kind != VALUE_OBJECT)
		return false;
	value_each (child, v) {
		if (!text_equal(name, (struct text) {.data = child->key, .len = child->key_len}))
			continue;
		fits = any_text_fits(rest, child);
		if (!fits)
			return false;
	}
	return fits;
}

/* The input, unpacked when the first needs it. */
struct look {
	struct arena *arena;
	const struct approval_row *row;
	struct value *input;
	int err;
};

static bool input_fits(struct look *l, struct text glob)
{
	if (!l->input && l->err == 0)
		l->err = value_unpack(l->arena, l->row->input, &l->input);
	return l->input && tree_fits(glob, l->input);
}

static bool fits(const char *glob, struct text t)
{
	return !glob || glob_fits(text_of(glob), t);
}

static bool rule_fits(const struct approval_rule *rule, struct look *l)
{
	return fits(rule->agent, l->row->agent) && fits(rule->tool, l->row->tool) &&
	       (!rule->input || input_fits(l, text_of(rule->input)));
}

static bool grant_fits(const struct grant_row *g, struct look *l)
{
	const struct approval_row *row = l->row;

	return (!g->session.data || (row->session.data && text_equal(g->session, row->session))) &&
	       (!g->agent.data || text_equal(g->agent, row->agent)) &&
	       (!g->tool.data || glob_fits(g->tool, row->tool)) &&
	       (!g->pattern.data || input_fits(l, g->pattern));
}

/* ---- deciding ---- */

static int decide(struct arena *arena, struct approval_row *row, bool denies, const char *who,
		  struct text name, struct text comment)
{
	size_t n = strlen(who);
	char *by = arena_alloc(arena, n + name.len);

	if (!by)
		return -ENOMEM;
	memcpy(by, who, n);
	memcpy(by + n, name.data, name.len);
	row->status = denies ? APPROVAL_DENIED : APPROVAL_APPROVED;
	row->decided_by = (struct text) {.data = by, .len = n + name.len};
	row->decided_ms = row->created_ms;
	row->comment = comment;
	return 0;
}

static const struct approval_rule *last_that_fits(const struct approval_rules *rules,
						  struct look *l)
{
	for (unsigned i = rules->n; i > 0; i--) {
		if (rule_fits(&rules->list[i - 1], l))
			return &rules->list[i - 1];
	}
	return NULL;
}

/* One that denies comes first. Another may have had the last use. */
static int use_grant(struct connection *db, struct look *l, struct approval_row *row,
		     const struct grant_row *grants, unsigned n, bool denies)
{
	for (unsigned i = 0; i < n && row->status == APPROVAL_PENDING; i++) {
		bool found = false;
		int r;

		if (grants[i].denies != denies || !grant_fits(&grants[i], l))
			continue;
		r = store_grant_use(db, grants[i].id, &found);
		if (r == 0 && found)
			r = decide(l->arena, row, denies, "grant:", grants[i].id,
				   grants[i].comment);
		if (r != 0)
			return r;
	}
	return 0;
}

static int by_grants(struct connection *db, struct look *l, struct approval_row *row)
{
	struct grant_row *grants;
	unsigned n = 0;
	int r = store_grant_list(db, clock_utc_ms(), l->arena, &grants, &n);

	if (r == 0)
		r = use_grant(db, l, row, grants, n, true);
	if (r == 0)
		r = use_grant(db, l, row, grants, n, false);
	return r;
}

int policy_decide(struct connection *db, struct arena *arena, const struct approval_rules *rules,
		  struct approval_row *row)
{
	struct look l = {.arena = arena, .row = row};
	const struct approval_rule *rule;
	int r;

	if (row->kind != APPROVAL_FUNCTION)
		return 0;
	rule = last_that_fits(rules, &l);
	if (rule && rule->verdict != VERDICT_ASK)
		r = decide(arena, row, rule->verdict == VERDICT_DENY,
			   "policy:", text_of(rule->name), text_of(rule->comment));
	else
		r = by_grants(db, &l, row);
	/* What could not be looked into may have been what a rule denies. */
	return l.err != 0 ? l.err : r;
}

/* ---- the rules ---- */

enum { RULES_ARENA_MAX = 4 << 20 };

static int copy_text(struct arena *a, const char **at)
{
	if (!*at)
		return 0;
	*at = arena_copy(a, *at, strlen(*at));
	return *at ? 0 : -ENOMEM;
}

static int copy_rule(struct arena *a, struct approval_rule *rule)
{
	int r = copy_text(a, &rule->name);

	if (r == 0)
		r = copy_text(a, &rule->agent);
	if (r == 0)
		r = copy_text(a, &rule->tool);
	if (r == 0)
		r = copy_text(a, &rule->input);
	if (r == 0)
		r = copy_text(a, &rule->comment);
	return r;
}

int policy_rules_new(const struct approval_rule *rules, unsigned n,
		     struct approval_rules **ret_rules)
{
	struct approval_rules *set = calloc(1, sizeof(*set));
	int r = 0;

	if (!set)
		return -ENOMEM;
	if (n > APPROVAL_RULES_MAX) {
		free(set);
		return -E2BIG;
	}
	set->refs = 1;
	arena_init(&set->arena, RULES_ARENA_MAX);
	set->list = arena_zalloc(&set->arena, (n + 1) * sizeof(set->list[0]));
	if (!set->list)
		r = -ENOMEM;
	for (set->n = 0; r == 0 && set->n < n; set->n++) {
		set->list[set->n] = rules[set->n];
		r = copy_rule(&set->arena, &set->list[set->n]);
	}
	if (r == 0)
		*ret_rules = set;
	else
		policy_rules_unref(set);
	return r;
}

void policy_rules_unref(struct approval_rules *rules)
{
	if (!rules || --rules->refs > 0)
		return;
	arena_done(&rules->arena);
	free(rules);
}
