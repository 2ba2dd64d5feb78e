/* Searches for the processes of all programs that are being ended, in one pass over /proc for all of them. */
#include "io/process/inner.h"

#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"

static struct reap *reap_of(struct list *link)
{
	return list_entry(list_entry(link, struct aside, link), struct reap, aside);
}

/* Where there is no memory for all, one after another. */
static void search(struct list *reaps, size_t n, int number)
{
	CLEANUP(freep) struct tree_wish *wishes = calloc(n, sizeof(*wishes));
	size_t i = 0;

	list_for_each (at, following, reaps) {
		struct reap *h = reap_of(at);
		struct tree_wish one = {.mark = h->mark, .told_group = h->told_group};

		if (wishes) {
			wishes[i++] = one;
			continue;
		}
		tree_signal_many(&one, 1, number);
		h->n = one.n;
	}
	if (!wishes)
		return;
	tree_signal_many(wishes, n, number);
	i = 0;
	list_for_each (at, following, reaps)
		reap_of(at)->n = wishes[i++].n;
}

/* After the search: whoever has left the group, and is known only by its parent, must have been
 * seen while that lived. */
static void end_group(struct reap *h)
{
	if (h->signal != SIGKILL || !h->cgroup || !cgroup_is_populated(h->cgroup))
		return;
	cgroup_kill(h->cgroup);
	h->n++;
}

/* All that are for the same signal as the first. */
static size_t take_alike(struct list *from, struct list *ret_reaps)
{
	int number = reap_of(list_first(from))->signal;
	size_t n = 0;

	list_for_each (at, following, from) {
		if (reap_of(at)->signal != number)
			continue;
		list_remove(at);
		list_append(ret_reaps, at);
		n++;
	}
	return n;
}

static void remove_groups(struct list *asides)
{
	list_for_each (at, following, asides) {
		struct reap *h = reap_of(at);

		if (!h->removes)
			continue;
		list_remove(at);
		cgroup_free(h->cgroup);
		aside_end(&h->aside);
	}
}

static void run(struct list *asides)
{
	struct list alike;
	struct list *first;

	list_init(&alike);
	remove_groups(asides);
	while (!list_empty(asides)) {
		size_t n = take_alike(asides, &alike);

		search(&alike, n, reap_of(list_first(&alike))->signal);
		while ((first = list_first(&alike))) {
			list_remove(first);
			end_group(reap_of(first));
			aside_end(&reap_of(first)->aside);
		}
	}
}

struct helper reaper = HELPER(reaper, run);
