/* Requests to a server that answers well, badly, slowly, too much, or not at all. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>

#include "http_server.h"
#include "io/http_client.h"

enum { ANSWERS_MAX = 64 };

struct taken {
	bool done;
	int error;
	int status;
	bool connected;
	bool idle;
	unsigned retry_ms;
	char body[70000];
	size_t body_len;
	unsigned n_data;
	char text[300];
};

struct fixture {
	struct http_server server;
	struct loop *loop;
	struct http_client *client;
	struct timer *guard;
	char folder[64];
	char url[128];
	struct taken taken[ANSWERS_MAX];
	unsigned n_open;
	struct http_fetch *other;
};

static bool answer(struct http_server_conn *c, const struct http_server_request *r)
{
	static char big[65536];

	if (strcmp(r->path, "/hello") == 0) {
		http_reply(c, 200, "", "hello", 5);
	} else if (strcmp(r->path, "/echo") == 0) {
		http_reply(c, 200, "", r->body, r->body_len);
	} else if (strcmp(r->path, "/head") == 0) {
		http_reply(c, 200, "", r->head, strlen(r->head));
	} else if (strcmp(r->path, "/busy") == 0) {
		http_reply(c, 429, "Retry-After: 7\r\n", "later", 5);
	} else if (strcmp(r->path, "/away") == 0) {
		http_reply(c, 302, "Location: /hello\r\n", "", 0);
	} else if (strcmp(r->path, "/silent") == 0) {
		http_wait_for_end(c);
		return false;
	} else if (strcmp(r->path, "/half") == 0) {
		http_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 43);
		http_wait_for_end(c);
		return false;
	} else if (strcmp(r->path, "/cut") == 0) {
		http_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 43);
		return false;
	} else if (strcmp(r->path, "/garbage") == 0) {
		http_say(c, "\x01\x02\x03 no http\r\n\r\n", 15);
		return false;
	} else if (strcmp(r->path, "/big") == 0) {
		http_say(c, "HTTP/1.1 200 OK\r\n\r\n", 19);
		for (unsigned i = 0; i < 64; i++)
			http_say(c, big, sizeof(big));
		return false;
	} else if (strcmp(r->path, "/heads") == 0) {
		http_say(c, "HTTP/1.1 200 OK\r\n", 17);
		for (unsigned i = 0; i < 40000; i++)
			http_say(c, "X-More: and more\r\n", 18);
		return false;
	}
	return true;
}

/* A test that waits in vain shall fail, not hang. */
static void give_up(void *arg)
{
	fail_msg("waited in vain");
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->server.answer = answer;
	http_server_start(&f->server, NULL);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", f->server.port);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_client_new(f->loop, NULL, &f->client), 0);
	assert_int_equal(timer_new(f->loop, give_up, f, &f->guard), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_client_free(f->client);
	timer_free(f->guard);
	loop_free(f->loop);
	http_server_stop(&f->server);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static struct fixture *the_fixture;

static void on_done(void *arg, const struct http_answer *a)
{
	struct taken *t = arg;

	assert_false(t->done);
	t->done = true;
	t->error = a->error;
	t->status = a->status;
	t->connected = a->connected;
	t->idle = a->idle;
	t->retry_ms = a->retry_ms;
	snprintf(t->text, sizeof(t->text), "%s", a->text);
	if (a->body.len > 0) {
		assert_true(a->body.len < sizeof(t->body));
		memcpy(t->body, a->body.data, a->body.len);
		t->body_len = a->body.len;
	}
	if (--the_fixture->n_open == 0)
		loop_stop(the_fixture->loop);
}

static struct http_fetch *ask(struct fixture *f, unsigned i, const char *path,
			      const struct http_fetch_opts *more)
{
	struct http_fetch_opts opts = more ? *more : (struct http_fetch_opts) {0};
	struct http_fetch *fetch;
	char url[200];

	snprintf(url, sizeof(url), "%s%s", f->url, path);
	opts.url = url;
	opts.on_done = on_done;
	opts.arg = &f->taken[i];
	the_fixture = f;
	f->n_open++;
	assert_int_equal(http_client_fetch(f->client, &opts, &fetch), 0);
	return fetch;
}

static void wait_for_all(struct fixture *f)
{
	timer_start(f->guard, 30000);
	loop_run(f->loop);
	timer_stop(f->guard);
	assert_int_equal(f->n_open, 0);
}

static const struct taken *get(struct fixture *f, const char *path,
			       const struct http_fetch_opts *more)
{
	f->taken[0] = (struct taken) {0};
	ask(f, 0, path, more);
	wait_for_all(f);
	return &f->taken[0];
}

TEST(gets_a_body)
{
	const struct taken *t = get(*state, "/hello", NULL);

	assert_int_equal(t->error, 0);
	assert_int_equal(t->status, 200);
	assert_string_equal(t->text, "");
	assert_int_equal(t->body_len, 5);
	assert_memory_equal(t->body, "hello", 5);
}

TEST(posts_a_body_that_the_caller_may_change)
{
	struct fixture *f = *state;
	static char body[60000];
	struct http_fetch_opts opts = {.body = {.data = body, .len = sizeof(body)}};

	memset(body, 'a', sizeof(body));
	ask(f, 0, "/echo", &opts);
	memset(body, 'b', sizeof(body));
	wait_for_all(f);
	assert_int_equal(f->taken[0].body_len, sizeof(body));
	assert_int_equal(f->taken[0].body[0], 'a');
	assert_int_equal(f->taken[0].body[sizeof(body) - 1], 'a');
}

static struct http_fetch *lending;
static unsigned n_unsent;

static int see_whether_sent(void *arg, int status, const char *data, size_t n)
{
	if (!http_fetch_is_sent(lending))
		n_unsent++;
	return 0;
}

TEST(a_lent_body_is_not_copied_and_free_once_it_is_sent)
{
	struct fixture *f = *state;
	static char body[60000];
	struct http_fetch_opts opts = {.body = {.data = body, .len = sizeof(body)}, .lent = true};

	memset(body, 'a', sizeof(body));
	lending = ask(f, 0, "/echo", &opts);
	assert_false(http_fetch_is_sent(lending));
	memset(body, 'b', sizeof(body));
	wait_for_all(f);
	assert_int_equal(f->taken[0].body_len, sizeof(body));
	assert_int_equal(f->taken[0].body[sizeof(body) - 1], 'b');
	/* the whole of it was needed for the first byte of the echo */
	opts.on_data = see_whether_sent;
	n_unsent = 0;
	f->taken[0].done = false;
	lending = ask(f, 0, "/echo", &opts);
	wait_for_all(f);
	assert_int_equal(n_unsent, 0);
}

TEST(an_answer_says_how_far_it_came)
{
	const struct http_fetch_opts idle = {.idle_timeout_ms = 50};
	const struct http_fetch_opts total = {.total_timeout_ms = 50};
	const struct http_fetch_opts nobody = {.unix_socket = "/nonexistent/socket"};
	const struct taken *t = get(*state, "/silent", &idle);

	assert_true(t->connected && t->idle);
	t = get(*state, "/silent", &total);
	assert_true(t->connected && !t->idle);
	t = get(*state, "/hello", &nobody);
	assert_true(!t->connected && !t->idle);
	for (unsigned i = 0; i < 2; i++) {
		t = get(*state, "/hello", NULL);
		assert_true(t->connected && !t->idle);
	}
}

TEST(sends_method_and_headers)
{
	static const char *const headers[] = {"X-One: 1", "Content-Type: application/json", NULL};
	const struct http_fetch_opts opts = {
		.method = "PUT", .headers = headers, .body = {.data = "x", .len = 1}};
	const struct taken *t = get(*state, "/head", &opts);

	assert_non_null(strstr(t->body, "PUT /head HTTP/1.1"));
	assert_non_null(strstr(t->body, "X-One: 1\r\n"));
	assert_non_null(strstr(t->body, "Content-Type: application/json\r\n"));
	assert_null(strcasestr(t->body, "expect:"));
}

TEST(keeps_the_connection)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(get(f, "/hello", NULL)->status, 200);
	assert_int_equal(atomic_load(&f->server.n_requests), 5);
	assert_int_equal(atomic_load(&f->server.n_conns), 1);
}

TEST(many_at_once_are_each_answered)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 50; i++) {
		char body[16];
		struct http_fetch_opts opts = {.body = {.data = body}};

		opts.body.len = (size_t)snprintf(body, sizeof(body), "number %u", i);
		ask(f, i, "/echo", &opts);
	}
	wait_for_all(f);
	for (unsigned i = 0; i < 50; i++) {
		char body[16];

		snprintf(body, sizeof(body), "number %u", i);
		assert_string_equal(f->taken[i].body, body);
	}
	assert_in_range(atomic_load(&f->server.n_conns), 1, 16);
}

