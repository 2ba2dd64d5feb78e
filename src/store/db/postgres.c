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

#include "base/cleanup.h"
#include "base/clock.h"

enum {
	POLL_MS = 200,         /* how soon a stop is noticed */
	ANSWER_MS = 60 * 1000, /* a server that says nothing for so long is gone */
	COMMANDS_MAX = 64 << 10,
	LOCK = 0x6b6f696e, /* "koin": who holds it has the store */
};

static void keep_message(struct pg *db, const char *words)
{
	snprintf(db->message, sizeof(db->message), "%s", words ? words : "");
	db->message[strcspn(db->message, "\n")] = '\0';
}

int pg_fault(struct pg *db, const PGresult *result)
{
	/* By SQLSTATE, the longer first. */
	static const struct {
		const char *state;
		int fault;
	} faults[] = {
		{"23505", -EEXIST},    {"53100", -ENOSPC},  {"53200", -ENOMEM},  {"25006", -EROFS},
		{"42501", -EACCES},    {"40001", -EBUSY},   {"40P01", -EBUSY},   {"55P03", -EBUSY},
		{"57014", -ECANCELED}, {"58030", -EIO},     {"57P01", -EIO},     {"57P02", -EIO},
		{"57P03", -EIO},       {"XX001", -EBADMSG}, {"XX002", -EBADMSG}, {"08", -EIO},
		{"53", -EBUSY},        {"54", -EMSGSIZE},   {"28", -EACCES},
	};
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	keep_message(db, PQresultErrorMessage(result));
	for (size_t i = 0; state && i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (strncmp(state, faults[i].state, strlen(faults[i].state)) == 0)
			return faults[i].fault;
	}
	return state ? -EINVAL : -EIO;
}

int pg_lost(struct pg *db)
{
	keep_message(db, PQerrorMessage(db->conn));
	return -EIO;
}

/* ---- a round trip ---- */

/* Whether something can be read in time. */
static int wait_readable(struct pg *db, uint64_t end)
{
	struct pollfd p = {.fd = PQsocket(db->conn), .events = POLLIN};

	while (p.fd >= 0 && clock_steady_ms() < end) {
		int n = poll(&p, 1, POLL_MS);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (atomic_load(&db->place->stop))
			end = end < clock_steady_ms() + 2000 ? end : clock_steady_ms() + 2000;
	}
	keep_message(db, "the server does not answer");
	return -EIO;
}

int pg_answer(struct pg *db, PGresult **ret)
{
	uint64_t end = clock_steady_ms() + ANSWER_MS;

	while (PQisBusy(db->conn)) {
		if (wait_readable(db, end) != 0) {
			/* Whatever it would still say is not waited for. */
			PQfinish(db->conn);
			db->conn = NULL;
			return -EIO;
		}
		if (!PQconsumeInput(db->conn))
			return pg_lost(db);
	}
	*ret = PQgetResult(db->conn);
	return 0;
}

/* The answer to one command, which NULL ends. */
static int take_answer(struct pg *db, PGresult **ret)
{
	PGresult *more = NULL;
	int r = pg_answer(db, ret);

	if (r != 0)
		return r;
	if (!*ret)
		return pg_lost(db);
	if (PQresultStatus(*ret) != PGRES_PIPELINE_SYNC)
		r = pg_answer(db, &more);
	PQclear(more);
	return r;
}

static bool went_well(const PGresult *result)
{
	ExecStatusType s = PQresultStatus(result);

	return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK || s == PGRES_PIPELINE_SYNC;
}

/* The writer's transaction names itself in the answer to a question that goes out with BEGIN. */
static void note_transaction(struct pg *db, const PGresult *result)
{
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQnfields(result) == 1 &&
	    strcmp(PQfname(result, 0), "koine_transaction") == 0)
		snprintf(db->transaction, sizeof(db->transaction), "%s", PQgetvalue(result, 0, 0));
}

int pg_round(struct pg *db, unsigned n_commands, unsigned which, PGresult **ret)
{
	PGresult *wanted = NULL;
	int fault = 0, r = 0;

	if (!PQpipelineSync(db->conn))
		return pg_lost(db);
	for (unsigned i = 0; i <= n_commands && r == 0; i++) {
		PGresult *result = NULL;

		r = take_answer(db, &result);
		if (r == 0 && fault == 0 && !went_well(result)) {
			fault = pg_fault(db, result);
			db->failed_at = i;
		}
		if (r == 0)
			note_transaction(db, result);
		if (i == which)
			wanted = result;
		else
			PQclear(result);
	}
	if (r == 0)
		r = fault;
	if (r == 0 && ret)
		*ret = wanted;
	else
		PQclear(wanted);
	return r;
}

