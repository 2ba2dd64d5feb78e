/*
 * chat.stream and chat.agents in a real server, over a service that the test plays itself:
 * only so can text be cut anywhere, and a client not read at the right moment.
 */
#include "talk.h"

#include "dialect/koine/koine.h"
#include "engine/chat/chat.h"

/* ---- the service ---- */

static struct {
	int refusal; /* of chat_send */
	struct chat_sink sink;
	struct chat_ask ask;
	char request[64];
	unsigned n_cancels;
	chat_agents_fn agents;
	void *agents_arg;
	struct buf text;
} played;

static void end_turn(struct chat_answer a)
{
	struct chat_sink sink = played.sink;

	a.conversation = TEXT("c1");
	a.request_id = text_of(played.request);
	a.content = (struct text) {.data = played.text.data, .len = played.text.len};
	if (a.usage.input == 0)
		a.usage = AGENT_NO_USAGE;
	played.sink = (struct chat_sink) {0};
	sink.on_done(sink.arg, &a);
}

int chat_send(struct chat *chat, const struct chat_ask *ask, const struct chat_sink *sink,
	      struct chat_turn **ret_turn, struct error *error)
{
	if (played.refusal)
		return refuse(error, (enum refusal)played.refusal, "no");
	played.ask = *ask;
	played.sink = *sink;
	snprintf(played.request, sizeof(played.request), "%.*s", (int)ask->request_id.len,
		 ask->request_id.data);
	*ret_turn = (struct chat_turn *)&played;
	return 0;
}

int chat_new_request(char out[CHAT_REQUEST_LEN + 1])
{
	snprintf(out, CHAT_REQUEST_LEN + 1, "%s", "00000000000made1");
	return 0;
}

struct text chat_turn_request(const struct chat_turn *t)
{
	assert_ptr_equal(t, &played);
	return text_of(played.request);
}

void chat_turn_cancel(struct chat_turn *t)
{
	assert_ptr_equal(t, &played);
	played.n_cancels++;
}

int chat_probe(struct chat *chat, chat_agents_fn fn, void *arg)
{
	played.agents = fn;
	played.agents_arg = arg;
	return 0;
}

static struct agent *agent_played(void)
{
	static const struct agent_ops ops = {.kind = "openai"};
	static struct agent agent = {.ops = &ops, .name = "big", .model = "m"};

	return &agent;
}

struct agent *chat_agent(const struct chat *chat, struct text name)
{
	return agent_played();
}

struct agent *chat_agent_at(const struct chat *chat, unsigned i)
{
	return i == 0 ? agent_played() : NULL;
}

static void text_comes(const char *piece, size_t len)
{
	size_t from = played.text.len;

	buf_add(&played.text, piece, len);
	played.sink.on_text(played.sink.arg,
			    (struct text) {.data = played.text.data, .len = played.text.len}, from);
}

/* ---- the world ---- */

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_LIMIT] = {-32003, "Limit reached", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32800, "Cancelled", WORDS_ONLY, 0},
};

static struct dialect dialect = {
	.name = "koine",
	.framing = SPEAKS_LINE,
	.message_max = 16 << 20,
	.errors = errors,
};

static void start(struct fixture *f)
{
	const struct server_opts opts = {.limits = default_limits, .version = "1"};

	memset(&played, 0, sizeof(played));
	buf_init(&played.text, 64 << 20);
	dialect.methods = koine_chat_methods.rows;
	dialect.n_methods = koine_chat_methods.n;
	assert_int_equal(world_init(&f->world, &dialect, &opts), 0);
	assert_int_equal(dialer_init(&f->client, &f->world), 0);
}

static void finish(struct fixture *f)
{
	dialer_done(&f->client);
	world_done(&f->world);
	buf_done(&played.text);
}

static void say_and_wait(struct fixture *f, const char *text)
{
	say(f, text);
	world_settle(&f->world);
}

#define CALL(method, params) "{'jsonrpc':'2.0','method':'" method "','params':" params ",'id':1}\n"
#define ASK(params)          CALL("chat.stream", params)
#define PIECE(offset, text)                                                                        \
	"{'jsonrpc':'2.0','method':'chat.text','params':{'request_id':'r1','conversation':'c1',"   \
	"'offset':" offset ",'text':'" text "'}}\n"
#define RESULT(result) "{'jsonrpc':'2.0','result':" result ",'id':1}\n"
#define REFUSED(field, words)                                                                      \
	"{'jsonrpc':'2.0','error':{'code':-32602,'message':'Invalid params: " words                \
	"','data':{'field':'" field "'}},'id':1}\n"

#define R1 "{'content':'hi','conversation':'c1','request_id':'r1'}"

