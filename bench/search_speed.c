/*
 * What a search costs: bytes for each memory, the time to build an index, and
 * the time of a query, over made-up text that is like real text in what matters
 * here (few words are frequent, many rare; chats; months of time).
 *
 *	search_speed [--words=FILE] [N_MEMORIES]...
 *
 * With a table of word vectors, questions are also asked with it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "search/index.h"
#include "search/file/image.h"
#include "base/buf.h"
#include "base/file.h"
#include "search/query.h"
#include "search/vector/word_table.h"

enum { VOCABULARY = 200000, TEXT_MAX = 1024, QUERIES = 2000, NAMES = 40, CHATS = 200 };

static struct word_table *table; /* NULL: none was given */

static uint64_t random_state = 88172645463325252U;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static double random_unit(void)
{
	return (double)(random_next() >> 11) / 9007199254740992.0;
}

static size_t random_below(size_t n)
{
	return (size_t)(random_next() % n);
}

/* The glue of sentences: about half of all the words of a text. */
static const char *const glue[] = {
	"the",  "i",    "and", "to",   "a",    "of",    "in",    "is",    "it",   "you",
	"that", "for",  "was", "on",   "my",   "we",    "with",  "have",  "at",   "be",
	"this", "are",  "but", "not",  "they", "from",  "he",    "she",   "will", "about",
	"had",  "his",  "her", "so",   "if",   "would", "there", "their", "what", "our",
	"can",  "when", "has", "were", "do",   "did",   "who",   "how",   "an",   "by"};

/* The words people use most besides, as people use them. */
static const char *const common[] = {
	"time",     "today",   "week",      "really",   "people",    "family",   "friend",
	"work",     "home",    "house",     "went",     "made",      "think",    "good",
	"great",    "thanks",  "sorry",     "tomorrow", "yesterday", "morning",  "dinner",
	"bought",   "found",   "school",    "doctor",   "train",     "ticket",   "money",
	"birthday", "summer",  "winter",    "garden",   "kitchen",   "music",    "book",
	"letter",   "phone",   "car",       "dog",      "cat",       "children", "mother",
	"father",   "sister",  "brother",   "city",     "street",    "river",    "mountain",
	"holiday",  "meeting", "project",   "release",  "server",    "customer", "price",
	"euros",    "euro",    "percent",   "month",    "year",      "monday",   "friday",
	"sunday",   "may",     "june",      "july",     "cooked",    "walked",   "called",
	"wrote",    "booked",  "cancelled", "moved",    "started",   "finished", "forgot",
	"remember", "prefer",  "allergic",  "decided",  "agreed"};

static const char *const onsets[] = {"b",  "c",  "d",  "f",  "g",  "h",  "l",  "m",  "n",
				     "p",  "r",  "s",  "t",  "v",  "w",  "br", "cr", "dr",
				     "fl", "gr", "pl", "pr", "sh", "sl", "st", "th", "tr"};
static const char *const cores[] = {"a", "e", "i", "o", "u", "ai", "ea", "oo", "ou", "ie"};
static const char *const codas[] = {"",   "n",  "r",  "l",  "t",  "s",  "m", "ck",
				    "nd", "st", "rt", "ng", "lm", "sk", "p"};

#define PICK(list, n) ((list)[(n) % (sizeof(list) / sizeof((list)[0]))])

/* The word of a rank: known ones first, then ones made of syllables. */
static void word_of(size_t rank, char *to, size_t size)
{
	size_t n_common = sizeof(common) / sizeof(common[0]);
	uint64_t h = (rank + 1) * 0x9e3779b97f4a7c15U;
	size_t len = 0;

	if (rank < n_common) {
		snprintf(to, size, "%s", common[rank]);
		return;
	}
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9U;
	h ^= h >> 32;
	for (size_t syllable = 0; syllable < 2 + h % 2; syllable++) {
		uint64_t part = h >> (8 + 18 * syllable);

		len += (size_t)snprintf(to + len, size - len, "%s%s%s", PICK(onsets, part),
					PICK(cores, part / 32), PICK(codas, part / 512));
	}
}

/*
 * Zipf with Mandelbrot's shift, as the most frequent words are the glue's: the
 * first of these is in 4 of 100 texts.
 */
static size_t random_rank(void)
{
	const double shift = 20;

	return (size_t)(shift * pow(VOCABULARY / shift + 1, random_unit()) - shift);
}

static void add_word(char *text, size_t *len, const char *word)
{
	*len += (size_t)snprintf(text + *len, TEXT_MAX - *len, *len ? " %s" : "%s", word);
}

static size_t make_text(char *text)
{
	size_t n = 5 + random_below(16) + (random_below(10) == 0 ? random_below(40) : 0);
	size_t len = 0;
	char word[64];

	for (size_t i = 0; i < n; i++) {
		if (random_below(2)) {
			add_word(text, &len,
				 PICK(glue, random_below(1000) * random_below(1000) / 20000));
			continue;
		}
		word_of(random_rank(), word, sizeof(word));
		add_word(text, &len, word);
	}
	if (random_below(6) == 0)
		text[len++] = '?';
	return len;
}

