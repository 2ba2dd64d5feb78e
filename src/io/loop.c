/*
 * struct loop over uv_loop_t, and the small things that live on one: timers,
 * wakes from other threads, signals. A libuv handle is memory of its owner
 * until its close callback has run, so every free here ends in uv_close.
 */
#include "io/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "io/inner.h"

struct loop {
	uv_loop_t uv;
	uv_async_t back; /* an aside has come back */
	bool takes_back; /* `back` is open */
	unsigned n_away;
	pthread_mutex_t lock; /* of the list alone */
	struct list returned;
	uv_prepare_t before; /* it waits for more */
	uv_check_t behind;   /* everything that had come is done */
	bool measured;       /* these two are open */
	uint64_t held_ms;
	struct histogram held;
};

struct timer {
	uv_timer_t uv;
	loop_cb cb;
	void *arg;
};

struct ticker {
	uv_poll_t uv;
	int fd;
	loop_cb cb;
	void *arg;
};

struct wake {
	uv_async_t uv;
	loop_cb cb;
	void *arg;
};

struct signal_watch {
	uv_signal_t uv;
	loop_cb cb;
	void *arg;
};

uv_loop_t *loop_uv(struct loop *l)
{
	return &l->uv;
}

int loop_new(struct loop **ret_loop)
{
	CLEANUP(freep) struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	r = uv_loop_init(&l->uv);
	if (r != 0)
		return r;
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->returned);
	*ret_loop = TAKE(l);
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	while (l->n_away > 0)
		uv_run(&l->uv, UV_RUN_ONCE);
	if (l->takes_back)
		uv_close((uv_handle_t *)&l->back, NULL);
	if (l->measured) {
		uv_close((uv_handle_t *)&l->before, NULL);
		uv_close((uv_handle_t *)&l->behind, NULL);
	}
	/* Freed handles still wait for their close callbacks. */
	while (uv_loop_close(&l->uv) == UV_EBUSY)
		uv_run(&l->uv, UV_RUN_NOWAIT);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void loop_run(struct loop *l)
{
	uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

int loop_fd(const struct loop *l)
{
	return uv_backend_fd(&l->uv);
}

int loop_timeout_ms(const struct loop *l)
{
	return uv_backend_timeout(&l->uv);
}

void loop_step(struct loop *l)
{
	uv_run(&l->uv, UV_RUN_NOWAIT);
}

void loop_turn(struct loop *l, int max_ms)
{
	struct pollfd p = {.fd = loop_fd(l), .events = POLLIN};
	int wait;

	/* One step first: what was added since the last one is not in the descriptor yet. */
	loop_step(l);
	wait = loop_timeout_ms(l);
	poll(&p, 1, wait < 0 || wait > max_ms ? max_ms : wait);
}

uint64_t loop_now_ms(const struct loop *l)
{
	return uv_now(&l->uv);
}

/* ---- how long it is held ---- */

static uint64_t read_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Since libuv looked at the clock: as it had waited, and before its timers. The coarse clock costs a
 * few nanoseconds and is behind; only when even that has moved on is the other one asked. */
static void add_held(struct loop *l)
{
	uint64_t since = uv_now(&l->uv);
	uint64_t now = read_ms(CLOCK_MONOTONIC_COARSE);

	if (now > since)
		l->held_ms += read_ms(CLOCK_MONOTONIC) - since;
}

static void on_behind(uv_check_t *check)
{
	add_held(check->data);
}

static void on_before(uv_prepare_t *prepare)
{
	struct loop *l = prepare->data;

	add_held(l);
	if (l->held_ms > 0)
		histogram_add(&l->held, &histogram_times, 1, l->held_ms * 1000000);
	l->held_ms = 0;
}

void loop_measure(struct loop *l)
{
	uv_prepare_init(&l->uv, &l->before);
	uv_check_init(&l->uv, &l->behind);
	l->before.data = l->behind.data = l;
	uv_prepare_start(&l->before, on_before);
	uv_check_start(&l->behind, on_behind);
	uv_unref((uv_handle_t *)&l->before);
	uv_unref((uv_handle_t *)&l->behind);
	l->measured = true;
}

const struct histogram *loop_held(const struct loop *l)
{
	return l->measured ? &l->held : NULL;
}

/* The handle is the first member of its owner, so its data pointer is free for us. */
static void close_handle(void *handle)
{
	uv_close(handle, free_data);
}

static void timer_fired(uv_timer_t *uv)
{
	struct timer *t = uv->data;

	t->cb(t->arg);
}

int timer_new(struct loop *l, loop_cb cb, void *arg, struct timer **ret_timer)
{
	struct timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cb = cb;
	t->arg = arg;
	uv_timer_init(&l->uv, &t->uv);
	t->uv.data = t;
	*ret_timer = t;
	return 0;
}

void timer_free(struct timer *t)
{
	if (t)
		close_handle(&t->uv);
}

void timer_start(struct timer *t, uint64_t ms)
{
	uv_timer_start(&t->uv, timer_fired, ms, 0);
}

void timer_repeat(struct timer *t, uint64_t every_ms)
{
	uv_timer_start(&t->uv, timer_fired, every_ms, every_ms);
}

void timer_stop(struct timer *t)
{
	uv_timer_stop(&t->uv);
}

static void ticker_fired(uv_poll_t *uv, int status, int events)
{
	struct ticker *t = uv->data;
	uint64_t n_ticks;

	if (read(t->fd, &n_ticks, sizeof(n_ticks)) == (ssize_t)sizeof(n_ticks))
		t->cb(t->arg);
}

static void free_ticker(uv_handle_t *handle)
{
	struct ticker *t = handle->data;

	close(t->fd);
	free(t);
}

static int open_timerfd(uint64_t every_ms, int *ret_fd)
{
	const struct timespec every = {
		.tv_sec = (time_t)(every_ms / 1000),
		.tv_nsec = (long)(every_ms % 1000) * 1000000,
	};
	const struct itimerspec when = {.it_interval = every, .it_value = every};
	CLEANUP(closep) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &when, NULL) != 0)
		return -errno;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int ticker_new(struct loop *l, uint64_t every_ms, loop_cb cb, void *arg, struct ticker **ret_ticker)
{
	CLEANUP(freep) struct ticker *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->cb = cb;
	t->arg = arg;
	r = open_timerfd(every_ms, &t->fd);
	if (r != 0)
		return r;
	r = uv_poll_init(&l->uv, &t->uv, t->fd);
	if (r != 0) {
		close(t->fd);
		return r;
	}
	t->uv.data = t;
	uv_poll_start(&t->uv, UV_READABLE, ticker_fired);
	uv_unref((uv_handle_t *)&t->uv);
	*ret_ticker = TAKE(t);
	return 0;
}

