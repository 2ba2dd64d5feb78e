/*
 * A client against a real server: a thread that plays a script on a real
 * socket. Only <koine/koine.h> is used.
 */
#include "check.h"
#include "tempdir.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <koine/koine.h>

enum { NOBODY = 65534 };

/* ---- the server ---- */

enum act {
	END,    /* closes and stops */
	ACCEPT, /* closes what there was, takes the next client */
	EXPECT, /* reads until this connection has said `text` */
	SEND,
	DRIBBLE, /* sends byte by byte, each only after the client has read the one before */
	FRAME,   /* sends with a 4-byte length */
	FLOOD,   /* sends a line of a million bytes */
	DRAIN,   /* reads up to a newline and keeps nothing */
	HANGUP,  /* waits until the client has left */
};

struct step {
	enum act act;
	const char *text;
};

struct server {
	char folder[TEMPDIR_MAX];
	char path[96];
	char address[128];
	int listener;
	int conn;
	pthread_t thread;
	const struct step *script;
	char heard[1 << 16]; /* on all connections, NUL-ended */
	size_t n_heard;
	size_t since; /* where this connection began */
	sem_t read_by_client;
	const char *failed; /* a step that did not come to pass */
};

static void on_bytes(void *arg, bool out, const char *data, size_t len)
{
	struct server *s = arg;

	for (size_t i = 0; i < len && !out; i++)
		sem_post(&s->read_by_client);
}

