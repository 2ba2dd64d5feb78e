/* What several koined tell each other through the server: LISTEN and NOTIFY, without content. */
#include <errno.h>
#include <poll.h>

#include "store/db/postgres.h"

int pg_listen(struct pg *db)
{
	return pg_simple(db, "LISTEN koine", NULL);
}

int pg_tell(void *handle)
{
	struct pg *db = handle;

	return pg_ready(db) ?: pg_simple(db, "NOTIFY koine", NULL);
}

/* Whether somebody else has said something. We hear ourselves, too. */
static bool was_told(PGconn *c)
{
	bool told = false;
	PGnotify *n;

	while ((n = PQnotifies(c))) {
		told = told || n->be_pid != PQbackendPID(c);
		PQfreemem(n);
	}
	return told;
}

int pg_hear(void *handle, int fd, int timeout_ms, bool *ret_told)
{
	struct pg *db = handle;
	uint64_t life = db->life;
	int r = pg_ready(db);
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}};

	*ret_told = false;
	if (r != 0)
		return r;
	/* What was said while it was not connected was not heard. */
	*ret_told = db->life != life || was_told(db->conn);
	if (*ret_told)
		return 0;
	p[1] = (struct pollfd) {.fd = PQsocket(db->conn), .events = POLLIN};
	if (poll(p, 2, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	if (p[1].revents != 0 && !PQconsumeInput(db->conn))
		return pg_lost(db);
	*ret_told = was_told(db->conn);
	return 0;
}

void pg_set_feed(void *place, unsigned answer_ms)
{
	((struct pg_place *)place)->feed_ms = answer_ms;
}
