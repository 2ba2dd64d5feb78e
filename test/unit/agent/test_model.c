/* How OpenAI's and Anthropic's spellings are written and read. */
#include "check.h"

#include "model_fixture.h"

#define DATA(json)   "data: " json "\n\n"
#define DELTA(delta) DATA("{\"choices\":[{\"index\":0,\"delta\":" delta "}]}")
#define STOP(reason) DATA("{\"choices\":[{\"delta\":{},\"finish_reason\":\"" reason "\"}]}")
#define DONE         DATA("[DONE]")
#define EVENT(json)  "event: any\n" DATA(json)

/* ---- what is asked ---- */

static const struct tool_call calls[] = {
	{TEXT("call_1"), TEXT("weather"), TEXT("{\"city\": \"Oslo\"}")},
	{TEXT("call_2"), TEXT("time"), TEXT("")},
};

static const struct message messages[] = {
	{.role = MESSAGE_USER, .text = TEXT("say \"hi\"")},
	{.role = MESSAGE_USER, .text = TEXT("and more")},
	{.role = MESSAGE_ASSISTANT, .text = {NULL, 0}, .calls = calls, .n_calls = 2},
	{.role = MESSAGE_TOOL, .text = TEXT("rain"), .call_id = TEXT("call_1")},
	{.role = MESSAGE_TOOL, .text = TEXT("broken"), .call_id = TEXT("call_2"), .failed = true},
	{.role = MESSAGE_ASSISTANT, .text = TEXT(" \n")},
	{.role = MESSAGE_USER, .text = TEXT("so?")},
};

static const struct agent_tool tools[] = {
	{TEXT("weather"), TEXT("of a city"), TEXT("{\"type\":\"object\"}")},
	{TEXT("time"), {NULL, 0}, {NULL, 0}},
};

static const struct agent_ask whole_ask = {
	.conversation = TEXT("c"),
	.system = TEXT("be brief"),
	.messages = messages,
	.n_messages = 7,
	.tools = tools,
	.n_tools = 2,
};

FIXTURE(setup, teardown);

