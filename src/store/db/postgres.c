/*
 * PostgreSQL as a store: libpq in pipeline mode, each statement prepared once for a connection.
 *
 * Everything is in a schema of its own, `koine`, so a database may be shared with others. A
 * connection that is lost outside a transaction is made again by the next statement; inside one,
 * the batch is lost with it. Whether a commit whose answer never came has happened is asked, not
 * guessed: the writer knows its transaction's number before it commits.
 */
#include "store/db/postgres.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMMANDS_MAX = 64 << 10,
	HELD_BYTES_MAX = 64 << 20, /* one statement may have a large text */
	RETS_BYTES_MAX = 4 << 20,
	LOCK = 0x6b6f696e, /* "koin": of the two locks below */
};

/*
 * Each koined shares the store's lock for as long as it is connected; a move, and whoever changes the
 * tables, has it alone. Who begins to use the store has the door's, so that they come one by one.
 */
enum lock { LOCK_STORE = 1, LOCK_DOOR };

/* ---- connecting ---- */

static int connect_now(struct pg *db)
{
	int r;

	db->conn = pg_connect_to(db->place, db->kind);
	if (!db->conn)
		return -ENOMEM;
	if (PQstatus(db->conn) != CONNECTION_OK)
		return pg_lost(db);
	db->life++;
	db->in_transaction = false;
	db->n_late = 0;
	db->n_wanted = 0;
	pg_call_forget(db);
	buf_clear(&db->first);
	buf_clear(&db->dropped);
	buf_clear(&db->rets);
	r = PQenterPipelineMode(db->conn) && PQsetnonblocking(db->conn, 1) == 0
		    ? pg_begin_session(db) ?: pg_check_lineage(db)
		    : pg_lost(db);
	return r == 0 && db->kind == CONNECTION_FEED ? pg_listen(db) : r;
}

/* The server may have ended it while nothing was asked: then that can be read by now. */
static bool is_there(struct pg *db)
{
	struct pollfd p = {.fd = PQsocket(db->conn), .events = POLLIN};

	while (PQstatus(db->conn) == CONNECTION_OK && !db->in_transaction && poll(&p, 1, 0) > 0) {
		if (!PQconsumeInput(db->conn))
			return false;
	}
	return PQstatus(db->conn) == CONNECTION_OK;
}

int pg_ready(struct pg *db)
{
	pg_stream_absorb(db);
	if (is_there(db))
		return 0;
	/* A batch is lost with its connection; only its end may still be asked for. */
	if (db->in_transaction || db->kind == CONNECTION_WRITER)
		return -EIO;
	PQfinish(db->conn);
	return connect_now(db);
}

/* Calls one of the server's functions for locks. A lock goes with the connection, however that ends. */
static int call_lock(struct pg *db, const char *function, enum lock lock, bool *ret_done)
{
	PGresult *result = NULL;
	char sql[80];
	int r;

	snprintf(sql, sizeof(sql), "SELECT %s(%d, %d)", function, LOCK, lock);
	r = pg_simple(db, sql, &result);
	if (r == 0)
		*ret_done = PQgetvalue(result, 0, 0)[0] != 'f';
	PQclear(result);
	return r;
}

static int take_lock(struct pg *db, const char *function, const char *refusal)
{
	bool done;
	int r = call_lock(db, function, LOCK_STORE, &done);

	if (r != 0 || done)
		return r;
	r = pg_name_holder(db, LOCK, LOCK_STORE);
	if (r == 0) {
		pg_keep_message(db, refusal);
		r = -EBUSY;
	}
	return r;
}

static int share_lock(struct pg *db)
{
	return take_lock(db, "pg_try_advisory_lock_shared",
			 "`koine store move` is using the store");
}

/* Other koined hold it for a moment. */
static int take_door(struct pg *db)
{
	bool done;
	int r = call_lock(db, "pg_try_advisory_lock", LOCK_DOOR, &done);

	if (r != 0 || done)
		return r;
	return pg_name_holder(db, LOCK, LOCK_DOOR)
		       ?: call_lock(db, "pg_advisory_lock", LOCK_DOOR, &done);
}

int pg_connect_again(struct pg *db)
{
	int r;

	PQfinish(db->conn);
	r = connect_now(db);
	return r == 0 && db->kind == CONNECTION_WRITER ? share_lock(db) : r;
}

int pg_read_number(struct pg *db, const char *sql, int64_t *ret)
{
	PGresult *result = NULL;
	int r = pg_simple(db, sql, &result);

	if (r != 0)
		return r;
	*ret = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
	PQclear(result);
	return 0;
}

