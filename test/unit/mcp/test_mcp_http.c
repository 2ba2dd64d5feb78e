/* MCP over HTTP: sessions and their number, who cancels by leaving, streams that survive. */
#include "check.h"

#include "../mcp_world.h"

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

static struct mcp_world m;

static int set_up(void **state)
{
	(void)state;
	n_cancelled = 0;
	slow_call = NULL;
	assert_int_equal(mcp_world_init(&m), 0);
	m.w.endpoint->framing = SPEAKS_HTTP;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mcp_world_done(&m);
	return 0;
}

static void dial(struct dialer *c)
{
	assert_int_equal(dialer_init(c, &m.w), 0);
}

static void post(struct dialer *c, const char *method, const char *headers, const char *body)
{
	char request[4096];
	int n = snprintf(request, sizeof(request),
			 "%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
			 "%sContent-Length: %zu\r\n\r\n%s",
			 method, headers, strlen(body), body);

	assert_true(dialer_send_n(c, &m.w, request, (size_t)n));
}

/* Waits for this in what has come. */
static void hear(struct dialer *c, const char *part)
{
	for (size_t n = 1;; n = c->in.len + 1) {
		if (c->in.len > 0 && memmem(c->in.data, c->in.len, part, strlen(part)))
			return;
		if (!dialer_wait(c, &m.w, n))
			fail_msg("%.*s\nhas no %s", (int)c->in.len, c->in.data, part);
	}
}

static const char initialize[] =
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
	"\"2025-11-25\",\"capabilities\":{\"elicitation\":{},\"roots\":{}}}}";
static const char slow[] =
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"slow\","
	"\"_meta\":{\"progressToken\":1}}}";

/* The header line with the session's id. */
static void open_session(struct dialer *c, char header[100])
{
	const char *at;

	post(c, "POST", "", initialize);
	hear(c, "\"protocolVersion\"");
	buf_add_char(&c->in, '\0');
	at = strstr(c->in.data, "Mcp-Session-Id: ");
	assert_non_null(at);
	snprintf(header, 100, "%.50s", at);
	*strchr(header, '\r') = '\0';
	strcat(header, "\r\n");
	buf_clear(&c->in);
}

static void closing_cancels_a_modern_call(void **state)
{
	struct dialer c;

	(void)state;
	dial(&c);
	post(&c, "POST",
	     "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: slow\r\n",
	     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
	     "call\",\"params\":{\"name\":\"slow\"," META "}}");
	while (!slow_call)
		assert_true(world_turn(&m.w, &c));
	dialer_done(&c);
	while (n_cancelled == 0)
		assert_true(world_turn(&m.w, NULL));
	world_settle(&m.w);
	assert_int_equal(m.w.server->n_calls, 0);
}

static void closing_does_not_cancel_a_legacy_call(void **state)
{
	struct dialer c;
	char session[100];
	char headers[200];
	struct call *call;

	(void)state;
	dial(&c);
	open_session(&c, session);
	post(&c, "POST", session, slow);
	hear(&c, "\"progress\":1");
	call = slow_call;
	assert_non_null(call);
	dialer_done(&c);
	while (m.w.server->n_clients > 0)
		assert_true(world_turn(&m.w, NULL));
	assert_int_equal(n_cancelled, 0);
	/* What is said meanwhile is kept, and told to the one who comes again. */
	mcp_progress(call, 1.5, 2, "meanwhile");
	dial(&c);
	snprintf(headers, sizeof(headers), "%sAccept: text/event-stream\r\nLast-Event-ID: 1.0\r\n",
		 session);
	post(&c, "GET", headers, "");
	hear(&c, "begun");
	hear(&c, "meanwhile");
	mcp_text(call, TEXT("at last"));
	(void)call_reply(call);
	hear(&c, "at last");
	hear(&c, "\r\n0\r\n\r\n");
	dialer_done(&c);
}

static void an_answer_waits_for_its_client(void **state)
{
	struct dialer c;
	char session[100];
	char headers[200];
	struct call *call;

	(void)state;
	dial(&c);
	open_session(&c, session);
	post(&c, "POST", session, slow);
	hear(&c, "\"progress\":1");
	call = slow_call;
	mcp_hang_up(call);
	hear(&c, "\r\n0\r\n\r\n");
	/* The connection is free for other requests. */
	post(&c, "POST", session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "\"id\":2,\"result\":{}");
	mcp_text(call, TEXT("at last"));
	(void)call_reply(call);
	snprintf(headers, sizeof(headers), "%sLast-Event-ID: 1.2\r\n", session);
	buf_clear(&c.in);
	post(&c, "GET", headers, "");
	hear(&c, "at last");
	hear(&c, "\r\n0\r\n\r\n");
	assert_null(memmem(c.in.data, c.in.len, "begun", 5));
	/* Told once. */
	buf_clear(&c.in);
	post(&c, "GET", headers, "");
	hear(&c, "200 OK");
	world_settle(&m.w);
	dialer_read(&c);
	assert_null(memmem(c.in.data, c.in.len, "at last", 7));
	dialer_done(&c);
}