TEST(openai_is_asked_as_the_protocol_says)
{
	struct fixture *f = *state;

	f->opts.max_tokens = 99;
	f->opts.temperature = 0.5;
	setenv("TEST_MODEL_KEY", "a-secret", 1);
	f->opts.key.environment = "TEST_MODEL_KEY";
	make_openai(f);
	answers(f, STOP("stop") DONE);
	assert_int_equal(ask_for(f, &whole_ask), AGENT_DONE);
	assert_non_null(strstr(f->head, "POST /v1/chat/completions HTTP/1.1\r\n"));
	assert_non_null(strstr(f->head, "\r\nAuthorization: Bearer a-secret\r\n"));
	assert_non_null(strstr(f->head, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(f->head, "\r\nAccept: text/event-stream, application/json\r\n"));
	assert_string_equal(
		f->request,
		"{\"model\":\"tiny\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
		"\"max_tokens\":99,\"temperature\":0.5,\"messages\":["
		"{\"role\":\"system\",\"content\":\"be brief\"},"
		"{\"role\":\"user\",\"content\":\"say \\\"hi\\\"\\n\\nand more\"},"
		"{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
		"{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"weather\","
		"\"arguments\":\"{\\\"city\\\": \\\"Oslo\\\"}\"}},"
		"{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":\"time\","
		"\"arguments\":\"{}\"}}]},"
		"{\"role\":\"tool\",\"content\":\"rain\",\"tool_call_id\":\"call_1\"},"
		"{\"role\":\"tool\",\"content\":\"broken\",\"tool_call_id\":\"call_2\"},"
		"{\"role\":\"assistant\",\"content\":\" \\n\"},"
		"{\"role\":\"user\",\"content\":\"so?\"}],"
		"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\","
		"\"description\":\"of a city\",\"parameters\":{\"type\":\"object\"}}},"
		"{\"type\":\"function\",\"function\":{\"name\":\"time\","
		"\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]}");
}

TEST(anthropic_is_asked_as_the_protocol_says)
{
	struct fixture *f = *state;

	f->opts.temperature = 0;
	setenv("TEST_MODEL_KEY", "a-secret", 1);
	f->opts.key.environment = "TEST_MODEL_KEY";
	make_anthropic(f);
	answers(f, EVENT("{\"type\":\"message_stop\"}"));
	assert_int_equal(ask_for(f, &whole_ask), AGENT_DONE);
	assert_non_null(strstr(f->head, "POST /v1/messages HTTP/1.1\r\n"));
	assert_non_null(strstr(f->head, "\r\nx-api-key: a-secret\r\n"));
	assert_non_null(strstr(f->head, "\r\nanthropic-version: 2023-06-01\r\n"));
	assert_null(strstr(f->head, "Authorization"));
	assert_string_equal(
		f->request,
		"{\"model\":\"tiny\",\"stream\":true,\"max_tokens\":4096,\"temperature\":0,"
		"\"system\":\"be brief\",\"messages\":["
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"say \\\"hi\\\"\"},"
		"{\"type\":\"text\",\"text\":\"and more\"}]},"
		"{\"role\":\"assistant\",\"content\":["
		"{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"weather\","
		"\"input\":{\"city\": \"Oslo\"}},"
		"{\"type\":\"tool_use\",\"id\":\"call_2\",\"name\":\"time\",\"input\":{}}]},"
		"{\"role\":\"user\",\"content\":["
		"{\"type\":\"tool_result\",\"tool_use_id\":\"call_1\",\"content\":\"rain\"},"
		"{\"type\":\"tool_result\",\"tool_use_id\":\"call_2\",\"content\":\"broken\","
		"\"is_error\":true},"
		"{\"type\":\"text\",\"text\":\"so?\"}]}],"
		"\"tools\":[{\"name\":\"weather\",\"description\":\"of a city\","
		"\"input_schema\":{\"type\":\"object\"}},"
		"{\"name\":\"time\",\"input_schema\":{\"type\":\"object\",\"properties\":{}}}]}");
}

TEST(arguments_that_are_no_object_still_make_a_request)
{
	static const struct tool_call odd[] = {
		{TEXT("1"), TEXT("t"), TEXT("{\"cut")},
		{TEXT("2"), TEXT("t"), TEXT("[1]")},
	};
	static const struct message message = {
		.role = MESSAGE_ASSISTANT, .calls = odd, .n_calls = 2};
	static const struct agent_ask ask = {.messages = &message, .n_messages = 1};
	struct fixture *f = *state;

	make_anthropic(f);
	answers(f, EVENT("{\"type\":\"message_stop\"}"));
	assert_int_equal(ask_for(f, &ask), AGENT_DONE);
	assert_non_null(strstr(f->request, "\"input\":{\"arguments\":\"{\\\"cut\"}"));
	assert_non_null(strstr(f->request, "\"input\":{\"arguments\":\"[1]\"}"));
}

TEST(without_options_and_key_none_are_sent)
{
	struct fixture *f = *state;

	f->opts.model = "";
	make_openai(f);
	answers(f, STOP("stop") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_null(strstr(f->head, "Authorization"));
	assert_string_equal(f->request,
			    "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
			    "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}");
}

TEST(urls_lead_where_they_say)
{
	static const struct {
		const char *given;
		const char *openai;
		const char *anthropic;
		const char *probe;
	} rows[] = {
		{"", "POST /v1/chat/completions ", "POST /v1/messages ", "GET /v1/models "},
		{"/", "POST /v1/chat/completions ", "POST /v1/messages ", "GET /v1/models "},
		{"/v1", "POST /v1/chat/completions ", "POST /v1/messages ", "GET /v1/models "},
		{"/api/v1", "POST /api/v1/chat/completions ", "POST /api/v1/messages ",
		 "GET /api/v1/models "},
		{"/else/where", "POST /else/where ", "POST /else/where ", "GET /else/where "},
	};
	struct fixture *f = *state;
	static char url[200];

	answers(f, DONE);
	f->opts.url = url;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(url, sizeof(url), "%s%s", f->url, rows[i].given);
		make_openai(f);
		f->end.done = false;
		assert_int_equal(ask_for(f, hello()), AGENT_DONE);
		assert_memory_equal(f->head, rows[i].openai, strlen(rows[i].openai));
		make_anthropic(f);
		f->end.done = false;
		assert_int_equal(ask_for(f, hello()), AGENT_DONE);
		assert_memory_equal(f->head, rows[i].anthropic, strlen(rows[i].anthropic));
		assert_true(probe(f));
		assert_memory_equal(f->head, rows[i].probe, strlen(rows[i].probe));
	}
}

TEST(what_is_wrong_is_refused_when_it_is_made)
{
	static const char *const urls[] = {"",       "host:1",        "ftp://a",    "http://",
					   "unix:x", "http://u:p@a/", "http://a/?q"};
	struct fixture *f = *state;
	struct model_opts opts = f->opts;
	char long_name[200];

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		opts.url = urls[i];
		assert_int_equal(model_check_url(urls[i], &f->error), REFUSE_PARAMS);
		assert_int_equal(openai_new(f->loop, &opts, &f->agent, &f->error), REFUSE_PARAMS);
		assert_string_equal(f->error.text,
				    "invalid model URL: expected http://HOST[:PORT][/PATH], "
				    "https://… or unix:PATH");
	}
	assert_int_equal(model_check_url("https://api.example/v1", &f->error), 0);
	assert_int_equal(model_check_url("unix:/run/model.sock", &f->error), 0);
	memset(long_name, 'n', sizeof(long_name));
	long_name[150] = '\0';
	opts = f->opts;
	opts.name = long_name;
	assert_int_equal(openai_new(f->loop, &opts, &f->agent, &f->error), REFUSE_PARAMS);
	opts = f->opts;
	opts.model = long_name;
	assert_int_equal(anthropic_new(f->loop, &opts, &f->agent, &f->error), REFUSE_PARAMS);
	opts = f->opts;
	opts.key.file = "/f";
	opts.key.environment = "E";
	assert_int_equal(openai_new(f->loop, &opts, &f->agent, &f->error), REFUSE_PARAMS);
	assert_string_equal(f->error.text,
			    "agent 'm': set only one of key_env, key_file and key_command");
}

