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

struct large_in {
	int64_t n;
};

static const struct field large_fields[] = {
	{.name = "n", .type = FIELD_INT, .required = true, .offset = offsetof(struct large_in, n)},
};

/* So many bytes of text, of which half stood in the arena first; with a newline, which only white
 * space may be. */
static struct done handle_large(struct call *c)
{
	const struct large_in *in = c->in;
	char *text = arena_alloc(&c->arena, (size_t)in->n / 2);
	struct json *j;

	if (!text)
		return call_fail(c, -ENOMEM);
	memset(text, 'x', (size_t)in->n / 2);
	j = call_result(c);
	json_begin_array(j);
	for (int i = 0; i < 2; i++)
		json_text(j, (struct text) {text, (size_t)in->n / 2});
	json_raw(j, "\n1", 2);
	json_end_array(j);
	return call_reply(c);
}

static const struct method methods[] = {
	{.name = "large",
	 .fields = large_fields,
	 .n_fields = 1,
	 .in_size = sizeof(struct large_in),
	 .where = READER,
	 .handle = handle_large},
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
	.message_max = 4 << 20,
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

static void join(struct world *w, struct dialer *c)
{
	assert_int_equal(dialer_init(c, w), 0);
}

static void say(struct world *w, struct dialer *c, const char *text)
{
	assert_true(dialer_send_n(c, w, text, strlen(text)));
	world_settle(w);
}

static void say_blanks(struct world *w, struct dialer *c, size_t n)
{
	char *blanks = malloc(n);

	memset(blanks, ' ', n);
	assert_true(dialer_send_n(c, w, blanks, n));
	free(blanks);
	world_settle(w);
}

static struct client *last_client(const struct world *w)
{
	return list_entry(w->server->clients.prev, struct client, link);
}

static void expect_pong(struct world *w, struct dialer *c)
{
	static const char pong[] = "{\"jsonrpc\":\"2.0\",\"result\":\"pong\",\"id\":1}\n";

	assert_true(dialer_wait(c, w, sizeof(pong) - 1));
	assert_memory_equal(c->in.data, pong, sizeof(pong) - 1);
	buf_consume(&c->in, sizeof(pong) - 1);
}

static void expect_cut(struct world *w, struct dialer *c, const char *word)
{
	assert_true(dialer_wait_eof(c, w));
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

static void begin(struct world *w, struct dialer *c, unsigned how)
{
	assert_true(dialer_send_n(c, w, begun[how].head, begun[how].len));
	world_settle(w);
}

TEST(what_is_half_sent_is_counted_while_it_is)
{
	struct dialer c[N_BEGUN];
	struct world w;

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
		dialer_done(&c[i]);
	world_settle(&w);
	assert_int_equal(w.server->input_held, 0);
	assert_true(list_empty(&w.server->inputs));
	world_done(&w);
}

TEST(the_largest_and_slowest_are_cut_first)
{
	struct limits limits = default_limits;
	struct dialer large, small, next;
	struct world w;

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

		expect_cut(&w, &large, "incomplete messages use more than 1000000 bytes of memory");
		assert_in_range(w.server->input_held, 500000, 500200);
		say(&w, &small, ",\"id\":1}\n");
		expect_pong(&w, &small);
		dialer_done(&large);
		dialer_done(&small);
		dialer_done(&next);
		world_done(&w);
	}
}

TEST(what_is_cut_while_a_call_runs_ends_behind_its_answer)
{
	struct limits limits = default_limits;
	struct dialer c;
	struct world w;

	limits.total_input_bytes = 100;
	start(&w, &limits);
	join(&w, &c);
	say(&w, &c, "{\"jsonrpc\":\"2.0\",\"method\":\"later\",\"id\":1}\n{\"a\":\"");
	say_blanks(&w, &c, 200);
	assert_int_equal(w.server->input_held, 0);
	dialer_read(&c);
	assert_int_equal(c.in.len, 0);
	json_str(call_result(waiting), "pong");
	(void)call_reply(waiting);
	expect_pong(&w, &c);
	assert_true(dialer_wait_eof(&c, &w));
	dialer_done(&c);
	world_done(&w);
}

/* ---- time ---- */

TEST(a_message_that_does_not_go_on_is_cut)
{
	struct dialer c;
	struct world w;

	start(&w, &default_limits);
	for (unsigned i = 0; i < 2; i++) {
		struct client *s;

		join(&w, &c);
		s = last_client(&w);
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
		expect_cut(&w, &c, "received fewer than 16384 bytes");
		dialer_done(&c);
	}
	world_done(&w);
}

TEST(time_runs_for_one_message_not_for_two)
{
	struct client *s;
	struct dialer c;
	struct world w;

	start(&w, &default_limits);
	join(&w, &c);
	s = last_client(&w);
	say(&w, &c, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"");
	s->deadline_ms = 1;
	/* The first is done and the next begun: that has a time of its own. */
	say(&w, &c, ",\"id\":1}\n{\"jsonrpc\"");
	assert_true(s->deadline_ms > 1);
	expect_pong(&w, &c);
	say(&w, &c, ":\"2.0\",\"method\":\"ping\",\"id\":1}\n");
	expect_pong(&w, &c);
	assert_true(list_empty(&s->deadline_link));
	dialer_done(&c);
	world_done(&w);
}

/* ---- answers that nobody reads ---- */

enum { LARGE = 1 << 20, ROOM = 8 << 20, N_GREEDY = 40 };

#define ASK_LARGE "{\"jsonrpc\":\"2.0\",\"method\":\"large\",\"params\":{\"n\":1048576},\"id\":1}"

static struct limits tight(void)
{
	struct limits limits = default_limits;

	limits.total_queue_bytes = ROOM;
	return limits;
}

/* Everything is done that can be: all calls have answered, or wait for room. */
static void wait_quiet(struct world *w)
{
	unsigned n;

	do {
		n = 0;
		/* Whoever is slow here is the machine: nobody shall be cut for that. */
		timer_stop(w->server->parked_clock);
		world_settle(w);
		list_for_each (at, following, &w->server->parked)
			n++;
		if (w->server->n_calls > n)
			assert_true(world_turn(w, NULL));
	} while (w->server->n_calls > n);
}

static unsigned n_parked(const struct world *w)
{
	unsigned n = 0;

	list_for_each (at, following, &w->server->parked)
		n++;
	return n;
}

enum { WHOLE = LARGE + sizeof("{\"jsonrpc\":\"2.0\",\"result\":[\"\",\"\",\n1],\"id\":1}") - 1 };

/* A line, in which no other newline stands. */
static void check_large(struct dialer *c)
{
	assert_int_equal(c->in.len, WHOLE + 1);
	assert_ptr_equal(memchr(c->in.data, '\n', c->in.len), c->in.data + WHOLE);
	assert_memory_equal(c->in.data + WHOLE - 11, " 1],\"id\":1}", 11);
}

/* All of them read, so that nobody holds up the others. */
static void read_all(struct world *w, struct dialer *c)
{
	unsigned n = 0;

	while (n < N_GREEDY) {
		world_settle(w);
		n = 0;
		for (unsigned i = 0; i < N_GREEDY; i++) {
			dialer_read(&c[i]);
			n += c[i].in.len > WHOLE;
			assert_false(c[i].eof);
		}
		if (n < N_GREEDY)
			assert_true(world_turn(w, NULL));
	}
}

static void ask_for_large(struct world *w, struct dialer *c)
{
	for (unsigned i = 0; i < N_GREEDY; i++) {
		join(w, &c[i]);
		say(w, &c[i], ASK_LARGE "\n");
	}
	wait_quiet(w);
}

static void greed(struct world *w, struct dialer *c)
{
	const struct limits limits = tight();

	start(w, &limits);
	ask_for_large(w, c);
}

TEST(a_lower_limit_applies_at_once)
{
	const struct limits limits = tight();
	struct dialer c[N_GREEDY];
	struct world w;

	start(&w, &default_limits);
	server_set_limits(w.server, &limits);
	ask_for_large(&w, c);
	assert_in_range(room_used(&w.server->room), 2 * LARGE, ROOM);
	assert_in_range(n_parked(&w), N_GREEDY - ROOM / LARGE, N_GREEDY - 2);
	for (unsigned i = 0; i < N_GREEDY; i++)
		dialer_done(&c[i]);
	wait_quiet(&w);
	world_done(&w);
}

TEST(answers_that_nobody_reads_are_bounded_before_they_are_made)
{
	struct dialer c[N_GREEDY], other;
	struct world w;

	greed(&w, c);
	assert_in_range(room_used(&w.server->room), 2 * LARGE, ROOM);
	assert_in_range(n_parked(&w), N_GREEDY - ROOM / LARGE, N_GREEDY - 2);
	/* Beside them what is short is made on a thread as ever. */
	join(&w, &other);
	say(&w, &other,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"large\",\"params\":{\"n\":100000},"
	    "\"id\":1}\n");
	assert_true(dialer_wait(&other, &w, 100000));
	for (unsigned i = 0; i < N_GREEDY; i++)
		dialer_done(&c[i]);
	dialer_done(&other);
	wait_quiet(&w);
	assert_int_equal(n_parked(&w), 0);
	assert_int_equal(room_used(&w.server->room), 0);
	world_done(&w);
}

TEST(who_waits_for_room_is_served_when_others_read)
{
	struct dialer c[N_GREEDY];
	struct world w;

	greed(&w, c);
	read_all(&w, c);
	for (unsigned i = 0; i < N_GREEDY; i++)
		check_large(&c[i]);
	wait_quiet(&w);
	assert_int_equal(room_used(&w.server->room), 0);
	assert_false(atomic_load(&w.server->room.closed));
	for (unsigned i = 0; i < N_GREEDY; i++)
		dialer_done(&c[i]);
	world_done(&w);
}

TEST(who_waits_for_room_is_refused_in_the_end)
{
	struct dialer c[N_GREEDY];
	struct world w;

	greed(&w, c);
	w.server->opts.limits.room_wait_ms = 0;
	timer_repeat(w.server->parked_clock, 1);
	/* The last has waited for least. */
	assert_true(dialer_wait(&c[N_GREEDY - 1], &w, 20));
	assert_non_null(
		memmem(c[N_GREEDY - 1].in.data, c[N_GREEDY - 1].in.len, "try again later", 15));
	assert_int_equal(n_parked(&w), 0);
	say(&w, &c[N_GREEDY - 1], "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n");
	for (unsigned i = 0; i < N_GREEDY; i++)
		dialer_done(&c[i]);
	world_done(&w);
}

TEST(a_stop_does_not_wait_for_room)
{
	struct dialer c[N_GREEDY];
	struct world w;

	greed(&w, c);
	assert_true(n_parked(&w) > 0);
	server_stop(w.server);
	assert_int_equal(n_parked(&w), 0);
	for (unsigned i = 0; i < N_GREEDY; i++)
		dialer_done(&c[i]);
	world_settle(&w);
	world_done(&w);
}

TEST(long_answers_are_whole_in_every_framing)
{
	static const char ask[] = ASK_LARGE;
	static const char batch[] = "[" ASK_LARGE "," ASK_LARGE "]";
	const struct {
		const char *text;
		size_t len;
	} asks[] = {{ask, 1}, {batch, 2}};
	struct dialer c;
	struct world w;

	start(&w, &default_limits);
	for (unsigned i = 0; i < 2; i++) {
		size_t n = asks[i].len * WHOLE + (i == 1 ? 3 : 0);
		unsigned char head[4] = {0, 0, 0, (unsigned char)strlen(asks[i].text)};
		char line[100];

		/* a frame */
		join(&w, &c);
		assert_true(dialer_send_n(&c, &w, (char *)head, 4));
		say(&w, &c, asks[i].text);
		assert_true(dialer_wait(&c, &w, n + 4));
		assert_int_equal(c.in.len, n + 4);
		assert_int_equal((unsigned char)c.in.data[1] << 16 |
					 (unsigned char)c.in.data[2] << 8 |
					 (unsigned char)c.in.data[3],
				 n);
		dialer_done(&c);
		/* a response */
		join(&w, &c);
		snprintf(line, sizeof(line),
			 "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
			 strlen(asks[i].text));
		say(&w, &c, line);
		say(&w, &c, asks[i].text);
		assert_true(dialer_wait(&c, &w, n));
		snprintf(line, sizeof(line), "Content-Length: %zu\r\n", n);
		assert_non_null(memmem(c.in.data, 300, line, strlen(line)));
		while (!memmem(c.in.data + c.in.len - 3, 3, i == 0 ? "}" : "}]", i + 1))
			assert_true(dialer_wait(&c, &w, c.in.len + 1));
		dialer_done(&c);
	}
	world_done(&w);
}