static void a_session_ends(void **state)
{
	struct dialer c;
	struct dialer stream;
	char session[100];

	(void)state;
	dial(&c);
	open_session(&c, session);
	dial(&stream);
	post(&stream, "GET", session, "");
	hear(&stream, "text/event-stream");
	mcp_changed(m.mcp, MCP_TOOLS);
	hear(&stream, "notifications/tools/list_changed");
	post(&c, "DELETE", session, "");
	hear(&c, "202");
	hear(&stream, "\r\n0\r\n\r\n");
	buf_clear(&c.in);
	post(&c, "POST", session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "HTTP/1.1 404 ");
	dialer_done(&c);
	dialer_done(&stream);
}

static void the_oldest_session_makes_room(void **state)
{
	struct dialer c;
	char first[100];
	char second[100];
	char other[100];

	(void)state;
	dial(&c);
	open_session(&c, first);
	open_session(&c, second);
	/* What was used last stays. */
	for (int i = 2; i < 4096; i++)
		open_session(&c, other);
	post(&c, "POST", first, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "\"result\":{}");
	buf_clear(&c.in);
	open_session(&c, other);
	post(&c, "POST", first, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "\"result\":{}");
	post(&c, "POST", second, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "HTTP/1.1 404 ");
	dialer_done(&c);
}

static void a_second_stream_replaces_the_first(void **state)
{
	struct dialer c;
	struct dialer one;
	struct dialer two;
	char session[100];

	(void)state;
	dial(&c);
	open_session(&c, session);
	dial(&one);
	post(&one, "GET", session, "");
	hear(&one, "text/event-stream");
	dial(&two);
	post(&two, "GET", session, "");
	hear(&two, "text/event-stream");
	hear(&one, "\r\n0\r\n\r\n");
	mcp_changed(m.mcp, MCP_PROMPTS);
	hear(&two, "notifications/prompts/list_changed");
	dialer_done(&one);
	dialer_done(&two);
	dialer_done(&c);
}

static void a_question_is_answered_by_another_connection(void **state)
{
	struct dialer c;
	struct dialer other;
	char session[100];

	(void)state;
	dial(&c);
	open_session(&c, session);
	post(&c, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
	     "call\",\"params\":{\"name\":\"ask\"}}");
	hear(&c, "elicitation/create");
	dial(&other);
	/* Without its session an answer belongs to nobody. */
	post(&other, "POST", "", "{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{}}");
	hear(&other, "HTTP/1.1 400 ");
	buf_clear(&other.in);
	post(&other, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{\"action\":\"decline\"}}");
	hear(&other, "HTTP/1.1 202 ");
	hear(&c, "roots/list");
	post(&other, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"id\":\"ask-2\",\"result\":{\"roots\":[]}}");
	hear(&c, "\\\"decline\\\"");
	hear(&c, "\r\n0\r\n\r\n");
	dialer_done(&other);
	dialer_done(&c);
}

/* Nothing is to tell, and yet something comes. */
static void a_silent_stream_shows_life(void **state)
{
	struct dialer c;

	mcp_world_done(&m);
	keep_alive_ms = 1;
	set_up(state);
	keep_alive_ms = 0;
	dial(&c);
	post(&c, "POST", "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n",
	     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"
	     "\"notifications\":{\"toolsListChanged\":true}," META "}}");
	hear(&c, "acknowledged");
	hear(&c, "\r\n3\r\n:\n\n\r\n");
	dialer_done(&c);
	while (m.w.server->n_calls > 0)
		assert_true(world_turn(&m.w, NULL));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(closing_cancels_a_modern_call),
		TEST(closing_does_not_cancel_a_legacy_call),
		TEST(an_answer_waits_for_its_client),
		TEST(a_session_ends),
		TEST(the_oldest_session_makes_room),
		TEST(a_second_stream_replaces_the_first),
		TEST(a_question_is_answered_by_another_connection),
		TEST(a_silent_stream_shows_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
