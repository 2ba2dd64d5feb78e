/*
 * Hosting, through <koine/koine.h> alone: every example of the JSON-RPC 2.0
 * specification over every framing, and each promise of the hosting half. The
 * server is stepped by the test's own poll loop, or runs on a thread of its own.
 */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <koine/koine.h>

#include "tempdir.h"

enum { NOBODY = 65534, WAIT_MS = 20000, N_THREADS = 4, N_POSTS = 500 };

/* ---- the methods ---- */

static struct koine_call *open_call;
static unsigned n_cancelled;
static unsigned n_updates;

static void subtract(struct koine_call *call, void *arg)
{
	int64_t a = 0;
	int64_t b = 0;

	koine_value_int(koine_call_param(call, "minuend"), &a);
	koine_value_int(koine_call_param(call, "subtrahend"), &b);
	koine_json_int(koine_call_result(call), a - b);
	koine_call_reply(call);
}

static void sum(struct koine_call *call, void *arg)
{
	const struct koine_value *v = koine_value_first(koine_call_params(call));
	int64_t total = 0;
	int64_t n;

	for (; v; v = koine_value_next(v)) {
		if (koine_value_int(v, &n))
			total += n;
	}
	koine_json_int(koine_call_result(call), total);
	koine_call_reply(call);
}

static void get_data(struct koine_call *call, void *arg)
{
	struct koine_json *j = koine_call_result(call);

	koine_json_begin_array(j);
	koine_json_string(j, "hello");
	koine_json_int(j, 5);
	koine_json_end_array(j);
	koine_call_reply(call);
}

static void update(struct koine_call *call, void *arg)
{
	n_updates++;
	if (!koine_call_is_notification(call))
		koine_call_fail(call, 1, "not a notification", NULL);
	else
		koine_call_reply(call);
}

static int64_t last_pid, last_uid, last_gid; /* that `who` was told */

static void who(struct koine_call *call, void *arg)
{
	struct koine_json *j = koine_call_result(call);
	int64_t pid = -2, uid = -2, gid = -2;
	bool known = koine_call_peer(call, &pid, &uid, &gid);

	last_pid = pid;
	last_uid = uid;
	last_gid = gid;
	koine_json_begin_array(j);
	koine_json_string(j, koine_call_method(call));
	koine_json_string(j, koine_call_dialect(call));
	koine_json_string(j, koine_call_framing(call));
	koine_json_int(j, (int64_t)koine_call_connection(call));
	koine_json_bool(j, known);
	koine_json_bool(j, known && pid == getpid() && uid == getuid() && gid == getgid());
	koine_json_bool(j, koine_call_peer(call, NULL, NULL, NULL));
	koine_json_end_array(j);
	koine_call_reply(call);
}

static void forget(struct koine_call *call, void *arg)
{
	koine_json_string(koine_call_result(call), "half an answer");
}

static void own_error(struct koine_call *call, void *arg)
{
	koine_call_fail(call, 7, "seven \"lucky\"", "{\n\t\"why\": [ 1 ]\n}");
}

static void on_cancel(struct koine_call *call, void *arg)
{
	assert_string_equal(arg, "cancel");
	n_cancelled++;
	open_call = NULL;
	koine_call_fail(call, -32800, "stopped", NULL);
}

static void later(struct koine_call *call, void *arg)
{
	open_call = call;
	koine_call_later(call, on_cancel, (void *)"cancel");
}

static void stubborn(struct koine_call *call, void *arg)
{
	open_call = call;
	koine_call_later(call, NULL, NULL);
}

static void at_once(struct koine_call *call, void *arg)
{
	koine_call_later(call, on_cancel, (void *)"cancel");
	koine_json_null(koine_call_result(call));
	koine_call_reply(call);
}

static void stop(struct koine_call *call, void *arg)
{
	koine_call_reply(call);
	koine_server_stop(*(struct koine_server **)arg);
}

/* Before the answer, and again: the connection must last until it is sent. */
static void stop_twice(struct koine_call *call, void *arg)
{
	struct koine_server *s = *(struct koine_server **)arg;

	koine_server_stop(s);
	koine_server_stop(s);
	koine_json_int(koine_call_result(call), (int64_t)koine_server_clients(s));
	koine_call_reply(call);
}

