/*
 * A listening socket on the loop.
 *
 * Accepting is level-triggered and takes a bounded number each turn. When the process is out
 * of descriptors the socket would stay readable and the loop would spin; so it is then not
 * polled but retried by a timer, and connections wait in the backlog.
 */
#include "io/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "io/inner.h"

enum {
	BACKLOG = 4096,
	ACCEPTS_PER_TURN = 64, /* so that a rush of connections does not starve those we have */
	STARVED_RETRY_MS = 100,
};

struct listener {
	uv_poll_t poll;
	int fd;
	bool is_unix;
	bool paused;  /* paused by the owner */
	bool starved; /* accept failed for lack of something; the timer runs */
	bool closed;
	int ask; /* asks who connects to a port; -1: nobody is asked */
	struct timer *retry;
	struct address address;
	struct address asked; /* where it was to listen; its port may be 0 */
	bool given;           /* handed over, under this name */
	char name[64];
	struct sockaddr_storage here; /* a port's own address, as the kernel gives it */
	struct socket_file file;
	uid_t *allow_uids;
	unsigned n_allow_uids;
	bool anybody;
	void (*on_accept)(void *arg, int fd, const struct peer *peer);
	void (*on_refused)(void *arg, const struct peer *peer);
	void *arg;
};

static void listener_on_readable(uv_poll_t *poll, int status, int events);

static void update_polling(struct listener *l)
{
	if (l->closed)
		return;
	if (l->paused || l->starved)
		uv_poll_stop(&l->poll);
	else
		uv_poll_start(&l->poll, UV_READABLE, listener_on_readable);
}

static bool uid_allowed(const struct listener *l, uid_t uid)
{
	if (l->anybody || uid == geteuid() || uid == 0)
		return true;
	for (unsigned i = 0; i < l->n_allow_uids; i++) {
		if (uid == l->allow_uids[i])
			return true;
	}
	return false;
}

/* False: the peer is turned away. */
static bool may_enter(const struct listener *l, int fd, const struct sockaddr_storage *from,
		      struct peer *ret_peer)
{
	if (l->is_unix)
		return peer_of_unix(fd, ret_peer) && uid_allowed(l, ret_peer->uid);
	if (l->ask < 0)
		return true;
	if (!peer_of_inet(l->ask, fd, &l->here, from, ret_peer))
		return l->anybody;
	return uid_allowed(l, ret_peer->uid);
}

static void welcome(struct listener *l, int fd, const struct sockaddr_storage *from)
{
	struct peer peer = {.known = false};
	const int on = 1;

	if (!may_enter(l, fd, from, &peer)) {
		close(fd);
		if (l->on_refused)
			l->on_refused(l->arg, &peer);
		return;
	}
	/* Answers are written whole; waiting for more would only delay them. */
	if (!l->is_unix)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	l->on_accept(l->arg, fd, &peer);
}

/* Faults that concern only one connection, which is lost; accept(2) lists them. */
static bool concerns_one(int err)
{
	static const int errors[] = {
		EINTR,  ECONNABORTED, EPROTO,       ENETDOWN,    ENOPROTOOPT,
		ENONET, EHOSTDOWN,    EHOSTUNREACH, ENETUNREACH, EPERM,
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (err == errors[i])
			return true;
	}
	return false;
}

