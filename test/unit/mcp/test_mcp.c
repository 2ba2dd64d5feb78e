/* MCP over lines: conversations byte for byte, threads, questions, pages, guests. */
#include "check.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "../mcp_world.h"
#include "base/clock.h"

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},\"roots\":{}}}"

static struct mcp_world m;
static struct dialer c;

static int set_up(void **state)
{
	n_cancelled = 0;
	slow_call = NULL;
	assert_int_equal(mcp_world_init(&m), 0);
	assert_int_equal(dialer_init(&c, &m.w), 0);
	return 0;
}

static int tear_down(void **state)
{
	dialer_done(&c);
	mcp_world_done(&m);
	return 0;
}

FIXTURE(set_up, tear_down);

static void say(const char *line)
{
	assert_true(dialer_send_n(&c, &m.w, line, strlen(line)));
	assert_true(dialer_send_n(&c, &m.w, "\n", 1));
}

/* The next line, without its end; valid until the next call. */
static const char *hear(void)
{
	static char line[1 << 16];
	char *end;
	size_t n = 1;

	while (!(end = c.in.len > 0 ? memchr(c.in.data, '\n', c.in.len) : NULL)) {
		assert_true(dialer_wait(&c, &m.w, n));
		n = c.in.len + 1;
	}
	n = (size_t)(end - c.in.data);
	assert_true(n < sizeof(line));
	memcpy(line, c.in.data, n);
	line[n] = '\0';
	buf_consume(&c.in, n + 1);
	return line;
}

static const char *ask(const char *line)
{
	say(line);
	return hear();
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("%s\nhas no %s", text, part);
}

/* ---- conversations ---- */

static char *read_all(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	struct stat st;
	char *text;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	text = malloc((size_t)st.st_size);
	assert_non_null(text);
	*ret_len = fread(text, 1, (size_t)st.st_size, f);
	fclose(f);
	return text;
}

static void converse(const struct value *v)
{
	value_each (line, value_find(v, "lines")) {
		struct text way = value_text(line->first);
		struct text text = value_text(line->first->next);
		char *copy = strndup(text.data, text.len);

		if (text_is(way, ">"))
			say(copy);
		else
			assert_string_equal(hear(), copy);
		free(copy);
	}
	world_settle(&m.w);
	dialer_read(&c);
	/* Nothing but what was expected. */
	assert_int_equal(c.in.len, 0);
}

TEST(conversations_are_byte_for_byte)
{
	struct value *all;
	struct arena a;
	struct error error;
	size_t len;
	char *text = read_all(getenv("KOINE_MCP_VECTORS"), &len);
	unsigned n = 0;

	arena_init(&a, 16 << 20);
	assert_int_equal(json_read(&a, text, len, &json_default_limits, &all, &error), 0);
	value_each (v, all) {
		tear_down(state);
		set_up(state);
		converse(v);
		n++;
	}
	assert_true(n >= 3);
	arena_done(&a);
	free(text);
}

/* ---- threads ---- */

TEST(a_tool_runs_where_its_row_says)
{
	lane_of_read = -5;
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"read\",\"arguments\":{\"text\":\"x\"}," META "}}"),
		"\"structuredContent\":{\"text\":\"x\",\"n\":7}");
	assert_true(lane_of_read >= 0);
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"write\",\"arguments\":{\"text\":\"x\"}," META "}}"),
		"\"resultType\":\"complete\"");
	assert_int_equal(lane_of_read, -1);
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"read\",\"arguments\":{}," META "}}"),
		"\"text is required\"}],\"isError\":true");
}

/* ---- pages ---- */

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		n++;
	return n;
}

static bool next_cursor(const char *answer, char out[200])
{
	const char *at = strstr(answer, "\"nextCursor\":\"");

	return at && sscanf(at, "\"nextCursor\":\"%199[^\"]", out) == 1;
}

static const char *list(const char *method, const char *cursor)
{
	char line[600];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s%s%s" META "}}",
		 method, cursor ? "\"cursor\":\"" : "", cursor ? cursor : "", cursor ? "\"," : "");
	return ask(line);
}