/* What is said most, prepared with each connection: its place is its name. */
static const char *const often[] = {
	"SAVEPOINT one_call",
	"RELEASE one_call",
	"ROLLBACK TO one_call",
	"BEGIN",
	"COMMIT",
	"SAVEPOINT one_insert",
	"RELEASE one_insert",
	"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
	"ROLLBACK",
};
enum { N_OFTEN = sizeof(often) / sizeof(often[0]) };

static void name_often(unsigned i, char out[PG_NAME_MAX])
{
	snprintf(out, PG_NAME_MAX, "often%u", i);
}

static int prepare_often(struct pg *db)
{
	for (unsigned i = 0; i < N_OFTEN; i++) {
		char name[PG_NAME_MAX];

		name_often(i, name);
		if (!PQsendPrepare(db->conn, name, often[i], 0, NULL))
			return pg_lost(db);
	}
	return pg_round(db, N_OFTEN, 0, NULL);
}

int pg_send_command(struct pg *db, const char *command)
{
	unsigned i = 0;
	char name[PG_NAME_MAX];
	int sent;

	while (i < N_OFTEN && strcmp(command, often[i]) != 0)
		i++;
	name_often(i, name);
	sent = i < N_OFTEN ? PQsendQueryPrepared(db->conn, name, 0, NULL, NULL, NULL, 0)
			   : PQsendQueryParams(db->conn, command, 0, NULL, NULL, NULL, NULL, 0);
	return sent ? 0 : pg_lost(db);
}

/* Each of the words, ended by NUL, as a command of its own. */
static int send_each(struct pg *db, const struct buf *words, const char *before, unsigned *n)
{
	int r = 0;

	for (size_t at = 0; at < words->len && r == 0; ++*n) {
		char command[120];

		snprintf(command, sizeof(command), "%s%s", before, words->data + at);
		at += strlen(words->data + at) + 1;
		r = pg_send_command(db, command);
	}
	return r;
}

int pg_send_first(struct pg *db, unsigned *ret_n)
{
	/* In a transaction that failed nothing can be forgotten; what waits would mend it. */
	bool forgets = !db->in_transaction || db->first.len > 0;
	unsigned n = 0;
	int r = send_each(db, &db->first, "", &n);

	buf_clear(&db->first);
	if (r == 0 && forgets) {
		r = send_each(db, &db->dropped, "DEALLOCATE ", &n);
		buf_clear(&db->dropped);
	}
	*ret_n = n;
	return r;
}

/* ---- connecting ---- */

/* What is asked of every connection, behind what the address says. */
static PGconn *connect_to(const char *url)
{
	static const char *const keys[] = {"dbname",          "fallback_application_name",
					   "connect_timeout", "tcp_user_timeout",
					   "keepalives_idle", "client_encoding",
					   "options",         NULL};
	const char *const values[] = {
		url,
		"koined",
		"10",
		"10000",
		"5",
		"UTF8",
		"-c search_path=koine -c standard_conforming_strings=on -c bytea_output=hex"
		" -c idle_in_transaction_session_timeout=120000 -c default_transaction_isolation="
		"read\\ committed -c TimeZone=UTC -c client_min_messages=warning",
		NULL};

	return PQconnectdbParams(keys, values, 1);
}

static int connect_now(struct pg *db)
{
	db->conn = connect_to(db->place->url);
	if (!db->conn)
		return -ENOMEM;
	if (PQstatus(db->conn) != CONNECTION_OK)
		return pg_lost(db);
	db->life++;
	db->in_transaction = false;
	buf_clear(&db->first);
	buf_clear(&db->dropped);
	return PQenterPipelineMode(db->conn) ? prepare_often(db) : pg_lost(db);
}

int pg_ready(struct pg *db)
{
	if (PQstatus(db->conn) == CONNECTION_OK)
		return 0;
	/* A batch is lost with its connection; only its end may still be asked for. */
	if (db->in_transaction || db->kind == CONNECTION_WRITER)
		return -EIO;
	PQfinish(db->conn);
	return connect_now(db);
}

int pg_simple(struct pg *db, const char *sql, PGresult **ret)
{
	unsigned n = 0;
	int r = pg_send_first(db, &n);

	if (r == 0)
		r = pg_send_command(db, sql);
	return r != 0 ? r : pg_round(db, n + 1, n, ret);
}