static bool server_send(struct server *s, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(s->conn, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* False when the client has left. */
static bool server_hear(struct server *s)
{
	ssize_t n = recv(s->conn, s->heard + s->n_heard, sizeof(s->heard) - 1 - s->n_heard, 0);

	if (n <= 0)
		return false;
	s->n_heard += (size_t)n;
	s->heard[s->n_heard] = '\0';
	return true;
}

/* Length prefixes hold NULs, so this is no strstr. */
static bool server_has_heard(const struct server *s, const char *text)
{
	return memmem(s->heard + s->since, s->n_heard - s->since, text, strlen(text)) != NULL;
}

static bool server_dribble(struct server *s, const char *text)
{
	while (sem_trywait(&s->read_by_client) == 0)
		;
	for (; *text; text++) {
		if (!server_send(s, text, 1))
			return false;
		sem_wait(&s->read_by_client);
	}
	return true;
}

static bool server_flood(struct server *s)
{
	char block[1000];
	bool taken = true;

	memset(block, ' ', sizeof(block));
	for (int i = 0; i < 1000 && taken; i++)
		taken = server_send(s, block, sizeof(block));
	/* The client may have had enough at any point. */
	return true;
}

static bool server_drain(struct server *s)
{
	char block[65536];
	ssize_t n;

	do {
		n = recv(s->conn, block, sizeof(block), 0);
	} while (n > 0 && block[n - 1] != '\n');
	return n > 0;
}

static bool server_accept(struct server *s)
{
	if (s->conn >= 0)
		close(s->conn);
	s->conn = accept(s->listener, NULL, NULL);
	s->since = s->n_heard;
	return s->conn >= 0;
}

static bool server_play(struct server *s, const struct step *step)
{
	uint32_t prefix;

	switch (step->act) {
	case END:
		return true;
	case ACCEPT:
		return server_accept(s);
	case EXPECT:
		while (!server_has_heard(s, step->text)) {
			if (!server_hear(s))
				return false;
		}
		return true;
	case SEND:
		return server_send(s, step->text, strlen(step->text));
	case DRIBBLE:
		return server_dribble(s, step->text);
	case FRAME:
		prefix = htonl((uint32_t)strlen(step->text));
		return server_send(s, (const char *)&prefix, 4) &&
		       server_send(s, step->text, strlen(step->text));
	case FLOOD:
		return server_flood(s);
	case DRAIN:
		return server_drain(s);
	case HANGUP:
		while (server_hear(s))
			;
		return true;
	}
	return false;
}

static void *server_main(void *arg)
{
	struct server *s = arg;

	for (const struct step *step = s->script; step->act != END; step++) {
		if (!server_play(s, step)) {
			s->failed = step->text ? step->text : "accept";
			break;
		}
	}
	if (s->conn >= 0)
		close(s->conn);
	s->conn = -1;
	return NULL;
}

static int listen_unix(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static int listen_tcp(char *address, size_t size, const char *format)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(address, size, format, (int)ntohs(in.sin_port));
	return fd;
}

static int folder_make(void **state)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	tempdir_make(s->folder);
	snprintf(s->path, sizeof(s->path), "%s/s", s->folder);
	snprintf(s->address, sizeof(s->address), "unix:%s", s->path);
	sem_init(&s->read_by_client, 0, 0);
	s->listener = -1;
	s->conn = -1;
	*state = s;
	return 0;
}

static int folder_remove(void **state)
{
	struct server *s = *state;

	tempdir_remove(s->folder);
	sem_destroy(&s->read_by_client);
	free(s);
	return 0;
}

FIXTURE(folder_make, folder_remove);

static void server_run(struct server *s, const struct step *script)
{
	s->script = script;
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static void server_start(struct server *s, const struct step *script)
{
	s->listener = listen_unix(s->path);
	server_run(s, script);
}

/* Every step must have come to pass. */
static void server_end(struct server *s)
{
	pthread_join(s->thread, NULL);
	close(s->listener);
	s->listener = -1;
	if (s->failed)
		fail_msg("the server did not get past: %s", s->failed);
}

/* ---- helpers ---- */

static struct koine_client *dial_with(struct server *s, struct koine_dial_opts opts)
{
	struct koine_client *c = NULL;

	opts.on_bytes = on_bytes;
	opts.on_bytes_arg = s;
	assert_int_equal(koine_dial(s->address, &opts, &c), 0);
	assert_non_null(c);
	return c;
}

static struct koine_client *dial(struct server *s, const char *framing)
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;

	opts.framing = framing;
	return dial_with(s, opts);
}

/* Calls, and compares the result's source. */
static void assert_call(struct koine_client *c, const char *method, const char *result)
{
	struct koine_answer *a = NULL;
	const char *raw;
	size_t len = 0;
	int r = koine_client_call(c, method, NULL, &a);

	if (r != 0)
		fail_msg("%s: %d: %s", method, r, koine_client_error(c));
	raw = koine_value_raw(koine_answer_result(a), &len);
	assert_non_null(raw);
	assert_int_equal(len, strlen(result));
	assert_memory_equal(raw, result, len);
	koine_answer_free(a);
}

static void assert_fault(struct koine_client *c, const char *method, int fault, const char *words)
{
	struct koine_answer *a = NULL;

	assert_int_equal(koine_client_call(c, method, NULL, &a), fault);
	assert_null(a);
	if (!strstr(koine_client_error(c), words))
		fail_msg("'%s' does not say '%s'", koine_client_error(c), words);
}

#define ID(n, result) "{\"jsonrpc\":\"2.0\",\"id\":" #n ",\"result\":" result "}"

/* ---- line and length ---- */

TEST(a_call_gets_its_result)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"},
		{SEND, ID(1, "{\"pong\":true}") "\n"},
		{EXPECT, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"a\\nb\","
			 "\"params\":{\"x\":[1,2]}}\n"},
		{SEND, ID(2, "null") "\r\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_answer *a = NULL;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_call(c, "ping", "{\"pong\":true}");
	/* Newlines between the parameters must not end the message. */
	assert_int_equal(koine_client_call(c, "a\nb", "{\n\"x\":\r\n[1,\t2]\n}", &a), 0);
	assert_non_null(koine_answer_result(a));
	assert_int_equal(koine_value_kind(koine_answer_result(a)), KOINE_NULL);
	assert_int_equal(koine_value_count(koine_answer_whole(a)), 3);
	koine_answer_free(a);
	koine_client_free(c);
	server_end(s);
}

TEST(a_call_gets_its_error)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\n"},
		{SEND, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"no such\","
		       "\"data\":[7]},\"id\":1}\n"},
		{EXPECT, "\"id\":2"},
		{SEND, "{\"result\":null,\"error\":{\"code\":5},\"id\":2}\n"},
		{EXPECT, "\"id\":3"},
		{SEND, "{\"result\":{},\"error\":null,\"id\":3}\n"},
		{EXPECT, "\"id\":4"},
		{SEND, "{\"error\":{\"code\":-32700,\"message\":\"what\"},\"id\":null}\n"},
		{END, NULL},
	};
	struct koine_answer *a = NULL;
	struct koine_client *c;
	const char *text;
	size_t len;

	server_start(s, script);
	c = dial(s, "line");
	assert_int_equal(koine_client_call(c, "x", NULL, &a), KOINE_ERROR_ANSWER);
	assert_null(koine_answer_result(a));
	assert_int_equal(koine_answer_error_code(a), -32601);
	text = koine_answer_error_message(a, &len);
	assert_int_equal(len, 7);
	assert_memory_equal(text, "no such", 7);
	assert_int_equal(koine_value_count(koine_answer_error_data(a)), 1);
	assert_string_equal(koine_client_error(c), "no such (code -32601)");
	koine_answer_free(a);
	assert_int_equal(koine_client_call(c, "x", NULL, &a), KOINE_ERROR_ANSWER);
	assert_int_equal(koine_answer_error_code(a), 5);
	assert_null(koine_answer_error_message(a, &len));
	koine_answer_free(a);
	assert_call(c, "x", "{}");
	assert_int_equal(koine_client_call(c, "x", NULL, &a), KOINE_ERROR_ANSWER);
	assert_int_equal(koine_answer_error_code(a), -32700);
	koine_answer_free(a);
	koine_client_free(c);
	server_end(s);
}

