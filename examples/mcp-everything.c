/*
 * An MCP server that uses every feature: the tools, resources and prompts that the official
 * conformance suite requires, each in a few lines.
 *
 *	cc mcp-everything.c -o mcp-everything $(pkg-config --cflags --libs koine)
 *	./mcp-everything                   on standard input and output
 *	./mcp-everything --http 8080       at http://127.0.0.1:8080/mcp
 *	./mcp-everything --unix PATH       lines or HTTP on a socket
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <koine/koine.h>

static struct koine_server *server;
static struct koine_mcp *mcp;

/* A red pixel, and an empty sound. */
static const unsigned char png[] = {
	0x89, 'P',  'N',  'G',  0x0d, 0x0a, 0x1a, 0x0a, 0,   0,    0,    13,   'I',  'H',
	'D',  'R',  0,    0,    0,    1,    0,    0,    0,   1,    8,    2,    0,    0,
	0,    0x90, 0x77, 0x53, 0xde, 0,    0,    0,    12,  'I',  'D',  'A',  'T',  0x08,
	0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0,    0,    0,    3,   0,    1,    0x18, 0xdd, 0x8d,
	0xb0, 0,    0,    0,    0,    'I',  'E',  'N',  'D', 0xae, 0x42, 0x60, 0x82,
};
static const unsigned char wav[] = {
	'R', 'I', 'F', 'F', 36, 0, 0,   0,   'W', 'A', 'V', 'E', 'f', 'm', 't',
	' ', 16,  0,   0,   0,  1, 0,   1,   0,   64,  31,  0,   0,   64,  31,
	0,   0,   1,   0,   8,  0, 'd', 'a', 't', 'a', 0,   0,   0,   0,
};

static const char *text_of(const struct koine_value *v, char *out, size_t size)
{
	size_t len = 0;
	const char *text = koine_value_text(v, &len);

	snprintf(out, size, "%.*s", (int)len, text ? text : "");
	return out;
}

static void say(struct koine_call *call, const char *text)
{
	koine_mcp_text(call, text);
	koine_call_reply(call);
}

/* ---- tools that answer at once ---- */

/* Answers with the whole number that it was given. */
static void types(struct koine_call *call, void *arg)
{
	struct koine_json *j = koine_call_result(call);
	int64_t whole = 0;

	(void)arg;
	koine_value_int(koine_call_param(call, "whole"), &whole);
	koine_json_begin_object(j);
	koine_json_key(j, "whole");
	koine_json_int(j, whole);
	koine_json_end_object(j);
	koine_call_reply(call);
}

static void simple_text(struct koine_call *call, void *arg)
{
	(void)arg;
	say(call, "This is a simple text response for testing.");
}

static void image(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_data(call, "image", "image/png", png, sizeof(png));
	koine_call_reply(call);
}

static void audio(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_data(call, "audio", "audio/wav", wav, sizeof(wav));
	koine_call_reply(call);
}

static void embedded(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_embed(call, "test://embedded-resource", "text/plain",
			"This is an embedded resource content.");
	koine_call_reply(call);
}

static void mixed(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_text(call, "Multiple content types test:");
	koine_mcp_data(call, "image", "image/png", png, sizeof(png));
	koine_mcp_embed(call, "test://mixed-content-resource", "application/json",
			"{\"test\":\"data\",\"value\":123}");
	koine_call_reply(call);
}

static void error(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_refuse(call, "This tool intentionally returns an error for testing");
}

/* Structured output: the client also gets it as text. */
static void sum(struct koine_call *call, void *arg)
{
	struct koine_json *j = koine_call_result(call);
	double a = 0;
	double b = 0;

	(void)arg;
	koine_value_double(koine_call_param(call, "a"), &a);
	koine_value_double(koine_call_param(call, "b"), &b);
	koine_json_begin_object(j);
	koine_json_key(j, "sum");
	koine_json_double(j, a + b);
	koine_json_end_object(j);
	koine_call_reply(call);
}

static void tool_change(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_changed(mcp, KOINE_MCP_TOOLS);
	say(call, "Told everybody that tools have changed.");
}

static void prompt_change(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_changed(mcp, KOINE_MCP_PROMPTS);
	say(call, "Told everybody that prompts have changed.");
}

static void touch(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_updated(mcp, "test://watched-resource");
	say(call, "Told those who watch it.");
}