TEST(tells_retry_after)
{
	const struct taken *t = get(*state, "/busy", NULL);

	assert_int_equal(t->error, 0);
	assert_int_equal(t->status, 429);
	assert_int_equal(t->retry_ms, 7000);
}

TEST(follows_no_redirect)
{
	assert_int_equal(get(*state, "/away", NULL)->status, 302);
}

TEST(uses_no_proxy_of_the_environment)
{
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	assert_int_equal(get(*state, "/hello", NULL)->status, 200);
	unsetenv("http_proxy");
}

TEST(speaks_only_http)
{
	struct fixture *f = *state;
	const struct http_fetch_opts opts = {
		.url = "file:///etc/passwd", .on_done = on_done, .arg = &f->taken[0]};
	struct http_fetch *fetch;

	the_fixture = f;
	f->n_open = 1;
	if (http_client_fetch(f->client, &opts, &fetch) == 0) {
		wait_for_all(f);
		assert_int_equal(f->taken[0].error, -EINVAL);
	}
	assert_int_equal(f->taken[0].body_len, 0);
}

TEST(nobody_there_is_an_error)
{
	struct fixture *f = *state;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	const struct taken *t;

	/* Bound and not listening: nobody else can take the port meanwhile. */
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", ntohs(in.sin_port));
	t = get(f, "/hello", NULL);
	assert_int_equal(t->error, -ECONNREFUSED);
	assert_int_equal(t->status, 0);
	assert_true(t->text[0] != '\0');
	close(fd);
}