TEST(an_answer_may_come_byte_by_byte)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\n"},
		{DRIBBLE, "{\"jsonrpc\":\"2.0\",\"method\":\"tick\"}\n" ID(1, "[1,2]") "\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_call(c, "slow", "[1,2]");
	koine_client_free(c);
	server_end(s);
}

TEST(lengths_frame_both_ways)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"method\":\"a\"}"},
		{FRAME, ID(1, "\"one\"")},
		{EXPECT, "\"method\":\"b\"}"},
		{FRAME, "{\"method\":\"note\"}"},
		{FRAME, ID(2, "2")},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, "length");
	assert_call(c, "a", "\"one\"");
	assert_call(c, "b", "2");
	koine_client_free(c);
	server_end(s);
	assert_memory_equal(s->heard, "\0\0\0\x25{\"jsonrpc\"", 14);
}

struct seen {
	int n;
	int results[4];
	int64_t values[4];
	struct koine_client *client;
};

static void note_answer(void *arg, int result, const struct koine_answer *answer)
{
	struct seen *seen = arg;

	seen->results[seen->n] = result;
	koine_value_int(koine_answer_result(answer), &seen->values[seen->n]);
	seen->n++;
}

TEST(answers_find_their_calls_in_any_order)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":3"},
		{SEND,
		 ID(3, "30") "\n" ID(99, "0") "\n" ID(1, "10") "\n{\"id\":\"2\",\"result\":0}\n"},
		{SEND, ID(2, "20") "\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct seen seen = {0};
	struct koine_client *c;
	int64_t id = 0;

	server_start(s, script);
	c = dial(s, NULL);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(seen.n, 0);
	while (seen.n < 3)
		assert_int_equal(koine_client_wait(c, 10000), 0);
	assert_int_equal(seen.values[0], 30);
	assert_int_equal(seen.values[1], 10);
	assert_int_equal(seen.values[2], 20);
	assert_int_equal(koine_client_timeout_ms(c), -1);
	koine_client_free(c);
	server_end(s);
}

TEST(your_own_loop_can_drive_it)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL}, {EXPECT, "\"id\":1"}, {SEND, ID(1, "10") "\n"},
		{HANGUP, NULL}, {END, NULL},
	};
	struct seen seen = {0};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	while (seen.n == 0) {
		struct pollfd p = {.fd = koine_client_fd(c), .events = koine_client_events(c)};

		assert_true(p.events & POLLIN);
		assert_true(koine_client_timeout_ms(c) > 0);
		assert_true(poll(&p, 1, koine_client_timeout_ms(c)) > 0);
		assert_int_equal(koine_client_step(c), 0);
	}
	assert_int_equal(seen.values[0], 10);
	koine_client_free(c);
	server_end(s);
}

static void call_again(void *arg, int result, const struct koine_answer *answer)
{
	struct seen *seen = arg;

	note_answer(arg, result, answer);
	if (seen->n == 1)
		assert_call(seen->client, "inner", "2");
}

TEST(a_callback_may_call)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},    {EXPECT, "outer"},       {SEND, ID(1, "1") "\n"},
		{EXPECT, "inner"}, {SEND, ID(2, "2") "\n"}, {HANGUP, NULL},
		{END, NULL},
	};
	struct seen seen = {0};

	server_start(s, script);
	seen.client = dial(s, NULL);
	assert_int_equal(
		koine_client_call_async(seen.client, "outer", NULL, call_again, &seen, NULL), 0);
	while (seen.n < 1)
		assert_int_equal(koine_client_wait(seen.client, -1), 0);
	koine_client_free(seen.client);
	server_end(s);
}

struct notes {
	int n;
	char log[200];
};