static void say_name(struct koine_call *call, void *arg)
{
	size_t len;
	const char *name = koine_value_text(koine_value_get(koine_call_params(call), "name"), &len);

	(void)arg;
	if (!name)
		koine_mcp_text(call, "No name was given.");
	else
		koine_mcp_text_n(call, name, len);
	koine_call_reply(call);
}

/* ---- tools that take their time ---- */

struct steps {
	struct koine_call *call;
	void (*step)(struct koine_call *call, int i);
	int i;
	int cancelled;
};

static void take_step(void *arg)
{
	struct steps *s = (struct steps *)arg;

	if (s->cancelled) {
		koine_mcp_refuse(s->call, "Cancelled.");
		free(s);
		return;
	}
	s->step(s->call, s->i++);
	if (s->i < 3) {
		koine_server_after(server, 50, take_step, s);
		return;
	}
	say(s->call, "Done in three steps.");
	free(s);
}

static void cancel_steps(struct koine_call *call, void *arg)
{
	(void)call;
	((struct steps *)arg)->cancelled = 1;
}

static void begin_steps(struct koine_call *call, void (*step)(struct koine_call *call, int i))
{
	struct steps *s = (struct steps *)calloc(1, sizeof(*s));

	if (!s) {
		koine_mcp_refuse(call, "There is no memory for it.");
		return;
	}
	s->call = call;
	s->step = step;
	koine_call_later(call, cancel_steps, s);
	take_step(s);
}

static void log_step(struct koine_call *call, int i)
{
	static const char *const lines[] = {"Tool execution started", "Tool processing data",
					    "Tool execution completed"};

	koine_mcp_log(call, "info", lines[i]);
}

static void with_logging(struct koine_call *call, void *arg)
{
	(void)arg;
	begin_steps(call, log_step);
}

static void progress_step(struct koine_call *call, int i)
{
	koine_mcp_progress(call, i * 50, 100, NULL);
}

static void with_progress(struct koine_call *call, void *arg)
{
	(void)arg;
	begin_steps(call, progress_step);
}

static void answer_late(void *call)
{
	say((struct koine_call *)call, "Reconnection test completed successfully.");
}

static void hang_up(void *call)
{
	koine_mcp_hang_up((struct koine_call *)call);
	koine_server_after(server, 200, answer_late, call);
}

static void reconnection(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_call_later(call, NULL, NULL);
	koine_server_after(server, 50, hang_up, call);
}

/* ---- tools that ask ---- */

static void say_answer(struct koine_call *call, const char *words, const struct koine_value *answer)
{
	size_t len;
	const char *raw = koine_value_raw(answer, &len);
	char text[2000];

	snprintf(text, sizeof(text), "%s%.*s", words, (int)(len < 1900 ? len : 1900), raw);
	say(call, text);
}

static const char defaults_form[] =
	"{\"message\":\"Please review and update the form fields with defaults\","
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
	"\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
	"\"age\":{\"type\":\"integer\",\"default\":30},"
	"\"score\":{\"type\":\"number\",\"default\":95.5},"
	"\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
	"\"default\":\"active\"},"
	"\"verified\":{\"type\":\"boolean\",\"default\":true}},\"required\":[]}}";