static void pg_disconnect(void *handle)
{
	struct pg *db = handle;

	PQfinish(db->conn);
	buf_done(&db->first);
	buf_done(&db->dropped);
	buf_done(&db->held);
	buf_done(&db->kept);
	buf_done(&db->rets);
	free(db);
}

static const char *pg_message(const void *db)
{
	return ((const struct pg *)db)->message;
}

static int postgres_explain(const void *place, const void *db, int fault, struct error *error)
{
	const struct pg_place *p = place;
	const char *words = db ? pg_message(db) : "";

	if (fault == -EROFS || fault == -EACCES || fault == -EPERM)
		return refuse(error, REFUSE_FORBIDDEN, "cannot use %s: %s", p->shown, words);
	if (fault == -EBUSY && !(db && ((const struct pg *)db)->waited))
		return refuse(error, REFUSE_CONFLICT, "cannot use %s: %s", p->shown,
			      *words ? words : "another koined is using the store");
	refuse(error, REFUSE_INTERNAL, "cannot use %s: %s", p->shown, words);
	return fault;
}

/* A database whose schema `koine` has tables that are not ours is left alone. */
static int look_inside(struct pg *db, struct error *error)
{
	int64_t n = 0, ours = 0;
	int r = pg_read_number(db, "SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'", &n)
			?: pg_read_number(
				   db,
				   "SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'"
				   " AND tablename = 'koine_schema'",
				   &ours);

	if (r != 0)
		return postgres_explain(db->place, db, r, error);
	if (n > 0 && ours == 0)
		return refuse(error, REFUSE_CONFLICT,
			      "the schema 'koine' in %s belongs to another program; refusing to "
			      "change it",
			      db->place->shown);
	r = pg_check_owners(db, error);
	return r < 0 ? postgres_explain(db->place, db, r, error) : r;
}

static int refuse_old(struct pg *db, struct error *error)
{
	int version = PQserverVersion(db->conn);

	return version >= 130000
		       ? 0
		       : refuse(error, REFUSE_PARAMS,
				"%s is PostgreSQL %d, but version 13 or newer is required",
				db->place->shown, version / 10000);
}

static int connect_and_look(struct pg *db, struct error *error)
{
	int r = connect_now(db);

	if (r != 0)
		return postgres_explain(db->place, db, r, error);
	r = refuse_old(db, error);
	/* The writer comes first, and whoever made a schema after that can make none in its place. */
	return r != 0 || db->kind != CONNECTION_WRITER ? r : look_inside(db, error);
}

static int pg_connect(void *place, enum connection_kind kind, void **ret_db, struct error *error)
{
	struct pg *db = calloc(1, sizeof(*db));
	int r;

	if (!db)
		return -ENOMEM;
	db->place = place;
	db->kind = kind;
	buf_init(&db->first, COMMANDS_MAX);
	buf_init(&db->dropped, COMMANDS_MAX);
	buf_init(&db->held, HELD_BYTES_MAX);
	buf_init(&db->kept, 2 * (size_t)HELD_BYTES_MAX);
	buf_init(&db->rets, RETS_BYTES_MAX);
	r = connect_and_look(db, error);
	if (r != 0)
		pg_disconnect(db);
	else
		*ret_db = db;
	return r;
}

static int pg_version(void *db, int *ret_version)
{
	int64_t n = 0;
	int r = pg_read_number(db,
			       "SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'"
			       " AND tablename = 'koine_schema'",
			       &n);

	if (r == 0 && n > 0)
		r = pg_read_number(db, "SELECT coalesce(max(version), 0) FROM koine.koine_schema",
				   &n);
	if (r == 0)
		*ret_version = (int)n;
	return r;
}

/* What a move copies has to be in the tables that every store has: see postgres_schema.c. */
static int settle_counts(struct pg *db)
{
	int version = 0;
	int r = pg_version(db, &version);

	if (r != 0 || version != pg_n_steps)
		return r;
	return pg_exec(db,
		       "SELECT koine_tally_fold(name) FROM tally_mark;"
		       "DELETE FROM koine_tally_change;"
		       "UPDATE koine_tally_next SET upto = 0, published = NULL, horizon = NULL");
}

static int pg_hold(void *db)
{
	return take_lock(db, "pg_try_advisory_lock", "another koined is using the store")
		       ?: settle_counts(db);
}

static int pg_set_version(void *db, int version)
{
	char sql[120];

	snprintf(sql, sizeof(sql),
		 "DELETE FROM koine_schema; INSERT INTO koine_schema (version) VALUES (%d)",
		 version);
	return pg_exec(db, sql);
}

/* ---- coming in ---- */

static const char older_in_use[] =
	"hosts with an older version of koine are using the tables: stop those hosts first";

