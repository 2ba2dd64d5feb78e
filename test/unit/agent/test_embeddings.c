/* Asking a model for vectors, and reading what comes back. */
#include "check.h"

#include "agent/embeddings.h"
#include "http_server.h"

struct fixture {
	struct http_server server;
	struct loop *loop;
	struct timer *guard;
	struct embeddings *embeddings;
	struct arena arena;
	struct error error;
	char url[128];

	/* what the server says, and what it has heard */
	int status;
	const char *headers;
	const char *body;
	char head[4096];
	char request[4096];

	bool answered;
	enum embeddings_outcome outcome;
	char text[200];
	unsigned retry_ms;
	char answer[4096];
};

static struct fixture *the_fixture;

static bool answer(struct http_server_conn *c, const struct http_server_request *r)
{
	struct fixture *f = the_fixture;

	snprintf(f->head, sizeof(f->head), "%s", r->head);
	snprintf(f->request, sizeof(f->request), "%.*s", (int)r->body_len, r->body);
	http_reply(c, f->status, f->headers, f->body, strlen(f->body));
	return true;
}

static void give_up(void *arg)
{
	fail_msg("waited in vain");
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	the_fixture = f;
	f->status = 200;
	f->headers = "";
	f->body = "{}";
	f->server.answer = answer;
	http_server_start(&f->server, NULL);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", f->server.port);
	arena_init(&f->arena, 16 << 20);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(timer_new(f->loop, give_up, f, &f->guard), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	embeddings_free(f->embeddings);
	timer_free(f->guard);
	loop_free(f->loop);
	http_server_stop(&f->server);
	arena_done(&f->arena);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static void on_answer(void *arg, const struct embeddings_answer *a)
{
	struct fixture *f = arg;

	assert_false(f->answered);
	f->answered = true;
	f->outcome = a->outcome;
	f->retry_ms = a->retry_ms;
	snprintf(f->text, sizeof(f->text), "%s", a->text);
	snprintf(f->answer, sizeof(f->answer), "%.*s", TEXT_ARGS(a->body));
	loop_stop(f->loop);
}

static void make(struct fixture *f, const char *key)
{
	const struct embeddings_opts opts = {.url = f->url, .model = "tiny", .key = key};

	assert_int_equal(embeddings_new(f->loop, &opts, &f->embeddings, &f->error), 0);
}

static enum embeddings_outcome ask(struct fixture *f, const struct text *texts, unsigned n)
{
	struct embeddings_ask *a;

	f->answered = false;
	assert_int_equal(embeddings_ask(f->embeddings, texts, n, 20000, on_answer, f, &a), 0);
	timer_start(f->guard, 30000);
	loop_run(f->loop);
	timer_stop(f->guard);
	assert_true(f->answered);
	return f->outcome;
}

TEST(asks_as_the_protocol_says)
{
	const struct text texts[] = {TEXT("one \"two\""), {.data = "a\0b", .len = 3}};
	struct fixture *f = *state;

	make(f, "a-secret");
	assert_int_equal(ask(f, texts, 2), EMBEDDINGS_OK);
	assert_non_null(strstr(f->head, "POST /v1/embeddings HTTP/1.1\r\n"));
	assert_non_null(strstr(f->head, "Authorization: Bearer a-secret\r\n"));
	assert_non_null(strstr(f->head, "Content-Type: application/json\r\n"));
	assert_string_equal(f->request,
			    "{\"model\":\"tiny\",\"input\":[\"one \\\"two\\\"\",\"a\\u0000b\"]}");
	assert_string_equal(f->answer, "{}");
}

TEST(without_a_key_there_is_no_header)
{
	const struct text text = TEXT("x");
	struct fixture *f = *state;

	make(f, "");
	assert_int_equal(ask(f, &text, 1), EMBEDDINGS_OK);
	assert_null(strcasestr(f->head, "authorization"));
}

TEST(a_status_says_what_to_do)
{
	static const struct {
		int status;
		enum embeddings_outcome outcome;
	} rows[] = {
		{400, EMBEDDINGS_REFUSED}, {413, EMBEDDINGS_REFUSED}, {422, EMBEDDINGS_REFUSED},
		{401, EMBEDDINGS_WRONG},   {403, EMBEDDINGS_WRONG},   {404, EMBEDDINGS_WRONG},
		{302, EMBEDDINGS_WRONG},   {408, EMBEDDINGS_LATER},   {429, EMBEDDINGS_LATER},
		{500, EMBEDDINGS_LATER},   {503, EMBEDDINGS_LATER},   {200, EMBEDDINGS_OK},
	};
	const struct text text = TEXT("x");
	struct fixture *f = *state;
	char words[32];

	make(f, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f->status = rows[i].status;
		assert_int_equal(ask(f, &text, 1), rows[i].outcome);
		snprintf(words, sizeof(words), "the endpoint returned HTTP %d", rows[i].status);
		assert_string_equal(f->text, rows[i].outcome == EMBEDDINGS_OK ? "" : words);
	}
}

TEST(a_rate_limit_says_how_long)
{
	const struct text text = TEXT("x");
	struct fixture *f = *state;

	make(f, NULL);
	f->status = 429;
	f->headers = "Retry-After: 3\r\n";
	assert_int_equal(ask(f, &text, 1), EMBEDDINGS_LATER);
	assert_int_equal(f->retry_ms, 3000);
}

TEST(nobody_there_means_later)
{
	const struct text text = TEXT("x");
	struct fixture *f = *state;

	snprintf(f->url, sizeof(f->url), "unix:/nonexistent/socket");
	make(f, "a-secret");
	assert_int_equal(ask(f, &text, 1), EMBEDDINGS_LATER);
	assert_true(f->text[0] != '\0');
	assert_null(strstr(f->text, "a-secret"));
}

TEST(a_cancelled_ask_says_nothing)
{
	const struct text text = TEXT("x");
	struct fixture *f = *state;
	struct embeddings_ask *a;

	make(f, NULL);
	assert_int_equal(embeddings_ask(f->embeddings, &text, 1, 20000, on_answer, f, &a), 0);
	embeddings_cancel(a);
	assert_int_equal(embeddings_ask(f->embeddings, &text, 1, 20000, on_answer, f, &a), 0);
	embeddings_free(f->embeddings);
	f->embeddings = NULL;
	assert_false(f->answered);
}

TEST(urls_that_are_taken)
{
	static const struct {
		const char *given;
		const char *path;
	} rows[] = {
		{"", "POST /v1/embeddings "},
		{"/", "POST /v1/embeddings "},
		{"/v1", "POST /v1/embeddings "},
		{"/api/v1", "POST /api/v1/embeddings "},
		{"/v1/embeddings", "POST /v1/embeddings "},
		{"/some/where", "POST /some/where "},
	};
	const struct text text = TEXT("x");
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d%s", f->server.port,
			 rows[i].given);
		make(f, NULL);
		assert_int_equal(ask(f, &text, 1), EMBEDDINGS_OK);
		assert_memory_equal(f->head, rows[i].path, strlen(rows[i].path));
		embeddings_free(f->embeddings);
		f->embeddings = NULL;
	}
}

