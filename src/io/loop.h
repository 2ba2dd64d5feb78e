/*
 * The event loop: libuv, known by that name only inside io/. One thread runs
 * a loop and everything on it, except wake_send.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct loop;
struct timer;
struct wake;

int loop_new(struct loop **ret_loop);

/* Closes what is still open on it; owners must have freed theirs before. */
void loop_free(struct loop *l);

/* Turns until loop_stop, or until nothing is left that could wake it. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* For a host with a loop of its own: poll the descriptor for reading, at most
 * timeout_ms (-1: for ever), then step. */
int loop_fd(const struct loop *l);
int loop_timeout_ms(const struct loop *l);
void loop_step(struct loop *l);

/* One turn for whoever waits for something: does what there is, then waits at most max_ms for
 * more. */
void loop_turn(struct loop *l, int max_ms);

/* A steady clock, read once per turn. */
uint64_t loop_now_ms(const struct loop *l);

struct histogram;

/* From now on it is counted how long the loop is held at a stretch, in nanoseconds by
 * histogram_times. What is shorter than a tick of the kernel (4 ms) may be missing. */
void loop_measure(struct loop *l);
/* NULL: nobody measures. */
const struct histogram *loop_held(const struct loop *l);

typedef void (*loop_cb)(void *arg);

/* A timer that is not running. It keeps the loop alive only while it runs. */
int timer_new(struct loop *l, loop_cb cb, void *arg, struct timer **ret_timer);
void timer_free(struct timer *t); /* accepts NULL; cb is not called any more */
void timer_start(struct timer *t, uint64_t ms);
void timer_repeat(struct timer *t, uint64_t every_ms);
void timer_stop(struct timer *t);

/*
 * Calls cb every so often, for what is never urgent. Unlike a running timer, it gives the
 * kernel's wait no time limit, which would cost every request a tenth of its time. It does not
 * keep the loop alive.
 */
struct ticker;
int ticker_new(struct loop *l, uint64_t every_ms, loop_cb cb, void *arg,
	       struct ticker **ret_ticker);
void ticker_free(struct ticker *t); /* accepts NULL */

/* Lets another thread call cb on the loop; several sends may become one call. */
int wake_new(struct loop *l, loop_cb cb, void *arg, struct wake **ret_wake);
void wake_free(struct wake *w);
void wake_send(struct wake *w);
/* Whether this wake alone keeps the loop running; true at first. */
void wake_hold(struct wake *w, bool hold);

/* A thread that gets no signals, since they belong to the loop. */
int thread_start(pthread_t *ret_thread, void *(*entry)(void *arg), void *arg);

/*
 * Something that another thread does for the loop, inside whatever wants it done. The loop turns
 * until it has come back.
 */
struct aside {
	struct list link;
	struct loop *loop;
	void (*finished)(struct aside *a); /* on the loop */
};

/* After this returned 0, asides can be begun on this loop. */
int loop_prepare_asides(struct loop *l);
/* From the loop's thread. */
void aside_begin(struct loop *l, struct aside *a);
/* From any thread, once: `finished` follows. */
void aside_end(struct aside *a);

/* cb on the loop when the signal comes. Frees with signal_free. */
struct signal_watch;
int signal_watch_new(struct loop *l, int number, loop_cb cb, void *arg,
		     struct signal_watch **ret_watch);
void signal_watch_free(struct signal_watch *s);