TEST(a_socket_file_will_do)
{
	struct http_server local = {.answer = provider_answer};
	struct fixture *f = *state;
	char folder[] = "/tmp/koine.XXXXXX";
	char path[64];
	static char url[80];

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(url, sizeof(url), "unix:%s", path);
	http_server_start(&local, path);
	f->opts.url = url;
	make_openai(f);
	answers(f, DELTA("{\"content\":\"yes\"}") STOP("stop") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_string_equal(f->text, "yes");
	agent_free(f->agent);
	f->agent = NULL;
	http_server_stop(&local);
	unlink(path);
	rmdir(folder);
}

/* ---- OpenAI's answers ---- */

TEST(text_comes_in_pieces_with_counts_at_the_end)
{
	struct fixture *f = *state;

	make_openai(f);
	for (size_t piece = 0; piece < 3; piece++) {
		afresh(f);
		script(f, (struct step) {
				  .body = ": comment\r\n\r\n" DELTA(
					  "{\"role\":\"assistant\",\"content\":null}")
					  DELTA("{\"content\":\"Grü\"}") DELTA("{\"content\":\"\"}")
						  DELTA("{\"content\":\"ße \\u20ac\"}") STOP("stop")
							  DATA("{\"choices\":[],\"usage\":"
							       "{\"prompt_tokens\":11,"
							       "\"completion_tokens\":7,"
							       "\"prompt_tokens_details\":"
							       "{\"cached_tokens\":5}}}") DONE,
				  .piece = piece});
		assert_int_equal(ask_for(f, hello()), AGENT_DONE);
		assert_string_equal(f->text, "Grüße €");
		assert_int_equal(f->n_pieces, 2);
		assert_int_equal(f->end.usage.input, 11);
		assert_int_equal(f->end.usage.output, 7);
		assert_int_equal(f->end.usage.cache_read, 5);
		assert_int_equal(f->end.usage.cache_written, -1);
	}
}

TEST(content_may_be_a_list_of_parts)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"other\"},"
			 "{\"type\":\"text\",\"text\":\"b\"}]}") STOP("stop"));
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_string_equal(f->text, "ab");
}

