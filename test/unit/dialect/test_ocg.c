/*
 * What ocg makes of Go's messages: the history, the question, results and tools; and what it
 * says where nothing is initialized; and when its gateway refuses a completion. In the texts below ' stands for ".
 */
#include "check.h"

#include "../call_world.h"
#include "base/log.h"
#include "dialect/gateway/completion.h"
#include "dialect/ocg/ocg.h"
#include "engine/engine.h"
#include "wire/json.h"

static struct arena arena;
static struct list chains; /* what was answered before */

static const struct value *tree(const char *text)
{
	char *copy = arena_copy(&arena, text, strlen(text));
	struct value *v;

	for (char *p = copy; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	assert_int_equal(json_read(&arena, copy, strlen(copy), &json_default_limits, &v, NULL), 0);
	return v;
}

/* "role text" of each that is only sent, then "? text" and "= id text", "!" for a failure. */
static const char *read_as(const char *messages)
{
	static char out[1024];
	const struct ocg_chat_in in = {.messages = tree(messages)};
	struct chat_ask ask;
	size_t n = 0;

	assert_int_equal(ocg_chat_read(&arena, &in, &chains, &ask), 0);
	assert_true(ask.own_history);
	if (ask.system.data)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "system %.*s|",
				      TEXT_ARGS(ask.system));
	for (unsigned i = 0; i < ask.n_history; i++) {
		const struct message *m = &ask.history[i];

		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s %.*s|",
				      m->role == MESSAGE_USER        ? "user"
				      : m->role == MESSAGE_ASSISTANT ? "assistant"
								     : "tool ",
				      TEXT_ARGS(m->call_id), TEXT_ARGS(m->text));
	}
	for (unsigned i = 0; i < ask.n_results; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "= %.*s %.*s%s|",
				      TEXT_ARGS(ask.results[i].call_id),
				      TEXT_ARGS(ask.results[i].text),
				      ask.results[i].failed ? "!" : "");
	if (ask.content.data)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "? %.*s", TEXT_ARGS(ask.content));
	assert_true(n < sizeof(out));
	return out;
}

#define USER(text)      "{'Role':'user','Content':'" text "'}"
#define ASSISTANT(text) "{'Role':'assistant','Content':'" text "'}"
#define CALLS                                                                                      \
	"'ToolCalls':[{'ID':'a','Function':{'Name':'x','Arguments':'{}'}},"                        \
	"{'ID':'b','Function':{'Name':'y','Arguments':'{}'}}]"

TEST(what_follows_the_last_answer_is_the_question)
{
	assert_string_equal(read_as("[" USER("one") "]"), "? one");
	assert_string_equal(read_as("[" USER("one") "," ASSISTANT("two") "," USER("three") "]"),
			    "user one|assistant two|? three");
	assert_string_equal(read_as("[" USER("one") "," USER("two") "]"), "? one\n\ntwo");
	assert_string_equal(read_as("[{'Role':'system','Content':'s'}," USER(
				    "one") ","
					   "{'Role':'system','Content':'t'}]"),
			    "system s\n\nt|? one");
	assert_string_equal(read_as("[{'Role':'odd','Content':'one'},{'Content':'two'}]"),
			    "? one\n\ntwo");
}

TEST(who_says_nothing_asks_nothing)
{
	assert_string_equal(read_as("[]"), "? ");
	assert_string_equal(read_as("[{}]"), "? ");
	assert_string_equal(read_as("[1,'x',null]"), "? ");
	assert_string_equal(read_as("[" USER("one") "," ASSISTANT("two") "]"),
			    "user one|assistant two|? ");
}