/* 0 when the backlog is empty or the turn is over, else what was lacking. */
static int accept_some(struct listener *l)
{
	for (int i = 0; i < ACCEPTS_PER_TURN && !l->closed && !l->paused; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		int fd = accept4(l->fd, (struct sockaddr *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			welcome(l, fd, &from);
		else if (errno == EAGAIN)
			return 0;
		else if (!concerns_one(errno))
			return -errno;
	}
	return 0;
}

static bool out_of_descriptors(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

static void starve(struct listener *l, int err)
{
	char text[ADDRESS_TEXT_MAX];

	if (!l->starved) {
		address_format(&l->address, text);
		log_warn(out_of_descriptors(err) ? "koined has no free file descriptors"
						 : "accept failed",
			 "address=%s error=\"%s\" retry_ms=%d", text, strerror(err),
			 STARVED_RETRY_MS);
	}
	l->starved = true;
	timer_start(l->retry, STARVED_RETRY_MS);
	update_polling(l);
}

static void recover(struct listener *l)
{
	char text[ADDRESS_TEXT_MAX];

	address_format(&l->address, text);
	log_info("accepting connections again", "address=%s", text);
	l->starved = false;
	update_polling(l);
}

static void listener_on_readable(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;
	int r = status < 0 ? status : accept_some(l);

	if (r < 0 && !l->closed)
		starve(l, -r);
}

/* We have recovered only once the backlog is empty: one descriptor that came free and was taken
 * at once means nothing. */
static void on_retry(void *arg)
{
	struct listener *l = arg;
	int r = accept_some(l);

	if (l->closed)
		return;
	if (r < 0)
		starve(l, -r);
	else
		recover(l);
}

static int bind_inet(const struct address *a, int *ret_fd, struct error *error)
{
	CLEANUP(closep) int fd = -1;
	struct sockaddr_storage addr;
	char text[ADDRESS_TEXT_MAX];
	socklen_t len;
	const int on = 1;

	if (!address_inet(a->host, a->port, &addr, &len))
		return address_refuse_host(a->host, error);
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, len) != 0) {
		int err = errno;

		address_format(a, text);
		if (err == EADDRINUSE)
			return refuse(error, REFUSE_CONFLICT, "address in use: %s", text);
		return refuse(error, err == EACCES ? REFUSE_FORBIDDEN : REFUSE_UNAVAILABLE,
			      "cannot bind %s: %s", text, strerror(err));
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int start_listening(struct listener *l, int backlog, struct error *error)
{
	char text[ADDRESS_TEXT_MAX];

	if (listen(l->fd, backlog > 0 ? backlog : BACKLOG) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	/* Two sockets may bind one port with SO_REUSEADDR; only one may listen. */
	address_format(&l->address, text);
	return refuse(error, REFUSE_CONFLICT, "address in use: %s", text);
}

static void read_unix_name(struct listener *l, const struct sockaddr_un *un, socklen_t len)
{
	size_t n = len > offsetof(struct sockaddr_un, sun_path)
			   ? len - offsetof(struct sockaddr_un, sun_path)
			   : 0;

	l->is_unix = true;
	l->address.kind = ADDRESS_UNIX;
	if (n >= sizeof(un->sun_path))
		n = sizeof(un->sun_path) - 1;
	memcpy(l->address.path, un->sun_path, n);
	l->address.path[n] = '\0';
	/* An abstract name begins with NUL; people write '@'. */
	if (n > 1 && l->address.path[0] == '\0')
		l->address.path[0] = '@';
}

static void read_inet_name(struct listener *l, int family, const void *in, uint16_t port)
{
	if (l->address.kind == ADDRESS_UNIX)
		l->address.kind = ADDRESS_TCP;
	inet_ntop(family, in, l->address.host, sizeof(l->address.host));
	l->address.port = ntohs(port);
}

/* Where an adopted socket listens. */
static int read_name(struct listener *l)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	} name = {0};
	socklen_t len = sizeof(name);

	if (getsockname(l->fd, &name.any, &len) != 0)
		return -errno;
	if (name.any.sa_family == AF_UNIX)
		read_unix_name(l, &name.un, len);
	else if (name.any.sa_family == AF_INET)
		read_inet_name(l, AF_INET, &name.in4.sin_addr, name.in4.sin_port);
	else if (name.any.sa_family == AF_INET6)
		read_inet_name(l, AF_INET6, &name.in6.sin6_addr, name.in6.sin6_port);
	else
		return -EAFNOSUPPORT;
	return 0;
}

/* A socket that was handed over: ours to use, its file not ours to remove. */
static int adopt(struct listener *l, struct error *error)
{
	struct sockaddr_storage unused;
	int listens = 0, type = 0, r;
	socklen_t len = sizeof(int);

	getsockopt(l->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
	getsockopt(l->fd, SOL_SOCKET, SO_TYPE, &type, &len);
	if (!listens || type != SOCK_STREAM)
		return refuse(error, REFUSE_PARAMS,
			      "descriptor %d is not a listening stream socket", l->fd);
	/* uv_poll_init makes it non-blocking. */
	if (fcntl(l->fd, F_SETFD, FD_CLOEXEC) != 0)
		return -errno;
	r = read_name(l);
	if (r != 0)
		return r;
	if (!l->is_unix && !address_inet(l->address.host, 0, &unused, &len))
		return address_refuse_host(l->address.host, error);
	return 0;
}

/* "localhost" stays as it was written; only the port is new. It is at the same offset in both
 * kinds of address. */
static int read_port(struct listener *l)
{
	socklen_t len = sizeof(l->here);

	if (getsockname(l->fd, (struct sockaddr *)&l->here, &len) != 0)
		return -errno;
	l->address.port = ntohs(((struct sockaddr_in6 *)&l->here)->sin6_port);
	return 0;
}

/* A port has no file mode: without the kernel's answer every user of the machine could come in. */
static int know_peers(struct listener *l, bool guarded, struct error *error)
{
	char text[ADDRESS_TEXT_MAX];
	int r = peer_ask_open(l->fd, &l->ask);

	if (r == 0)
		return 0;
	address_format(&l->address, text);
	if (!guarded && !l->anybody)
		return refuse(error, REFUSE_UNAVAILABLE,
			      "the kernel cannot identify peers of %.60s (sock_diag: %s): set "
			      "token_file or use a Unix socket",
			      text, strerror(-r));
	log_info("could not identify peers", "address=%s error=\"%s\"", text, strerror(-r));
	return 0;
}

static void listener_write_key(const struct listener *l, char out[INHERITED_KEY_MAX])
{
	char address[ADDRESS_TEXT_MAX];

	address_format(&l->asked, address);
	snprintf(out, INHERITED_KEY_MAX, "%s %s", l->name, address);
}

static int bind_own(struct listener *l, int backlog, struct error *error)
{
	bool for_others = l->anybody || l->n_allow_uids > 0;
	char key[INHERITED_KEY_MAX];
	int r;

	l->is_unix = l->address.kind == ADDRESS_UNIX;
	listener_write_key(l, key);
	if (inherited_take(key, &l->fd, &l->file.lock_fd))
		r = l->is_unix ? socket_file_inherit(&l->file, l->address.path, for_others, error)
			       : 0;
	else if (l->is_unix)
		r = socket_file_bind(&l->file, l->address.path, for_others, &l->fd, error);
	else
		r = bind_inet(&l->address, &l->fd, error);
	if (r != 0)
		return r;
	/* Also for one that we inherited: clients see the pid of the process that listened last. */
	return start_listening(l, backlog, error);
}

/* The next program takes it, with the lock: its file stays. */
static void listener_keep(struct listener *l)
{
	char key[INHERITED_KEY_MAX];

	if (l->fd < 0)
		return;
	listener_write_key(l, key);
	if (l->given)
		inherited_keep_given(l->name, l->fd);
	else if (!inherited_keep(key, l->fd, l->file.lock_fd))
		return;
	closep(&l->file.lock_fd);
	l->file.lock_fd = -1;
}

/* The file is removed while the descriptor is open; see socket_file_remove. */
static void let_go(struct listener *l)
{
	listener_keep(l);
	socket_file_remove(&l->file);
	closep(&l->fd);
	closep(&l->ask);
	l->fd = -1;
	l->ask = -1;
}

static void listener_free(struct listener *l)
{
	let_go(l);
	timer_free(l->retry);
	free(l->allow_uids);
	free(l);
}

CLEANUP_POINTER(listener, listener_free)

static int listener_new(struct loop *loop, const struct address *address,
			const struct listener_opts *opts, struct listener **ret_listener)
{
	CLEANUP(listener_freep) struct listener *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->fd = -1;
	l->ask = -1;
	l->file.lock_fd = -1;
	l->address = l->asked = *address;
	snprintf(l->name, sizeof(l->name), "%s", opts->name ? opts->name : "");
	l->anybody = opts->anybody;
	l->on_accept = opts->on_accept;
	l->on_refused = opts->on_refused;
	l->arg = opts->arg;
	if (opts->n_allow_uids > 0) {
		l->allow_uids = calloc(opts->n_allow_uids, sizeof(*l->allow_uids));
		if (!l->allow_uids)
			return -ENOMEM;
		memcpy(l->allow_uids, opts->allow_uids,
		       opts->n_allow_uids * sizeof(*l->allow_uids));
		l->n_allow_uids = opts->n_allow_uids;
	}
	r = timer_new(loop, on_retry, l, &l->retry);
	if (r != 0)
		return r;
	*ret_listener = TAKE(l);
	return 0;
}

int listener_open(struct loop *loop, const struct address *address,
		  const struct listener_opts *opts, struct listener **ret_listener,
		  struct error *error)
{
	CLEANUP(listener_freep) struct listener *l = NULL;
	CLEANUP(closep) int given = opts->fd;
	int r;

	r = listener_new(loop, address, opts, &l);
	if (r != 0)
		return r;
	if (given >= 0) {
		l->fd = given;
		l->given = true;
		given = -1;
		r = adopt(l, error);
	} else {
		r = bind_own(l, opts->backlog, error);
	}
	if (r == 0 && !l->is_unix)
		r = read_port(l);
	if (r == 0 && !l->is_unix)
		r = know_peers(l, opts->guarded, error);
	if (r != 0)
		return r;
	r = uv_poll_init(loop_uv(loop), &l->poll, l->fd);
	if (r != 0)
		return r;
	l->poll.data = l;
	update_polling(l);
	*ret_listener = TAKE(l);
	return 0;
}

const struct address *listener_address(const struct listener *l)
{
	return &l->address;
}

void listener_pause(struct listener *l)
{
	l->paused = true;
	update_polling(l);
}

void listener_resume(struct listener *l)
{
	l->paused = false;
	update_polling(l);
}

static void listener_on_closed(uv_handle_t *handle)
{
	listener_free(handle->data);
}

void listener_close(struct listener *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	timer_stop(l->retry);
	uv_close((uv_handle_t *)&l->poll, listener_on_closed);
	/* Not in the close callback: at exit the loop may never turn again. */
	let_go(l);
}