TEST(urls_that_are_refused)
{
	static const char *const urls[] = {"",
					   "localhost:11434",
					   "ftp://a/b",
					   "file:///etc/passwd",
					   "http://",
					   "http:///x",
					   "unix:",
					   "unix:relative",
					   "http://a/b c",
					   "http://a\r\nX: y",
					   "http://a/?q",
					   "http://user:pass@a/",
					   "https://a/b#frag"};
	struct error error;

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		assert_int_equal(embeddings_check_url(urls[i], &error), REFUSE_PARAMS);
	assert_int_equal(embeddings_check_url("https://api.example/v1", &error), 0);
	assert_int_equal(embeddings_check_url("unix:/run/model.sock", &error), 0);
}

TEST(a_key_that_would_break_the_request_is_refused)
{
	static const char *const keys[] = {"a b", "a\r\nX: y", "k\xc3\xa4y", "tab\t"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct embeddings_opts opts = {
			.url = f->url, .model = "tiny", .key = keys[i]};

		assert_int_equal(embeddings_new(f->loop, &opts, &f->embeddings, &f->error),
				 REFUSE_PARAMS);
		assert_null(strstr(f->error.text, keys[i]));
	}
}

/* ---- reading ---- */

static int read_body(struct fixture *f, const char *body, unsigned n, struct embeddings_vectors *v)
{
	return embeddings_read(&f->arena, text_of(body), n, v, &f->error);
}

