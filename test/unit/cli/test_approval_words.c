/* What of koine approvals needs no server: differences, rows. */

#include "check.h"

#include "base/buf.h"
#include "cli/approval/view.h"
#include "cli/kit/value.h"

/* ---- JSON ---- */

static struct koine_doc *parse(const char *text, size_t len)
{
	struct koine_doc *doc = NULL;
	char error[256] = "";

	if (koine_doc_parse(text, len, &doc, error, sizeof(error)) != 0)
		fail_msg("%s in %.*s", error, (int)len, text);
	return doc;
}

static struct koine_doc *parse_str(const char *text)
{
	return parse(text, strlen(text));
}

/* ---- differences ---- */

static void on_diff(void *arg, char sign, struct text line)
{
	struct buf *b = arg;

	buf_add_char(b, sign);
	buf_add(b, line.data, line.len);
	buf_add_char(b, '\n');
}

static void expect_diff(const char *before, const char *after, const char *want)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	diff_lines(text_of(before), text_of(after), on_diff, &b);
	buf_add_char(&b, '\0');
	assert_string_equal(b.data, want);
	buf_done(&b);
}

TEST(lines_of_both_stay)
{
	expect_diff("a\nb\nc\n", "a\nx\nc\n", " a\n-b\n+x\n c\n");
	expect_diff("a\nb\nc\nd", "b\nd\ne", "-a\n b\n-c\n d\n+e\n");
	expect_diff("same\n", "same\n", " same\n");
	expect_diff("a\n\nb\n", "a\nb\n", " a\n-\n b\n");
	expect_diff("x\na\nx\n", "x\n", " x\n-a\n-x\n");
}

TEST(nothing_becomes_something_and_back)
{
	expect_diff("", "a\nb", "+a\n+b\n");
	expect_diff("a\nb\n", "", "-a\n-b\n");
	expect_diff("", "", "");
}

struct counts {
	size_t gone;
	size_t come;
	size_t both;
};

static void on_count(void *arg, char sign, struct text line)
{
	struct counts *c = arg;

	*(sign == '-' ? &c->gone : sign == '+' ? &c->come : &c->both) += 1;
}

/* Too much for the table: but nothing goes unseen. */
TEST(long_texts_are_shown_whole)
{
	struct counts c = {0};
	struct buf before;
	struct buf after;

	buf_init(&before, 1 << 20);
	buf_init(&after, 1 << 20);
	for (int i = 0; i < 5000; i++) {
		buf_printf(&before, "old %d\n", i);
		buf_printf(&after, "new %d\n", i);
	}
	buf_add_str(&before, "end\n");
	buf_add_str(&after, "end\n");
	diff_lines((struct text) {before.data, before.len}, (struct text) {after.data, after.len},
		   on_count, &c);
	assert_int_equal(c.gone, 5000);
	assert_int_equal(c.come, 5000);
	assert_int_equal(c.both, 1);
	buf_done(&before);
	buf_done(&after);
}

/* ---- rows ---- */

static const char *shown(const char *approval, unsigned columns, bool color)
{
	static char text[16 << 10];
	struct koine_doc *doc = parse_str(approval);
	struct view v;
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	view_init(&v);
	assert_int_equal(view_fill(&v, koine_doc_root(doc)), 0);
	assert_int_equal(view_wrap(&v, columns), 0);
	for (size_t i = 0; i < view_n_rows(&v); i++) {
		view_print_row(&v, i, out, color);
		fputc('\n', out);
	}
	fclose(out);
	view_done(&v);
	koine_doc_free(doc);
	return text;
}

static void expect_shown(const char *input, unsigned columns, bool color, const char *want)
{
	char approval[4096];
	const char *body;

	snprintf(approval, sizeof(approval), "{\"id\":\"1\",\"tool\":\"T\",\"input\":%s}", input);
	/* Behind the head. */
	body = strstr(shown(approval, columns, color), "\n\n");
	assert_non_null(body);
	assert_string_equal(body + 2, want);
}

TEST(an_edit_is_shown_as_a_difference)
{
	expect_shown("{\"file_path\":\"/a.c\",\"old_string\":\"one\\n\\ttwo\",\"new_string\":"
		     "\"one\\n\\t2\",\"replace_all\":true}",
		     80, true,
		     "file_path: /a.c\n  one\n\033[31m-     two\033[0m\n\033[32m+     2\033[0m\n"
		     "replace_all: true\n");
	expect_shown("{\"file_path\":\"/a\",\"edits\":[{\"old_string\":\"a\",\"new_string\":\"b\"},"
		     "{\"old_string\":\"c\",\"new_string\":\"\",\"replace_all\":true}]}",
		     80, false, "file_path: /a\n@@ @@\n- a\n+ b\n@@ everywhere @@\n- c\n");
	expect_shown("{\"file_path\":\"/a\",\"content\":\"x\\ny\\n\"}", 80, false,
		     "file_path: /a\n+ x\n+ y\n");
	expect_shown("{\"command\":\"*** Begin Patch\\n+in\\n-out\\n\"}", 80, true,
		     "command:\n*** Begin Patch\n\033[32m+in\033[0m\n\033[31m-out\033[0m\n");
}

TEST(other_input_is_shown_by_member)
{
	expect_shown("{\"command\":\"ls\",\"n\":3,\"deep\":{\"a\":[1]},\"none\":\"\"}", 80, false,
		     "command: ls\nn: 3\ndeep: {\"a\":[1]}\nnone: \"\"\n");
	expect_shown("{\"script\":\"a\\nb\"}", 80, false, "script:\n  a\n  b\n");
	/* What only looks like an edit. */
	expect_shown("{\"old_string\":1,\"new_string\":\"b\",\"edits\":[1]}", 80, false,
		     "old_string: 1\nnew_string: b\nedits: [1]\n");
}

TEST(nothing_is_cut_and_nothing_steers_the_terminal)
{
	expect_shown("{\"c\":\"0123456789\"}", 5, false, "c: 01\n23456\n789\n");
	expect_shown("{\"c\":\"\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\"}", 6, false,
		     "c: \xe6\xbc\xa2\n\xe6\xbc\xa2\xe6\xbc\xa2\n");
	expect_shown("{\"c\":\"a\\u001b[2J\\u0007\\u009b\\u202eb\"}", 80, false,
		     "c: a\\x1b[2J\\x07\\x9b\\u202eb\n");
	expect_shown("{\"k\\u001b\":{\"\xc2\x9b\":1}}", 80, false, "k\\x1b: {\"\\x9b\":1}\n");
}