static void typed(struct koine_call *call, void *arg)
{
	struct koine_json *j = koine_call_result(call);

	koine_json_begin_array(j);
	koine_json_value(j, koine_call_param(call, "s"));
	koine_json_value(j, koine_call_param(call, "i"));
	koine_json_value(j, koine_call_param(call, "extra"));
	koine_json_end_array(j);
	koine_call_reply(call);
}

static const struct koine_field subtract_fields[] = {
	{"minuend", KOINE_TYPE_INT, true, "from this"},
	{"subtrahend", KOINE_TYPE_INT, true, NULL},
};

static const struct koine_field numbers[] = {
	{"a", KOINE_ANY, false, NULL}, {"b", KOINE_ANY, false, NULL}, {"c", KOINE_ANY, false, NULL},
	{"d", KOINE_ANY, false, NULL}, {"e", KOINE_ANY, false, NULL},
};

static const struct koine_field typed_fields[] = {
	{"s", KOINE_TYPE_STRING, false, NULL}, {"i", KOINE_TYPE_INT, false, NULL},
	{"n", KOINE_TYPE_NUMBER, false, NULL}, {"b", KOINE_TYPE_BOOL, false, NULL},
	{"o", KOINE_TYPE_OBJECT, false, NULL}, {"a", KOINE_TYPE_ARRAY, false, NULL},
};

/* ---- a server and its clients, in one thread ---- */

struct host {
	struct koine_server *server;
	char dir[TEMPDIR_MAX];
	char path[TEMPDIR_MAX + 8];
	char address[TEMPDIR_MAX + 16];
};

