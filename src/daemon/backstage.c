#include "daemon/backstage.h"

#include <errno.h>

#include "engine/services.h"

static int submit(void *arg, struct work *work, bool writes)
{
	struct backstage *b = arg;

	if (b->closed)
		return -ECANCELED;
	return server_submit(b->server, work, writes ? WRITER : READER);
}

struct background backstage(struct backstage *b)
{
	return (struct background) {.submit = submit, .arg = b};
}

struct work *backstage_trailer(void *arg)
{
	struct services *services = ((struct backstage *)arg)->services;

	return services_trails(services) ? services_trailer(services) : NULL;
}