static const char enums_form[] =
	"{\"message\":\"Please choose\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
	"\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
	"\"titledSingle\":{\"type\":\"string\",\"oneOf\":["
	"{\"const\":\"value1\",\"title\":\"First Option\"},"
	"{\"const\":\"value2\",\"title\":\"Second Option\"},"
	"{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
	"\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
	"\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
	"\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
	"\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
	"\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":["
	"{\"const\":\"value1\",\"title\":\"First Choice\"},"
	"{\"const\":\"value2\",\"title\":\"Second Choice\"},"
	"{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}},\"required\":[]}}";

/* A question that is the same each time: `arg` is its form. */
static void ask_form(struct koine_call *call, void *arg)
{
	const struct koine_value *answer =
		koine_mcp_ask(call, "form", "elicitation/create", (const char *)arg);

	if (answer)
		say_answer(call, "Elicitation completed: ", answer);
	else
		koine_mcp_wait(call);
}

static void elicitation(struct koine_call *call, void *arg)
{
	const struct koine_field fields[] = {
		{"username", KOINE_TYPE_STRING, true, "User's response"},
		{"email", KOINE_TYPE_STRING, true, "User's email address"},
	};
	const struct koine_value *answer;
	char message[500];

	(void)arg;
	text_of(koine_call_param(call, "message"), message, sizeof(message));
	answer = koine_mcp_elicit(call, "user", message, fields, 2);
	if (answer)
		say_answer(call, "User response: ", answer);
	else
		koine_mcp_wait(call);
}

/* The user's name, or NULL after a question. */
static const struct koine_value *ask_name(struct koine_call *call, const char *key,
					  const char *message)
{
	const struct koine_field name = {"name", KOINE_TYPE_STRING, true, NULL};

	return koine_mcp_elicit(call, key, message, &name, 1);
}

static const struct koine_value *ask_model(struct koine_call *call, const char *key,
					   const char *prompt)
{
	struct koine_json *j;
	const struct koine_value *answer;

	if (koine_json_new(&j) != 0)
		return NULL;
	koine_json_begin_object(j);
	koine_json_key(j, "messages");
	koine_json_begin_array(j);
	koine_json_begin_object(j);
	koine_json_key(j, "role");
	koine_json_string(j, "user");
	koine_json_key(j, "content");
	koine_json_begin_object(j);
	koine_json_key(j, "type");
	koine_json_string(j, "text");
	koine_json_key(j, "text");
	koine_json_string(j, prompt);
	koine_json_end_object(j);
	koine_json_end_object(j);
	koine_json_end_array(j);
	koine_json_key(j, "maxTokens");
	koine_json_int(j, 100);
	koine_json_end_object(j);
	answer = koine_mcp_ask(call, key, "sampling/createMessage", koine_json_text(j, NULL));
	koine_json_free(j);
	return answer;
}

static void say_model(struct koine_call *call, const struct koine_value *answer)
{
	char text[1000];
	char said[900];

	text_of(koine_value_get(koine_value_get(answer, "content"), "text"), said, sizeof(said));
	snprintf(text, sizeof(text), "LLM response: %s", said);
	say(call, text);
}

static void sampling(struct koine_call *call, void *arg)
{
	const struct koine_value *answer;
	char prompt[500];

	(void)arg;
	text_of(koine_call_param(call, "prompt"), prompt, sizeof(prompt));
	answer = ask_model(call, "model", prompt);
	if (answer)
		say_model(call, answer);
	else
		koine_mcp_wait(call);
}

static void input_sampling(struct koine_call *call, void *arg)
{
	const struct koine_value *answer =
		ask_model(call, "capital_question", "What is the capital of France?");

	(void)arg;
	if (answer)
		say_model(call, answer);
	else
		koine_mcp_wait(call);
}

static void greet(struct koine_call *call, const struct koine_value *answer)
{
	char text[300];
	char name[200];

	text_of(koine_value_get(koine_value_get(answer, "content"), "name"), name, sizeof(name));
	snprintf(text, sizeof(text), "Hello, %s!", name);
	say(call, text);
}

static void input_elicitation(struct koine_call *call, void *arg)
{
	const struct koine_value *answer = ask_name(call, "user_name", "What is your name?");

	(void)arg;
	if (answer)
		greet(call, answer);
	else
		koine_mcp_wait(call);
}

static void input_roots(struct koine_call *call, void *arg)
{
	const struct koine_value *answer = koine_mcp_ask(call, "client_roots", "roots/list", NULL);

	(void)arg;
	if (answer)
		say_answer(call, "Roots: ", koine_value_get(answer, "roots"));
	else
		koine_mcp_wait(call);
}

/* What is kept comes back, and only if nobody has changed it. */
static void input_state(struct koine_call *call, void *arg)
{
	const struct koine_field ok = {"ok", KOINE_TYPE_BOOL, true, NULL};
	const struct koine_value *answer =
		koine_mcp_elicit(call, "confirm", "Please confirm", &ok, 1);

	(void)arg;
	if (answer) {
		say(call, koine_mcp_kept(call) ? "state-ok" : "there was no state");
		return;
	}
	koine_mcp_keep(call, "{\"round\":1}");
	koine_mcp_wait(call);
}

static void input_multiple(struct koine_call *call, void *arg)
{
	const struct koine_value *name = ask_name(call, "user_name", "What is your name?");
	const struct koine_value *greeting = ask_model(call, "greeting", "Generate a greeting");
	const struct koine_value *roots = koine_mcp_ask(call, "client_roots", "roots/list", NULL);

	(void)arg;
	if (name && greeting && roots)
		greet(call, name);
	else
		koine_mcp_wait(call);
}

static void input_rounds(struct koine_call *call, void *arg)
{
	const struct koine_field color = {"color", KOINE_TYPE_STRING, true, NULL};
	const struct koine_value *name = ask_name(call, "step1", "Step 1: What is your name?");
	const struct koine_value *answer = NULL;

	(void)arg;
	if (name)
		answer = koine_mcp_elicit(call, "step2", "Step 2: What is your favorite color?",
					  &color, 1);
	if (answer)
		greet(call, name);
	else
		koine_mcp_wait(call);
}

/* Only what the client has declared. */
static void input_capabilities(struct koine_call *call, void *arg)
{
	const struct koine_value *model = NULL;
	const struct koine_value *name = NULL;
	bool can_model = koine_mcp_can(call, "sampling");
	bool can_user = koine_mcp_can(call, "elicitation");

	(void)arg;
	if (can_model)
		model = ask_model(call, "capital_question", "What is the capital of France?");
	if (can_user)
		name = ask_name(call, "user_name", "What is your name?");
	if ((can_model && !model) || (can_user && !name))
		koine_mcp_wait(call);
	else
		say(call, "Nothing more to ask.");
}

static void streaming_elicitation(struct koine_call *call, void *arg)
{
	koine_mcp_progress(call, 1, 2, "About to ask");
	koine_mcp_log(call, "info", "About to ask");
	input_elicitation(call, arg);
}

static void logging_tool(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_log(call, "info", "Logged by test_logging_tool");
	say(call, "Logged, if you wanted it.");
}

/* ---- resources ---- */

static void static_text(struct koine_call *call, void *arg)
{
	(void)arg;
	say(call, "This is the content of the static text resource.");
}

static void static_binary(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_data(call, "blob", "image/png", png, sizeof(png));
	koine_call_reply(call);
}

static void template_data(struct koine_call *call, void *arg)
{
	char text[500];
	char id[200];

	(void)arg;
	text_of(koine_call_param(call, "id"), id, sizeof(id));
	snprintf(text, sizeof(text),
		 "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id, id);
	say(call, text);
}

static void watched(struct koine_call *call, void *arg)
{
	(void)arg;
	say(call, "Watched resource content.");
}

/* ---- prompts ---- */

static void simple_prompt(struct koine_call *call, void *arg)
{
	(void)arg;
	say(call, "This is a simple prompt for testing.");
}

static void prompt_with_arguments(struct koine_call *call, void *arg)
{
	char text[900];
	char one[400];
	char two[400];

	(void)arg;
	snprintf(text, sizeof(text), "Prompt with arguments: arg1='%s', arg2='%s'",
		 text_of(koine_call_param(call, "arg1"), one, sizeof(one)),
		 text_of(koine_call_param(call, "arg2"), two, sizeof(two)));
	say(call, text);
}

static void prompt_with_resource(struct koine_call *call, void *arg)
{
	char uri[400];

	(void)arg;
	text_of(koine_call_param(call, "resourceUri"), uri, sizeof(uri));
	koine_mcp_embed(call, uri, "text/plain", "Embedded resource content for testing.");
	say(call, "Please process the embedded resource above.");
}

static void prompt_with_image(struct koine_call *call, void *arg)
{
	(void)arg;
	koine_mcp_data(call, "image", "image/png", png, sizeof(png));
	say(call, "Please analyze the image above.");
}

static void prompt_with_question(struct koine_call *call, void *arg)
{
	const struct koine_field context = {"context", KOINE_TYPE_STRING, true, NULL};
	const struct koine_value *answer = koine_mcp_elicit(
		call, "user_context", "What context should the prompt use?", &context, 1);

	(void)arg;
	if (answer)
		say_answer(call, "Use this context: ", koine_value_get(answer, "content"));
	else
		koine_mcp_wait(call);
}

static void complete(struct koine_call *call, void *arg)
{
	static const char *const words[] = {"paris", "park", "party", "test"};
	size_t len;
	const char *value = koine_value_text(
		koine_value_get(koine_call_param(call, "argument"), "value"), &len);

	(void)arg;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strncmp(words[i], value, len) == 0)
			koine_mcp_text(call, words[i]);
	}
	koine_call_reply(call);
}

