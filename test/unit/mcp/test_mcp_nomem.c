/*
 * Every allocation fails in turn, once alone and once with all that follow, while clients of both
 * eras are served over lines and HTTP. Whatever is refused or dropped, nothing crashes, hangs or
 * leaks, every line is a whole message, and once there is memory again, all is served.
 */
#include "check.h"

#include "../mcp_world.h"
#include "failing/nomem.h"

/* ---- what is said ---- */

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/"                                                    \
	"protocolVersion\":\"2026-07-28\",\"progressToken\":1,"                                    \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"
#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"capabilities\":{\"elicitation\":{}}}}"
#define CALL(id, method, params)                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "}}"

static const char lines[] =
	INITIALIZE "\n" CALL("1", "tools/call",
			     "\"name\":\"echo\",\"arguments\":{\"text\":\"caf\\u00e9\"}") "\n" CALL("2", "tools/call", "\"name\":\"say\"," META) "\n" CALL("3", "tools/call", "\"name\":\"read\",\"arguments\":{\"text\":1}," META) "\n" CALL("4", "resources/subscribe", "\"uri\":\"w://fixed\"") "\n" CALL("5",
																																					     "resources/read", "\"uri\":\"w://item/x.txt\"," META) "\n" CALL("6", "tools/call", "\"name\":\"ask\"") "\n" CALL("7",
																																																			      "tools/call", "\"name\":\"ask\"," META) "\n" CALL("8",
																																																										"tools/list",
																																																										META) "\n" CALL("9",
																																																												"prompts/get", "\"name\":\"hello\",\"arguments\":{\"text\":\"a\"}") "\n" CALL("10", "subscriptions/listen", "\"notifications\":{\"toolsListChanged\":true}," META) "\n"
																																																																																   "{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{\"action\":\"accept\"}}\n" CALL("11",
																																																																																										      "server/discover",
																																																																																										      META) "\n";

static const char body[] = CALL("1", "tools/call", "\"name\":\"ask\"," META);

static void check_lines(const struct dialer *c)
{
	size_t at = 0;

	while (at < c->in.len) {
		const char *line = c->in.data + at;
		const char *newline = memchr(line, '\n', c->in.len - at);
		struct value *root = NULL;
		struct arena a;

		if (!newline)
			fail_msg("half a line: %.*s", (int)(c->in.len - at), line);
		nomem_spared = true;
		arena_init(&a, 16 << 20);
		if (json_read(&a, line, (size_t)(newline - line), &json_default_limits, &root,
			      NULL))
			fail_msg("allocation %u: no JSON: %.*s", nomem_at(), (int)(newline - line),
				 line);
		arena_done(&a);
		nomem_spared = false;
		at += (size_t)(newline - line) + 1;
	}
}

/* Says it all, then that nothing follows; takes what comes until the end. */
static size_t talk(struct mcp_world *m, const char *text, size_t len, bool http)
{
	struct dialer c = {.fd = -1};
	size_t n;

	m->w.endpoint->framing = http ? SPEAKS_HTTP : SPEAKS_LINE;
	if (dialer_init(&c, &m->w) != 0)
		return 0;
	(void)dialer_send_n(&c, &m->w, text, len);
	world_settle(&m->w);
	mcp_changed(m->mcp, MCP_TOOLS);
	mcp_updated(m->mcp, TEXT("w://fixed"));
	shutdown(c.fd, SHUT_WR);
	while (!c.eof) {
		if (!world_turn(&m->w, &c))
			fail_msg("allocation %u: neither answers nor closes", nomem_at());
		nomem_spared = true;
		dialer_read(&c);
		nomem_spared = false;
	}
	if (!http)
		check_lines(&c);
	n = c.in.len;
	dialer_done(&c);
	return n;
}

static size_t talk_http(struct mcp_world *m)
{
	char text[2000];
	int n = snprintf(
		text, sizeof(text),
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s"
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
		"Mcp-Name: =?base64?YXNr?=\r\nContent-Length: %zu\r\n\r\n%s",
		strlen(INITIALIZE), INITIALIZE, strlen(body), body);

	return talk(m, text, (size_t)n, true);
}

static void serve(struct mcp_world *m)
{
	(void)talk(m, lines, sizeof(lines) - 1, false);
	(void)talk_http(m);
}

/* Whether there was an allocation to fail. */
static bool round_of(unsigned at, bool all)
{
	struct mcp_world m = {0};
	bool hit;
	size_t n;

	nomem_fail(at, all);
	if (mcp_world_init(&m) == 0) {
		serve(&m);
		hit = nomem_failed();
		nomem_stop();
		n = talk(&m, lines, sizeof(lines) - 1, false);
		assert_true(n > 3000);
		assert_true(talk_http(&m) > 500);
	} else {
		hit = true;
	}
	nomem_stop();
	mcp_world_done(&m);
	return hit;
}

TEST(every_allocation_may_fail)
{
	unsigned at = 1;

	while (round_of(at, false))
		at++;
	assert_true(at > 60);
	for (unsigned i = 1; i < at; i++)
		round_of(i, true);
}
