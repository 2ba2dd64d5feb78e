/* Go's net/rpc as a framing of a client: what is found, what fits, what is answered and when. */
#include "check.h"

#include "../call_world.h"
#include "base/log.h"
#include "wire/netrpc.h"

#define SHAPE_FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

/* ---- the methods ---- */

enum { LATER_MAX = 2000 };
static struct call *later[LATER_MAX];
static unsigned n_later;

struct echo_in {
	struct text text;
	int64_t n;
	const struct value *any;
};

static const struct field echo_fields[] = {
	{.name = "Text", .type = FIELD_STRING, .default_text = "-", .offset = 0},
	{.name = "N",
	 .type = FIELD_INT,
	 .default_number = 7,
	 .offset = offsetof(struct echo_in, n)},
	{.name = "Any", .type = FIELD_ANY, .offset = offsetof(struct echo_in, any)},
};

static struct done handle_echo(struct call *c)
{
	const struct echo_in *in = c->in;
	struct json *j = call_result(c);

	if (in->n < 0)
		return call_fail(c, refuse(&c->error, REFUSE_PARAMS, "n is negative"));
	json_begin_object(j);
	json_member_text(j, "Text", in->text);
	json_member_int(j, "N", in->n);
	json_key(j, "Any");
	json_value(j, in->any);
	json_end_object(j);
	return call_reply(c);
}

static struct done handle_wrong(struct call *c)
{
	json_str(call_result(c), "no struct");
	return call_reply(c);
}

static void on_cancel(struct call *c, void *arg)
{
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done handle_later(struct call *c)
{
	assert_true(n_later < LATER_MAX);
	later[n_later++] = c;
	return call_later(c, on_cancel, NULL);
}

static const struct gob_shape_field echo_shapes[] = {
	{"Text", &gob_shape_string},
	{"N", &gob_shape_int},
	{"Any", &gob_shape_interface},
};
static const struct gob_shape echo_shape = {
	.kind = GOB_STRUCT, .name = "Echo", .go = "main.Echo", SHAPE_FIELDS(echo_shapes)};
static const struct gob_shape_field misfit_shapes[] = {{"N", &gob_shape_string}};
static const struct gob_shape misfit_shape = {
	.kind = GOB_STRUCT, .name = "Misfit", SHAPE_FIELDS(misfit_shapes)};

#define ECHO FIELDS(echo_fields, echo_in), .gob_args = &echo_shape, .gob_reply = &echo_shape

static const struct method methods[] = {
	{.name = "Agent.Echo", .handle = handle_echo, ECHO},
	{.name = "Agent.Read", .handle = handle_echo, .where = READER, ECHO},
	{.name = "Agent.Later", .handle = handle_later, .flags = METHOD_LATER, ECHO},
	{.name = "Agent.Wrong", .handle = handle_wrong, ECHO},
	{.name = "Plain.Echo", .handle = handle_wrong},
};

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_METHOD] = {-32601, "no such method", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32000, "too many", WORDS_TEXT, 0},
};

#define DIALECT                                                                                    \
	.name = "test", .message_max = 1 << 20, .errors = errors, .methods = methods,              \
	.n_methods = sizeof(methods) / sizeof(methods[0])

static const struct dialect gob_dialect = {DIALECT, .framing = SPEAKS_GOB, .concurrent = true};
static const struct dialect any_dialect = {DIALECT, .framing = SPEAKS_ANY};

/* ---- a client of Go's kind ---- */

struct fixture {
	struct world world;
	struct dialer client;
	struct netrpc_reader reader;
	struct netrpc_writer writer;
	struct buf out;
	struct arena arena;
};

static void start_with(struct fixture *f, const struct dialect *d, const struct limits *limits)
{
	const struct server_opts opts = {
		.limits = *limits, .workers = {.n_readers = 2}, .version = "1"};

	n_later = 0;
	assert_int_equal(world_init(&f->world, d, &opts), 0);
	assert_int_equal(dialer_init(&f->client, &f->world), 0);
	netrpc_reader_init(&f->reader, NETRPC_CLIENT, &gob_default_limits);
	netrpc_writer_init(&f->writer, GOB_MESSAGE_MAX);
	buf_init(&f->out, 64 << 20);
	arena_init(&f->arena, 64 << 20);
}