/* ---- all of it ---- */

static const char schema_2020_12[] =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
	"\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
	"\"properties\":{\"name\":{\"type\":\"string\"},"
	"\"address\":{\"$ref\":\"#/$defs/address\"},"
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
	"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
	"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
	"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
	"\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
	"\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}";

static const char header_schema[] =
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
	"\"x-mcp-header\":\"Name\",\"description\":\"Also sent as a header\"}},"
	"\"additionalProperties\":false}";

static const char sum_schema[] = "{\"type\":\"object\",\"properties\":{\"sum\":"
				 "{\"type\":\"number\"}},\"required\":[\"sum\"]}";

static const struct koine_field message_field[] = {
	{"message", KOINE_TYPE_STRING, true, "What to show the user"}};
static const struct koine_field prompt_field[] = {
	{"prompt", KOINE_TYPE_STRING, true, "What to send to the model"}};
static const struct koine_field sum_fields[] = {{"a", KOINE_TYPE_NUMBER, true, "One number"},
						{"b", KOINE_TYPE_NUMBER, true, "Another"}};

static const struct koine_field types_fields[] = {
	{"whole", KOINE_TYPE_INT, false, "A whole number"},
	{"names", KOINE_TYPE_STRINGS, false, "An array of strings"},
	{"sizes", KOINE_TYPE_NUMBERS, false, "An array of numbers"},
	{"parts", KOINE_TYPE_OBJECTS, false, "An array of objects"},
	{"list", KOINE_TYPE_ARRAY, false, "An array of anything"},
	{"any", KOINE_ANY, false, "Anything"}};