TEST(silence_ends_at_the_total_time)
{
	const struct http_fetch_opts opts = {.total_timeout_ms = 50};

	assert_int_equal(get(*state, "/silent", &opts)->error, -ETIMEDOUT);
}

/* All connections are taken by those that nobody answers. */
TEST(who_waits_for_a_connection_has_its_time_too)
{
	const struct http_client_opts one = {.connections = 1};
	const struct http_fetch_opts opts = {.total_timeout_ms = 50};
	struct fixture *f = *state;
	struct http_fetch *first;

	http_client_free(f->client);
	assert_int_equal(http_client_new(f->loop, &one, &f->client), 0);
	first = ask(f, 0, "/silent", NULL);
	ask(f, 1, "/hello", &opts);
	f->n_open = 1; /* the first does not end */
	wait_for_all(f);
	assert_true(f->taken[1].done && !f->taken[0].done);
	assert_int_equal(f->taken[1].error, -ETIMEDOUT);
	assert_false(f->taken[1].idle);
	http_fetch_cancel(first);
}

TEST(a_stall_ends_at_the_idle_time)
{
	const struct http_fetch_opts opts = {.idle_timeout_ms = 50};

	assert_int_equal(get(*state, "/silent", &opts)->error, -ETIMEDOUT);
	assert_int_equal(get(*state, "/half", &opts)->error, -ETIMEDOUT);
	assert_int_equal(get(*state, "/hello", &opts)->error, 0);
}

TEST(a_cut_answer_is_an_error)
{
	assert_int_equal(get(*state, "/cut", NULL)->error, -EIO);
	assert_int_equal(get(*state, "/hello", NULL)->error, 0);
}

TEST(what_is_not_http_is_an_error)
{
	assert_true(get(*state, "/garbage", NULL)->error < 0);
}

TEST(an_answer_over_the_limit_is_an_error)
{
	const struct http_fetch_opts opts = {.response_max = 60000};
	const struct http_fetch_opts fits = {.response_max = 5};
	const struct http_fetch_opts short_by_one = {.response_max = 4};

	assert_int_equal(get(*state, "/big", &opts)->error, -EMSGSIZE);
	assert_int_equal(get(*state, "/heads", &opts)->error, -EMSGSIZE);
	assert_int_equal(get(*state, "/hello", &fits)->error, 0);
	assert_int_equal(get(*state, "/hello", &short_by_one)->error, -EMSGSIZE);
}

