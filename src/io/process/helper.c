#include "io/process/inner.h"

#include <unistd.h>

static void helper_take(struct helper *h, struct list *asides)
{
	pthread_mutex_lock(&h->lock);
	while (h->paused || list_empty(&h->waiting))
		pthread_cond_wait(&h->filled, &h->lock);
	list_splice(asides, &h->waiting);
	pthread_mutex_unlock(&h->lock);
}

static void *help(void *arg)
{
	struct helper *h = arg;
	struct list asides;

	for (;;) {
		list_init(&asides);
		helper_take(h, &asides);
		h->run(&asides);
	}
	return NULL;
}

/* A fork takes no thread along, and what the thread had then is not ours. */
static void forget_parent(struct helper *h)
{
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->filled, NULL);
	list_init(&h->waiting);
	h->process = 0;
}

int helper_start(struct helper *h, struct loop *l)
{
	int r = loop_prepare_asides(l);
	pthread_t thread;

	if (r != 0)
		return r;
	if (h->process != 0 && h->process != getpid())
		forget_parent(h);
	pthread_mutex_lock(&h->lock);
	if (h->process == 0) {
		r = thread_start(&thread, help, h);
		if (r == 0)
			pthread_detach(thread);
	}
	if (r == 0)
		h->process = getpid();
	pthread_mutex_unlock(&h->lock);
	return r;
}

void helper_give(struct helper *h, struct loop *l, struct aside *a)
{
	aside_begin(l, a);
	pthread_mutex_lock(&h->lock);
	list_append(&h->waiting, &a->link);
	pthread_cond_signal(&h->filled);
	pthread_mutex_unlock(&h->lock);
}

void helper_pause(struct helper *h, bool pause)
{
	pthread_mutex_lock(&h->lock);
	h->paused = pause;
	pthread_cond_signal(&h->filled);
	pthread_mutex_unlock(&h->lock);
}