#define FIELDS(f)   (f), sizeof(f) / sizeof((f)[0])
#define NO_FIELDS   NULL, 0
#define READS       NULL, KOINE_TOOL_READ_ONLY, NULL, NULL
#define OWN(schema) NULL, 0, (schema), NULL

static const struct koine_tool tools[] = {
	{"test_simple_text", simple_text, NULL, NO_FIELDS, "Answers with text", READS},
	{"test_image_content", image, NULL, NO_FIELDS, "Answers with an image", READS},
	{"test_audio_content", audio, NULL, NO_FIELDS, "Answers with a sound", READS},
	{"test_embedded_resource", embedded, NULL, NO_FIELDS, "Answers with a resource", READS},
	{"test_multiple_content_types", mixed, NULL, NO_FIELDS, "Answers with several things",
	 READS},
	{"test_error_handling", error, NULL, NO_FIELDS, "Always fails", READS},
	{"test_tool_with_logging", with_logging, NULL, NO_FIELDS, "Logs three lines", READS},
	{"test_tool_with_progress", with_progress, NULL, NO_FIELDS, "Tells its progress", READS},
	{"test_reconnection", reconnection, NULL, NO_FIELDS, "Closes its stream half way", READS},
	{"test_sampling", sampling, NULL, FIELDS(prompt_field), "Asks the client's model", READS},
	{"test_elicitation", elicitation, NULL, FIELDS(message_field), "Asks the user", READS},
	{"test_elicitation_sep1034_defaults", ask_form, (void *)defaults_form, NO_FIELDS,
	 "Asks with a form that is filled in", READS},
	{"test_elicitation_sep1330_enums", ask_form, (void *)enums_form, NO_FIELDS,
	 "Asks with every kind of choice", READS},
	{"test_missing_capability", input_sampling, NULL, NO_FIELDS, "Needs sampling", READS},
	{"test_streaming_elicitation", streaming_elicitation, NULL, NO_FIELDS,
	 "Tells its progress, then asks", READS},
	{"test_logging_tool", logging_tool, NULL, NO_FIELDS, "Logs a line", READS},
	{"test_trigger_tool_change", tool_change, NULL, NO_FIELDS, "Says that tools have changed",
	 READS},
	{"test_trigger_prompt_change", prompt_change, NULL, NO_FIELDS,
	 "Says that prompts have changed", READS},
	{"test_trigger_resource_update", touch, NULL, NO_FIELDS,
	 "Says that the watched resource has changed", READS},
	{"test_input_required_result_elicitation", input_elicitation, NULL, NO_FIELDS,
	 "Asks for a name", READS},
	{"test_input_required_result_sampling", input_sampling, NULL, NO_FIELDS, "Asks a model",
	 READS},
	{"test_input_required_result_list_roots", input_roots, NULL, NO_FIELDS, "Asks for folders",
	 READS},
	{"test_input_required_result_request_state", input_state, NULL, NO_FIELDS,
	 "Finds its state again", READS},
	{"test_input_required_result_tampered_state", input_state, NULL, NO_FIELDS,
	 "Refuses a state that was changed", READS},
	{"test_input_required_result_multiple_inputs", input_multiple, NULL, NO_FIELDS,
	 "Asks three things at once", READS},
	{"test_input_required_result_multi_round", input_rounds, NULL, NO_FIELDS,
	 "Asks one thing after another", READS},
	{"test_input_required_result_capabilities", input_capabilities, NULL, NO_FIELDS,
	 "Asks what the client can answer", READS},
	{"types", types, NULL, FIELDS(types_fields), "Takes arguments of all types", READS},
	{"sum", sum, NULL, FIELDS(sum_fields), "Adds two numbers", NULL,
	 KOINE_TOOL_READ_ONLY | KOINE_TOOL_CLOSED, NULL, sum_schema},
	{"json_schema_2020_12_tool", say_name, NULL, NO_FIELDS,
	 "Tool with JSON Schema 2020-12 features", OWN(schema_2020_12)},
	{"test_header", say_name, NULL, NO_FIELDS, "Has an argument that is also a header",
	 OWN(header_schema)},
};

