/*
 * What clients that send half a message, or ask for much and do not read, may cost all together:
 * by the bytes that are held, not by the clock.
 */
#include "check.h"

#include "../call_world.h"

/* ---- the methods ---- */

static struct done handle_ping(struct call *c)
{
	json_str(call_result(c), "pong");
	return call_reply(c);
}

static struct call *waiting;

static struct done handle_later(struct call *c)
{
	waiting = c;
	return call_later(c, NULL, NULL);
}

static const struct method methods[] = {
	{.name = "later", .handle = handle_later, .flags = METHOD_LATER},
	{.name = "ping", .handle = handle_ping},
};

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_ONLY, 0},
	[REFUSE_LIMIT] = {-32003, "Limit", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32004, "Too large", WORDS_BOTH, 0},
	[REFUSE_TIMEOUT] = {-32007, "Timed out", WORDS_TEXT, 0},
};

static const char *const paths[] = {"/", NULL};

static const struct dialect any = {
	.name = "test",
	.message_max = 1 << 20,
	.errors = errors,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.http_paths = paths,
	.framing = SPEAKS_ANY,
};

/* ---- a server and its clients ---- */

static void start(struct world *w, const struct limits *limits)
{
	const struct server_opts opts = {.limits = *limits, .workers = {.n_readers = 2}};

	assert_int_equal(world_init(w, &any, &opts), 0);
}

static void join(struct world *w, struct client *c)
{
	assert_int_equal(client_init(c, w), 0);
}

static void say(struct world *w, struct client *c, const char *text)
{
	assert_true(client_send_n(c, w, text, strlen(text)));
	world_settle(w);
}

static void say_blanks(struct world *w, struct client *c, size_t n)
{
	char *blanks = malloc(n);

	memset(blanks, ' ', n);
	assert_true(client_send_n(c, w, blanks, n));
	free(blanks);
	world_settle(w);
}

static struct session *last_session(const struct world *w)
{
	return list_entry(w->server->sessions.prev, struct session, link);
}

static void expect_pong(struct world *w, struct client *c)
{
	static const char pong[] = "{\"jsonrpc\":\"2.0\",\"result\":\"pong\",\"id\":1}\n";

	assert_true(client_wait(c, w, sizeof(pong) - 1));
	assert_memory_equal(c->in.data, pong, sizeof(pong) - 1);
	buf_consume(&c->in, sizeof(pong) - 1);
}

static void expect_cut(struct world *w, struct client *c, const char *word)
{
	assert_true(client_wait_eof(c, w));
	assert_non_null(memmem(c->in.data, c->in.len, word, strlen(word)));
}

/* ---- half-sent messages ---- */

