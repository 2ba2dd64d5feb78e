/*
 * libcurl's multi interface over libuv: curl says which sockets it wants to hear of and when
 * it wants to be called again; we poll, keep its one timer, and report.
 *
 * curl must not be asked to add or remove a transfer from inside one of its own callbacks.
 * `inside` knows when that is; what is asked for meanwhile is done right after.
 */
#include "io/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "io/inner.h"
#include "io/listener.h"
#include "io/peer.h"

enum {
	CONNECTIONS = 16,
	CONNECT_MS = 10000,
	BODY_MAX = 1 << 20,
	HEAD_MAX = 256 << 10,
	RETRY_MAX_S = 24 * 3600,
	UPLOAD_BUFFER = 16 << 10,
	LATE_MS = 20, /* later than curl itself should notice */
};

struct http_client {
	struct loop *loop;
	CURLM *multi;
	struct timer *timer; /* curl's */
	struct list open;    /* fetches that curl has */
	struct list waiting; /* asked for inside a callback */
	struct list dropped; /* cancelled inside a callback */
	unsigned inside;
};

struct http_fetch {
	struct list link;
	struct http_client *client;
	CURL *easy;
	struct curl_slist *headers;
	char *request; /* the body we send, unless it is lent */
	size_t request_len;
	struct buf body;
	size_t head_len;
	size_t body_len;
	size_t max;
	curl_off_t moved; /* bytes of both directions, at the last look */
	struct timer *idle;
	struct timer *total; /* NULL: no time limit */
	unsigned idle_ms;
	int (*on_data)(void *arg, int status, const char *data, size_t n);
	void (*on_done)(void *arg, const struct http_answer *answer);
	void *arg;
	int error; /* our own result: it ends with this, whatever curl says */
	bool added;
	bool dead; /* cancelled: no more callbacks */
	char words[CURL_ERROR_SIZE];
};

/* A socket that curl wants to hear of. Freed when its handle has closed. */
struct http_client_watched {
	uv_poll_t uv;
	struct http_client *client;
	curl_socket_t fd;
};

/* ---- the end of a fetch ---- */

static void fetch_free(struct http_fetch *f)
{
	list_remove(&f->link);
	if (f->added)
		curl_multi_remove_handle(f->client->multi, f->easy);
	if (f->easy)
		curl_easy_cleanup(f->easy);
	curl_slist_free_all(f->headers);
	timer_free(f->idle);
	timer_free(f->total);
	buf_done(&f->body);
	free(f->request);
	free(f);
}

CLEANUP_POINTER(http_fetch, fetch_free)

static int error_of(CURLcode code)
{
	/* Only what callers tell apart; the words say the rest. */
	if (code == CURLE_OK)
		return 0;
	if (code == CURLE_OPERATION_TIMEDOUT)
		return -ETIMEDOUT;
	if (code == CURLE_COULDNT_CONNECT)
		return -ECONNREFUSED;
	if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
		return -EHOSTUNREACH;
	if (code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (code == CURLE_FILESIZE_EXCEEDED)
		return -EMSGSIZE;
	if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		return -EINVAL;
	return -EIO;
}

static const char *words_of(const struct http_fetch *f, CURLcode code, int error)
{
	if (error == 0)
		return "";
	if (f->error == -EMSGSIZE)
		return "the response exceeds its size limit";
	if (f->error == -ETIMEDOUT)
		return "timed out waiting for data";
	if (f->error != 0)
		return strerror(-f->error);
	return f->words[0] ? f->words : curl_easy_strerror(code);
}

static unsigned retry_after(CURL *easy)
{
	curl_off_t seconds = 0;

	if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK || seconds <= 0)
		return 0;
	return (unsigned)(seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S) * 1000;
}

static int status_of(CURL *easy)
{
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

/* This time is set once name lookup, connection and TLS are done, also on a kept connection. */
static bool was_connected(CURL *easy)
{
	curl_off_t us = 0;

	return curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &us) == CURLE_OK && us > 0;
}

