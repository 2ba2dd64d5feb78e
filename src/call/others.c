#include "call/server.h"

#include <sys/resource.h>

/* o->n: there is none. */
static unsigned others_find(const struct others *o, uid_t uid)
{
	unsigned i = 0;

	while (i < o->n && o->list[i].uid != uid)
		i++;
	return i;
}

/* The kernel may give us fewer descriptors than the settings want connections. */
static unsigned share(unsigned connections)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < connections)
		connections = (unsigned)limit.rlim_cur;
	return connections / 2;
}

bool others_fit(const struct others *o, const struct peer *peer, unsigned each,
		unsigned connections)
{
	unsigned i;

	if (!peer->other)
		return true;
	i = others_find(o, peer->uid);
	return i < OTHERS_MAX && (i == o->n || o->list[i].n < each) &&
	       o->total < share(connections);
}

void others_add(struct others *o, const struct peer *peer)
{
	unsigned i;

	if (!peer->other)
		return;
	i = others_find(o, peer->uid);
	if (i == o->n) {
		o->list[i].uid = peer->uid;
		o->list[i].n = 0;
		o->n++;
	}
	o->list[i].n++;
	o->total++;
}

void others_remove(struct others *o, const struct peer *peer)
{
	unsigned i;

	if (!peer->other)
		return;
	i = others_find(o, peer->uid);
	o->total--;
	if (--o->list[i].n == 0)
		o->list[i] = o->list[--o->n];
}
