/* JSON parameters as gob: which types are made up, and what is refused. */
#include "check.h"

#include "base/buf.h"
#include "lib/caller.h"
#include "wire/json.h"

struct world {
	struct caller_gob *gob;
	struct gob_call call;
	struct error error;
};

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w || caller_gob_new(1 << 20, &w->gob) != 0)
		return -1;
	*state = w;
	return 0;
}

static int unmake(void **state)
{
	struct world *w = *state;

	caller_gob_free(w->gob);
	free(w);
	return 0;
}

FIXTURE(make, unmake);

/* A shape in words, as Go would have it. */
static void describe(const struct gob_shape *shape, struct buf *out)
{
	static const char *const basic[] = {
		[GOB_BOOL] = "bool",     [GOB_INT] = "int",       [GOB_UINT] = "uint",
		[GOB_FLOAT] = "float64", [GOB_BYTES] = "[]byte",  [GOB_STRING] = "string",
		[GOB_COMPLEX] = "?",     [GOB_INTERFACE] = "any",
	};

	if (shape->kind <= GOB_INTERFACE) {
		buf_add_str(out, basic[shape->kind]);
		return;
	}
	if (shape->kind != GOB_STRUCT) {
		buf_add_str(out, shape->kind == GOB_MAP ? "map[string]" : "[]");
		describe(shape->elem, out);
		return;
	}
	buf_add_str(out, shape->name);
	buf_add_str(out, "{");
	for (unsigned i = 0; i < shape->n_fields; i++) {
		buf_add_str(out, i > 0 ? "; " : "");
		buf_add_str(out, shape->fields[i].name);
		buf_add_str(out, " ");
		describe(shape->fields[i].shape, out);
	}
	buf_add_str(out, "}");
}

/* The type, and what a server reads. */
static void assert_read(struct world *w, const char *params, const char *type, const char *value)
{
	struct netrpc_reader reader;
	struct netrpc_message m = {0};
	struct arena arena;
	struct buf out;
	struct json j = json_writer(&out);
	size_t used = 0;

	buf_init(&out, 1 << 20);
	if (gob_call_read(w->gob, params, &w->call, &w->error) != 0)
		fail_msg("%s: %s", params, w->error.text);
	describe(w->call.shape, &out);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, type);
	buf_clear(&out);
	caller_gob_restart(w->gob);
	assert_int_equal(caller_gob_write(w->gob, "A.B", 7, &w->call, &out), 0);
	netrpc_reader_init(&reader, NETRPC_SERVER, &gob_default_limits);
	arena_init(&arena, 1 << 20);
	assert_int_equal(netrpc_next(&reader, &arena, out.data, out.len, true, &used, &m),
			 NETRPC_MESSAGE);
	assert_int_equal(m.seq, 7);
	assert_true(text_is(m.method, "A.B"));
	buf_clear(&out);
	json_value(&j, m.body);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, value);
	netrpc_reader_done(&reader);
	arena_done(&arena);
	buf_done(&out);
	gob_call_done(&w->call);
}

TEST(json_kinds_become_gos)
{
	struct world *w = *state;

	assert_read(w, NULL, "{}", "{}");
	assert_read(w, "{}", "{}", "{}");
	assert_read(w, "21", "int", "21");
	assert_read(w, "-0.5", "float64", "-0.5");
	assert_read(w, "18446744073709551615", "uint", "18446744073709551615");
	assert_read(w, "true", "bool", "true");
	assert_read(w, "\"x\"", "string", "\"x\"");
	assert_read(w, "{\"S\":\"x\",\"I\":5,\"F\":1.0,\"E\":1e2,\"B\":false}",
		    "Args{S string; I int; F float64; E float64; B bool}",
		    "{\"S\":\"x\",\"I\":5,\"F\":1,\"E\":100}");
	assert_read(w, "{\"In\":{\"Deep\":{\"N\":1}},\"Gone\":null,\"Empty\":[]}",
		    "Args{In In{Deep Deep{N int}}}", "{\"In\":{\"Deep\":{\"N\":1}}}");
	assert_read(w, "{\"N\":null}", "{}", "{}");
	assert_read(w, "{\"N\":1,\"N\":\"last\"}", "Args{N string}", "{\"N\":\"last\"}");
}

TEST(arrays_have_one_type)
{
	struct world *w = *state;

	assert_read(w, "[]", "[]any", "[]");
	assert_read(w, "[1,2]", "[]int", "[1,2]");
	assert_read(w, "[1,2.5,null]", "[]float64", "[1,2.5,0]");
	assert_read(w, "[null,\"x\"]", "[]string", "[\"\",\"x\"]");
	assert_read(w, "[[],[1],[]]", "[][]int", "[[],[1],[]]");
	assert_read(w, "[[1],[\"x\"]]", "[][]any", "[[1],[\"x\"]]");
	assert_read(w, "[1,\"x\",null,[true],{\"k\":{\"$int\":\"2\"}}]", "[]any",
		    "[1,\"x\",null,[true],{\"k\":2}]");
	assert_read(w, "[{\"A\":1},{\"B\":[]},{\"B\":[\"x\"],\"A\":2.5},{}]",
		    "[]Args{A float64; B []string}", "[{\"A\":1},{},{\"A\":2.5,\"B\":[\"x\"]},{}]");
	assert_read(w, "[{\"In\":{\"A\":1}},{\"In\":{\"B\":2}}]", "[]Args{In In{A int; B int}}",
		    "[{\"In\":{\"A\":1}},{\"In\":{\"B\":2}}]");
}

