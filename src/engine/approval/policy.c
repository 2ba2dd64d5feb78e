/*
 * Decisions without a human: first by the rules of the settings, of which the last that
 * matches wins, then by grants, of which one that denies wins. A rule that says `ask` leaves
 * the decision to the grants, and after them to a human. Questions always go to a human.
 *
 * A match anywhere is enough to deny; to allow, everything must match.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pack.h"
#include "engine/approval/inner.h"
#include "base/pattern/pattern.h"

/* ---- matching: how much of an input matches a pattern ---- */

enum part { PART_NONE, PART_SOME, PART_ALL };

/* What was examined. */
struct approval_policy_seen {
	bool fits;
	bool misses;
	bool together; /* no single text, but the texts of a list joined */
	int err;
};

static void see(struct approval_policy_seen *seen, bool fits)
{
	seen->fits = seen->fits || fits;
	seen->misses = seen->misses || !fits;
}

static enum part part_of(struct approval_policy_seen seen)
{
	if (!seen.fits)
		return seen.together ? PART_SOME : PART_NONE;
	return seen.misses ? PART_SOME : PART_ALL;
}

/* A reader that uses C strings stops at a NUL: such a text matches in part at best. */
static void see_text(struct text glob, struct text t, struct approval_policy_seen *seen)
{
	const char *nul = text_find(t, '\0');

	see(seen, glob_fits(glob, t));
	if (!nul)
		return;
	see(seen, glob_fits(glob, (struct text) {.data = t.data, .len = (size_t)(nul - t.data)}));
	seen->misses = true;
}

static bool is_leaf(const struct value *v)
{
	return v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT;
}

/* A number as it is written. */
static struct text word_of(const struct value *v)
{
	static const char *const words[] = {
		[VALUE_NULL] = "null", [VALUE_FALSE] = "false", [VALUE_TRUE] = "true"};

	return v->kind < VALUE_NUMBER ? text_of(words[v->kind])
				      : (struct text) {.data = v->text, .len = v->len};
}

/* The words of a command may be separate elements of a list: only rules that deny look at them
 * joined. */
static void see_words(struct text glob, const struct value *list, struct approval_policy_seen *seen)
{
	CLEANUP(buf_donep) struct buf line;

	buf_init(&line, SIZE_MAX);
	value_each (child, list) {
		struct text word = is_leaf(child) ? word_of(child) : (struct text) {0};

		if (child != list->first)
			buf_add_char(&line, ' ');
		buf_add(&line, word.data, word.len);
	}
	if (line.err != 0)
		seen->err = line.err;
	else if (list->len > 1 &&
		 glob_fits(glob, (struct text) {.data = line.data, .len = line.len}))
		seen->together = true;
}

/* Everything in a tree, including the names of members. The unpacker bounds its depth. */
static void see_tree(struct text glob, const struct value *v, struct approval_policy_seen *seen)
{
	if (is_leaf(v)) {
		see_text(glob, word_of(v), seen);
		return;
	}
	if (v->kind == VALUE_ARRAY)
		see_words(glob, v, seen);
	value_each (child, v) {
		if (v->kind == VALUE_OBJECT)
			see_text(glob, (struct text) {.data = child->key, .len = child->key_len},
				 seen);
		see_tree(glob, child, seen);
	}
}

/* Only the texts. */
static void see_texts(struct text glob, const struct value *v, struct approval_policy_seen *seen)
{
	if (v->kind == VALUE_STRING)
		see_text(glob, word_of(v), seen);
	if (is_leaf(v))
		return;
	value_each (child, v)
		see_texts(glob, child, seen);
}

/* The input, unpacked on first use. */
struct approval_policy_look {
	struct arena *arena;
	const struct approval *row;
	struct value *input;
	bool looked_twice;
	bool twice; /* a key occurs twice somewhere: readers may see either of the two */
	int err;
};

/* "NAME=PATTERN": only the member of that name, since an agent also writes other texts beside
 * the one that counts. A pattern that looks like this but means any text must start with a star. */
static bool split_member(struct text glob, struct text *ret_name, struct text *ret_rest)
{
	const char *equals = text_find(glob, '=');
	size_t n = equals ? (size_t)(equals - glob.data) : 0;

	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)glob.data[i]) && !strchr("_-.", glob.data[i]))
			return false;
	}
	*ret_name = (struct text) {.data = glob.data, .len = n};
	*ret_rest = (struct text) {.data = glob.data + n + 1, .len = glob.len - n - 1};
	return n > 0;
}

/* Every member of that name, if there are several. A name that only some readers take for it
 * matches in part at best. */
static enum part member_fits(struct text name, struct text glob, struct approval_policy_look *l)
{
	struct approval_policy_seen seen = {0};

	value_each (child, l->input) {
		const struct text key = {.data = child->key, .len = child->key_len};

		if (!value_same_key(name, key))
			continue;
		see_tree(glob, child, &seen);
		if (!text_equal(name, key))
			seen.misses = true;
	}
	l->err = seen.err;
	return part_of(seen);
}

/* The names of the input's own members are chosen by the tool, those further down by the agent:
 * rules that deny look at the latter, too. */
