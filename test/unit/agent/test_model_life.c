/* A request's life: tried again, too late, cancelled, garbage. */
#include "check.h"

#include <errno.h>

#include "base/clock.h"
#include "model_fixture.h"

#define DATA(json)  "data: " json "\n\n"
#define DELTA(text) DATA("{\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}")
#define STOP        DATA("{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}")
#define DONE        DATA("[DONE]")
#define GOOD        DELTA("good") STOP DONE

FIXTURE(setup, teardown);

/* ---- tried again ---- */

TEST(what_may_pass_is_tried_again)
{
	static const int statuses[] = {408, 409, 425, 429, 500, 502, 503, 504, 529};
	struct fixture *f = *state;

	f->opts.retries = 1;
	make_openai(f);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		afresh(f);
		script(f, (struct step) {.status = statuses[i], .body = "later"});
		answers(f, GOOD);
		assert_int_equal(ask_for(f, hello()), AGENT_DONE);
		assert_string_equal(f->text, "good");
		assert_int_equal(f->n_asked, 2);
	}
}

TEST(what_will_not_pass_is_not_tried_again)
{
	static const int statuses[] = {302, 400, 403, 404, 413, 422, 501};
	struct fixture *f = *state;
	char text[100];

	f->opts.retries = 3;
	make_openai(f);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		afresh(f);
		script(f, (struct step) {.status = statuses[i],
					 .body = "{\"error\":{\"message\":\"no, never\"}}"});
		answers(f, GOOD);
		snprintf(text, sizeof(text), "agent 'm': the provider returned HTTP %d: no, never",
			 statuses[i]);
		fails(f, "ProviderError", text);
		assert_int_equal(f->n_asked, 1);
	}
}

TEST(tries_come_to_an_end)
{
	struct fixture *f = *state;

	f->opts.retries = 2;
	make_openai(f);
	script(f, (struct step) {.status = 503, .body = "{\"detail\":\"overloaded\"}"});
	fails(f, "ProviderUnavailable",
	      "agent 'm': the provider returned HTTP 503: overloaded (tried 3 times)");
	assert_int_equal(f->n_asked, 3);
}

TEST(a_connection_that_closes_is_tried_again)
{
	struct fixture *f = *state;

	f->opts.retries = 1;
	make_openai(f);
	script(f, (struct step) {.ending = REFUSES});
	answers(f, GOOD);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_string_equal(f->text, "good");
	assert_true(f->n_asked >= 2);
	afresh(f);
	script(f, (struct step) {.body = "", .ending = CUT}); /* a head, and no byte */
	answers(f, GOOD);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_string_equal(f->text, "good");
}

TEST(after_the_first_byte_nothing_is_tried_again)
{
	struct fixture *f = *state;

	f->opts.retries = 3;
	make_openai(f);
	script(f, (struct step) {.body = DELTA("part"), .ending = CUT});
	answers(f, GOOD);
	fails(f, "ProviderError", "agent 'm': the connection closed in the middle of the response");
	assert_string_equal(f->text, "part");
	assert_int_equal(f->n_asked, 1);
	afresh(f);
	script(f, (struct step) {.body = "d", .ending = CUT});
	answers(f, GOOD);
	fails(f, "ProviderError", "agent 'm': the connection closed in the middle of the response");
	assert_int_equal(f->n_asked, 1);
}

TEST(nobody_there_is_said_so)
{
	struct fixture *f = *state;

	f->opts.url = "unix:/nonexistent/model.sock";
	f->opts.retries = 1;
	make_openai(f);
	assert_int_equal(ask_for(f, hello()), AGENT_FAILED);
	assert_string_equal(f->end.type, "ProviderUnavailable");
	assert_memory_equal(f->end.text, "agent 'm': cannot reach the provider: ", 38);
	assert_non_null(strstr(f->end.text, " (tried 2 times)"));
}

static uint64_t paused_ms;

static bool is_pausing(const struct agent_turn *t)
{
	return t->n_tries == 1 && !t->fetch && !t->over;
}

TEST(retry_after_is_heeded_up_to_a_minute)
{
	struct fixture *f = *state;

	f->opts.retries = 1;
	make_openai(f);
	script(f, (struct step) {.status = 429, .headers = "Retry-After: 1\r\n", .body = "slow"});
	answers(f, GOOD);
	paused_ms = clock_steady_ms();
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_true(clock_steady_ms() - paused_ms >= 1000);
	afresh(f);
	script(f, (struct step) {
			  .status = 429, .headers = "Retry-After: 3600\r\n", .body = "slow down"});
	answers(f, GOOD);
	fails(f, "ProviderUnavailable",
	      "agent 'm': the provider returned HTTP 429: slow down (retry after 3600 s)");
	assert_int_equal(f->n_asked, 1);
}