/* The lock goes with the connection, however that ends. */
static int take_lock(struct pg *db)
{
	PGresult *result = NULL;
	char lock[80];
	int r;

	snprintf(lock, sizeof(lock), "SELECT pg_try_advisory_lock(%d, 1)", LOCK);
	r = pg_simple(db, lock, &result);
	if (r == 0 && PQgetvalue(result, 0, 0)[0] != 't')
		r = -EBUSY;
	PQclear(result);
	return r;
}

int pg_connect_again(struct pg *db)
{
	int r;

	PQfinish(db->conn);
	r = connect_now(db);
	return r == 0 && db->kind == CONNECTION_WRITER ? take_lock(db) : r;
}

static int read_number(struct pg *db, const char *sql, int64_t *ret)
{
	PGresult *result = NULL;
	int r = pg_simple(db, sql, &result);

	if (r != 0)
		return r;
	*ret = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
	PQclear(result);
	return 0;
}

/* Not in a pipeline. */
int pg_exec(void *handle, const char *sql)
{
	struct pg *db = handle;
	PGresult *result = NULL;
	unsigned n = 0;
	int r = pg_send_first(db, &n);

	if (r == 0 && n > 0)
		r = pg_round(db, n, 0, NULL);
	if (r != 0)
		return r;
	if (!PQexitPipelineMode(db->conn))
		return pg_lost(db);
	result = PQexec(db->conn, sql);
	if (!went_well(result))
		r = pg_fault(db, result);
	PQclear(result);
	if (!PQenterPipelineMode(db->conn))
		return pg_lost(db);
	return r;
}

static void pg_disconnect(void *handle)
{
	struct pg *db = handle;

	PQfinish(db->conn);
	buf_done(&db->first);
	buf_done(&db->dropped);
	free(db);
}

static const char *pg_message(const void *db)
{
	return ((const struct pg *)db)->message;
}

static int explain(const void *place, const void *db, int fault, struct why *why)
{
	const struct pg_place *p = place;
	const char *words = db ? pg_message(db) : "";

	if (fault == -EROFS || fault == -EACCES || fault == -EPERM)
		return refuse(why, REFUSE_FORBIDDEN, "cannot use %s: %s", p->shown, words);
	if (fault == -EBUSY)
		return refuse(why, REFUSE_CONFLICT, "another koined is using %s", p->shown);
	refuse(why, REFUSE_INTERNAL, "cannot use %s: %s", p->shown, words);
	return fault;
}

/* A database whose schema `koine` has tables that are not ours is left alone. */
static int look_inside(struct pg *db, struct why *why)
{
	int64_t n = 0, ours = 0;
	int r = read_number(db, "SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'", &n)
			?: read_number(db,
				       "SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'"
				       " AND tablename = 'koine_schema'",
				       &ours);

	if (r != 0)
		return explain(db->place, db, r, why);
	if (n > 0 && ours == 0)
		return refuse(why, REFUSE_CONFLICT,
			      "the schema koine of %s is another program's; it is left alone",
			      db->place->shown);
	return 0;
}

static int refuse_old(struct pg *db, struct why *why)
{
	int version = PQserverVersion(db->conn);

	return version >= 130000
		       ? 0
		       : refuse(why, REFUSE_PARAMS, "%s is PostgreSQL %d; it must be 13 or newer",
				db->place->shown, version / 10000);
}

static int connect_and_look(struct pg *db, struct why *why)
{
	int r = connect_now(db);

	if (r != 0)
		return explain(db->place, db, r, why);
	r = refuse_old(db, why);
	return r != 0 ? r : look_inside(db, why);
}

static int pg_connect(void *place, enum connection_kind kind, void **ret_db, struct why *why)
{
	struct pg *db = calloc(1, sizeof(*db));
	int r;

	if (!db)
		return -ENOMEM;
	db->place = place;
	db->kind = kind;
	buf_init(&db->first, COMMANDS_MAX);
	buf_init(&db->dropped, COMMANDS_MAX);
	r = connect_and_look(db, why);
	if (r != 0)
		pg_disconnect(db);
	else
		*ret_db = db;
	return r;
}

static int pg_hold(void *db)
{
	return take_lock(db);
}

