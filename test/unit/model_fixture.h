/*
 * A model behind HTTP, asked by a test, and a provider on loopback that answers as it is
 * scripted: each request gets the next step, the last one for ever.
 */
#pragma once

#include "agent/model/inner.h"
#include "http_server.h"

enum { STEPS_MAX = 8, TEXT_ROOM = 1 << 16, CALLS_ROOM = 8 };

enum ending {
	ENDS,   /* as HTTP does */
	CUT,    /* the connection closes before the last chunk */
	HANGS,  /* nothing more comes, the connection stays */
	SILENT, /* not even a head */
	REFUSES /* closes without a byte */
};

struct step {
	int status;          /* 0: 200 */
	const char *headers; /* whole lines; NULL: none */
	const char *body;
	size_t len;   /* 0: as long as the text is */
	size_t piece; /* bytes in each chunk; 0: all in one */
	enum ending ending;
};

struct taken_call {
	char id[300];
	char name[300];
	char arguments[1024];
};

struct ended {
	bool done;
	enum agent_outcome outcome;
	struct agent_usage usage;
	char type[64];
	char text[MODEL_TEXT_MAX + 1];
};

struct fixture {
	struct http_server server;
	struct loop *loop;
	struct timer *guard;
	struct timer *look; /* sees whether it is time to cancel */
	struct agent *agent;
	struct agent_turn *turn;
	struct model_opts opts;
	struct error error;
	char url[128];

	/* what the provider says, and what it has heard */
	pthread_mutex_t lock;
	struct step steps[STEPS_MAX];
	unsigned n_steps;
	unsigned n_asked;
	char head[4096];
	char request[TEXT_ROOM];

	/* what came to the test */
	char text[TEXT_ROOM];
	size_t text_len;
	unsigned n_pieces;
	struct taken_call calls[CALLS_ROOM];
	unsigned n_calls;
	struct ended end;
	unsigned n_ended;

	unsigned cancel_at_piece; /* 0: never */
	bool cancel_at_call;
	bool in_cancel;
	bool (*cancel_when)(const struct agent_turn *t);

	bool probed;
	bool healthy;
	char health[MODEL_TEXT_MAX];
};

static struct fixture *the_fixture;

/* ---- the provider ---- */

