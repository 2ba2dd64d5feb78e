#include "call/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"
#include "call/inner.h"
#include "call/client.h"
#include "wire/framing.h"

enum {
	SPARE_CALLS = 64,
	CALL_ARENA_MAX = 128 << 20,
	KEPT_OUT_BYTES = 8 << 10,
};

const struct limits default_limits = {
	.connections = 20000,
	.connections_per_uid = 256,
	.calls = 10000,
	.waiting = 64,
	/* Room for a client that writes 10,000 pings before it reads the first answer, beyond
	 * what the sockets hold. */
	.queue_bytes = 640 << 10,
	.total_queue_bytes = 64 << 20,
	.reply_bytes = 16 << 20,
	.room_wait_ms = 10000,
	.total_input_bytes = 64 << 20,
	.total_call_bytes = 256 << 20,
	.progress_bytes = 16 << 10,
	.json_depth = JSON_DEPTH_DEFAULT,
	.json_values = JSON_VALUES_DEFAULT,
	.batch = 10000,
	.read_timeout_ms = 30000,
	.linger_ms = 5000,
	.stop_ms = 7000,
};

/* ---- calls ---- */

static struct call *make_call(struct server *s)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	arena_init(&c->arena, CALL_ARENA_MAX);
	buf_init(&c->out, s->opts.limits.reply_bytes);
	list_init(&c->link);
	c->work.arena = &c->arena;
	return c;
}

struct call *server_new_call(struct server *s)
{
	struct list *spare = list_first(&s->spare_calls);
	struct call *c;

	if (spare) {
		c = list_entry(spare, struct call, link);
		list_remove(spare);
		s->n_spare_calls--;
	} else {
		c = make_call(s);
		if (!c)
			return NULL;
	}
	c->server = s;
	c->lane = -1;
	c->out.max = s->opts.limits.reply_bytes; /* it may have been set anew */
	c->json = json_writer(&c->out);
	return c;
}

static void drop_call(struct call *c)
{
	arena_done(&c->arena);
	buf_done(&c->out);
	free(c);
}

/* Resets everything a call carries, except its memory. */
static void wipe_call(struct call *c)
{
	arena_reset(&c->arena);
	c->arena.room = NULL;
	buf_trim(&c->out, KEPT_OUT_BYTES);
	c->out.room = NULL;
	c->sure = false;
	c->in = NULL;
	c->error.text[0] = '\0';
	c->error.field[0] = '\0';
	c->client = NULL;
	c->method = NULL;
	c->route = NULL;
	c->http = NULL;
	c->request = (struct jsonrpc_request) {0};
	c->given = NULL;
	c->path_name = (struct text) {0};
	atomic_store_explicit(&c->cancelled, false, memory_order_relaxed);
	c->state = NULL;
	c->opened = NULL;
	c->deliver = NULL;
	c->start_over = NULL;
	c->work.wait = NULL;
	c->batch = NULL;
	c->tree = NULL;
	c->on_cancel = NULL;
	c->http_status = 0;
	c->stage = CALL_NEW;
	c->netrpc = false;
	c->pinned = false;
	c->waits = false;
	c->begun = false;
	c->failed = false;
	c->streaming = false;
	c->watched = false;
	c->endless = false;
	c->holds = false;
}

void server_free_call(struct server *s, struct call *c)
{
	batch_unref(c->batch);
	if (s->n_spare_calls >= SPARE_CALLS) {
		drop_call(c);
		return;
	}
	wipe_call(c);
	/* To the front: the call used last is the one in the cache. */
	list_append(s->spare_calls.next, &c->link);
	s->n_spare_calls++;
}

int server_workers(struct server *s, struct workers **ret_workers)
{
	int r = s->workers ? 0 : workers_new(s->loop, &s->opts.workers, &s->workers);

	*ret_workers = s->workers;
	return r;
}

int server_submit(struct server *s, struct work *work, enum where where)
{
	struct workers *workers;
	int r = server_workers(s, &workers);

	if (r != 0)
		return r;
	if (where == WRITER)
		workers_write(workers, work);
	else
		workers_read(workers, work);
	return 0;
}

/* ---- listening ---- */

static void pause_listeners(struct server *s, bool pause)
{
	if (s->paused == pause)
		return;
	s->paused = pause;
	list_for_each (at, following, &s->endpoints) {
		struct endpoint *e = list_entry(at, struct endpoint, link);

		if (!e->listener)
			continue;
		if (pause)
			listener_pause(e->listener);
		else
			listener_resume(e->listener);
	}
}

static void check_connections(struct server *s)
{
	unsigned limit = s->opts.limits.connections;
	bool full = s->n_clients >= limit;

	if (full && !s->paused)
		log_warn("too many connections", "limit=%u", limit);
	if (full || s->n_clients <= limit - limit / 16)
		pause_listeners(s, full);
}

