/* Envelopes: what is a request under which rules, and how answers are put together. */
#include "check.h"

#include "wire/jsonrpc.h"

static const struct jsonrpc_rules plain = {0};

/* What one message means: "method|params|id|silent", or "!code text|id|silent". */
static const char *read_as(const struct jsonrpc_rules *rules, const char *text)
{
	static char out[1024];
	struct jsonrpc_request request;
	struct value *root = NULL;
	struct error error = {0};
	struct arena a;
	char id[128];
	int r;

	arena_init(&a, 1 << 16);
	assert_int_equal(json_read(&a, text, strlen(text), &json_default_limits, &root, NULL), 0);
	memset(&request, 'x', sizeof(request));
	r = jsonrpc_read(rules, root, &request, &error);
	assert_true(r >= 0);
	snprintf(id, sizeof(id), "%.*s|%s", request.id.data ? (int)request.id.len : 4,
		 request.id.data ? request.id.data : "none",
		 request.silent ? "silent" : "answered");
	if (r == 0)
		snprintf(out, sizeof(out), "%.*s|%.*s|%s", TEXT_ARGS(request.method),
			 request.params ? (int)request.params->raw_len : 4,
			 request.params ? request.params->raw : "none", id);
	else
		snprintf(out, sizeof(out), "!%d %s|%s", r, error.text, id);
	arena_done(&a);
	return out;
}

#define READ(rules, text, expected) assert_string_equal(read_as(rules, text), expected)

TEST(loose_params_that_are_no_object_are_none)
{
	static const struct jsonrpc_rules loose = {.flags = JSONRPC_PARAMS_LOOSE};

	READ(&loose, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"x\":1},\"id\":1}",
	     "a|{\"x\":1}|1|answered");
	READ(&loose, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":[1],\"id\":1}",
	     "a|none|1|answered");
	READ(&loose, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":\"x\",\"id\":1}",
	     "a|none|1|answered");
	READ(&loose, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":5}", "a|none|none|silent");
}

TEST(params_of_any_kind_pass_and_names_in_any_case_where_the_rules_say)
{
	static const struct jsonrpc_rules rules = {.flags = JSONRPC_PARAMS_ANY | JSONRPC_ANY_CASE};

	READ(&rules, "{\"JSONRPC\":\"2.0\",\"Method\":\"a\",\"pArAmS\":[1],\"ID\":1}",
	     "a|[1]|1|answered");
	READ(&rules, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":null,\"id\":1}",
	     "a|null|1|answered");
	READ(&rules, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":\"x\",\"id\":1}",
	     "a|\"x\"|1|answered");
	READ(&rules, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"METHOD\":\"b\"}",
	     "b|none|none|silent");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"METHOD\":\"a\",\"id\":1}",
	     "!2 Invalid Request|1|answered");
}

TEST(reads_requests_with_ids_of_every_kind)
{
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1}", "m|none|1|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":-1.50e+3}",
	     "m|none|-1.50e+3|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":9223372036854775808}",
	     "m|none|9223372036854775808|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":\"\"}", "m|none|\"\"|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":\"a\\u0000\\\"\"}",
	     "m|none|\"a\\u0000\\\"\"|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\": null }",
	     "m|none|null|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":1},\"id\":1}",
	     "m|{\"a\":1}|1|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[1, 2],\"id\":1}",
	     "m|[1, 2]|1|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null,\"id\":1}",
	     "m|none|1|answered");
	READ(&plain, "{\"id\":5,\"x\":{},\"method\":\"caf\\u00e9\",\"jsonrpc\":\"2.0\"}",
	     "caf\xc3\xa9|none|5|answered");
}

TEST(the_last_of_equal_members_wins)
{
	READ(&plain,
	     "{\"jsonrpc\":\"1.0\",\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\","
	     "\"id\":1,\"id\":2}",
	     "b|none|2|answered");
}

TEST(without_id_it_is_a_notification)
{
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "m|none|none|silent");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"ID\":1}", "m|none|none|silent");
}