static void note_notification(void *arg, const char *method, size_t method_len,
			      const struct koine_value *whole)
{
	struct notes *notes = arg;
	size_t at = strlen(notes->log);

	notes->n++;
	snprintf(notes->log + at, sizeof(notes->log) - at, "%.*s/%zu ",
		 method ? (int)method_len : 1, method ? method : "-", koine_value_count(whole));
}

TEST(messages_without_id_are_notifications)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\n"},
		{SEND, "{\"method\":\"tick\",\"params\":{}}\n{\"jsonrpc\":\"2.0\",\"result\":{}}\n"
		       "{\"neither\":1}\n{\"method\":\"ask\",\"id\":1}\n"},
		{SEND, ID(1, "1") "\n{\"method\":\"late\"}\n"},
		{END, NULL},
	};
	struct notes notes = {0};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	koine_client_on_notification(c, note_notification, &notes);
	assert_call(c, "m", "1");
	while (notes.n < 3)
		koine_client_wait(c, -1);
	assert_string_equal(notes.log, "tick/2 -/2 late/1 ");
	koine_client_free(c);
	server_end(s);
}

TEST(a_lost_connection_is_told_and_dialled_again)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1"},
		{SEND, "{\"jsonrpc\":\"2.0\",\"id\":1,\"res"},
		{ACCEPT, NULL},
		{EXPECT, "\"id\":2"},
		{ACCEPT, NULL},
		{EXPECT, "\"id\":3"},
		{SEND, ID(3, "3") "\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_fault(c, "half", -ECONNRESET, "in the middle of a response");
	assert_fault(c, "none", -ECONNRESET, "without a response");
	assert_call(c, "third", "3");
	koine_client_free(c);
	server_end(s);
	/* The ones that failed were not sent again. */
	assert_null(strstr(strstr(s->heard, "half") + 1, "half"));
	assert_null(strstr(strstr(s->heard, "none") + 1, "none"));
}

TEST(an_idle_connection_that_was_closed_costs_no_call)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1"},
		{SEND, ID(1, "1") "\n"},
		{END, NULL},
	};
	const struct step second[] = {
		{ACCEPT, NULL}, {EXPECT, "\"id\":2"}, {SEND, ID(2, "2") "\n"},
		{HANGUP, NULL}, {END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_call(c, "m", "1");
	server_end(s);
	assert_fault(c, "m", -ECONNREFUSED, "cannot connect to unix:");
	assert_int_equal(koine_client_wait(c, -1), -ENOTCONN);
	unlink(s->path);
	assert_fault(c, "m", -ENOENT, "No such file or directory");
	server_start(s, second);
	assert_call(c, "m", "2");
	koine_client_free(c);
	server_end(s);
}

TEST(a_step_says_that_the_server_left)
{
	struct server *s = *state;
	const struct step script[] = {{ACCEPT, NULL}, {END, NULL}};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_wait(c, -1), -ECONNRESET);
	assert_int_equal(koine_client_fd(c), -1);
	assert_int_equal(koine_client_step(c), -ENOTCONN);
	koine_client_free(c);
	server_end(s);
}

TEST(a_server_that_comes_late_is_found)
{
	struct server *s = *state;
	const struct step first[] = {{ACCEPT, NULL}, {END, NULL}};
	const struct step second[] = {
		{ACCEPT, NULL}, {EXPECT, "\"id\":1"}, {SEND, ID(1, "7") "\n"},
		{HANGUP, NULL}, {END, NULL},
	};
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct seen seen = {0};
	struct koine_client *c;

	opts.retries = 100;
	opts.retry_delay_ms = 1;
	server_start(s, first);
	c = dial_with(s, opts);
	server_end(s);
	unlink(s->path);
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	/* Nobody there: it is between two tries. */
	assert_int_equal(koine_client_fd(c), -1);
	assert_int_equal(koine_client_events(c), 0);
	assert_true(koine_client_timeout_ms(c) >= 0);
	server_start(s, second);
	while (seen.n == 0)
		assert_int_equal(koine_client_wait(c, -1), 0);
	assert_int_equal(seen.values[0], 7);
	koine_client_free(c);
	server_end(s);
}

TEST(retries_come_to_an_end)
{
	struct server *s = *state;
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = (struct koine_client *)s;

	opts.retries = 3;
	opts.retry_delay_ms = 1;
	assert_int_equal(koine_dial(s->address, &opts, &c), -ENOENT);
	assert_ptr_equal(c, s);
}