TEST(the_last_counts_count)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DATA("{\"choices\":[{\"delta\":{\"content\":\"a\"}}],"
			"\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}")
			   DATA("{\"choices\":[{\"delta\":{\"content\":\"b\"}}],"
				"\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}")
				   DATA("{\"choices\":[],\"usage\":null}") STOP("stop") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_int_equal(f->end.usage.input, 3);
	assert_int_equal(f->end.usage.output, 2);
	assert_int_equal(f->end.usage.cache_read, -1);
	afresh(f);
	answers(f,
		DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":-4,\"completion_tokens\":1e9}}")
			STOP("stop") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_int_equal(f->end.usage.input, -1);
	assert_int_equal(f->end.usage.output, -1);
}

TEST(calls_are_put_together_from_fragments)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DELTA("{\"content\":\"let me see\"}") DELTA(
			   "{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\","
			   "\"function\":{\"name\":\"one\",\"arguments\":\"\"}}]}")
			   DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
				 "\"{\\\"x\\\"\"}}]}")
				   DELTA("{\"tool_calls\":[{\"index\":1,\"id\":\"b\","
					 "\"function\":{\"name\":\"two\"}}]}")
					   DELTA("{\"tool_calls\":[{\"index\":0,\"function\":"
						 "{\"arguments\":\":1}\"}}]}") STOP("tool_calls")
						   DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_CALLS);
	assert_string_equal(f->text, "let me see");
	assert_int_equal(f->n_calls, 2);
	assert_string_equal(f->calls[0].id, "a");
	assert_string_equal(f->calls[0].name, "one");
	assert_string_equal(f->calls[0].arguments, "{\"x\":1}");
	assert_string_equal(f->calls[1].id, "b");
	assert_string_equal(f->calls[1].name, "two");
	assert_string_equal(f->calls[1].arguments, "{}");
}

TEST(whole_calls_need_no_index_and_no_id)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DELTA("{\"content\":\"\",\"tool_calls\":["
			 "{\"function\":{\"name\":\"one\",\"arguments\":\"{\\\"a\\\":1}\"}},"
			 "{\"function\":{\"name\":\"one\",\"arguments\":{\"b\":[2]}}}]}")
			   STOP("stop") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_CALLS);
	assert_int_equal(f->n_calls, 2);
	assert_string_equal(f->calls[0].arguments, "{\"a\":1}");
	assert_string_equal(f->calls[1].arguments, "{\"b\":[2]}");
	assert_memory_equal(f->calls[0].id, "call_", 5);
	assert_string_not_equal(f->calls[0].id, f->calls[1].id);
}

TEST(calls_that_share_an_index_are_apart_by_their_ids)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f,
		DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"one\","
		      "\"arguments\":\"{}\"}}]}")
			DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"function\":"
			      "{\"name\":\"one\",\"arguments\":\"{\\\"n\\\":\"}}]}")
				DELTA("{\"tool_calls\":[{\"id\":\"b\",\"function\":"
				      "{\"name\":\"one\",\"arguments\":\"2}\"}}]}") STOP("stop")
					DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_CALLS);
	assert_int_equal(f->n_calls, 2);
	assert_string_equal(f->calls[0].arguments, "{}");
	assert_string_equal(f->calls[1].arguments, "{\"n\":2}");
}

TEST(a_reason_to_stop_is_an_outcome)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DELTA("{\"content\":\"x\"}") STOP("length") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_LENGTH);
	afresh(f);
	answers(f, DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":"
			 "{\"name\":\"one\",\"arguments\":\"{\\\"x\"}}]}") STOP("length") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_LENGTH);
	assert_int_equal(f->n_calls, 0);
	afresh(f);
	answers(f, STOP("tool_calls") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	afresh(f);
	answers(f, STOP("something new") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	afresh(f);
	answers(f, DELTA("{\"content\":\"x\"}") STOP("content_filter") DONE);
	fails(f, "ProviderError", "agent 'm': the provider's content filter stopped the response");
	assert_string_equal(f->text, "x");
}

TEST(a_stream_may_end_without_its_mark_but_not_without_a_reason)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DELTA("{\"content\":\"x\"}") STOP("stop"));
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	afresh(f);
	script(f, (struct step) {.body = DELTA("{\"content\":\"x\"}") STOP("stop"), .ending = CUT});
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	afresh(f);
	answers(f, DELTA("{\"content\":\"x\"}") DONE);
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	afresh(f);
	answers(f, DELTA("{\"content\":\"part\"}") "data: {\"choi");
	fails(f, "ProviderError", "agent 'm': the connection closed in the middle of the response");
	assert_string_equal(f->text, "part");
}