static void add_methods(struct koine_server **server)
{
	const struct koine_method methods[] = {
		{"subtract", subtract, NULL, subtract_fields, 2, "takes away"},
		{"sum", sum, NULL, numbers, 5, NULL},
		{"notify_sum", update, NULL, numbers, 5, NULL},
		{"notify_hello", update, NULL, numbers, 5, NULL},
		{"update", update, NULL, numbers, 5, NULL},
		{"get_data", get_data, NULL, NULL, 0, NULL},
		{"who", who, NULL, NULL, 0, NULL},
		{"forget", forget, NULL, NULL, 0, NULL},
		{"own_error", own_error, NULL, NULL, 0, NULL},
		{"later", later, NULL, NULL, 0, NULL},
		{"stubborn", stubborn, NULL, NULL, 0, NULL},
		{"at_once", at_once, NULL, NULL, 0, NULL},
		{"stop", stop, server, NULL, 0, NULL},
		{"stop_twice", stop_twice, server, NULL, 0, NULL},
		{"typed", typed, NULL, typed_fields, 6, NULL},
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		assert_int_equal(koine_server_add(*server, &methods[i]), 0);
}

static void host_start(struct host *h, const char *framing)
{
	char bound[100];

	open_call = NULL;
	n_cancelled = 0;
	n_updates = 0;
	tempdir_make(h->dir);
	snprintf(h->path, sizeof(h->path), "%s/s", h->dir);
	snprintf(h->address, sizeof(h->address), "unix:%s", h->path);
	assert_int_equal(koine_server_new(&h->server), 0);
	add_methods(&h->server);
	assert_int_equal(koine_server_listen(h->server, h->address, framing, bound, sizeof(bound)),
			 0);
	assert_string_equal(bound, h->address);
}

static void host_stop(struct host *h)
{
	koine_server_free(h->server);
	assert_int_equal(access(h->path, F_OK), -1);
	tempdir_remove(h->dir);
}

static int connect_unix(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* As a host with a loop of its own does it. */
static void turn(struct host *h, int fd)
{
	struct pollfd p[2] = {{.fd = koine_server_fd(h->server), .events = POLLIN},
			      {.fd = fd, .events = POLLIN}};
	int timeout = koine_server_timeout_ms(h->server);
	bool patient = timeout < 0 || timeout > WAIT_MS;
	int n = poll(p, 2, patient ? WAIT_MS : timeout);

	if (n == 0 && patient)
		fail_msg("nothing came in %d ms", WAIT_MS);
	koine_server_step(h->server);
}

static void turn_until_idle(struct host *h)
{
	struct pollfd p = {.fd = koine_server_fd(h->server), .events = POLLIN};

	do {
		koine_server_step(h->server);
	} while (koine_server_timeout_ms(h->server) == 0 || poll(&p, 1, 0) > 0);
}

static void send_all(int fd, const char *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void send_line(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
	send_all(fd, "\n", 1);
}

static void read_exactly(struct host *h, int fd, char *out, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = recv(fd, out + at, len - at, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			fail_msg("the connection ended after '%.*s'", (int)at, out);
		if (n > 0)
			at += (size_t)n;
		else
			turn(h, fd);
	}
	out[len] = '\0';
}

static void expect_bytes(struct host *h, int fd, const char *expected)
{
	static char got[65536];

	assert_true(strlen(expected) < sizeof(got));
	read_exactly(h, fd, got, strlen(expected));
	assert_string_equal(got, expected);
}

static void expect_line(struct host *h, int fd, const char *expected)
{
	expect_bytes(h, fd, expected);
	expect_bytes(h, fd, "\n");
}

static void expect_nothing(struct host *h, int fd)
{
	char c;

	turn_until_idle(h);
	assert_int_equal(recv(fd, &c, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

/* ---- the specification ---- */

struct speaker {
	const char *name;
	void (*send)(int fd, const char *text);
	/* answer NULL: none is due */
	void (*expect)(struct host *h, int fd, const char *answer);
};

static void line_expect(struct host *h, int fd, const char *answer)
{
	if (answer)
		expect_line(h, fd, answer);
	else
		expect_nothing(h, fd);
}

static void length_send(int fd, const char *text)
{
	uint32_t n = htonl((uint32_t)strlen(text));

	send_all(fd, (const char *)&n, 4);
	send_all(fd, text, strlen(text));
}

static void length_expect(struct host *h, int fd, const char *answer)
{
	uint32_t n;
	char head[5];

	if (!answer) {
		expect_nothing(h, fd);
		return;
	}
	read_exactly(h, fd, head, 4);
	memcpy(&n, head, 4);
	assert_int_equal(ntohl(n), strlen(answer));
	expect_bytes(h, fd, answer);
}

static void http_send(int fd, const char *text)
{
	char head[200];

	snprintf(head, sizeof(head),
		 "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
		 strlen(text));
	send_all(fd, head, strlen(head));
	send_all(fd, text, strlen(text));
}

/* Only what is no request at all has another status. */
static const char *http_status(const char *answer)
{
	if (answer && answer[0] == '{' &&
	    (strstr(answer, "\"code\":-32700") || strstr(answer, "\"code\":-32600")))
		return "400 Bad Request";
	return "200 OK";
}

static void http_expect(struct host *h, int fd, const char *answer)
{
	char head[300];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %s\r\nContent-Type: application/json; charset=utf-8\r\n"
		 "Content-Length: %zu\r\nConnection: keep-alive\r\n\r\n",
		 http_status(answer), answer ? strlen(answer) : 0);
	expect_bytes(h, fd, head);
	if (answer)
		expect_bytes(h, fd, answer);
}

static const struct speaker speakers[] = {
	{"line", send_line, line_expect},
	{"length", length_send, length_expect},
	{"http", http_send, http_expect},
};

static struct koine_doc *read_vectors(void)
{
	const char *path = getenv("KOINE_SPEC_VECTORS");
	struct koine_doc *doc = NULL;
	static char text[65536];
	FILE *f;
	size_t n;

	assert_non_null(path);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_int_equal(koine_doc_parse(text, n, &doc, NULL, 0), 0);
	return doc;
}

static const char *text_of(const struct koine_value *v, char *out, size_t size)
{
	size_t len;
	const char *text = koine_value_text(v, &len);

	if (!text)
		return NULL;
	snprintf(out, size, "%.*s", (int)len, text);
	return out;
}

static void converse(struct host *h, const struct speaker *s, const struct koine_value *vectors)
{
	int fd = connect_unix(h->path);
	char request[2000];
	char answer[2000];
	unsigned n = 0;

	for (const struct koine_value *v = koine_value_first(vectors); v; v = koine_value_next(v)) {
		s->send(fd, text_of(koine_value_get(v, "request"), request, sizeof(request)));
		s->expect(h, fd, text_of(koine_value_get(v, "answer"), answer, sizeof(answer)));
		n++;
	}
	assert_int_equal(n, 15);
	/* update, and three in batches */
	assert_int_equal(n_updates, 4);
	close(fd);
}

TEST(answers_every_example_of_the_specification)
{
	struct koine_doc *doc = read_vectors();

	for (size_t i = 0; i < sizeof(speakers) / sizeof(speakers[0]); i++) {
		struct host h;

		host_start(&h, speakers[i].name);
		converse(&h, &speakers[i], koine_doc_root(doc));
		host_stop(&h);
		/* recognised from its first bytes */
		host_start(&h, NULL);
		converse(&h, &speakers[i], koine_doc_root(doc));
		host_stop(&h);
	}
	koine_doc_free(doc);
}

/* ---- one call ---- */

#define CALL(method, id)   "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"id\":" id "}"
#define RESULT(result, id) "{\"jsonrpc\":\"2.0\",\"result\":" result ",\"id\":" id "}"

TEST(a_call_knows_who_makes_it)
{
	static const char *const expected[] = {
		RESULT("[\"who\",\"json-rpc\",\"line\",1,true,true,true]", "1"),
		RESULT("[\"who\",\"json-rpc\",\"length\",2,true,true,true]", "1"),
		RESULT("[\"who\",\"json-rpc\",\"http\",3,true,true,true]", "1"),
	};
	struct host h;
	int fds[3];

	host_start(&h, NULL);
	for (int i = 0; i < 3; i++) {
		fds[i] = connect_unix(h.path);
		speakers[i].send(fds[i], CALL("who", "1"));
		speakers[i].expect(&h, fds[i], expected[i]);
		assert_int_equal(koine_server_clients(h.server), i + 1);
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	while (koine_server_clients(h.server) > 0)
		turn(&h, -1);
	host_stop(&h);
}

TEST(of_a_tcp_peer_only_the_uid_is_known)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	char bound[100];
	unsigned port;
	struct host h;
	int fd;

	host_start(&h, NULL);
	assert_int_equal(
		koine_server_listen(h.server, "tcp:127.0.0.1:0", "line", bound, sizeof(bound)), 0);
	assert_int_equal(sscanf(bound, "tcp:127.0.0.1:%u", &port), 1);
	assert_int_not_equal(port, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	to.sin_port = htons((uint16_t)port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	send_line(fd, CALL("who", "1"));
	expect_line(&h, fd, RESULT("[\"who\",\"json-rpc\",\"line\",1,true,false,true]", "1"));
	assert_int_equal(last_uid, getuid());
	assert_int_equal(last_pid, -1);
	assert_int_equal(last_gid, -1);
	close(fd);
	host_stop(&h);
}

/* At a new port: whether another user is answered there. */
static bool serves_another_user(struct host *h)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	int answered[2], status;
	char bound[100], c;
	unsigned port;
	pid_t child;

	assert_int_equal(
		koine_server_listen(h->server, "tcp:127.0.0.1:0", "line", bound, sizeof(bound)), 0);
	assert_int_equal(sscanf(bound, "tcp:127.0.0.1:%u", &port), 1);
	to.sin_port = htons((uint16_t)port);
	assert_int_equal(pipe(answered), 0);
	child = fork();
	if (child == 0) {
		int fd = -1;

		if (setuid(NOBODY) == 0)
			fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
			_exit(2);
		(void)!send(fd, CALL("get_data", "1") "\n", sizeof(CALL("get_data", "1")),
			    MSG_NOSIGNAL);
		_exit(recv(fd, &c, 1, 0) == 1 ? 0 : 1);
	}
	close(answered[1]);
	/* Its end is that of the pipe. */
	while (poll(&(struct pollfd) {.fd = answered[0], .events = POLLIN}, 1, 0) == 0)
		turn(h, answered[0]);
	close(answered[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

TEST(others_are_served_where_the_host_allows_them)
{
	struct host h;

	if (getuid() != 0)
		skip();
	host_start(&h, NULL);
	assert_false(serves_another_user(&h));
	assert_int_equal(koine_server_allow(h.server, NOBODY - 1), 0);
	assert_false(serves_another_user(&h));
	assert_int_equal(koine_server_allow(h.server, NOBODY), 0);
	assert_true(serves_another_user(&h));
	host_stop(&h);

	host_start(&h, NULL);
	assert_int_equal(koine_server_allow(h.server, KOINE_ANYBODY), 0);
	assert_true(serves_another_user(&h));
	host_stop(&h);
}

TEST(who_cannot_be_allowed_is_refused)
{
	struct host h;

	host_start(&h, NULL);
	assert_int_equal(koine_server_allow(h.server, -2), -EINVAL);
	assert_int_equal(koine_server_allow(h.server, INT64_C(1) << 32), -EINVAL);
	for (int i = 0; i < KOINE_ALLOW_MAX; i++)
		assert_int_equal(koine_server_allow(h.server, 2000 + i), 0);
	assert_int_equal(koine_server_allow(h.server, 3000), KOINE_LIMIT);
	assert_string_equal(koine_server_error(h.server), "cannot allow more than 32 users");
	host_stop(&h);
}

TEST(params_are_checked_against_their_fields)
{
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd,
		  "{\"jsonrpc\":\"2.0\",\"method\":\"typed\",\"params\":{\"s\":\"x\",\"i\":null,"
		  "\"extra\":[1]},\"id\":1}");
	expect_line(&h, fd, RESULT("[\"x\",null,[1]]", "1"));
	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"typed\",\"params\":{\"o\":1},\"id\":1}");
	expect_line(&h, fd,
		    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32602,\"message\":\"Invalid params: "
		    "o must be an object, not number\",\"data\":{\"field\":\"o\"}},\"id\":1}");
	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[1],\"id\":1}");
	expect_line(&h, fd,
		    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32602,\"message\":\"Invalid params: "
		    "subtrahend is required\",\"data\":{\"field\":\"subtrahend\"}},\"id\":1}");
	close(fd);
	host_stop(&h);
}

TEST(a_handler_that_forgets_to_answer_is_answered_for)
{
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("forget", "1"));
	expect_line(&h, fd,
		    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"Internal error: "
		    "the handler of this method did not respond\"},\"id\":1}");
	close(fd);
	host_stop(&h);
}

TEST(an_error_carries_code_words_and_data_on_one_line)
{
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("own_error", "1"));
	expect_line(
		&h, fd,
		"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":7,\"message\":\"seven \\\"lucky\\\"\","
		"\"data\":{ \t\"why\": [ 1 ] }},\"id\":1}");
	close(fd);
	host_stop(&h);
}

/* ---- later ---- */

TEST(a_call_is_answered_later)
{
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("later", "1"));
	send_line(fd, CALL("get_data", "2"));
	expect_nothing(&h, fd);
	assert_non_null(open_call);
	assert_int_equal(koine_call_connection(open_call), 1);
	koine_json_bool(koine_call_result(open_call), true);
	koine_call_reply(open_call);
	expect_line(&h, fd, RESULT("true", "1"));
	expect_line(&h, fd, RESULT("[\"hello\",5]", "2"));
	send_line(fd, CALL("at_once", "3"));
	expect_line(&h, fd, RESULT("null", "3"));
	close(fd);
	host_stop(&h);
}

TEST(a_client_cancels_its_call)
{
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("later", "1"));
	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":[1],\"id\":2}");
	expect_line(&h, fd,
		    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32800,\"message\":\"stopped\"},"
		    "\"id\":1}");
	expect_line(&h, fd, RESULT("{\"cancelled\":true}", "2"));
	assert_int_equal(n_cancelled, 1);
	close(fd);
	host_stop(&h);
}

TEST(a_cancelled_call_without_callback_stays_valid)
{
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("stubborn", "1"));
	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":[1],\"id\":2}");
	expect_line(&h, fd, RESULT("{\"cancelled\":true}", "2"));
	assert_string_equal(koine_call_method(open_call), "stubborn");
	koine_json_int(koine_call_result(open_call), 3);
	koine_call_reply(open_call);
	expect_line(&h, fd, RESULT("3", "1"));
	close(fd);
	host_stop(&h);
}

