/*
 * A client of Go's net/rpc against a real server: a thread that reads calls with wire/netrpc
 * and answers them as a script says. Of the client only <koine/koine.h> is used.
 */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <koine/koine.h>

#include "tempdir.h"
#include "wire/netrpc.h"

enum act {
	END,    /* closes and stops */
	ACCEPT, /* closes what there was, takes the next client */
	CALL,   /* reads a call of the method `text` with the number n */
	ANSWER, /* its body is the int n times ten */
	ERROR,  /* the words `text` */
	RAW,    /* n bytes as they are */
	HANGUP, /* waits until the client has left */
};

struct step {
	enum act act;
	uint64_t n;
	const char *text;
};

struct server {
	char folder[TEMPDIR_MAX];
	char path[96];
	int listener;
	int conn;
	pthread_t thread;
	const struct step *script;
	struct netrpc_reader reader;
	struct netrpc_writer writer;
	struct arena arena;
	char in[4096];
	size_t n_in;
	const struct step *failed; /* did not come to pass */
};

static bool hear(struct server *s)
{
	ssize_t n = recv(s->conn, s->in + s->n_in, sizeof(s->in) - s->n_in, 0);

	s->n_in += n > 0 ? (size_t)n : 0;
	return n > 0;
}

static void forget(struct server *s)
{
	netrpc_reader_done(&s->reader);
	netrpc_writer_done(&s->writer);
	netrpc_reader_init(&s->reader, NETRPC_SERVER, &gob_default_limits);
	netrpc_writer_init(&s->writer, 1 << 20);
	s->n_in = 0;
}

static bool read_call(struct server *s, const struct step *step)
{
	struct netrpc_message m;
	enum netrpc_kind kind;

	do {
		size_t used = 0;

		kind = netrpc_next(&s->reader, &s->arena, s->in, s->n_in, false, &used, &m);
		memmove(s->in, s->in + used, s->n_in - used);
		s->n_in -= used;
	} while (kind == NETRPC_MORE && hear(s));
	if (kind != NETRPC_MESSAGE)
		return false;
	return m.seq == step->n && text_is(m.method, step->text);
}

static bool send_answer(struct server *s, const struct step *step)
{
	struct buf out;
	bool sent;

	buf_init(&out, 1 << 20);
	if (step->act == ERROR) {
		netrpc_error(&s->writer, &out, TEXT("M"), step->n, text_of(step->text));
	} else {
		gob_int(netrpc_answer(&s->writer, &out, TEXT("M"), step->n, &gob_shape_int),
			10 * (int64_t)step->n);
		netrpc_end(&s->writer, &out);
	}
	sent = send(s->conn, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len;
	buf_done(&out);
	return sent;
}

static bool play(struct server *s, const struct step *step)
{
	switch (step->act) {
	case END:
		return true;
	case ACCEPT:
		if (s->conn >= 0)
			close(s->conn);
		s->conn = accept(s->listener, NULL, NULL);
		forget(s);
		return s->conn >= 0;
	case CALL:
		return read_call(s, step);
	case ANSWER:
	case ERROR:
		return send_answer(s, step);
	case RAW:
		return send(s->conn, step->text, step->n, MSG_NOSIGNAL) == (ssize_t)step->n;
	case HANGUP:
		while (hear(s))
			s->n_in = 0;
		return true;
	}
	return false;
}

static void *server_main(void *arg)
{
	struct server *s = arg;

	for (const struct step *step = s->script; step->act != END && !s->failed; step++)
		s->failed = play(s, step) ? NULL : step;
	if (s->conn >= 0)
		close(s->conn);
	s->conn = -1;
	return NULL;
}

static int make(void **state)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	tempdir_make(s->folder);
	snprintf(s->path, sizeof(s->path), "%s/s", s->folder);
	s->listener = -1;
	s->conn = -1;
	arena_init(&s->arena, 1 << 20);
	netrpc_reader_init(&s->reader, NETRPC_SERVER, &gob_default_limits);
	netrpc_writer_init(&s->writer, 1 << 20);
	*state = s;
	return 0;
}

static int unmake(void **state)
{
	struct server *s = *state;

	tempdir_remove(s->folder);
	netrpc_reader_done(&s->reader);
	netrpc_writer_done(&s->writer);
	arena_done(&s->arena);
	free(s);
	return 0;
}

FIXTURE(make, unmake);

static void server_start(struct server *s, const struct step *script)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(un.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(s->listener, 8), 0);
	s->script = script;
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static void server_end(struct server *s)
{
	pthread_join(s->thread, NULL);
	close(s->listener);
	if (s->failed)
		fail_msg("step %d did not come to pass", (int)(s->failed - s->script));
}

