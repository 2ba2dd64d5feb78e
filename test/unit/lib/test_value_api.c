/* Values and JSON as a program outside sees them: only <koine/koine.h> is used. */
#include "check.h"

#include <math.h>

#include <koine/koine.h>

static struct koine_doc *parse(const char *text)
{
	struct koine_doc *doc = NULL;

	assert_int_equal(koine_doc_parse(text, strlen(text), &doc, NULL, 0), 0);
	return doc;
}

static void assert_text(const char *text, size_t len, const char *expected)
{
	assert_non_null(text);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(text, expected, len);
}

TEST(lookups_can_be_chained)
{
	struct koine_doc *doc = parse("{\"a\":{\"b\":[1,\"two\",null]},\"n\":-7}");
	const struct koine_value *root = koine_doc_root(doc);
	const struct koine_value *list = koine_value_get(koine_value_get(root, "a"), "b");
	const struct koine_value *two = koine_value_next(koine_value_first(list));
	const char *text;
	size_t len;

	assert_int_equal(koine_value_kind(root), KOINE_OBJECT);
	assert_int_equal(koine_value_count(list), 3);
	text = koine_value_text(two, &len);
	assert_text(text, len, "two");
	text = koine_value_raw(two, &len);
	assert_text(text, len, "\"two\"");
	text = koine_value_key(koine_value_first(root), &len);
	assert_text(text, len, "a");
	assert_null(koine_value_key(two, &len));
	assert_int_equal(koine_value_kind(koine_value_next(two)), KOINE_NULL);
	assert_null(koine_value_next(koine_value_next(two)));
	assert_null(koine_value_get(koine_value_get(root, "x"), "y"));
	assert_null(koine_value_get(list, "0"));
	koine_doc_free(doc);
}

TEST(nothing_is_accepted_everywhere)
{
	size_t len = 9;
	int64_t n = 9;
	double d = 9;
	bool b = true;

	assert_int_equal(koine_value_kind(NULL), KOINE_NULL);
	assert_null(koine_value_get(NULL, "a"));
	assert_int_equal(koine_value_count(NULL), 0);
	assert_null(koine_value_first(NULL));
	assert_null(koine_value_next(NULL));
	assert_null(koine_value_key(NULL, &len));
	assert_int_equal(len, 0);
	assert_null(koine_value_text(NULL, NULL));
	assert_null(koine_value_raw(NULL, NULL));
	assert_false(koine_value_int(NULL, &n));
	assert_false(koine_value_double(NULL, &d));
	assert_false(koine_value_bool(NULL, &b));
	assert_true(n == 9 && d == 9 && b);
	assert_null(koine_doc_root(NULL));
	koine_doc_free(NULL);
	koine_json_free(NULL);
	koine_answer_free(NULL);
	koine_client_free(NULL);
	assert_null(koine_answer_result(NULL));
}

TEST(numbers_must_fit)
{
	struct koine_doc *doc = parse("[9223372036854775807,9223372036854775808,1.5,1e999,true]");
	const struct koine_value *v = koine_value_first(koine_doc_root(doc));
	int64_t n = 0;
	double d = 0;
	bool b = false;

	assert_true(koine_value_int(v, &n));
	assert_true(n == INT64_MAX);
	assert_false(koine_value_bool(v, &b));
	v = koine_value_next(v);
	assert_false(koine_value_int(v, &n));
	assert_true(n == INT64_MAX);
	v = koine_value_next(v);
	assert_false(koine_value_int(v, &n));
	assert_true(koine_value_double(v, &d));
	assert_true(d == 1.5);
	v = koine_value_next(v);
	assert_false(koine_value_double(v, &d));
	assert_true(d == 1.5);
	v = koine_value_next(v);
	assert_true(koine_value_bool(v, &b));
	assert_true(b);
	koine_doc_free(doc);
}

TEST(bad_text_is_refused_with_a_place)
{
	struct koine_doc *doc = (struct koine_doc *)state;
	char error[200] = "";

	assert_int_equal(koine_doc_parse("{\"a\":}", 6, &doc, error, sizeof(error)), KOINE_PARSE);
	assert_non_null(strstr(error, "byte 5"));
	assert_ptr_equal(doc, state);
	assert_int_equal(koine_doc_parse("", 0, &doc, NULL, 0), KOINE_PARSE);
	assert_int_equal(koine_doc_parse("[]]", 3, &doc, error, 4), KOINE_PARSE);
	assert_int_equal(strlen(error), 3);
}

TEST(a_document_keeps_its_own_copy)
{
	char text[] = "{\"k\":\"v\"}";
	struct koine_doc *doc = parse(text);
	const char *got;
	size_t len;

	memset(text, 'x', sizeof(text));
	got = koine_value_text(koine_value_get(koine_doc_root(doc), "k"), &len);
	assert_text(got, len, "v");
	koine_doc_free(doc);
}

TEST(a_writer_puts_the_commas)
{
	struct koine_doc *doc = parse("{ \"in\" : [ 1 , 2 ] }");
	struct koine_json *j = NULL;
	size_t len;

	assert_int_equal(koine_json_new(&j), 0);
	assert_string_equal(koine_json_text(j, &len), "");
	koine_json_begin_object(j);
	koine_json_key(j, "null");
	koine_json_null(j);
	koine_json_key(j, "list");
	koine_json_begin_array(j);
	koine_json_bool(j, true);
	koine_json_int(j, INT64_MIN);
	koine_json_double(j, 0.5);
	koine_json_double(j, NAN);
	koine_json_string(j, "a\"\n");
	koine_json_text_n(j, "x\0y", 3);
	koine_json_text_n(j, NULL, 0);
	koine_json_raw(j, "{}", 2);
	koine_json_end_array(j);
	koine_json_key(j, "value");
	koine_json_value(j, koine_doc_root(doc));
	koine_json_key(j, "none");
	koine_json_value(j, NULL);
	koine_json_end_object(j);
	assert_string_equal(koine_json_text(j, &len),
			    "{\"null\":null,\"list\":[true,-9223372036854775808,0.5,null,"
			    "\"a\\\"\\n\",\"x\\u0000y\",\"\",{}],\"value\":{\"in\":[1,2]},"
			    "\"none\":null}");
	assert_int_equal(len, strlen(koine_json_text(j, NULL)));
	koine_json_free(j);
	koine_doc_free(doc);
}

TEST(a_writer_that_grew_too_far_has_no_text)
{
	size_t piece = 16 << 20;
	char *big = malloc(piece);
	struct koine_json *j = NULL;

	assert_non_null(big);
	memset(big, '1', piece);
	assert_int_equal(koine_json_new(&j), 0);
	for (int i = 0; i < 5; i++)
		koine_json_raw(j, big, piece);
	assert_null(koine_json_text(j, NULL));
	koine_json_free(j);
	free(big);
}

TEST(the_version_is_that_of_the_header)
{
	char expected[32];

	snprintf(expected, sizeof(expected), "%d.%d.%d", KOINE_VERSION_MAJOR, KOINE_VERSION_MINOR,
		 KOINE_VERSION_PATCH);
	assert_string_equal(koine_version(), expected);
}
