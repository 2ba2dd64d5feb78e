/* The small tools: what they promise at their edges. */
#include "check.h"
#include "tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/value.h"
#include "base/error.h"
#include "wire/json.h"

static void assert_buf(const struct buf *b, const char *expected)
{
	assert_int_equal(b->err, 0);
	assert_int_equal(b->len, strlen(expected));
	assert_memory_equal(b->data, expected, b->len);
}

/* ---- buf ---- */

TEST(buf_takes_exactly_its_maximum)
{
	struct buf b;

	buf_init(&b, 300);
	for (int i = 0; i < 300; i++)
		buf_add_char(&b, 'a');
	assert_int_equal(b.err, 0);
	assert_int_equal(b.len, 300);
	buf_add_char(&b, 'b');
	assert_int_equal(b.err, -EMSGSIZE);
	assert_int_equal(b.len, 300);
	buf_done(&b);
}

TEST(buf_error_sticks_until_cleared)
{
	struct buf b;

	buf_init(&b, 4);
	buf_add_str(&b, "ab");
	buf_add_str(&b, "cde");
	assert_int_equal(b.err, -EMSGSIZE);
	/* this one would fit, but then the message would have a hole */
	buf_add_str(&b, "c");
	buf_add_char(&b, 'c');
	buf_add_int(&b, 1);
	buf_printf(&b, "d");
	assert_int_equal(b.len, 2);
	assert_int_equal(buf_reserve(&b, 0), -EMSGSIZE);
	buf_clear(&b);
	buf_add_str(&b, "wxyz");
	assert_buf(&b, "wxyz");
	buf_done(&b);
}

TEST(buf_refuses_a_size_that_wraps)
{
	struct buf b;

	buf_init(&b, 1000);
	buf_add_str(&b, "ab");
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -EMSGSIZE);
	buf_clear(&b);
	buf_add_str(&b, "ab");
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 1), -EMSGSIZE);
	buf_done(&b);
}

TEST(buf_trim_gives_back_only_above_keep)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_add_str(&b, "small");
	buf_trim(&b, 4096);
	assert_non_null(b.data);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_reserve(&b, 5000), 0);
	buf_trim(&b, 4096);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
	buf_add_str(&b, "again");
	assert_buf(&b, "again");
	buf_done(&b);
	buf_done(&b);
}

TEST(buf_consume_drops_from_the_front)
{
	struct buf b;

	buf_init(&b, 100);
	buf_add_str(&b, "abcdef");
	buf_consume(&b, 0);
	assert_buf(&b, "abcdef");
	buf_consume(&b, 2);
	assert_buf(&b, "cdef");
	buf_consume(&b, 4);
	assert_buf(&b, "");
	buf_done(&b);
}

TEST(buf_writes_integers_of_any_size)
{
	struct buf b;

	buf_init(&b, 1000);
	buf_add_int(&b, INT64_MIN);
	buf_add_char(&b, ' ');
	buf_add_int(&b, INT64_MAX);
	buf_add_char(&b, ' ');
	buf_add_int(&b, 0);
	buf_add_char(&b, ' ');
	buf_add_int(&b, -1);
	buf_add_char(&b, ' ');
	buf_add_uint(&b, UINT64_MAX);
	assert_buf(&b, "-9223372036854775808 9223372036854775807 0 -1 18446744073709551615");
	buf_done(&b);
}

TEST(buf_printf_appends)
{
	struct buf b;

	buf_init(&b, 2000);
	buf_add_str(&b, "x");
	buf_printf(&b, "%s=%d", "y", 3);
	assert_buf(&b, "xy=3");
	buf_printf(&b, "%1000s", "");
	assert_int_equal(b.len, 1004);
	buf_printf(&b, "%1000s", "");
	assert_int_equal(b.err, -EMSGSIZE);
	assert_int_equal(b.len, 1004);
	buf_done(&b);
}

/* ---- arena ---- */

