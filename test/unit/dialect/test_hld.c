/*
 * What hld's subscribers are told: its words, its filters, its queue. A server without a listener
 * over a real event log; clients on socket pairs, all on the loop of the test.
 */
#include "stage.h"

#include <inttypes.h>

#include "../call_world.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "dialect/hld/hld.h"
#include "engine/event/event.h"

struct place {
	struct fixture *f;
	struct stage stage; /* only for its trailer */
	struct hld_settings settings;
	struct world world;
	struct fake_workers fake;
	bool closed; /* the threads end: they take nothing any more */
};

static int submit(void *arg, struct work *work, bool writes)
{
	const struct place *p = arg;

	if (p->closed)
		return -ECANCELED;
	return server_submit(p->world.server, work, writes ? WRITER : READER);
}

static void open_place(struct place *p, void **state, unsigned heartbeat_ms)
{
	struct events_opts events;
	struct server_opts opts = {
		.limits = default_limits,
		.workers = {.n_readers = N_READERS,
			    .begin = engine_begin,
			    .commit = engine_commit,
			    .enter = engine_enter,
			    .leave = engine_leave,
			    .trailer = stage_trailer,
			    .trailer_arg = &p->stage},
		.version = "1",
	};

	*p = (struct place) {.f = *state, .settings = {.heartbeat_ms = heartbeat_ms}};
	p->stage.f = p->f;
	p->fake = (struct fake_workers) {.submit = submit, .arg = p};
	opts.engine = p->f->engine;
	opts.workers.arg = p->f->engine;
	assert_int_equal(world_init(&p->world, &hld_dialect, &opts), 0);
	p->world.endpoint->settings = &p->settings;
	events = (struct events_opts) {.store = p->f->engine->store,
				       .loop = p->world.loop,
				       .workers = fake_workers(&p->fake)};
	assert_int_equal(events_start(&events, &p->f->engine->events), 0);
}

/* The log has timers on the loop, and subscribers leave it when their sessions close. */
static void close_place(struct place *p)
{
	p->closed = true;
	server_free(p->world.server);
	p->world.server = NULL;
	engine_close(p->f->engine);
	p->f->engine = NULL;
	world_done(&p->world);
}

/* ---- events ---- */

/* Some that come in one batch. */
struct burst {
	struct work work;
	struct engine *engine;
	const char *type;
	struct text session;
	int first;
	int n;
	size_t bytes; /* more, of each */
	bool done;
};

static void add_one(const struct burst *b, int number)
{
	struct event_new e = {.type = b->type, .session = b->session, .run = TEXT("run")};
	struct arena a;
	struct object_builder data;
	char *more;

	arena_init(&a, 1 << 20);
	more = arena_zalloc(&a, b->bytes + 1);
	memset(more, 'x', b->bytes);
	object_begin(&data, &a);
	object_text(&data, "session_id", b->session);
	object_int(&data, "number", number);
	object_text(&data, "text", (struct text) {.data = more, .len = b->bytes});
	e.data = data.root;
	assert_int_equal(event_add(b->engine->events, &e), 0);
	arena_done(&a);
}

static int burst_run(struct work *work, int lane)
{
	const struct burst *b = list_entry(work, struct burst, work);

	for (int i = 0; i < b->n; i++)
		add_one(b, b->first + i);
	return 0;
}

static void burst_finished(struct work *work, int result)
{
	assert_int_equal(result, 0);
	list_entry(work, struct burst, work)->done = true;
}

static void tell(struct place *p, const char *type, struct text session, int first, int n,
		 size_t bytes)
{
	struct burst b = {
		.work = {.run = burst_run, .finished = burst_finished},
		.engine = p->f->engine,
		.type = type,
		.session = session,
		.first = first,
		.n = n,
		.bytes = bytes,
	};
	struct dialer nobody = {.fd = -1};

	assert_int_equal(submit(p, &b.work, true), 0);
	while (!b.done)
		assert_true(world_turn(&p->world, &nobody));
	world_settle(&p->world);
}

