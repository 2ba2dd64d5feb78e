/*
 * How many calls each method had, how they ended, and how long they took: a row for each method
 * of each dialect, made with its first call. Names that no table has share one row, so no client
 * can make more of them.
 *
 * Two looks at the clock would be a tenth of what a ping costs. Calls that leave the loop are timed
 * one by one. Those that it answers at once are timed together, while it serves one client: calls of
 * one method share that time equally. It does so once in a millisecond: what it answers besides
 * counts as if it had taken as long as the next of that method that is timed. So every call is
 * counted, and on a machine that is not busy every one is timed.
 */
#pragma once

#include "base/metric.h"
#include "base/error.h"
#include "call/call.h"

enum { CALL_COUNTS_MAX = 4096, CALL_NAME_MAX = 64 };

struct call_count {
	const struct dialect *dialect; /* NULL: of those that there is no row for */
	char name[CALL_NAME_MAX];      /* of the method; "unknown" where there is none */
	uint64_t refused[N_REFUSALS];  /* by enum refusal; 0: by an error of the dialect's own */
	struct histogram time;         /* nanoseconds */
	uint64_t untimed;              /* calls that are not in it yet */
	uint64_t usual_ns;             /* what the last timed one took; 0: none was */
};

/* Which row counts a method; those of one name have one row. */
struct call_count_slot {
	const struct dialect *dialect;
	const struct method *method; /* only compared: it may be gone */
	struct call_count *row;      /* NULL: the slot is free */
};

struct call_counts {
	struct call_count **rows; /* in the order of their first calls */
	unsigned n;
	struct call_count_slot *slots; /* a power of two, at most half full */
	unsigned n_slots;
	unsigned n_used;
	struct call_count other; /* for those that there is no row for */

	/* Calls that were answered just now, all of one row. */
	struct call_count *at;
	const struct dialect *at_dialect;
	const struct method *at_method;
	uint64_t n_now;
	bool timed; /* they are timed, since ... */
	uint64_t since_ns;
	uint64_t timed_ms; /* the loop's time when some last were */
	uint64_t usual_ns; /* of any method; see call_counts_fold */
};

void call_counts_init(struct call_counts *k);
void call_counts_done(struct call_counts *k);

/* For what follows: counts the calls that were answered just now. */
void call_counts_settle(struct call_counts *k);
void call_counts_look(struct call_counts *k, uint64_t now_ms);

/* The loop begins to serve a client. now_ms is the loop's time. */
static inline void call_counts_serve(struct call_counts *k, uint64_t now_ms)
{
	if (k->n_now > 0)
		call_counts_settle(k);
	if (now_ms != k->timed_ms)
		call_counts_look(k, now_ms);
}

static inline void call_counts_served(struct call_counts *k)
{
	if (k->n_now > 0)
		call_counts_settle(k);
	k->timed = false;
}

/* Before they are shown: no call stays uncounted. One whose method was never timed counts as long as
 * the last call that was. */
void call_counts_fold(struct call_counts *k);

/* For call_count_now: the calls from here on are another method's. */
void call_counts_turn(struct call_counts *k, const struct call *c);

static inline void call_count_refusal(struct call_count *row, const struct call *c)
{
	if (c->failed)
		row->refused[c->error.code]++;
}

/* A call was answered in the turn in which it came. */
static inline void call_count_now(struct call_counts *k, const struct call *c)
{
	if (c->method != k->at_method || c->dialect != k->at_dialect)
		call_counts_turn(k, c);
	k->n_now++;
	call_count_refusal(k->at, c);
}

/* A call has left the loop's turn; its time begins. */
void call_count_begin(struct call_counts *k, struct call *c);
/* It is answered. */
void call_count_end(struct call_counts *k, const struct call *c);

uint64_t call_count_refused(const struct call_count *row);