TEST(arena_pieces_are_aligned_and_apart)
{
	struct arena a;
	unsigned char *piece[200];

	arena_init(&a, 1 << 20);
	for (unsigned i = 0; i < 200; i++) {
		piece[i] = arena_alloc(&a, i + 1);
		assert_non_null(piece[i]);
		assert_int_equal((uintptr_t)piece[i] % 16, 0);
		memset(piece[i], (int)i, i + 1);
	}
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = 0; k <= i; k++)
			assert_int_equal(piece[i][k], i);
	}
	arena_done(&a);
}

TEST(arena_gives_no_more_than_its_maximum)
{
	struct arena a;
	size_t got = 0;

	arena_init(&a, 100000);
	while (arena_alloc(&a, 16))
		got += 16;
	assert_true(got <= 100000);
	assert_true(a.used <= 100000);
	/* Growing steps must not leave the end of it unused. */
	assert_true(a.used > 100000 - 100);
	arena_done(&a);
}

TEST(arena_smaller_than_a_block_still_gives)
{
	struct arena a;

	arena_init(&a, 100);
	assert_non_null(arena_alloc(&a, 40));
	assert_null(arena_alloc(&a, 100));
	assert_non_null(arena_alloc(&a, 16));
	arena_done(&a);
}

TEST(arena_refuses_a_size_that_wraps)
{
	struct arena a;

	arena_init(&a, SIZE_MAX);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_non_null(arena_alloc(&a, 1));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 14));
	assert_null(arena_zalloc(&a, SIZE_MAX));
	arena_done(&a);
}

TEST(arena_nothing_is_not_failure)
{
	struct arena a;

	arena_init(&a, 4096);
	assert_non_null(arena_alloc(&a, 0));
	assert_string_equal(arena_copy(&a, NULL, 0), "");
	arena_done(&a);
}

TEST(arena_reset_keeps_one_small_block)
{
	struct arena a;
	void *first;

	arena_init(&a, 1 << 20);
	first = arena_alloc(&a, 100);
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_alloc(&a, 1000));
	assert_true(a.used > 100000);
	arena_reset(&a);
	assert_true(a.used <= 4096);
	assert_ptr_equal(arena_alloc(&a, 100), first);
	arena_done(&a);
	assert_int_equal(a.used, 0);
}

TEST(arena_reset_gives_a_big_block_back)
{
	struct arena a;

	arena_init(&a, 10 << 20);
	assert_non_null(arena_alloc(&a, 5 << 20));
	assert_true(a.used >= 5 << 20);
	arena_reset(&a);
	assert_int_equal(a.used, 0);
	assert_non_null(arena_alloc(&a, 1));
	arena_reset(&a);
	arena_done(&a);
	arena_reset(&a);
}

#ifdef ARENA_POISONS
/* Whether the sanitizer ends a process that reads this byte. */
static bool reading_is_fatal(const char *at)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		(void)*(const volatile char *)at;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status != 0;
}
#endif

TEST(arena_reads_past_a_piece_are_reported)
{
#ifdef ARENA_POISONS
	struct arena_mark mark;
	struct arena a;
	char *array, *text, *later;

	arena_init(&a, 1 << 20);
	array = arena_zalloc(&a, 8 * 16);
	text = arena_copy(&a, "abc", 3);
	mark = arena_mark(&a);
	later = arena_zalloc(&a, 2 * 4096);
	assert_false(reading_is_fatal(array + 8 * 16 - 1));
	assert_true(reading_is_fatal(array + 8 * 16));
	assert_false(reading_is_fatal(text + 3));
	assert_true(reading_is_fatal(text + 4));
	assert_true(reading_is_fatal(later + 2 * 4096));
	arena_rewind(&a, &mark);
	later = arena_zalloc(&a, 16);
	assert_false(reading_is_fatal(later + 15));
	arena_rewind(&a, &mark);
	assert_true(reading_is_fatal(later));
	assert_false(reading_is_fatal(text));
	arena_reset(&a);
	assert_true(reading_is_fatal(text));
	arena_done(&a);
#else
	skip();
#endif
}

