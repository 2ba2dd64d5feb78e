/*
 * How much of what was asked for is found: recall at 1, 5 and 10 over the questions of
 * test/search, as they were written and with a typing error in each. Plain words come first,
 * then one step of the search after another until all are there, then all but one.
 *
 *	search_quality [--json] [--misses] NAME=FOLDER...
 *
 * A folder holds memories.json and questions.json. Where questions belong to halves, one to
 * tune on and one to judge by, each half is measured apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "search/query.h"
#include "search/words.h"
#include "wire/json.h"

enum {
	HITS = 10,
	FILE_BYTES = 1 << 20,
	SUBJECTS = 4,
	KEYS = 1 << 16,
	DAY_MS = 86400000,
};

/* Where recall is looked at. */
static const size_t DEPTHS[] = {1, 5, HITS};

enum { N_DEPTHS = sizeof(DEPTHS) / sizeof(DEPTHS[0]) };

static const char *const HALVES[] = {"tune", "judge"};

static const struct search_tuning plain_tuning = {
	.off = ~0U, .k1 = 1.2f, .b = 0.75f, .repaired = 1};

struct set {
	const char *name;
	struct arena arena;
	struct value *memories;
	struct value *questions;
	const struct value *by_key[KEYS];
	int64_t now_ms; /* questions are asked the day after the last memory */
	struct search_scratch *scratch;
};

/* What is measured: the questions of one half, or all of them. */
struct group {
	struct set *set;
	const char *half; /* NULL: all */
	bool as_json;
	bool show_misses;
};

/* One way to search. */
struct recipe {
	const char *kind; /* plain, added, ladder, without */
	const char *name;
	unsigned words_off; /* enum words_off */
	struct search_tuning tuning;
};

struct recall {
	double at[N_DEPTHS];
};

/* The steps, in the order in which they are added. */
static const struct step {
	const char *name;
	unsigned words_off;
	unsigned off;
} STEPS[] = {
	{"stemming", WORDS_NO_STEMS, 0},
	{"irregular forms", WORDS_NO_IRREGULAR, 0},
	{"stop words", 0, SEARCH_NO_STOPS},
	{"spelling correction", 0, SEARCH_NO_REPAIR},
	{"neighbouring memories", 0, SEARCH_NO_CONTEXT},
	{"replies to questions", 0, SEARCH_NO_ANSWERS},
	{"named subjects", 0, SEARCH_NO_SUBJECTS},
	{"dates in questions", 0, SEARCH_NO_DATES},
	{"time references", 0, SEARCH_NO_TIME_WORDS},
	{"generic words", 0, SEARCH_NO_WEAK},
	{"expected answer types", 0, SEARCH_NO_KINDS},
	{"first-person statements", 0, SEARCH_NO_SELF},
	{"question penalty", 0, SEARCH_NO_ASKING},
	{"duplicate ranking", 0, SEARCH_NO_NEWER},
	{"synonyms", 0, SEARCH_NO_SYNONYMS},
	{"importance and recency", 0, SEARCH_NO_PRIORS},
};

enum { N_STEPS = sizeof(STEPS) / sizeof(STEPS[0]) };

/* ---- the sets ---- */

static void die(const char *what, const char *error)
{
	fprintf(stderr, "%s: %s\n", what, error);
	exit(1);
}

static struct value *read_json(struct arena *arena, const char *folder, const char *name)
{
	char *text = arena_alloc(arena, FILE_BYTES);
	struct value *v = NULL;
	struct error error = {0};
	char path[4096];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file || !text) {
		perror(path);
		exit(1);
	}
	len = fread(text, 1, FILE_BYTES, file);
	if (!feof(file))
		die(path, "too long");
	fclose(file);
	if (json_read(arena, text, len, &json_default_limits, &v, &error) != 0 ||
	    v->kind != VALUE_ARRAY)
		die(path, error.text);
	return v;
}

static int64_t time_of(const struct value *memory)
{
	struct text t = value_text(value_find(memory, "time"));
	char copy[32] = {0};
	struct tm tm = {0};

	memcpy(copy, t.data, t.len < 31 ? t.len : 31);
	if (!strptime(copy, "%Y-%m-%dT%H:%M:%SZ", &tm))
		die("not a time", copy);
	return (int64_t)timegm(&tm) * 1000;
}