static void http_client_finish(struct http_fetch *f, CURLcode code)
{
	int error = f->error ? f->error : error_of(code);
	const struct http_answer answer = {
		.error = error,
		.text = words_of(f, code, error),
		.status = status_of(f->easy),
		.connected = was_connected(f->easy),
		.idle = f->error == -ETIMEDOUT,
		.retry_ms = retry_after(f->easy),
		.body = {.data = f->body.data, .len = f->body.len},
	};

	/* Off the list first: the callback may cancel or end everything else. */
	list_remove(&f->link);
	f->dead = true;
	f->on_done(f->arg, &answer);
	fetch_free(f);
}

/* ---- between calls of curl ---- */

static bool http_client_add(struct http_client *c, struct http_fetch *f)
{
	list_append(&c->open, &f->link);
	f->added = curl_multi_add_handle(c->multi, f->easy) == CURLM_OK;
	if (f->idle_ms > 0)
		timer_start(f->idle, f->idle_ms);
	return f->added;
}

static void http_client_settle(struct http_client *c)
{
	struct list *first;

	while ((first = list_first(&c->dropped)))
		fetch_free(list_entry(first, struct http_fetch, link));
	while ((first = list_first(&c->waiting))) {
		struct http_fetch *f = list_entry(first, struct http_fetch, link);

		list_remove(first);
		if (!http_client_add(c, f))
			http_client_finish(f, CURLE_OUT_OF_MEMORY);
	}
}

static void tell_finished(struct http_client *c)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(c->multi, &left))) {
		struct http_fetch *f = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &f);
		http_client_finish(f, message->data.result);
	}
}

static void act(struct http_client *c, curl_socket_t fd, int events)
{
	int running;

	c->inside++;
	curl_multi_socket_action(c->multi, fd, events, &running);
	c->inside--;
	http_client_settle(c);
	tell_finished(c);
}

static void http_client_on_timer(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int want_timer(CURLM *multi, long ms, void *arg)
{
	struct http_client *c = arg;

	if (ms < 0)
		timer_stop(c->timer);
	else
		timer_start(c->timer, (uint64_t)ms);
	return 0;
}

static void on_poll(uv_poll_t *uv, int status, int events)
{
	const struct http_client_watched *w = uv->data;
	int flags = 0;

	if (status < 0)
		flags = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	act(w->client, w->fd, flags);
}

static struct http_client_watched *http_client_watch(struct http_client *c, curl_socket_t fd)
{
	struct http_client_watched *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->client = c;
	w->fd = fd;
	if (uv_poll_init(loop_uv(c->loop), &w->uv, fd) != 0) {
		free(w);
		return NULL;
	}
	w->uv.data = w;
	curl_multi_assign(c->multi, fd, w);
	return w;
}

/*
 * Nobody would ever tell this fetch that its socket is ready, so it ends. curl must not hear
 * of it: it would take every other transfer of the client for dead, too.
 */
static void give_up(CURL *easy)
{
	struct http_fetch *f = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &f);
	if (!f || f->dead)
		return;
	f->error = -ENOMEM;
	timer_start(f->idle, 0);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct http_client *c = arg;
	struct http_client_watched *w = known;
	int events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (w)
			uv_close((uv_handle_t *)&w->uv, free_data);
		curl_multi_assign(c->multi, fd, NULL);
		return 0;
	}
	if (!w)
		w = http_client_watch(c, fd);
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	if (!w || uv_poll_start(&w->uv, events, on_poll) != 0)
		give_up(easy);
	return 0;
}

/* ---- what curl gives us of one fetch ---- */

static size_t on_head(char *data, size_t size, size_t n, void *arg)
{
	struct http_fetch *f = arg;

	f->head_len += n;
	if (f->head_len > HEAD_MAX) {
		f->error = -EMSGSIZE;
		return 0;
	}
	if (f->idle_ms > 0 && !f->dead && f->error == 0)
		timer_start(f->idle, f->idle_ms);
	return n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_fetch *f = arg;

	if (f->dead)
		return 0;
	f->body_len += n;
	if (f->body_len > f->max)
		f->error = -EMSGSIZE;
	else if (f->on_data)
		f->error = f->on_data(f->arg, status_of(f->easy), data, n);
	else
		buf_add(&f->body, data, n);
	if (f->body.err != 0)
		f->error = f->body.err;
	return f->error == 0 ? n : 0;
}