TEST(arena_copy_ends_with_nul_and_zalloc_is_clear)
{
	struct arena a;
	char *p;

	arena_init(&a, 1 << 16);
	memset(arena_alloc(&a, 4000), 'x', 4000);
	arena_reset(&a);
	p = arena_zalloc(&a, 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	assert_string_equal(arena_copy(&a, "abcdef", 3), "abc");
	arena_done(&a);
}

/* ---- list ---- */

struct member {
	int n;
	struct list link;
};

static int sum_of(struct list *head)
{
	int sum = 0;

	list_for_each (at, following, head)
		sum = sum * 10 + list_entry(at, struct member, link)->n;
	return sum;
}

TEST(list_keeps_order_and_splices)
{
	struct member m[4] = {{.n = 1}, {.n = 2}, {.n = 3}, {.n = 4}};
	struct list a;
	struct list b;

	list_init(&a);
	list_init(&b);
	assert_null(list_first(&a));
	list_splice(&a, &b);
	assert_true(list_empty(&a));
	list_append(&a, &m[0].link);
	list_append(&a, &m[1].link);
	list_append(&b, &m[2].link);
	list_append(&b, &m[3].link);
	assert_int_equal(sum_of(&a), 12);
	list_splice(&a, &b);
	assert_int_equal(sum_of(&a), 1234);
	assert_true(list_empty(&b));
	assert_ptr_equal(list_first(&a), &m[0].link);
	list_splice(&b, &a);
	assert_int_equal(sum_of(&b), 1234);
}

TEST(list_removing_twice_is_harmless)
{
	struct member m[3] = {{.n = 1}, {.n = 2}, {.n = 3}};
	struct list head;

	list_init(&head);
	for (int i = 0; i < 3; i++)
		list_append(&head, &m[i].link);
	list_remove(&m[1].link);
	list_remove(&m[1].link);
	assert_int_equal(sum_of(&head), 13);
	list_for_each (at, following, &head)
		list_remove(at);
	assert_true(list_empty(&head));
}

/* ---- clock ---- */

static void assert_iso(int64_t ms, const char *expected)
{
	char out[ISO_LEN + 1];

	clock_format_iso(ms, out);
	assert_string_equal(out, expected);
}

TEST(clock_formats_any_time)
{
	assert_iso(0, "1970-01-01T00:00:00.000Z");
	assert_iso(1, "1970-01-01T00:00:00.001Z");
	assert_iso(-1, "1969-12-31T23:59:59.999Z");
	assert_iso(-1000, "1969-12-31T23:59:59.000Z");
	assert_iso(-86400000, "1969-12-31T00:00:00.000Z");
	assert_iso(951827696789, "2000-02-29T12:34:56.789Z");
	assert_iso(1709164800000, "2024-02-29T00:00:00.000Z");
	assert_iso(946684799999, "1999-12-31T23:59:59.999Z");
	assert_iso(946684800000, "2000-01-01T00:00:00.000Z");
	assert_iso(253402300799999, "9999-12-31T23:59:59.999Z");
	assert_iso(-62167219200000, "0000-01-01T00:00:00.000Z");
}

TEST(clock_stays_a_date_past_the_ends)
{
	assert_iso(253402300800000, "9999-12-31T23:59:59.999Z");
	assert_iso(INT64_MAX, "9999-12-31T23:59:59.999Z");
	assert_iso(-62167219200001, "0000-01-01T00:00:00.000Z");
	assert_iso(INT64_MIN, "0000-01-01T00:00:00.000Z");
}

TEST(clock_now_is_a_date)
{
	char before[ISO_LEN + 1];
	char after[ISO_LEN + 1];
	char now[ISO_LEN + 1];

	/* The cheap clock lags the exact one by a tick; a second is far more. */
	clock_format_iso(clock_utc_ms() - 1000, before);
	memcpy(now, clock_iso_now(), sizeof(now));
	clock_format_iso(clock_utc_ms(), after);
	assert_true(strcmp(before, now) <= 0);
	assert_true(strcmp(now, after) <= 0);
}

TEST(clock_steady_never_goes_back)
{
	uint64_t last = clock_steady_ms();

	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_steady_ms();

		assert_true(now >= last);
		last = now;
	}
}

/* ---- log ---- */

struct heard {
	unsigned n;
	enum log_level level;
	char line[2000];
};