TEST(lists_come_in_pages)
{
	char cursor[200];
	const char *answer = list("tools/list", NULL);
	unsigned n = count(answer, "\"inputSchema\"");

	assert_int_equal(n, 3);
	while (next_cursor(answer, cursor)) {
		answer = list("tools/list", cursor);
		n += count(answer, "\"inputSchema\"");
	}
	assert_int_equal(n, 10);
	assert_has(answer, "\"ttlMs\":5,\"cacheScope\":\"private\"");
}

TEST(a_cursor_belongs_to_its_list)
{
	char cursor[200];

	assert_true(next_cursor(list("tools/list", NULL), cursor));
	assert_has(list("prompts/list", cursor), "\"code\":-32602");
	assert_has(list("prompts/list", ""), "\"code\":-32602");
	cursor[3] ^= 1;
	assert_has(list("tools/list", cursor), "\"code\":-32602");
}

TEST(completions_end_at_a_hundred)
{
	const char *answer =
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/"
		    "complete\",\"params\":{\"ref\":{"
		    "\"type\":\"ref/"
		    "prompt\",\"name\":\"hello\"},\"argument\":{\"name\":\"text\",\"value\":"
		    "\"\"}," META "}}");

	assert_int_equal(count(answer, "\"x\""), 100);
	assert_has(answer, "\"total\":120,\"hasMore\":true");
}

/* ---- items that find no room at first ---- */

enum { LONG = 400 << 10, LONG_ROOM = 300 << 10 };

static atomic_uint n_runs;
static char long_text[LONG];

static struct done say_long(struct call *call)
{
	n_runs++;
	mcp_text(call, (struct text) {long_text, LONG});
	return call_reply(call);
}

static struct done say_and_write_long(struct call *call)
{
	struct json *j = call_result(call);

	n_runs++;
	mcp_text(call, TEXT("one"));
	json_begin_object(j);
	json_member_text(j, "long", (struct text) {long_text, LONG});
	json_end_object(j);
	return call_reply(call);
}

static void check_long(const char *id, const char *name)
{
	static const char item[] = "{\"type\":\"text\",";
	char line[200];
	const char *at;

	n_runs = 0;
	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/"
		 "call\",\"params\":{\"name\":\"%s\","
		 "\"arguments\":{}}}",
		 id, name);
	say(line);
	assert_true(dialer_wait(&c, &m.w, LONG));
	assert_int_equal(n_runs, 2);
	at = memmem(c.in.data, c.in.len, item, strlen(item));
	assert_non_null(at);
	assert_null(memmem(at + 1, c.in.len - (size_t)(at + 1 - c.in.data), item, strlen(item)));
	while (!memchr(c.in.data, '\n', c.in.len))
		assert_true(dialer_wait(&c, &m.w, c.in.len + 1));
	buf_clear(&c.in);
	assert_int_equal(room_used(&m.w.server->room), 0);
}

TEST(items_that_find_no_room_are_written_again)
{
	static const struct mcp_tool tools[] = {
		{.row = {.name = "long", .handle = say_long, .where = READER}},
		{.row = {.name = "both", .handle = say_and_write_long, .where = READER}},
	};
	struct limits limits = default_limits;

	memset(long_text, 'x', LONG);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mcp_add_tool(m.mcp, &tools[i]), 0);
	limits.total_queue_bytes = LONG_ROOM;
	server_set_limits(m.w.server, &limits);
	ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
	    "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\","
	    "\"version\":\"1\"}}}");
	check_long("2", "long");
	check_long("3", "both");
}

/* ---- what a modern client carries ---- */

static void seal_state(char *out, size_t size, const char *what, const char *arguments)
{
	struct buf sealed;
	char about[200];
	int n = snprintf(about, sizeof(about), "tools/call\n%u\nask\n%s", (unsigned)getuid(),
			 arguments);

	buf_init(&sealed, 4096);
	seal_add(&sealed, world_key, text_of(what), (struct text) {about, (size_t)n});
	snprintf(out, size, "%.*s", (int)sealed.len, sealed.data);
	buf_done(&sealed);
}