TEST(an_error_is_shown_as_far_as_it_is_for_people)
{
	static char page[30000];
	static const struct {
		const char *body;
		const char *said;
	} rows[] = {
		{"{\"error\":{\"message\":\"a\\nb\\u0007c\"}}", ": a b c"},
		{"{\"error\":\"bare\"}", ": bare"},
		{"{\"message\":\"third\"}", ": third"},
		{"{\"object\":\"error\"}", ""},
		{"just words\n", ": just words"},
		{"<html>502</html>", ""},
		{"bad \xff byte", ": bad ? byte"},
		{"", ""},
	};
	struct fixture *f = *state;
	char text[400];

	make_openai(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		afresh(f);
		script(f, (struct step) {.status = 400, .body = rows[i].body});
		snprintf(text, sizeof(text), "agent 'm': the provider returned HTTP 400%s",
			 rows[i].said);
		fails(f, "ProviderError", text);
	}
	memset(page, 'x', sizeof(page) - 1);
	afresh(f);
	script(f, (struct step) {.status = 400, .body = page});
	assert_int_equal(ask_for(f, hello()), AGENT_FAILED);
	assert_in_range(strlen(f->end.text), 200, MODEL_TEXT_MAX - 1);
}

/* ---- too late ---- */

TEST(silence_has_a_limit)
{
	struct fixture *f = *state;

	f->opts.idle_timeout_ms = 120;
	f->opts.retries = 3;
	make_openai(f);
	script(f, (struct step) {.ending = SILENT});
	fails(f, "ProviderTimeout", "agent 'm': no data from the provider for 120 ms");
	assert_int_equal(f->n_asked, 1);
	afresh(f);
	script(f, (struct step) {.body = DELTA("part"), .ending = HANGS});
	fails(f, "ProviderTimeout", "agent 'm': no data from the provider for 120 ms");
	assert_string_equal(f->text, "part");
	afresh(f);
	script(f, (struct step) {.body = DELTA("all") STOP, .ending = HANGS});
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
}

TEST(an_answer_has_a_limit_in_all)
{
	struct fixture *f = *state;

	f->opts.total_timeout_ms = 150;
	f->opts.retries = 3;
	make_openai(f);
	script(f, (struct step) {.body = DELTA("part"), .ending = HANGS});
	fails(f, "ProviderTimeout", "agent 'm': timed out: the response took longer than 150 ms");
	assert_string_equal(f->text, "part");
	assert_int_equal(f->n_asked, 1);
}

TEST(a_connection_has_a_limit_of_its_own)
{
	/* A listener whose queue is full answers nobody. */
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fixture *f = *state;
	static char url[64];
	socklen_t len = sizeof(in);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int others[4];

	assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	for (unsigned i = 0; i < 4; i++) {
		others[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(others[i], (struct sockaddr *)&in, sizeof(in));
	}
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(in.sin_port));
	f->opts.url = url;
	f->opts.connect_timeout_ms = 150;
	f->opts.retries = 1;
	make_openai(f);
	fails(f, "ProviderTimeout",
	      "agent 'm': no connection to the provider within 150 ms (tried 2 times)");
	for (unsigned i = 0; i < 4; i++)
		close(others[i]);
	close(listener);
}

/* ---- garbage ---- */

TEST(garbage_is_named)
{
	static const struct {
		const char *body;
		const char *what;
	} rows[] = {
		{DATA("not json"), NULL},
		{DATA("{\"choices\":[}"), NULL},
		{DATA("{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}"), NULL},
		{DATA("{\"choices\":[{\"delta\":{\"content\":\"\\ud800\"}}]}"), NULL},
		{DATA("[]"), "the response is not a JSON object"},
		{DATA("5"), "the response is not a JSON object"},
		{DATA("{}"), "the response has no choices"},
		{DATA("{\"choices\":{}}"), "the choices are not a list"},
		{DATA("{\"choices\":[3]}"), "a choice is not an object with a message or a delta"},
		{DATA("{\"choices\":[{\"delta\":[]}]}"),
		 "a choice is not an object with a message or a delta"},
		{DATA("{\"choices\":[{\"delta\":{\"content\":3}}]}"), "the content is not text"},
		{DATA("{\"choices\":[{\"delta\":{\"tool_calls\":3}}]}"),
		 "the tool calls are not a list"},
		{DATA("{\"choices\":[{\"delta\":{\"tool_calls\":[3]}}]}"),
		 "a tool call is not an object"},
		{DATA("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":"
		      "\"x\"}}]}}]}") STOP,
		 "a tool call has no name"},
		{"<html>hello</html>", "the response is not an event stream"},
		{": nothing\n\n", "the response is not an event stream"},
	};
	struct fixture *f = *state;
	char text[400];

	f->opts.retries = 2;
	make_openai(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char body[1000];

		afresh(f);
		snprintf(body, sizeof(body), "%s%s", i < 14 ? DELTA("text ") : "", rows[i].body);
		answers(f, body);
		assert_int_equal(ask_for(f, hello()), AGENT_FAILED);
		assert_string_equal(f->end.type, "ProviderError");
		snprintf(text, sizeof(text), "agent 'm': the provider sent an invalid response: %s",
			 rows[i].what ? rows[i].what : "not JSON (");
		if (rows[i].what)
			assert_string_equal(f->end.text, text);
		else
			assert_memory_equal(f->end.text, text, strlen(text));
		assert_string_equal(f->text, i < 14 ? "text " : "");
		assert_int_equal(f->n_asked, 1);
	}
}