/* A full backlog answers EAGAIN at once; that is not a dead server. */
TEST(a_busy_server_is_waited_for)
{
	struct server *s = *state;
	const struct step first[] = {{ACCEPT, NULL}, {END, NULL}};
	const struct step second[] = {
		{ACCEPT, NULL}, {EXPECT, "\"id\":1"}, {SEND, ID(1, "7") "\n"},
		{HANGUP, NULL}, {END, NULL},
	};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct seen seen = {0};
	struct koine_client *c;
	int fds[16];
	int n = 0;
	int r = 0;

	server_start(s, first);
	c = dial(s, NULL);
	server_end(s);
	unlink(s->path);
	s->listener = listen_unix(s->path);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->path);
	while (r == 0 && n < 16) {
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		r = connect(fds[n++], (struct sockaddr *)&un, sizeof(un)) == 0 ? 0 : -errno;
	}
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	assert_int_equal(koine_client_fd(c), -1);
	/* The last has no place in the queue. */
	close(fds[--n]);
	for (int i = 0; i < n; i++) {
		close(accept(s->listener, NULL, NULL));
		close(fds[i]);
	}
	server_run(s, second);
	while (seen.n == 0)
		assert_int_equal(koine_client_wait(c, -1), 0);
	assert_int_equal(seen.values[0], 7);
	koine_client_free(c);
	server_end(s);
}

TEST(no_answer_is_a_time_out)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":2"},
		/* The late answer to the first is dropped. */
		{SEND, ID(1, "1") "\n" ID(2, "2") "\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct seen seen = {0};
	struct koine_client *c;

	opts.timeout_ms = 50;
	server_start(s, script);
	c = dial_with(s, opts);
	assert_fault(c, "ping", -ETIMEDOUT, "no response to 'ping' within 50 ms");
	/* May be late on a slow machine too; then it is told so. */
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	while (seen.n == 0)
		koine_client_wait(c, -1);
	assert_true(seen.results[0] == 0 ? seen.values[0] == 2 : seen.results[0] == -ETIMEDOUT);
	koine_client_free(c);
	server_end(s);
}

TEST(garbage_is_no_answer)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},       {EXPECT, "\n"},          {SEND, "hello\n"},
		{ACCEPT, NULL},       {EXPECT, "\n"},          {SEND, "[1]\n"},
		{ACCEPT, NULL},       {EXPECT, "\"id\":3"},    {SEND, "{\"id\":3}\n"},
		{EXPECT, "\"id\":4"}, {SEND, ID(4, "4") "\n"}, {HANGUP, NULL},
		{END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_fault(c, "m", -EBADMSG, "not JSON-RPC");
	assert_fault(c, "m", -EBADMSG, "not an object");
	/* Only this call is wrong; the stream is still in step. */
	assert_fault(c, "m", -EBADMSG, "neither a result nor an error");
	assert_call(c, "m", "4");
	koine_client_free(c);
	server_end(s);
}

TEST(a_large_answer_is_refused)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},       {EXPECT, "\n"},          {FLOOD, NULL},  {ACCEPT, NULL},
		{EXPECT, "\"id\":2"}, {SEND, ID(2, "2") "\n"}, {HANGUP, NULL}, {END, NULL},
	};
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c;

	opts.message_max = 1000;
	server_start(s, script);
	c = dial_with(s, opts);
	assert_fault(c, "m", -EMSGSIZE, "invalid response");
	assert_int_equal(koine_client_fd(c), -1);
	assert_call(c, "m", "2");
	koine_client_free(c);
	server_end(s);
}

TEST(bad_parameters_are_not_sent)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL}, {EXPECT, "\"id\":1"}, {SEND, ID(1, "1") "\n"},
		{HANGUP, NULL}, {END, NULL},
	};
	struct koine_answer *a = NULL;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_call(c, "bad", "{", &a), KOINE_PARSE);
	assert_int_equal(koine_client_call(c, "bad", "3", &a), KOINE_PARAMS);
	assert_int_equal(koine_client_call(c, "", NULL, &a), -EINVAL);
	assert_call(c, "m", "1");
	koine_client_free(c);
	server_end(s);
	assert_null(strstr(s->heard, "bad"));
}

TEST(a_notification_has_no_id)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[1]}\n"},
		{EXPECT, "\"id\":1"},
		{SEND, ID(1, "1") "\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_notify(c, "note", "[1]"), 0);
	assert_call(c, "m", "1");
	koine_client_free(c);
	server_end(s);
}