/* ---- clients ---- */

static void say(struct place *p, struct dialer *c, const char *line)
{
	assert_true(dialer_send_n(c, &p->world, line, strlen(line)));
}

/* The next line, in `out`; false at the end. */
static bool next_line(struct place *p, struct dialer *c, char *out, size_t size)
{
	const char *end;
	size_t n;

	for (;;) {
		end = c->in.len > 0 ? memchr(c->in.data, '\n', c->in.len) : NULL;
		if (end)
			break;
		if (!dialer_wait(c, &p->world, c->in.len + 1))
			return false;
	}
	n = (size_t)(end - c->in.data);
	snprintf(out, size, "%.*s", (int)n, c->in.data);
	buf_consume(&c->in, n + 1);
	return true;
}

static void subscribe(struct place *p, struct dialer *c, const char *params)
{
	char line[300];

	assert_int_equal(dialer_init(c, &p->world), 0);
	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"Subscribe\",\"params\":%s,\"id\":\"s\"}\n",
		 params);
	say(p, c, line);
	assert_true(next_line(p, c, line, sizeof(line)));
	assert_non_null(
		strstr(line, "{\"jsonrpc\":\"2.0\",\"result\":{\"subscription_id\":\"sub_"));
	assert_non_null(strstr(line, "\"message\":\"Subscription established. Waiting for "
				     "events...\"},\"id\":\"s\"}"));
}

static int number_in(const char *line)
{
	const char *at = strstr(line, "\"number\":");

	assert_non_null(at);
	return atoi(at + strlen("\"number\":"));
}

static int next_number(struct place *p, struct dialer *c)
{
	char line[400];

	assert_true(next_line(p, c, line, sizeof(line)));
	return number_in(line);
}

static void assert_quiet(struct place *p, struct dialer *c)
{
	world_settle(&p->world);
	dialer_read(c);
	assert_int_equal(c->in.len, 0);
	assert_false(c->eof);
}

/* ---- words ---- */

static struct text packed(struct fixture *f, const struct value *v)
{
	struct buf out;
	struct text t;

	buf_init(&out, 4096);
	value_pack(&out, v);
	t = (struct text) {.data = arena_copy(&f->arena, out.data, out.len), .len = out.len};
	buf_done(&out);
	assert_non_null(t.data);
	return t;
}

FIXTURE(setup, teardown);

TEST(an_event_is_worded_with_its_names_in_order)
{
	struct fixture *f = *state;
	struct object_builder inner, data;
	struct event e = {.type = TEXT("approval.requested"), .time_ms = 1750939200500};
	struct buf out;

	object_begin(&inner, &f->arena);
	object_text(&inner, "path", TEXT("<a&b>"));
	object_int(&inner, "line", 3);
	object_begin(&data, &f->arena);
	object_text(&data, "type", TEXT("function_call"));
	object_text(&data, "approval_id", TEXT("a\xe2\x80\xa8"));
	object_null(&data, "session_id");
	object_value(&data, "tool_input", inner.root);
	object_int(&data, "count", 1);
	buf_init(&out, 4096);
	e.data = packed(f, data.root);
	hld_word_event(&out, &e);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data,
			    "{\"jsonrpc\":\"2.0\",\"result\":{\"event\":{\"type\":\"new_approval\","
			    "\"timestamp\":\"2025-06-26T12:00:00.5Z\",\"data\":{\"approval_id\":"
			    "\"a\\u2028\",\"count\":1,\"tool_input\":{\"line\":3,\"path\":"
			    "\"\\u003ca\\u0026b\\u003e\"},\"type\":\"function_call\"}}}}");
	buf_done(&out);
}

