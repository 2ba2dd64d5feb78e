/* MCP over HTTP: sessions and their number, who cancels by leaving, streams that survive. */
#include "check.h"

#include "../mcp_world.h"
#include "base/cleanup.h"
#include "mcp/session.h"

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

static struct mcp_world m;

static int set_up(void **state)
{
	n_cancelled = 0;
	slow_call = NULL;
	assert_int_equal(mcp_world_init(&m), 0);
	m.w.endpoint->framing = SPEAKS_HTTP;
	return 0;
}

static int tear_down(void **state)
{
	mcp_world_done(&m);
	return 0;
}

FIXTURE(set_up, tear_down);

static void dial(struct dialer *c)
{
	assert_int_equal(dialer_init(c, &m.w), 0);
}

static void post(struct dialer *c, const char *method, const char *headers, const char *body)
{
	CLEANUP(buf_donep) struct buf request = {0};

	buf_init(&request, 1 << 20);
	buf_printf(&request,
		   "%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		   "%sContent-Length: %zu\r\n\r\n",
		   method, headers, strlen(body));
	buf_add_str(&request, body);
	assert_int_equal(request.err, 0);
	assert_true(dialer_send_n(c, &m.w, request.data, request.len));
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

TEST(closing_cancels_a_modern_call)
{
	struct dialer c;

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

TEST(closing_does_not_cancel_a_legacy_call)
{
	struct dialer c;
	char session[100];
	char headers[200];
	struct call *call;

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

TEST(an_answer_waits_for_its_client)
{
	struct dialer c;
	char session[100];
	char headers[200];
	struct call *call;

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

/* Resumes the first stream of the session from its beginning. */
static void resume(struct dialer *c, const char *session)
{
	char headers[200];

	snprintf(headers, sizeof(headers), "%sAccept: text/event-stream\r\nLast-Event-ID: 1.0\r\n",
		 session);
	post(c, "GET", headers, "");
}

/* Only the last one to resume a stream is sent the rest of it; the others end. */
TEST(a_resumed_stream_has_one_carrier)
{
	struct dialer c;
	struct dialer one;
	struct dialer two;
	char session[100];
	struct call *call;

	dial(&c);
	open_session(&c, session);
	post(&c, "POST", session, slow);
	hear(&c, "\"progress\":1");
	call = slow_call;
	dialer_done(&c);
	while (m.w.server->n_clients > 0)
		assert_true(world_turn(&m.w, NULL));
	dial(&one);
	resume(&one, session);
	hear(&one, "begun");
	dial(&two);
	resume(&two, session);
	hear(&two, "begun");
	hear(&one, "\r\n0\r\n\r\n");
	mcp_text(call, TEXT("at last"));
	(void)call_reply(call);
	hear(&two, "at last");
	hear(&two, "\r\n0\r\n\r\n");
	dialer_done(&one);
	dialer_done(&two);
	while (m.w.server->n_clients > 0)
		assert_true(world_turn(&m.w, NULL));
	assert_int_equal(m.w.server->n_calls, 0);
}

/* A client that resumes and does not read loses its connection, not its place in the stream. */
TEST(a_resumed_stream_ends_where_its_client_does_not_read)
{
	char big[60000];
	struct dialer c;
	struct dialer one;
	char session[100];
	struct call *call;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	m.w.server->opts.limits.queue_bytes = 4096;
	dial(&c);
	open_session(&c, session);
	post(&c, "POST", session, slow);
	hear(&c, "\"progress\":1");
	call = slow_call;
	dialer_done(&c);
	while (m.w.server->n_clients > 0)
		assert_true(world_turn(&m.w, NULL));
	dial(&one);
	resume(&one, session);
	hear(&one, "begun");
	/* More than the socket and the queue take. */
	for (int i = 0; i < 40; i++)
		mcp_progress(call, 2 + i, 0, big);
	mcp_text(call, TEXT("at last"));
	(void)call_reply(call);
	/* The GET has ended without the rest. */
	hear(&one, "\r\n0\r\n\r\n");
	assert_null(memmem(one.in.data, one.in.len, "at last", 7));
	dialer_done(&one);
	while (m.w.server->n_clients > 0)
		assert_true(world_turn(&m.w, NULL));
	assert_int_equal(m.w.server->n_calls, 0);
}

TEST(a_session_ends)
{
	struct dialer c;
	struct dialer stream;
	char session[100];

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

TEST(the_oldest_session_makes_room)
{
	struct dialer c;
	char first[100];
	char second[100];
	char other[100];

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

TEST(a_second_stream_replaces_the_first)
{
	struct dialer c;
	struct dialer one;
	struct dialer two;
	char session[100];

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

TEST(a_question_is_answered_by_another_connection)
{
	struct dialer c;
	struct dialer other;
	char session[100];

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

/* ---- what clients make the server keep ---- */

/* Subscribes the session to a URI of this length that nobody else has, and waits for `part`. */
static void subscribe(struct dialer *c, const char *session, size_t len, const char *part)
{
	static unsigned n;
	char *body = malloc(len + 200);
	int at;

	assert_non_null(body);
	at = sprintf(body,
		     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{"
		     "\"uri\":\"");
	memset(body + at, 'x', len);
	at += sprintf(body + at, "%08u", n++);
	body[at] = 'x';
	strcpy(body + at - 8 + len, "\"}}");
	buf_clear(&c->in);
	post(c, "POST", session, body);
	hear(c, part);
	free(body);
}

TEST(subscriptions_are_bounded_in_bytes)
{
	struct dialer c;
	char session[100];
	char last[100] = "";

	dial(&c);
	open_session(&c, session);
	subscribe(&c, session, MCP_URI_MAX, "\"result\":{}");
	subscribe(&c, session, MCP_URI_MAX + 1, "uri is longer than 16384 bytes");
	for (int i = 1; i < 15; i++)
		subscribe(&c, session, MCP_URI_MAX, "\"result\":{}");
	subscribe(&c, session, MCP_URI_MAX, "subscriptions use more than 256 KiB (one client)");
	/* Other clients have their own share, up to a sum. */
	for (int i = 1; i < 68; i++) {
		open_session(&c, last);
		for (int k = 0; k < 15; k++)
			subscribe(&c, last, MCP_URI_MAX, "\"result\":{}");
	}
	open_session(&c, last);
	while (m.mcp->session_bytes + sizeof(struct session_uri) + MCP_URI_MAX <= 16 << 20)
		subscribe(&c, last, MCP_URI_MAX, "\"result\":{}");
	subscribe(&c, last, MCP_URI_MAX, "16 MiB (all clients)");
	/* An ended session gives back its share. */
	post(&c, "DELETE", session, "");
	hear(&c, "202");
	subscribe(&c, last, MCP_URI_MAX, "\"result\":{}");
	dialer_done(&c);
}

TEST(a_listener_that_keeps_too_much_is_refused)
{
	struct dialer c;
	char *body = malloc((1 << 20) + 1000);
	int at;

	assert_non_null(body);
	at = sprintf(body,
		     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\","
		     "\"params\":{\"notifications\":{\"toolsListChanged\":true}," META ",\"x\":\"");
	memset(body + at, 'x', 1000000);
	strcpy(body + at + 1000000, "\"}}");
	dial(&c);
	post(&c, "POST", "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n",
	     body);
	hear(&c, "the subscriptions of this request exceed 1024 KiB");
	assert_true(list_empty(&m.mcp->listens));
	dialer_done(&c);
	free(body);
}

/* Whatever a client says of itself, its session keeps only names. */
TEST(a_session_keeps_little_of_its_client)
{
	struct dialer c;
	struct mcp_session *s;
	char *body = malloc(200000);
	int at;

	assert_non_null(body);
	at = sprintf(body, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
			   "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"roots\":{},"
			   "\"a\\u0000b\":{},\"sampling\":1,\"");
	memset(body + at, 'c', 50000);
	at += 50000;
	at += sprintf(body + at, "\":{},\"elicitation\":{}},\"clientInfo\":{\"name\":\"");
	memset(body + at, 'n', 100000);
	strcpy(body + at + 100000, "\"}}}");
	dial(&c);
	post(&c, "POST", "", body);
	hear(&c, "\"protocolVersion\"");
	s = list_entry(list_first(&m.mcp->sessions), struct mcp_session, link);
	assert_int_equal(strlen(s->client_name), SESSION_NAME_MAX);
	assert_string_equal(s->declared, "roots\nelicitation\n");
	assert_true(session_declares(s, TEXT("roots")));
	assert_true(session_declares(s, TEXT("elicitation")));
	assert_false(session_declares(s, TEXT("sampling")));
	assert_false(session_declares(s, TEXT("root")));
	dialer_done(&c);
	free(body);
}

TEST(an_unused_session_ends)
{
	struct dialer c;
	struct dialer stream;
	char used[100];
	char unused[100];

	mcp_world_done(&m);
	session_idle_ms = 1;
	set_up(state);
	session_idle_ms = 0;
	dial(&c);
	/* The first one begins the look for idle ones; none ends before its stream is open. */
	open_session(&c, unused);
	m.mcp->opts.session_idle_ms = 1 << 30;
	open_session(&c, used);
	dial(&stream);
	post(&stream, "GET", used, "");
	hear(&stream, "text/event-stream");
	open_session(&c, unused);
	m.mcp->opts.session_idle_ms = 1;
	while (m.mcp->n_http_sessions > 1)
		assert_true(world_turn(&m.w, NULL));
	post(&c, "POST", unused, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "HTTP/1.1 404 ");
	/* One with an open stream is in use. */
	mcp_changed(m.mcp, MCP_TOOLS);
	hear(&stream, "notifications/tools/list_changed");
	dialer_done(&stream);
	while (m.mcp->n_http_sessions > 0)
		assert_true(world_turn(&m.w, NULL));
	dialer_done(&c);
}

/* ---- refused requests ---- */

TEST(a_refused_request_has_no_effect)
{
	static const char level[] =
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/setLevel\",\"params\":{"
		"\"level\":\"debug\"}}";
	static const char subscription[] =
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resources/%s\",\"params\":{"
		"\"uri\":\"%s\"}}";
	unsigned calls = m.w.server->opts.limits.calls;
	struct mcp_session *s;
	struct dialer c;
	char session[100];
	char body[200];

	dial(&c);
	open_session(&c, session);
	s = list_entry(list_first(&m.mcp->sessions), struct mcp_session, link);
	snprintf(body, sizeof(body), subscription, "subscribe", "w://item/1.txt");
	post(&c, "POST", session, body);
	hear(&c, "\"id\":3,\"result\":{}");
	m.w.server->opts.limits.calls = 0;
	snprintf(body, sizeof(body), subscription, "unsubscribe", "w://item/1.txt");
	post(&c, "POST", session, body);
	hear(&c, "too many calls in flight (limit 0)");
	assert_true(mcp_watched(m.mcp, TEXT("w://item/1.txt")));
	buf_clear(&c.in);
	snprintf(body, sizeof(body), subscription, "subscribe", "w://fixed");
	post(&c, "POST", session, body);
	hear(&c, "too many calls in flight (limit 0)");
	assert_false(mcp_watched(m.mcp, TEXT("w://fixed")));
	buf_clear(&c.in);
	post(&c, "POST", session, level);
	hear(&c, "too many calls in flight (limit 0)");
	assert_int_equal(s->log_level, 1);
	buf_clear(&c.in);
	post(&c, "POST", "", initialize);
	hear(&c, "too many calls in flight (limit 0)");
	assert_int_equal(m.mcp->n_http_sessions, 1);
	m.w.server->opts.limits.calls = calls;
	dialer_done(&c);
}

/* The calls in flight may wait for nothing else. */
TEST(a_cancel_is_heard_when_too_many_calls_are_in_flight)
{
	struct dialer c;
	struct dialer other;
	char session[100];

	dial(&c);
	open_session(&c, session);
	post(&c, "POST", session, slow);
	hear(&c, "\"progress\":1");
	m.w.server->opts.limits.calls = 1;
	dial(&other);
	post(&other, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
	     "\"requestId\":1}}");
	hear(&other, "HTTP/1.1 202 ");
	hear(&c, "\r\n0\r\n\r\n");
	assert_int_equal(n_cancelled, 1);
	dialer_done(&other);
	dialer_done(&c);
}

/* As on a connection of lines: neither a result nor an error follows. */
TEST(a_cancelled_call_is_not_answered)
{
	struct dialer c;
	struct dialer other;
	char session[100];

	dial(&c);
	open_session(&c, session);
	/* Without a progress token nothing begins a stream. */
	post(&c, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"method\":\"logging/setLevel\",\"id\":5,\"params\":{"
	     "\"level\":\"error\"}}");
	hear(&c, "\"id\":5,\"result\":{}");
	buf_clear(&c.in);
	post(&c, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	     "\"name\":\"slow\"}}");
	while (!slow_call)
		assert_true(world_turn(&m.w, &c));
	dial(&other);
	post(&other, "POST", session,
	     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
	     "\"requestId\":1}}");
	hear(&other, "HTTP/1.1 202 ");
	hear(&c, "HTTP/1.1 202 ");
	assert_null(memmem(c.in.data, c.in.len, "jsonrpc", 7));
	/* The connection goes on. */
	post(&c, "POST", session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	hear(&c, "\"id\":2,\"result\":{}");
	dialer_done(&other);
	dialer_done(&c);
}

/* Nobody can receive its answer any more, whether its connection is open or not. */
TEST(an_ended_session_cancels_its_calls)
{
	struct dialer gone;
	struct dialer c;
	char session[100];
	char other[100];

	dial(&gone);
	open_session(&gone, session);
	post(&gone, "POST", session, slow);
	hear(&gone, "\"progress\":1");
	dialer_done(&gone);
	dial(&c);
	open_session(&c, other);
	post(&c, "POST", session, slow);
	hear(&c, "\"progress\":1");
	dial(&gone);
	post(&gone, "DELETE", other, "");
	hear(&gone, "HTTP/1.1 202 ");
	assert_int_equal(n_cancelled, 0);
	post(&gone, "DELETE", session, "");
	hear(&c, "\"id\":1,\"result\":");
	hear(&c, "\r\n0\r\n\r\n");
	assert_int_equal(n_cancelled, 2);
	dialer_done(&gone);
	dialer_done(&c);
	world_settle(&m.w);
	assert_int_equal(m.w.server->n_calls, 0);
}

/* The text of a tool's output is its structured content once more. */
static void keeps_to_8192(const char *method, const char *name, size_t len)
{
	char *body = malloc(len + 200);
	struct dialer c;
	char session[100];
	int at;

	assert_non_null(body);
	dial(&c);
	open_session(&c, session);
	at = sprintf(body,
		     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{"
		     "\"name\":\"%s\",\"arguments\":{\"text\":\"",
		     method, name);
	memset(body + at, 'x', len);
	strcpy(body + at + len, "\"}}}");
	post(&c, "POST", session, body);
	hear(&c, "the result is larger than 8192 bytes");
	if (strcmp(method, "tools/call") == 0)
		hear(&c, "\"isError\":true");
	assert_true(c.in.len < 8192);
	dialer_done(&c);
	free(body);
}

/* Either all of it together is too much, or one text alone. */
TEST(an_answer_keeps_to_its_limit)
{
	m.w.server->opts.limits.reply_bytes = 8192;
	keeps_to_8192("tools/call", "echo", 6000);
	keeps_to_8192("tools/call", "echo", 9000);
	keeps_to_8192("prompts/get", "hello", 9000);
}

/* Nothing is to tell, and yet something comes. */
TEST(a_silent_stream_shows_life)
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