static const char *ask_with(const char *state, const char *responses)
{
	char line[3000];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
		 "call\",\"params\":{\"name\":\"ask\","
		 "\"requestState\":\"%s\",\"inputResponses\":%s," META "}}",
		 state, responses);
	return ask(line);
}

TEST(answers_are_carried_from_round_to_round)
{
	char carried[1000];
	const char *at;
	const char *answer = ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
				 "call\",\"params\":{\"name\":\"ask\"," META "}}");

	assert_has(answer, "\"resultType\":\"input_required\",\"inputRequests\":{\"name\":{");
	at = strstr(answer, "\"requestState\":\"");
	assert_int_equal(sscanf(at, "\"requestState\":\"%999[^\"]", carried), 1);
	answer = ask_with(carried, "{\"name\":{\"action\":\"accept\",\"content\":{\"n\":1}}}");
	assert_has(answer, "\"inputRequests\":{\"roots\":{\"method\":\"roots/list\"");
	at = strstr(answer, "\"requestState\":\"");
	assert_int_equal(sscanf(at, "\"requestState\":\"%999[^\"]", carried), 1);
	answer = ask_with(carried, "{\"roots\":{\"roots\":[]}}");
	assert_has(answer,
		   "\\\"content\\\":{\\\"n\\\":1}}\"},{\"type\":\"text\",\"text\":\"kept\"}");
}

TEST(state_that_has_expired_is_refused)
{
	char fresh[200];
	char sealed[600];

	snprintf(fresh, sizeof(fresh), "{\"expires\":%lld,\"answers\":{}}",
		 (long long)clock_utc_ms() / 1000 + 100);
	seal_state(sealed, sizeof(sealed), fresh, "{}");
	assert_has(ask_with(sealed, "{}"), "input_required");
	seal_state(sealed, sizeof(sealed), "{\"expires\":1000,\"answers\":{}}", "{}");
	assert_has(ask_with(sealed, "{}"), "requestState has expired");
	seal_state(sealed, sizeof(sealed), fresh, "{\"a\":1}");
	assert_has(ask_with(sealed, "{}"), "belongs to another server");
	seal_state(sealed, sizeof(sealed), "not JSON", "{}");
	assert_has(ask_with(sealed, "{}"), "is invalid");
}

/* ---- telling ---- */

TEST(listeners_are_told_what_they_asked_for)
{
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"subscriptions/listen\",\"params\":{"
		    "\"notifications\":{\"promptsListChanged\":true,\"resourceSubscriptions\":["
		    "\"w://a\"]}," META "}}"),
		"subscriptions/acknowledged");
	assert_true(mcp_watched(m.mcp, TEXT("w://a")));
	assert_false(mcp_watched(m.mcp, TEXT("w://b")));
	mcp_changed(m.mcp, MCP_TOOLS | MCP_PROMPTS);
	mcp_updated(m.mcp, TEXT("w://b"));
	mcp_updated(m.mcp, TEXT("w://a"));
	assert_string_equal(hear(),
			    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/"
			    "list_changed\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
			    "subscriptionId\":7}}}");
	assert_has(hear(), "\"uri\":\"w://a\"");
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "cancelled\",\"params\":{\"requestId\":7}}");
	world_settle(&m.w);
	assert_false(mcp_watched(m.mcp, TEXT("w://a")));
	mcp_changed(m.mcp, MCP_PROMPTS);
	world_settle(&m.w);
	dialer_read(&c);
	assert_int_equal(c.in.len, 0);
}

static void open_legacy(void)
{
	(void)ask("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		  "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}}}}");
}