TEST(vectors_come_in_the_order_of_the_texts)
{
	struct embeddings_vectors v;

	assert_int_equal(read_body(*state,
				   "{\"object\":\"list\",\"data\":["
				   "{\"index\":1,\"embedding\":[3,-4.5e0]},"
				   "{\"index\":0,\"embedding\":[1,0.25]}],\"model\":\"m\"}",
				   2, &v),
			 0);
	assert_int_equal(v.n, 2);
	assert_int_equal(v.dim, 2);
	assert_true(v.numbers[0] == 1 && v.numbers[1] == 0.25f);
	assert_true(v.numbers[2] == 3 && v.numbers[3] == -4.5f);
}

TEST(without_index_the_place_counts)
{
	struct embeddings_vectors v;

	assert_int_equal(
		read_body(*state, "{\"data\":[{\"embedding\":[1]},{\"embedding\":[2]}]}", 2, &v),
		0);
	assert_true(v.numbers[0] == 1 && v.numbers[1] == 2);
}

TEST(garbage_is_refused)
{
	static const char *const bodies[] = {
		"",
		"no json",
		"[]",
		"{}",
		"null",
		"{\"data\":null}",
		"{\"data\":{}}",
		"{\"data\":[]}",
		"{\"data\":[1,2]}",
		"{\"data\":[{\"embedding\":[1]}]}",
		"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1]},{\"embedding\":[1]}]}",
		"{\"data\":[{\"embedding\":[]},{\"embedding\":[]}]}",
		"{\"data\":[{\"embedding\":[1,2]},{\"embedding\":[1]}]}",
		"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1,2]}]}",
		"{\"data\":[{\"embedding\":\"AAAA\"},{\"embedding\":\"AAAA\"}]}",
		"{\"data\":[{\"embedding\":[1]},{\"embedding\":[null]}]}",
		"{\"data\":[{\"embedding\":[1]},{\"embedding\":[\"1\"]}]}",
		"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1e300]}]}",
		"{\"data\":[{\"embedding\":[1]},{\"embedding\":[-1e999]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":0,\"embedding\":[1]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":2,\"embedding\":[1]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":-1,\"embedding\":[1]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":0.5,\"embedding\":[1]}]}",
		"{\"data\":[{\"index\":\"0\",\"embedding\":[1]},{\"index\":1,\"embedding\":[1]}]}",
		"{\"error\":{\"message\":\"no\"}}",
	};
	struct fixture *f = *state;
	struct embeddings_vectors v;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		arena_reset(&f->arena);
		assert_int_equal(read_body(f, bodies[i], 2, &v), REFUSE_PARSE);
	}
}

TEST(a_vector_that_is_too_long_is_refused)
{
	struct embeddings_vectors v;
	struct fixture *f = *state;
	size_t room = (size_t)(EMBEDDINGS_DIM_MAX + 1) * 2 + 64;
	char *body = calloc(1, room);

	for (int more = 0; more <= 1; more++) {
		size_t at = (size_t)snprintf(body, room, "{\"data\":[{\"embedding\":[1");

		for (int i = 1; i < EMBEDDINGS_DIM_MAX + more; i++)
			at += (size_t)snprintf(body + at, room - at, ",2");
		snprintf(body + at, room - at, "]}]}");
		assert_int_equal(read_body(f, body, 1, &v), more ? REFUSE_PARSE : 0);
	}
	free(body);
}
