/* koine_server_*: a server in somebody else's program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "call/method.h"
#include "call/client.h"
#include "lib/host.h"

/* The specification's codes and words; a host's own errors carry their own. */
static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_ONLY, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_ONLY, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {-32000, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32000, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32000, "Resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32000, "Size limit exceeded", WORDS_BOTH, 0},
	[REFUSE_UNAVAILABLE] = {-32000, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32000, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32000, "Call timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32000, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32800, "Cancelled", WORDS_ONLY, 0},
};

static const char *const paths[] = {"/", "/rpc", NULL};

static const struct dialect host_dialect = {
	.name = "json-rpc",
	.framing = SPEAKS_ANY,
	.message_max = 16 << 20,
	.errors = errors,
	.http_paths = paths,
	.http_silent_status = 200,
};

static void on_stopped(void *arg)
{
	struct koine_server *s = arg;

	s->stopped = true;
	loop_stop(s->loop);
}

static void run_posted(void *arg)
{
	struct koine_server *s = arg;
	struct list posted;

	list_init(&posted);
	pthread_mutex_lock(&s->lock);
	list_splice(&posted, &s->posted);
	pthread_mutex_unlock(&s->lock);
	while (!list_empty(&posted)) {
		struct posted *p = list_entry(list_first(&posted), struct posted, link);

		list_remove(&p->link);
		p->fn(p->arg);
		free(p);
	}
}

static void drop_posted(struct koine_server *s)
{
	while (!list_empty(&s->posted)) {
		struct list *first = list_first(&s->posted);

		list_remove(first);
		free(list_entry(first, struct posted, link));
	}
}

int koine_server_new(struct koine_server **ret_server)
{
	struct koine_server *s = calloc(1, sizeof(*s));
	struct server_opts opts = {
		.limits = default_limits,
		.on_stopped = on_stopped,
		.arg = s,
		.version = koine_version(),
	};
	int r;

	if (!s)
		return -ENOMEM;
	list_init(&s->methods);
	list_init(&s->posted);
	list_init(&s->timers);
	list_init(&s->mcps);
	pthread_mutex_init(&s->lock, NULL);
	r = loop_new(&s->loop)
			?: registry_new(&s->registry)
			?: registry_add(s->registry, rpc_methods.rows, rpc_methods.n)
			?: server_new(s->loop, &opts, &s->server)
			?: wake_new(s->loop, run_posted, s, &s->wake);
	if (r != 0) {
		koine_server_free(s);
		return r;
	}
	*ret_server = s;
	return 0;
}

static void timer_over(void *arg)
{
	struct host_timer t = *(struct host_timer *)arg;

	list_remove(&((struct host_timer *)arg)->link);
	free(arg);
	timer_free(t.timer);
	t.fn(t.arg);
}

static void drop_timers(struct koine_server *s)
{
	while (!list_empty(&s->timers)) {
		struct host_timer *t = list_entry(list_first(&s->timers), struct host_timer, link);

		list_remove(&t->link);
		timer_free(t->timer);
		free(t);
	}
}

int koine_server_after(struct koine_server *s, uint32_t ms, void (*fn)(void *arg), void *arg)
{
	struct host_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (timer_new(s->loop, timer_over, t, &t->timer) != 0) {
		free(t);
		return -ENOMEM;
	}
	t->fn = fn;
	t->arg = arg;
	list_append(&s->timers, &t->link);
	timer_start(t->timer, ms);
	return 0;
}

static void free_methods(struct koine_server *s)
{
	while (!list_empty(&s->methods)) {
		struct list *first = list_first(&s->methods);

		list_remove(first);
		host_method_free(list_entry(first, struct host_method, link));
	}
}

void koine_server_free(struct koine_server *s)
{
	if (!s)
		return;
	/* Twice, because what is posted may answer a call, and a call that is asked to stop may
	 * post its answer. */
	run_posted(s);
	if (s->server)
		server_close(s->server);
	run_posted(s);
	drop_posted(s);
	drop_timers(s);
	host_mcps_close(s);
	server_free(s->server);
	host_mcps_free(s);
	wake_free(s->wake);
	loop_free(s->loop);
	registry_free(s->registry);
	free_methods(s);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *koine_server_error(const struct koine_server *s)
{
	return s->error.text;
}

int host_explain(struct koine_server *s, int r)
{
	/* Unless somebody who knew more has already said it. */
	if (r < 0 && !s->error.text[0])
		refuse(&s->error, REFUSE_INTERNAL, "%s", strerror(-r));
	return r;
}

int koine_server_add(struct koine_server *s, const struct koine_method *method)
{
	struct host_method *h;
	int r = host_method_new(method, &h);

	s->error.text[0] = '\0';
	if (r != 0)
		return host_explain(s, r);
	r = registry_add(s->registry, &h->row, 1);
	if (r != 0) {
		host_method_free(h);
		return host_explain(s, r);
	}
	list_append(&s->methods, &h->link);
	return 0;
}

static int choose_framing(struct koine_server *s, const char *name, enum framing_choice *ret)
{
	static const struct {
		const char *name;
		enum framing_choice choice;
	} choices[] = {{"line", SPEAKS_LINE}, {"length", SPEAKS_LENGTH}, {"http", SPEAKS_HTTP}};

	*ret = SPEAKS_ANY;
	if (!name)
		return 0;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (strcmp(name, choices[i].name) == 0) {
			*ret = choices[i].choice;
			return 0;
		}
	}
	return refuse(&s->error, REFUSE_PARAMS, "unknown framing '%.40s': use line, length or http",
		      name);
}

int koine_server_allow(struct koine_server *s, int64_t uid)
{
	s->error.text[0] = '\0';
	if (uid == KOINE_ANYBODY) {
		s->anybody = true;
		return 0;
	}
	if (uid < 0 || uid >= UINT32_MAX)
		return host_explain(s, -EINVAL);
	if (s->n_allow_uids == KOINE_ALLOW_MAX)
		return refuse(&s->error, REFUSE_LIMIT, "cannot allow more than %d users",
			      KOINE_ALLOW_MAX);
	s->allow_uids[s->n_allow_uids++] = (uid_t)uid;
	return 0;
}

int host_listen(struct koine_server *s, struct endpoint_opts *opts, const char *address,
		char *bound, size_t bound_size, struct endpoint **ret_endpoint)
{
	int r = address_parse(address, &opts->address, &s->error);

	opts->registry = s->registry;
	opts->fd = -1;
	opts->allow_uids = s->allow_uids;
	opts->n_allow_uids = s->n_allow_uids;
	opts->anybody = s->anybody;
	if (r == 0)
		r = server_listen(s->server, opts, ret_endpoint, &s->error);
	if (r == 0 && bound && bound_size > 0)
		snprintf(bound, bound_size, "%s", (*ret_endpoint)->address);
	return host_explain(s, r);
}

int koine_server_listen(struct koine_server *s, const char *address, const char *framing,
			char *bound, size_t bound_size)
{
	struct endpoint_opts opts = {.dialect = &host_dialect};
	struct endpoint *e;
	int r;

	s->error.text[0] = '\0';
	r = choose_framing(s, framing, &opts.framing);
	return r != 0 ? r : host_listen(s, &opts, address, bound, bound_size, &e);
}

int koine_server_run(struct koine_server *s)
{
	while (!s->stopped)
		loop_run(s->loop);
	return 0;
}

void koine_server_stop(struct koine_server *s)
{
	server_stop(s->server);
}

int koine_server_fd(const struct koine_server *s)
{
	return loop_fd(s->loop);
}

int koine_server_timeout_ms(const struct koine_server *s)
{
	return loop_timeout_ms(s->loop);
}

void koine_server_step(struct koine_server *s)
{
	loop_step(s->loop);
}

int koine_server_post(struct koine_server *s, void (*fn)(void *arg), void *arg)
{
	struct posted *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->fn = fn;
	p->arg = arg;
	pthread_mutex_lock(&s->lock);
	list_append(&s->posted, &p->link);
	pthread_mutex_unlock(&s->lock);
	wake_send(s->wake);
	return 0;
}

static int check_params(struct koine_server *s, const char *params)
{
	struct koine_doc *doc = NULL;
	enum koine_kind kind;
	int r;

	if (!params)
		return 0;
	r = koine_doc_parse(params, strlen(params), &doc, s->error.text, sizeof(s->error.text));
	if (r != 0)
		return r;
	kind = koine_value_kind(koine_doc_root(doc));
	koine_doc_free(doc);
	if (kind != KOINE_OBJECT && kind != KOINE_ARRAY)
		return refuse(&s->error, REFUSE_PARAMS, "params must be an object or an array");
	return 0;
}

int koine_server_notify_all(struct koine_server *s, const char *method, const char *params)
{
	int r = check_params(s, params)
			?: server_notify_all(s->server, text_of(method), text_of(params), NULL);

	return r;
}

int koine_server_notify(struct koine_server *s, uint64_t connection, const char *method,
			const char *params)
{
	struct client *client = server_find_client(s->server, connection);
	CLEANUP(buf_donep) struct buf out;
	struct json j;
	int r;

	buf_init(&out, default_limits.reply_bytes);
	if (!client)
		return -ENOTCONN;
	r = check_params(s, params);
	if (r != 0)
		return r;
	j = json_writer(&out);
	jsonrpc_write_request(&j, text_of(method), text_of(params), (struct text) {0});
	return out.err != 0 ? out.err : client_notify(client, out.data, out.len);
}

size_t koine_server_clients(const struct koine_server *s)
{
	return s->server->n_clients;
}

static void (*host_log)(void *arg, int level, const char *line);

static void forward(void *arg, enum log_level level, const char *line)
{
	host_log(arg, (int)level, line);
}

void koine_set_log(void (*log)(void *arg, int level, const char *line), void *arg, int max_level)
{
	host_log = log;
	log_set_level(max_level < 0   ? LOG_LEVEL_ERR
		      : max_level > 3 ? LOG_LEVEL_DEBUG
				      : (enum log_level)max_level);
	log_set_sink(log ? forward : NULL, arg);
}