TEST(what_hld_does_not_know_is_not_told)
{
	struct fixture *f = *state;
	struct object_builder data;
	struct event e = {.type = TEXT("task.queued")};
	struct buf out;

	buf_init(&out, 4096);
	hld_word_event(&out, &e);
	assert_int_equal(out.len, 0);
	object_begin(&data, &f->arena);
	object_text(&data, "event_type", text_of(session_event_type_name(SESSION_RAW)));
	e = (struct event) {.type = TEXT("session.event"), .data = packed(f, data.root)};
	if (session_event_type_name(SESSION_RAW))
		hld_word_event(&out, &e);
	assert_int_equal(out.len, 0);
	buf_done(&out);
}

TEST(time_is_as_go_writes_it)
{
	struct buf out;
	struct json j;

	buf_init(&out, 400);
	j = json_writer(&out);
	json_begin_object(&j);
	hld_write_time(&j, "a", 1750939200000);
	hld_write_time(&j, "b", 1750939200120);
	hld_write_time(&j, "c", 1750939210123);
	hld_write_seconds(&j, "d", 1750939210123);
	json_end_object(&j);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, "{\"a\":\"2025-06-26T12:00:00Z\",\"b\":\"2025-06-26T12:00:00."
				      "12Z\",\"c\":\"2025-06-26T12:00:10.123Z\",\"d\":\"2025-06-26T"
				      "12:00:10Z\"}");
	buf_done(&out);
}

/* ---- who is told what ---- */

TEST(filters_hold_together)
{
	struct place p;
	struct dialer all, one, approvals, none;

	open_place(&p, state, 60000);
	subscribe(&p, &all, "null");
	subscribe(&p, &one, "{\"session_id\":\"s1\",\"run_id\":\"\",\"event_types\":[]}");
	subscribe(&p, &approvals,
		  "{\"EVENT_TYPES\":[\"approval_resolved\",\"new_approval\",\"x\"],"
		  "\"session_id\":\"s1\",\"run_id\":\"run\"}");
	subscribe(&p, &none, "{\"event_types\":[\"nothing\"]}");
	tell(&p, "session.status", TEXT("s1"), 1, 1, 0);
	tell(&p, "approval.requested", TEXT("s1"), 2, 1, 0);
	tell(&p, "approval.requested", TEXT("s2"), 3, 1, 0);
	tell(&p, "approval.resolved", (struct text) {0}, 4, 1, 0);
	tell(&p, "task.queued", TEXT("s1"), 5, 1, 0);
	tell(&p, "approval.resolved", TEXT("s1"), 6, 1, 0);
	for (int i = 1; i <= 4; i++)
		assert_int_equal(next_number(&p, &all), i);
	assert_int_equal(next_number(&p, &all), 6);
	assert_int_equal(next_number(&p, &one), 1);
	assert_int_equal(next_number(&p, &one), 2);
	assert_int_equal(next_number(&p, &one), 6);
	assert_int_equal(next_number(&p, &approvals), 2);
	assert_int_equal(next_number(&p, &approvals), 6);
	assert_quiet(&p, &all);
	assert_quiet(&p, &one);
	assert_quiet(&p, &approvals);
	assert_quiet(&p, &none);
	dialer_done(&all);
	dialer_done(&one);
	dialer_done(&approvals);
	dialer_done(&none);
	close_place(&p);
}

TEST(a_connection_that_subscribed_is_the_servers_alone)
{
	struct place p;
	struct dialer c;

	open_place(&p, state, 60000);
	subscribe(&p, &c, "{}");
	say(&p, &c, "{\"jsonrpc\":\"2.0\",\"method\":\"health\",\"id\":1}\nnonsense\n");
	assert_quiet(&p, &c);
	for (int i = 0; i < 40; i++) {
		char many[64 << 10];

		memset(many, 'y', sizeof(many));
		assert_true(dialer_send_n(&c, &p.world, many, sizeof(many)));
	}
	tell(&p, "session.status", TEXT("s"), 7, 1, 0);
	assert_int_equal(next_number(&p, &c), 7);
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	assert_true(dialer_wait_eof(&c, &p.world));
	assert_int_equal(c.in.len, 0);
	dialer_done(&c);
	close_place(&p);
}

