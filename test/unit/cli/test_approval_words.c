/* What of koine hook and koine approvals needs no server: forms of hooks, differences, rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/approval/diff.h"
#include "cli/approval/hook.h"
#include "cli/approval/view.h"
#include "cli/kit/value.h"

#define T(name) cmocka_unit_test(name)

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

static bool same_value(const struct koine_value *a, const struct koine_value *b)
{
	const struct koine_value *x = koine_value_first(a);
	const struct koine_value *y = koine_value_first(b);
	struct text t = {0};
	struct text u = {0};

	if (koine_value_kind(a) != koine_value_kind(b) ||
	    koine_value_count(a) != koine_value_count(b))
		return false;
	t.data = koine_value_text(a, &t.len);
	u.data = koine_value_text(b, &u.len);
	if (t.data && !text_equal(t, u))
		return false;
	for (; x; x = koine_value_next(x), y = koine_value_next(y)) {
		t.data = koine_value_key(x, &t.len);
		u.data = koine_value_key(y, &u.len);
		if ((t.data && !text_equal(t, u)) || !same_value(x, y))
			return false;
	}
	return true;
}

static void expect(struct koine_json *got, const struct koine_value *want, const char *what)
{
	size_t len;
	const char *text = koine_json_text(got, &len);
	struct koine_doc *doc = parse(text, len);
	size_t want_len;
	const char *raw = koine_value_raw(want, &want_len);

	if (!same_value(koine_doc_root(doc), want))
		fail_msg("%s: %s is not %.*s", what, text, (int)want_len, raw);
	koine_doc_free(doc);
}

enum { WORD = 128 };

/* NULL: there is none. */
static const char *word(const struct koine_value *v, const char *key, char out[WORD])
{
	struct text t = member_string(v, key);

	if (!t.data)
		return NULL;
	snprintf(out, WORD, "%.*s", TEXT_ARGS(t));
	return out;
}

/* ---- hooks ---- */

static struct koine_doc *read_vectors(void)
{
	static char text[64 << 10];
	FILE *f = fopen(getenv("KOINE_HOOK_VECTORS"), "rb");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_true(n < sizeof(text));
	return parse(text, n);
}

static void check_request(const struct hook *h, const struct koine_value *row, const char *name)
{
	char session[WORD];
	char run[WORD];
	const struct hook_run part_of = {
		.session = text_of(word(row, "session", session)),
		.id = text_of(word(row, "run", run)),
	};
	struct koine_json *j = NULL;
	int64_t seconds = 55;

	koine_value_int(koine_value_get(row, "timeout"), &seconds);
	assert_int_equal(koine_json_new(&j), 0);
	hook_write_request(h, &part_of, "ID", seconds * 1000, j);
	expect(j, koine_value_get(row, "request"), name);
	koine_json_free(j);
}

static void check_answer(struct hook_input *in, const struct koine_value *pair, const char *name)
{
	const struct koine_value *end = koine_value_first(pair);
	const struct koine_value *want = koine_value_next(end);
	const struct hook_outcome o = {
		.status = member_string(end, "status"),
		.comment = member_string(end, "comment"),
		.decided_by = member_string(end, "decided_by"),
		.id = TEXT("ID"),
		.refused = koine_value_kind(koine_value_get(end, "refused")) == KOINE_TRUE,
	};
	struct koine_json *j = NULL;

	assert_int_equal(koine_json_new(&j), 0);
	if (!hook_write_answer(in, &o, j)) {
		if (koine_value_kind(want) != KOINE_NULL)
			fail_msg("%s: nothing for %.*s", name, TEXT_ARGS(o.status));
	} else if (koine_value_kind(want) == KOINE_NULL) {
		fail_msg("%s: something for %.*s", name, TEXT_ARGS(o.status));
	} else {
		expect(j, want, name);
	}
	koine_json_free(j);
}

static void check_row(const struct koine_value *row)
{
	const struct koine_value *pair = koine_value_first(koine_value_get(row, "answers"));
	char name[WORD];
	char format[WORD];
	char agent[WORD];
	struct why why = {0};
	const char *given = word(row, "format", format);
	struct hook_input h;
	struct text in = {0};
	int r;

	in.data = koine_value_raw(koine_value_get(row, "stdin"), &in.len);
	r = hook_input_read(&h, in, given ? given : "auto", word(row, "agent", agent), &why);

	assert_non_null(word(row, "name", name));
	if (koine_value_kind(koine_value_get(row, "refused")) == KOINE_TRUE) {
		if (r <= 0 || !why.text[0])
			fail_msg("%s: taken", name);
	} else if (r != 0) {
		fail_msg("%s: %s", name, why.text);
	} else {
		check_request(&h.hook, row, name);
	}
	for (; pair; pair = koine_value_next(pair))
		check_answer(&h, pair, name);
	hook_input_done(&h);
}