/* Only who is alone may change the tables: the others know them as they are. */
static int be_alone(struct pg *db)
{
	int version = 0;
	int r = pg_version(db, &version);

	if (r != 0 || version == pg_n_steps)
		return r;
	r = take_lock(db, "pg_try_advisory_lock", older_in_use);
	db->alone = r == 0;
	return r;
}

static int pg_claim(void *handle)
{
	struct pg *db = handle;
	struct error error;
	/* Another role may have made it since it was looked at. From here on nobody else can. */
	int r = take_door(db) ?: share_lock(db)
			?: pg_exec(db, "CREATE SCHEMA IF NOT EXISTS koine")
			?: pg_check_owners(db, &error);

	if (r > 0) {
		pg_keep_message(db, error.text);
		return -EPERM;
	}
	return r	?: pg_exec(db, "CREATE TABLE IF NOT EXISTS koine.koine_schema"
				       " (version INTEGER NOT NULL)")
			?: be_alone(db);
}

/* A row of our own, by which our transactions are known (name_transaction). Old ones go. After a restore the
 * next number may be that of a host which has written since. */
static int take_row(struct pg *db)
{
	int r;

	do {
		r = pg_read_number(db,
				   "INSERT INTO writer (batch) VALUES (0) ON CONFLICT DO NOTHING"
				   " RETURNING id",
				   &db->writer);
	} while (r == 0 && db->writer == 0);
	return r
		       ?: pg_exec(db, "DELETE FROM writer WHERE id < (SELECT max(id) FROM writer) "
				      "- 1000");
}

static int pg_share(void *handle)
{
	struct pg *db = handle;
	bool done;
	int r = db->alone ? call_lock(db, "pg_advisory_unlock", LOCK_STORE, &done) : 0;

	db->alone = false;
	if (r == 0)
		r = take_row(db) ?: pg_note_lineage(db);
	return r != 0 ? r : call_lock(db, "pg_advisory_unlock", LOCK_DOOR, &done);
}

/* ---- the place ---- */

static const char *option_of(const PQconninfoOption *options, const char *name)
{
	for (const PQconninfoOption *o = options; o->keyword; o++) {
		if (strcmp(o->keyword, name) == 0)
			return o->val && *o->val ? o->val : NULL;
	}
	return NULL;
}

/* Where it is, as the address says; the rest is libpq's to find out. */
static void postgres_show(struct pg_place *p, const PQconninfoOption *options)
{
	const char *service = option_of(options, "service");
	const char *host = option_of(options, "host");
	const char *port = option_of(options, "port");
	const char *name = option_of(options, "dbname");

	if (service)
		snprintf(p->shown, sizeof(p->shown), "postgresql://?service=%s", service);
	else
		snprintf(p->shown, sizeof(p->shown), "postgresql://%s%s%s/%s", host ? host : "",
			 port ? ":" : "", port ? port : "", name ? name : "");
}

/* A password in an address is read by everybody who may list processes or settings. */
static int check_address(struct pg_place *p, struct error *error)
{
	PQconninfoOption *options = PQconninfoParse(p->url, NULL);
	int r = 0;

	if (!options) {
		r = refuse(error, REFUSE_PARAMS,
			   "invalid PostgreSQL address: expected "
			   "postgresql://[USER@]HOST[:PORT]/DATABASE");
	} else if (option_of(options, "password")) {
		r = refuse(error, REFUSE_PARAMS,
			   "the address must not contain a password, because other users could see "
			   "it: use ~/.pgpass, PGPASSWORD or PGPASSFILE");
	} else {
		postgres_show(p, options);
	}
	PQconninfoFree(options);
	return r;
}

static void pg_close(void *place)
{
	struct pg_place *p = place;

	pthread_mutex_destroy(&p->lock);
	free(p->url);
	free(p);
}

static int pg_open(const char *address, void **ret_place, struct error *error)
{
	struct pg_place *p = calloc(1, sizeof(*p));
	int r = p && asprintf(&p->url, "postgresql:%s", address) >= 0 ? 0 : -ENOMEM;

	if (p)
		pthread_mutex_init(&p->lock, NULL);
	if (r == 0)
		r = check_address(p, error);
	if (r == 0)
		*ret_place = p;
	else if (p)
		pg_close(p);
	return r;
}

static int pg_check(const char *address, struct error *error)
{
	void *place = NULL;
	int r = pg_open(address, &place, error);

	if (r == 0)
		pg_close(place);
	return r;
}

/* As a start does. The lock goes with the connection. */
static int look_at_users(struct pg *db, struct error *error)
{
	int version = 0;
	int r = pg_version(db, &version);

	if (r == 0 && version > 0 && version < pg_n_steps)
		r = take_lock(db, "pg_try_advisory_lock", older_in_use);
	return r < 0 ? postgres_explain(db->place, db, r, error) : r;
}