static void note_refused(struct endpoint *e, const struct peer *peer, enum refused_for reason)
{
	static const char *const words[N_REFUSED_FOR] = {
		[REFUSED_UID] = "user is not in allow_uids",
		[REFUSED_UNKNOWN] = "could not determine the user",
		[REFUSED_LIMIT] = "too many connections from other users",
	};
	char uid[16] = "unknown";

	if (peer->known)
		snprintf(uid, sizeof(uid), "%u", (unsigned)peer->uid);
	e->n_refused[reason]++;
	log_caused(LOG_LEVEL_INFO, "client refused", "dialect=%s address=%s uid=%s reason=\"%s\"",
		   e->dialect->name, e->address, uid, words[reason]);
}

static void on_refused(void *arg, const struct peer *peer)
{
	note_refused(arg, peer, peer->known ? REFUSED_UID : REFUSED_UNKNOWN);
}

static void on_accept(void *arg, int fd, const struct peer *peer)
{
	struct endpoint *e = arg;
	struct server *s = e->server;
	const struct limits *l = &s->opts.limits;

	if (s->stopping) {
		close(fd);
	} else if (!others_fit(&s->others, peer, l->connections_per_uid, l->connections)) {
		/* Not left in the backlog, where our own would wait behind them. */
		close(fd);
		note_refused(e, peer, REFUSED_LIMIT);
	} else if (server_accept(s, e, fd, peer) != 0) {
		log_warn("connection dropped", "dialect=%s reason=%s", e->dialect->name,
			 "out of memory");
	}
}

int server_accept(struct server *s, struct endpoint *e, int fd, const struct peer *peer)
{
	int r = client_new(s, e, fd, peer);

	check_connections(s);
	return r;
}

static void free_endpoint(struct endpoint *e)
{
	if (e)
		free(e->guest);
	free(e);
}

CLEANUP_POINTER(endpoint, free_endpoint)

static struct endpoint *new_endpoint(struct server *s, const struct endpoint_opts *opts)
{
	struct endpoint *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->server = s;
	e->dialect = opts->dialect;
	e->registry = opts->registry;
	e->framing = opts->framing;
	e->settings = opts->settings;
	if (opts->address.kind == ADDRESS_HTTP)
		e->framing = SPEAKS_HTTP;
	if (opts->token)
		snprintf(e->token, sizeof(e->token), "%s", opts->token);
	return e;
}

/* The guest's place differs only in its dialect. */
static int add_guest(struct endpoint *e, const struct endpoint_opts *opts)
{
	struct endpoint_opts guest = *opts;

	if (!opts->guest)
		return 0;
	guest.dialect = opts->guest;
	guest.settings = NULL;
	e->guest = new_endpoint(e->server, &guest);
	return e->guest ? 0 : -ENOMEM;
}

int server_inside(struct server *s, const struct endpoint_opts *opts,
		  struct endpoint **ret_endpoint)
{
	struct endpoint *e = new_endpoint(s, opts);

	if (!e)
		return -ENOMEM;
	snprintf(e->address, sizeof(e->address), "%s", "inside:");
	list_append(&s->endpoints, &e->link);
	*ret_endpoint = e;
	return 0;
}

int server_listen(struct server *s, const struct endpoint_opts *opts,
		  struct endpoint **ret_endpoint, struct error *error)
{
	CLEANUP(free_endpointp) struct endpoint *e = new_endpoint(s, opts);
	struct listener_opts listen;
	int r = e ? add_guest(e, opts) : -ENOMEM;

	if (r != 0)
		return r;
	listen = (struct listener_opts) {
		.allow_uids = opts->allow_uids,
		.n_allow_uids = opts->n_allow_uids,
		.anybody = opts->anybody,
		.guarded = e->token[0], /* on TCP nothing is answered without it */
		.fd = opts->fd,
		.name = opts->dialect->name,
		.on_accept = on_accept,
		.on_refused = on_refused,
		.arg = e,
	};
	e->handed_over = opts->fd >= 0;
	r = listener_open(s->loop, &opts->address, &listen, &e->listener, error);
	if (r != 0)
		return r;
	/* A socket that was handed over may be of another kind than its name says. */
	e->tcp = listener_address(e->listener)->kind != ADDRESS_UNIX;
	address_format(listener_address(e->listener), e->address);
	if (e->guest) {
		e->guest->tcp = e->tcp;
		memcpy(e->guest->address, e->address, sizeof(e->address));
	}
	list_append(&s->endpoints, &e->link);
	*ret_endpoint = TAKE(e);
	return 0;
}