TEST(subscriptions_have_a_limit)
{
	char line[200];

	open_legacy();
	for (int i = 0; i < 1024; i++) {
		snprintf(line, sizeof(line),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/"
			 "subscribe\",\"params\":{"
			 "\"uri\":\"w://%d\"}}",
			 i);
		assert_has(ask(line), "\"result\":{}");
	}
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{"
		    "\"uri\":\"w://more\"}}"),
		"too many subscribed resources (limit 1024)");
	assert_true(mcp_watched(m.mcp, TEXT("w://1023")));
	dialer_done(&c);
	world_settle(&m.w);
	assert_false(mcp_watched(m.mcp, TEXT("w://1023")));
}

TEST(progress_only_grows)
{
	open_legacy();
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"slow\",\"_meta\":{\"progressToken\":\"t\"}}}"),
		"\"progressToken\":\"t\",\"progress\":1,\"total\":2,\"message\":\"begun\"");
	assert_has(hear(), "\"level\":\"info\",\"logger\":\"world\",\"data\":\"begun\"");
	assert_non_null(slow_call);
	mcp_progress(slow_call, 1, 2, NULL);
	mcp_progress(slow_call, 0.5, 2, NULL);
	mcp_progress(slow_call, 1.5, 0, NULL);
	assert_has(hear(), "\"progress\":1.5}}");
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "cancelled\",\"params\":{\"requestId\":1}}");
	assert_has(ask("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"), "\"id\":2");
	assert_int_equal(n_cancelled, 1);
}

/* An answer must get through although as many calls wait as may run. */
TEST(an_answer_overtakes_a_full_queue)
{
	char line[200];

	open_legacy();
	for (unsigned i = 0; i < default_limits.waiting; i++) {
		snprintf(line, sizeof(line),
			 "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/"
			 "call\",\"params\":{\"name\":"
			 "\"ask\"}}",
			 i + 10);
		assert_has(ask(line), "elicitation/create");
	}
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	assert_has(ask("{\"jsonrpc\":\"2.0\",\"id\":\"ask-3\",\"result\":{\"action\":\"cancel\"}}"),
		   "requires roots");
	assert_has(hear(), "\"id\":1,\"result\":{}");
}

/* What waits for its turn has not run, and does not when it is cancelled. */
TEST(a_cancelled_request_in_a_full_queue_never_runs)
{
	char line[200];

	open_legacy();
	for (unsigned i = 0; i <= default_limits.waiting; i++) {
		snprintf(line, sizeof(line),
			 "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/"
			 "call\",\"params\":{\"name\":\"slow\"}}",
			 i + 10);
		say(line);
	}
	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
		 "\"requestId\":%u}}",
		 default_limits.waiting + 10);
	say(line);
	world_settle(&m.w);
	assert_int_equal(m.w.server->n_calls, default_limits.waiting);
	(void)call_reply(slow_call);
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	while (!strstr(hear(), "\"id\":1,"))
		continue;
	assert_int_equal(m.w.server->n_calls, default_limits.waiting - 1);
}

/* ---- tasks ---- */

#define TASK_META                                                                                  \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},\"roots\":{},"         \
	"\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"

static void begin_task(const char *tool, char id[64])
{
	char line[600];
	const char *answer;

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
		 "call\",\"params\":{\"name\":\"%s\"," TASK_META "}}",
		 tool);
	answer = ask(line);
	assert_has(answer, "\"resultType\":\"task\",\"taskId\":\"");
	assert_int_equal(sscanf(strstr(answer, "\"taskId\":"), "\"taskId\":\"%63[^\"]", id), 1);
}

static const char *about_task(const char *method, const char *id, const char *more)
{
	char line[900];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tasks/"
		 "%s\",\"params\":{\"taskId\":\"%s\","
		 "%s" TASK_META "}}",
		 method, id, more);
	return ask(line);
}