TEST(calls_under_way_hear_of_the_end)
{
	struct server *s = *state;
	const struct step script[] = {{ACCEPT, NULL}, {HANGUP, NULL}, {END, NULL}};
	struct seen seen = {0};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	koine_client_free(c);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.results[0], -ECANCELED);
	server_end(s);
}

/* More than the socket holds, so it goes out in many pieces. */
TEST(a_large_call_is_sent_in_pieces)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL}, {DRAIN, NULL},  {SEND, ID(1, "1") "\n"},
		{DRAIN, NULL},  {HANGUP, NULL}, {END, NULL},
	};
	size_t len = 4 << 20;
	char *params = malloc(len + 1);
	struct koine_answer *a = NULL;
	struct koine_client *c;

	assert_non_null(params);
	memset(params, 'x', len);
	memcpy(params, "[\"", 2);
	memcpy(params + len - 2, "\"]", 3);
	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_call(c, "big", params, &a), 0);
	koine_answer_free(a);
	assert_int_equal(koine_client_notify(c, "big", params), 0);
	koine_client_free(c);
	server_end(s);
	free(params);
}

TEST(a_broken_pipe_is_a_fault_and_no_signal)
{
	struct server *s = *state;
	const struct step script[] = {{ACCEPT, NULL}, {EXPECT, "\n"}, {END, NULL}};
	struct seen seen = {0};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, NULL);
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	server_end(s);
	/* Something is under way, so nobody looks whether the server is there. */
	assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL), 0);
	assert_true(koine_client_wait(c, -1) < 0);
	assert_int_equal(seen.n, 2);
	assert_true(seen.results[0] < 0 && seen.results[1] < 0);
	koine_client_free(c);
}

/* ---- who serves ---- */

static int dial_trusting(struct server *s, int64_t uid, char error[200])
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;
	int r;

	opts.server_uid = uid;
	opts.error = error;
	opts.error_size = 200;
	opts.retries = 1000; /* one who may not serve is not waited for */
	r = koine_dial(s->address, &opts, &c);
	koine_client_free(c);
	return r;
}

TEST(our_own_user_may_serve)
{
	struct server *s = *state;
	char error[200];

	s->listener = listen_unix(s->path);
	assert_int_equal(dial_trusting(s, 0, error), 0);
	assert_int_equal(dial_trusting(s, KOINE_OURSELVES, error), 0);
	assert_int_equal(dial_trusting(s, NOBODY, error), 0);
	close(s->listener);
}

TEST(another_may_only_where_he_is_named)
{
	struct server *s = *state;
	char error[200];

	if (getuid() != 0)
		skip();
	s->listener = listen_unix(s->path);
	/* Who listened last is who serves. */
	assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(listen(s->listener, 8), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(dial_trusting(s, 0, error), 0);
	assert_int_equal(dial_trusting(s, NOBODY, error), 0);
	assert_int_equal(dial_trusting(s, 4711, error), KOINE_FORBIDDEN);
	assert_int_equal(dial_trusting(s, KOINE_OURSELVES, error), KOINE_FORBIDDEN);
	assert_non_null(strstr(error, "runs as uid 65534, which is neither you nor root"));
	close(s->listener);
}

TEST(a_dial_that_fails_says_error)
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;
	char error[200] = "";

	opts.error = error;
	opts.error_size = sizeof(error);
	assert_int_equal(koine_dial("unix:/nowhere/at/all", &opts, &c), -ENOENT);
	assert_string_equal(error,
			    "cannot connect to unix:/nowhere/at/all: No such file or directory");
	assert_int_equal(koine_dial("nonsense", &opts, &c), -EINVAL);
	assert_string_equal(error, "Invalid argument");
	assert_null(c);
}

/* ---- addresses ---- */