TEST(a_call_stays_valid_when_its_client_leaves)
{
	struct linger reset = {.l_onoff = 1};
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	send_line(fd, CALL("later", "1"));
	turn_until_idle(&h);
	close(fd);
	turn_until_idle(&h);
	koine_json_string(koine_call_result(open_call), "to nobody");
	koine_call_reply(open_call);
	while (koine_server_clients(h.server) > 0)
		turn(&h, -1);
	host_stop(&h);
}

TEST(free_cancels_open_calls)
{
	struct host h;
	int fds[2];

	host_start(&h, "line");
	for (int i = 0; i < 2; i++)
		fds[i] = connect_unix(h.path);
	send_line(fds[0], CALL("later", "1"));
	send_line(fds[1], CALL("stubborn", "1"));
	turn_until_idle(&h);
	host_stop(&h);
	assert_int_equal(n_cancelled, 1);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
}

/* ---- notifications ---- */

TEST(notifications_go_to_one_or_all)
{
	static const char tick[] = "{\"jsonrpc\":\"2.0\",\"method\":\"tick\",\"params\":[ 1 ]}";
	struct host h;
	int fds[3];

	host_start(&h, NULL);
	for (int i = 0; i < 3; i++) {
		fds[i] = connect_unix(h.path);
		speakers[i].send(fds[i], CALL("get_data", "1"));
		speakers[i].expect(&h, fds[i], RESULT("[\"hello\",5]", "1"));
	}
	/* indented, which must not cut a line in two */
	assert_int_equal(koine_server_notify_all(h.server, "tick", "[\n1\n]"), 0);
	expect_line(&h, fds[0], tick);
	length_expect(&h, fds[1], "{\"jsonrpc\":\"2.0\",\"method\":\"tick\",\"params\":[\n1\n]}");
	expect_nothing(&h, fds[2]);

	assert_int_equal(koine_server_notify(h.server, 2, "tick", NULL), 0);
	length_expect(&h, fds[1], "{\"jsonrpc\":\"2.0\",\"method\":\"tick\"}");
	expect_nothing(&h, fds[0]);
	assert_int_equal(koine_server_notify(h.server, 3, "tick", NULL), -ENOTSUP);
	assert_int_equal(koine_server_notify(h.server, 99, "tick", NULL), -ENOTCONN);
	assert_int_equal(koine_server_notify(h.server, 1, "tick", "[1"), KOINE_PARSE);
	assert_int_equal(koine_server_notify(h.server, 1, "tick", "1"), KOINE_PARAMS);
	assert_int_equal(koine_server_notify_all(h.server, "tick", "{]"), KOINE_PARSE);
	expect_nothing(&h, fds[0]);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	host_stop(&h);
}

