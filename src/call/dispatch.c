#include "call/inner.h"
#include "call/access.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"

enum { SMALL_CALL = 64 << 10 };

void batch_unref(struct batch *b)
{
	if (!b || --b->refs > 0)
		return;
	arena_done(&b->arena);
	pieces_done(&b->pieces);
	buf_done(&b->out);
	free(b);
}

/* Copies the message into the call's arena and moves the tree along. */
static int pin(struct call *c)
{
	char *copy;

	if (c->pinned)
		return 0;
	copy = arena_copy(&c->arena, c->source.data, c->source.len);
	if (copy && c->path_name.data)
		c->path_name.data = arena_copy(&c->arena, c->path_name.data, c->path_name.len);
	if (!copy || (c->path_name.len > 0 && !c->path_name.data))
		return -ENOMEM;
	if (c->tree)
		value_rebase(c->tree, c->source.data, c->source.len, copy);
	c->source.data = copy;
	c->pinned = true;
	return 0;
}

struct call *dispatch_new_call(struct client *s)
{
	struct call *c = server_new_call(s->server);

	if (!c)
		return NULL;
	c->client = s;
	c->peer = s->peer;
	c->endpoint = s->endpoint;
	c->dialect = s->endpoint->dialect;
	return c;
}

struct call *dispatch_read(struct client *s, const char *data, size_t len, bool keep)
{
	const struct limits *l = &s->server->opts.limits;
	const struct json_limits limits = {.depth = l->json_depth, .values = l->json_values};
	struct call *c = dispatch_new_call(s);
	int r;

	if (!c)
		return NULL;
	c->source = (struct text) {.data = data, .len = len};
	r = json_read(&c->arena, data, len, &limits, &c->tree, &c->error);
	if (r == 0 && keep)
		r = pin(c);
	if (r != 0)
		c->tree = NULL;
	if (r < 0)
		refuse(&c->error, REFUSE_TOO_LARGE,
		       "the message needs more than %zu bytes of memory", c->arena.max);
	return c;
}

bool dispatch_overtakes(struct call *c)
{
	const struct method *m;

	if (c->netrpc || !c->tree || c->tree->kind != VALUE_OBJECT)
		return false;
	if (c->dialect->open)
		return c->dialect->overtakes(c->tree);
	if (jsonrpc_read(&c->dialect->rules, c->tree, &c->request, NULL) != 0)
		return false;
	m = registry_find(c->client->endpoint->registry, c->request.method);
	return m && (m->flags & METHOD_OVERTAKES);
}

static int find_method(struct call *c)
{
	c->method = registry_find(c->client->endpoint->registry, c->request.method);
	if (!c->method)
		return refuse_name(&c->error, REFUSE_METHOD, "", c->request.method);
	return 0;
}

/* What it takes while it runs: its message, and what was read of that. */
static size_t held_by(const struct call *c)
{
	return c->arena.used + (c->pinned ? 0 : c->source.len) +
	       (c->batch ? c->batch->arena.used : 0);
}

/* Other users get at most half, so that some is always left for our own. A small message is never
 * refused for the bytes that others hold: a decision must reach what waits for it. A call in a large
 * batch is not small, because all of the batch is kept while the call waits. */
static int check_room(struct call *c)
{
	const struct server *s = c->server;
	const unsigned limit = s->opts.limits.calls;
	const size_t held = held_by(c);

	if (held > SMALL_CALL && s->call_bytes + held > s->opts.limits.total_call_bytes)
		return refuse(&c->error, REFUSE_LIMIT,
			      "calls in flight use too much memory (limit %zu bytes)",
			      s->opts.limits.total_call_bytes);
	if (s->n_calls >= limit)
		return refuse(&c->error, REFUSE_LIMIT, "too many calls in flight (limit %u)",
			      limit);
	if (c->peer.other && s->others.calls >= limit / 2)
		return refuse(&c->error, REFUSE_LIMIT,
			      "too many calls in flight from other users (limit %u)", limit / 2);
	return 0;
}

static bool outlives_message(const struct call *c)
{
	return c->method->where != ON_LOOP || (c->method->flags & METHOD_LATER) ||
	       human_may_be_needed(c->method);
}

static int keep_message(struct call *c)
{
	int r = check_room(c);

	return r != 0 ? r : pin(c);
}

/* The row is found and the call owns the message already. */
static int prepare_netrpc(struct call *c)
{
	int r = outlives_message(c) ? check_room(c) : 0;

	return r == 0 ? call_decode(c) : r;
}