TEST(what_json_cannot_say_is_told)
{
	struct world *w = *state;

	assert_read(w, "{\"$uint\":\"7\"}", "uint", "7");
	assert_read(w, "{\"U\":{\"$uint\":7},\"F\":{\"$float\":7},\"I\":{\"$int\":\"-7\"}}",
		    "Args{U uint; F float64; I int}", "{\"U\":7,\"F\":7,\"I\":-7}");
	assert_read(w, "{\"B\":{\"$bytes\":\"41Ff6a\"}}", "Args{B []byte}",
		    "{\"B\":\"A\xef\xbf\xbdj\"}");
	assert_read(w, "{\"M\":{\"$map\":{\"a\":1,\"b\":2}}}", "Args{M map[string]int}",
		    "{\"M\":{\"a\":1,\"b\":2}}");
	assert_read(w, "{\"M\":{\"$map\":{\"a\":1,\"b\":\"x\"}}}", "Args{M map[string]any}",
		    "{\"M\":{\"a\":1,\"b\":\"x\"}}");
	assert_read(w, "{\"M\":{\"$map\":{}},\"N\":1}", "Args{N int}", "{\"N\":1}");
	assert_read(w, "{\"A\":{\"$any\":{\"k\":[1,{\"$float\":2}]}}}", "Args{A any}",
		    "{\"A\":{\"k\":[1,2]}}");
	assert_read(w, "[{\"$int\":1},2.5]", "[]any", "[1,2.5]");
	assert_read(w, "[{\"$uint\":1},{\"$uint\":2}]", "[]uint", "[1,2]");
	/* With a neighbour it is a member like any other. */
	assert_read(w, "{\"$uint\":\"7\",\"N\":1}", "Args{$uint string; N int}",
		    "{\"$uint\":\"7\",\"N\":1}");
}

TEST(what_cannot_be_sent_is_refused)
{
	static const struct {
		const char *params;
		const char *words;
	} rows[] = {
		{"null", "cannot be used as the parameter value"},
		{"{\"$any\":1}", "cannot be used as the parameter value"},
		{"{\"$foo\":1}", "unknown type '$foo'"},
		{"{\"$\":1}", "unknown type '$'"},
		{"{\"N\":{\"$uint\":\"-1\"}}", "$uint requires an unsigned 64-bit integer"},
		{"{\"N\":{\"$uint\":\"\"}}", "$uint requires"},
		{"{\"N\":{\"$uint\":18446744073709551616}}", "$uint requires"},
		{"{\"N\":{\"$int\":1.5}}", "$int requires"},
		{"{\"N\":{\"$int\":\"9223372036854775808\"}}", "$int requires"},
		{"{\"N\":{\"$int\":{}}}", "$int requires"},
		{"{\"N\":{\"$float\":\"1\"}}", "$float requires a number"},
		{"{\"N\":{\"$bytes\":\"abc\"}}", "$bytes requires two hexadecimal digits"},
		{"{\"N\":{\"$bytes\":\"zz\"}}", "$bytes requires two hexadecimal digits"},
		{"{\"N\":[1,{\"$map\":[]}]}", "$map requires an object"},
		{"{\"A\":{\"$any\":[{\"$foo\":1}]}}", "unknown type '$foo'"},
		{"{\"a\\u0000b\":1}", "a member name with a NUL byte"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		w->error = (struct error) {0};
		assert_int_equal(gob_call_read(w->gob, rows[i].params, &w->call, &w->error),
				 REFUSE_PARAMS);
		if (!strstr(w->error.text, rows[i].words))
			fail_msg("%s: '%s' does not say '%s'", rows[i].params, w->error.text,
				 rows[i].words);
	}
	assert_int_equal(gob_call_read(w->gob, "{", &w->call, &w->error), REFUSE_PARSE);
}

TEST(a_type_is_made_up_once)
{
	struct world *w = *state;
	unsigned n;

	assert_read(w, "{\"A\":[{\"B\":1}]}", "Args{A []A{B int}}", "{\"A\":[{\"B\":1}]}");
	n = w->gob->shapes.n;
	assert_read(w, "{\"A\":[{\"B\":5},{\"B\":6}]}", "Args{A []A{B int}}",
		    "{\"A\":[{\"B\":5},{\"B\":6}]}");
	assert_int_equal(w->gob->shapes.n, n);
	assert_read(w, "{\"A\":[{\"B\":\"\"}]}", "Args{A []A{B string}}", "{\"A\":[{}]}");
	assert_true(w->gob->shapes.n > n);
}

TEST(types_are_bounded)
{
	struct world *w = *state;
	char params[64];
	int r = 0;

	for (int i = 0; i <= GOB_SHAPES_MAX && r == 0; i++) {
		snprintf(params, sizeof(params), "{\"F%d\":1}", i);
		r = gob_call_read(w->gob, params, &w->call, &w->error);
		if (r == 0)
			gob_call_done(&w->call);
	}
	assert_int_equal(r, REFUSE_LIMIT);
	/* What is known already goes on. */
	assert_read(w, "{\"F3\":7}", "Args{F3 int}", "{\"F3\":7}");
	caller_gob_forget(w->gob);
	assert_read(w, params, "Args{F512 int}", "{\"F512\":1}");
}