static void hooks_are_as_their_agents_have_them(void **state)
{
	struct koine_doc *doc = read_vectors();
	const struct koine_value *row = koine_value_first(koine_doc_root(doc));
	unsigned n = 0;

	for (; row; row = koine_value_next(row), n++)
		check_row(row);
	assert_true(n > 8);
	koine_doc_free(doc);
}

static int read_str(struct hook_input *in, const char *text, const char *format, struct why *why)
{
	return hook_input_read(in, text_of(text), format, NULL, why);
}

/* A human would be shown the one, and the agent do the other. */
static void a_hook_that_says_something_twice_is_none(void **state)
{
	static const char *const texts[] = {
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Read\",\"tool_name\":"
		"\"Bash\"}",
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{},"
		"\"tool_input\":{}}",
	};
	static const char command[] = "{\"conversation_id\":\"c\",\"hook_event_name\":"
				      "\"beforeShellExecution\",\"command\":\"ls\","
				      "\"command\":\"rm\"}";
	struct hook_input h;
	struct why why = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_str(&h, texts[i], "auto", &why), REFUSE_PARAMS);
		assert_non_null(strstr(why.text, "duplicate"));
		assert_int_equal(h.hook.form, HOOK_PRE_TOOL);
		hook_input_done(&h);
	}
	assert_int_equal(read_str(&h, command, "auto", &why), REFUSE_PARAMS);
	assert_int_equal(h.hook.form, HOOK_CURSOR);
	hook_input_done(&h);
}

static void what_is_no_json_is_no_hook(void **state)
{
	static const char *const texts[] = {"", "{", "yes", "{\"tool_name\":\"a\"}}", "\xff"};
	struct hook_input h;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct why why = {0};

		assert_int_equal(read_str(&h, texts[i], "auto", &why), REFUSE_PARSE);
		assert_true(why.text[0] != '\0');
		hook_input_done(&h);
	}
}

static enum hook_form form_of(const char *text, const char *format)
{
	struct why why = {0};
	struct hook_input h;

	assert_true(read_str(&h, text, format, &why) > 0);
	hook_input_done(&h);
	return h.hook.form;
}

static void of_what_cannot_be_read_the_form_is_guessed(void **state)
{
	static const char cut[] = "{\"hook_event_name\" : \"PreToolUse\",\"tool_input\":{\"a\":\"";

	assert_int_equal(form_of(cut, "auto"), HOOK_PRE_TOOL);
	assert_int_equal(form_of(cut, "claude"), HOOK_PRE_TOOL);
	/* It has no "ask", so it denies. */
	assert_int_equal(form_of(cut, "codex"), HOOK_VETO);
	assert_int_equal(form_of(cut, "plain"), HOOK_PLAIN);
	assert_int_equal(form_of("{\"hook_event_name\":\"PreToolUse\"}", "auto"), HOOK_PRE_TOOL);
	assert_int_equal(form_of("{\"hook_event_name\":\"PermissionRequest\"", "auto"), HOOK_NONE);
	assert_int_equal(form_of("{\"hook_event_name\":\"Stop\",\"a\":\"PreToolUse\"}", "auto"),
			 HOOK_NONE);
	assert_int_equal(form_of("{}", "auto"), HOOK_NONE);
	assert_int_equal(form_of("{\"hook_event_name\":\"BeforeTool\",\"tool_name\":\"", "auto"),
			 HOOK_GEMINI);
	assert_int_equal(form_of("{\"conversation_id\":\"c\",\"tool_name\":\"", "auto"),
			 HOOK_CURSOR);
	assert_int_equal(form_of("{\"toolName\":\"", "auto"), HOOK_COPILOT);
	assert_int_equal(form_of("{\"turn_id\":\"t\",\"hook_event_name\":\"PreToolUse\"", "auto"),
			 HOOK_VETO);
	/* What the agent writes into its call does not make it another's. */
	assert_int_equal(
		form_of("{\"turn_id\":\"t\",\"hook_event_name\":\"PreToolUse\","
			"\"tool_input\":{\"description\":\"conversation_id\",\"command\":\"",
			"auto"),
		HOOK_VETO);
	assert_int_equal(form_of("{\"hook_event_name\":\"PreToolUse\",\"tool_input\":{"
				 "\"toolName\":\"conversation_id\",\"command\":\"",
				 "auto"),
			 HOOK_PRE_TOOL);
	/* Codex runs the command if it is told to ask, so it is assumed wherever it may be. */
	assert_int_equal(
		form_of("{\"hook_event_name\":\"PreToolUse\",\"turn_id\":\"t\",\"x\":\"", "auto"),
		HOOK_VETO);
	/* Whoever says whose it is need not be guessed about. */
	assert_int_equal(form_of("", "claude"), HOOK_PRE_TOOL);
	assert_int_equal(form_of("{\"tool_name\":5,\"tool_input\":{}}", "claude"), HOOK_PRE_TOOL);
	assert_int_equal(form_of("{\"tool_name\":\"Bash\",\"tool_input\":{\"a\":\"", "claude"),
			 HOOK_PRE_TOOL);
}

