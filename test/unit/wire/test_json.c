/* JSON text: what is accepted, what is refused, what comes back. */
#include "check.h"

#include <errno.h>
#include <math.h>

#include "base/pack.h"
#include "wire/json.h"

enum { BIG = 64 << 20 };

/* Reads from memory of exactly that size, so that a sanitizer sees one byte too far. */
static int read_exact(const char *text, size_t len, const struct json_limits *limits,
		      struct buf *out, struct error *error)
{
	char *copy = malloc(len ? len : 1);
	struct value *root = NULL;
	struct arena a;
	int r;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, text, len);
	arena_init(&a, BIG);
	r = json_read(&a, copy, len, limits, &root, error);
	if (r == 0 && out) {
		struct json j = json_writer(out);

		json_value(&j, root);
	}
	arena_done(&a);
	free(copy);
	return r;
}

static int read_text(const char *text)
{
	return read_exact(text, strlen(text), &json_default_limits, NULL, NULL);
}

TEST(accepts_what_is_json)
{
	static const char *const good[] = {
		"null",
		"true",
		"false",
		"0",
		"-0",
		"-0.0",
		"1e2",
		"1E+2",
		"1.5e-3",
		"\"\"",
		"[]",
		"{}",
		" [ ] ",
		"\t{\n}\r",
		"[1,[2,[3]]]",
		"{\"a\":{\"b\":[{}]}}",
		"\"\\u0000\"",
		"\"\\ud83d\\ude00\"",
		"\"\xc3\xa9\"",
		"\"\xf4\x8f\xbf\xbf\"",
		"\"\x7f\"",
		"12345678901234567890123456789012345678901234567890",
		"{\"a\":1,\"a\":2}",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
		"[\"abcdefg\\\"hij\",\"abcdefghijklmnop\"]",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (read_text(good[i]) != 0)
			fail_msg("refused: %s", good[i]);
	}
}

TEST(refuses_what_is_not)
{
	static const char *const wrong[] = {
		"",
		" ",
		"nul",
		"nulll",
		"True",
		"NaN",
		"Infinity",
		"-",
		"+1",
		"01",
		"-01",
		"1.",
		".5",
		"1e",
		"1e+",
		"0x1",
		"1 2",
		"[",
		"]",
		"[1,]",
		"[,1]",
		"[1 2]",
		"{",
		"}",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"{1:1}",
		"{\"a\" 1}",
		"[1}",
		"{\"a\":1]",
		"\"",
		"\"a",
		"\"\\\"",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"\\ud800\"",
		"\"\\udc00\"",
		"\"\\ud800\\u0041\"",
		"\"\\ud800\\ud800\"",
		"\"\n\"",
		"\"\t\"",
		"\"\x01\"",
		"\"\x80\"",
		"\"\xc0\x80\"",
		"\"\xc1\xbf\"",
		"\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xf8\"",
		"\"\xe0\x80\x80\"",
		"\"\xe2\x82\"",
		"\"\xf0\x80\x80\x80\"",
		"\xef\xbb\xbf[]",
		"[]x",
		"[] []",
		"'a'",
		"\"a\" ,",
		"\f1",
		"\302\2401",
		"/**/1",
		"[1]//",
		"\"abcdefgh\037abcdefgh\"",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (read_text(wrong[i]) != REFUSE_PARSE)
			fail_msg("not refused: %s", wrong[i]);
	}
	assert_int_equal(read_exact("[\0]", 3, &json_default_limits, NULL, NULL), REFUSE_PARSE);
	assert_int_equal(read_exact("\"\0\"", 3, &json_default_limits, NULL, NULL), REFUSE_PARSE);
}

TEST(says_what_and_where)
{
	struct error error;

	assert_int_equal(read_exact("[1,x]", 5, &json_default_limits, NULL, &error), REFUSE_PARSE);
	assert_string_equal(error.text, "unexpected character at byte 3");
}

static void check_written(const char *in, const char *want)
{
	struct buf out;

	buf_init(&out, BIG);
	assert_int_equal(read_exact(in, strlen(in), &json_default_limits, &out, NULL), 0);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, want);
	buf_done(&out);
}

