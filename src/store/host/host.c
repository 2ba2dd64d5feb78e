#include "store/host/host.h"

#include "store/db/driver.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_host_draw_epoch(struct connection *c, int64_t *ret_epoch)
{
	/* At least the time: a counter that lost commits, or was restored, would give the numbers of lives
	 * that are not over yet to others. */
	QUERY sql = {
		"UPDATE meta SET value = CAST(greatest(CAST(value AS BIGINT) + 1, koine_now()) AS "
		"TEXT)"
		" WHERE key = 'host_epoch' RETURNING CAST(value AS BIGINT)"};

	return query_find_int(c, &sql, ret_epoch);
}

int store_host_find(struct connection *c, struct text name, struct arena *arena,
		    struct host *ret_host, bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM host WHERE name = :name", .of = &host_schema};

	return rows_find(c, &sql, arena, ret_host, ret_found, BIND(":name", name));
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

	return query_find(c, &sql, ret_joined, BIND(":name", us->name), BIND(":epoch", us->epoch),
			  BIND(":boot", us->boot), BIND(":labels", us->labels),
			  BIND(":version", us->version), BIND(":lease", lease_ms),
			  BIND(":parallel", us->parallel), BIND(":before", before),
			  BIND(":ended", ended));
}

int store_host_renew(struct connection *c, const struct host *us, int64_t lease_ms, bool *ret_alive)
{
	QUERY sql = {"UPDATE host SET seen_ms = koine_now(), lease_ms = koine_now() + :lease,"
		     " running = :running WHERE name = :name AND epoch = :epoch AND state = 0"
		     " RETURNING epoch"};

	return query_find(c, &sql, ret_alive, BIND(":lease", lease_ms),
			  BIND(":running", us->running), BIND(":name", us->name),
			  BIND(":epoch", us->epoch));
}

int store_host_leave(struct connection *c, struct text name, int64_t epoch)
{
	QUERY sql = {"UPDATE host SET state = 1, since_ms = koine_now(), running = 0"
		     " WHERE name = :name AND epoch = :epoch AND state = 0"};

	return query_do(c, &sql, BIND(":name", name), BIND(":epoch", epoch));
}

int store_host_lose(struct connection *c, const struct host *seen, bool *ret_lost)
{
	QUERY sql = {"UPDATE host SET state = 2, since_ms = koine_now(), running = 0"
		     " WHERE name = :name AND epoch = :epoch AND seen_ms = :seen AND state = 0"
		     " AND (lease_ms < koine_now() OR seen_ms > koine_now()) RETURNING epoch"};

	return query_find(c, &sql, ret_lost, BIND(":name", seen->name), BIND(":epoch", seen->epoch),
			  BIND(":seen", seen->seen_ms));
}

int store_host_now(struct connection *c, int64_t *ret_now_ms)
{
	QUERY sql = {"SELECT koine_now()"};

	return query_find_int(c, &sql, ret_now_ms);
}

int store_host_list(struct connection *c, struct arena *arena, struct host **ret_hosts,
		    unsigned *ret_n, int64_t *ret_now_ms)
{
	QUERY sql = {"SELECT {columns} FROM host ORDER BY name", .of = &host_schema};
	return rows_all(c, &sql, arena, ret_hosts, ret_n) ?: store_host_now(c, ret_now_ms);
}

int store_host_forget(struct connection *c, struct text name, bool *ret_found)
{
	QUERY sql = {"DELETE FROM host WHERE name = :name AND state <> 0 RETURNING epoch"};

	return query_find(c, &sql, ret_found, BIND(":name", name));
}

int store_host_log(struct connection *c, int64_t seen, struct host_log *ret)
{
	QUERY sql = {"SELECT n.last_seq,"
		     " coalesce((SELECT time_ms FROM event WHERE seq = n.last_seq), 0),"
		     " coalesce((SELECT time_ms FROM event WHERE seq = :seen), 0)"
		     " FROM event_counter AS n WHERE n.id = 1"};
	_Static_assert(sizeof(*ret) == 3 * sizeof(int64_t), "numbers side by side");
	return query_find_ints(c, &sql, &ret->last, 3, NULL, BIND(":seen", seen));
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