TEST(results_belong_to_their_calls)
{
	/* by id; texts as they are, the rest as JSON */
	assert_string_equal(
		read_as("[" USER("q") ",{'Role':'assistant'," CALLS "},{'Role':'tool',"
				      "'ToolExecutionResults':[{'ID':'b','Result':'text'},"
				      "{'ID':'a','Result':{'k':[1,null]}}]}]"),
		"user q|assistant |= b text|= a {\"k\":[1,null]}|");
	/* in order, where they have none */
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    "},{'Role':'tool','ToolExecutionResults':["
				    "{'Result':7},{}]}]"),
			    "assistant |= a 7|= b null|");
	/* with the calls themselves, and with something said */
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    ",'ToolExecutionResults':[{'ID':'a','Result':true}]}]"),
			    "assistant |= a true|");
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    "},{'Role':'user','Content':'and',"
				    "'ToolExecutionResults':[{'ID':'a','Result':'x'}]}]"),
			    "assistant |= a x|? and");
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    "},{'Role':'tool','Content':'both ran',"
				    "'ToolExecutionResults':[{'ID':'a','Result':'x'}]}]"),
			    "assistant |= a x|? both ran");
	/* as OpenAI has them */
	assert_string_equal(
		read_as("[{'Role':'assistant'," CALLS "},{'Role':'tool','Content':'one'},"
			"{'Role':'tool','Content':'two'},{'Role':'tool','Content':'three'}]"),
		"assistant |= a one|= b two|? three");
	/* those of before are only sent */
	assert_string_equal(
		read_as("[{'Role':'assistant'," CALLS ",'ToolExecutionResults':["
			"{'ID':'a','Result':'x'}]}," ASSISTANT("done") "," USER("next") "]"),
		"assistant |tool a x|assistant done|? next");
}

#define NAMELESS      "'ToolCalls':[{'Function':{'Name':'x'}},{'ID':'','Function':{'Name':'y'}}]"
#define RESULTS(list) "{'Role':'tool','ToolExecutionResults':[" list "]}"

TEST(each_call_has_an_id_and_one_result)
{
	/* calls without one are numbered, over the whole history */
	assert_string_equal(
		read_as("[{'Role':'assistant'," NAMELESS
			",'ToolExecutionResults':[{'Result':'1'}]},"
			"{'Role':'assistant'," NAMELESS
			"}," RESULTS("{'Result':'x'},{'Result':'y'}") "]"),
		"assistant |tool ocg_call_0 1|assistant |= ocg_call_2 x|= ocg_call_3 y|");
	/* results that nobody asked for are told apart as well */
	assert_string_equal(
		read_as("[{'Role':'assistant'}," RESULTS("{'Result':'x'},{'Result':'y'}") "]"),
		"assistant |= ocg_call_0 x|= ocg_call_1 y|");
	/* of two for one call the last counts, wherever they stand */
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    "}," RESULTS("{'ID':'a','Result':'x'},{'ID':'b','Result':'y'},"
						 "{'ID':'a','Result':{'error':'z'}}") "]"),
			    "assistant |= a {\"error\":\"z\"}!|= b y|");
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    ",'ToolExecutionResults':[{'ID':'a','Result':'x'}]}," RESULTS(
					    "{'ID':'a','Result':'y'}") "]"),
			    "assistant |= a y|");
	/* one that says nothing is of the first that has none */
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    "}," RESULTS("{'ID':'b','Result':'y'},{'Result':'x'}") "]"),
			    "assistant |= b y|= a x|");
	assert_string_equal(read_as("[{'Role':'assistant'," CALLS
				    "}," RESULTS("{'ID':'a','Result':'w'},{'ID':'a','Result':'x'},"
						 "{'Result':'y'}") "]"),
			    "assistant |= a x|= b y|");
	/* another answer's call may have the same */
	assert_string_equal(
		read_as("[{'Role':'assistant'," CALLS "}," RESULTS(
			"{'ID':'a','Result':'x'}") ",{'Role':'assistant'," CALLS
						   "}," RESULTS("{'ID':'a','Result':'y'}") "]"),
		"assistant |tool a x|assistant |= a y|");
}

TEST(without_the_answer_results_follow_what_was_said)
{
	assert_string_equal(
		read_as("[" USER("one") "," USER("two") "," RESULTS(
			"{'ID':'a','Result':'x'},{'Result':'y'}") "," USER("three") "]"),
		"user one|user two|= a x|= ocg_call_0 y|? three");
	assert_string_equal(read_as("[{'Role':'user','Content':'one','ToolExecutionResults':["
				    "{'ID':'a','Result':'x'}]}]"),
			    "user one|= a x|");
	assert_string_equal(
		read_as("[" USER("one") ",{'Role':'tool','Content':'it ran',"
					"'ToolExecutionResults':[{'ID':'a','Result':'x'}]}]"),
		"user one|= a x|? it ran");
	/* one id may be used for each question */
	assert_string_equal(read_as("[" USER("one") "," RESULTS("{'ID':'a','Result':'x'}") "," USER(
				    "two") "," RESULTS("{'ID':'a','Result':'y'}") "]"),
			    "user one|tool a x|user two|= a y|");
}

