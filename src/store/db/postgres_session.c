/*
 * What a session is asked to be. Its settings are said once it is there, and not with its beginning:
 * a pooler in between takes none then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/db/postgres.h"

enum {
	CONNECT_S = 10,
	LOCKS_MS = 30 * 1000, /* that others hold; shorter than an answer may take */
	/* A writer that stands still in a transaction holds what all hosts need. */
	WRITER_IDLE_MS = 10 * 1000,
	READER_IDLE_MS = 120 * 1000,
};

/* Of a feed that is to say something every few seconds, less than of others. */
static unsigned connect_seconds(const struct pg_place *p, enum connection_kind kind)
{
	unsigned seconds = kind == CONNECTION_FEED ? p->feed_ms / 1000 : CONNECT_S;

	return seconds < 2 ? 2 : seconds;
}

/* What stands before the address is what it may say otherwise. */
PGconn *pg_connect_to(const struct pg_place *p, enum connection_kind kind)
{
	static const char *const keys[] = {"target_session_attrs",      "dbname",
					   "fallback_application_name", "connect_timeout",
					   "tcp_user_timeout",          "keepalives_idle",
					   "client_encoding",           NULL};
	char seconds[16], timeout[16];
	const char *const values[] = {"read-write", p->url, "koined", seconds,
				      timeout,      "5",    "UTF8",   NULL};

	snprintf(seconds, sizeof(seconds), "%u", connect_seconds(p, kind));
	snprintf(timeout, sizeof(timeout), "%u", connect_seconds(p, kind) * 1000);
	return PQconnectdbParams(keys, values, 1);
}

/*
 * Behind a pooler that gives a session to each transaction, two connections that stand still are the
 * same one at the server. Whatever belongs to a session would be anybody's there: settings, locks,
 * prepared statements, what we listen to.
 */
static int check_pooler(struct pg *db, const char *session)
{
	PGconn *other = pg_connect_to(db->place, db->kind);
	PGresult *result = other ? PQexec(other, "SELECT pg_catalog.pg_backend_pid()") : NULL;
	bool told = PQresultStatus(result) == PGRES_TUPLES_OK;
	int r = told ? 0 : -EIO;

	if (!told) {
		pg_keep_message(db, PQerrorMessage(other));
	} else if (atoi(PQgetvalue(result, 0, 0)) == atoi(session)) {
		pg_keep_message(
			db,
			"the connection pooler does not keep sessions: set pool_mode = session");
		r = -EPERM;
	}
	PQclear(result);
	PQfinish(other);
	return r;
}

/* The server, too, has to notice that one of us is gone: until then it keeps the locks of what that one
 * was doing. The search path comes first, by a command that looks up no function: until then it is the one of
 * the database's owner, and a function of that role would run as us. */
int pg_begin_session(struct pg *db)
{
	PGresult *result = NULL;
	char sql[1200];
	int r;

	snprintf(sql, sizeof(sql),
		 "SELECT pg_backend_pid(),"
		 " set_config('standard_conforming_strings', 'on', false),"
		 " set_config('bytea_output', 'hex', false),"
		 " set_config('default_transaction_isolation', 'read committed', false),"
		 " set_config('TimeZone', 'UTC', false),"
		 " set_config('client_min_messages', 'warning', false),"
		 " set_config('statement_timeout', '0', false),"
		 " set_config('lock_timeout', '%d', false),"
		 " set_config('idle_in_transaction_session_timeout', '%d', false),"
		 " set_config('tcp_keepalives_idle', '5', false),"
		 " set_config('tcp_keepalives_interval', '2', false),"
		 " set_config('tcp_keepalives_count', '3', false),"
		 " set_config('tcp_user_timeout', '10000', false)",
		 LOCKS_MS, db->kind == CONNECTION_READER ? READER_IDLE_MS : WRITER_IDLE_MS);
	r = pg_simple(db, "SET search_path = koine", NULL) ?: pg_simple(db, sql, &result);
	/* A pooler has made up the number that came with the connection. */
	if (r == 0 && db->kind == CONNECTION_WRITER &&
	    atoi(PQgetvalue(result, 0, 0)) != PQbackendPID(db->conn))
		r = check_pooler(db, PQgetvalue(result, 0, 0));
	PQclear(result);
	return r;
}

/*
 * What is connected to: the server, the database, a table in it and, last, the timeline. After a restore
 * one of the first three is another, after a fail-over to a standby the timeline.
 */
