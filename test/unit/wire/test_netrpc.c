/* Go's net/rpc: headers and bodies in and out, on both sides. */
#include "gob_vectors.h"

#include <errno.h>

#include "gob_shapes.h"

static struct gob_vectors vectors;

static int read_vectors(void **state)
{
	gob_vectors_read(&vectors);
	return 0;
}

static int drop_vectors(void **state)
{
	gob_vectors_done(&vectors);
	return 0;
}

GROUP_FIXTURE(read_vectors, drop_vectors);

static struct text vector_bytes(const char *name)
{
	return gob_vector_bytes(&vectors, gob_vector_find(&vectors, name), "hex");
}

/* ---- reading ---- */

static uint64_t seq_of(const struct value *header)
{
	const struct value *seq = value_find(header, "Seq");
	const struct value *large = value_find(seq, "$uint");
	char digits[24];

	if (large)
		seq = large;
	snprintf(digits, sizeof(digits), "%.*s", (int)seq->len, seq->text);
	return strtoull(digits, NULL, 10);
}

static void check_message(const struct value *want, const struct netrpc_message *m,
			  const struct gob_types *types)
{
	const struct value *header = value_find(want, "header");
	const struct value *error = value_find(header, "Error");
	struct gob_compare c = {.arena = &vectors.arena, .types = types};

	assert_true(text_equal(m->method, value_text(value_find(header, "ServiceMethod"))));
	assert_true(m->seq == seq_of(header));
	assert_true(text_equal(m->error, error ? value_text(error) : TEXT("")));
	assert_non_null(m->body);
	assert_true(gob_same(&c, value_find(want, "body"), m->body));
}

static void read_cut(const struct value *vector, struct text bytes, size_t cut,
		     enum netrpc_side side)
{
	const struct value *want = value_find(vector, "decoded")->first;
	struct netrpc_message m;
	struct netrpc_reader r;
	struct arena a;
	size_t at = 0;
	size_t end = cut;

	arena_init(&a, 1 << 20);
	netrpc_reader_init(&r, side, &gob_default_limits);
	while (want) {
		size_t used;
		enum netrpc_kind kind =
			netrpc_next(&r, &a, bytes.data + at, end - at, false, &used, &m);

		at += used;
		assert_int_not_equal(kind, NETRPC_REFUSED);
		if (kind == NETRPC_MESSAGE) {
			check_message(want, &m, &r.gob.types);
			want = want->next;
			arena_reset(&a);
			continue;
		}
		assert_true(end < bytes.len);
		assert_true(netrpc_in_message(&r) || cut == 0 || at == end);
		end = bytes.len;
	}
	assert_int_equal(at, bytes.len);
	assert_false(netrpc_in_message(&r));
	netrpc_reader_done(&r);
	arena_done(&a);
}

TEST(every_message_is_read_at_every_cut)
{
	value_each (vector, vectors.list) {
		struct text direction = value_text(value_find(vector, "direction"));
		struct text bytes = gob_vector_bytes(&vectors, vector, "hex");
		bool is_request = text_is(direction, "client->server");

		if (!value_find(vector, "decoded") || text_is(direction, "value"))
			continue;
		for (size_t cut = 0; cut <= bytes.len; cut += 3)
			read_cut(vector, bytes, cut, is_request ? NETRPC_SERVER : NETRPC_CLIENT);
	}
}

static void says(struct text bytes, const char *want)
{
	struct gob_feed f;

	gob_feed_init_rpc(&f, NETRPC_SERVER, &gob_default_limits, 1 << 20);
	gob_feed_all(&f, bytes.data, bytes.len, NULL, 0, true);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, want);
	gob_feed_done(&f);
}

TEST(header_that_is_none_ends_the_stream)
{
	says(vector_bytes("neg.truncated-typedef"), "broken 1 unexpected EOF\n");
	says(vector_bytes("neg.undefined-typeid"),
	     "broken 1 gob: unknown type id or corrupted data\n");
	says(vector_bytes("neg.builtin-redefinition"), "broken 1 gob: duplicate type received\n");
	says(vector_bytes("neg.field-delta-out-of-range"),
	     "broken 1 gob: bad data: field numbers out of bounds\n");
	says(vector_bytes("neg.header-not-struct"),
	     "broken 4 gob: type mismatch in decoder: want struct type rpc.Request; got "
	     "non-struct\n");
	says(vector_bytes("neg.count-1g"), "broken 9 gob: value larger than 10485760 bytes\n");
	says(vector_bytes("prim.strings"),
	     "broken 4 gob: type mismatch in decoder: want struct type rpc.Request; got "
	     "non-struct\n");
}