/* The dialect finds the row by itself. The message is kept first: what it reads points there. */
static int prepare_opened(struct call *c, const struct http_request *http)
{
	int r = c->source.len > 0 ? pin(c) : 0;

	if (r == 0)
		r = c->dialect->open(c, http);
	if (r == 0 && outlives_message(c))
		r = check_room(c);
	return r == 0 ? call_decode(c) : r;
}

/* From the tree to a row and its parameters. */
static int dispatch_prepare(struct call *c)
{
	const struct jsonrpc_rules *rules = &c->dialect->rules;
	int r;

	if (c->dialect->open)
		return prepare_opened(c, NULL);
	r = jsonrpc_read(rules, c->tree, &c->request, &c->error) ?: find_method(c);
	if (r != 0)
		return r;
	if (outlives_message(c)) {
		r = keep_message(c);
		if (r != 0)
			return r;
		/* The request's texts are in the tree, which may just have moved. */
		jsonrpc_read(rules, c->tree, &c->request, &c->error);
	}
	return c->dialect->decode ? c->dialect->decode(c) : call_decode(c);
}

static void keep_running(struct call *c)
{
	struct client *s = c->client;

	/* It was checked first. */
	if (c->linked)
		return;
	c->linked = true;
	c->server->call_bytes += c->counted;
	call_count_begin(&c->server->counts, c);
	/* The handler may have let its client go. */
	list_append(s ? &s->running : &c->server->detached, &c->link);
	if (s)
		s->n_running++;
	c->server->n_calls++;
	c->server->others.calls += c->peer.other;
}