static inline void say_chunks(const struct http_server_conn *c, const struct step *s)
{
	size_t len = s->len ? s->len : s->body ? strlen(s->body) : 0;
	size_t piece = s->piece ? s->piece : len;
	char size[32];

	for (size_t at = 0; at < len; at += piece) {
		size_t n = piece < len - at ? piece : len - at;

		http_say(c, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", n));
		http_say(c, s->body + at, n);
		http_say(c, "\r\n", 2);
	}
}

static inline bool provider_answer(struct http_server_conn *c, const struct http_server_request *r)
{
	struct fixture *f = the_fixture;
	struct step s = {.body = ""};
	char head[1024];
	int n;

	pthread_mutex_lock(&f->lock);
	if (f->n_steps > 0)
		s = f->steps[f->n_asked < f->n_steps ? f->n_asked : f->n_steps - 1];
	f->n_asked++;
	snprintf(f->head, sizeof(f->head), "%s", r->head);
	snprintf(f->request, sizeof(f->request), "%.*s", (int)r->body_len, r->body);
	pthread_mutex_unlock(&f->lock);

	if (s.ending == REFUSES)
		return false;
	if (s.ending == SILENT) {
		http_wait_for_end(c);
		return false;
	}
	n = snprintf(head, sizeof(head), "HTTP/1.1 %d Word\r\nTransfer-Encoding: chunked\r\n%s\r\n",
		     s.status ? s.status : 200, s.headers ? s.headers : "");
	http_say(c, head, (size_t)n);
	say_chunks(c, &s);
	if (s.ending == CUT)
		return false;
	if (s.ending == HANGS) {
		http_wait_for_end(c);
		return false;
	}
	http_say(c, "0\r\n\r\n", 5);
	return true;
}

static inline void script(struct fixture *f, struct step s)
{
	assert_true(f->n_steps < STEPS_MAX);
	f->steps[f->n_steps++] = s;
}

/* Its next answer is a stream of this text. */
static inline void answers(struct fixture *f, const char *body)
{
	script(f, (struct step) {.body = body});
}

/* Forgets what was said and heard. */
static inline void afresh(struct fixture *f)
{
	f->n_steps = 0;
	f->n_asked = 0;
	f->text_len = 0;
	f->text[0] = '\0';
	f->n_pieces = 0;
	f->n_calls = 0;
	f->n_ended = 0;
	f->end = (struct ended) {.done = false};
}

/* ---- the test's end ---- */

static inline void cancel_now(struct fixture *f)
{
	f->in_cancel = true;
	f->agent->ops->cancel(f->turn);
	f->agent->ops->cancel(f->turn);
	f->in_cancel = false;
}

static inline void on_text(void *arg, struct text piece)
{
	struct fixture *f = arg;

	assert_false(f->end.done);
	assert_false(f->in_cancel);
	assert_true(piece.len > 0 && f->text_len + piece.len < TEXT_ROOM);
	memcpy(f->text + f->text_len, piece.data, piece.len);
	f->text_len += piece.len;
	f->text[f->text_len] = '\0';
	if (++f->n_pieces == f->cancel_at_piece)
		cancel_now(f);
}

static inline void on_call(void *arg, const struct tool_call *call)
{
	struct fixture *f = arg;
	struct taken_call *c = &f->calls[f->n_calls];

	assert_false(f->end.done);
	assert_true(f->n_calls++ < CALLS_ROOM);
	snprintf(c->id, sizeof(c->id), "%.*s", TEXT_ARGS(call->id));
	snprintf(c->name, sizeof(c->name), "%.*s", TEXT_ARGS(call->name));
	snprintf(c->arguments, sizeof(c->arguments), "%.*s", TEXT_ARGS(call->arguments));
	if (f->cancel_at_call)
		cancel_now(f);
}

static inline void on_end(void *arg, const struct agent_end *end)
{
	struct fixture *f = arg;

	assert_false(f->in_cancel);
	assert_false(f->end.done);
	f->end.done = true;
	f->end.outcome = end->outcome;
	f->end.usage = end->usage;
	assert_true((end->outcome == AGENT_FAILED) == (end->type != NULL));
	snprintf(f->end.type, sizeof(f->end.type), "%s", end->type ? end->type : "");
	snprintf(f->end.text, sizeof(f->end.text), "%s", end->text ? end->text : "");
	f->turn = NULL;
	timer_stop(f->look);
	loop_stop(f->loop);
}

static inline void on_look(void *arg)
{
	struct fixture *f = arg;

	if (f->turn && f->cancel_when(f->turn)) {
		timer_stop(f->look);
		cancel_now(f);
	}
}

static inline void give_up(void *arg)
{
	fail_msg("waited in vain");
}

static inline void run(struct fixture *f)
{
	timer_start(f->guard, 60000);
	loop_run(f->loop);
	timer_stop(f->guard);
}

static inline int start(struct fixture *f, const struct agent_ask *ask)
{
	const struct agent_sink sink = {on_text, on_call, on_end, f};

	return f->agent->ops->start(f->agent, ask, &sink, &f->turn, &f->error);
}

static inline const struct agent_ask *hello(void)
{
	static const struct message message = {.role = MESSAGE_USER, .text = TEXT("hello")};
	static const struct agent_ask ask = {
		.conversation = TEXT("c"), .messages = &message, .n_messages = 1, .first = true};

	return &ask;
}

static inline enum agent_outcome ask_for(struct fixture *f, const struct agent_ask *ask)
{
	assert_int_equal(start(f, ask), 0);
	assert_false(f->end.done);
	if (f->cancel_when)
		timer_repeat(f->look, 1);
	run(f);
	assert_true(f->end.done);
	assert_true(!f->cancel_at_piece || f->n_pieces <= f->cancel_at_piece);
	return f->end.outcome;
}

/* Asks, and expects this failure. */
static inline void fails(struct fixture *f, const char *type, const char *text)
{
	assert_int_equal(ask_for(f, hello()), AGENT_FAILED);
	assert_string_equal(f->end.text, text);
	assert_string_equal(f->end.type, type);
}

static inline void on_health(void *arg, const struct agent_health *health)
{
	struct fixture *f = arg;

	assert_false(f->probed);
	f->probed = true;
	f->healthy = health->ok;
	snprintf(f->health, sizeof(f->health), "%s", health->text);
	loop_stop(f->loop);
}

static inline bool probe(struct fixture *f)
{
	f->probed = false;
	assert_int_equal(f->agent->ops->probe(f->agent, on_health, f), 0);
	assert_false(f->probed);
	run(f);
	assert_true(f->probed);
	return f->healthy;
}

/* ---- set-up ---- */

static inline void make_openai(struct fixture *f)
{
	agent_free(f->agent);
	f->agent = NULL;
	assert_int_equal(openai_new(f->loop, &f->opts, &f->agent, &f->error), 0);
}

static inline void make_anthropic(struct fixture *f)
{
	agent_free(f->agent);
	f->agent = NULL;
	assert_int_equal(anthropic_new(f->loop, &f->opts, &f->agent, &f->error), 0);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	the_fixture = f;
	pthread_mutex_init(&f->lock, NULL);
	f->server.answer = provider_answer;
	http_server_start(&f->server, NULL);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", f->server.port);
	f->opts = (struct model_opts) {
		.name = "m", .url = f->url, .model = "tiny", .temperature = -1, .budget = 1000};
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(timer_new(f->loop, give_up, f, &f->guard), 0);
	assert_int_equal(timer_new(f->loop, on_look, f, &f->look), 0);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	agent_free(f->agent);
	timer_free(f->guard);
	timer_free(f->look);
	/* until children are reaped */
	loop_run(f->loop);
	loop_free(f->loop);
	http_server_stop(&f->server);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}
