/*
 * A connection polls its descriptor and reads and sends by itself: one recv each time it is
 * readable (so that a fast sender gets one turn like everybody else), one send for everything
 * that a turn has written. Nothing is queued with libuv, and SIGPIPE is never raised.
 */
#include "io/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/log.h"
#include "base/piece.h"
#include "io/inner.h"

enum {
	READ_BYTES = 64 << 10,
	N_SPARE = 8,
	SPARE_BYTES = 128 << 10, /* a larger write buffer is not kept */
	OUT_MAX = 64 << 20,
	OUT_MOVED = 64 << 10, /* at most so many bytes are moved to its front */
	TURN_BYTES = 1 << 20, /* bytes that one turn sends to one peer from buffers handed over */
	N_VECTORS = 8,
	LARGE_BYTES = 256 << 10, /* bytes waiting for one peer: it counts as slow */
	STALL_MS = 5000,         /* a peer that reads always takes something within this time */
	BURST = 4,               /* times held_max, for answers to peers that may still read */
};

struct conn_pool {
	struct loop *loop;
	size_t low_mark;
	size_t held_max;
	size_t held;     /* bytes in the write buffers of all connections */
	size_t held_out; /* of these, the bytes not in pieces */
	/* Connections that hold much; the one that took nothing for longest comes first. */
	struct list slow;
	unsigned n_spare;
	struct buf spare[N_SPARE];
	char read[READ_BYTES];
};

struct conn {
	uv_poll_t poll;
	struct conn_pool *pool;
	const struct conn_ops *ops;
	void *owner;
	struct timer *linger; /* only while finishing */
	unsigned linger_ms;
	uint64_t lingered_at; /* bytes_out when the timer was started */
	struct list pieces;   /* sent before out */
	size_t n_in_pieces;   /* bytes of all pieces */
	struct buf out;
	size_t sent; /* already sent of the first piece, or of out */
	size_t held; /* as counted in the pool */
	size_t held_out;
	struct list slow_link;
	uint64_t took_ms; /* when the peer last took some, while it counts as slow */
	uint64_t bytes_out;
	int fd;
	int events; /* what is polled for */
	bool want_read : 1;
	bool eof : 1;
	bool broken : 1;    /* noticed while flushing; closed when polled */
	bool gone : 1;      /* the peer has closed both ways, and the owner knows */
	bool finishing : 1; /* conn_finish was called */
	bool shut : 1;      /* we have shut down our side */
	bool closed : 1;
};

int conn_pool_new(struct loop *l, struct conn_pool **ret_pool)
{
	struct conn_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->loop = l;
	list_init(&p->slow);
	*ret_pool = p;
	return 0;
}

void conn_pool_limit(struct conn_pool *p, size_t low_mark, size_t held_max)
{
	p->low_mark = low_mark;
	p->held_max = held_max;
}

void conn_pool_free(struct conn_pool *p)
{
	if (!p)
		return;
	while (p->n_spare > 0)
		buf_done(&p->spare[--p->n_spare]);
	free(p);
}

/* The write buffer is passed around: a connection with nothing to send has none. */
static void take_spare(struct conn *c)
{
	struct conn_pool *p = c->pool;

	if (!c->out.data && p->n_spare > 0)
		c->out = p->spare[--p->n_spare];
}

static void give_spare(struct conn *c)
{
	struct conn_pool *p = c->pool;

	c->sent = 0;
	pieces_done(&c->pieces);
	c->n_in_pieces = 0;
	buf_trim(&c->out, SPARE_BYTES);
	if (!c->out.data)
		return;
	if (p->n_spare == N_SPARE) {
		buf_done(&c->out);
		return;
	}
	p->spare[p->n_spare++] = c->out;
	buf_init(&c->out, OUT_MAX);
}