TEST(a_server_that_stays_after_its_mark_is_left)
{
	struct fixture *f = *state;

	make_openai(f);
	script(f, (struct step) {.body = DELTA("{\"content\":\"x\"}") STOP("stop") DONE,
				 .ending = HANGS});
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_string_equal(f->text, "x");
}

TEST(an_answer_that_is_no_stream_is_understood)
{
	struct fixture *f = *state;

	make_openai(f);
	script(f,
	       (struct step) {.headers = "Content-Type: application/json\r\n",
			      .body = "\n {\"choices\":[{\"message\":{\"role\":\"assistant\","
				      "\"content\":\"whole\",\"tool_calls\":[{\"id\":\"a\","
				      "\"function\":{\"name\":\"one\",\"arguments\":\"{}\"}}]},"
				      "\"finish_reason\":\"tool_calls\"}],"
				      "\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}\n",
			      .piece = 7});
	assert_int_equal(ask_for(f, hello()), AGENT_CALLS);
	assert_string_equal(f->text, "whole");
	assert_int_equal(f->n_calls, 1);
	assert_int_equal(f->end.usage.output, 1);
	afresh(f);
	answers(f, "{\"error\":{\"message\":\"no such model\"}}");
	fails(f, "ProviderError", "agent 'm': the provider reported an error: no such model");
	afresh(f);
	answers(f, "{\"id\":1}");
	fails(f, "ProviderError",
	      "agent 'm': the provider sent an invalid response: the response has no choices");
	afresh(f);
	script(f, (struct step) {.body = "{\"choices\":[", .ending = CUT});
	fails(f, "ProviderError", "agent 'm': the connection closed in the middle of the response");
}

TEST(an_error_in_the_middle_keeps_the_text)
{
	struct fixture *f = *state;

	make_openai(f);
	answers(f, DELTA("{\"content\":\"half\"}")
			   DATA("{\"error\":{\"message\":\"the GPU is\\ngone\",\"code\":500}}")
				   DELTA("{\"content\":\"never\"}") STOP("stop") DONE);
	fails(f, "ProviderError", "agent 'm': the provider reported an error: the GPU is gone");
	assert_string_equal(f->text, "half");
	assert_int_equal(f->n_asked, 1);
	afresh(f);
	answers(f, DATA("{\"error\":\"plain\"}"));
	fails(f, "ProviderError", "agent 'm': the provider reported an error: plain");
}

/* ---- Anthropic's answers ---- */

#define MESSAGE_START                                                                              \
	EVENT("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,"           \
	      "\"cache_read_input_tokens\":200,\"cache_creation_input_tokens\":3000,"              \
	      "\"output_tokens\":1}}}")
#define TEXT_DELTA(i, text)                                                                        \
	EVENT("{\"type\":\"content_block_delta\",\"index\":" i                                     \
	      ",\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}}")
#define JSON_DELTA(i, json)                                                                        \
	EVENT("{\"type\":\"content_block_delta\",\"index\":" i                                     \
	      ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}}")
#define MESSAGE_END(reason)                                                                        \
	EVENT("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason                   \
	      "\"},\"usage\":{\"output_tokens\":42}}")                                             \
	EVENT("{\"type\":\"message_stop\"}")