TEST(a_client_that_does_not_read_is_not_sent_to)
{
	static char params[100003];
	struct host h;
	int r = 0;
	int fd;

	memset(params, '1', sizeof(params) - 1);
	params[0] = '[';
	params[sizeof(params) - 2] = ']';
	host_start(&h, "line");
	fd = connect_unix(h.path);
	turn_until_idle(&h);
	for (int i = 0; r == 0 && i < 1000; i++)
		r = koine_server_notify(h.server, 1, "m", params);
	assert_int_equal(r, -ENOBUFS);
	close(fd);
	host_stop(&h);
}

/* ---- listening ---- */

TEST(listen_says_what_is_wrong)
{
	struct koine_server *other;
	struct host h;
	char long_path[300];

	host_start(&h, NULL);
	assert_int_equal(koine_server_new(&other), 0);
	assert_string_equal(koine_server_error(other), "");
	assert_int_equal(koine_server_listen(other, h.address, NULL, NULL, 0), KOINE_CONFLICT);
	assert_non_null(strstr(koine_server_error(other), h.path));
	assert_int_equal(koine_server_listen(other, "tcp:0.0.0.0:1", NULL, NULL, 0),
			 KOINE_FORBIDDEN);
	assert_non_null(strstr(koine_server_error(other), "0.0.0.0"));
	assert_int_equal(koine_server_listen(other, h.address, "morse", NULL, 0), KOINE_PARAMS);
	assert_non_null(strstr(koine_server_error(other), "morse"));
	assert_true(koine_server_listen(other, "nonsense", NULL, NULL, 0) > 0);
	assert_string_not_equal(koine_server_error(other), "");
	memset(long_path, 'x', sizeof(long_path) - 1);
	memcpy(long_path, "unix:/", 6);
	long_path[sizeof(long_path) - 1] = '\0';
	assert_true(koine_server_listen(other, long_path, NULL, NULL, 0) > 0);
	koine_server_free(other);
	host_stop(&h);
}