TEST(addresses_are_checked)
{
	static const struct {
		const char *address;
		int result;
	} rows[] = {
		{"nowhere", -EINVAL},
		{"unix:", -EINVAL},
		{"tcp:127.0.0.1", -EINVAL},
		{"tcp:127.0.0.1:0", -EINVAL},
		{"tcp:127.0.0.1:65536", -EINVAL},
		{"tcp:127.0.0.1:1x", -EINVAL},
		{"tcp:[::1:80", -EINVAL},
		{"tcp:[127.0.0.1]:80", -EINVAL},
		{"http://example.org/", -EINVAL},
		{"http://127.0.0.1:1/a b", -EINVAL},
		{"http://127.0.0.1:1/a\r\nb", -EINVAL},
		{"https://127.0.0.1:1/", -EINVAL},
		{"dir/https://x", -ENOENT},
		{"/nowhere/at/all.sock", -ENOENT},
		{"unix:/nowhere/at/all.sock", -ENOENT},
	};
	char long_path[200];
	struct koine_client *c = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r = koine_dial(rows[i].address, NULL, &c);

		if (r != rows[i].result)
			fail_msg("%s: %d", rows[i].address, r);
	}
	memset(long_path, 'x', sizeof(long_path));
	long_path[0] = '/';
	long_path[108] = '\0';
	assert_int_equal(koine_dial(long_path, NULL, &c), -ENAMETOOLONG);
	long_path[50] = '/';
	assert_int_equal(koine_dial(long_path, NULL, &c), -ENOENT);
	assert_null(c);
}

TEST(options_are_checked)
{
	struct server *s = *state;
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;

	opts.framing = "gobs";
	assert_int_equal(koine_dial(s->address, &opts, &c), -EINVAL);
	opts.framing = "line";
	assert_int_equal(koine_dial("http://127.0.0.1:1/", &opts, &c), -EINVAL);
	opts.framing = "http";
	opts.token = "a\r\nX: y";
	assert_int_equal(koine_dial(s->address, &opts, &c), -EINVAL);
	opts.size = 0;
	assert_int_equal(koine_dial(s->address, &opts, &c), -EINVAL);
}

TEST(tcp_works_by_number_and_by_name)
{
	static const char *const formats[] = {"tcp:127.0.0.1:%d", "tcp:localhost:%d"};
	const struct step script[] = {
		{ACCEPT, NULL}, {EXPECT, "\"id\":1"}, {SEND, ID(1, "1") "\n"},
		{HANGUP, NULL}, {END, NULL},
	};
	struct server *s = *state;

	for (int i = 0; i < 2; i++) {
		struct koine_client *c;

		s->listener = listen_tcp(s->address, sizeof(s->address), formats[i]);
		server_run(s, script);
		c = dial(s, NULL);
		assert_call(c, "m", "1");
		koine_client_free(c);
		server_end(s);
	}
}

/* ---- http ---- */

#define RESPONSE(len, more) "HTTP/1.1 200 OK\r\nContent-Length: " #len "\r\n" more "\r\n"

TEST(http_keeps_its_connection)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1,\"method\":\"a\"}"},
		{SEND, "HTTP/1.1 100 Continue\r\n\r\n"},
		{DRIBBLE, RESPONSE(35, "") ID(1, "1")},
		{EXPECT, "\"id\":2,\"method\":\"b\"}"},
		{SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		       "10\r\n{\"jsonrpc\":\"2.0\"\r\n13\r\n,\"id\":2,\"result\":2}\r\n0\r\n\r\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	char expected[512];
	struct koine_client *c;
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;

	s->listener = listen_tcp(s->address, sizeof(s->address), "http://127.0.0.1:%d/rpc?x=1");
	server_run(s, script);
	opts.token = "s3cret";
	c = dial_with(s, opts);
	assert_call(c, "a", "1");
	assert_call(c, "b", "2");
	koine_client_free(c);
	server_end(s);
	snprintf(expected, sizeof(expected),
		 "POST /rpc?x=1 HTTP/1.1\r\nHost: %.*s\r\nContent-Type: application/json\r\n"
		 "Accept: application/json\r\nAuthorization: Bearer s3cret\r\n"
		 "Content-Length: 37\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}",
		 (int)strcspn(s->address + 7, "/"), s->address + 7);
	s->heard[strlen(expected)] = '\0';
	assert_string_equal(s->heard, expected);
}