static int on_progress(void *arg, curl_off_t to_come, curl_off_t come, curl_off_t to_go,
		       curl_off_t gone)
{
	struct http_fetch *f = arg;

	if (f->dead)
		return 1;
	if (come + gone == f->moved)
		return 0;
	f->moved = come + gone;
	if (f->idle_ms > 0 && f->error == 0)
		timer_start(f->idle, f->idle_ms);
	return 0;
}

static void on_idle(void *arg)
{
	struct http_fetch *f = arg;

	if (f->error == 0)
		f->error = -ETIMEDOUT;
	curl_multi_remove_handle(f->client->multi, f->easy);
	f->added = false;
	http_client_finish(f, CURLE_OPERATION_TIMEDOUT);
}

/* curl knows how far a running transfer came; for those waiting for a connection it has no time. */
static void on_total(void *arg)
{
	struct http_fetch *f = arg;

	if (f->added)
		curl_multi_remove_handle(f->client->multi, f->easy);
	f->added = false;
	http_client_finish(f, CURLE_OPERATION_TIMEDOUT);
}

static int limit_total(struct http_fetch *f, unsigned ms)
{
	int r = ms > 0 ? timer_new(f->client->loop, on_total, f, &f->total) : 0;

	if (r == 0 && ms > 0)
		timer_start(f->total, ms + LATE_MS);
	return r;
}

/* curl's own sockets would be inherited by every program we start. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	return socket(a->family, a->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->protocol);
}

/* ---- making one ---- */

static int add_headers(struct http_fetch *f, const char *const *headers)
{
	/* Without the first curl would wait for permission to send a large body. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	f->headers = list;
	for (size_t i = 0; list && headers && headers[i]; i++)
		list = curl_slist_append(f->headers, headers[i]);
	return list ? 0 : -ENOMEM;
}

static int take_body(struct http_fetch *f, struct text body, bool lent)
{
	if (!body.data)
		return 0;
	f->request_len = body.len;
	if (!lent) {
		f->request = malloc(body.len + 1);
		if (!f->request)
			return -ENOMEM;
		memcpy(f->request, body.data, body.len);
	}
	curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, lent ? body.data : f->request);
	curl_easy_setopt(f->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	return 0;
}

static void set_callbacks(struct http_fetch *f)
{
	CURL *e = f->easy;

	curl_easy_setopt(e, CURLOPT_PRIVATE, f);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, f->words);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, f);
	curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(e, CURLOPT_XFERINFODATA, f);
	curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
}

static int set_options(struct http_fetch *f, const struct http_fetch_opts *opts)
{
	unsigned connect = opts->connect_timeout_ms ? opts->connect_timeout_ms : CONNECT_MS;
	CURL *e = f->easy;
	CURLcode r = curl_easy_setopt(e, CURLOPT_URL, opts->url);

	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	/* A stream may last for an hour and keeps this buffer; curl's default is 64 KiB. */
	curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
	if (r == CURLE_OK)
		r = curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	/* "" and not NULL: curl would ask the environment. */
	if (r == CURLE_OK)
		r = curl_easy_setopt(e, CURLOPT_PROXY, "");
	if (r == CURLE_OK && opts->unix_socket)
		r = curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, opts->unix_socket);
	if (r == CURLE_OK && opts->method)
		r = curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, opts->method);
	if (r == CURLE_OK)
		r = curl_easy_setopt(e, CURLOPT_HTTPHEADER, f->headers);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)connect);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)opts->total_timeout_ms);
	return error_of(r);
}