TEST(anthropics_garbage_is_named_too)
{
	static const char *const rows[][2] = {
		{DATA("{}"), "an event has no type"},
		{DATA("{\"type\":\"content_block_start\"}"), "a content block has no type"},
		{DATA("{\"type\":\"content_block_delta\",\"delta\":7}"), "a delta has no type"},
		{DATA("{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
		      "\"text\":7}}"),
		 "the content is not text"},
		{"{\"content\":7}", "the response has no content"},
	};
	struct fixture *f = *state;
	char text[400];

	make_anthropic(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		afresh(f);
		answers(f, rows[i][0]);
		snprintf(text, sizeof(text), "agent 'm': the provider sent an invalid response: %s",
			 rows[i][1]);
		fails(f, "ProviderError", text);
	}
}

TEST(an_empty_answer_is_a_failure)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, "");
	fails(f, "ProviderError", "agent 'm': the provider sent an empty response");
	afresh(f);
	answers(f, "\r\n \n");
	fails(f, "ProviderError", "agent 'm': the provider sent an empty response");
}

TEST(a_line_of_ten_megabytes_is_refused)
{
	/* The server may still be sending it when this returns. */
	static char line[10 << 20];
	struct fixture *f = *state;
	size_t len = sizeof(line);

	memset(line, 'x', len);
	memcpy(line, DELTA("before ") "data: ", strlen(DELTA("before ")) + 6);
	make_openai(f);
	script(f, (struct step) {.body = line, .len = len, .piece = 50000});
	fails(f, "ProviderError",
	      "agent 'm': the provider sent an invalid response: a line longer than 4194304 "
	      "bytes");
	assert_string_equal(f->text, "before ");
	afresh(f);
	line[0] = '{';
	script(f, (struct step) {.body = line, .len = len, .piece = 50000});
	fails(f, "ProviderError",
	      "agent 'm': the provider sent an invalid response: the response exceeds its size "
	      "limit");
	afresh(f);
	answers(f, GOOD);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
}

TEST(calls_have_limits)
{
	static char body[16384];
	struct fixture *f = *state;
	size_t n = 0;

	make_openai(f);
	for (unsigned i = 0; i <= AGENT_CALLS_MAX; i++)
		n += (size_t)snprintf(
			body + n, sizeof(body) - n,
			"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%u,"
			"\"id\":\"i%u\",\"function\":{\"name\":\"n\"}}]}}]}\n\n",
			i, i);
	assert_true(n < sizeof(body));
	answers(f, body);
	fails(f, "ProviderError",
	      "agent 'm': the provider sent an invalid response: more than 64 tool calls");
	assert_int_equal(f->n_calls, 0);
}

/* ---- cancelled ---- */

TEST(a_cancel_in_the_middle_keeps_the_text)
{
	struct fixture *f = *state;

	f->cancel_at_piece = 2;
	make_openai(f);
	script(f, (struct step) {.body = DELTA("one ") DELTA("two ") DELTA("three") STOP DONE});
	assert_int_equal(ask_for(f, hello()), AGENT_CANCELLED);
	assert_string_equal(f->text, "one two ");
	/* and the next one works */
	f->cancel_at_piece = 0;
	afresh(f);
	answers(f, GOOD);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_string_equal(f->text, "good");
}

TEST(a_cancel_of_a_whole_answer_counts)
{
	struct fixture *f = *state;

	f->cancel_at_piece = 1;
	make_openai(f);
	answers(f, "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}");
	assert_int_equal(ask_for(f, hello()), AGENT_CANCELLED);
	assert_string_equal(f->text, "x");
}

TEST(a_cancel_at_a_call_counts)
{
	struct fixture *f = *state;

	f->cancel_at_call = true;
	make_openai(f);
	answers(f, DATA("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"a\"}},"
			"{\"function\":{\"name\":\"b\"}}]},\"finish_reason\":\"stop\"}]}") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_CANCELLED);
	assert_int_equal(f->n_calls, 1);
}