static double now_us(void)
{
	struct timespec t;

	/* This thread's own: a busy machine is not the search's fault. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct search_index *build(struct search_scratch *scratch, size_t n)
{
	struct search_index *ix = search_index_new(NULL);
	double us = 0;
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		char text[TEXT_MAX];
		char name[32];
		struct text subject = {name, 0};
		struct search_doc doc = {.key = i + 1, .subjects = &subject, .importance = 0.5f};
		double start;

		doc.text = (struct text) {text, make_text(text)};
		word_of(5000 + random_below(NAMES), name, sizeof(name));
		subject.len = strlen(name);
		doc.n_subjects = random_below(4) == 0;
		doc.chat = 1 + random_below(CHATS);
		doc.time_ms = 1600000000000 + (int64_t)i * 60000;
		bytes += doc.text.len;
		start = now_us();
		if (!ix || search_index_add(ix, scratch, &doc) != 0)
			exit(1);
		us += now_us() - start;
	}
	printf("%8zu memories of %zu bytes, %zu words: %.1f bytes each in the index, built in %.2f "
	       "s\n",
	       n, bytes / n, search_index_words(ix), (double)search_index_bytes(ix) / (double)n,
	       us / 1e6);
	return ix;
}

/* What keeping an index and reading it again cost, apart from the disk. */
static void time_image(const struct search_index *ix)
{
	struct search_block blocks[SEARCH_BLOCKS], again[SEARCH_BLOCKS];
	struct search_copy *copy = search_copy_new();
	struct search_reading *reading;
	struct search_index *fresh;
	struct search_head head;
	struct search_sum sum;
	double times[5] = {now_us()};
	uint64_t n_bytes = 0;
	uint64_t *chats;
	bool done = false;

	if (!copy || search_copy_step(copy, ix, SIZE_MAX, &done) != 0)
		exit(1);
	fresh = search_copy_take(copy);
	times[1] = now_us();
	if (search_image(fresh, &head, blocks, &chats) != 0)
		exit(1);
	search_sum_init(&sum);
	for (size_t i = 0; i < SEARCH_BLOCKS; i++) {
		search_sum_add(&sum, blocks[i].data, blocks[i].len);
		n_bytes += blocks[i].len;
	}
	times[2] = now_us();
	if (search_reading_new(&head, n_bytes, NULL, &reading, again) != 0)
		exit(1);
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		memcpy(again[i].data, blocks[i].data, blocks[i].len);
	times[3] = now_us();
	if (search_reading_step(reading, SIZE_MAX, &done) != 0 || !done)
		exit(1);
	times[4] = now_us();
	search_reading_free(reading);
	search_index_free(fresh);
	free(chats);
	printf("%8s as a file of %.1f MB: copied in %.1f ms, summed in %.1f ms; read in %.1f ms, "
	       "checked in %.1f ms\n",
	       "", (double)n_bytes / 1e6, (times[1] - times[0]) / 1e3, (times[2] - times[1]) / 1e3,
	       (times[3] - times[2]) / 1e3, (times[4] - times[3]) / 1e3);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A question as people ask: some glue, two to six words that matter, often a name. */
static size_t make_question(char *text, bool typo)
{
	size_t n = 2 + random_below(5);
	size_t len = 0;
	char word[64];

	add_word(text, &len, "what did");
	if (random_below(2)) {
		word_of(5000 + random_below(NAMES), word, sizeof(word));
		add_word(text, &len, word);
	}
	for (size_t i = 0; i < n; i++) {
		word_of(random_rank(), word, sizeof(word));
		if (typo && i == 0 && strlen(word) > 4)
			word[2] = 'x';
		add_word(text, &len, word);
		if (random_below(2))
			add_word(text, &len, PICK(glue, random_below(50)));
	}
	text[len++] = '?';
	return len;
}

static void time_queries(struct search_scratch *scratch, const struct search_index *ix,
			 const char *name, bool typo, struct word_table *words)
{
	static double us[QUERIES];
	double sum = 0;

	for (size_t i = 0; i < QUERIES; i++) {
		char text[TEXT_MAX];
		struct search_same same = {.n = 0};
		struct search_query q = {
			.now_ms = 1700000000000, .words = words, .ret_same = &same};
		struct search_hit hits[10];
		double start;
		size_t n;

		q.text = (struct text) {text, make_question(text, typo)};
		start = now_us();
		if (search_run(scratch, &ix, 1, &q, hits, 10, &n) != 0)
			exit(1);
		us[i] = now_us() - start;
		sum += us[i];
	}
	qsort(us, QUERIES, sizeof(us[0]), by_value);
	printf("%8s %-22s p50 %7.1f us  p99 %7.1f us  max %7.1f us  mean %7.1f us\n", "", name,
	       us[QUERIES / 2], us[QUERIES * 99 / 100], us[QUERIES - 1], sum / QUERIES);
}

static void measure(size_t n)
{
	struct search_scratch *scratch = search_scratch_new();
	struct search_index *ix;

	if (!scratch || n == 0)
		exit(1);
	ix = build(scratch, n);
	time_image(ix);
	time_queries(scratch, ix, "warming up", false, NULL);
	time_queries(scratch, ix, "questions", false, NULL);
	time_queries(scratch, ix, "with one typo", true, NULL);
	if (table) {
		time_queries(scratch, ix, "first with the table", false, table);
		time_queries(scratch, ix, "with the table", false, table);
		time_queries(scratch, ix, "... and one typo", true, table);
	}
	search_index_free(ix);
	search_scratch_free(scratch);
}

static void read_table(const char *path)
{
	static struct buf bytes;
	struct error error = {.text = "cannot be read"};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(&bytes, WORD_TABLE_BYTES_MAX);
	if (fd < 0 || file_read_all(fd, &bytes) != 0 ||
	    word_table_read((struct text) {bytes.data, bytes.len}, &table, &error) != 0) {
		fprintf(stderr, "%s: %s\n", path, error.text);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strncmp(argv[1], "--words=", 8) == 0) {
		read_table(argv[1] + 8);
		argc--;
		argv++;
	}
	if (argc == 1) {
		measure(1000);
		measure(100000);
		measure(1000000);
	}
	for (int i = 1; i < argc; i++)
		measure(strtoul(argv[i], NULL, 10));
	return 0;
}