static void start(struct fixture *f, const struct dialect *d)
{
	start_with(f, d, &default_limits);
}

static void finish(struct fixture *f)
{
	dialer_done(&f->client);
	world_done(&f->world);
	netrpc_reader_done(&f->reader);
	netrpc_writer_done(&f->writer);
	buf_done(&f->out);
	arena_done(&f->arena);
}

static void ask(struct fixture *f, const char *method, uint64_t seq, const struct gob_shape *shape,
		const char *json)
{
	struct gob_encoder *e = netrpc_call(&f->writer, &f->out, text_of(method), seq, shape);
	struct value *v;

	assert_int_equal(json_read(&f->arena, json, strlen(json), &json_default_limits, &v, NULL),
			 0);
	assert_int_equal(gob_put(e, shape, v, NULL), 0);
	assert_int_equal(netrpc_end(&f->writer, &f->out), 0);
}

static void flush(struct fixture *f)
{
	assert_true(dialer_send_n(&f->client, &f->world, f->out.data, f->out.len));
	buf_clear(&f->out);
}

static void next_answer(struct fixture *f, struct netrpc_message *ret)
{
	for (;;) {
		size_t used = 0;
		enum netrpc_kind kind;

		dialer_read(&f->client);
		kind = netrpc_next(&f->reader, &f->arena, f->client.in.data, f->client.in.len,
				   f->client.eof, &used, ret);
		buf_consume(&f->client.in, used);
		if (kind == NETRPC_MESSAGE)
			return;
		assert_int_equal(kind, NETRPC_MORE);
		assert_false(f->client.eof);
		assert_true(world_turn(&f->world, &f->client));
	}
}

/* As it stands in JSON, or the error. Valid until the next. */
static const char *answer_to(struct fixture *f, const char *method, uint64_t seq)
{
	static char text[2048];
	struct buf out = {.data = text, .cap = sizeof(text), .max = sizeof(text)};
	struct json j = json_writer(&out);
	struct netrpc_message m;

	next_answer(f, &m);
	assert_int_equal(m.seq, seq);
	assert_true(!method || text_is(m.method, method));
	if (m.error.len > 0)
		buf_add(&out, m.error.data, m.error.len);
	else
		json_value(&j, m.body);
	buf_add_char(&out, '\0');
	assert_int_equal(out.err, 0);
	return text;
}

static const char *answer(struct fixture *f, uint64_t seq)
{
	return answer_to(f, NULL, seq);
}

static const char *told(struct fixture *f, const char *method, const struct gob_shape *shape,
			const char *json)
{
	static uint64_t seq;

	ask(f, method, ++seq, shape, json);
	flush(f);
	return answer_to(f, method, seq);
}

/* ---- tests ---- */

TEST(answers_with_the_rows_own_fields_and_defaults)
{
	struct fixture f;

	start(&f, &gob_dialect);
	assert_string_equal(told(&f, "Agent.Echo", &echo_shape,
				 "{\"Text\":\"x\",\"N\":-0,\"Any\":{\"a\":[1,\"b\",null]}}"),
			    "{\"Text\":\"x\",\"N\":7,\"Any\":{\"a\":[1,\"b\",null]}}");
	assert_string_equal(told(&f, "Agent.Read", &echo_shape, "{\"N\":5}"),
			    "{\"Text\":\"-\",\"N\":5}");
	assert_string_equal(told(&f, "Agent.Echo", &gob_shape_empty_struct, "{}"),
			    "{\"Text\":\"-\",\"N\":7}");
	finish(&f);
}