/* On a worker's thread. c->client belongs to the loop and is not touched here. */
static int handle_run(struct work *work, int lane)
{
	struct call *c = list_entry(work, struct call, work);

	c->lane = lane;
	c->again = false;
	c->mark = arena_mark(&c->arena);
	if (work_comes_again(work))
		parked_start_over(c);
	/* A write never waits for room. */
	if (lane >= 0)
		parked_count(c);
	if (atomic_load(&c->cancelled))
		(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
	else
		(void)c->method->handle(c);
	if (c->again)
		return lane >= 0 ? WORK_WAITS : WORK_UNDONE;
	return c->failed ? 1 : 0;
}

static void handle_finished(struct work *work, int result)
{
	struct call *c = list_entry(work, struct call, work);
	struct server *server = c->server;

	parked_back(c);
	if (result >= 0 && parked_wants(c)) {
		parked_add(c);
		return;
	}
	/* Above 0 the handler has failed and has already said so. */
	if (result < 0)
		(void)call_fail(c, result);
	client_answered(c->client, c);
	parked_next(server);
}

void call_go_on(struct call *c)
{
	int r;

	c->waits = false;
	c->on_cancel = NULL;
	r = server_submit(c->server, &c->work, c->method->where);
	if (r != 0)
		handle_finished(&c->work, r);
}

static void run_on_thread(struct call *c)
{
	c->work.run = handle_run;
	c->work.finished = handle_finished;
	c->waits = true;
	keep_running(c);
	if (c->method->before)
		c->method->before(c);
	else
		call_go_on(c);
}

static bool answer_at_once(struct call *c)
{
	bool answered;

	c->lane = -1;
	c->handling = true;
	answered = c->method->at_once(c);
	c->handling = false;
	if (answered)
		client_answered(c->client, c);
	return answered;
}

static void refuse_now(struct call *c, int r)
{
	(void)call_fail(c, r);
	client_answered(c->client, c);
}

static void dispatch_start(struct call *c)
{
	c->stage = CALL_RUNNING;
	if (c->method->where != ON_LOOP) {
		if (!c->method->at_once || !answer_at_once(c))
			run_on_thread(c);
		return;
	}
	c->handling = true;
	(void)c->method->handle(c);
	c->handling = false;
	if (c->stage == CALL_ANSWERED)
		client_answered(c->client, c);
	else
		keep_running(c);
}

static int check_run(struct work *work, int lane)
{
	struct call *c = list_entry(work, struct call, work);

	return human_check(c);
}

static void check_finished(struct work *work, int r)
{
	struct call *c = list_entry(work, struct call, work);

	c->waits = false;
	if (r == 0 && (atomic_load(&c->cancelled) || !c->client))
		r = refuse(&c->error, REFUSE_CANCELLED, "cancelled");
	if (r != 0)
		refuse_now(c, r);
	else
		dispatch_start(c);
}

static void check_first(struct call *c)
{
	int r;

	c->stage = CALL_RUNNING;
	c->work.run = check_run;
	c->work.finished = check_finished;
	c->waits = true;
	keep_running(c);
	r = server_submit(c->server, &c->work, WRITER);
	if (r != 0)
		check_finished(&c->work, r);
}

static void run(struct call *c)
{
	/* Before its handler hands the arena to another thread. */
	c->counted = held_by(c);
	if (!confined_may(c->client, c->method->name)) {
		refuse_now(c, refuse(&c->error, REFUSE_FORBIDDEN,
				     "a read-only agent may not call %s", c->method->name));
		return;
	}
	if (human_may_be_needed(c->method) && human_needed(c))
		check_first(c);
	else
		dispatch_start(c);
}

static void run_one(struct call *c)
{
	int r;

	c->client->endpoint->n_calls++;
	if (log_enabled(LOG_LEVEL_DEBUG))
		c->started_ms = loop_now_ms(c->server->loop);
	r = c->netrpc ? prepare_netrpc(c) : dispatch_prepare(c);
	if (r != 0)
		refuse_now(c, r);
	else
		run(c);
}

void dispatch_go(struct call *c, int r)
{
	if (log_enabled(LOG_LEVEL_DEBUG))
		c->started_ms = loop_now_ms(c->server->loop);
	if (r == 0 && outlives_message(c))
		r = keep_message(c);
	if (r == 0)
		r = call_decode(c);
	if (r != 0)
		refuse_now(c, r);
	else
		run(c);
}

void dispatch_opened(struct call *c, const struct http_request *http)
{
	int r;

	if (log_enabled(LOG_LEVEL_DEBUG))
		c->started_ms = loop_now_ms(c->server->loop);
	r = prepare_opened(c, http);
	if (r != 0)
		refuse_now(c, r);
	else
		run(c);
}

void call_again(struct call *c)
{
	assert(c->stage == CALL_LATER && c->method->where == ON_LOOP);
	c->stage = CALL_RUNNING;
	c->on_cancel = NULL;
	c->handling = true;
	(void)c->method->handle(c);
	c->handling = false;
	if (c->stage == CALL_ANSWERED)
		client_answered(c->client, c);
}

/* The batch takes over the call's tree and text. */
static int begin_batch(struct call *c)
{
	struct client *s = c->client;
	struct batch *b;
	size_t max;
	int r = pin(c);

	if (r != 0)
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->refs = 1;
	b->next = c->tree->first;
	b->path_name = c->path_name;
	b->arena = c->arena;
	arena_init(&c->arena, c->arena.max);
	/* No longer than a message the client would be allowed to send. */
	max = s->server->opts.limits.reply_bytes;
	if (max > s->endpoint->dialect->message_max)
		max = s->endpoint->dialect->message_max;
	buf_init(&b->out, max);
	buf_count(&b->out, &s->server->room);
	list_init(&b->pieces);
	s->batch = b;
	server_free_call(s->server, c);
	return 0;
}

static int check_batch(struct call *c)
{
	unsigned limit = c->server->opts.limits.batch;

	/* An empty array is not a batch but an invalid request. */
	if ((c->dialect->rules.flags & JSONRPC_NO_BATCH) || c->tree->len == 0)
		return jsonrpc_read(&c->dialect->rules, c->tree, &c->request, &c->error);
	if (c->tree->len > limit)
		return refuse(&c->error, REFUSE_TOO_LARGE, "more than %u requests in a batch",
			      limit);
	return 0;
}

void dispatch_run(struct call *c)
{
	int r;

	if (!c->tree && !c->dialect->open) {
		c->client->endpoint->n_calls++;
		refuse_now(c, c->error.code);
		return;
	}
	if (c->dialect->open || c->tree->kind != VALUE_ARRAY || c->netrpc) {
		run_one(c);
		return;
	}
	r = check_batch(c) ?: begin_batch(c);
	if (r != 0)
		refuse_now(c, r);
}

void dispatch_batch(struct client *s)
{
	struct batch *b = s->batch;
	struct call *c = dispatch_new_call(s);

	if (!c) {
		/* Without memory nothing can be answered; the client must not wait. */
		s->batch = NULL;
		batch_unref(b);
		client_end(s);
		return;
	}
	c->batch = b;
	b->refs++;
	c->tree = (struct value *)b->next;
	c->pinned = true;
	c->path_name = b->path_name;
	b->next = b->next->next;
	run_one(c);
}