static bool listens_elsewhere(const struct server *s, const struct endpoint *e)
{
	list_for_each (at, following, &s->endpoints) {
		if (at != &e->link)
			return true;
	}
	return false;
}

bool server_unlisten(struct server *s, struct endpoint *e)
{
	if (!listens_elsewhere(s, e))
		return false;
	if (e->closed)
		return true;
	log_info("listener closed", "dialect=%s address=%s", e->dialect->name, e->address);
	e->closed = true;
	listener_close(e->listener);
	e->listener = NULL;
	/* Calls may outlive their clients, so the listener stays until the end, out of sight. */
	list_remove(&e->link);
	list_append(&s->closed_endpoints, &e->link);
	list_for_each (at, following, &s->clients) {
		struct client *client = list_entry(at, struct client, link);

		if (client->endpoint == e || (e->guest && client->endpoint == e->guest))
			client_end(client);
	}
	return true;
}

static void close_listeners(struct server *s)
{
	list_for_each (at, following, &s->endpoints) {
		struct endpoint *e = list_entry(at, struct endpoint, link);

		listener_close(e->listener);
		e->listener = NULL;
	}
}

/* ---- the end of things ---- */

static void check_deadlines(void *arg)
{
	struct server *s = arg;
	uint64_t now = loop_now_ms(s->loop);
	struct list *first;

	/* All have the same time to live, so the first is the next to end. */
	while ((first = list_first(&s->deadlines))) {
		struct client *client = list_entry(first, struct client, deadline_link);

		if (client->deadline_ms > now)
			return;
		client_timed_out(client);
	}
	timer_stop(s->clock);
}

/* Which half-sent message to cut: by its bytes and the time since it began; those of other users
 * before our own. Never the client whose turn it is: its message may be in use. */
static struct client *worst_sender(const struct server *s)
{
	uint64_t now = loop_now_ms(s->loop);
	struct client *worst = NULL;
	uint64_t most = 0;

	list_for_each (at, following, &s->inputs) {
		struct client *one = list_entry(at, struct client, input_link);
		uint64_t weight = one->input_held * (now - one->input_since_ms + 1);

		if (one->pumping || one->closing ||
		    (worst && worst->peer.other && !one->peer.other))
			continue;
		if (!worst || weight > most || (one->peer.other && !worst->peer.other)) {
			worst = one;
			most = weight;
		}
	}
	return worst;
}

static void cut_senders(struct server *s)
{
	struct client *worst;
	struct frame no = {.status = 503};

	refuse(&no.error, REFUSE_LIMIT, "incomplete messages use more than %zu bytes of memory",
	       s->opts.limits.total_input_bytes);
	s->cutting = true;
	while (s->input_held > s->opts.limits.total_input_bytes && (worst = worst_sender(s)))
		client_cut(worst, &no);
	s->cutting = false;
}

void server_check_input(struct server *s)
{
	if (s->input_held > s->opts.limits.total_input_bytes && !s->cutting)
		cut_senders(s);
}

static void check_stopped(struct server *s)
{
	if (!s->stopping || s->n_clients > 0)
		return;
	timer_stop(s->stop_timer);
	if (s->opts.on_stopped)
		s->opts.on_stopped(s->opts.arg);
}

void server_client_gone(struct server *s, const struct peer *peer)
{
	s->n_clients--;
	others_remove(&s->others, peer);
	parked_next(s);
	if (!s->stopping)
		check_connections(s);
	check_stopped(s);
}

static void close_clients(struct server *s)
{
	struct list *first;

	while ((first = list_first(&s->clients)))
		client_close(list_entry(first, struct client, link));
}

static void cancel_calls(struct list *calls)
{
	struct list asked;

	/* A call that answers while it is asked leaves the list by itself. */
	list_init(&asked);
	while (!list_empty(calls)) {
		struct list *first = list_first(calls);

		list_remove(first);
		list_append(&asked, first);
		call_cancel(list_entry(first, struct call, link));
	}
	list_splice(calls, &asked);
}

static void stop_over(void *arg)
{
	struct server *s = arg;

	if (s->opts.limits.stop_ms > 0 && !s->hurried)
		log_warn("shutdown timed out", "connections=%u calls=%u", s->n_clients, s->n_calls);
	list_for_each (at, following, &s->clients)
		cancel_calls(&list_entry(at, struct client, link)->running);
	close_clients(s);
}

void server_stop(struct server *s)
{
	if (s->stopping) {
		/* Not now: the caller may be the handler of one of their calls. */
		s->hurried = true;
		if (s->n_clients > 0)
			timer_start(s->stop_timer, 0);
		return;
	}
	s->stopping = true;
	/* A client that does not take its last bytes must not delay the stop. */
	s->opts.limits.linger_ms = 500;
	close_listeners(s);
	parked_refuse_all(s);
	timer_start(s->stop_timer, s->opts.limits.stop_ms);
	list_for_each (at, following, &s->clients)
		client_end(list_entry(at, struct client, link));
	check_stopped(s);
}