/* ---- text ---- */

TEST(a_character_is_never_cut)
{
	static const char word[] = "na\xc3\xafve \xe6\x9d\xb1 \xf0\x9f\x8e\x89!";
	struct fixture f;

	start(&f);
	say_and_wait(&f, ASK(R1));
	for (size_t i = 0; i < strlen(word); i++)
		text_comes(word + i, 1);
	hear(&f, PIECE("0", "n") PIECE("1", "a") PIECE("2", "\xc3\xaf") PIECE("4", "v")
			 PIECE("5", "e") PIECE("6", " ") PIECE("7", "\xe6\x9d\xb1") PIECE("10", " ")
				 PIECE("11", "\xf0\x9f\x8e\x89") PIECE("15", "!"));
	end_turn((struct chat_answer) {0});
	finish(&f);
}

/* Takes all pieces that have come; each must begin where the last ended. */
static size_t follow_pieces(struct fixture *f, size_t at)
{
	size_t before;

	do {
		before = f->client.in.len;
		world_settle(&f->world);
		dialer_read(&f->client);
	} while (f->client.in.len != before);
	while (f->client.in.len > 0) {
		const char *line = f->client.in.data;
		const char *end = memchr(line, '\n', f->client.in.len);
		const char *offset = memmem(line, f->client.in.len, "\"offset\":", 9);
		const char *text = memmem(line, f->client.in.len, "\"text\":\"", 8);

		assert_non_null(end);
		assert_non_null(offset);
		assert_int_equal(strtoul(offset + 9, NULL, 10), at);
		at += (size_t)(end - 3 - (text + 8));
		buf_consume(&f->client.in, (size_t)(end + 1 - line));
	}
	return at;
}

/* Enough for the queue of one client several times over. */
TEST(who_does_not_read_is_not_flooded_and_loses_nothing)
{
	enum { N = 400, LEN = 10000 };
	static const char begin[] = "{\"jsonrpc\":\"2.0\",\"result\":{\"content\":\"xxxx";
	static char piece[LEN];
	struct fixture f;
	size_t first;

	start(&f);
	memset(piece, 'x', sizeof(piece));
	say_and_wait(&f, ASK(R1));
	for (int i = 0; i < N; i++)
		text_comes(piece, sizeof(piece));
	assert_true(f.world.endpoint->n_dropped > 0);
	first = follow_pieces(&f, 0);
	assert_true(first > LEN && first < N * LEN / 2);
	text_comes("x", 1);
	assert_true(follow_pieces(&f, first) > first + LEN);
	end_turn((struct chat_answer) {0});
	assert_true(dialer_wait(&f.client, &f.world, N * LEN + 1));
	assert_memory_equal(f.client.in.data, begin, strlen(begin));
	finish(&f);
}

/* ---- ends ---- */

TEST(a_turn_may_end_without_text)
{
	struct fixture f;

	start(&f);
	say_and_wait(&f, ASK("{'content':'hi','request_id':-7}"));
	end_turn((struct chat_answer) {.outcome = AGENT_DONE});
	hear(&f, RESULT("{'content':'','request_id':-7,'conversation':'c1','stop':'end',"
			"'tokens':{}}"));
	finish(&f);
}

TEST(calls_of_tools_are_json_as_far_as_they_are)
{
	const struct tool_call calls[] = {
		{TEXT("t1"), TEXT("look"), TEXT("{\"at\":\n[1, 2]}")},
		{TEXT("t2"), TEXT("go"), TEXT("{\"to\":")},
	};
	struct fixture f;

	start(&f);
	say_and_wait(
		&f,
		ASK("{'content':'hi','request_id':'r1','tools':[{'name':'look','description':'d',"
		    "'parameters':{'type': 'object'}},{'name':'go'}]}"));
	assert_int_equal(played.ask.n_tools, 2);
	assert_true(text_is(played.ask.tools[0].name, "look"));
	assert_true(text_is(played.ask.tools[0].description, "d"));
	assert_true(text_is(played.ask.tools[0].schema, "{\"type\":\"object\"}"));
	assert_null(played.ask.tools[1].schema.data);
	end_turn((struct chat_answer) {.outcome = AGENT_CALLS, .calls = calls, .n_calls = 2});
	hear(&f, RESULT("{'content':'','request_id':'r1','conversation':'c1','stop':'tools',"
			"'tool_calls':[{'id':'t1','name':'look','arguments':{'at':[1,2]}},"
			"{'id':'t2','name':'go','arguments':'{\\'to\\':'}],'tokens':{}}"));
	say_and_wait(&f, ASK("{'tool_results':[{'id':'t1','content':'a'},"
			     "{'id':'t2','content':'b','failed':true}]}"));
	assert_int_equal(played.ask.n_results, 2);
	assert_null(played.ask.content.data);
	assert_true(text_is(played.ask.results[0].call_id, "t1"));
	assert_false(played.ask.results[0].failed);
	assert_true(text_is(played.ask.results[1].text, "b"));
	assert_true(played.ask.results[1].failed);
	end_turn((struct chat_answer) {0});
	finish(&f);
}