TEST(results_find_the_answer_that_wanted_them)
{
	static struct tool_call calls[] = {{.id = TEXT("a")}, {.id = TEXT("b")}};
	static struct tool_call other = {.id = TEXT("a")};
	struct message said[] = {
		{.role = MESSAGE_USER, .text = TEXT("one")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("now"), .calls = &other, .n_calls = 1},
		{.role = MESSAGE_TOOL, .text = TEXT("0"), .call_id = TEXT("o")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("more"), .calls = calls, .n_calls = 2},
	};
	struct message since[] = {
		{.role = MESSAGE_USER, .text = TEXT("two")},
		{.role = MESSAGE_ASSISTANT, .text = TEXT("yes"), .calls = &other, .n_calls = 1},
	};
	struct ocg_chain newer = {.said = since, .n_said = 2, .conversation = TEXT("ocg-2")};
	struct ocg_chain older = {.said = said, .n_said = 4, .conversation = TEXT("ocg-1")};

	list_append(&chains, &newer.link);
	list_append(&chains, &older.link);
	/* by their ids; with the question, if that did not come */
	assert_string_equal(
		read_as("[" RESULTS("{'ID':'a','Result':'x'},{'ID':'b','Result':'y'}") "]"),
		"user one|assistant now|tool o 0|assistant more|= a x|= b y|");
	/* by their question */
	assert_string_equal(read_as("[" USER("one") "," RESULTS("{'ID':'a','Result':'x'}") "]"),
			    "user one|assistant now|tool o 0|assistant more|= a x|");
	assert_string_equal(read_as("[{'Role':'user','Content':'two','ToolExecutionResults':["
				    "{'ID':'a','Result':'x'}]}," USER("three") "]"),
			    "user two|assistant yes|= a x|? three");
	/* never by another's */
	assert_string_equal(
		read_as("[" ASSISTANT("0") "," USER("?") "," RESULTS("{'Result':'x'}") "]"),
		"assistant 0|user ?|= ocg_call_0 x|");
	/* the newest, where they say neither */
	assert_string_equal(read_as("[" RESULTS("{'Result':'x'}") "]"),
			    "user two|assistant yes|= a x|");
	assert_string_equal(read_as("[" RESULTS("{'Result':'x'},{'Result':'y'}") "]"),
			    "user one|assistant now|tool o 0|assistant more|= a x|= b y|");
	/* what is known already does not count again */
	assert_string_equal(
		read_as("[" USER("one") "," RESULTS("{'ID':'o','Result':'0'}") "," RESULTS(
			"{'ID':'b','Result':'y'},{'ID':'b','Result':'z'}") "]"),
		"user one|assistant now|tool o 0|assistant more|= b z|");
	/* others are nobody's; and who brings the answer needs no other */
	assert_string_equal(read_as("[" RESULTS("{'ID':'c','Result':'x'}") "]"), "= c x|");
	assert_string_equal(
		read_as("[{'Role':'assistant'," CALLS "}," RESULTS("{'ID':'a','Result':'x'}") "]"),
		"assistant |= a x|");
	list_init(&chains);
}

TEST(failures_are_told_apart)
{
	assert_string_equal(read_as("[{'Role':'tool','ToolExecutionResults':[{'ID':'a','Result':{'"
				    "error':'no'}},"
				    "{'ID':'b','Result':{'success':false}},"
				    "{'ID':'c','Result':{'success':true,'error':'ignored'}}]}]"),
			    "= a {\"error\":\"no\"}!|= b {\"success\":false}!|"
			    "= c {\"success\":true,\"error\":\"ignored\"}|");
}