static const struct koine_resource resources[] = {
	{"test://static-text", static_text, NULL, "static-text", "A text", NULL, "text/plain"},
	{"test://static-binary", static_binary, NULL, "static-binary", "An image", NULL,
	 "image/png"},
	{"test://watched-resource", watched, NULL, "watched-resource", "It may change", NULL,
	 "text/plain"},
	{"test://template/{id}/data", template_data, NULL, "template", "Data by its id", NULL,
	 "application/json"},
};

static const struct koine_field two_fields[] = {
	{"arg1", KOINE_TYPE_STRING, true, "First test argument"},
	{"arg2", KOINE_TYPE_STRING, true, "Second test argument"}};
static const struct koine_field uri_field[] = {
	{"resourceUri", KOINE_TYPE_STRING, true, "URI of the resource to embed"}};

static const struct koine_prompt prompts[] = {
	{"test_simple_prompt", simple_prompt, NULL, NO_FIELDS, "A prompt", NULL},
	{"test_prompt_with_arguments", prompt_with_arguments, NULL, FIELDS(two_fields),
	 "A prompt with arguments", NULL},
	{"test_prompt_with_embedded_resource", prompt_with_resource, NULL, FIELDS(uri_field),
	 "A prompt with a resource", NULL},
	{"test_prompt_with_image", prompt_with_image, NULL, NO_FIELDS, "A prompt with an image",
	 NULL},
	{"test_input_required_result_prompt", prompt_with_question, NULL, NO_FIELDS,
	 "A prompt that asks first", NULL},
};

static int offer(void)
{
	int r = koine_mcp_on_complete(mcp, complete, NULL);

	for (size_t i = 0; r == 0 && i < sizeof(tools) / sizeof(tools[0]); i++)
		r = koine_mcp_add_tool(mcp, &tools[i]);
	for (size_t i = 0; r == 0 && i < sizeof(resources) / sizeof(resources[0]); i++)
		r = koine_mcp_add_resource(mcp, &resources[i]);
	for (size_t i = 0; r == 0 && i < sizeof(prompts) / sizeof(prompts[0]); i++)
		r = koine_mcp_add_prompt(mcp, &prompts[i]);
	return r;
}

static int serve(int argc, char **argv)
{
	char address[200];
	char bound[200];
	int r;

	if (argc == 1)
		return koine_mcp_stdio(mcp, 0, 1);
	if (argc != 3 || (strcmp(argv[1], "--http") != 0 && strcmp(argv[1], "--unix") != 0)) {
		fprintf(stderr, "usage: mcp-everything [--http PORT | --unix PATH]\n");
		return 2;
	}
	snprintf(address, sizeof(address), "%s%s",
		 strcmp(argv[1], "--http") == 0 ? "http:127.0.0.1:" : "unix:", argv[2]);
	r = koine_mcp_listen(mcp, address, NULL, bound, sizeof(bound));
	if (r == 0) {
		printf("ready %s\n", bound);
		fflush(stdout);
	}
	return r;
}

int main(int argc, char **argv)
{
	const struct koine_mcp_info info = {
		"mcp-everything",
		"1.0",
		"One of everything",
		"A server for tests: every tool does what its name says.",
		KOINE_MCP_LOGS | KOINE_MCP_UPDATES,
		0,
		0,
		NULL};
	int r = koine_server_new(&server);

	if (r != 0)
		return 1;
	r = koine_mcp_new(server, &info, &mcp);
	if (r == 0)
		r = offer();
	if (r == 0)
		r = serve(argc, argv);
	if (r == 0)
		koine_server_run(server);
	else if (koine_server_error(server)[0])
		fprintf(stderr, "mcp-everything: %s\n", koine_server_error(server));
	koine_server_free(server);
	return r == 0 ? 0 : 1;
}