static int pg_claim(void *db)
{
	int r = take_lock(db);

	return r != 0 ? r
		      : pg_exec(db, "CREATE SCHEMA IF NOT EXISTS koine;"
				    "CREATE TABLE IF NOT EXISTS koine.koine_schema"
				    " (version INTEGER NOT NULL)");
}

static int pg_version(void *db, int *ret_version)
{
	int64_t n = 0;
	int r = read_number(db,
			    "SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'"
			    " AND tablename = 'koine_schema'",
			    &n);

	if (r == 0 && n > 0)
		r = read_number(db, "SELECT coalesce(max(version), 0) FROM koine.koine_schema", &n);
	if (r == 0)
		*ret_version = (int)n;
	return r;
}

static int pg_set_version(void *db, int version)
{
	char sql[120];

	snprintf(sql, sizeof(sql),
		 "DELETE FROM koine_schema; INSERT INTO koine_schema (version) VALUES (%d)",
		 version);
	return pg_exec(db, sql);
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
static void show(struct pg_place *p, const PQconninfoOption *options)
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
static int check_address(struct pg_place *p, struct why *why)
{
	PQconninfoOption *options = PQconninfoParse(p->url, NULL);
	int r = 0;

	if (!options) {
		r = refuse(why, REFUSE_PARAMS, "libpq does not understand the address");
	} else if (option_of(options, "password")) {
		r = refuse(why, REFUSE_PARAMS,
			   "an address must not contain a password, which others could see: put it "
			   "into"
			   " ~/.pgpass, PGPASSWORD or the file of PGPASSFILE");
	} else {
		show(p, options);
	}
	PQconninfoFree(options);
	return r;
}

static void pg_close(void *place)
{
	struct pg_place *p = place;

	free(p->url);
	free(p);
}

static int pg_open(const char *address, void **ret_place, struct why *why)
{
	struct pg_place *p = calloc(1, sizeof(*p));
	int r = p && asprintf(&p->url, "postgresql:%s", address) >= 0 ? 0 : -ENOMEM;

	if (r == 0)
		r = check_address(p, why);
	if (r == 0)
		*ret_place = p;
	else if (p)
		pg_close(p);
	return r;
}

static int pg_check(const char *address, struct why *why)
{
	void *place = NULL;
	int r = pg_open(address, &place, why);

	if (r == 0)
		pg_close(place);
	return r;
}

static int pg_look(const char *address, struct why *why)
{
	void *place = NULL, *db = NULL;
	int r = pg_open(address, &place, why);

	if (r == 0)
		r = pg_connect(place, CONNECTION_READER, &db, why);
	if (r == 0)
		pg_disconnect(db);
	if (place)
		pg_close(place);
	return r;
}

static const char *pg_path(const void *place)
{
	return ((const struct pg_place *)place)->shown;
}

/* The server, and the number of the database in it: a copy that was restored elsewhere differs. */
static int pg_place_id(const void *place, char out[STORE_PLACE_MAX])
{
	static const char sql[] =
		"SELECT s.system_identifier || ':' || d.oid FROM pg_database AS d,"
		" pg_control_system() AS s WHERE datname = current_database()";
	PGconn *c = connect_to(((const struct pg_place *)place)->url);
	PGresult *result = c ? PQexec(c, sql) : NULL;
	int r = result && PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : -EIO;

	if (r == 0)
		snprintf(out, STORE_PLACE_MAX, "pg:%s", PQgetvalue(result, 0, 0));
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

static int64_t pg_inserted(void *db)
{
	return ((const struct pg *)db)->inserted;
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

static int pg_backup(void *place, const char *path, struct why *why)
{
	return refuse(why, REFUSE_UNAVAILABLE,
		      "this store is a PostgreSQL database: use pg_dump --schema=koine");
}

static int pg_quick_check(void *place, void *db, struct why *why)
{
	return 0;
}

const struct store_ops postgres_ops = {
	.scheme = "postgresql",
	.begin = {"BEGIN"},
	.check = pg_check,
	.look = pg_look,
	.open = pg_open,
	.close = pg_close,
	.path = pg_path,
	.place_id = pg_place_id,
	.connect = pg_connect,
	.hold = pg_hold,
	.claim = pg_claim,
	.disconnect = pg_disconnect,
	.explain = explain,
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
	.bind_null = pg_bind_null,
	.bind_int = pg_bind_int,
	.bind_double = pg_bind_double,
	.bind_text = pg_bind_text,
	.bind_blob = pg_bind_blob,
	.step = pg_step,
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
	.stop = pg_stop,
};
