#include "store/host/host.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "store/db/driver.h"
#include "store/db/query.h"
#include "store/db/rows.h"

static const struct row_kind kind = NOUN_KIND(struct host, &host_portrait);

int store_host_draw_epoch(struct connection *c, int64_t *ret_epoch)
{
	/* At least the time: a counter that lost commits, or was restored, would give the numbers of lives
	 * that are not over yet to others. */
	QUERY sql = {
		"UPDATE meta SET value = CAST(greatest(CAST(value AS BIGINT) + 1, koine_now()) AS "
		"TEXT)"
		" WHERE key = 'host_epoch' RETURNING CAST(value AS BIGINT)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return query_find_int(q, ret_epoch);
}

int store_host_find(struct connection *c, struct text name, struct arena *arena,
		    struct host *ret_host, bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM host WHERE name = :name", .of = &host_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", name);
	return rows_take_one(&kind, q, arena, ret_host, ret_found);
}

int store_host_join(struct connection *c, const struct host *us, int64_t lease_ms, int64_t before,
		    bool ended, bool *ret_joined)
{
	QUERY sql = {
		"INSERT INTO host (name, epoch, state, boot, labels, version, since_ms, seen_ms,"
		" lease_ms, running, parallel) VALUES (:name, :epoch, 0, :boot, :labels, :version,"
		" koine_now(), koine_now(), koine_now() + :lease, 0, :parallel)"
		" ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, state = 0,"
		" boot = excluded.boot, labels = excluded.labels, version = excluded.version,"
		" since_ms = excluded.since_ms, seen_ms = excluded.seen_ms,"
		" lease_ms = excluded.lease_ms, running = 0, parallel = excluded.parallel"
		" WHERE host.epoch = :before AND (host.state <> 0 OR :ended <> 0) RETURNING epoch"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", us->name);
	query_bind_int(q, ":epoch", us->epoch);
	query_bind_text(q, ":boot", us->boot);
	query_bind_text(q, ":labels", us->labels);
	query_bind_text(q, ":version", us->version);
	query_bind_int(q, ":lease", lease_ms);
	query_bind_int(q, ":parallel", us->parallel);
	query_bind_int(q, ":before", before);
	query_bind_int(q, ":ended", ended);
	return query_run_found(q, ret_joined);
}

int store_host_renew(struct connection *c, const struct host *us, int64_t lease_ms, bool *ret_alive)
{
	QUERY sql = {"UPDATE host SET seen_ms = koine_now(), lease_ms = koine_now() + :lease,"
		     " running = :running WHERE name = :name AND epoch = :epoch AND state = 0"
		     " RETURNING epoch"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":lease", lease_ms);
	query_bind_int(q, ":running", us->running);
	query_bind_text(q, ":name", us->name);
	query_bind_int(q, ":epoch", us->epoch);
	return query_run_found(q, ret_alive);
}

int store_host_leave(struct connection *c, struct text name, int64_t epoch)
{
	QUERY sql = {"UPDATE host SET state = 1, since_ms = koine_now(), running = 0"
		     " WHERE name = :name AND epoch = :epoch AND state = 0"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", name);
	query_bind_int(q, ":epoch", epoch);
	return query_run(q);
}

int store_host_lose(struct connection *c, const struct host *seen, bool *ret_lost)
{
	QUERY sql = {"UPDATE host SET state = 2, since_ms = koine_now(), running = 0"
		     " WHERE name = :name AND epoch = :epoch AND seen_ms = :seen AND state = 0"
		     " AND (lease_ms < koine_now() OR seen_ms > koine_now()) RETURNING epoch"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", seen->name);
	query_bind_int(q, ":epoch", seen->epoch);
	query_bind_int(q, ":seen", seen->seen_ms);
	return query_run_found(q, ret_lost);
}

int store_host_now(struct connection *c, int64_t *ret_now_ms)
{
	QUERY sql = {"SELECT koine_now()"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return query_find_int(q, ret_now_ms);
}

int store_host_list(struct connection *c, struct arena *arena, struct host **ret_hosts,
		    unsigned *ret_n, int64_t *ret_now_ms)
{
	QUERY sql = {"SELECT {columns} FROM host ORDER BY name", .of = &host_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct row_list list = {.kind = &kind, .arena = arena};

	return rows_take_all(q, &list, ret_hosts, ret_n) ?: store_host_now(c, ret_now_ms);
}

int store_host_forget(struct connection *c, struct text name, bool *ret_found)
{
	QUERY sql = {"DELETE FROM host WHERE name = :name AND state <> 0 RETURNING epoch"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", name);
	return query_run_found(q, ret_found);
}

int store_host_log(struct connection *c, int64_t seen, struct host_log *ret)
{
	QUERY sql = {"SELECT coalesce((SELECT min(seq) FROM event), 0), n.last_seq,"
		     " coalesce((SELECT time_ms FROM event WHERE seq = n.last_seq), 0),"
		     " coalesce((SELECT time_ms FROM event WHERE seq = :seen), 0)"
		     " FROM event_counter AS n WHERE n.id = 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool row = false;
	int r;

	query_bind_int(q, ":seen", seen);
	r = query_next(q, &row);
	if (r != 0)
		return r;
	*ret = (struct host_log) {0};
	if (row)
		*ret = (struct host_log) {.first = query_int(q, 0),
					  .last = query_int(q, 1),
					  .last_ms = query_int(q, 2),
					  .seen_ms = query_int(q, 3)};
	return 0;
}

int store_host_whole(struct connection *c)
{
	return c->ops->whole(c->db);
}

int store_host_tell(struct connection *c)
{
	return c->ops->tell(c->db);
}

int store_host_hear(struct connection *c, int fd, int timeout_ms, bool *ret_told)
{
	return c->ops->hear(c->db, fd, timeout_ms, ret_told);
}