TEST(long_words_of_an_agent_come_whole)
{
	char words[1001];
	struct buf want;
	struct fixture f;

	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	buf_init(&want, 4096);
	buf_printf(&want,
		   "{'jsonrpc':'2.0','error':{'code':-32603,'message':"
		   "'Internal error: ProviderError: %s'},'id':1}\n",
		   words);
	buf_add(&want, "", 1);
	start(&f);
	say_and_wait(&f, ASK(R1));
	end_turn((struct chat_answer) {.result = REFUSE_INTERNAL,
				       .outcome = AGENT_FAILED,
				       .error_type = "ProviderError",
				       .error_text = words});
	hear(&f, want.data);
	finish(&f);
	buf_done(&want);
}

/* ---- what is wrong with it ---- */

TEST(bad_shapes_are_refused_with_the_field)
{
	static const struct {
		const char *params;
		const char *answer;
	} rows[] = {
		{ASK("{}"), REFUSED("content", "content is required")},
		{ASK("{'tool_results':[]}"), REFUSED("content", "content is required")},
		{ASK("{'content':1}"), REFUSED("content", "content must be a string, not number")},
		{ASK("{'content':'a','request_id':1.5}"),
		 REFUSED("request_id", "request_id must be a string or an integer, not number")},
		{ASK("{'content':'a','request_id':[]}"),
		 REFUSED("request_id", "request_id must be a string or an integer, not array")},
		{ASK("{'content':'a','request_id':''}"),
		 REFUSED("request_id", "request_id must not be empty")},
		{ASK("{'content':'a','tools':[1]}"),
		 REFUSED("tools", "tools[0] must be an object, not number")},
		{ASK("{'content':'a','tools':[{'name':'x'},{}]}"),
		 REFUSED("tools", "tools[1].name is required")},
		{ASK("{'content':'a','tools':[{'name':''}]}"),
		 REFUSED("tools", "tools[0].name is required")},
		{ASK("{'content':'a','tools':[{'name':'x','description':1}]}"),
		 REFUSED("tools", "tools[0].description must be a string, not number")},
		{ASK("{'content':'a','tools':[{'name':'x','parameters':[]}]}"),
		 REFUSED("tools", "tools[0].parameters must be an object, not array")},
		{ASK("{'tool_results':[{'content':'a'}]}"),
		 REFUSED("tool_results", "tool_results[0].id is required")},
		{ASK("{'tool_results':[{'id':'a'}]}"),
		 REFUSED("tool_results", "tool_results[0].content is required")},
		{ASK("{'tool_results':[{'id':'a','content':'b','failed':1}]}"),
		 REFUSED("tool_results", "tool_results[0].failed must be a boolean, not number")},
	};
	struct fixture f;

	start(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		say_and_wait(&f, rows[i].params);
		hear(&f, rows[i].answer);
	}
	finish(&f);
}

TEST(too_many_tools_are_refused)
{
	char params[4096] = "{'content':'a','tools':[{'name':'t'}";
	char call[4200];
	struct fixture f;

	for (int i = 0; i < AGENT_TOOLS_MAX; i++)
		strcat(params, ",{'name':'t'}");
	snprintf(call, sizeof(call),
		 "{'jsonrpc':'2.0','method':'chat.stream','params':%s]},'id':1}\n", params);
	start(&f);
	say_and_wait(&f, call);
	hear(&f, REFUSED("tools", "tools must have at most 128 entries, not 129"));
	finish(&f);
}

/* ---- agents ---- */

TEST(a_cancelled_probe_may_still_end)
{
	struct fixture f;

	start(&f);
	say_and_wait(&f, CALL("chat.agents", "{}"));
	say_and_wait(&f, "{'jsonrpc':'2.0','method':'rpc.cancel','params':{'id':1},'id':2}\n");
	hear(&f, "{'jsonrpc':'2.0','error':{'code':-32800,'message':'Cancelled'},'id':1}\n"
		 "{'jsonrpc':'2.0','result':{'cancelled':true},'id':2}\n");
	played.agents(played.agents_arg, NULL, 0);
	hear_nothing(&f, &f.client);
	finish(&f);
}
