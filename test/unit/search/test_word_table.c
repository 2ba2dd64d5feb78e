/* A table of word vectors: which words are alike, and files that are none. */
#include "check.h"

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "search/vector/word_table.h"

enum { HEAD = 32 };

static struct buf file; /* the tests' own table */

static struct text bytes_of(const struct buf *b)
{
	return (struct text) {b->data, b->len};
}

static void read_file(void)
{
	int fd = open(getenv("KOINE_WORDS"), O_RDONLY | O_CLOEXEC);

	buf_init(&file, WORD_TABLE_BYTES_MAX);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all(fd, &file), 0);
	close(fd);
}

static int setup(void **state)
{
	read_file();
	return 0;
}

static int teardown(void **state)
{
	buf_done(&file);
	return 0;
}

GROUP_FIXTURE(setup, teardown);

static struct word_table *read_table(void)
{
	struct word_table *t = NULL;
	struct error error = {0};

	assert_int_equal(word_table_read(bytes_of(&file), &t, &error), 0);
	return t;
}

static float cosine_of(const struct near_word *near, size_t n, const char *term)
{
	for (size_t i = 0; i < n; i++) {
		if (near[i].len == strlen(term) && memcmp(near[i].term, term, near[i].len) == 0)
			return near[i].cosine;
	}
	return 0;
}

TEST(words_that_are_used_alike_are_near)
{
	struct word_table *t = read_table();
	struct words *w = words_new();
	struct near_word near[WORD_TABLE_NEAR_MAX];
	size_t n = word_table_near(t, w, TEXT("doctor"), TEXT(""), near);

	assert_true(word_table_size(t) > 300);
	assert_true(cosine_of(near, n, "nurs") > 0.6f);
	assert_true(cosine_of(near, n, "surgeon") > 0.6f);
	assert_true(cosine_of(near, n, "potato") < 0.5f);
	for (size_t i = 1; i < n; i++)
		assert_true(near[i].cosine <= near[i - 1].cosine);
	words_free(w);
	word_table_free(t);
}

TEST(another_form_of_the_word_is_not_similar)
{
	struct word_table *t = read_table();
	struct words *w = words_new();
	struct near_word near[WORD_TABLE_NEAR_MAX];
	size_t n = word_table_near(t, w, TEXT("pets"), TEXT(""), near);

	assert_true(n > 0);
	assert_true(cosine_of(near, n, "pet") == 0);
	assert_true(cosine_of(near, n, "puppi") > 0.6f);
	/* "kid" and "child" are one word to an index, and come once. */
	n = word_table_near(t, w, TEXT("toddler"), TEXT(""), near);
	assert_true(cosine_of(near, n, "child") > 0.6f);
	assert_true(cosine_of(near, n, "kid") == 0);
	words_free(w);
	word_table_free(t);
}

TEST(another_form_is_found_by_its_stem)
{
	struct word_table *t = read_table();
	struct words *w = words_new();
	struct near_word near[WORD_TABLE_NEAR_MAX];
	size_t n = word_table_near(t, w, TEXT("doctoring"), TEXT("doctor"), near);

	assert_true(cosine_of(near, n, "nurs") > 0.6f);
	n = word_table_near(t, w, TEXT("mdeicine"), TEXT("medicin"), near);
	assert_true(cosine_of(near, n, "tablet") > 0.6f);
	/* "nurse" begins like it, and is another word. */
	assert_int_equal(word_table_near(t, w, TEXT("nur"), TEXT("nur"), near), 0);
	words_free(w);
	word_table_free(t);
}

TEST(an_unknown_word_is_like_none)
{
	struct word_table *t = read_table();
	struct words *w = words_new();
	struct near_word near[WORD_TABLE_NEAR_MAX];

	assert_int_equal(word_table_near(t, w, TEXT("zyzzyva"), TEXT(""), near), 0);
	assert_int_equal(word_table_near(t, w, TEXT("a"), TEXT(""), near), 0);
	assert_int_equal(
		word_table_near(t, w, TEXT("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"), TEXT(""), near),
		0);
	assert_int_equal(word_table_near(t, w, TEXT(""), TEXT(""), near), 0);
	words_free(w);
	word_table_free(t);
}

/* ---- files that are none ---- */