static void set_read(struct set *set, const char *folder)
{
	arena_init(&set->arena, 64 << 20);
	set->memories = read_json(&set->arena, folder, "memories.json");
	set->questions = read_json(&set->arena, folder, "questions.json");
	set->now_ms = 0;
	value_each (m, set->memories) {
		if (time_of(m) + DAY_MS > set->now_ms)
			set->now_ms = time_of(m) + DAY_MS;
	}
}

static int add_memory(struct set *set, struct search_index *ix, const struct value *m)
{
	struct text subjects[SUBJECTS];
	struct search_doc doc = {
		.text = value_text(value_find(m, "text")),
		.chat = search_hash(value_text(value_find(m, "chat"))),
		.time_ms = time_of(m),
		.subjects = subjects,
		.importance = 0.5f,
	};
	int64_t key = 0;

	value_int(value_find(m, "key"), &key);
	if (key < 0 || key >= KEYS)
		die(set->name, "a key is too large");
	set->by_key[key] = m;
	doc.key = (uint64_t)key;
	value_each (name, value_find(m, "subjects")) {
		if (doc.n_subjects < SUBJECTS)
			subjects[doc.n_subjects++] = value_text(name);
	}
	return search_index_add(ix, set->scratch, &doc);
}

static struct search_index *build(struct set *set, unsigned words_off)
{
	const struct search_index_opts opts = {.off = words_off};
	struct search_index *ix = search_index_new(&opts);

	if (!ix)
		die(set->name, "out of memory");
	value_each (m, set->memories) {
		if (add_memory(set, ix, m) != 0)
			die(set->name, "out of memory");
	}
	return ix;
}

/* ---- measuring ---- */

static bool is_asked(const struct group *group, const struct value *question)
{
	return !group->half || text_is(value_text(value_find(question, "half")), group->half);
}

static size_t count_asked(const struct group *group)
{
	size_t n = 0;

	value_each (q, group->set->questions)
		n += is_asked(group, q);
	return n;
}

/* The share of a question's evidence among the first n hits. */
static double share_found(const struct value *evidence, const struct search_hit *hits, size_t n)
{
	double found = 0;

	value_each (e, evidence) {
		int64_t key = 0;

		value_int(e, &key);
		for (size_t i = 0; i < n; i++)
			found += hits[i].key == (uint64_t)key;
	}
	return found / evidence->len;
}

/* The engine does the same once it has the texts. */
static void settle(const struct set *set, const struct search_query *query, struct search_hit *hits,
		   size_t n)
{
	struct search_said said[HITS];
	size_t from[HITS];

	for (size_t i = 0; i < n; i++) {
		const struct value *m = set->by_key[hits[i].key];

		said[i] = (struct search_said) {value_text(value_find(m, "text")), time_of(m)};
	}
	search_settle(set->scratch, query, hits, said, n, from);
}

static void ask(const struct group *group, const struct search_index *ix,
		const struct recipe *recipe, const struct value *question, const char *form,
		struct recall *sum)
{
	const struct value *evidence = value_find(question, "evidence");
	const struct search_query query = {
		.text = value_text(value_find(question, form)),
		.now_ms = group->set->now_ms,
		.tuning = &recipe->tuning,
	};
	struct search_hit hits[HITS];
	size_t n = 0;

	if (search_run(group->set->scratch, &ix, 1, &query, hits, HITS, &n) != 0)
		die(group->set->name, "out of memory");
	settle(group->set, &query, hits, n);
	for (size_t i = 0; i < N_DEPTHS; i++)
		sum->at[i] += share_found(evidence, hits, n < DEPTHS[i] ? n : DEPTHS[i]);
	if (group->show_misses && share_found(evidence, hits, n) < 1)
		printf("  missed: %.*s\n", TEXT_ARGS(query.text));
}

/* In percent. The form of a question is as it was written, or mistyped. */
static struct recall measure(const struct group *group, const struct search_index *ix,
			     const struct recipe *recipe, const char *form)
{
	struct recall sum = {0};

	value_each (q, group->set->questions) {
		if (is_asked(group, q))
			ask(group, ix, recipe, q, form, &sum);
	}
	for (size_t i = 0; i < N_DEPTHS; i++)
		sum.at[i] *= 100.0 / count_asked(group);
	return sum;
}