TEST(silence_is_broken_by_a_heartbeat)
{
	struct place p;
	struct dialer c;
	char line[200];

	open_place(&p, state, 20);
	subscribe(&p, &c, "{}");
	for (int i = 0; i < 2; i++) {
		assert_true(next_line(&p, &c, line, sizeof(line)));
		assert_string_equal(line, "{\"jsonrpc\":\"2.0\",\"result\":{\"type\":\"heartbeat\","
					  "\"message\":\"Connection alive\"}}");
	}
	dialer_done(&c);
	close_place(&p);
}

/* ---- the queue ---- */

static void read_numbers(struct place *p, struct dialer *c, int first, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(next_number(p, c), first + i);
}

TEST(of_one_that_does_not_read_the_newest_are_dropped_and_counted)
{
	enum { N = 600 };
	struct place p;
	struct dialer stalled, busy, nobody = {.fd = -1};
	const struct endpoint *e;
	int got;

	open_place(&p, state, 60000);
	e = p.world.endpoint;
	subscribe(&p, &stalled, "{}");
	subscribe(&p, &busy, "{}");
	tell(&p, "session.event", TEXT("s"), 0, N, 2000);
	read_numbers(&p, &busy, 0, N);
	/* It has its moment, and then it is cut. */
	while (e->n_dropped == 0)
		assert_true(world_turn(&p.world, &nobody));
	assert_in_range(e->n_dropped, 1, N - HLD_QUEUE);
	got = N - (int)e->n_dropped;
	/* From now on at once. */
	tell(&p, "session.event", TEXT("s"), N, 5, 2000);
	assert_int_equal(e->n_dropped, N - got + 5);
	read_numbers(&p, &busy, N, 5);
	/* What waited is the oldest of them, without a gap. */
	read_numbers(&p, &stalled, 0, got);
	assert_quiet(&p, &stalled);
	/* Who reads again hears again. */
	tell(&p, "session.event", TEXT("s"), N + 5, 3, 2000);
	read_numbers(&p, &stalled, N + 5, 3);
	assert_int_equal(e->n_dropped, N - got + 5);
	dialer_done(&stalled);
	dialer_done(&busy);
	close_place(&p);
}

TEST(who_reads_loses_nothing_of_a_burst)
{
	enum { N = 60 * HLD_QUEUE };
	struct place p;
	struct dialer c, filtered;

	open_place(&p, state, 60000);
	subscribe(&p, &c, "{}");
	subscribe(&p, &filtered, "{\"session_id\":\"t\"}");
	tell(&p, "session.event", TEXT("t"), -1, 1, 0);
	/* Far more than a queue and a socket hold. */
	tell(&p, "session.event", TEXT("s"), 0, N, 500);
	tell(&p, "session.event", TEXT("t"), N, 1, 0);
	read_numbers(&p, &c, -1, N + 2);
	assert_int_equal(next_number(&p, &filtered), -1);
	assert_int_equal(next_number(&p, &filtered), N);
	assert_int_equal(p.world.endpoint->n_dropped, 0);
	dialer_done(&c);
	dialer_done(&filtered);
	close_place(&p);
}

TEST(more_than_is_held_for_anybody_does_no_harm)
{
	enum { N = 400, BYTES = 60000, PIECE = 100 };
	struct place p;
	struct dialer stalled, nobody = {.fd = -1};

	open_place(&p, state, 60000);
	subscribe(&p, &stalled, "{}");
	for (int i = 0; i < N; i += PIECE)
		tell(&p, "session.event", TEXT("s"), i, PIECE, BYTES);
	while (p.world.endpoint->n_dropped == 0)
		assert_true(world_turn(&p.world, &nobody));
	assert_in_range(p.world.endpoint->n_dropped, 1, N - HLD_QUEUE);
	read_numbers(&p, &stalled, 0, HLD_QUEUE);
	dialer_done(&stalled);
	close_place(&p);
}