TEST(refuses_what_is_no_request_with_its_id)
{
	READ(&plain, "1", "!2 Invalid Request|none|answered");
	READ(&plain, "[]", "!2 Invalid Request|none|answered");
	READ(&plain, "\"method\"", "!2 Invalid Request|none|answered");
	READ(&plain, "{}", "!2 Invalid Request|none|answered");
	READ(&plain, "{\"id\":7}", "!2 Invalid Request|7|answered");
	READ(&plain, "{\"method\":\"m\",\"id\":7}", "!2 Invalid Request|7|answered");
	READ(&plain, "{\"jsonrpc\":2.0,\"method\":\"m\",\"id\":7}",
	     "!2 Invalid Request|7|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"id\":7}", "!2 Invalid Request|7|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"\",\"id\":7}",
	     "!2 Invalid Request|7|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":1,\"params\":\"bar\"}",
	     "!2 Invalid Request|none|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":\"bar\",\"id\":7}",
	     "!2 Invalid Request|7|answered");
	/* no notification: what is no request is answered, with null */
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":true}",
	     "!2 Invalid Request|none|answered");
}

TEST(refuses_ids_that_are_none)
{
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":true}",
	     "!2 Invalid Request|none|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":{}}",
	     "!2 Invalid Request|none|answered");
	READ(&plain, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":[1]}",
	     "!2 Invalid Request|none|answered");
}

TEST(any_id_is_echoed_where_the_rules_say)
{
	static const struct jsonrpc_rules any = {.flags = JSONRPC_ANY_ID};

	READ(&any, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":true}", "m|none|true|answered");
	READ(&any, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":{\"a\": 1}}",
	     "m|none|{\"a\": 1}|answered");
	READ(&any, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":[1]}", "m|none|[1]|answered");
}

TEST(positional_params_are_refused_where_the_rules_say)
{
	static const struct jsonrpc_rules named = {.flags = JSONRPC_NO_POSITIONAL};

	READ(&named, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{},\"id\":1}",
	     "m|{}|1|answered");
	READ(&named, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[],\"id\":1}",
	     "!4 Positional params (array) not supported, use named params (object)|1|answered");
	READ(&named, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[]}",
	     "!4 Positional params (array) not supported, use named params (object)|none|silent");
}