static void long_names_are_cut_between_characters(void **state)
{
	char text[4096];
	struct why why = {0};
	char id[300] = "";
	struct koine_json *j = NULL;
	struct koine_doc *doc;
	struct hook_input h;
	size_t len;
	const char *request;

	for (int i = 0; i < 130; i++)
		strcat(id, i < 127 ? "ab" : "\xe2\x82\xac");
	snprintf(text, sizeof(text),
		 "{\"tool_name\":\"T\",\"session_id\":\"%s\",\"tool_use_id\":\"%s\"}", id, id);
	assert_int_equal(read_str(&h, text, "claude", &why), 0);
	assert_int_equal(koine_json_new(&j), 0);
	hook_write_request(&h.hook, &(struct hook_run) {0}, "ID", 0, j);
	request = koine_json_text(j, &len);
	doc = parse(request, len);
	assert_int_equal(member_string(koine_doc_root(doc), "session_id").len, 254);
	assert_int_equal(member_string(koine_doc_root(doc), "tool_use_id").len, 254);
	koine_doc_free(doc);
	koine_json_free(j);
	hook_input_done(&h);
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

static void lines_of_both_stay(void **state)
{
	expect_diff("a\nb\nc\n", "a\nx\nc\n", " a\n-b\n+x\n c\n");
	expect_diff("a\nb\nc\nd", "b\nd\ne", "-a\n b\n-c\n d\n+e\n");
	expect_diff("same\n", "same\n", " same\n");
	expect_diff("a\n\nb\n", "a\nb\n", " a\n-\n b\n");
	expect_diff("x\na\nx\n", "x\n", " x\n-a\n-x\n");
}

static void nothing_becomes_something_and_back(void **state)
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
static void long_texts_are_shown_whole(void **state)
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

static void an_edit_is_shown_as_a_difference(void **state)
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

static void other_input_is_shown_by_member(void **state)
{
	expect_shown("{\"command\":\"ls\",\"n\":3,\"deep\":{\"a\":[1]},\"none\":\"\"}", 80, false,
		     "command: ls\nn: 3\ndeep: {\"a\":[1]}\nnone: \"\"\n");
	expect_shown("{\"script\":\"a\\nb\"}", 80, false, "script:\n  a\n  b\n");
	/* What only looks like an edit. */
	expect_shown("{\"old_string\":1,\"new_string\":\"b\",\"edits\":[1]}", 80, false,
		     "old_string: 1\nnew_string: b\nedits: [1]\n");
}

static void nothing_is_cut_and_nothing_steers_the_terminal(void **state)
{
	expect_shown("{\"c\":\"0123456789\"}", 5, false, "c: 01\n23456\n789\n");
	expect_shown("{\"c\":\"\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\"}", 6, false,
		     "c: \xe6\xbc\xa2\n\xe6\xbc\xa2\xe6\xbc\xa2\n");
	expect_shown("{\"c\":\"a\\u001b[2J\\u0007\\u009b\\u202eb\"}", 80, false,
		     "c: a\\x1b[2J\\x07\\x9b\\u202eb\n");
	expect_shown("{\"k\\u001b\":{\"\xc2\x9b\":1}}", 80, false, "k\\x1b: {\"\\x9b\":1}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(hooks_are_as_their_agents_have_them),
		T(a_hook_that_says_something_twice_is_none),
		T(what_is_no_json_is_no_hook),
		T(of_what_cannot_be_read_the_form_is_guessed),
		T(long_names_are_cut_between_characters),
		T(lines_of_both_stay),
		T(nothing_becomes_something_and_back),
		T(long_texts_are_shown_whole),
		T(an_edit_is_shown_as_a_difference),
		T(other_input_is_shown_by_member),
		T(nothing_is_cut_and_nothing_steers_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