/* How each framing begins a message of which half a megabyte is to come. */
static const struct {
	const char *head;
	size_t len;
} begun[] = {
	{"{\"a\":\"", 6},
	{"\0\x0f\xff\xff{", 5},
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", 53},
	{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", 64},
};

enum { N_BEGUN = sizeof(begun) / sizeof(begun[0]) };

static void begin(struct world *w, struct client *c, unsigned how)
{
	assert_true(client_send_n(c, w, begun[how].head, begun[how].len));
	world_settle(w);
}

static void what_is_half_sent_is_counted_while_it_is(void **state)
{
	struct client c[N_BEGUN];
	struct world w;

	(void)state;
	start(&w, &default_limits);
	for (unsigned i = 0; i < N_BEGUN; i++) {
		size_t before = w.server->input_held;

		join(&w, &c[i]);
		begin(&w, &c[i], i);
		say_blanks(&w, &c[i], 300000);
		assert_in_range(w.server->input_held - before, 300000, 300200);
	}
	say(&w, &c[0], "\"}\n");
	assert_in_range(w.server->input_held, 900000, 900600);
	for (unsigned i = 0; i < N_BEGUN; i++)
		client_done(&c[i]);
	world_settle(&w);
	assert_int_equal(w.server->input_held, 0);
	assert_true(list_empty(&w.server->inputs));
	world_done(&w);
}

static void the_largest_and_slowest_are_cut_first(void **state)
{
	struct limits limits = default_limits;
	struct client large, small, next;
	struct world w;

	(void)state;
	limits.total_input_bytes = 1000000;
	for (unsigned i = 0; i < N_BEGUN; i++) {
		start(&w, &limits);
		join(&w, &large);
		begin(&w, &large, i);
		say_blanks(&w, &large, 600000);
		join(&w, &small);
		say(&w, &small, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"");
		join(&w, &next);
		begin(&w, &next, i);
		say_blanks(&w, &next, 500000);

		expect_cut(&w, &large, "1000000 bytes of messages wait for their rest");
		assert_in_range(w.server->input_held, 500000, 500200);
		say(&w, &small, ",\"id\":1}\n");
		expect_pong(&w, &small);
		client_done(&large);
		client_done(&small);
		client_done(&next);
		world_done(&w);
	}
}

static void what_is_cut_while_a_call_runs_ends_behind_its_answer(void **state)
{
	struct limits limits = default_limits;
	struct client c;
	struct world w;

	(void)state;
	limits.total_input_bytes = 100;
	start(&w, &limits);
	join(&w, &c);
	say(&w, &c, "{\"jsonrpc\":\"2.0\",\"method\":\"later\",\"id\":1}\n{\"a\":\"");
	say_blanks(&w, &c, 200);
	assert_int_equal(w.server->input_held, 0);
	client_read(&c);
	assert_int_equal(c.in.len, 0);
	json_str(call_result(waiting), "pong");
	(void)call_reply(waiting);
	expect_pong(&w, &c);
	assert_true(client_wait_eof(&c, &w));
	client_done(&c);
	world_done(&w);
}

/* ---- time ---- */

static void a_message_that_does_not_go_on_is_cut(void **state)
{
	struct client c;
	struct world w;

	(void)state;
	start(&w, &default_limits);
	for (unsigned i = 0; i < 2; i++) {
		struct session *s;

		join(&w, &c);
		s = last_session(&w);
		begin(&w, &c, i);
		assert_false(list_empty(&s->deadline_link));
		/* It has its time again for as many bytes as must come ... */
		say_blanks(&w, &c, 16 << 10);
		s->deadline_ms = 0;
		while (s->deadline_ms == 0)
			assert_true(world_turn(&w, &c));
		assert_false(list_empty(&s->deadline_link));
		/* ... and none for one less. */
		say_blanks(&w, &c, (16 << 10) - 1);
		s->deadline_ms = 0;
		expect_cut(&w, &c, "16384 bytes of a message");
		client_done(&c);
	}
	world_done(&w);
}

static void time_runs_for_one_message_not_for_two(void **state)
{
	struct session *s;
	struct client c;
	struct world w;

	(void)state;
	start(&w, &default_limits);
	join(&w, &c);
	s = last_session(&w);
	say(&w, &c, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"");
	s->deadline_ms = 1;
	/* The first is done and the next begun: that has a time of its own. */
	say(&w, &c, ",\"id\":1}\n{\"jsonrpc\"");
	assert_true(s->deadline_ms > 1);
	expect_pong(&w, &c);
	say(&w, &c, ":\"2.0\",\"method\":\"ping\",\"id\":1}\n");
	expect_pong(&w, &c);
	assert_true(list_empty(&s->deadline_link));
	client_done(&c);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_half_sent_is_counted_while_it_is),
		cmocka_unit_test(the_largest_and_slowest_are_cut_first),
		cmocka_unit_test(what_is_cut_while_a_call_runs_ends_behind_its_answer),
		cmocka_unit_test(a_message_that_does_not_go_on_is_cut),
		cmocka_unit_test(time_runs_for_one_message_not_for_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