TEST(writes_what_it_read)
{
	check_written(" [ 1 , 2.50 , 1e2 , 12345678901234567890 ] ",
		      "[1,2.50,1e2,12345678901234567890]");
	check_written("{\"b\":1,\"a\":{\"x\":[]},\"c\":null}",
		      "{\"b\":1,\"a\":{\"x\":[]},\"c\":null}");
	check_written("\"\\u0061\\n\\/\\u001f\\ud83d\\ude00\"", "\"a\\n/\\u001f\xf0\x9f\x98\x80\"");
	check_written("[true,false,null,\"\",[[]],{\"\":0}]",
		      "[true,false,null,\"\",[[]],{\"\":0}]");
}

TEST(keeps_the_source)
{
	const char *text = "{\"id\" : \"\\u0061\", \"n\":-0.10e5, \"o\":{ \"x\" : 1 }}";
	struct value *root;
	struct arena a;
	const struct value *v;

	arena_init(&a, BIG);
	assert_int_equal(json_read(&a, text, strlen(text), &json_default_limits, &root, NULL), 0);
	v = value_find(root, "id");
	assert_int_equal(v->raw_len, 8);
	assert_memory_equal(v->raw, "\"\\u0061\"", 8);
	assert_true(text_is(value_text(v), "a"));
	v = value_find(root, "n");
	assert_int_equal(v->raw_len, 7);
	assert_memory_equal(v->raw, "-0.10e5", 7);
	v = value_find(root, "o");
	assert_int_equal(v->raw_len, 11);
	assert_memory_equal(v->raw, "{ \"x\" : 1 }", 11);
	arena_done(&a);
}

TEST(last_of_two_keys_wins)
{
	const char *text = "{\"a\":1,\"a\":2}";
	struct value *root;
	struct arena a;
	int64_t n = 0;

	arena_init(&a, BIG);
	assert_int_equal(json_read(&a, text, strlen(text), &json_default_limits, &root, NULL), 0);
	assert_true(value_int(value_find(root, "a"), &n));
	assert_int_equal(n, 2);
	arena_done(&a);
}

/* Scans memory of exactly that size; *ret_id gets the source of the member "id". */
static int scan_exact(const char *text, size_t len, char id[64], unsigned *ret_n)
{
	struct json_member member = {"id"};
	struct value root = {0};
	char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, text, len);
	r = json_scan(copy, len, &json_default_limits, &member, 1, &root);
	snprintf(id, 64, "%.*s", TEXT_ARGS(member.raw));
	*ret_n = root.len;
	free(copy);
	return r;
}

TEST(scan_finds_the_last_of_duplicate_members)
{
	static const struct {
		const char *text;
		const char *id;
		unsigned n;
	} rows[] = {
		{"{\"id\":1,\"method\":\"a\"}", "1", 2},
		{"{\"id\":1,\"id\":[2,{\"id\":3}] }", "[2,{\"id\":3}]", 2},
		{" { \"id\" : \"\\\"\" } ", "\"\\\"\"", 1},
		{"{\"id\":1,\"\\u0069d\":null}", "null", 2},
		{"{\"\\u0069\\u0064\":{}}", "{}", 1},
		{"{\"params\":{\"id\":1},\"ids\":2,\"i\":3,\"\":4}", "", 4},
		{"[{\"id\":1}]", "", 1},
		{"{}", "", 0},
	};
	char id[64];
	unsigned n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(scan_exact(rows[i].text, strlen(rows[i].text), id, &n), 0);
		assert_string_equal(id, rows[i].id);
		assert_int_equal(n, rows[i].n);
	}
}

TEST(scan_refuses_what_the_reader_refuses)
{
	static const char text[] = "{\"id\":\"\\ud83d\\ude00é\",\"a\":[1.5e3,true,{}],\"id\":-0}";
	char broken[sizeof(text)];
	char id[64];
	unsigned n;

	for (size_t len = 0; len < sizeof(text); len++)
		assert_int_equal(scan_exact(text, len, id, &n),
				 read_exact(text, len, &json_default_limits, NULL, NULL));
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		memcpy(broken, text, sizeof(text));
		broken[i] = '}';
		assert_int_equal(scan_exact(broken, sizeof(text) - 1, id, &n), read_text(broken));
	}
}