TEST(a_null_id_is_silent_where_the_rules_say)
{
	static const struct jsonrpc_rules quiet = {.flags = JSONRPC_NULL_ID_SILENT};

	READ(&quiet, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":null}", "m|none|null|silent");
	READ(&quiet, "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "m|none|none|silent");
	READ(&quiet, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":0}", "m|none|0|answered");
	READ(&quiet, "{\"jsonrpc\":\"2.0\",\"id\":null}", "!2 Invalid Request|null|answered");
}

TEST(a_missing_id_is_answered_where_the_rules_say)
{
	static const struct jsonrpc_rules loud = {.flags = JSONRPC_NO_SILENCE};
	static const struct jsonrpc_rules mixed = {.flags = JSONRPC_NO_SILENCE |
							    JSONRPC_NULL_ID_SILENT};

	READ(&loud, "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "m|none|none|answered");
	READ(&loud, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":null}", "m|none|null|answered");
	READ(&mixed, "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "m|none|none|answered");
	READ(&mixed, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":null}", "m|none|null|silent");
}

TEST(every_wording_can_be_changed)
{
	static const struct jsonrpc_rules words = {
		.no_version = "no version",
		.no_method = "no method",
		.bad_params = "bad params",
		.bad_id = "bad id",
		.not_object = "no object",
	};

	READ(&words, "3", "!2 no object|none|answered");
	READ(&words, "{\"id\":{}}", "!2 no version|none|answered");
	READ(&words, "{\"id\":{},\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "!2 bad id|none|answered");
	READ(&words, "{\"id\":1,\"method\":\"m\"}", "!2 no version|1|answered");
	READ(&words, "{\"id\":1,\"jsonrpc\":\"2.0\"}", "!2 no method|1|answered");
	READ(&words, "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":1}",
	     "!2 bad params|1|answered");
}

/* As a dialect may word it: the fault's number, and the value's source. */
static int explain(enum jsonrpc_fault fault, const struct value *v, struct error *error)
{
	return refuse(error, fault == JSONRPC_BAD_PARAMS ? REFUSE_CONFLICT : REFUSE_REQUEST,
		      "%d: %.*s", (int)fault, v ? (int)v->raw_len : 4, v ? v->raw : "none");
}

TEST(a_dialect_can_word_every_fault_itself)
{
	static const struct jsonrpc_rules own = {
		.flags = JSONRPC_NO_POSITIONAL | JSONRPC_FAULT_NULL_ID | JSONRPC_NULL_ID_SILENT,
		.explain = explain,
	};

	READ(&own, "[1]", "!2 0: [1]|none|answered");
	READ(&own, "{\"id\":7}", "!2 1: none|none|answered");
	READ(&own, "{\"id\":7,\"jsonrpc\":\"1.0\"}", "!2 1: \"1.0\"|none|answered");
	READ(&own, "{\"id\":7,\"jsonrpc\":\"2.0\"}", "!2 2: none|none|answered");
	READ(&own, "{\"id\":7,\"jsonrpc\":\"2.0\",\"method\":[ ]}", "!2 2: [ ]|none|answered");
	READ(&own, "{\"id\":7,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":5}",
	     "!7 3: 5|7|answered");
	READ(&own, "{\"id\":7,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[2]}",
	     "!2 4: [2]|none|answered");
	READ(&own, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[2]}",
	     "!2 4: [2]|none|answered");
	READ(&own, "{\"id\":[7],\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "!2 5: [7]|none|answered");
	READ(&own, "{\"id\":1.5,\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "m|none|1.5|answered");
}

static void result_is(const struct jsonrpc_rules *rules, struct text id, const char *expected)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_writer(&out);
	jsonrpc_begin_result(rules, &j, id);
	json_begin_object(&j);
	json_member_int(&j, "a", 1);
	json_end_object(&j);
	jsonrpc_end_result(rules, &j, id);
	buf_add_char(&out, '\0');
	assert_int_equal(out.err, 0);
	assert_string_equal(out.data, expected);
	buf_done(&out);
}

static void error_is(const struct jsonrpc_rules *rules, struct text id, struct text data,
		     const char *expected)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_writer(&out);
	jsonrpc_write_error(rules, &j, id, -32000, TEXT("no \"way\""), data);
	buf_add_char(&out, '\0');
	assert_int_equal(out.err, 0);
	assert_string_equal(out.data, expected);
	buf_done(&out);
}

TEST(answers_put_the_id_last_or_second)
{
	static const struct jsonrpc_rules second = {.flags = JSONRPC_ID_SECOND};
	const struct text none = {0};

	result_is(&plain, TEXT("\"x\""), "{\"jsonrpc\":\"2.0\",\"result\":{\"a\":1},\"id\":\"x\"}");
	result_is(&plain, none, "{\"jsonrpc\":\"2.0\",\"result\":{\"a\":1},\"id\":null}");
	result_is(&second, TEXT("7"), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":1}}");
	result_is(&second, none, "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"a\":1}}");
	error_is(&plain, TEXT("1"), none,
		 "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"no \\\"way\\\"\"},"
		 "\"id\":1}");
	error_is(&plain, none, TEXT("[1]"),
		 "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"no \\\"way\\\"\","
		 "\"data\":[1]},\"id\":null}");
	error_is(&second, TEXT("1"), TEXT("{}"),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,"
		 "\"message\":\"no \\\"way\\\"\",\"data\":{}}}");
}

static void request_is(struct text method, struct text params, struct text id, const char *expected)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_writer(&out);
	jsonrpc_write_request(&j, method, params, id);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, expected);
	buf_done(&out);
}

TEST(requests_and_notifications_are_written)
{
	const struct text none = {0};

	request_is(TEXT("tick"), none, none, "{\"jsonrpc\":\"2.0\",\"method\":\"tick\"}");
	request_is(TEXT("t\n"), TEXT("{\"a\":1}"), none,
		   "{\"jsonrpc\":\"2.0\",\"method\":\"t\\n\",\"params\":{\"a\":1}}");
	request_is(TEXT("call"), TEXT("[]"), TEXT("3"),
		   "{\"jsonrpc\":\"2.0\",\"method\":\"call\",\"params\":[],\"id\":3}");
}