TEST(stream_that_ends_before_the_body_is_broken)
{
	struct text bytes = vector_bytes("req.Stats.Agent");

	says((struct text) {bytes.data, 48 + 17}, "broken 1 unexpected EOF\n");
	says(bytes, "Agent.Stats 0 : {}  = struct { }\n");
}

/* A request whose body is refused, and behind it one that is well. */
TEST(stream_goes_on_behind_a_body_that_is_refused)
{
	struct netrpc_writer w;
	struct gob_encoder *e;
	struct buf out;

	buf_init(&out, 1000);
	netrpc_writer_init(&w, 1000);
	e = netrpc_call(&w, &out, TEXT("A.B"), 1, &gob_shape_int);
	gob_int(e, 3);
	assert_int_equal(netrpc_end(&w, &out), 0);
	out.data[out.len - 1] = '\xf7';
	e = netrpc_call(&w, &out, TEXT("A.C"), 2, &gob_shape_int);
	gob_int(e, 4);
	assert_int_equal(netrpc_end(&w, &out), 0);
	says((struct text) {out.data, out.len},
	     "A.B 1 : refused 1 gob: encoded unsigned integer out of range\n"
	     "A.C 2 : 4 int\n");
	netrpc_writer_done(&w);
	buf_done(&out);
}

static void fit_is(const char *name, const struct gob_shape *shape, const char *want)
{
	struct text bytes = vector_bytes(name);
	struct error error = {.text = "fits"};
	struct netrpc_message m;
	struct netrpc_reader r;
	struct arena a;
	size_t used;

	arena_init(&a, 1 << 20);
	netrpc_reader_init(&r, NETRPC_SERVER, &gob_default_limits);
	assert_int_equal(netrpc_next(&r, &a, bytes.data, bytes.len, false, &used, &m),
			 NETRPC_MESSAGE);
	netrpc_fit(&r, &m, shape, &error);
	assert_string_equal(error.text, want);
	netrpc_reader_done(&r);
	arena_done(&a);
}

/* One message, with the short way for headers or without it. */
struct twin {
	struct netrpc_reader reader;
	struct arena arena;
	struct netrpc_message m;
	size_t at;
	bool is_slow;
};

static void twin_init(struct twin *t, bool is_slow)
{
	*t = (struct twin) {.is_slow = is_slow};
	netrpc_reader_init(&t->reader, NETRPC_SERVER, &gob_default_limits);
	arena_init(&t->arena, 1 << 20);
}

static void twin_done(struct twin *t)
{
	netrpc_reader_done(&t->reader);
	arena_done(&t->arena);
}

static enum netrpc_kind twin_next(struct twin *t, struct text bytes)
{
	enum netrpc_kind kind;
	size_t used;

	if (t->is_slow)
		t->reader.plain = 0;
	kind = netrpc_next(&t->reader, &t->arena, bytes.data + t->at, bytes.len - t->at, true,
			   &used, &t->m);
	t->at += used;
	return kind;
}

static void both_ways_say_the_same(struct text bytes)
{
	struct twin quick, slow;
	enum netrpc_kind kind;

	twin_init(&quick, false);
	twin_init(&slow, true);
	do {
		kind = twin_next(&quick, bytes);
		assert_int_equal(twin_next(&slow, bytes), kind);
		assert_int_equal(quick.at, slow.at);
		if (kind == NETRPC_MORE)
			continue;
		assert_true(text_equal(quick.m.method, slow.m.method));
		assert_true(quick.m.seq == slow.m.seq);
		assert_true(!quick.m.body == !slow.m.body);
		if (quick.m.body)
			continue;
		assert_int_equal(quick.m.body_error->code, slow.m.body_error->code);
		assert_string_equal(quick.m.body_error->text, slow.m.body_error->text);
	} while (kind == NETRPC_MESSAGE);
	twin_done(&quick);
	twin_done(&slow);
}

