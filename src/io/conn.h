/*
 * One connection: bytes in, bytes out. Works on any stream socket.
 *
 * Bytes are read into one buffer that all connections of a loop share, so an
 * idle connection holds none. What is written is sent at once with conn_flush;
 * only what the kernel does not take waits here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "io/loop.h"

struct conn;

struct conn_ops {
	/* data is valid during the call only. */
	void (*on_bytes)(void *owner, const char *data, size_t len);
	/* The peer has finished sending; we may still send. Called once. */
	void (*on_eof)(void *owner);
	/* The kernel took some of what was waiting, and at most the pool's low mark is left. */
	void (*on_drained)(void *owner);
	/* While we neither read nor send: the peer has closed both ways and will read nothing we
	 * send. At most once. Over TCP only a reset shows this. */
	void (*on_gone)(void *owner);
	/* The connection failed or was closed. The last call; afterwards conn is gone. */
	void (*on_closed)(void *owner);
};

/* What the connections of one loop share: the read buffer and spare write buffers. One per loop,
 * freed after the last of its connections. When more than held_max bytes wait to be sent in all,
 * peers that took nothing for five seconds are cut, the longest-waiting first. Those that did
 * take something are cut, too, when it is four times as many, or half as many in answers that
 * were too short to be handed over. */
struct conn_pool;
/* Cuts peers that took nothing for five seconds, however little it is in all: somebody waits for
 * the room. */
void conn_pool_cut_stalled(struct conn_pool *p);

int conn_pool_new(struct loop *l, struct conn_pool **ret_pool);
/* Until it is called, nothing may be queued. */
void conn_pool_limit(struct conn_pool *p, size_t low_mark, size_t held_max);
void conn_pool_free(struct conn_pool *p);

/* Takes fd, also on failure. Reading starts with conn_read. No callback comes before this has
 * returned. */
int conn_new(struct conn_pool *p, int fd, const struct conn_ops *ops, void *owner,
	     struct conn **ret_conn);

/* Whether to read. Pausing makes the kernel hold the sender back. */
void conn_read(struct conn *c, bool on);

/* Where to append what is to be sent; conn_flush must follow in the same turn. Flushing never
 * calls back: a connection found broken is closed in the next turn. */
struct buf *conn_out(struct conn *c);
void conn_flush(struct conn *c);

/* The same for a buffer that is not copied: the connection takes its memory, also on failure. */
void conn_give(struct conn *c, struct buf *b);

/* Its descriptor, to ask the kernel about the peer. */
int conn_fd(const struct conn *c);

/* Bytes not yet taken by the kernel. */
size_t conn_pending(const struct conn *c);
/* Bytes that the kernel took, in all. */
uint64_t conn_sent(const struct conn *c);

/*
 * Sends what is pending, then says that nothing follows (shutdown), reads and
 * drops what the peer still sends, and closes when it is done, or after
 * linger_ms in which the peer took nothing. So an error answer survives a peer that is still sending.
 */
void conn_finish(struct conn *c, unsigned linger_ms);

/* Closes now. on_closed is called before this returns. */
void conn_close(struct conn *c);

/*
 * A connection over two descriptors of any kind, such as standard input and output: they are
 * joined with a socket, whose other end is as good as an accepted one.
 */

struct pipes;

/*
 * Joins them. *ret_fd is the socket, the caller's. The descriptors stay the caller's, too; while
 * they are joined they do not block, and pipes_free sets them back.
 *
 * on_end is called once, when the socket was closed and everything that came from it is written,
 * or when nobody reads `out` any more.
 */
int pipes_new(struct loop *l, int in, int out, void (*on_end)(void *arg), void *arg,
	      struct pipes **ret_pipes, int *ret_fd);
void pipes_free(struct pipes *j); /* accepts NULL */