static struct koine_client *dial(struct server *s, uint32_t timeout_ms)
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;

	opts.framing = "gob";
	opts.timeout_ms = timeout_ms;
	assert_int_equal(koine_dial(s->path, &opts, &c), 0);
	return c;
}

static void assert_call(struct koine_client *c, const char *params, int64_t result)
{
	struct koine_answer *a = NULL;
	int64_t n = -1;
	int r = koine_client_call(c, "A.B", params, &a);

	if (r != 0)
		fail_msg("%d: %s", r, koine_client_error(c));
	assert_true(koine_value_int(koine_answer_result(a), &n));
	assert_int_equal(n, result);
	koine_answer_free(a);
}

static void assert_fault(struct koine_client *c, int fault, const char *words)
{
	struct koine_answer *a = NULL;

	assert_int_equal(koine_client_call(c, "A.B", "1", &a), fault);
	assert_null(a);
	if (!strstr(koine_client_error(c), words))
		fail_msg("'%s' does not say '%s'", koine_client_error(c), words);
}

/* ---- what is tested ---- */

TEST(calls_are_answered_one_after_another)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL}, {CALL, 1, "A.B"}, {ANSWER, 1, NULL}, {CALL, 2, "A.B"},
		{ANSWER, 2, NULL}, {CALL, 3, "A.B"}, {ANSWER, 3, NULL}, {CALL, 0, "A.Note"},
		{ANSWER, 0, NULL}, {CALL, 4, "A.B"}, {ANSWER, 4, NULL}, {HANGUP, 0, NULL},
		{END, 0, NULL},
	};
	struct server *s = *state;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 0);
	assert_call(c, "{\"N\":1,\"L\":[{\"S\":\"x\"}]}", 10);
	assert_call(c, "{\"N\":2,\"L\":[]}", 20);
	assert_call(c, NULL, 30);
	/* Its answer comes, and nobody asks for it. */
	assert_int_equal(koine_client_notify(c, "A.Note", "{\"N\":1}"), 0);
	assert_call(c, "21", 40);
	koine_client_free(c);
	server_end(s);
}

struct heard {
	int64_t results[4];
	int faults[4];
	unsigned n;
};

static void on_answer(void *arg, int result, const struct koine_answer *answer)
{
	struct heard *h = arg;

	h->faults[h->n] = result;
	koine_value_int(koine_answer_result(answer), &h->results[h->n]);
	h->n++;
}

TEST(answers_find_their_calls_in_any_order)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL}, {CALL, 1, "A.B"},   {CALL, 2, "A.B"},  {CALL, 3, "A.B"},
		{ANSWER, 3, NULL}, {ERROR, 1, "alas"}, {ANSWER, 9, NULL}, {ANSWER, 2, NULL},
		{HANGUP, 0, NULL}, {END, 0, NULL},
	};
	struct server *s = *state;
	struct heard h = {0};
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			koine_client_call_async(c, "A.B", "{\"N\":1}", on_answer, &h, NULL), 0);
	while (h.n < 3)
		assert_int_equal(koine_client_wait(c, -1), 0);
	assert_int_equal(h.results[0], 30);
	assert_int_equal(h.faults[1], KOINE_ERROR_ANSWER);
	assert_int_equal(h.results[2], 20);
	koine_client_free(c);
	server_end(s);
}

TEST(errors_have_words_and_a_code)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL},
		{CALL, 1, "A.B"},
		{ERROR, 1, "query is required"},
		{CALL, 2, "A.B"},
		{ERROR, 2, "rpc: can't find service A.B"},
		{CALL, 3, "A.B"},
		{ERROR, 3, "gob: wrong type (int) for received field Args.N"},
		{CALL, 4, "A.B"},
		{ANSWER, 4, NULL},
		{END, 0, NULL},
	};
	static const int64_t codes[] = {-32000, -32601, -32602};
	struct server *s = *state;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 0);
	for (int i = 0; i < 3; i++) {
		const char *words = script[2 + 2 * i].text;
		struct koine_answer *a = NULL;
		const char *message;
		size_t len;

		assert_int_equal(koine_client_call(c, "A.B", NULL, &a), KOINE_ERROR_ANSWER);
		message = koine_answer_error_message(a, &len);
		assert_int_equal(len, strlen(words));
		assert_memory_equal(message, words, len);
		assert_int_equal(koine_answer_error_code(a), codes[i]);
		koine_answer_free(a);
	}
	assert_call(c, NULL, 40);
	koine_client_free(c);
	server_end(s);
}

