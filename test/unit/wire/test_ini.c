/* The lines of a settings file. */
#include "check.h"

#include <stdlib.h>

#include "base/buf.h"
#include "wire/ini.h"

#define INVALID "! expected [section], a comment or KEY = VALUE\n"

static void note(struct buf *out, const struct ini_line *line)
{
	switch (line->kind) {
	case INI_EMPTY:
		buf_add_str(out, "-\n");
		break;
	case INI_SECTION:
		buf_printf(out, "[%.*s]\n", TEXT_ARGS(line->name));
		break;
	case INI_PAIR:
		buf_printf(out, "<%.*s><%.*s>\n", TEXT_ARGS(line->name), TEXT_ARGS(line->value));
		break;
	case INI_INVALID:
		buf_printf(out, "! %s\n", line->error);
		break;
	}
}

/* Reads the file from memory of exactly its size. The lines are numbered, and together they are the file. */
static void read_file(struct text file, struct buf *out)
{
	char *copy = malloc(file.len > 0 ? file.len : 1);
	struct text text = {.data = copy, .len = file.len};
	struct ini_line line;
	struct ini ini;
	unsigned n = 0;

	assert_non_null(copy);
	memcpy(copy, file.data, file.len);
	ini_init(&ini, text);
	copy += text.len - ini.rest.len;
	while (ini_next(&ini, &line)) {
		assert_int_equal(line.number, ++n);
		assert_ptr_equal(line.whole.data, copy);
		assert_ptr_equal(line.end.data, copy + line.whole.len);
		copy += line.whole.len + line.end.len;
		note(out, &line);
	}
	assert_ptr_equal(copy, text.data + text.len);
	free((char *)text.data);
}

static void expect(const char *file, const char *want)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	read_file(text_of(file), &out);
	buf_add(&out, "", 1);
	if (strcmp(out.data, want) != 0)
		fail_msg("%s\nwas read as\n%snot\n%s", file, out.data, want);
	buf_done(&out);
}

TEST(reads_sections_and_pairs)
{
	expect("", "");
	expect("[a]\nb = c\n", "[a]\n<b><c>\n");
	expect("b=c", "<b><c>\n");
	expect("b:c", "<b><c>\n");
	expect("b = c = d : e", "<b><c = d : e>\n");
	expect("b =", "<b><>\n");
	expect("= c", "<><c>\n");
	expect("[]\n[ a ]\n[a] whatever\n[a]]", "[]\n[ a ]\n[a]\n[a]\n");
	expect("b = \"c\" \\", "<b><\"c\" \\>\n");
}

TEST(white_space_around_texts_does_not_count)
{
	expect("\t [a] \n\v b c\t=\f d e \t\n", "[a]\n<b c><d e>\n");
	expect(" \n\n\t", "-\n-\n-\n");
}

TEST(an_indented_line_does_not_continue_a_value)
{
	expect("a = b\n  c = d\n", "<a><b>\n<c><d>\n");
	expect("a = b\n  c\n", "<a><b>\n" INVALID);
}

TEST(lines_may_end_in_several_ways)
{
	expect("[a]\r\nb = c\r\n\r\n", "[a]\n<b><c>\n-\n");
	expect("[a]\nb = c\r", "[a]\n<b><c>\n");
	expect("b = c\rd = e\n", "<b><c\rd = e>\n");
}

TEST(a_mark_at_the_start_is_skipped)
{
	expect("\xef\xbb\xbf[a]\n", "[a]\n");
	expect("\xef\xbb\xbf", "");
	expect("\xef\xbb", INVALID);
	expect("[a]\n\xef\xbb\xbf[a]\n", "[a]\n" INVALID);
}

TEST(comments_are_skipped)
{
	expect("; a = b\n# a = b\n \t;\n", "-\n-\n-\n");
	expect("a = b ; c", "<a><b>\n");
	expect("a = b\t; c ; d", "<a><b>\n");
	expect("a = ; c", "<a><>\n");
	expect("a =;c", "<a><;c>\n");
	expect("a = b;c", "<a><b;c>\n");
	expect("a = b # c", "<a><b # c>\n");
	expect("[a;b]", "[a;b]\n");
}

TEST(invalid_lines_are_reported_and_passed)
{
	expect("what\n[a\n[a ;]\nb ;= c\nb = c\n", INVALID INVALID INVALID INVALID "<b><c>\n");
}

TEST(a_nul_character_is_refused)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	read_file(TEXT("a = b\0c\n; \0\nd = e"), &out);
	buf_add(&out, "", 1);
	assert_string_equal(out.data,
			    "! contains a NUL character\n! contains a NUL character\n<d><e>\n");
	buf_done(&out);
}

TEST(a_line_over_the_limit_is_refused_and_not_cut)
{
	struct ini_line line;
	struct buf file;
	struct ini ini;

	buf_init(&file, 1 << 16);
	buf_printf(&file, "  a=%0*d \r\na=%0*d\nb = c", INI_LINE_MAX - 2, 1, INI_LINE_MAX - 1, 1);
	ini_init(&ini, (struct text) {.data = file.data, .len = file.len});
	assert_true(ini_next(&ini, &line));
	assert_int_equal(line.kind, INI_PAIR);
	assert_int_equal(line.value.len, INI_LINE_MAX - 2);
	assert_true(ini_next(&ini, &line));
	assert_int_equal(line.kind, INI_INVALID);
	assert_string_equal(line.error, "line is longer than 8192 bytes");
	assert_true(ini_next(&ini, &line));
	assert_int_equal(line.kind, INI_PAIR);
	assert_false(ini_next(&ini, &line));
	buf_done(&file);
}