TEST(http_dials_again_when_the_server_closes)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1"},
		{SEND, RESPONSE(35, "Connection: close\r\n") ID(1, "1")},
		{ACCEPT, NULL},
		{EXPECT, "\"id\":2"},
		{SEND, "HTTP/1.0 200 OK\r\n\r\n" ID(2, "2")},
		{ACCEPT, NULL},
		{EXPECT, "\"id\":3"},
		{SEND, RESPONSE(35, "") ID(3, "3")},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct seen seen = {0};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, "http");
	/* All three at once: each waits for the one before it. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(koine_client_call_async(c, "m", NULL, note_answer, &seen, NULL),
				 0);
	while (seen.n < 3)
		assert_int_equal(koine_client_wait(c, -1), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(seen.values[i], i + 1);
	koine_client_free(c);
	server_end(s);
	assert_non_null(strstr(s->heard, "POST / HTTP/1.1\r\nHost: localhost\r\n"));
}

TEST(http_statuses_are_faults)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1"},
		{SEND, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"},
		{EXPECT, "\"id\":2"},
		{SEND, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"},
		{EXPECT, "\"id\":3"},
		{SEND, "HTTP/1.1 400 Bad Request\r\nContent-Length: 45\r\n\r\n"
		       "{\"id\":null,\"error\":{\"code\":-1,\"message\":\"x\"}}"},
		{EXPECT, "\"id\":4"},
		{SEND, RESPONSE(35, "") ID(9, "1")},
		{EXPECT, "\"id\":5"},
		{SEND, RESPONSE(5, "") "<html"},
		{EXPECT, "\"id\":6"},
		{SEND, "SSH-2.0\r\n"},
		{ACCEPT, NULL},
		{EXPECT, "\"id\":7"},
		{SEND, RESPONSE(35, "") "{\"json"},
		{END, NULL},
	};
	struct koine_answer *a = NULL;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, "http");
	assert_fault(c, "m", -EACCES, "HTTP 401 Unauthorized");
	assert_fault(c, "m", -EPROTO, "HTTP 500 Oops");
	assert_int_equal(koine_client_call(c, "m", NULL, &a), KOINE_ERROR_ANSWER);
	assert_int_equal(koine_answer_error_code(a), -1);
	koine_answer_free(a);
	assert_fault(c, "m", -EBADMSG, "did not respond to 'm' with JSON-RPC");
	assert_fault(c, "m", -EBADMSG, "did not respond to 'm' with JSON-RPC");
	assert_fault(c, "m", -EBADMSG, "invalid HTTP response");
	assert_fault(c, "m", -ECONNRESET, "in the middle of a response");
	koine_client_free(c);
	server_end(s);
}

TEST(http_refusals_say_what_the_body_says)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1"},
		{SEND, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 52\r\n\r\n"
		       "{\"id\":null,\"error\":{\"code\":-1,\"message\":\"no key\"}}  "},
		{EXPECT, "\"id\":2"},
		{SEND, "HTTP/1.1 403 Forbidden\r\nContent-Length: 50\r\n\r\n"
		       "{\"id\":2,\"error\":{\"code\":-1,\"message\":\"bad key\"}}  "},
		{EXPECT, "\"id\":3"},
		{SEND, "HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\n\r\n"
		       "{\"error\":\"Go to /rpc\"}"},
		{EXPECT, "\"id\":4"},
		{SEND, "HTTP/1.1 404 Not Found\r\nContent-Length: 50\r\n\r\n"
		       "{\"id\":4,\"error\":{\"code\":-2,\"message\":\"nobody\"}}   "},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_answer *a = NULL;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, "http");
	assert_fault(c, "m", -EACCES, "rejected 'm': HTTP 401 Unauthorized: no key");
	assert_fault(c, "m", -EACCES, "HTTP 403 Forbidden: bad key");
	assert_fault(c, "m", -EPROTO, "HTTP 404 Not Found: Go to /rpc");
	/* An error of the method itself, whatever its status. */
	assert_int_equal(koine_client_call(c, "m", NULL, &a), KOINE_ERROR_ANSWER);
	assert_int_equal(koine_answer_error_code(a), -2);
	koine_answer_free(a);
	koine_client_free(c);
	server_end(s);
}

TEST(http_time_outs_end_the_connection)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "\"id\":1"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c;

	opts.timeout_ms = 50;
	opts.framing = "http";
	server_start(s, script);
	c = dial_with(s, opts);
	assert_fault(c, "m", -ETIMEDOUT, "no response to 'm' within 50 ms");
	/* The server sees it leave before the client is freed. */
	server_end(s);
	koine_client_free(c);
}

TEST(http_notifications_are_acknowledged)
{
	struct server *s = *state;
	const struct step script[] = {
		{ACCEPT, NULL},
		{EXPECT, "{\"jsonrpc\":\"2.0\",\"method\":\"note\"}"},
		{SEND, "HTTP/1.1 204 No Content\r\n\r\n"},
		{EXPECT, "\"again\"}"},
		{SEND, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"},
		{HANGUP, NULL},
		{END, NULL},
	};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, "http");
	assert_int_equal(koine_client_notify(c, "note", NULL), 0);
	assert_int_equal(koine_client_notify(c, "again", NULL), -EACCES);
	koine_client_free(c);
	server_end(s);
}