TEST(headers_are_read_alike_the_short_way_and_the_long)
{
	struct text bytes = vector_bytes("session.req.five-calls");
	char *copy = malloc(bytes.len);

	assert_non_null(copy);
	for (size_t i = 0; i < bytes.len; i++) {
		for (unsigned bit = 0; bit < 8; bit += 3) {
			memcpy(copy, bytes.data, bytes.len);
			copy[i] ^= (char)(1u << bit);
			both_ways_say_the_same((struct text) {.data = copy, .len = bytes.len});
		}
	}
	both_ways_say_the_same(bytes);
	free(copy);
}

TEST(arguments_are_fitted)
{
	fit_is("req.Stats.Agent", &gob_shape_empty_struct, "fits");
	fit_is("req.Chat.toolresult-slice", &chat_args, "fits");
	fit_is("robust.MemorySearch.limit-string", &search_args,
	       "gob: wrong type (int) for received field badLimitString.Limit");
	fit_is("neg.self-referential-slice", &gob_shape_empty_struct,
	       "gob: type mismatch in decoder: want struct type struct {}; got non-struct");
}

TEST(names_are_split_at_the_last_dot)
{
	struct text service, name;
	struct error error;

	assert_int_equal(netrpc_split(TEXT("a.B.C"), &service, &name, &error), 0);
	assert_true(text_is(service, "a.B") && text_is(name, "C"));
	assert_int_equal(netrpc_split(TEXT("Chat"), &service, &name, &error), REFUSE_METHOD);
	assert_string_equal(error.text, "rpc: service/method request ill-formed: Chat");
	assert_int_equal(netrpc_split(TEXT(""), &service, &name, &error), REFUSE_METHOD);
	netrpc_no_service(TEXT("Nope.Stats"), &error);
	assert_string_equal(error.text, "rpc: can't find service Nope.Stats");
	netrpc_no_method(TEXT("Agent.Nope"), &error);
	assert_string_equal(error.text, "rpc: can't find method Agent.Nope");
	netrpc_no_service(TEXT("No\0pe.St\0"), &error);
	assert_string_equal(error.text, "rpc: can't find service No\xef\xbf\xbdpe.St\xef\xbf\xbd");
	netrpc_no_method(TEXT("\0.x"), &error);
	assert_string_equal(error.text, "rpc: can't find method \xef\xbf\xbd.x");
}

/* ---- writing ---- */

static struct value *tree_of(const char *json)
{
	struct value *v;

	assert_int_equal(
		json_read(&vectors.arena, json, strlen(json), &json_default_limits, &v, NULL), 0);
	return v;
}

static void written_is(const struct buf *out, const char *vector)
{
	struct text want = vector_bytes(vector);

	assert_int_equal(out->len, want.len);
	assert_memory_equal(out->data, want.data, want.len);
}

static void put(struct gob_encoder *e, const struct gob_shape *shape, const char *json)
{
	struct error error;

	assert_int_equal(gob_put(e, shape, tree_of(json), &error), 0);
}

