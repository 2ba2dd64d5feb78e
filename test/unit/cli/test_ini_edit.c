/* One key of a settings file: what is changed, what stays, and that undoing it is exact. */
#include "check.h"

#include <stdlib.h>

#include "cli/connect/edit.h"
#include "cli/dialect/ini_edit.h"
#include "cli/kit/value.h"

static const struct ini_key nexus = {"listen", "nexus"};

/* In memory of exactly its size, so that one byte too far is seen. */
static struct text exact(struct text t)
{
	char *copy = malloc(t.len > 0 ? t.len : 1);

	assert_non_null(copy);
	memcpy(copy, t.data, t.len);
	return (struct text) {.data = copy, .len = t.len};
}

static void expect_put(const char *file, const char *value, const char *want)
{
	struct text text = exact(text_of(file));
	struct error error = {0};
	struct buf out, back;
	bool undone = false;

	buf_init(&out, EDIT_FILE_MAX);
	buf_init(&back, EDIT_FILE_MAX);
	assert_int_equal(ini_put(text, nexus, value, &out, &error), 0);
	if (!text_is(buf_text(&out), want))
		fail_msg("%s\nbecame\n%.*s\nnot\n%s", file, TEXT_ARGS(buf_text(&out)), want);
	assert_true(text_is(ini_get(buf_text(&out), nexus), value));
	assert_int_equal(ini_take(buf_text(&out), nexus, &back, &undone, &error), 0);
	if (!text_is(buf_text(&back), file))
		fail_msg("%s\ncame back as\n%.*s", file, TEXT_ARGS(buf_text(&back)));
	buf_done(&out);
	buf_done(&back);
	free((char *)text.data);
}

TEST(a_key_is_added_to_its_section)
{
	expect_put("[listen]\nash = off\n", "on",
		   "[listen]\nnexus = on ; koine dialects\nash = off\n");
	expect_put("[daemon]\nplaces = own\n\n[listen]", "on",
		   "[daemon]\nplaces = own\n\n[listen]\nnexus = on ; koine dialects");
	expect_put("  [listen] ; mine\r\nash = off\r\n", "on",
		   "  [listen] ; mine\r\nnexus = on ; koine dialects\r\nash = off\r\n");
	expect_put("[listen ash]\nnexus = 1\n", "on",
		   "[listen] ; koine dialects\nnexus = on ; koine dialects\n\n"
		   "[listen ash]\nnexus = 1\n");
}

TEST(a_section_is_made_where_there_is_none)
{
	expect_put("", "on", "[listen] ; koine dialects\nnexus = on ; koine dialects\n");
	expect_put("\n", "on", "[listen] ; koine dialects\nnexus = on ; koine dialects\n\n\n");
	expect_put("; only a comment", "on",
		   "[listen] ; koine dialects\nnexus = on ; koine dialects\n\n; only a comment");
	expect_put("\xef\xbb\xbf[a]\nb = c", "on",
		   "\xef\xbb\xbf[listen] ; koine dialects\nnexus = on ; koine dialects\n\n"
		   "[a]\nb = c");
	expect_put("[a]\r\nb = c\r\n", "on",
		   "[listen] ; koine dialects\r\nnexus = on ; koine dialects\r\n\r\n"
		   "[a]\r\nb = c\r\n");
}

TEST(a_value_is_changed_and_kept_behind_it)
{
	expect_put("[listen]\nnexus = off\n", "on", "[listen]\nnexus = on ; was off\n");
	expect_put("[listen]\n\tnexus\t:\toff  ; no need\n", "on",
		   "[listen]\n\tnexus\t:\ton ; was off  ; no need\n");
	expect_put("[listen]\nnexus = http:127.0.0.1:9000", "on",
		   "[listen]\nnexus = on ; was http:127.0.0.1:9000");
	expect_put("[listen]\nnexus =\n", "on", "[listen]\nnexus =on ; was \n");
}

TEST(of_several_lines_the_last_counts)
{
	expect_put("[listen]\nnexus = on\n[a]\nnexus = x\n[listen]\n; nexus = c\nnexus = off\n",
		   "on",
		   "[listen]\nnexus = on\n[a]\nnexus = x\n[listen]\n; nexus = c\n"
		   "nexus = on ; was off\n");
}

TEST(what_is_there_already_stays)
{
	expect_put("[listen]\nnexus = on ; because\n", "on", "[listen]\nnexus = on ; because\n");
}

TEST(a_second_change_forgets_nothing)
{
	struct buf a, b, c;
	struct error error;
	bool undone;

	buf_init(&a, EDIT_FILE_MAX);
	buf_init(&b, EDIT_FILE_MAX);
	buf_init(&c, EDIT_FILE_MAX);
	assert_int_equal(
		ini_put(TEXT("[listen]\nnexus = tcp:localhost:1\n"), nexus, "on", &a, &error), 0);
	assert_int_equal(ini_put(buf_text(&a), nexus, "off", &b, &error), 0);
	assert_true(text_is(buf_text(&b), "[listen]\nnexus = off ; was tcp:localhost:1\n"));
	assert_int_equal(ini_take(buf_text(&b), nexus, &c, &undone, &error), 0);
	assert_true(undone && text_is(buf_text(&c), "[listen]\nnexus = tcp:localhost:1\n"));
	buf_done(&a);
	buf_done(&b);
	buf_done(&c);
}

