/*
 * How much of what was asked for is found: recall at 5 and at 10 over the
 * questions of test/search, for plain words, for the whole search, and with each
 * of its steps left out.
 *
 *	search_quality MEMORIES.json QUESTIONS.json [--misses]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "search/query.h"
#include "search/words.h"
#include "wire/json.h"

enum { HITS = 10 };

/* Questions are asked on 5 January 2024, when all the memories are there. */
static const int64_t NOW_MS = 1704456000000;

struct set {
	struct arena arena;
	struct value *memories;
	struct value *questions;
	struct search_scratch *scratch;
	bool show_misses;
};

static struct value *read_json(struct arena *arena, const char *path)
{
	struct value *v = NULL;
	struct why why = {0};
	FILE *file = fopen(path, "r");
	size_t len = 0;
	char *text = arena_alloc(arena, 1 << 20);

	if (!file || !text) {
		perror(path);
		exit(1);
	}
	len = fread(text, 1, 1 << 20, file);
	fclose(file);
	if (json_read(arena, text, len, &json_default_limits, &v, &why) != 0 ||
	    v->kind != VALUE_ARRAY) {
		fprintf(stderr, "%s: %s\n", path, why.text);
		exit(1);
	}
	return v;
}

static int64_t parse_time(struct text t)
{
	char copy[32] = {0};
	struct tm tm = {0};

	memcpy(copy, t.data, t.len < 31 ? t.len : 31);
	if (!strptime(copy, "%Y-%m-%dT%H:%M:%SZ", &tm)) {
		fprintf(stderr, "not a time: %s\n", copy);
		exit(1);
	}
	return (int64_t)timegm(&tm) * 1000;
}

static struct search_index *build(struct set *set, unsigned off)
{
	const struct search_index_opts opts = {.off = off};
	struct search_index *ix = search_index_new(&opts);

	value_each (m, set->memories) {
		struct search_doc doc = {
			.text = value_text(value_find(m, "text")),
			.chat = search_hash(value_text(value_find(m, "chat"))),
			.time_ms = parse_time(value_text(value_find(m, "time"))),
			.importance = 0.5f,
		};
		struct text subjects[4];
		int64_t key = 0;

		value_int(value_find(m, "key"), &key);
		doc.key = (uint64_t)key;
		doc.subjects = subjects;
		value_each (name, value_find(m, "subjects")) {
			if (doc.n_subjects < 4)
				subjects[doc.n_subjects++] = value_text(name);
		}
		if (!ix || search_index_add(ix, set->scratch, &doc) != 0) {
			fprintf(stderr, "out of memory\n");
			exit(1);
		}
	}
	return ix;
}

/* Two letters swapped within the longest word: one mistake of a hasty typist. */
static struct text mistype(struct text question, char *buf)
{
	size_t best = 0;
	size_t best_len = 0;

	memcpy(buf, question.data, question.len);
	for (size_t i = 0, len = 0; i <= question.len; i++) {
		char c = i < question.len ? buf[i] : ' ';

		if ((c | 32) >= 'a' && (c | 32) <= 'z') {
			len++;
			continue;
		}
		if (len > best_len) {
			best = i - len;
			best_len = len;
		}
		len = 0;
	}
	if (best_len > 3) {
		char *at = buf + best + best_len / 2;
		char swap = at[0];

		at[0] = at[-1];
		at[-1] = swap;
	}
	return (struct text) {buf, question.len};
}

/* The share of a question's evidence among the first n hits. */
static double recall(const struct value *evidence, const struct search_hit *hits, size_t n)
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

static void measure(struct set *set, const char *name, unsigned words_off,
		    struct search_tuning tuning, bool typos)
{
	struct search_index *ix = build(set, words_off);
	const struct search_index *indexes[] = {ix};
	double at5 = 0;
	double at10 = 0;
	char buf[512];

	value_each (q, set->questions) {
		const struct value *evidence = value_find(q, "evidence");
		struct search_query query = {
			.text = value_text(value_find(q, "question")),
			.now_ms = NOW_MS,
			.tuning = &tuning,
		};
		struct search_hit hits[HITS];
		size_t n = 0;

		if (typos && query.text.len < sizeof(buf))
			query.text = mistype(query.text, buf);
		search_run(set->scratch, indexes, 1, &query, hits, HITS, &n);
		at5 += recall(evidence, hits, n < 5 ? n : 5);
		at10 += recall(evidence, hits, n);
		if (set->show_misses && recall(evidence, hits, n) < 1)
			printf("  missed: %.*s\n", TEXT_ARGS(query.text));
	}
	printf("%-34s %6.1f %6.1f\n", name, 100 * at5 / set->questions->len,
	       100 * at10 / set->questions->len);
	search_index_free(ix);
}

static void measure_without(struct set *set)
{
	static const struct {
		const char *name;
		unsigned words_off;
		unsigned off;
	} steps[] = {
		{"without stems", WORDS_NO_STEMS, 0},
		{"without irregular forms", WORDS_NO_IRREGULAR, 0},
		{"without stop words", 0, SEARCH_NO_STOPS},
		{"without context", 0, SEARCH_NO_CONTEXT},
		{"without subjects", 0, SEARCH_NO_SUBJECTS},
		{"without dates", 0, SEARCH_NO_DATES},
		{"without time words", 0, SEARCH_NO_TIME_WORDS},
		{"without answers", 0, SEARCH_NO_ANSWERS},
		{"without repair", 0, SEARCH_NO_REPAIR},
		{"without priors", 0, SEARCH_NO_PRIORS},
	};
	struct search_tuning tuning = search_default_tuning;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		tuning.off = steps[i].off;
		measure(set, steps[i].name, steps[i].words_off, tuning, false);
	}
	tuning = search_default_tuning;
	tuning.k1 = 1.2f;
	tuning.b = 0.75f;
	measure(set, "with k1 1.2, b 0.75", 0, tuning, false);
}

int main(int argc, char **argv)
{
	struct search_tuning plain = {.off = ~0U, .k1 = 1.2f, .b = 0.75f, .repaired = 1};
	struct search_tuning whole = search_default_tuning;
	struct set set = {.scratch = search_scratch_new()};

	if (argc < 3 || !set.scratch) {
		fprintf(stderr, "usage: %s MEMORIES.json QUESTIONS.json [--misses]\n", argv[0]);
		return 2;
	}
	arena_init(&set.arena, 64 << 20);
	set.memories = read_json(&set.arena, argv[1]);
	set.questions = read_json(&set.arena, argv[2]);
	printf("%u memories, %u questions         recall @5    @10\n", set.memories->len,
	       set.questions->len);
	measure(&set, "plain words", WORDS_NO_STEMS | WORDS_NO_IRREGULAR, plain, false);
	set.show_misses = argc > 3;
	measure(&set, "the whole search", 0, whole, false);
	set.show_misses = false;
	measure_without(&set);
	measure(&set, "the whole, one typo each", 0, whole, true);
	whole.off = SEARCH_NO_REPAIR;
	measure(&set, "without repair, one typo each", 0, whole, true);
	search_scratch_free(set.scratch);
	arena_done(&set.arena);
	return 0;
}