static void count_held(struct conn *c, bool progress)
{
	struct conn_pool *p = c->pool;
	size_t held = c->n_in_pieces + c->out.len;

	if (held == 0 && c->held == 0)
		return;
	p->held += held - c->held;
	p->held_out += c->out.len - c->held_out;
	c->held = held;
	c->held_out = c->out.len;
	if (progress || held < LARGE_BYTES)
		list_remove(&c->slow_link);
	if (held >= LARGE_BYTES && list_empty(&c->slow_link)) {
		list_append(&p->slow, &c->slow_link);
		c->took_ms = loop_now_ms(p->loop);
	}
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void update_events(struct conn *c)
{
	int events = 0;

	if (c->closed)
		return;
	if ((c->want_read || c->finishing) && !c->eof)
		events |= UV_READABLE;
	if (conn_pending(c) > 0 || c->broken)
		events |= UV_WRITABLE;
	/* Whatever is polled for, a peer that has left is reported, too; this is the event to
	 * ask for that otherwise never comes. */
	if (events == 0 && !c->gone)
		events = UV_PRIORITIZED;
	if (events == c->events)
		return;
	c->events = events;
	if (events)
		uv_poll_start(&c->poll, events, on_poll);
	else
		uv_poll_stop(&c->poll);
}

static void free_conn(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	close(c->fd);
	free(c);
}

void conn_close(struct conn *c)
{
	if (c->closed)
		return;
	c->closed = true;
	timer_free(c->linger);
	c->linger = NULL;
	give_spare(c);
	count_held(c, false);
	uv_close((uv_handle_t *)&c->poll, free_conn);
	c->ops->on_closed(c->owner);
}

static bool would_block(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* The pieces before out, then out itself, as far as a turn goes. */
static unsigned conn_gather(struct conn *c, struct iovec *vectors)
{
	size_t room = TURN_BYTES;
	size_t skip = c->sent;
	unsigned n = 0;

	list_for_each (at, following, &c->pieces) {
		const struct buf *b = &list_entry(at, struct piece, link)->buf;
		size_t len = b->len - skip;

		if (n == N_VECTORS - 1 || room == 0)
			return n;
		vectors[n++] = (struct iovec) {b->data + skip, len < room ? len : room};
		room -= len < room ? len : room;
		skip = 0;
	}
	if (c->out.len > 0 && room > 0)
		vectors[n++] = (struct iovec) {c->out.data, c->out.len < room ? c->out.len : room};
	return n;
}

static void drop_sent(struct conn *c, size_t n)
{
	struct piece *p;

	c->sent += n;
	while ((p = piece_first(&c->pieces)) && c->sent >= p->buf.len) {
		c->sent -= p->buf.len;
		c->n_in_pieces -= p->buf.len;
		piece_free(p);
	}
}

/* One system call a turn: a peer that takes much must not use up the turn. */
static void send_pieces(struct conn *c)
{
	struct iovec vectors[N_VECTORS];
	struct msghdr message = {.msg_iov = vectors, .msg_iovlen = conn_gather(c, vectors)};
	ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0) {
		c->broken |= !would_block(errno);
		return;
	}
	c->bytes_out += (uint64_t)n;
	drop_sent(c, (size_t)n);
	if (conn_pending(c) == 0)
		give_spare(c);
}

static void send_pending(struct conn *c)
{
	if (!list_empty(&c->pieces)) {
		send_pieces(c);
		return;
	}
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			if (!would_block(errno))
				c->broken = true;
			return;
		}
		c->sent += (size_t)n;
		c->bytes_out += (uint64_t)n;
	}
	give_spare(c);
}

static void conn_cut(struct conn *slow)
{
	log_caused(LOG_LEVEL_INFO, "slow client disconnected", "unread=%zu reason=\"%s\"",
		   conn_pending(slow), "unsent responses to slow clients exceed their limit");
	slow->broken = true;
	give_spare(slow);
	count_held(slow, false);
	update_events(slow);
}

static bool stalled(const struct conn *slow)
{
	return loop_now_ms(slow->pool->loop) >= slow->took_ms + STALL_MS;
}

/* Each peer has its own limit; this one is for many peers that do not read. */
static void cut_slow(struct conn *c)
{
	struct conn_pool *p = c->pool;
	struct list *first;

	while ((p->held > p->held_max || p->held_out > p->held_max / 2) &&
	       (first = list_first(&p->slow))) {
		struct conn *slow = list_entry(first, struct conn, slow_link);
		bool much = p->held > BURST * p->held_max || p->held_out > p->held_max / 2;

		/* One answer that is too large by itself is no reason. */
		if (slow == c || (!much && !stalled(slow)))
			return;
		conn_cut(slow);
	}
}

void conn_pool_cut_stalled(struct conn_pool *p)
{
	struct list *first;

	while ((first = list_first(&p->slow)) && stalled(list_entry(first, struct conn, slow_link)))
		conn_cut(list_entry(first, struct conn, slow_link));
}

/* Nothing is left to send while finishing: shut down, and wait for the peer's end. */
static void say_end(struct conn *c)
{
	if (c->finishing && !c->shut && conn_pending(c) == 0) {
		c->shut = true;
		shutdown(c->fd, SHUT_WR);
	}
}

void conn_flush(struct conn *c)
{
	uint64_t before = c->bytes_out;

	if (c->closed)
		return;
	/* A message that did not fit is lost, and with it the stream's order. */
	if (c->out.err != 0)
		c->broken = true;
	if (!c->broken)
		send_pending(c);
	if (c->broken)
		give_spare(c);
	count_held(c, c->bytes_out != before);
	cut_slow(c);
	say_end(c);
	update_events(c);
}