static void hear(void *arg, enum log_level level, const char *line)
{
	struct heard *h = arg;

	h->n++;
	h->level = level;
	snprintf(h->line, sizeof(h->line), "%s", line);
}

struct tail {
	unsigned n;
	uint64_t first, last;
	char text[64];
};

static void hear_tail(void *arg, const struct log_tail_line *line)
{
	struct tail *t = arg;

	t->first = t->n++ == 0 ? line->number : t->first;
	t->last = line->number;
	snprintf(t->text, sizeof(t->text), "%s %s", log_level_name(line->level), line->text);
}

static struct tail tail_of(uint64_t after, unsigned limit)
{
	struct tail t = {0};

	log_tail_read(after, limit, hear_tail, &t);
	return t;
}

TEST(log_tail_keeps_the_newest_lines)
{
	struct tail t;
	int fd = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	dup2(null, STDERR_FILENO);
	log_tail_start();
	log_warn("first", "at=%d", 1);
	t = tail_of(0, 10);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.text, "warn first  at=1");
	for (int i = 0; i < 2 * LOG_TAIL_LINES; i++)
		log_info("line", "i=%d", i);
	t = tail_of(0, UINT_MAX);
	assert_int_equal(t.n, LOG_TAIL_LINES);
	assert_int_equal(t.last - t.first, LOG_TAIL_LINES - 1);
	assert_string_equal(t.text, "info line  i=1999");
	assert_int_equal(tail_of(t.last - 3, 10).n, 3);
	assert_int_equal(tail_of(t.last - 3, 2).n, 2);
	assert_int_equal(tail_of(t.last, 10).n, 0);
	assert_int_equal(tail_of(UINT64_MAX - 1, 10).n, 0);
	/* What is no character is not passed on. */
	log_info("line", "%s", "a\xff\xc3z\xc3\xa9");
	assert_string_equal(tail_of(t.last, 10).text, "info line  a??z\xc3\xa9");
	log_set_sink(NULL, NULL);
	dup2(fd, STDERR_FILENO);
	close(fd);
	close(null);
}

TEST(log_goes_to_the_sink_up_to_its_level)
{
	struct heard h = {0};

	log_set_sink(hear, &h);
	log_set_level(LOG_LEVEL_WARN);
	log_info("too quiet", "x=%d", 1);
	log_debug("too quiet", "x=%d", 1);
	assert_int_equal(h.n, 0);
	log_warn("listener slow", "dialect=%s ms=%d", "ash", 7);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.level, LOG_LEVEL_WARN);
	assert_string_equal(h.line, "listener slow  dialect=ash ms=7");
	log_err("gone", "x=%d", 2);
	assert_int_equal(h.n, 2);
	log_set_level(LOG_LEVEL_INFO);
	log_set_sink(NULL, NULL);
}

TEST(log_value_cannot_start_a_line)
{
	struct heard h = {0};

	log_set_sink(hear, &h);
	log_info("peer said", "text=%s", "a\nb\rc\td\x1b[2J\x7f");
	assert_string_equal(h.line, "peer said  text=a?b?c?d?[2J?");
	log_set_sink(NULL, NULL);
}

TEST(log_cuts_a_long_line)
{
	struct heard h = {0};

	log_set_sink(hear, &h);
	log_info("long", "%01500d", 0);
	assert_int_equal(strlen(h.line), 1023);
	log_set_sink(NULL, NULL);
}

TEST(log_of_what_clients_cause_has_a_limit)
{
	struct heard h = {0};
	unsigned room = 0;

	log_set_sink(hear, &h);
	for (int i = 0; i < 2 * LOG_BURST; i++)
		room += log_has_room(5000 + (uint64_t)i);
	assert_int_equal(room, LOG_BURST);
	assert_int_equal(h.n, 0);
	assert_true(log_has_room(6000));
	assert_string_equal(h.line, "log lines dropped  count=50");
	assert_true(log_has_room(7000));
	assert_int_equal(h.n, 1);
	log_set_sink(NULL, NULL);
}