static int read_lineage(struct pg *db, char out[PG_LINEAGE_MAX])
{
	static const char sql[] =
		"SELECT (" PG_PLACE_ID
		") || ' ' || coalesce(CAST(CAST(to_regclass('koine.event') AS"
		" oid) AS TEXT), '') || ' ' || CASE WHEN pg_is_in_recovery() THEN ''"
		" ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END";
	PGresult *result = NULL;
	int r = pg_simple(db, sql, &result);

	if (r == 0)
		snprintf(out, PG_LINEAGE_MAX, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return r;
}

/* A dump makes them after all rows are there. */
static int count_rules(struct pg *db, int64_t *ret_n)
{
	return pg_read_number(db,
			      "SELECT (SELECT count(*) FROM pg_constraint"
			      " WHERE connamespace = to_regnamespace('koine')) + (SELECT count(*)"
			      " FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
			      " WHERE c.relnamespace = to_regnamespace('koine'))",
			      ret_n);
}

int pg_whole(void *handle)
{
	struct pg *db = handle;
	int64_t n = 0;
	int r = count_rules(db, &n);

	if (r != 0 || n >= db->place->n_rules)
		return r;
	pg_keep_message(db, "koine's tables are incomplete; a restore may be in progress");
	return -EIO;
}

int pg_note_lineage(struct pg *db)
{
	if (db->place->lineage[0])
		return 0;
	return read_lineage(db, db->place->lineage) ?: count_rules(db, &db->place->n_rules);
}

/* Changed: the log has another event with that number, so it is another history. */
enum last_event { EVENT_THERE, EVENT_GONE, EVENT_CHANGED, LOG_ENDS_BEFORE };

/* What is known of the database that was opened. A copy: nobody waits while another one is asked. */
struct known {
	char lineage[PG_LINEAGE_MAX];
	int64_t seen, seen_ms; /* as in struct pg_place */
};

static struct known copy_known(struct pg_place *p)
{
	struct known k;

	pthread_mutex_lock(&p->lock);
	k = (struct known) {.seen = p->seen, .seen_ms = p->seen_ms};
	memcpy(k.lineage, p->lineage, sizeof(k.lineage));
	pthread_mutex_unlock(&p->lock);
	return k;
}

/* Commits are kept in their order. So a database that has the last event that we know of, unchanged, has
 * everything that was committed before it. */
static int find_last_event(struct pg *db, const struct known *k, enum last_event *ret)
{
	PGresult *result = NULL;
	char sql[200];
	int r;

	snprintf(sql, sizeof(sql),
		 "SELECT n.last_seq >= %lld, e.time_ms FROM koine.event_counter AS n"
		 " LEFT JOIN koine.event AS e ON e.seq = %lld WHERE n.id = 1",
		 (long long)k->seen, (long long)k->seen);
	r = pg_simple(db, sql, &result);
	if (r != 0)
		return r;
	if (PQntuples(result) != 1 || PQgetvalue(result, 0, 0)[0] != 't')
		*ret = LOG_ENDS_BEFORE;
	else if (k->seen > 0 && PQgetisnull(result, 0, 1))
		*ret = EVENT_GONE;
	else if (k->seen > 0 && k->seen_ms != 0 && atoll(PQgetvalue(result, 0, 1)) != k->seen_ms)
		*ret = EVENT_CHANGED;
	else
		*ret = EVENT_THERE;
	PQclear(result);
	return 0;
}

static void take_lineage(struct pg_place *p, const char *now)
{
	pthread_mutex_lock(&p->lock);
	strcpy(p->lineage, now);
	pthread_mutex_unlock(&p->lock);
}

static int compare_lineage(struct pg *db, const struct known *k, const char *now)
{
	size_t timeline = (size_t)(strrchr(now, ' ') - now);
	bool same = strcmp(now, k->lineage) == 0;
	enum last_event event = LOG_ENDS_BEFORE;
	int r = 0;

	if (strncmp(now, k->lineage, timeline + 1) == 0)
		r = find_last_event(db, k, &event);
	if (r != 0)
		return r;
	/* A copy of the server's files that was put back has the same timeline. On another one, an event
	 * that only the sweep has deleted counts as lost. */
	if (event == EVENT_THERE || (event == EVENT_GONE && same)) {
		take_lineage(db->place, now);
		return 0;
	}
	r = pg_whole(db);
	if (r != 0)
		return r;
	atomic_store(&db->place->rewound, true);
	pg_keep_message(db, "the database lost commits in a failover or was restored from a "
			    "backup; koined restarts");
	return -ESTALE;
}

int pg_check_lineage(struct pg *db)
{
	struct known k = copy_known(db->place);
	char now[PG_LINEAGE_MAX];
	int r = k.lineage[0] ? read_lineage(db, now) : 0;

	if (r != 0 || !k.lineage[0])
		return r;
	/* Somebody is at work there, as in the middle of a restore: it is not known yet what comes of it. */
	if (strstr(now, "  ")) {
		pg_keep_message(db, "koine's tables are missing");
		return -EIO;
	}
	return compare_lineage(db, &k, now);
}

void pg_note_event(void *place, int64_t seq, int64_t time_ms)
{
	struct pg_place *p = place;

	pthread_mutex_lock(&p->lock);
	if (seq > p->seen) {
		p->seen = seq;
		p->seen_ms = time_ms;
	}
	pthread_mutex_unlock(&p->lock);
}

bool pg_rewound(const void *place)
{
	return atomic_load(&((const struct pg_place *)place)->rewound);
}
