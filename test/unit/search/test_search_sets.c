/*
 * The sets of our own on which search is tuned and measured: that they are sound, and that no less
 * is found on them than was. See bench/search_quality.c for all figures.
 */
#include <time.h>

#include "base/arena.h"
#include "check.h"
#include "search/query.h"
#include "wire/json.h"

enum {
	FILE_BYTES = 1 << 20,
	HITS = 10,
	DAY_MS = 86400000,
};

struct set {
	struct arena arena;
	struct value *memories;
	struct value *questions;
};

static struct value *read_array(struct arena *arena, const char *set, const char *name)
{
	const char *folder = getenv("KOINE_SEARCH_SET");
	struct value *v = NULL;
	char path[4096];
	char *text = arena_alloc(arena, FILE_BYTES);
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s%s", folder ? folder : "test/search", set, name);
	file = fopen(path, "r");
	assert_non_null(file);
	len = fread(text, 1, FILE_BYTES, file);
	assert_true(feof(file));
	fclose(file);
	assert_int_equal(json_read(arena, text, len, &json_default_limits, &v, NULL), 0);
	assert_int_equal(v->kind, VALUE_ARRAY);
	return v;
}

static void set_read(struct set *set, const char *name)
{
	arena_init(&set->arena, 64 << 20);
	set->memories = read_array(&set->arena, name, "memories.json");
	set->questions = read_array(&set->arena, name, "questions.json");
}

static struct text member(const struct value *v, const char *name)
{
	const struct value *found = value_find(v, name);

	assert_non_null(found);
	assert_int_equal(found->kind, VALUE_STRING);
	return value_text(found);
}

static int64_t number(const struct value *v)
{
	int64_t n = 0;

	assert_true(value_int(v, &n));
	return n;
}

static int64_t read_time(struct text t)
{
	struct tm tm = {0};

	assert_non_null(strptime(t.data, "%Y-%m-%dT%H:%M:%SZ", &tm));
	return (int64_t)timegm(&tm);
}

static const struct value *memory_of(const struct set *set, int64_t key)
{
	value_each (m, set->memories)
		if (number(value_find(m, "key")) == key)
			return m;
	return NULL;
}

/* Each key is met at its first memory, and a chat's times never run back. */
static void check_memories(const struct set *set)
{
	value_each (m, set->memories) {
		struct text chat = member(m, "chat");
		int64_t time = read_time(member(m, "time"));
		const struct value *subjects = value_find(m, "subjects");

		assert_ptr_equal(memory_of(set, number(value_find(m, "key"))), m);
		assert_true(member(m, "text").len > 0);
		assert_true(subjects && subjects->len > 0);
		for (const struct value *later = m->next; later; later = later->next)
			if (text_equal(member(later, "chat"), chat))
				assert_true(read_time(member(later, "time")) > time);
	}
}

static void check_questions(const struct set *set)
{
	value_each (q, set->questions) {
		struct text question = member(q, "question");
		const struct value *evidence = value_find(q, "evidence");

		assert_true(question.len > 0);
		assert_false(text_equal(question, member(q, "typo")));
		assert_true(evidence && evidence->len > 0);
		value_each (e, evidence)
			assert_non_null(memory_of(set, number(e)));
		value_each (m, set->memories)
			assert_false(text_equal(member(m, "text"), question));
		for (const struct value *later = q->next; later; later = later->next)
			assert_false(text_equal(member(later, "question"), question));
	}
}

/* Questions go to the halves in turn, so that the halves are alike. */
static void check_halves(const struct set *set)
{
	size_t i = 0;

	value_each (q, set->questions)
		assert_true(text_is(member(q, "half"), i++ % 2 == 0 ? "tune" : "judge"));
}

TEST(the_first_set_is_sound)
{
	struct set set;

	set_read(&set, "");
	check_memories(&set);
	check_questions(&set);
	arena_done(&set.arena);
}

TEST(the_second_set_is_sound)
{
	struct set set;

	set_read(&set, "second/");
	assert_true(set.memories->len >= 1000 && set.questions->len >= 260);
	check_memories(&set);
	check_questions(&set);
	check_halves(&set);
	arena_done(&set.arena);
}

/* ---- what is found ---- */

struct found {
	struct search_scratch *scratch;
	struct search_index *ix;
	int64_t now_ms; /* the day after the last memory */
};

static void found_fill(struct found *f, const struct set *set)
{
	*f = (struct found) {.scratch = search_scratch_new(), .ix = search_index_new(NULL)};
	assert_non_null(f->scratch);
	assert_non_null(f->ix);
	value_each (m, set->memories) {
		struct text subject = value_text(value_find(m, "subjects")->first);
		struct search_doc doc = {.key = (uint64_t)number(value_find(m, "key")),
					 .text = member(m, "text"),
					 .chat = search_hash(member(m, "chat")),
					 .time_ms = read_time(member(m, "time")) * 1000,
					 .subjects = &subject,
					 .n_subjects = 1,
					 .importance = 0.5f};

		assert_int_equal(search_index_add(f->ix, f->scratch, &doc), 0);
		if (doc.time_ms + DAY_MS > f->now_ms)
			f->now_ms = doc.time_ms + DAY_MS;
	}
}

static void found_done(struct found *f)
{
	search_index_free(f->ix);
	search_scratch_free(f->scratch);
}

/* The share of a question's evidence among the first ten hits. */
static double share_found(const struct found *f, const struct value *question, const char *form)
{
	const struct search_index *indexes[] = {f->ix};
	const struct search_query query = {.text = member(question, form), .now_ms = f->now_ms};
	const struct value *evidence = value_find(question, "evidence");
	struct search_hit hits[HITS];
	size_t n_hits = 0;
	double n_found = 0;

	assert_int_equal(search_run(f->scratch, indexes, 1, &query, hits, HITS, &n_hits), 0);
	value_each (e, evidence)
		for (size_t i = 0; i < n_hits; i++)
			n_found += hits[i].key == (uint64_t)number(e);
	return n_found / evidence->len;
}

/* Percent at ten, of one half's questions or of all. */
static double recall(const struct found *f, const struct set *set, const char *half,
		     const char *form)
{
	double sum = 0;
	size_t n = 0;

	value_each (q, set->questions) {
		if (half && !text_is(member(q, "half"), half))
			continue;
		sum += share_found(f, q, form);
		n++;
	}
	return 100 * sum / n;
}

static void check_found(const char *name, const char *half, double least, double least_mistyped)
{
	struct set set;
	struct found found;
	double right;
	double mistyped;

	set_read(&set, name);
	found_fill(&found, &set);
	right = recall(&found, &set, half, "question");
	mistyped = recall(&found, &set, half, "typo");
	print_message("%.2f percent, mistyped %.2f\n", right, mistyped);
	assert_true(right >= least);
	assert_true(mistyped >= least_mistyped);
	found_done(&found);
	arena_done(&set.arena);
}

/* The floors are about one question below what was found when they were set. */
TEST(the_first_set_is_answered)
{
	check_found("", NULL, 82, 80);
}

TEST(the_second_set_is_answered)
{
	check_found("second/", "judge", 68.5, 65.5);
}