static int fetch_new(struct http_client *c, const struct http_fetch_opts *opts,
		     struct http_fetch **ret_fetch)
{
	CLEANUP(fetch_freep) struct http_fetch *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	list_init(&f->link);
	f->client = c;
	f->max = opts->response_max ? opts->response_max : BODY_MAX;
	buf_init(&f->body, f->max);
	f->idle_ms = opts->idle_timeout_ms;
	f->on_data = opts->on_data;
	f->on_done = opts->on_done;
	f->arg = opts->arg;
	f->easy = curl_easy_init();
	if (!f->easy)
		return -ENOMEM;
	set_callbacks(f);
	r = timer_new(c->loop, on_idle, f, &f->idle)
		?: add_headers(f, opts->headers)
		?: take_body(f, opts->body, opts->lent)
		?: set_options(f, opts)
		?: limit_total(f, opts->total_timeout_ms);
	if (r == 0)
		*ret_fetch = TAKE(f);
	return r;
}

int http_client_fetch(struct http_client *c, const struct http_fetch_opts *opts,
		      struct http_fetch **ret_fetch)
{
	struct http_fetch *f;
	int r = fetch_new(c, opts, &f);

	if (r != 0)
		return r;
	if (c->inside) {
		list_append(&c->waiting, &f->link);
	} else if (!http_client_add(c, f)) {
		fetch_free(f);
		return -ENOMEM;
	}
	if (ret_fetch)
		*ret_fetch = f;
	return 0;
}

bool http_fetch_is_sent(const struct http_fetch *f)
{
	curl_off_t sent = 0;

	return curl_easy_getinfo(f->easy, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK &&
	       (size_t)sent >= f->request_len;
}

/* curl does not tell the socket while it is in use, but the names of both its ends. */
static bool end_of(CURL *easy, CURLINFO ip, CURLINFO port, struct sockaddr_storage *ret)
{
	char *text = NULL;
	long number = 0;
	socklen_t len;

	return curl_easy_getinfo(easy, ip, &text) == CURLE_OK && text && text[0] &&
	       curl_easy_getinfo(easy, port, &number) == CURLE_OK && number > 0 &&
	       address_inet(text, (uint16_t)number, ret, &len);
}

bool http_fetch_peer(const struct http_fetch *f, struct peer *ret_peer)
{
	struct sockaddr_storage our, their;

	*ret_peer = (struct peer) {.known = false};
	return end_of(f->easy, CURLINFO_LOCAL_IP, CURLINFO_LOCAL_PORT, &our) &&
	       end_of(f->easy, CURLINFO_PRIMARY_IP, CURLINFO_PRIMARY_PORT, &their) &&
	       peer_of_names(&our, &their, ret_peer);
}

void http_fetch_cancel(struct http_fetch *f)
{
	if (!f || f->dead)
		return;
	f->dead = true;
	if (!f->client->inside) {
		fetch_free(f);
		return;
	}
	timer_stop(f->idle);
	if (f->total)
		timer_stop(f->total);
	list_remove(&f->link);
	list_append(&f->client->dropped, &f->link);
}

/* ---- the client ---- */

int http_client_new(struct loop *l, const struct http_client_opts *opts,
		    struct http_client **ret_client)
{
	unsigned n = opts && opts->connections ? opts->connections : CONNECTIONS;
	struct http_client *c;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	c = calloc(1, sizeof(*c));
	if (!c) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	c->loop = l;
	list_init(&c->open);
	list_init(&c->waiting);
	list_init(&c->dropped);
	c->multi = curl_multi_init();
	r = c->multi ? timer_new(l, http_client_on_timer, c, &c->timer) : -ENOMEM;
	if (r != 0) {
		http_client_free(c);
		return r;
	}
	/* curl has opened a pair of sockets that our children would inherit, and does not say
	 * which. Nothing of ours is meant for them. */
	(void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)n);
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)n);
	*ret_client = c;
	return 0;
}

static void free_all(struct list *fetches)
{
	struct list *first;

	while ((first = list_first(fetches)))
		fetch_free(list_entry(first, struct http_fetch, link));
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	free_all(&c->open);
	free_all(&c->waiting);
	free_all(&c->dropped);
	/* curl gives its sockets back through want_socket, so the timer must still exist. */
	if (c->multi)
		curl_multi_cleanup(c->multi);
	timer_free(c->timer);
	curl_global_cleanup();
	free(c);
}