TEST(add_says_what_is_wrong)
{
	const struct koine_field nameless = {NULL, KOINE_ANY, false, NULL};
	const struct koine_field typeless = {"x", (enum koine_type)99, false, NULL};
	const struct koine_field same[] = {{"x", KOINE_ANY, false, NULL},
					   {"x", KOINE_TYPE_INT, true, NULL}};
	const struct koine_method wrong[] = {
		{NULL, sum, NULL, NULL, 0, NULL},     {"", sum, NULL, NULL, 0, NULL},
		{"m", NULL, NULL, NULL, 0, NULL},     {"m", sum, NULL, NULL, 1, NULL},
		{"m", sum, NULL, &nameless, 1, NULL}, {"m", sum, NULL, &typeless, 1, NULL},
		{"m", sum, NULL, same, 2, NULL},
	};
	const struct koine_method twice = {"sum", sum, NULL, NULL, 0, NULL};
	const struct koine_method reserved = {"rpc.discover", sum, NULL, NULL, 0, NULL};
	struct koine_server *s;

	assert_int_equal(koine_server_new(&s), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(koine_server_add(s, &wrong[i]), -EINVAL);
	assert_string_not_equal(koine_server_error(s), "");
	assert_int_equal(koine_server_add(s, &twice), 0);
	assert_int_equal(koine_server_add(s, &twice), -EEXIST);
	assert_int_equal(koine_server_add(s, &reserved), -EEXIST);
	koine_server_free(s);
	koine_server_free(NULL);
}

/* ---- another thread ---- */

static void *run_server(void *arg)
{
	struct host *h = arg;

	koine_server_run(h->server);
	return NULL;
}

static void post_stop(void *arg)
{
	koine_server_stop(arg);
}

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	unsigned *n = arg;

	if (len == 4 && memcmp(method, "tick", 4) == 0)
		(*n)++;
}