static int pg_look(const char *address, const char *accepted, char *ret_note, size_t size,
		   void **ret_place, void **ret_db, struct error *error)
{
	int r = pg_open(address, ret_place, error);

	if (r != 0)
		return r;
	pg_set_accepted(*ret_place, accepted, false);
	r = pg_connect(*ret_place, CONNECTION_WRITER, ret_db, error)
		    ?: look_at_users(*ret_db, error);
	if (r == 0)
		pg_note_server(*ret_db, ret_note, size);
	return r;
}

static const char *pg_path(const void *place)
{
	return ((const struct pg_place *)place)->shown;
}

/* The server, and the number of the database in it: a copy that was restored elsewhere differs. */
static int pg_place_id(const void *place, char out[STORE_PLACE_MAX])
{
	PGconn *c = pg_connect_to(place, CONNECTION_READER);
	PGresult *result = c ? PQexec(c, "SET search_path = pg_catalog;" PG_PLACE_ID) : NULL;
	int r = result && PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : -EIO;

	if (r == 0)
		snprintf(out, STORE_PLACE_MAX, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	PQfinish(c);
	return r;
}

static void pg_stop(void *place)
{
	atomic_store(&((struct pg_place *)place)->stop, true);
}

/* ---- what a file has, and a server has not ---- */

static bool pg_in_transaction(void *db)
{
	return ((const struct pg *)db)->in_transaction;
}

static int pg_still_there(void *db)
{
	return 0;
}

static int64_t pg_changes(void *db)
{
	return ((const struct pg *)db)->changes;
}

static int pg_space(void *db, struct store_space *ret_space)
{
	/* The server's own vacuum sees to it. */
	*ret_space = (struct store_space) {.shrinks = true};
	return 0;
}

static int pg_give_back(void *db, unsigned pages)
{
	return 0;
}

static int pg_backup(void *place, const char *path, struct error *error)
{
	return refuse(error, REFUSE_UNAVAILABLE,
		      "this store is a PostgreSQL database: use pg_dump --schema=koine");
}

static int pg_quick_check(void *place, void *db, struct error *error)
{
	return 0;
}

static const struct fault_name faults[] = {
	{-EIO, "the database is not responding; try again later"},
	{-ESTALE, "the database has lost commits or was restored; koined restarts"},
	{-ENXIO, "tables of the store are missing or incorrect; a restore may be in progress"},
	{-EROFS, "the database is read-only"},
	{-EBADMSG, "the database is damaged; see PostgreSQL's log"},
	{0},
};

const struct store_ops postgres_ops = {
	.scheme = "postgresql",
	.faults = faults,
	.begin = {"BEGIN"},
	.is_shared = true,
	.check = pg_check,
	.look = pg_look,
	.open = pg_open,
	.close = pg_close,
	.path = pg_path,
	.place_id = pg_place_id,
	.set_accepted = pg_set_accepted,
	.accept = pg_accept,
	.connect = pg_connect,
	.hold = pg_hold,
	.claim = pg_claim,
	.share = pg_share,
	.disconnect = pg_disconnect,
	.explain = postgres_explain,
	.message = pg_message,
	.version = pg_version,
	.set_version = pg_set_version,
	.steps = pg_steps,
	.n_steps = &pg_n_steps,
	.exec = pg_exec,
	.in_transaction = pg_in_transaction,
	.still_there = pg_still_there,
	.prepare = pg_prepare,
	.finalize = pg_finalize,
	.reset = pg_reset,
	.rewind = pg_rewind,
	.place_of = pg_place_of,
	.bind = pg_bind,
	.step = pg_step,
	.later = pg_later,
	.settle = pg_settle,
	.draw_key = pg_draw_key,
	.indexed_max = 2500, /* a third of a page */
	.column_null = pg_column_null,
	.column_int = pg_column_int,
	.column_double = pg_column_double,
	.column_text = pg_column_text,
	.column_blob = pg_column_blob,
	.inserted = pg_inserted,
	.changes = pg_changes,
	.columns = {PG_COLUMNS},
	.set_triggers = pg_set_triggers,
	.last_number = {PG_LAST_NUMBER},
	.set_last_number = pg_set_last_number,
	.space = pg_space,
	.give_back = pg_give_back,
	.backup = pg_backup,
	.quick_check = pg_quick_check,
	.rewound = pg_rewound,
	.whole = pg_whole,
	.note_event = pg_note_event,
	.set_feed = pg_set_feed,
	.tell = pg_tell,
	.hear = pg_hear,
	.stop = pg_stop,
};