TEST(answers_are_go_s_own_bytes)
{
	static const struct {
		const char *vector;
		const char *method;
		uint64_t seq;
		const struct gob_shape *shape;
		const char *body;
	} cases[] = {
		{"resp.Chat.content", "Agent.Chat", 0, &chat_reply,
		 "{\"Content\":\"Hello! I am OpenClaw-Go.\"}"},
		{"resp.Chat.empty", "Agent.Chat", 3, &chat_reply, "{\"Tools\":[]}"},
		{"resp.Chat.tools-only", "Agent.Chat", 1, &chat_reply,
		 "{\"Tools\":[{\"ID\":\"c\",\"Type\":\"function\",\"Function\":{\"Name\":\"n\","
		 "\"Arguments\":\"{}\"}}]}"},
		{"resp.Stats.one", "Agent.Stats", 0, &stats_reply,
		 "{\"Stats\":{\"messages\":150}}"},
		{"resp.Stats.nil-map", "Agent.Stats", 0, &stats_reply, "{}"},
		{"resp.MemorySearch.none", "Agent.MemorySearch", 0, &result_reply,
		 "{\"Result\":\"{\\\"query\\\":\\\"q\\\",\\\"count\\\":0,\\\"result\\\":\\\"No "
		 "relevant memories found.\\\"}\"}"},
		{"resp.PulseAdd", "Agent.PulseAdd", 0, &pulse_reply,
		 "{\"Result\":\"Event added "
		 "successfully\",\"EventID\":12,\"Status\":\"pending\"}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct netrpc_writer w;
		struct buf out;

		buf_init(&out, 10000);
		netrpc_writer_init(&w, 10000);
		put(netrpc_answer(&w, &out, text_of(cases[i].method), cases[i].seq, cases[i].shape),
		    cases[i].shape, cases[i].body);
		assert_int_equal(netrpc_end(&w, &out), 0);
		written_is(&out, cases[i].vector);
		netrpc_writer_done(&w);
		buf_done(&out);
	}
}

TEST(errors_are_go_s_own_bytes)
{
	static const struct {
		const char *vector;
		const char *method;
		const char *error;
	} cases[] = {
		{"resp.error.storage", "Agent.Stats", "storage not initialized"},
		{"resp.error.query", "Agent.MemorySearch", "query is required"},
		{"resp.error.text", "Agent.MemoryStore", "text is required"},
		{"resp.error.method", "Agent.Nope", "rpc: can't find method Agent.Nope"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct netrpc_writer w;
		struct buf out;

		buf_init(&out, 10000);
		netrpc_writer_init(&w, 10000);
		assert_int_equal(netrpc_error(&w, &out, text_of(cases[i].method), 0,
					      text_of(cases[i].error)),
				 0);
		written_is(&out, cases[i].vector);
		netrpc_writer_done(&w);
		buf_done(&out);
	}
}

TEST(requests_are_go_s_own_bytes)
{
	static const struct {
		const char *vector;
		const char *method;
		const struct gob_shape *shape;
		const char *body;
	} cases[] = {
		{"req.Stats.Agent", "Agent.Stats", &gob_shape_empty_struct, "{}"},
		{"req.Chat.hello.RPCService", "RPCService.Chat", &chat_args,
		 "{\"Messages\":[{\"Role\":\"user\",\"Content\":\"Hello\"}]}"},
		{"req.Chat.toolresult-string", "Agent.Chat", &chat_args,
		 "{\"Messages\":[{\"Role\":\"tool\",\"ToolExecutionResults\":[{\"ID\":\"call_1\","
		 "\"Type\":\"function\",\"Result\":\"file contents\\nline 2\"}]}]}"},
		{"req.Chat.toolresult-int-neg", "Agent.Chat", &chat_args,
		 "{\"Messages\":[{\"Role\":\"tool\",\"ToolExecutionResults\":[{\"ID\":\"call_1\","
		 "\"Type\":\"function\",\"Result\":-129}]}]}"},
		{"req.MemorySearch.full", "Agent.MemorySearch", &search_args,
		 "{\"Query\":\"q\",\"Category\":\"preference\",\"Limit\":5,\"MinScore\":0.7}"},
		{"req.MemorySearch.empty", "Agent.MemorySearch", &search_args, "{}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct netrpc_writer w;
		struct buf out;

		buf_init(&out, 10000);
		netrpc_writer_init(&w, 10000);
		put(netrpc_call(&w, &out, text_of(cases[i].method), 0, cases[i].shape),
		    cases[i].shape, cases[i].body);
		assert_int_equal(netrpc_end(&w, &out), 0);
		written_is(&out, cases[i].vector);
		netrpc_writer_done(&w);
		buf_done(&out);
	}
}

TEST(answer_that_fails_leaves_the_stream_whole)
{
	struct netrpc_writer w;
	struct gob_encoder *e;
	struct buf out;

	buf_init(&out, 10000);
	netrpc_writer_init(&w, 100);
	e = netrpc_answer(&w, &out, TEXT("Agent.Stats"), 0, &stats_reply);
	gob_begin_struct(e);
	assert_int_equal(netrpc_end(&w, &out), -EINVAL);
	assert_int_equal(out.len, 0);
	/* a header that is too large takes its body with it */
	e = netrpc_answer(&w, &out, (struct text) {vectors.text, 200}, 0, &stats_reply);
	put(e, &stats_reply, "{}");
	assert_int_equal(netrpc_end(&w, &out), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	put(netrpc_answer(&w, &out, TEXT("Agent.Stats"), 0, &stats_reply), &stats_reply,
	    "{\"Stats\":{\"messages\":150}}");
	assert_int_equal(netrpc_end(&w, &out), 0);
	written_is(&out, "resp.Stats.one");
	netrpc_writer_done(&w);
	buf_done(&out);
}