/* Types are defined again there, or the server would not understand a word. */
TEST(a_new_connection_begins_anew)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL}, {CALL, 1, "A.B"}, {ANSWER, 1, NULL}, {CALL, 2, "A.B"},
		{ACCEPT, 0, NULL}, {CALL, 3, "A.B"}, {ANSWER, 3, NULL}, {END, 0, NULL},
	};
	struct server *s = *state;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 0);
	assert_call(c, "{\"N\":1}", 10);
	assert_int_equal(koine_client_call(c, "A.B", "{\"N\":2}", NULL), -ECONNRESET);
	assert_non_null(strstr(koine_client_error(c), "closed the connection without a response"));
	assert_call(c, "{\"N\":3}", 30);
	koine_client_free(c);
	server_end(s);
}

TEST(no_answer_is_a_time_out)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL}, {CALL, 1, "A.B"},  {CALL, 2, "A.B"},
		{ANSWER, 1, NULL}, {HANGUP, 0, NULL}, {END, 0, NULL},
	};
	struct server *s = *state;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 50);
	assert_fault(c, -ETIMEDOUT, "no response to 'A.B' within 50 ms");
	/* The late answer is not taken for this one's. */
	assert_fault(c, -ETIMEDOUT, "no response to 'A.B' within 50 ms");
	koine_client_free(c);
	server_end(s);
}

TEST(what_is_no_gob_ends_the_connection)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL},
		{CALL, 1, "A.B"},
		{RAW, 34, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}"},
		{HANGUP, 0, NULL},
		{ACCEPT, 0, NULL},
		{CALL, 2, "A.B"},
		{RAW, 3, "\x20\xff\x81"},
		{ACCEPT, 0, NULL},
		{CALL, 3, "A.B"},
		{ANSWER, 3, NULL},
		{END, 0, NULL},
	};
	struct server *s = *state;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 0);
	assert_fault(c, -EBADMSG, "received JSON instead of gob; try framing 'line'");
	assert_fault(c, -ECONNRESET, "in the middle of a response");
	assert_call(c, "1", 30);
	koine_client_free(c);
	server_end(s);
}

TEST(every_kind_of_parameters_may_be_another)
{
	enum { CALLS = 1500 };
	static struct step script[2 * CALLS + 16];
	struct server *s = *state;
	struct koine_client *c;
	unsigned n = 0;

	/* Where the types are too many for a connection, there is a new one. */
	for (unsigned i = 0; i < CALLS; i++) {
		if (i % 512 == 0)
			script[n++] = (struct step) {ACCEPT, 0, NULL};
		script[n++] = (struct step) {CALL, i + 1, "A.B"};
		script[n++] = (struct step) {ANSWER, i + 1, NULL};
	}
	server_start(s, script);
	c = dial(s, 0);
	for (unsigned i = 0; i < CALLS; i++) {
		char params[32];

		snprintf(params, sizeof(params), "{\"N%u\":1}", i);
		assert_call(c, params, 10 * ((int64_t)i + 1));
	}
	koine_client_free(c);
	server_end(s);
}

TEST(bad_parameters_are_not_sent)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL}, {CALL, 1, "A.B"}, {ANSWER, 1, NULL}, {END, 0, NULL}};
	struct server *s = *state;
	struct koine_client *c;

	server_start(s, script);
	c = dial(s, 0);
	assert_int_equal(koine_client_call(c, "A.B", "{", NULL), KOINE_PARSE);
	assert_int_equal(koine_client_call(c, "A.B", "null", NULL), KOINE_PARAMS);
	assert_int_equal(koine_client_call(c, "A.B", "{\"$x\":1}", NULL), KOINE_PARAMS);
	assert_non_null(strstr(koine_client_error(c), "params: unknown type '$x'"));
	assert_call(c, "1", 10);
	koine_client_free(c);
	server_end(s);
}

TEST(a_server_that_does_not_come_is_waited_for)
{
	struct server *s = *state;
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;

	opts.framing = "gob";
	opts.wait_ms = 20;
	assert_int_equal(koine_dial(s->path, &opts, &c), -ETIMEDOUT);
	assert_null(c);
}

/* The words are a client's, which has been there once. */
TEST(a_server_that_does_not_come_again_is_said_to_be_late)
{
	static const struct step script[] = {
		{ACCEPT, 0, NULL}, {CALL, 1, "A.B"}, {ANSWER, 1, NULL}, {END, 0, NULL}};
	struct server *s = *state;
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct koine_client *c = NULL;
	char words[160];

	server_start(s, script);
	opts.framing = "gob";
	opts.wait_ms = 20;
	assert_int_equal(koine_dial(s->path, &opts, &c), 0);
	assert_call(c, "1", 10);
	server_end(s);
	snprintf(words, sizeof(words), "timeout waiting for agent at %s", s->path);
	assert_fault(c, -ETIMEDOUT, words);
	koine_client_free(c);
}