static void post_tick(void *arg)
{
	koine_server_notify_all(arg, "tick", "{\"n\":1}");
}

static void talk(struct host *h, const char *framing)
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_answer *answer = NULL;
	struct koine_client *c = NULL;
	unsigned n_ticks = 0;
	int64_t n = 0;

	opts.framing = framing;
	assert_int_equal(koine_dial(h->address, &opts, &c), 0);
	koine_client_on_notification(c, on_notification, &n_ticks);
	assert_int_equal(koine_client_call(c, "subtract", "[42,23]", &answer), 0);
	assert_true(koine_value_int(koine_answer_result(answer), &n));
	assert_int_equal(n, 19);
	koine_answer_free(answer);
	assert_int_equal(koine_client_call(c, "own_error", NULL, &answer), KOINE_ERROR_ANSWER);
	assert_int_equal(koine_answer_error_code(answer), 7);
	koine_answer_free(answer);
	assert_int_equal(koine_client_notify(c, "update", "[1]"), 0);
	if (strcmp(framing, "http") != 0) {
		assert_int_equal(koine_server_post(h->server, post_tick, h->server), 0);
		while (n_ticks == 0)
			assert_int_equal(koine_client_wait(c, WAIT_MS), 0);
	}
	koine_client_free(c);
}

TEST(our_client_talks_to_our_server)
{
	struct host h;
	pthread_t thread;

	host_start(&h, NULL);
	assert_int_equal(pthread_create(&thread, NULL, run_server, &h), 0);
	talk(&h, "line");
	talk(&h, "length");
	talk(&h, "http");
	assert_int_equal(koine_server_post(h.server, post_stop, h.server), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(n_updates, 3);
	host_stop(&h);
}

static void count(void *arg)
{
	(*(unsigned *)arg)++;
}

struct poster {
	struct koine_server *server;
	unsigned *n;
};

static void *post_many(void *arg)
{
	const struct poster *p = arg;

	for (int i = 0; i < N_POSTS; i++) {
		if (koine_server_post(p->server, count, p->n) != 0)
			abort();
	}
	return NULL;
}

TEST(what_other_threads_post_runs_on_the_servers)
{
	pthread_t posters[N_THREADS];
	pthread_t thread;
	unsigned n = 0;
	struct poster p;
	struct host h;

	host_start(&h, NULL);
	p = (struct poster) {h.server, &n};
	assert_int_equal(pthread_create(&thread, NULL, run_server, &h), 0);
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&posters[i], NULL, post_many, &p), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(posters[i], NULL);
	/* posted after all of them, so run after all of them */
	assert_int_equal(koine_server_post(h.server, post_stop, h.server), 0);
	pthread_join(thread, NULL);
	assert_int_equal(n, N_THREADS * N_POSTS);
	host_stop(&h);
}