static enum part any_fits(struct text glob, struct approval_policy_look *l)
{
	struct approval_policy_seen texts = {0};
	struct approval_policy_seen all = {0};
	enum part part;

	see_texts(glob, l->input, &texts);
	part = part_of(texts);
	value_each (child, l->input)
		see_tree(glob, child, &all);
	l->err = all.err;
	return part == PART_NONE && part_of(all) != PART_NONE ? PART_SOME : part;
}

static bool look_at_input(struct approval_policy_look *l)
{
	if (!l->input && l->err == 0)
		l->err = value_unpack(l->arena, l->row->input.bytes, &l->input);
	return l->err == 0;
}

static enum part input_fits(struct approval_policy_look *l, struct text glob)
{
	struct text name, rest;

	if (!look_at_input(l) || l->input->kind != VALUE_OBJECT)
		return PART_NONE;
	return split_member(glob, &name, &rest) ? member_fits(name, rest, l) : any_fits(glob, l);
}

static bool fits(const char *glob, struct text t)
{
	return !glob || glob_fits(text_of(glob), t);
}

static enum part rule_fits(const struct approval_rule *rule, struct approval_policy_look *l)
{
	if (!fits(rule->agent, l->row->agent) || !fits(rule->tool, l->row->tool))
		return PART_NONE;
	return rule->input ? input_fits(l, text_of(rule->input)) : PART_ALL;
}

static enum part grant_fits(const struct grant *g, struct approval_policy_look *l)
{
	const struct approval *row = l->row;

	if ((g->session.data && !(row->session.data && text_equal(g->session, row->session))) ||
	    (g->agent.data && !text_equal(g->agent, row->agent)) ||
	    (g->tool.data && !glob_fits(g->tool, row->tool)))
		return PART_NONE;
	return g->pattern.data ? input_fits(l, g->pattern) : PART_ALL;
}

/* To be allowed, it must match as a whole and be readable in one way only. */
static bool allows(struct approval_policy_look *l, enum part part)
{
	struct text key;

	if (part != PART_ALL || !look_at_input(l))
		return false;
	if (!l->looked_twice) {
		l->looked_twice = true;
		l->err = value_find_twice(l->arena, l->input, &key);
		l->twice = key.data != NULL;
	}
	return l->err == 0 && !l->twice;
}

/* ---- deciding ---- */

static int decide(struct arena *arena, struct approval *row, bool denies, const char *who,
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

/*
 * The last rule that matches. A rule that allows must match as a whole; for one that denies, a
 * part is enough. The same goes for `ask`; but an `ask` that matches in part does not override
 * an earlier rule that denies.
 */
static const struct approval_rule *last_that_fits(const struct approval_rules *rules,
						  struct approval_policy_look *l)
{
	const struct approval_rule *asks = NULL;

	for (unsigned i = rules->n; i > 0; i--) {
		const struct approval_rule *rule = &rules->list[i - 1];
		enum part part = rule_fits(rule, l);

		if (part == PART_NONE)
			continue;
		if (rule->verdict == VERDICT_DENY)
			return rule;
		if (rule->verdict == VERDICT_ASK && part == PART_ALL)
			return asks ? asks : rule;
		if (rule->verdict == VERDICT_ASK)
			asks = asks ? asks : rule;
		else if (allows(l, part))
			return asks ? asks : rule;
	}
	return asks;
}

static bool grant_decides(const struct grant *g, struct approval_policy_look *l)
{
	enum part part = grant_fits(g, l);

	return g->verdict == GRANT_DENIES ? part != PART_NONE : allows(l, part);
}

/* Grants that deny come first. Another request may have taken the last use. */
static int use_grant(struct connection *db, struct approval_policy_look *l, struct approval *row,
		     const struct grant *grants, unsigned n, enum grant_verdict verdict)
{
	for (unsigned i = 0; i < n && row->status == APPROVAL_PENDING; i++) {
		bool found = false;
		int r;

		if (grants[i].verdict != verdict || !grant_decides(&grants[i], l))
			continue;
		r = store_grant_use(db, grants[i].id, &found);
		if (r == 0 && found)
			r = decide(l->arena, row, verdict == GRANT_DENIES, "grant:", grants[i].id,
				   grants[i].comment);
		if (r != 0)
			return r;
	}
	return 0;
}

static int by_grants(struct connection *db, struct approval_policy_look *l, struct approval *row)
{
	struct grant *grants;
	unsigned n = 0;
	return store_grant_list(db, clock_utc_ms(), l->arena, &grants, &n) ?:
		use_grant(db, l, row, grants, n, GRANT_DENIES) ?:
		use_grant(db, l, row, grants, n, GRANT_ALLOWS);
}

int policy_decide(struct connection *db, struct arena *arena, const struct approval_rules *rules,
		  struct approval *row)
{
	struct approval_policy_look l = {.arena = arena, .row = row};
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
	/* What could not be examined may be something that a rule denies. */
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
	const char **const texts[] = {&rule->name, &rule->agent, &rule->tool, &rule->input,
				      &rule->comment};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = copy_text(a, texts[i]);
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
	set->list = arena_zalloc(&set->arena, n * sizeof(set->list[0]));
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