/* What stands in out goes first. */
static void close_out(struct conn *c)
{
	size_t len = c->out.len;

	if (len == 0)
		return;
	if (piece_append(&c->pieces, &c->out) != 0)
		c->broken = true;
	else
		c->n_in_pieces += len;
}

/* Many bytes are not moved but skipped. */
static void conn_make_room(struct conn *c)
{
	if (c->sent == 0 || !list_empty(&c->pieces) || c->sent < c->out.len / 2)
		return;
	if (c->out.len - c->sent > OUT_MOVED) {
		close_out(c);
		return;
	}
	buf_consume(&c->out, c->sent);
	c->sent = 0;
}

void conn_give(struct conn *c, struct buf *b)
{
	size_t len = b->len;

	if (c->out.err != 0 || c->closed || c->broken || len == 0) {
		buf_done(b);
		return;
	}
	close_out(c);
	if (c->broken || piece_append(&c->pieces, b) != 0) {
		c->broken = true;
		buf_done(b);
		return;
	}
	c->n_in_pieces += len;
}

struct buf *conn_out(struct conn *c)
{
	conn_make_room(c);
	take_spare(c);
	return &c->out;
}

int conn_fd(const struct conn *c)
{
	return c->fd;
}

size_t conn_pending(const struct conn *c)
{
	return c->n_in_pieces + c->out.len - c->sent;
}

uint64_t conn_sent(const struct conn *c)
{
	return c->bytes_out;
}

static void on_writable(struct conn *c)
{
	conn_flush(c);
	if (!c->broken && !c->finishing && conn_pending(c) <= c->pool->low_mark)
		c->ops->on_drained(c->owner);
}

static void conn_on_end(struct conn *c)
{
	c->eof = true;
	update_events(c);
	if (!c->finishing)
		c->ops->on_eof(c->owner);
	else if (c->shut)
		conn_close(c);
}

static void conn_on_readable(struct conn *c)
{
	ssize_t n = recv(c->fd, c->pool->read, READ_BYTES, MSG_DONTWAIT);

	if (n > 0) {
		if (!c->finishing)
			c->ops->on_bytes(c->owner, c->pool->read, (size_t)n);
	} else if (n == 0) {
		conn_on_end(c);
	} else if (!would_block(errno)) {
		conn_close(c);
	}
}

static bool has_left(const struct conn *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* There was nothing to read or send: the peer has left, or sent urgent data, which we ignore.
 * Either way there is nothing more to poll for. */
static void on_quiet(struct conn *c)
{
	c->gone = true;
	update_events(c);
	if (has_left(c))
		c->ops->on_gone(c->owner);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct conn *c = poll->data;

	if (c->events == UV_PRIORITIZED) {
		on_quiet(c);
		return;
	}
	if (status < 0 || c->broken) {
		conn_close(c);
		return;
	}
	if (events & UV_WRITABLE)
		on_writable(c);
	if ((events & UV_READABLE) && (c->events & UV_READABLE) && !c->closed)
		conn_on_readable(c);
	if (!c->closed && c->shut && c->eof)
		conn_close(c);
}

int conn_new(struct conn_pool *p, int fd, const struct conn_ops *ops, void *owner,
	     struct conn **ret_conn)
{
	CLEANUP(closep) int taken = fd;
	CLEANUP(freep) struct conn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->pool = p;
	c->ops = ops;
	c->owner = owner;
	c->fd = fd;
	buf_init(&c->out, OUT_MAX);
	list_init(&c->slow_link);
	list_init(&c->pieces);
	r = uv_poll_init(loop_uv(p->loop), &c->poll, fd);
	if (r != 0)
		return r;
	c->poll.data = c;
	taken = -1;
	*ret_conn = TAKE(c);
	return 0;
}

void conn_read(struct conn *c, bool on)
{
	if (c->want_read == on)
		return;
	c->want_read = on;
	update_events(c);
}

/* A peer that still takes what was written for it is given the same time once more. */
static void linger_over(void *arg)
{
	struct conn *c = arg;

	if (conn_pending(c) == 0 || c->linger_ms == 0 || c->bytes_out == c->lingered_at) {
		conn_close(c);
		return;
	}
	c->lingered_at = c->bytes_out;
	timer_start(c->linger, c->linger_ms);
}

void conn_finish(struct conn *c, unsigned linger_ms)
{
	if (c->closed || c->finishing)
		return;
	c->finishing = true;
	/* Without a timer the peer could hold it open for ever. */
	if (timer_new(c->pool->loop, linger_over, c, &c->linger) != 0)
		c->broken = true;
	else
		timer_start(c->linger, linger_ms);
	conn_flush(c);
	c->linger_ms = linger_ms;
	c->lingered_at = c->bytes_out;
	/* Both ends are done: the next turn closes it. */
	if (c->shut && c->eof)
		c->broken = true;
	update_events(c);
}