TEST(anthropic_streams_text_and_counts)
{
	struct fixture *f = *state;

	make_anthropic(f);
	for (size_t piece = 0; piece < 2; piece++) {
		afresh(f);
		script(f, (struct step) {
				  .body = MESSAGE_START EVENT("{\"type\":\"ping\"}") EVENT(
					  "{\"type\":\"content_block_start\",\"index\":0,"
					  "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}")
					  EVENT("{\"type\":\"content_block_delta\",\"index\":0,"
						"\"delta\":{\"type\":\"thinking_delta\","
						"\"thinking\":\"hm\"}}") TEXT_DELTA("0", "Hel")
						  TEXT_DELTA("0", "lo")
							  EVENT("{\"type\":\"content_block_"
								"stop\",\"index\":0}")
								  EVENT("{\"type\":\"new\"}")
									  MESSAGE_END("end_"
										      "turn"),
				  .piece = piece});
		assert_int_equal(ask_for(f, hello()), AGENT_DONE);
		assert_string_equal(f->text, "Hello");
		assert_int_equal(f->end.usage.input, 3210);
		assert_int_equal(f->end.usage.output, 42);
		assert_int_equal(f->end.usage.cache_read, 200);
		assert_int_equal(f->end.usage.cache_written, 3000);
	}
}

TEST(anthropic_uses_tools)
{
	struct fixture *f = *state;

	make_anthropic(f);
	answers(f, MESSAGE_START TEXT_DELTA("0", "looking") EVENT(
			   "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":"
			   "{\"type\":\"tool_use\",\"id\":\"tu_1\",\"name\":\"one\",\"input\":{}}}")
			   EVENT("{\"type\":\"content_block_start\",\"index\":2,"
				 "\"content_block\":{\"type\":\"tool_use\",\"id\":\"tu_2\","
				 "\"name\":\"two\",\"input\":{\"a\":1}}}") JSON_DELTA("1", "")
				   JSON_DELTA("1", "{\\\"x\\\":") JSON_DELTA("7", "strange")
					   JSON_DELTA("1", "\\\"y\\\"}") MESSAGE_END("tool_use"));
	assert_int_equal(ask_for(f, hello()), AGENT_CALLS);
	assert_string_equal(f->text, "looking");
	assert_int_equal(f->n_calls, 2);
	assert_string_equal(f->calls[0].id, "tu_1");
	assert_string_equal(f->calls[0].name, "one");
	assert_string_equal(f->calls[0].arguments, "{\"x\":\"y\"}");
	assert_string_equal(f->calls[1].arguments, "{\"a\":1}");
}

TEST(anthropic_has_reasons_of_its_own)
{
	struct fixture *f = *state;

	make_anthropic(f);
	answers(f, MESSAGE_START TEXT_DELTA("0", "x") MESSAGE_END("max_tokens"));
	assert_int_equal(ask_for(f, hello()), AGENT_LENGTH);
	afresh(f);
	answers(f, MESSAGE_START MESSAGE_END("stop_sequence"));
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	afresh(f);
	answers(f, MESSAGE_START TEXT_DELTA("0", "x") MESSAGE_END("refusal"));
	fails(f, "ProviderError", "agent 'm': the provider's content filter stopped the response");
	afresh(f);
	answers(f, MESSAGE_START TEXT_DELTA("0", "x"));
	fails(f, "ProviderError", "agent 'm': the connection closed in the middle of the response");
	assert_int_equal(f->end.usage.input, 3210);
	assert_string_equal(f->text, "x");
}

TEST(anthropic_fails_in_the_middle)
{
	struct fixture *f = *state;

	make_anthropic(f);
	answers(f, MESSAGE_START TEXT_DELTA("0", "x")
			   EVENT("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
				 "\"message\":\"Overloaded\"}}"));
	fails(f, "ProviderError", "agent 'm': the provider reported an error: Overloaded");
	assert_string_equal(f->text, "x");
	afresh(f);
	answers(f, EVENT("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}"));
	fails(f, "ProviderError", "agent 'm': the provider reported an error: overloaded_error");
}

TEST(anthropic_may_answer_whole)
{
	struct fixture *f = *state;

	make_anthropic(f);
	answers(f, "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},"
		   "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"one\",\"input\":{\"k\":1}}],"
		   "\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":4,"
		   "\"output_tokens\":5}}");
	assert_int_equal(ask_for(f, hello()), AGENT_CALLS);
	assert_string_equal(f->text, "hi");
	assert_string_equal(f->calls[0].arguments, "{\"k\":1}");
	assert_int_equal(f->end.usage.input, 4);
	assert_int_equal(f->end.usage.output, 5);
}
