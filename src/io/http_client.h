/*
 * HTTP requests to other machines: libcurl, known only in here, on the loop. Nothing blocks,
 * nothing signals, no redirect is followed, and no proxy is used. Connections are kept for the
 * next request.
 *
 * All of it belongs to the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "io/loop.h"

struct http_client;
struct http_fetch;
struct peer;

struct http_client_opts {
	unsigned connections; /* at once; more requests wait. 0: 16 */
};

int http_client_new(struct loop *l, const struct http_client_opts *opts,
		    struct http_client **ret_client);

/* Cancels what is open. Not from inside a callback of its own. Accepts NULL. */
void http_client_free(struct http_client *c);

struct http_answer {
	int error; /* 0, or -errno: unreachable, cut, late, too large, cancelled by on_data */
	const char *text;  /* what went wrong, or "" */
	int status;        /* of HTTP; 0 when none came */
	bool connected;    /* the request could be sent; if not, nobody has seen it */
	bool idle;         /* idle_timeout_ms ended it */
	unsigned retry_ms; /* from Retry-After; 0: not given */
	struct text body;  /* unless there was on_data; valid during on_done */
};

struct http_fetch_opts {
	const char *url;             /* http or https */
	const char *unix_socket;     /* connect there instead; NULL for none */
	const char *method;          /* NULL: GET, or POST with a body */
	const char *const *headers;  /* "Name: value", ended by NULL; may be NULL */
	struct text body;            /* copied unless lent; data NULL for none */
	bool lent;                   /* body is not copied: see http_fetch_is_sent */
	unsigned connect_timeout_ms; /* 0: 10 s */
	unsigned total_timeout_ms;   /* 0: none; a stream may last */
	unsigned idle_timeout_ms;    /* without a byte in either direction; 0: none */
	size_t response_max;         /* bytes of body; 0: 1 MiB */

	/* Each piece of the body as it comes; NULL: collected for on_done. Anything but 0 ends
	 * the request, and on_done gets it as error. May start and cancel others. */
	int (*on_data)(void *arg, int status, const char *data, size_t n);
	/* Once, and never before http_client_fetch has returned. The fetch is gone afterwards. */
	void (*on_done)(void *arg, const struct http_answer *answer);
	void *arg;
};

/* *ret_fetch is valid until on_done; ret_fetch may be NULL. */
int http_client_fetch(struct http_client *c, const struct http_fetch_opts *opts,
		      struct http_fetch **ret_fetch);

/* Whether the whole body was sent, so that a lent one may be freed; after on_done and after a
 * cancel it may be freed as well. For on_data: before the answer has begun the body may have to
 * be sent again. */
bool http_fetch_is_sent(const struct http_fetch *f);

/* Which process of this machine answers, while on_data or on_done runs. False where that cannot be
 * told: it is elsewhere, or has gone. */
bool http_fetch_peer(const struct http_fetch *f, struct peer *ret_peer);

/* No callback comes any more. Accepts NULL. */
void http_fetch_cancel(struct http_fetch *f);