static void put_sum(char *data, size_t len)
{
	uint64_t sum = htole64(word_table_checksum(data + HEAD, len - HEAD));

	memcpy(data + 24, &sum, sizeof(sum));
}

static void refuses(struct text bytes, const char *words)
{
	struct word_table *t = NULL;
	struct error error = {0};

	assert_int_equal(word_table_read(bytes, &t, &error), REFUSE_PARSE);
	assert_null(t);
	if (!strstr(error.text, words))
		fail_msg("\"%s\" does not say \"%s\"", error.text, words);
}

TEST(a_file_that_was_cut_is_refused)
{
	for (size_t len = 0; len < file.len; len += len < 64 ? 1 : 61) {
		char *exact = malloc(len + 1);

		memcpy(exact, file.data, len);
		refuses((struct text) {exact, len}, "not a word table");
		free(exact);
	}
}

TEST(a_changed_byte_is_noticed)
{
	for (size_t at = HEAD; at < file.len; at += 97) {
		file.data[at] ^= 4;
		refuses(bytes_of(&file), "checksum");
		file.data[at] ^= 4;
	}
}

/* Where the parts of the tests' table begin. */
struct parts {
	uint32_t dim, n, n_names;
	size_t ends, rows, names;
};

static struct parts parts_of_file(void)
{
	struct parts p;

	memcpy(&p.dim, file.data + 12, 4);
	memcpy(&p.n, file.data + 16, 4);
	memcpy(&p.n_names, file.data + 20, 4);
	p.ends = HEAD + 4 * (size_t)p.n;
	p.rows = p.ends + 4 * (size_t)p.n;
	p.names = p.rows + (size_t)p.n * p.dim;
	return p;
}

/* The same table with four bytes of it replaced, and a checksum that fits. */
static void refuses_with(size_t at, const void *bytes, size_t len, const char *words)
{
	char *copy = malloc(file.len);

	memcpy(copy, file.data, file.len);
	memcpy(copy + at, bytes, len);
	put_sum(copy, file.len);
	refuses((struct text) {copy, file.len}, words);
	free(copy);
}

TEST(a_wrong_part_is_refused_by_name)
{
	const struct parts p = parts_of_file();
	const uint32_t zero = 0, two = 2, most = UINT32_MAX, end = 3000000;
	const float nan = __builtin_nanf(""), large = 1, minus = -0.001f;

	refuses_with(0, "koineWRD", 8, "invalid header");
	refuses_with(8, &two, 4, "version 2");
	refuses_with(12, &zero, 4, "sizes");
	refuses_with(12, &most, 4, "sizes");
	refuses_with(16, &zero, 4, "sizes");
	refuses_with(16, &most, 4, "sizes");
	refuses_with(20, &most, 4, "sizes");
	refuses_with(20, &zero, 4, "length");
	refuses_with(HEAD, &nan, 4, "scale");
	refuses_with(HEAD, &large, 4, "scale");
	refuses_with(HEAD, &minus, 4, "scale");
	refuses_with(p.ends, &zero, 4, "overlap");
	refuses_with(p.ends + 4, &end, 4, "overlap");
	refuses_with(p.rows + 5, "\x80", 1, "value");
	refuses_with(p.names, "A", 1, "lowercase letters");
	refuses_with(p.names, "z", 1, "sorted");
}

/* ---- threads ---- */

struct asker {
	pthread_t thread;
	struct word_table *table;
	size_t n_found;
};

static void *ask_for_all(void *arg)
{
	static const char *const asked[] = {"doctor", "car", "river", "novel", "salary", "plum"};
	struct asker *a = arg;
	struct words *w = words_new();
	struct near_word near[WORD_TABLE_NEAR_MAX];

	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
			a->n_found +=
				word_table_near(a->table, w, text_of(asked[i]), TEXT(""), near);
	}
	words_free(w);
	return NULL;
}

TEST(threads_may_ask_at_once)
{
	struct asker askers[4] = {0};
	struct word_table *t = read_table();

	for (size_t i = 0; i < 4; i++) {
		askers[i].table = t;
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_for_all, &askers[i]),
				 0);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(askers[i].thread, NULL);
	for (size_t i = 1; i < 4; i++)
		assert_int_equal(askers[i].n_found, askers[0].n_found);
	assert_true(askers[0].n_found > 0);
	word_table_free(t);
}