TEST(what_is_wrong_is_said_in_gos_words_and_the_connection_lives)
{
	struct fixture f;

	start(&f, &gob_dialect);
	assert_string_equal(told(&f, "Agent.Nope", &echo_shape, "{\"N\":1}"),
			    "rpc: can't find method Agent.Nope");
	assert_string_equal(told(&f, "Age.Echo", &echo_shape, "{\"N\":1}"),
			    "rpc: can't find service Age.Echo");
	assert_string_equal(told(&f, "Plain.Echo", &echo_shape, "{\"N\":1}"),
			    "rpc: can't find service Plain.Echo");
	assert_string_equal(told(&f, "Echo", &echo_shape, "{\"N\":1}"),
			    "rpc: service/method request ill-formed: Echo");
	assert_string_equal(told(&f, "Agent.Echo", &misfit_shape, "{\"N\":\"1\"}"),
			    "gob: wrong type (int) for received field Misfit.N");
	assert_string_equal(told(&f, "Agent.Echo", &gob_shape_string, "\"text\""),
			    "gob: type mismatch in decoder: want struct type main.Echo; got "
			    "non-struct");
	assert_string_equal(told(&f, "Agent.Echo", &gob_shape_any_slice, "[]"),
			    "gob: type mismatch in decoder: want struct type main.Echo; got "
			    "non-struct");
	assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{\"N\":-1}"), "n is negative");
	assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{\"N\":1}"),
			    "{\"Text\":\"-\",\"N\":1}");
	finish(&f);
}

TEST(an_answer_that_is_not_of_the_replys_shape_is_an_error)
{
	struct fixture f;

	start(&f, &gob_dialect);
	log_set_level(LOG_LEVEL_ERR);
	assert_non_null(strstr(told(&f, "Agent.Wrong", &echo_shape, "{}"), "Echo"));
	assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{}"), "{\"Text\":\"-\",\"N\":7}");
	finish(&f);
}

TEST(what_is_said_again_is_said_in_full)
{
	struct fixture f;

	start(&f, &gob_dialect);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{}"),
				    "{\"Text\":\"-\",\"N\":7}");
		assert_string_equal(told(&f, "Agent.Read", &echo_shape, "{}"),
				    "{\"Text\":\"-\",\"N\":7}");
		assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{\"N\":8}"),
				    "{\"Text\":\"-\",\"N\":8}");
		assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{\"Any\":[\"x\"]}"),
				    "{\"Text\":\"-\",\"N\":7,\"Any\":[\"x\"]}");
		assert_string_equal(told(&f, "Agent.Nope", &echo_shape, "{}"),
				    "rpc: can't find method Agent.Nope");
	}
	finish(&f);
}

static void finish_later(unsigned i)
{
	struct json *j = call_result(later[i]);

	json_begin_object(j);
	json_member_int(j, "N", i + 1);
	json_end_object(j);
	(void)call_reply(later[i]);
}

static void wait_for_later(struct fixture *f, unsigned n)
{
	while (n_later < n)
		assert_true(world_turn(&f->world, NULL));
}

TEST(calls_are_answered_as_they_finish)
{
	const struct dialect *both[] = {&gob_dialect, &any_dialect};
	struct fixture f;

	for (int i = 0; i < 2; i++) {
		start(&f, both[i]);
		ask(&f, "Agent.Later", 1, &echo_shape, "{}");
		ask(&f, "Agent.Later", 2, &echo_shape, "{}");
		ask(&f, "Agent.Echo", 3, &echo_shape, "{}");
		flush(&f);
		assert_string_equal(answer(&f, 3), "{\"Text\":\"-\",\"N\":7}");
		finish_later(1);
		assert_string_equal(answer(&f, 2), "{\"N\":2}");
		finish_later(0);
		assert_string_equal(answer(&f, 1), "{\"N\":1}");
		finish(&f);
	}
}

TEST(what_runs_is_answered_after_a_half_close)
{
	struct fixture f;

	start(&f, &gob_dialect);
	ask(&f, "Agent.Later", 1, &echo_shape, "{}");
	ask(&f, "Agent.Later", 2, &echo_shape, "{}");
	flush(&f);
	shutdown(f.client.fd, SHUT_WR);
	wait_for_later(&f, 2);
	world_settle(&f.world);
	finish_later(1);
	assert_string_equal(answer(&f, 2), "{\"N\":2}");
	finish_later(0);
	assert_string_equal(answer(&f, 1), "{\"N\":1}");
	assert_true(dialer_wait_eof(&f.client, &f.world));
	finish(&f);
}