TEST(tools_are_handed_on)
{
	const struct ocg_chat_in in = {
		.tools = tree("[{'Type':'function','Function':{'Name':'n','Description':'d',"
			      "'Parameters':{'type':'object'}}},{'Function':{'Name':'m'}},{}]")};
	struct chat_ask ask;

	assert_int_equal(ocg_chat_read(&arena, &in, &chains, &ask), 0);
	assert_int_equal(ask.n_tools, 3);
	assert_true(text_is(ask.tools[0].name, "n") && text_is(ask.tools[0].description, "d"));
	assert_true(text_is(ask.tools[0].schema, "{\"type\":\"object\"}"));
	assert_null(ask.tools[1].schema.data);
	assert_true(text_is(ask.tools[2].name, ""));
}

/* ---- without anything ---- */

TEST(each_part_that_is_missing_is_named)
{
	static const struct {
		const char *method;
		const char *words;
	} calls[] = {
		{"Agent.Stats", "storage not initialized"},
		{"RPCService.MemorySearch", "memory store not initialized"},
		{"Agent.MemoryGet", "memory store not initialized"},
		{"Agent.MemoryStore", "memory store not initialized"},
		{"RPCService.Chat", "agent not initialized"},
		{"Agent.PulseAdd", "agent not initialized"},
		{"Agent.PulseStatus", "agent not initialized"},
	};
	struct dialect lines = ocg_dialect;
	struct engine nothing = {0};
	const struct ocg_settings settings = {0};
	const struct server_opts opts = {.limits = default_limits,
					 .engine = &nothing,
					 .workers = {.n_readers = 1},
					 .version = "1"};
	struct world w;
	struct dialer c;

	lines.framing = SPEAKS_LINE;
	log_set_level(LOG_LEVEL_ERR);
	assert_int_equal(world_init(&w, &lines, &opts), 0);
	w.endpoint->settings = &settings;
	assert_int_equal(dialer_init(&c, &w), 0);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		char text[200];
		int n = snprintf(text, sizeof(text),
				 "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"id\":1}\n",
				 calls[i].method);

		assert_true(dialer_send_n(&c, &w, text, (size_t)n));
		while (!c.in.len || c.in.data[c.in.len - 1] != '\n')
			assert_true(dialer_wait(&c, &w, c.in.len + 1));
		buf_add_char(&c.in, '\0');
		assert_non_null(strstr(c.in.data, calls[i].words));
		buf_clear(&c.in);
	}
	dialer_done(&c);
	world_done(&w);
}

static int set_up(void **state)
{
	arena_init(&arena, 1 << 20);
	list_init(&chains);
	return 0;
}

static int tear_down(void **state)
{
	arena_done(&arena);
	return 0;
}

GROUP_FIXTURE(set_up, tear_down);

/* As many as a gateway may send that nobody has answered: all of it is little. */
TEST(many_messages_need_no_more_than_they_are)
{
	static const char first[] = "[{'Role':'system','Content':'word word word word word'}";
	struct ocg_chat_in many = {0};
	struct chat_ask ask;
	struct arena small;
	struct buf text;

	buf_init(&text, 8 << 20);
	buf_add_str(&text, first);
	for (unsigned i = 0; i < 500; i++)
		buf_add_str(&text, ",{'Role':'system','Content':'word word word word word'},"
				   "{'Role':'user','Content':'more words than one or two'}");
	buf_add_char(&text, ']');
	buf_add_char(&text, '\0');
	assert_int_equal(text.err, 0);
	many.messages = tree(text.data);
	arena_init(&small, 512 << 10);
	assert_int_equal(ocg_chat_read(&small, &many, &chains, &ask), 0);
	assert_int_equal(ask.system.len, 501 * 24 + 500 * 2);
	assert_int_equal(ask.content.len, 500 * 26 + 499 * 2);
	assert_memory_equal(ask.content.data + ask.content.len - 10, "one or two", 10);
	arena_done(&small);
	buf_done(&text);
}

TEST(a_completion_beyond_the_memory_limit_is_refused_with_the_limit)
{
	struct engine engine = {0};
	struct gateway_known known = {.bytes = COMPLETION_BYTES_MAX + 1};
	const struct gateway_settings settings = {.known = &known};
	const struct completion_ask ask = {0};
	const struct completion_sink sink = {0};
	struct completion *c = NULL;
	struct error error;

	assert_int_equal(completion_start(&engine, NULL, &settings, &ask, &sink, &c, &error),
			 REFUSE_LIMIT);
	assert_non_null(strstr(error.text, "(limit 268435456 bytes)"));
}
