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
	PGresult *result = other ? PQexec(other, "SELECT pg_backend_pid()") : NULL;
	bool told = PQresultStatus(result) == PGRES_TUPLES_OK;
	int r = told ? 0 : -EIO;

	if (!told) {
		pg_keep_message(db, PQerrorMessage(other));
	} else if (atoi(PQgetvalue(result, 0, 0)) == atoi(session)) {
		pg_keep_message(db, "a pooler in between gives a session to each transaction, and "
				    "koined needs its own: use pool_mode = session");
		r = -EPERM;
	}
	PQclear(result);
	PQfinish(other);
	return r;
}

/* The server, too, has to notice that one of us is gone: until then it keeps the locks of what that one
 * was doing. */
int pg_begin_session(struct pg *db)
{
	PGresult *result = NULL;
	char sql[1200];
	int r;

	snprintf(sql, sizeof(sql),
		 "SELECT pg_backend_pid(), set_config('search_path', 'koine', false),"
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
	r = pg_simple(db, sql, &result);
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

int pg_note_lineage(struct pg *db)
{
	return db->place->lineage[0] ? 0 : read_lineage(db, db->place->lineage);
}

/* Commits are kept in their order. So a standby that has the last event that we know of, unchanged, has
 * everything that was committed before it. */
static int has_last_event(struct pg *db, int64_t seen, int64_t seen_ms, bool *ret_has)
{
	PGresult *result = NULL;
	char sql[80];
	int r;

	snprintf(sql, sizeof(sql), "SELECT time_ms FROM koine.event WHERE seq = %lld",
		 (long long)seen);
	r = pg_simple(db, sql, &result);
	if (r == 0)
		*ret_has =
			seen == 0 || (PQntuples(result) == 1 &&
				      (seen_ms == 0 || atoll(PQgetvalue(result, 0, 0)) == seen_ms));
	PQclear(result);
	return r;
}

static int compare_lineage(struct pg *db, const char *now)
{
	struct pg_place *p = db->place;
	size_t timeline = (size_t)(strrchr(now, ' ') - now);
	bool has = false;
	int r = 0;

	if (strcmp(now, p->lineage) == 0)
		return 0;
	if (strncmp(now, p->lineage, timeline + 1) == 0)
		r = has_last_event(db, p->seen, p->seen_ms, &has);
	if (r == 0 && has)
		strcpy(p->lineage, now);
	if (r != 0 || has)
		return r;
	atomic_store(&p->rewound, true);
	pg_keep_message(db, "the database has lost commits in a fail-over, or was restored: koined "
			    "starts anew");
	return -ESTALE;
}

int pg_check_lineage(struct pg *db)
{
	char now[PG_LINEAGE_MAX];
	int r = db->place->lineage[0] ? read_lineage(db, now) : 0;

	if (r != 0 || !db->place->lineage[0])
		return r;
	/* Somebody is at work there, as in the middle of a restore: it is not known yet what comes of it. */
	if (strstr(now, "  ")) {
		pg_keep_message(db, "the tables of koine are not there");
		return -EIO;
	}
	pthread_mutex_lock(&db->place->lock);
	r = compare_lineage(db, now);
	pthread_mutex_unlock(&db->place->lock);
	return r;
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