TEST(a_client_may_leave_while_its_calls_run)
{
	struct fixture f;

	start(&f, &gob_dialect);
	ask(&f, "Agent.Later", 1, &echo_shape, "{}");
	ask(&f, "Agent.Later", 2, &echo_shape, "{}");
	flush(&f);
	wait_for_later(&f, 2);
	close(f.client.fd);
	f.client.fd = -1;
	while (f.world.server->n_clients > 0)
		assert_true(world_turn(&f.world, NULL));
	finish_later(0);
	finish_later(1);
	assert_int_equal(f.world.server->n_calls, 0);
	finish(&f);
}

TEST(what_is_no_stream_is_closed_without_an_answer)
{
	static const struct text garbage[] = {
		{"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n",
		 sizeof("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n") - 1},
		{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		 sizeof("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") - 1},
		{"\x03\x04\x00\x06",
		 sizeof("\x03\x04\x00\x06") - 1}, /* an int in the place of a header */
		{"\xf7\x01\x02", sizeof("\xf7\x01\x02") - 1},
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		start(&f, &gob_dialect);
		assert_true(dialer_send_n(&f.client, &f.world, garbage[i].data, garbage[i].len));
		shutdown(f.client.fd, SHUT_WR);
		assert_true(dialer_wait_eof(&f.client, &f.world));
		assert_int_equal(f.client.in.len, 0);
		finish(&f);
	}
}

TEST(a_thousand_calls_at_once_are_all_answered)
{
	struct fixture f;
	struct netrpc_message m;

	start(&f, &gob_dialect);
	for (uint64_t i = 1; i <= 1000; i++)
		ask(&f, "Agent.Later", i, &echo_shape, "{}");
	flush(&f);
	/* No more at a time than one connection may have. */
	for (unsigned i = 0; i < 1000; i++) {
		wait_for_later(&f, i + 1);
		world_settle(&f.world);
		assert_true(n_later - i <= default_limits.waiting);
		finish_later(i);
		next_answer(&f, &m);
		assert_int_equal(m.seq, i + 1);
		assert_int_equal(m.error.len, 0);
		arena_reset(&f.arena);
	}
	finish(&f);
}

TEST(more_calls_than_the_server_takes_are_refused)
{
	struct limits limits = default_limits;
	struct fixture f;

	limits.calls = 2;
	start_with(&f, &gob_dialect, &limits);
	for (uint64_t i = 1; i <= 3; i++)
		ask(&f, "Agent.Later", i, &echo_shape, "{}");
	flush(&f);
	assert_string_equal(answer(&f, 3), "too many calls in flight (limit 2)");
	finish_later(0);
	assert_string_equal(answer(&f, 1), "{\"N\":1}");
	finish(&f);
}

TEST(the_same_row_answers_json)
{
	static const char request[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"Agent.Echo\",\"params\":{\"N\":1},\"id\":1}\n";
	static const char want[] = "{\"jsonrpc\":\"2.0\",\"result\":{\"Text\":\"-\",\"N\":1,"
				   "\"Any\":null},\"id\":1}\n";
	struct fixture f;

	start(&f, &any_dialect);
	assert_true(dialer_send_n(&f.client, &f.world, request, sizeof(request) - 1));
	assert_true(dialer_wait(&f.client, &f.world, sizeof(want) - 1));
	assert_memory_equal(f.client.in.data, want, sizeof(want) - 1);
	finish(&f);
}

TEST(notifications_do_not_reach_go)
{
	struct fixture f;
	unsigned n = 1;

	start(&f, &gob_dialect);
	told(&f, "Agent.Echo", &echo_shape, "{}");
	assert_int_equal(server_notify_all(f.world.server, TEXT("shout"), TEXT("[1]"), &n), 0);
	assert_int_equal(n, 0);
	assert_string_equal(told(&f, "Agent.Echo", &echo_shape, "{}"), "{\"Text\":\"-\",\"N\":7}");
	finish(&f);
}
