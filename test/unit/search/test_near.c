/* How near memories are by their vectors; and that no model makes searches worse. */
#include "check.h"

#include <math.h>
#include <time.h>

#include "base/arena.h"
#include "search/hash_embed.h"
#include "search/vector/near.h"
#include "wire/json.h"

enum { DIM = 64, WORDS_MAX = 200 };

static struct search_scratch *scratch;
static struct search_index *ix;
static struct vector_block *block;
static struct near_hit near[WORDS_MAX + NEAR_HITS_MAX];

/* xorshift: the same on every run. */
static uint64_t dice_state = 88172645463325252U;

static float dice(void)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (float)((double)(dice_state % 2000001) / 1000000 - 1);
}

static int setup(void **state)
{
	scratch = search_scratch_new();
	ix = search_index_new(NULL);
	block = vector_block_new(DIM, 0);
	return scratch && ix && block ? 0 : -1;
}

static int teardown(void **state)
{
	vector_block_free(block);
	search_index_free(ix);
	search_scratch_free(scratch);
	return 0;
}

FIXTURE(setup, teardown);

static void add(uint64_t key, uint64_t chat, uint8_t category)
{
	const struct search_doc doc = {.key = key,
				       .text = TEXT("something"),
				       .chat = chat,
				       .time_ms = (int64_t)key,
				       .category = category};

	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

/* A vector whose cosine with the question, the first axis, is about that. */
static void put(uint64_t key, float cosine)
{
	float v[DIM] = {cosine, sqrtf(1 - cosine * cosine)};
	int8_t bytes[DIM];
	float scale = vector_quantise(v, DIM, bytes);

	assert_int_equal(vector_block_put(block, key, bytes, scale), 0);
}

static struct near_found find(const struct search_hit *words, size_t n_words,
			      const struct search_query *q)
{
	static const float axis[DIM] = {1};
	static int8_t bytes[DIM];
	const struct near_question question = {
		.dim = DIM, .bytes = bytes, .scale = vector_quantise(axis, DIM, bytes)};
	const struct near_scope scope = {ix, block};
	const struct search_query any = {0};

	return near_find(&scope, 1, q ? q : &any, &question, words, n_words, near);
}

static float z_of(const struct near_found *found, uint64_t key)
{
	for (size_t i = 0; i < found->n; i++) {
		if (near[i].key == key)
			return near[i].z;
	}
	return -100;
}

TEST(the_nearest_come_first)
{
	struct near_found found;

	for (uint64_t i = 1; i <= 30; i++) {
		add(i, 0, 0);
		put(i, i == 7 ? 0.9f : 0.2f + 0.001f * (float)i);
	}
	found = find(NULL, 0, NULL);
	assert_int_equal(found.n, 30);
	assert_int_equal(near[0].key, 7);
	assert_true(near[0].z > 3);
	for (size_t i = 1; i < found.n; i++)
		assert_true(near[i].z <= near[i - 1].z);
	assert_false(found.judged);
}

/* The same cosines, with the same differences, wherever they lie: only these count. */
TEST(a_model_with_high_cosines_is_no_better)
{
	struct near_found found;
	float low;

	for (uint64_t i = 1; i <= 1000; i++) {
		add(i, 0, 0);
		put(i, 0.1f + 0.0001f * (float)(i % 100) + (i == 500 ? 0.1f : 0));
	}
	found = find(NULL, 0, NULL);
	low = z_of(&found, 500);
	for (uint64_t i = 1; i <= 1000; i++)
		put(i, 0.5f + 0.0001f * (float)(i % 100) + (i == 500 ? 0.1f : 0));
	found = find(NULL, 0, NULL);
	assert_true(fabsf(z_of(&found, 500) - low) < 0.4f * low);
}

TEST(one_that_points_the_other_way_is_not_near)
{
	struct near_found found;

	add(1, 0, 0);
	put(1, -0.2f);
	add(2, 0, 0);
	put(2, 0.7f);
	found = find(NULL, 0, NULL);
	assert_int_equal(found.n, 1);
	assert_int_equal(near[0].key, 2);
	assert_true(near[0].z > 0);
}

TEST(neighbours_in_a_chat_count)
{
	struct near_found found;

	for (uint64_t i = 1; i <= 40; i++) {
		add(i, i <= 20 ? 5 : 100 + i, 0);
		put(i, 0.1f);
	}
	put(10, 0.5f);
	put(30, 0.5f);
	put(11, 0.4f); /* beside the first, in its chat */
	found = find(NULL, 0, NULL);
	assert_true(z_of(&found, 10) > z_of(&found, 30));
	assert_true(z_of(&found, 9) > z_of(&found, 29));
}

TEST(filters_hold_for_neighbours_as_well)
{
	const struct search_query q = {.categories = 1U << 1};
	struct near_found found;
	float alone;

	for (uint64_t i = 1; i <= 40; i++) {
		add(i, 5, i == 11 ? 2 : 1);
		put(i, 0.1f);
	}
	put(10, 0.5f);
	found = find(NULL, 0, &q);
	alone = z_of(&found, 10);
	assert_true(z_of(&found, 11) == -100);
	/* What is not for the asker changes the average, and nothing else. */
	put(11, 0.12f);
	found = find(NULL, 0, &q);
	assert_true(fabsf(z_of(&found, 10) - alone) < 0.1f);
	assert_true(z_of(&found, 11) == -100);
}

TEST(hits_by_words_come_in_their_order)
{
	const struct search_hit words[] = {{.key = 3, .score = 1}, {.key = 1, .score = 0.9f}};
	struct near_found found;

	for (uint64_t i = 1; i <= 3; i++)
		add(i, 0, 0);
	put(1, 0.3f);
	put(2, 0.8f);
	found = find(words, 2, NULL);
	assert_int_equal(found.n, 3);
	assert_int_equal(near[0].key, 3);
	assert_true(near[0].z == 0); /* it has no vector yet */
	assert_int_equal(near[1].key, 1);
	assert_int_equal(near[2].key, 2);
	assert_true(found.judged);
}

/* A model is judged by what stands beside the hits and lacks the words. */
TEST(a_model_is_judged_beside_the_hits)
{
	const struct search_hit words[] = {{.key = 10, .score = 1}};
	struct near_found found;

	for (uint64_t i = 1; i <= 40; i++) {
		add(i, 5, 0);
		put(i, 0.1f + 0.001f * (float)(i % 7));
	}
	put(10, 0.9f);
	found = find(words, 1, NULL);
	assert_true(found.judged && found.beyond < 0.1f);
	put(9, 0.5f);
	put(11, 0.5f);
	found = find(words, 1, NULL);
	assert_true(found.judged && found.beyond > 1);
}

/* ---- no model makes searches worse ---- */

enum { SET_BYTES = 1 << 20, FIRST = 10, MODEL_DIM = HASH_EMBED_DIM };

static const int64_t NOW = 1704456000000; /* 5 January 2024 */

struct set {
	struct arena arena;
	struct value *memories;
	struct value *questions;
	struct words *words; /* for vectors that are made of words; NULL: they are dice */
};

static struct value *read_array(struct arena *arena, const char *set, const char *name)
{
	struct value *v = NULL;
	char path[4096];
	char *text = arena_alloc(arena, SET_BYTES);
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s%s", getenv("KOINE_SEARCH_SET"), set, name);
	file = fopen(path, "r");
	assert_non_null(file);
	len = fread(text, 1, SET_BYTES, file);
	fclose(file);
	assert_int_equal(json_read(arena, text, len, &json_default_limits, &v, NULL), 0);
	return v;
}

static float embed(struct set *set, struct text text, int8_t bytes[MODEL_DIM])
{
	float v[MODEL_DIM];

	if (set->words) {
		hash_embed(set->words, text, v);
	} else {
		for (size_t i = 0; i < MODEL_DIM; i++)
			v[i] = dice();
		assert_true(vector_normalise(v, MODEL_DIM));
	}
	return vector_quantise(v, MODEL_DIM, bytes);
}

static void add_memory(struct set *set, const struct value *m)
{
	struct search_doc doc = {.text = value_text(value_find(m, "text")),
				 .chat = search_hash(value_text(value_find(m, "chat")))};
	struct text subject = value_text(value_find(m, "subjects")->first);
	int8_t bytes[MODEL_DIM];
	struct tm tm = {0};
	int64_t key = 0;
	float scale;

	assert_true(value_int(value_find(m, "key"), &key));
	assert_non_null(
		strptime(value_text(value_find(m, "time")).data, "%Y-%m-%dT%H:%M:%SZ", &tm));
	doc.key = (uint64_t)key;
	doc.time_ms = (int64_t)timegm(&tm) * 1000;
	doc.subjects = &subject;
	doc.n_subjects = 1;
	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
	scale = embed(set, doc.text, bytes);
	assert_int_equal(vector_block_put(block, doc.key, bytes, scale), 0);
}

static double share_found(const struct value *evidence, const struct search_hit *hits, size_t n)
{
	double found = 0;

	value_each (e, evidence) {
		int64_t key = 0;

		value_int(e, &key);
		for (size_t i = 0; i < n && i < FIRST; i++)
			found += hits[i].key == (uint64_t)key;
	}
	return found / evidence->len;
}

/* What words find of a question's answer, and what they find with the model. */
static void ask(struct set *set, const struct value *question, struct fuse_fit *fit, double *alone,
		double *both)
{
	struct search_hit words[WORDS_MAX];
	struct search_hit fused[WORDS_MAX + NEAR_HITS_MAX];
	const struct search_query q = {.text = value_text(value_find(question, "question")),
				       .now_ms = NOW};
	const struct value *evidence = value_find(question, "evidence");
	const struct search_index *indexes[] = {ix};
	const struct near_scope scope = {ix, block};
	int8_t bytes[MODEL_DIM];
	struct near_question asked = {.dim = MODEL_DIM, .bytes = bytes};
	struct near_found found;
	size_t n;

	assert_int_equal(search_run(scratch, indexes, 1, &q, words, WORDS_MAX, &n), 0);
	*alone += share_found(evidence, words, n);
	asked.scale = embed(set, q.text, bytes);
	found = near_find(&scope, 1, &q, &asked, words, n, near);
	fuse_learn(fit, &found);
	n = search_fuse(&fuse_default_weights, fuse_trust(&fuse_default_weights, fit), words, n,
			near, found.n, fused);
	*both += share_found(evidence, fused, n);
}

/* A few searches may suffer until the model is known; then none does. */
static void check_no_harm(const char *name, bool of_words)
{
	struct set set = {.words = of_words ? words_new() : NULL};
	struct fuse_fit fit = fuse_first_fit;
	double alone[2] = {0}, both[2] = {0};

	vector_block_free(block);
	block = vector_block_new(MODEL_DIM, 0);
	arena_init(&set.arena, 64 << 20);
	set.memories = read_array(&set.arena, name, "memories.json");
	set.questions = read_array(&set.arena, name, "questions.json");
	value_each (m, set.memories)
		add_memory(&set, m);
	for (int round = 0; round < 2; round++) {
		value_each (q, set.questions)
			ask(&set, q, &fit, &alone[round], &both[round]);
	}
	assert_true(alone[0] > 50);
	if (both[1] < alone[1])
		fail_msg("%.1f instead of %.1f", both[1], alone[1]);
	if (both[0] < alone[0] - 2)
		fail_msg("%.1f instead of %.1f before it was known", both[0], alone[0]);
	arena_done(&set.arena);
	words_free(set.words);
}

TEST(dice_do_no_harm)
{
	check_no_harm("", false);
}

TEST(dice_do_no_harm_to_the_second_set)
{
	check_no_harm("second/", false);
}

TEST(vectors_that_know_only_words_do_no_harm)
{
	check_no_harm("", true);
}

TEST(nor_do_they_to_the_second_set)
{
	check_no_harm("second/", true);
}