static int count_data(void *arg, int status, const char *data, size_t n)
{
	struct taken *t = arg;

	assert_int_equal(status, 200);
	t->n_data++;
	memcpy(t->body + t->body_len, data, n);
	t->body_len += n;
	return 0;
}

TEST(a_stream_comes_in_pieces_before_its_end)
{
	const struct http_fetch_opts opts = {.on_data = count_data, .idle_timeout_ms = 50};
	const struct taken *t = get(*state, "/half", &opts);

	assert_int_equal(t->error, -ETIMEDOUT);
	assert_int_equal(t->n_data, 1);
	assert_memory_equal(t->body, "half", 4);
}

static int count_only(void *arg, int status, const char *data, size_t n)
{
	struct taken *t = arg;

	t->body_len += n;
	return 0;
}

TEST(a_stream_has_a_limit_too)
{
	const struct http_fetch_opts opts = {.on_data = count_only, .response_max = 100000};
	const struct taken *t = get(*state, "/big", &opts);

	assert_int_equal(t->error, -EMSGSIZE);
	assert_in_range(t->body_len, 1, 100000);
}

static int stop_at_once(void *arg, int status, const char *data, size_t n)
{
	return -ECANCELED;
}

TEST(on_data_can_end_it)
{
	const struct http_fetch_opts opts = {.on_data = stop_at_once};

	assert_int_equal(get(*state, "/big", &opts)->error, -ECANCELED);
}

/* From inside curl: cancels one, starts another. */
static int meddle(void *arg, int status, const char *data, size_t n)
{
	struct fixture *f = the_fixture;

	if (f->other) {
		http_fetch_cancel(f->other);
		f->n_open--;
		f->other = NULL;
		ask(f, 2, "/hello", NULL);
	}
	return 0;
}

TEST(on_data_can_cancel_and_start_others)
{
	struct fixture *f = *state;
	const struct http_fetch_opts opts = {.on_data = meddle};

	f->other = ask(f, 1, "/silent", NULL);
	ask(f, 0, "/hello", &opts);
	wait_for_all(f);
	assert_int_equal(f->taken[0].error, 0);
	assert_false(f->taken[1].done);
	assert_memory_equal(f->taken[2].body, "hello", 5);
}

TEST(a_cancelled_fetch_says_nothing)
{
	struct fixture *f = *state;
	struct http_fetch *fetch = ask(f, 0, "/hello", NULL);

	http_fetch_cancel(fetch);
	f->n_open--;
	ask(f, 1, "/hello", NULL);
	wait_for_all(f);
	assert_false(f->taken[0].done);
	assert_int_equal(f->taken[1].status, 200);
}

TEST(ending_the_client_ends_what_is_open)
{
	struct fixture *f = *state;

	ask(f, 0, "/silent", NULL);
	ask(f, 1, "/half", NULL);
	loop_step(f->loop);
	http_client_free(f->client);
	f->client = NULL;
	assert_false(f->taken[0].done);
	assert_false(f->taken[1].done);
}

TEST(connects_to_a_unix_socket)
{
	struct fixture *f = *state;
	struct http_server server = {.answer = answer};
	char folder[] = "/tmp/koine-http-XXXXXX";
	char path[64];
	struct http_fetch_opts opts = {.unix_socket = path};

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	http_server_start(&server, path);
	snprintf(f->url, sizeof(f->url), "http://localhost");
	assert_int_equal(get(f, "/hello", &opts)->status, 200);
	http_client_free(f->client);
	f->client = NULL;
	http_server_stop(&server);
	unlink(path);
	rmdir(folder);
}

/* A program that the daemon starts must not find our connections. */
TEST(no_descriptor_is_inherited)
{
	struct fixture *f = *state;
	unsigned n = 0;

	assert_int_equal(get(f, "/hello", NULL)->status, 200);
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in in;
		socklen_t len = sizeof(in);
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || getpeername(fd, (struct sockaddr *)&in, &len) != 0)
			continue;
		/* The server's end is the test's own. */
		if (in.sin_family == AF_INET && ntohs(in.sin_port) != f->server.port)
			continue;
		n++;
		assert_true(flags & FD_CLOEXEC);
	}
	assert_true(n >= 1);
}