TEST(what_was_posted_runs_before_the_server_goes)
{
	unsigned n = 0;
	struct host h;
	int fd;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("get_data", "1"));
	expect_line(&h, fd, RESULT("[\"hello\",5]", "1"));
	assert_int_equal(koine_server_post(h.server, post_tick, h.server), 0);
	assert_int_equal(koine_server_post(h.server, count, &n), 0);
	host_stop(&h);
	assert_int_equal(n, 1);
	close(fd);
}

static struct koine_server *deferring_server;

static void answer_posted(void *arg)
{
	koine_call_fail(arg, 1, "at last", NULL);
}

static void cancel_by_post(struct koine_call *call, void *arg)
{
	n_cancelled++;
	assert_int_equal(koine_server_post(deferring_server, answer_posted, call), 0);
}

static void defer(struct koine_call *call, void *arg)
{
	koine_call_later(call, cancel_by_post, NULL);
}

TEST(a_cancelled_call_may_post_its_answer)
{
	const struct koine_method m = {"defer", defer, NULL, NULL, 0, NULL};
	struct host h;
	int fd;

	host_start(&h, "line");
	deferring_server = h.server;
	assert_int_equal(koine_server_add(h.server, &m), 0);
	fd = connect_unix(h.path);
	send_line(fd, CALL("defer", "1"));
	turn_until_idle(&h);
	host_stop(&h);
	assert_int_equal(n_cancelled, 1);
	close(fd);
}

TEST(a_handler_stops_the_server)
{
	struct koine_answer *answer = NULL;
	struct koine_client *c = NULL;
	struct host h;
	pthread_t thread;

	host_start(&h, NULL);
	assert_int_equal(pthread_create(&thread, NULL, run_server, &h), 0);
	assert_int_equal(koine_dial(h.address, NULL, &c), 0);
	assert_int_equal(koine_client_call(c, "stop", NULL, &answer), 0);
	koine_answer_free(answer);
	koine_client_free(c);
	pthread_join(thread, NULL);
	/* once stopped, running it again comes back at once */
	assert_int_equal(koine_server_run(h.server), 0);
	assert_int_equal(koine_dial(h.address, NULL, &c), -ENOENT);
	host_stop(&h);
}

TEST(a_handler_may_stop_the_server_twice)
{
	struct host h;
	int other;
	int fd;
	char c;

	host_start(&h, "line");
	fd = connect_unix(h.path);
	other = connect_unix(h.path);
	send_line(other, CALL("stubborn", "1"));
	turn_until_idle(&h);
	send_line(fd, "[" CALL("stop_twice", "1") "," CALL("stop_twice", "2") "]");
	expect_line(&h, fd,
		    "[{\"jsonrpc\":\"2.0\",\"result\":2,\"id\":1},"
		    "{\"jsonrpc\":\"2.0\",\"result\":2,\"id\":2}]");
	assert_int_equal(koine_server_run(h.server), 0);
	assert_int_equal(koine_server_clients(h.server), 0);
	assert_int_equal(recv(fd, &c, 1, 0), 0);
	assert_int_equal(recv(other, &c, 1, 0), 0);
	close(fd);
	close(other);
	host_stop(&h);
}

/* ---- logs ---- */

static void keep_line(void *arg, int level, const char *line)
{
	snprintf(arg, 200, "%d %s", level, line);
}

TEST(log_lines_reach_the_host)
{
	char line[200] = "";
	struct host h;
	int fd;

	koine_set_log(keep_line, line, 2);
	host_start(&h, "line");
	fd = connect_unix(h.path);
	send_line(fd, CALL("absent", "1"));
	expect_line(&h, fd,
		    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"Method not "
		    "found\"},\"id\":1}");
	assert_string_equal(
		line, "2 call refused  dialect=json-rpc method=absent reason=Method not found");
	line[0] = '\0';
	koine_set_log(NULL, NULL, 2);
	send_line(fd, CALL("absent", "1"));
	turn_until_idle(&h);
	assert_string_equal(line, "");
	close(fd);
	host_stop(&h);
}