void ticker_free(struct ticker *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->uv, free_ticker);
}

static void wake_fired(uv_async_t *uv)
{
	struct wake *w = uv->data;

	w->cb(w->arg);
}

int wake_new(struct loop *l, loop_cb cb, void *arg, struct wake **ret_wake)
{
	CLEANUP(freep) struct wake *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->cb = cb;
	w->arg = arg;
	r = uv_async_init(&l->uv, &w->uv, wake_fired);
	if (r != 0)
		return r;
	w->uv.data = w;
	*ret_wake = TAKE(w);
	return 0;
}

void wake_free(struct wake *w)
{
	if (w)
		close_handle(&w->uv);
}

void wake_send(struct wake *w)
{
	uv_async_send(&w->uv);
}

void wake_hold(struct wake *w, bool hold)
{
	if (hold)
		uv_ref((uv_handle_t *)&w->uv);
	else
		uv_unref((uv_handle_t *)&w->uv);
}

/* ---- what other threads do ---- */

int thread_start(pthread_t *ret_thread, void *(*entry)(void *arg), void *arg)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret_thread, NULL, entry, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static void take_back(uv_async_t *back)
{
	struct loop *l = back->data;
	struct list returned;
	struct list *first;

	list_init(&returned);
	pthread_mutex_lock(&l->lock);
	list_splice(&returned, &l->returned);
	pthread_mutex_unlock(&l->lock);
	while ((first = list_first(&returned))) {
		struct aside *a = list_entry(first, struct aside, link);

		list_remove(first);
		/* Counted afterwards: it may begin again meanwhile. */
		a->finished(a);
		if (--l->n_away == 0)
			uv_unref((uv_handle_t *)&l->back);
	}
}

int loop_prepare_asides(struct loop *l)
{
	int r;

	if (l->takes_back)
		return 0;
	r = uv_async_init(&l->uv, &l->back, take_back);
	if (r != 0)
		return r;
	l->back.data = l;
	l->takes_back = true;
	uv_unref((uv_handle_t *)&l->back);
	return 0;
}

void aside_begin(struct loop *l, struct aside *a)
{
	a->loop = l;
	if (l->n_away++ == 0)
		uv_ref((uv_handle_t *)&l->back);
}

/* The loop may take it back and end as soon as the lock is open, so it is woken before that. */
void aside_end(struct aside *a)
{
	struct loop *l = a->loop;

	pthread_mutex_lock(&l->lock);
	list_append(&l->returned, &a->link);
	uv_async_send(&l->back);
	pthread_mutex_unlock(&l->lock);
}

static void signal_fired(uv_signal_t *uv, int number)
{
	struct signal_watch *s = uv->data;

	s->cb(s->arg);
}

int signal_watch_new(struct loop *l, int number, loop_cb cb, void *arg,
		     struct signal_watch **ret_watch)
{
	struct signal_watch *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->cb = cb;
	s->arg = arg;
	uv_signal_init(&l->uv, &s->uv);
	s->uv.data = s;
	uv_unref((uv_handle_t *)&s->uv);
	r = uv_signal_start(&s->uv, signal_fired, number);
	if (r != 0) {
		signal_watch_free(s);
		return r;
	}
	*ret_watch = s;
	return 0;
}

void signal_watch_free(struct signal_watch *s)
{
	if (s)
		close_handle(&s->uv);
}