TEST(source_of_a_text_is_compared_without_escapes)
{
	assert_true(json_source_is(TEXT("\"initialize\""), "initialize"));
	assert_true(json_source_is(TEXT("\"initiali\\u007ae\""), "initialize"));
	assert_true(json_source_is(TEXT("\"\\ud83d\\ude00\""), "😀"));
	assert_true(json_source_is(TEXT("\"\""), ""));
	assert_false(json_source_is(TEXT("\"initializ\""), "initialize"));
	assert_false(json_source_is(TEXT("\"initialized\""), "initialize"));
	assert_false(json_source_is(TEXT("\"a\\u0000\""), "a"));
	assert_false(json_source_is(TEXT("1"), "1"));
	assert_false(json_source_is((struct text) {0}, ""));
}

TEST(integers_are_never_rounded)
{
	static const struct {
		const char *text;
		bool fits;
		int64_t n;
	} rows[] = {
		{"9223372036854775807", true, INT64_MAX},
		{"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0},
		{"18446744073709551616", false, 0},
		{"1.0", false, 0},
		{"1e2", false, 0},
		{"-0", true, 0},
		{"9007199254740993", true, 9007199254740993},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct value *root;
		struct arena a;
		int64_t n = 0;

		arena_init(&a, BIG);
		assert_int_equal(json_read(&a, rows[i].text, strlen(rows[i].text),
					   &json_default_limits, &root, NULL),
				 0);
		assert_int_equal(value_int(root, &n), rows[i].fits);
		assert_int_equal(n, rows[i].n);
		arena_done(&a);
	}
}

static int read_nested(unsigned depth, const struct json_limits *limits)
{
	char *text = malloc(2UL * depth);
	int r;

	assert_non_null(text);
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	r = read_exact(text, 2UL * depth, limits, NULL, NULL);
	free(text);
	return r;
}

TEST(depth_is_limited)
{
	assert_int_equal(read_nested(512, &json_default_limits), 0);
	assert_int_equal(read_nested(513, &json_default_limits), REFUSE_PARSE);
	assert_int_equal(read_nested(100000, &json_default_limits), REFUSE_PARSE);
}

TEST(values_are_limited)
{
	const struct json_limits three = {.depth = 8, .values = 3};

	assert_int_equal(read_exact("[1,2]", 5, &three, NULL, NULL), 0);
	assert_int_equal(read_exact("[1,2,3]", 7, &three, NULL, NULL), REFUSE_TOO_LARGE);
}

TEST(full_arena_is_a_fault)
{
	struct value *root;
	struct arena a;

	arena_init(&a, 64);
	assert_int_equal(json_read(&a, "[1,2,3]", 7, &json_default_limits, &root, NULL), -ENOMEM);
	arena_done(&a);
}

TEST(tree_follows_a_copied_message)
{
	char text[] = "{\"a\":[\"x\",1],\"b\\n\":\"y\\t\"}";
	struct value *root;
	struct arena a;
	struct buf out;
	struct json j;
	char *copy;

	arena_init(&a, BIG);
	assert_int_equal(json_read(&a, text, strlen(text), &json_default_limits, &root, NULL), 0);
	copy = arena_copy(&a, text, strlen(text));
	value_rebase(root, text, strlen(text), copy);
	memset(text, 'X', strlen(text));
	buf_init(&out, BIG);
	j = json_writer(&out);
	json_value(&j, root);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, "{\"a\":[\"x\",1],\"b\\n\":\"y\\t\"}");
	assert_memory_equal(root->raw, "{\"a\"", 4);
	buf_done(&out);
	arena_done(&a);
}