void server_set_limits(struct server *s, const struct limits *limits)
{
	s->opts.limits = *limits;
	s->room.max = limits->total_queue_bytes;
	conn_pool_limit(s->pool, limits->queue_bytes / 2, limits->total_queue_bytes);
	if (!s->stopping)
		check_connections(s);
	parked_next(s);
}

int server_new(struct loop *l, const struct server_opts *opts, struct server **ret_server)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = l;
	s->opts = *opts;
	s->started_ms = clock_steady_ms();
	s->started_utc_ms = clock_utc_ms();
	call_counts_init(&s->counts);
	list_init(&s->endpoints);
	list_init(&s->closed_endpoints);
	list_init(&s->clients);
	list_init(&s->deadlines);
	list_init(&s->inputs);
	list_init(&s->detached);
	list_init(&s->spare_calls);
	r = parked_init(s)
			?: conn_pool_new(l, &s->pool)
			?: timer_new(l, check_deadlines, s, &s->clock)
			?: timer_new(l, stop_over, s, &s->stop_timer);
	if (r != 0) {
		server_free(s);
		return r;
	}
	server_set_limits(s, &opts->limits);
	*ret_server = s;
	return 0;
}

/* Calls that did not answer when they were asked to stop: now none may answer. */
static void drop_detached(struct server *s)
{
	struct list *first;

	while ((first = list_first(&s->detached))) {
		struct call *c = list_entry(first, struct call, link);

		list_remove(first);
		batch_unref(c->batch);
		drop_call(c);
	}
}

static void free_endpoints(struct list *endpoints)
{
	struct list *first;

	while ((first = list_first(endpoints))) {
		list_remove(first);
		free_endpoint(list_entry(first, struct endpoint, link));
	}
}

static void free_spare_calls(struct server *s)
{
	struct list *first;

	while ((first = list_first(&s->spare_calls))) {
		list_remove(first);
		drop_call(list_entry(first, struct call, link));
	}
}

void server_close(struct server *s)
{
	s->stopping = true;
	s->opts.on_stopped = NULL;
	close_listeners(s);
	close_clients(s);
	cancel_calls(&s->detached);
}

void server_finish(struct server *s)
{
	if (!s)
		return;
	server_close(s);
	workers_stop(s->workers);
	drop_detached(s);
}

void server_free(struct server *s)
{
	if (!s)
		return;
	server_finish(s);
	workers_free(s->workers);
	free_spare_calls(s);
	free_endpoints(&s->endpoints);
	free_endpoints(&s->closed_endpoints);
	parked_done(s);
	call_counts_done(&s->counts);
	timer_free(s->clock);
	timer_free(s->stop_timer);
	conn_pool_free(s->pool);
	free(s);
}

/* ---- telling clients ---- */

int server_notify_all(struct server *s, struct text method, struct text params, unsigned *ret_n)
{
	CLEANUP(buf_donep) struct buf out;
	unsigned n = 0;
	struct json j;

	buf_init(&out, s->opts.limits.reply_bytes);
	j = json_writer(&out);
	jsonrpc_write_request(&j, method, params, (struct text) {0});
	if (out.err != 0)
		return out.err;
	list_for_each (at, following, &s->clients)
		n += client_notify(list_entry(at, struct client, link), out.data, out.len) == 0;
	if (ret_n)
		*ret_n = n;
	return 0;
}

struct client *server_find_client(struct server *s, uint64_t number)
{
	list_for_each (at, following, &s->clients) {
		struct client *client = list_entry(at, struct client, link);

		if (client->number == number)
			return client;
	}
	return NULL;
}

static uint64_t count_refused(const struct endpoint *e)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < N_REFUSED_FOR; i++)
		n += e->n_refused[i];
	return n;
}

void endpoint_write(const struct endpoint *e, struct json *j)
{
	json_begin_object(j);
	json_member_str(j, "dialect", e->dialect->name);
	json_member_str(j, "address", e->address);
	if (e->token_file)
		json_member_str(j, "token_file", e->token_file);
	json_member_bool(j, "handed_over", e->handed_over);
	json_member_uint(j, "connections", e->n_connections);
	json_member_uint(j, "accepted", e->n_accepted);
	json_member_uint(j, "refused", count_refused(e));
	json_member_uint(j, "calls", e->n_calls);
	json_member_uint(j, "errors", e->n_errors);
	json_member_uint(j, "bytes_in", e->bytes_in);
	json_member_uint(j, "bytes_out", e->bytes_out);
	json_member_uint(j, "dropped", e->n_dropped);
	json_end_object(j);
}