TEST(log_at_debug_has_no_limit)
{
	log_set_level(LOG_LEVEL_DEBUG);
	for (int i = 0; i < 2 * LOG_BURST; i++)
		assert_true(log_has_room(9000));
	log_set_level(LOG_LEVEL_INFO);
}

TEST(log_without_sink_is_silent)
{
	struct heard h = {0};
	int kept = dup(STDERR_FILENO);
	int ends[2];
	char c;

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	log_set_sink(hear, &h);
	log_set_sink(NULL, NULL);
	log_err("nobody hears", "this=%d", 1);
	dup2(kept, STDERR_FILENO);
	/* Neither who listened before, nor a terminal. */
	assert_int_equal(h.n, 0);
	assert_int_equal(read(ends[0], &c, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close(kept);
	close(ends[0]);
	close(ends[1]);
}

/* What log_to_stderr writes for one line, with stderr being a pipe. */
static void read_stderr(bool journal, char *out, size_t size)
{
	int kept = dup(STDERR_FILENO);
	struct stat st;
	char name[64];
	int ends[2];
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	assert_int_equal(fstat(ends[1], &st), 0);
	snprintf(name, sizeof(name), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + !journal);
	setenv("JOURNAL_STREAM", name, 1);
	log_to_stderr();
	log_warn("disk is slow", "ms=%d", 7);
	n = read(ends[0], out, size - 1);
	dup2(kept, STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	log_set_sink(NULL, NULL);
	close(kept);
	close(ends[0]);
	close(ends[1]);
	assert_true(n > 0);
	out[n] = '\0';
}

TEST(log_to_stderr_knows_the_journal)
{
	char line[300];

	read_stderr(true, line, sizeof(line));
	assert_string_equal(line, "<4>disk is slow  ms=7\n");
	read_stderr(false, line, sizeof(line));
	assert_int_equal(line[ISO_LEN - 1], 'Z');
	assert_string_equal(line + ISO_LEN, " warn  disk is slow  ms=7\n");
}

TEST(log_levels_have_names)
{
	assert_string_equal(log_level_name(LOG_LEVEL_ERR), "err");
	assert_string_equal(log_level_name(LOG_LEVEL_WARN), "warn");
	assert_string_equal(log_level_name(LOG_LEVEL_INFO), "info");
	assert_string_equal(log_level_name(LOG_LEVEL_DEBUG), "debug");
}

/* ---- value ---- */

static struct value number(const char *text)
{
	return (struct value) {
		.kind = VALUE_NUMBER, .text = text, .len = (uint32_t)strlen(text), .raw = text};
}

TEST(value_int_takes_what_fits)
{
	static const struct {
		const char *text;
		bool fits;
		int64_t n;
	} cases[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"-1", true, -1},
		{"9223372036854775807", true, INT64_MAX},
		{"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0},
		{"-9223372036854775809", false, 0},
		{"18446744073709551616", false, 0},
		{"99999999999999999999999", false, 0},
		{"1.0", false, 0},
		{"1e3", false, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct value v = number(cases[i].text);
		int64_t n = 77;

		assert_int_equal(value_int(&v, &n), cases[i].fits);
		assert_int_equal(n, cases[i].fits ? cases[i].n : 77);
	}
	assert_false(value_int(NULL, NULL));
}

TEST(value_double_takes_any_number)
{
	struct value v = number("-1.5e3");
	struct value integer = number("9007199254740993");
	struct value huge = number("1e999");
	struct value text = {.kind = VALUE_STRING, .text = "1", .len = 1};
	char digits[1200];
	double d = 0;

	assert_true(value_double(&v, &d));
	assert_true(d == -1500.0);
	assert_true(value_double(&integer, &d));
	assert_true(d == 9007199254740992.0);
	assert_true(value_double(&huge, &d));
	assert_false(value_double(&text, &d));
	assert_false(value_double(NULL, &d));
	memset(digits, '1', sizeof(digits) - 1);
	digits[sizeof(digits) - 1] = '\0';
	v = number(digits);
	assert_false(value_double(&v, &d));
}

/* Makes the locale in `dir`, where this machine has what that needs. */
static bool set_locale(const char *dir, const char *name)
{
	char command[200];

	snprintf(command, sizeof(command), "localedef -i %s -f UTF-8 %s/%s.utf8 >%s/log 2>&1", name,
		 dir, name, dir);
	if (system(command) != 0)
		return false;
	snprintf(command, sizeof(command), "%s.utf8", name);
	return setlocale(LC_ALL, command) != NULL;
}

static void check_point(void)
{
	struct value v = number("1.5");
	struct buf out;
	struct json j;
	double d = 0;

	assert_true(value_double(&v, &d));
	assert_true(d == 1.5);
	buf_init(&out, 100);
	j = json_writer(&out);
	json_double(&j, -2.25);
	assert_buf(&out, "-2.25");
	buf_done(&out);
}

/* German writes a comma, Pashto a point of two bytes. */
TEST(doubles_ignore_the_locale)
{
	static const char *const names[] = {"de_DE", "ps_AF"};
	char dir[TEMPDIR_MAX];
	unsigned n = 0;

	tempdir_make(dir);
	setenv("LOCPATH", dir, 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (set_locale(dir, names[i])) {
			n++;
			check_point();
		}
	}
	setlocale(LC_ALL, "C");
	unsetenv("LOCPATH");
	tempdir_remove(dir);
	if (n == 0)
		skip();
}

TEST(value_find_takes_the_last_of_equal_names)
{
	static const char text[] = "{\"a\":1,\"b\":null,\"a\":2}";
	struct value *root = NULL;
	struct arena a;
	int64_t n = 0;

	arena_init(&a, 1 << 16);
	assert_int_equal(json_read(&a, text, sizeof(text) - 1, &json_default_limits, &root, NULL),
			 0);
	assert_true(value_int(value_find(root, "a"), &n));
	assert_int_equal(n, 2);
	assert_null(value_find(root, "c"));
	assert_null(value_find(NULL, "a"));
	assert_null(value_find(value_find(root, "a"), "a"));
	assert_string_equal(value_kind_name(root), "object");
	assert_string_equal(value_kind_name(value_find(root, "b")), "null");
	assert_string_equal(value_kind_name(value_find(root, "c")), "nothing");
	arena_done(&a);
}

TEST(value_follows_its_message)
{
	static const char text[] = "{\"key\":[\"plain\",\"esc\\n\",12,{\"x\":true}]}";
	char *from = malloc(sizeof(text));
	char *to = malloc(sizeof(text));
	struct value *root = NULL;
	struct arena a;
	struct buf out;
	struct json j;

	assert_non_null(from);
	assert_non_null(to);
	memcpy(from, text, sizeof(text));
	arena_init(&a, 1 << 16);
	buf_init(&out, 1000);
	assert_int_equal(json_read(&a, from, sizeof(text) - 1, &json_default_limits, &root, NULL),
			 0);
	memcpy(to, from, sizeof(text));
	value_rebase(root, from, sizeof(text) - 1, to);
	memset(from, '#', sizeof(text));
	free(from);
	j = json_writer(&out);
	json_value(&j, root);
	assert_buf(&out, text);
	assert_ptr_equal(root->raw, to);
	free(to);
	buf_done(&out);
	arena_done(&a);
}

/* ---- refusals and errors ---- */

TEST(refuse_fills_and_returns_the_code)
{
	struct error error;

	memset(&error, 'x', sizeof(error));
	assert_int_equal(refuse(&error, REFUSE_CONFLICT, "task %d is taken", 7), REFUSE_CONFLICT);
	assert_int_equal(error.code, REFUSE_CONFLICT);
	assert_string_equal(error.text, "task 7 is taken");
	assert_string_equal(error.field, "");
	assert_int_equal(refuse_field(&error, "limit", "%s is bad", "limit"), REFUSE_PARAMS);
	assert_int_equal(error.code, REFUSE_PARAMS);
	assert_string_equal(error.text, "limit is bad");
	assert_string_equal(error.field, "limit");
}

TEST(refuse_cuts_between_characters)
{
	struct error error;
	char words[sizeof(error.text) + 145];

	for (size_t shift = 0; shift < 4; shift++) {
		memset(words, 'x', shift);
		for (size_t i = shift; i + 4 < sizeof(words); i += 4)
			memcpy(words + i, "\xf0\x9f\x8c\x8d", 5);
		refuse(&error, REFUSE_LIMIT, "%s", words);
		assert_int_equal((strlen(error.text) - shift) % 4, 0);
		assert_in_range(strlen(error.text), sizeof(error.text) - 4, sizeof(error.text) - 1);
	}
}

TEST(refuse_cuts_what_is_long_and_needs_no_place)
{
	struct error error;
	char name[sizeof(error.text) + 44];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(refuse_field(&error, name, "%s", name), REFUSE_PARAMS);
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	assert_int_equal(strlen(error.field), sizeof(error.field) - 1);
	assert_int_equal(refuse(NULL, REFUSE_LIMIT, "%s", name), REFUSE_LIMIT);
	assert_int_equal(refuse_field(NULL, "f", "%s", name), REFUSE_PARAMS);
}

TEST(secrets_are_equal_only_byte_by_byte_and_in_length)
{
	assert_true(text_equal_secret(TEXT("abc"), TEXT("abc")));
	assert_true(text_equal_secret((struct text) {0}, TEXT("")));
	assert_false(text_equal_secret(TEXT("abd"), TEXT("abc")));
	assert_false(text_equal_secret(TEXT("ab"), TEXT("abc")));
	assert_false(text_equal_secret(TEXT("abcd"), TEXT("abc")));
	assert_false(text_equal_secret(TEXT("ab"), TEXT("ab\0")));
	assert_false(text_equal_secret((struct text) {0}, TEXT("abc")));
}

static void read_back(const char *path, mode_t mode, const char *want)
{
	char text[64] = "";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && fstat(fd, &st) == 0);
	close(fd);
	assert_string_equal(text, want);
	assert_int_equal(st.st_mode & 07777, mode);
}

TEST(file_replace_is_all_or_nothing)
{
	char folder[TEMPDIR_MAX];
	char path[64], under[80];
	mode_t mask = umask(0077);

	tempdir_make(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
	assert_int_equal(file_replace(path, 0644, "one", 3), 0);
	read_back(path, 0644, "one");
	assert_int_equal(file_replace(path, 0600, "two", 3), 0);
	read_back(path, 0600, "two");
	snprintf(under, sizeof(under), "%s/file/under", folder);
	assert_int_equal(file_replace(under, 0600, "x", 1), -ENOTDIR);
	/* What cannot take its name leaves nothing behind: the folder can be removed. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(file_replace(path, 0600, "x", 1), -EISDIR);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0);
	umask(mask);
}

/* Of stored ones, too: who started a process is found by them after an update. */
TEST(hashes_of_texts_stay_as_they_are)
{
	assert_true(text_hash(TEXT_HASH, TEXT("")) == UINT64_C(0xcbf29ce484222325));
	assert_true(text_hash(TEXT_HASH, TEXT("foobar")) == UINT64_C(0x85944171f73967e8));
	assert_true(text_hash(text_hash(TEXT_HASH, TEXT("foo")), TEXT("bar")) ==
		    UINT64_C(0x85944171f73967e8));
}

TEST(letters_and_digits_are_those_of_ascii)
{
	static const char all[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	for (int c = 1; c < 256; c++) {
		assert_int_equal(ascii_alnum((char)c), strchr(all, c) != NULL);
		assert_int_equal(ascii_digit((char)c), memchr(all, c, 10) != NULL);
	}
	assert_false(ascii_alnum('\0'));
}

TEST(number_has_digits_only_and_no_more_than_allowed)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: none */
	} rows[] = {{"", -1},      {"0", 0},      {"9", 9},    {"042", 42}, {"9999", 9999},
		    {"00007", -1}, {"10000", -1}, {"1/2", -1}, {"1:2", -1}, {"-1", -1},
		    {"+1", -1},    {" 1", -1},    {"1e2", -1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t n = -1;

		assert_int_equal(text_number(text_of(rows[i].text), 4, &n), rows[i].want >= 0);
		assert_int_equal(n, rows[i].want);
	}
}