static bool at_once(const struct agent_turn *t)
{
	return true;
}

static bool was_asked(const struct agent_turn *t)
{
	return t->fetch && the_fixture->n_asked > 0;
}

TEST(a_cancel_works_at_every_point)
{
	static bool (*const points[])(const struct agent_turn *t) = {at_once, was_asked,
								     is_pausing};
	struct fixture *f = *state;

	f->opts.retries = 5;
	make_openai(f);
	for (size_t i = 0; i < 3; i++) {
		afresh(f);
		f->cancel_when = points[i];
		if (points[i] == was_asked)
			script(f, (struct step) {.ending = SILENT});
		else
			script(f, (struct step) {.status = 429,
						 .headers = "Retry-After: 50\r\n",
						 .body = ""});
		assert_int_equal(ask_for(f, hello()), AGENT_CANCELLED);
		assert_string_equal(f->text, "");
	}
	f->cancel_when = NULL;
	/* before the loop has turned at all */
	afresh(f);
	assert_int_equal(start(f, hello()), 0);
	cancel_now(f);
	assert_false(f->end.done);
	run(f);
	assert_int_equal(f->end.outcome, AGENT_CANCELLED);
}

TEST(an_agent_that_goes_takes_its_turns_along)
{
	struct fixture *f = *state;

	f->opts.connections = 1;
	make_openai(f);
	script(f, (struct step) {.ending = SILENT});
	assert_int_equal(start(f, hello()), 0);
	assert_int_equal(start(f, hello()), 0);
	assert_int_equal(f->agent->ops->probe(f->agent, on_health, f), 0);
	agent_free(f->agent);
	f->agent = NULL;
	assert_false(f->end.done);
	assert_true(f->probed);
	assert_false(f->healthy);
	assert_string_equal(f->health, "agent 'm' was removed");
}

/* ---- many ---- */

enum { MANY = 200 };

struct many {
	struct fixture *f;
	char text[32];
	bool ended;
};

static unsigned n_left;
static unsigned most_open;

static void many_text(void *arg, struct text piece)
{
	struct many *m = arg;
	const struct model *model = (const struct model *)m->f->agent;

	if (model->n_open > most_open)
		most_open = model->n_open;
	snprintf(m->text, sizeof(m->text), "%.*s", TEXT_ARGS(piece));
}

static void many_end(void *arg, const struct agent_end *end)
{
	struct many *m = arg;

	assert_int_equal(end->outcome, AGENT_DONE);
	assert_false(m->ended);
	m->ended = true;
	if (--n_left == 0)
		loop_stop(m->f->loop);
}

static void ask_many(struct fixture *f, struct many *many)
{
	n_left = MANY;
	most_open = 0;
	for (unsigned i = 0; i < MANY; i++) {
		const struct agent_sink sink = {many_text, on_call, many_end, &many[i]};
		struct agent_turn *t;

		many[i] = (struct many) {.f = f};
		assert_int_equal(f->agent->ops->start(f->agent, hello(), &sink, &t, &f->error), 0);
	}
	run(f);
	for (unsigned i = 0; i < MANY; i++)
		assert_string_equal(many[i].text, "good");
}

TEST(many_may_stream_at_once)
{
	static struct many many[MANY];
	struct fixture *f = *state;

	make_openai(f);
	script(f, (struct step) {.body = GOOD, .piece = 5});
	ask_many(f, many);
}

TEST(more_than_the_connections_wait_their_turn)
{
	static struct many many[MANY];
	struct fixture *f = *state;

	f->opts.connections = 3;
	make_openai(f);
	answers(f, GOOD);
	ask_many(f, many);
	assert_in_range(most_open, 1, 3);
	/* no more were opened, and they were kept */
	assert_true(atomic_load(&f->server.n_conns) <= 3);
}

static bool has_begun(const struct agent_turn *t)
{
	return t->began;
}

/* While an answer streams, its request is not kept. */
TEST(a_stream_holds_little)
{
	static char large[300000];
	const struct message message = {.role = MESSAGE_USER, .text = {large, sizeof(large)}};
	const struct agent_ask ask = {.messages = &message, .n_messages = 1};
	struct fixture *f = *state;

	memset(large, 'q', sizeof(large));
	make_openai(f);
	script(f, (struct step) {.body = DELTA("x"), .ending = HANGS});
	assert_int_equal(start(f, &ask), 0);
	timer_start(f->guard, 60000);
	while (!has_begun(f->turn))
		loop_step(f->loop);
	assert_null(f->turn->request.data);
	assert_true(f->turn->sse.data.cap + f->turn->sse.line.cap + f->turn->held.cap <= 4096);
	cancel_now(f);
	run(f);
	assert_int_equal(f->end.outcome, AGENT_CANCELLED);
}