static void print_json(const struct group *group, const struct recipe *recipe,
		       const struct recall *right, const struct recall *typo)
{
	printf("{\"set\":\"%s\",\"half\":\"%s\",\"memories\":%u,\"questions\":%zu,"
	       "\"kind\":\"%s\",\"name\":\"%s\"",
	       group->set->name, group->half ? group->half : "", group->set->memories->len,
	       count_asked(group), recipe->kind, recipe->name);
	for (size_t i = 0; i < N_DEPTHS; i++)
		printf(",\"recall_%zu\":%.4f,\"typo_%zu\":%.4f", DEPTHS[i], right->at[i], DEPTHS[i],
		       typo->at[i]);
	printf("}\n");
}

static void print_text(const struct recipe *recipe, const struct recall *right,
		       const struct recall *typo)
{
	printf("%-8s %-22s", recipe->kind, recipe->name);
	for (size_t i = 0; i < N_DEPTHS; i++)
		printf(" %6.1f", right->at[i]);
	printf("   ");
	for (size_t i = 0; i < N_DEPTHS; i++)
		printf(" %6.1f", typo->at[i]);
	printf("\n");
}

static void report(const struct group *group, const struct recipe *recipe)
{
	struct search_index *ix = build(group->set, recipe->words_off);
	struct recall right = measure(group, ix, recipe, "question");
	struct recall typo = measure(group, ix, recipe, "typo");

	if (group->as_json)
		print_json(group, recipe, &right, &typo);
	else
		print_text(recipe, &right, &typo);
	search_index_free(ix);
}

/* ---- the ways to search ---- */

/* How words are weighed, then a step after the other. */
static void report_added(const struct group *group)
{
	struct recipe recipe = {.kind = "added",
				.name = "word weights",
				.words_off = WORDS_NO_STEMS | WORDS_NO_IRREGULAR,
				.tuning = search_default_tuning};

	recipe.tuning.off = ~0U;
	report(group, &recipe);
	for (size_t i = 0; i < N_STEPS; i++) {
		recipe.name = STEPS[i].name;
		recipe.words_off &= ~STEPS[i].words_off;
		recipe.tuning.off &= ~STEPS[i].off;
		report(group, &recipe);
	}
}

static void report_without(const struct group *group)
{
	struct recipe recipe = {.kind = "without", .tuning = search_default_tuning};

	for (size_t i = 0; i < N_STEPS; i++) {
		recipe.name = STEPS[i].name;
		recipe.words_off = STEPS[i].words_off;
		recipe.tuning.off = STEPS[i].off;
		report(group, &recipe);
	}
}

static void report_group(struct group *group)
{
	const struct recipe plain = {.kind = "plain",
				     .name = "words",
				     .words_off = WORDS_NO_STEMS | WORDS_NO_IRREGULAR,
				     .tuning = plain_tuning};
	const struct recipe ladder = {
		.kind = "ladder", .name = "all steps", .tuning = search_default_tuning};
	bool show_misses = group->show_misses;

	if (!group->as_json)
		printf("%s%s%s, %u memories, %zu questions: recall at 1, 5, 10; mistyped\n",
		       group->set->name, group->half ? " " : "", group->half ? group->half : "",
		       group->set->memories->len, count_asked(group));
	group->show_misses = false;
	report(group, &plain);
	report_added(group);
	group->show_misses = show_misses;
	report(group, &ladder);
	group->show_misses = false;
	report_without(group);
	group->show_misses = show_misses;
}

static void report_set(const char *name, const char *folder, bool as_json, bool show_misses)
{
	static struct set set;

	struct group group = {.set = &set, .as_json = as_json, .show_misses = show_misses};

	set = (struct set) {.name = name, .scratch = search_scratch_new()};
	if (!set.scratch)
		die(folder, "out of memory");
	set_read(&set, folder);
	if (!value_find(set.questions->first, "half"))
		report_group(&group);
	else
		for (size_t i = 0; i < sizeof(HALVES) / sizeof(HALVES[0]); i++) {
			group.half = HALVES[i];
			report_group(&group);
		}
	search_scratch_free(set.scratch);
	arena_done(&set.arena);
}

int main(int argc, char **argv)
{
	bool as_json = false;
	bool show_misses = false;
	bool asked = false;
	int i = 1;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		as_json |= strcmp(argv[i], "--json") == 0;
		show_misses |= strcmp(argv[i], "--misses") == 0;
	}
	for (; i < argc; i++) {
		char *folder = strchr(argv[i], '=');

		if (!folder)
			break;
		*folder++ = '\0';
		report_set(argv[i], folder, as_json, show_misses);
		asked = true;
	}
	if (asked && i == argc)
		return 0;
	fprintf(stderr, "usage: %s [--json] [--misses] NAME=FOLDER...\n", argv[0]);
	return 2;
}
