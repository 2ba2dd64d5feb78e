/* What opencode's texts mean, and how it is answered. No I/O. */
#include "check.h"

#include "agent/server/inner.h"
#include "base/buf.h"
#include "wire/json.h"

#define FROM(type, properties)                                                                     \
	"{\"directory\":\"/p\",\"payload\":{\"id\":\"e\",\"type\":\"" type                         \
	"\",\"properties\":" properties "}}"

static struct buf told;

static void add(const char *word, struct text t)
{
	buf_printf(&told, "%s%.*s ", word, TEXT_ARGS(t));
}

static void on_asked(void *arg, const struct agent_server_ask *ask)
{
	struct json j = json_writer(&told);

	add(ask->is_question ? "question " : "permission ", ask->id);
	add("in ", ask->session);
	add("at ", ask->folder);
	add("tool ", ask->tool);
	for (unsigned i = 0; i < ask->n_parts; i++) {
		json_value(&j, ask->parts[i].input);
		buf_add_str(&told, ask->parts[i].several ? " several" : "");
	}
	buf_add_char(&told, '\n');
}

static void on_answered(void *arg, struct text id)
{
	add("answered ", id);
}

static void on_idle(void *arg, struct text session)
{
	add("idle ", session);
}

static void on_noted(void *arg, const struct agent_server_note *n)
{
	add("note ", n->what);
	add("", n->session);
	add("", n->tool);
	add("", n->text);
}

static const struct agent_server_fns fns = {
	.asked = on_asked, .answered = on_answered, .idle = on_idle, .noted = on_noted};

static int read_one(const char *text, unsigned *ret_skipped)
{
	struct agent_server_sink sink = {.fns = &fns};
	struct arena arena;
	struct error error;
	int r;

	buf_done(&told);
	buf_init(&told, 1 << 20);
	arena_init(&arena, 1 << 20);
	r = opencode_server.read_event(&arena, text_of(text), &sink, &error);
	arena_done(&arena);
	buf_add_char(&told, '\0');
	*ret_skipped = sink.skipped;
	return r;
}

static void expect(const char *text, const char *want)
{
	unsigned skipped;

	assert_int_equal(read_one(text, &skipped), 0);
	assert_string_equal(told.data, want);
	assert_int_equal(skipped, 0);
}

TEST(events_are_told)
{
	expect(FROM("permission.asked",
		    "{\"id\":\"per_1\",\"sessionID\":\"s\",\"permission\":\"bash\",\"patterns\":"
		    "[\"ls\"],\"metadata\":{\"command\":\"ls -l\",\"Patterns\":\"not mine\"}}"),
	       "permission per_1 in s at /p tool bash "
	       "{\"command\":\"ls -l\",\"patterns\":[\"ls\"]}\n");
	expect(FROM("question.asked",
		    "{\"id\":\"que_1\",\"sessionID\":\"s\",\"questions\":[{\"question\":\"Q\","
		    "\"multiple\":true,\"options\":[{\"label\":\"A\",\"description\":\"a\"}]}]}"),
	       "question que_1 in s at /p tool question "
	       "{\"msg\":\"Q\\n- A: a\",\"choices\":[\"A\"]} several\n");
	expect(FROM("permission.replied", "{\"requestID\":\"per_1\"}"), "answered per_1 ");
	expect(FROM("session.idle", "{\"sessionID\":\"s\"}"), "idle s note stopped s   ");
	expect(FROM("session.error", "{\"sessionID\":\"s\",\"error\":{\"name\":\"E\"}}"),
	       "note stopped s  E ");
	expect(FROM("anything.else", "{\"id\":\"per_1\"}"), "");
}

TEST(what_cannot_be_shown_is_counted)
{
	static const char *const texts[] = {
		FROM("permission.asked", "null"),
		FROM("permission.asked",
		     "{\"id\":\"per\",\"sessionID\":\"s\",\"permission\":\"b\"}"),
		FROM("permission.asked",
		     "{\"id\":\"per_/..\",\"sessionID\":\"s\",\"permission\":\"b\"}"),
		FROM("question.asked", "{\"id\":\"que_1\",\"sessionID\":\"s\",\"questions\":{}}"),
	};
	unsigned skipped;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_one(texts[i], &skipped), 0);
		assert_int_equal(skipped, 1);
		assert_string_equal(told.data, "");
	}
}

TEST(what_is_no_event_is_refused)
{
	unsigned skipped;

	assert_int_equal(read_one("{", &skipped), REFUSE_PARSE);
	assert_int_equal(read_one("[]", &skipped), REFUSE_PARSE);
	assert_int_equal(read_one("{\"payload\":{\"type\":1}}", &skipped), REFUSE_PARSE);
}

static void expect_reply(const struct agent_server_reply *reply, const char *path, const char *body)
{
	struct buf to, what;

	buf_init(&to, 1 << 16);
	buf_init(&what, 1 << 16);
	opencode_server.write_reply(reply, &to, &what);
	buf_add_char(&to, '\0');
	buf_add_char(&what, '\0');
	assert_string_equal(to.data, path);
	assert_string_equal(what.data, body);
	buf_done(&to);
	buf_done(&what);
}

TEST(replies_are_written)
{
	struct agent_server_reply reply = {
		.id = TEXT("per_1"), .folder = TEXT("/a b/\xc3\xb6?#&"), .message = TEXT("why")};

	expect_reply(&reply, "/permission/per_1/reply?directory=/a%20b/%C3%B6%3F%23%26",
		     "{\"reply\":\"reject\",\"message\":\"why\"}");
	reply.allow = true;
	expect_reply(&reply, "/permission/per_1/reply?directory=/a%20b/%C3%B6%3F%23%26",
		     "{\"reply\":\"once\"}");
	reply = (struct agent_server_reply) {
		.is_question = true,
		.id = TEXT("que_1"),
		.folder = TEXT("/"),
		.n_answers = 3,
		.answers = {{TEXT(" one, two "), false},
			    {TEXT("a, b,,c"), true},
			    {TEXT("a, b\nc\n"), true}},
	};
	expect_reply(&reply, "/question/que_1/reply?directory=/",
		     "{\"answers\":[[\"one, two\"],[\"a\",\"b\",\"c\"],[\"a, b\",\"c\"]]}");
}

TEST(only_loopback_goes_without_tls)
{
	static const char *const good[] = {"http://127.0.0.1:4096", "http://127.9.9.9/x",
					   "http://localhost", "http://[::1]:1/",
					   "https://example.org/opencode"};
	static const char *const bad[] = {"",
					  "http://",
					  "https://",
					  "ftp://127.0.0.1",
					  "http://example.org",
					  "http://127.0.0.1.example.org",
					  "http://localhost.example.org",
					  "http://[::1].example.org",
					  "http://[::2]",
					  "http://0x7f.1",
					  "http://u:p@127.0.0.1",
					  "http://127.0.0.1?x",
					  "http://127.0.0.1\\@example.org",
					  "http://127.0.0.1/a b"};
	struct error error;

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(agent_server_check_url(good[i], &error), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(agent_server_check_url(bad[i], &error), REFUSE_PARAMS);
}

static int end(void **state)
{
	buf_done(&told);
	return 0;
}

GROUP_FIXTURE(NULL, end);
