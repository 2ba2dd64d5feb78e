/*
 * The line of events that hld's subscribers hear: each is put into words once and held once,
 * until everybody who is to hear it has it in the buffer of its connection. Of each subscriber
 * this knows how far it is.
 *
 * One that reads gets all. Of one that has taken nothing for a moment HLD_QUEUE events wait to be
 * sent; what comes beyond is lost to it, the newest first, and counted. So with all
 * that are far behind when the line becomes too long.
 */
#pragma once

#include "call/server.h"
#include "call/client.h"
#include "dialect/hld/hld.h"

struct hld_line;
struct hld_words;

struct hld_filter {
	unsigned kinds;           /* bits by hld_told's number */
	struct text session, run; /* {NULL, 0}: any; they must live as long */
};

/* A subscriber; in what its owner keeps. */
struct hld_hearer {
	struct list link;
	struct hld_line *line;
	struct client *client;
	struct hld_filter filter;
	int64_t after; /* only what is behind it in the log */
	uint64_t at;   /* the next in the line */
	uint64_t told; /* how many it was */
	uint64_t dropped;
	uint64_t told_ms; /* when it was last told something */
	/* Where each that waits in its connection ends, in bytes: a ring. */
	uint64_t ends[HLD_QUEUE];
	unsigned first, n_waiting;
	/* What waits beside, since it has stalled: likewise. */
	struct hld_words *kept[HLD_QUEUE];
	unsigned first_kept, n_kept;
	uint64_t sent;    /* of its bytes when it was last looked at */
	uint64_t took_ms; /* when it took some, or had all */
	bool stalled;
	bool over; /* it hears nothing more */
	/* It has lost the first. */
	void (*on_drop)(struct hld_hearer *h);
};

/* All but line and link are set, or 0. From now on; the endpoint has a line while anybody hears. */
int hld_line_join(struct endpoint *e, struct events *events, struct hld_hearer *h);
void hld_line_leave(struct hld_hearer *h);

/* The client took some. */
void hld_line_pump(struct hld_hearer *h);