TEST(what_is_not_ours_is_not_undone)
{
	struct buf out;
	struct error error;
	bool undone = true;

	buf_init(&out, EDIT_FILE_MAX);
	assert_int_equal(ini_take(TEXT("[listen]\nnexus = on\n"), nexus, &out, &undone, &error), 0);
	assert_false(undone);
	assert_true(text_is(buf_text(&out), "[listen]\nnexus = on\n"));
	buf_done(&out);
}

TEST(a_line_that_koined_would_not_read_is_refused)
{
	char file[INI_LINE_MAX + 64];
	struct buf out;
	struct error error;

	snprintf(file, sizeof(file), "[listen]\nnexus = unix:/%0*d\n", INI_LINE_MAX - 20, 0);
	buf_init(&out, EDIT_FILE_MAX);
	assert_true(ini_put(text_of(file), nexus, "on", &out, &error) > 0);
	assert_non_null(strstr(error.text, "line 2 would be longer than 8192 bytes"));
	buf_clear(&out);
	assert_true(ini_put(TEXT("[a]\n\0"), nexus, "on", &out, &error) > 0);
	assert_non_null(strstr(error.text, "NUL"));
	buf_done(&out);
}

/* ---- any file ---- */

static uint64_t random_state;

static unsigned roll(unsigned n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

/* Lines of a file that begins with a section, or with none at all. */
static void write_any(struct buf *b)
{
	static const char *const lines[] = {
		"[listen]",       "[ listen]",          "[listen] ; x", "  [listen]",
		"[daemon]",       "nexus = off",        "nexus=off ;",  "nexus : unix:/a b ; c ; d",
		"ash = on",       "; nexus = on",       "# nexus = x",  "",
		"\t nexus = on ", "nexus = on ; was x", "places = own", "nexus = http:localhost:0",
	};
	bool crlf = roll(4) == 0;
	unsigned n = roll(8);

	if (roll(8) == 0)
		buf_add_str(b, "\xef\xbb\xbf");
	if (n > 0)
		buf_add_str(b, roll(2) ? "[listen]" : "; first\n[daemon]");
	for (unsigned i = 0; i < n; i++) {
		buf_add_str(b, crlf ? "\r\n" : "\n");
		buf_add_str(b, lines[roll(sizeof(lines) / sizeof(lines[0]))]);
	}
	if (roll(2))
		buf_add_str(b, crlf ? "\r\n" : "\n");
}

/* Without the lines that are about the key. */
static void without(struct text file, struct buf *out)
{
	struct text line;

	if (text_begins(file, TEXT("\xef\xbb\xbf")))
		file = text_skip(file, 3);
	while (text_next(&file, '\n', &line)) {
		if (memmem(line.data, line.len, "nexus", 5) ||
		    memmem(line.data, line.len, "koine dialects", 14))
			continue;
		line.len -= line.len > 0 && line.data[line.len - 1] == '\r';
		buf_add(out, line.data, line.len);
	}
}

static void try_any(void)
{
	struct buf file, put, back, before, after;
	struct error error;
	bool undone;
	bool was_on;

	buf_init(&file, EDIT_FILE_MAX);
	buf_init(&put, EDIT_FILE_MAX);
	buf_init(&back, EDIT_FILE_MAX);
	buf_init(&before, EDIT_FILE_MAX);
	buf_init(&after, EDIT_FILE_MAX);
	write_any(&file);
	was_on = text_is(ini_get(buf_text(&file), nexus), "on");
	assert_int_equal(ini_put(buf_text(&file), nexus, "on", &put, &error), 0);
	assert_true(text_is(ini_get(buf_text(&put), nexus), "on"));
	without(buf_text(&file), &before);
	without(buf_text(&put), &after);
	if (!text_equal(buf_text(&before), buf_text(&after)))
		fail_msg("<%.*s>\nbecame\n<%.*s>", TEXT_ARGS(buf_text(&file)),
			 TEXT_ARGS(buf_text(&put)));
	assert_int_equal(ini_take(buf_text(&put), nexus, &back, &undone, &error), 0);
	if (!was_on && (!undone || !text_equal(buf_text(&back), buf_text(&file))))
		fail_msg("<%.*s>\nbecame\n<%.*s>\nand came back as\n<%.*s>",
			 TEXT_ARGS(buf_text(&file)), TEXT_ARGS(buf_text(&put)),
			 TEXT_ARGS(buf_text(&back)));
	buf_done(&file);
	buf_done(&put);
	buf_done(&back);
	buf_done(&before);
	buf_done(&after);
}

TEST(enable_and_disable_are_the_identity_for_any_file)
{
	random_state = 42;
	for (unsigned i = 0; i < 20000; i++)
		try_any();
}