TEST(writer_makes_json_of_anything)
{
	struct buf out;
	struct json j;

	buf_init(&out, BIG);
	j = json_writer(&out);
	json_begin_array(&j);
	json_str(&j, "\xff\xc3(\x01\"");
	json_str(&j, NULL);
	json_double(&j, 0.1);
	json_double(&j, 1e300);
	json_double(&j, 1.0 / 3);
	json_double(&j, (double)NAN);
	json_int(&j, INT64_MIN);
	json_uint(&j, UINT64_MAX);
	json_begin_object(&j);
	json_member_bool(&j, "k\n", true);
	json_member_int(&j, "n", 7);
	json_end_object(&j);
	json_end_array(&j);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data,
			    "[\"\xef\xbf\xbd\xef\xbf\xbd(\\u0001\\\"\",null,0.1,1e+300,"
			    "0.3333333333333333,null,-9223372036854775808,18446744073709551615,"
			    "{\"k\\n\":true,\"n\":7}]");
	buf_done(&out);
}

static void check_packed(struct text packed, const char *want)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1 << 16);
	j = json_writer(&out);
	json_begin_array(&j);
	json_null(&j);
	json_packed(&j, packed);
	json_end_array(&j);
	buf_add_char(&out, '\0');
	assert_int_equal(out.err, 0);
	assert_string_equal(out.data, want);
	buf_done(&out);
}

TEST(what_is_packed_is_written_without_a_tree)
{
	static const char text[] = "{\"a\":[1,-2.5e3,[],{}],\"b\\n\":{\"c\":null,\"d\":true},"
				   "\"e\":\"\\u0001\\\"\",\"\":false,\"a\":\"last\"}";
	char want[sizeof(text) + 8];
	struct value *v;
	struct arena a;
	struct buf packed;
	struct text t;

	arena_init(&a, 1 << 20);
	buf_init(&packed, 1 << 16);
	assert_int_equal(json_read(&a, text, strlen(text), &json_default_limits, &v, NULL), 0);
	value_pack(&packed, v);
	t = (struct text) {.data = packed.data, .len = packed.len};
	snprintf(want, sizeof(want), "[null,%s]", text);
	check_packed(t, want);
	assert_true(packed_is_object(t));
	assert_true(text_is(packed_text(packed_find(t, "a")), "last"));
	check_packed(packed_find(t, "b\n"), "[null,{\"c\":null,\"d\":true}]");
	assert_null(packed_find(t, "f").data);
	assert_null(packed_text(packed_find(t, "b\n")).data);
	/* Any part of it is nothing that was packed. */
	for (size_t n = 0; n < packed.len; n++) {
		check_packed((struct text) {.data = packed.data, .len = n}, "[null,null]");
		assert_false(packed_is_object((struct text) {.data = packed.data, .len = n}));
	}
	buf_done(&packed);
	arena_done(&a);
}

static void escaped_is(const char *text, const char *expected)
{
	struct buf out;

	buf_init(&out, 200);
	buf_add_str(&out, text);
	json_escape_html(&out);
	assert_int_equal(out.err, 0);
	assert_int_equal(out.len, strlen(expected));
	assert_memory_equal(out.data, expected, out.len);
	buf_done(&out);
}

TEST(what_a_page_would_take_for_its_own_is_escaped)
{
	struct buf out;

	escaped_is("[]", "[]");
	escaped_is("\"<\"", "\"\\u003c\"");
	escaped_is("\"a<b>&&c\"", "\"a\\u003cb\\u003e\\u0026\\u0026c\"");
	escaped_is("\"\xe2\x80\xa8\xe2\x80\xa9\"", "\"\\u2028\\u2029\"");
	/* What only begins so stays. */
	escaped_is("\"\xe2\x80\x99 \xe2\x82\xac\xe2\"", "\"\xe2\x80\x99 \xe2\x82\xac\xe2\"");
	buf_init(&out, 8);
	buf_add_str(&out, "\"<<<\"");
	json_escape_html(&out);
	assert_int_equal(out.err, -EMSGSIZE);
	buf_done(&out);
}

TEST(bounded_buffer_refuses_to_grow)
{
	struct buf out;
	struct json j;

	buf_init(&out, 8);
	j = json_writer(&out);
	json_str(&j, "1234567890");
	assert_int_equal(out.err, -EMSGSIZE);
	assert_true(out.len <= 8);
	buf_done(&out);
}