TEST(a_task_outlives_its_client)
{
	char id[64];

	begin_task("job", id);
	assert_has(about_task("get", id, ""), "\"status\":\"working\"");
	dialer_done(&c);
	assert_int_equal(dialer_init(&c, &m.w), 0);
	world_settle(&m.w);
	assert_int_equal(n_cancelled, 0);
	mcp_text(slow_call, TEXT("at last"));
	(void)call_reply(slow_call);
	assert_has(about_task("get", id, ""), "\"status\":\"completed\"");
	assert_has(
		about_task("get", id, ""),
		"\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":"
		"\"at last\"}]");
	assert_has(about_task("cancel", id, ""), "\"resultType\":\"complete\"");
	assert_has(about_task("get", "nonsense", ""), "\"code\":-32602");
}

TEST(a_task_is_cancelled)
{
	char id[64];

	begin_task("job", id);
	assert_has(about_task("cancel", id, ""), "\"resultType\":\"complete\"");
	assert_int_equal(n_cancelled, 1);
	assert_has(about_task("get", id, ""), "\"status\":\"cancelled\"");
}

TEST(a_task_asks)
{
	char id[64];
	const char *answer;

	begin_task("job_ask", id);
	answer = about_task("get", id, "");
	assert_has(answer, "\"status\":\"input_required\"");
	assert_has(answer, "\"inputRequests\":{\"name\":{\"method\":\"elicitation/create\"");
	assert_null(strstr(answer, "requestState"));
	assert_has(about_task("update", id, "\"inputResponses\":7,"), "\"code\":-32602");
	assert_has(about_task("update", id, "\"inputResponses\":{\"other\":{}},"), "complete");
	assert_has(
		about_task("update", id, "\"inputResponses\":{\"name\":{\"action\":\"decline\"}},"),
		"complete");
	assert_has(about_task("get", id, ""), "\"inputRequests\":{\"roots\":{");
	assert_has(about_task("update", id, "\"inputResponses\":{\"roots\":{\"roots\":[]}},"),
		   "complete");
	answer = about_task("get", id, "");
	assert_has(answer, "\"status\":\"completed\"");
	assert_has(answer, "\"text\":\"kept\"");
}

TEST(only_those_who_know_tasks_get_one)
{
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"job\"," META "}}"),
		"\"no task\"}],\"isError\":true");
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":"
		    "\"x\"," META "}}"),
		"\"code\":-32021");
}

TEST(tasks_have_a_limit)
{
	char id[64];

	for (int i = 0; i < 1024; i++)
		begin_task("job", id);
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"job\"," TASK_META "}}"),
		"no task");
}

/* ---- guests ---- */

static struct done handle_hello(struct call *call)
{
	json_str(call_result(call), "hello");
	return call_reply(call);
}

static const struct method other_methods[] = {{.name = "hello", .handle = handle_hello}};
static const struct dialect other_dialect = {.name = "other",
					     .message_max = 1 << 20,
					     .errors = mcp_errors,
					     .methods = other_methods,
					     .n_methods = 1};

TEST(a_guest_is_known_by_its_first_line)
{
	struct endpoint *e = m.w.endpoint;
	struct endpoint *other = calloc(1, sizeof(*other));

	assert_int_equal(registry_add(m.w.registry, other_methods, 1), 0);
	*other = (struct endpoint) {.server = m.w.server,
				    .dialect = &other_dialect,
				    .registry = m.w.registry,
				    .framing = SPEAKS_ANY,
				    .guest = calloc(1, sizeof(*other))};
	*other->guest = *other;
	other->guest->dialect = &mcp_world_dialect;
	other->guest->guest = NULL;
	other->guest->state = m.mcp;
	list_append(&m.w.server->endpoints, &other->link);
	m.w.endpoint = other;
	dialer_done(&c);
	assert_int_equal(dialer_init(&c, &m.w), 0);
	open_legacy();
	assert_has(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		    "\"say\"}}"),
		"\"content\"");
	assert_has(ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}"), "-32601");
	assert_int_equal(other->guest->n_connections, 1);
	assert_int_equal(other->n_connections, 0);
	dialer_done(&c);
	assert_int_equal(dialer_init(&c, &m.w), 0);
	assert_has(ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}"), "\"hello\"");
	assert_has(ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}"), "-32601");
	m.w.endpoint = e;
}
