/*
 * SQLite as a store: write-ahead log, every commit synced.
 *
 * Nothing is written before sqlite_claim, not even when a connection closes. (Closing would
 * otherwise copy the log of a file that we refuse into it.)
 */
#include "store/db/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/db/schema.h"

enum {
	APPLICATION_ID = 0x6b6f696e, /* "koin" */
	BUSY_STEP_MS = 100,          /* for strangers that have the file open: we have one writer */
	BUSY_TRIES = 56,             /* five seconds in all */
};

static bool file_is_full(sqlite3_file *file)
{
	int err = 0;

	if (!file || !file->pMethods)
		return false;
	file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &err);
	return err == EDQUOT || err == EFBIG;
}

/* A quota or a file size limit also means no room, but SQLite has only one number for it.
 * sqlite3_system_errno() would not help: a failing commit does not set it. */
static bool out_of_quota(sqlite3 *db)
{
	sqlite3_file *file = NULL, *log = NULL;

	sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	return file_is_full(log) || file_is_full(file);
}

static int fault_of_disk(sqlite3 *db, int rc)
{
	int err = sqlite3_system_errno(db);

	if (rc == SQLITE_IOERR_NOMEM)
		return -ENOMEM;
	/* The index of the log, which is made before anything is read. */
	if (rc == SQLITE_IOERR_SHMSIZE)
		return err == ENOSPC || err == EDQUOT || err == EFBIG ? -ENOSPC : -EIO;
	return rc == SQLITE_IOERR_WRITE && out_of_quota(db) ? -ENOSPC : -EIO;
}

static int fault_of_open(sqlite3 *db)
{
	int err = sqlite3_system_errno(db);

	return err > 0 ? -err : -EIO;
}

static int fault_of_rule(int rc)
{
	return rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE ? -EEXIST
										    : -EINVAL;
}

int sqlite_fault(sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_IOERR:
		return fault_of_disk(db, rc);
	case SQLITE_CANTOPEN:
		return fault_of_open(db);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
		return -EACCES;
	case SQLITE_AUTH:
		return -EPERM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_CONSTRAINT:
		return fault_of_rule(rc);
	case SQLITE_TOOBIG:
		return -EMSGSIZE;
	case SQLITE_INTERRUPT:
		return -ECANCELED;
	default: /* its other codes mean that we called it wrongly */
		return -EINVAL;
	}
}

static int exec(void *db, const char *sql)
{
	return sqlite_fault(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

static const char *message(const void *db)
{
	return sqlite3_errmsg((sqlite3 *)db);
}

static int sqlite_explain(const void *place, const void *db, int fault, struct error *error)
{
	const struct sqlite_place *p = place;
	const char *tail = db_file_tail(p->file.path);

	if (fault == -EBADMSG)
		return refuse(error, REFUSE_CONFLICT, "%s is damaged (%s); refusing to change it",
			      tail, message(db));
	if (fault == -EROFS || fault == -EACCES || fault == -EPERM)
		return refuse(error, REFUSE_FORBIDDEN, "cannot write %s: %s", tail, message(db));
	if (fault == -EBUSY)
		return refuse(error, REFUSE_CONFLICT, "another program is using %s", tail);
	/* SQLite's "database or disk is full" names two causes. */
	refuse(error, REFUSE_INTERNAL, "cannot use %s: %s", tail,
	       fault == -ENOSPC ? "no space left on device" : message(db));
	return fault;
}

int sqlite_read_number(sqlite3 *db, const char *sql, int *ret)
{
	sqlite3_stmt *st;
	int rc;

	rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (rc != SQLITE_OK)
		return sqlite_fault(db, rc);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -EIO : sqlite_fault(db, rc);
}

static int sqlite_open(const char *address, void **ret_place, struct error *error)
{
	CLEANUP(freep) struct sqlite_place *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = db_file_hold(&p->file, address, APPLICATION_ID, error);
	if (r != 0)
		return r;
	*ret_place = TAKE(p);
	return 0;
}

static void sqlite_close(void *place)
{
	struct sqlite_place *p = place;

	db_file_drop(&p->file);
	free(p);
}

static int sqlite_place_id(const void *place, char out[STORE_PLACE_MAX])
{
	const struct sqlite_place *p = place;
	struct stat st;

	if (fstat(p->file.fd, &st) != 0)
		return -errno;
	snprintf(out, STORE_PLACE_MAX, "%llx:%llx", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return 0;
}

static void sqlite_stop(void *place)
{
	atomic_store(&((struct sqlite_place *)place)->stop, true);
}

static const char *sqlite_path(const void *place)
{
	const struct sqlite_place *p = place;

	return p->file.path;
}

/* Readers would all contend for the counters of memory in use, which nobody looks at. */
static void configure_once(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* Retry soon at first, since most locks are short. A stop does not wait for them. */
static int wait_for_stranger(void *place, int n_tries)
{
	const struct sqlite_place *p = place;

	if (n_tries >= BUSY_TRIES || atomic_load(&p->stop))
		return 0;
	sqlite3_sleep(n_tries < 7 ? 1 << n_tries : BUSY_STEP_MS);
	return 1;
}

static int sqlite_settle(struct sqlite_place *p, sqlite3 *db, enum connection_kind kind)
{
	/* Keep temporary tables in memory: stored data must not appear in another file. */
	static const char common[] = "PRAGMA foreign_keys = ON;"
				     "PRAGMA trusted_schema = OFF;"
				     "PRAGMA cell_size_check = ON;"
				     "PRAGMA mmap_size = 0;"
				     "PRAGMA temp_store = MEMORY;"
				     /* What is deleted is overwritten, not only forgotten. */
				     "PRAGMA secure_delete = ON;";
	int r;

	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_handler(db, wait_for_stranger, p);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	r = exec(db, common);
	if (r != 0)
		return r;
	return exec(db, kind == CONNECTION_WRITER ? "PRAGMA cache_size = -8192"
						  : "PRAGMA cache_size = -2048");
}

/* Reads what every later query relies on, so that damage there shows up now. */
static int look(struct sqlite_place *p, sqlite3 *db, struct error *error)
{
	int id = 0, n_objects = 0, r;

	r = sqlite_read_number(db, "PRAGMA application_id", &id)
		    ?: sqlite_read_number(db, "SELECT count(*) FROM sqlite_schema", &n_objects);
	if (r != 0)
		return sqlite_explain(p, db, r, error);
	if (id != APPLICATION_ID && (id != 0 || n_objects != 0))
		return refuse(error, REFUSE_CONFLICT,
			      "%s is another program's database; refusing to change it",
			      db_file_tail(p->file.path));
	return 0;
}

int sqlite_connect(void *place, enum connection_kind kind, void **ret_db, struct error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sqlite_place *p = place;
	const int mode = kind == CONNECTION_WRITER ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	sqlite3 *db = NULL;
	int rc, r;

	pthread_once(&once, configure_once);
	/* No mutex: a connection belongs to one thread. */
	rc = sqlite3_open_v2(p->file.path, &db, mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
			     NULL);
	if (!db)
		return -ENOMEM;
	r = sqlite_fault(db, rc) ?: sqlite_settle(p, db, kind);
	if (r == 0 && kind == CONNECTION_WRITER && sqlite3_db_readonly(db, "main") == 1)
		r = -EROFS;
	r = r != 0 ? sqlite_explain(p, db, r, error) : look(p, db, error);
	if (r != 0)
		sqlite3_close(db);
	else
		*ret_db = db;
	return r;
}

/* Without a log nothing but the file is read. With a log and its index, the index is read or built in memory. */
static void format_uri(const char *path, const char *how, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "file:");

	for (; *path && n + 4 < size; path++) {
		bool plain = strchr("%?#", *path) == NULL;

		n += (size_t)snprintf(out + n, size - n, plain ? "%c" : "%%%02X", *path);
	}
	snprintf(out + n, size - n, "?mode=ro%s", how);
}

/* A file without a first transaction has no tables, and one with a journal can be judged only by changing it. */
static int find_tables(const struct db_file *f, bool *ret_has, const char **ret_how)
{
	int log = 0, index = 0, journal = 0, r = 0;
	struct stat st;

	*ret_has = false;
	if (f->fd < 0)
		return 0;
	if (fstat(f->fd, &st) != 0)
		return -errno;
	r = db_file_exists(f->path, "-journal", &journal)
		    ?: db_file_exists(f->path, "-wal", &log)
		    ?: db_file_exists(f->path, "-shm", &index);
	*ret_has = r == 0 && st.st_size > 0 && !journal;
	*ret_how = !log ? "&immutable=1" : index ? "&readonly_shm=1" : "";
	return r;
}

static int open_to_look(struct sqlite_place *p, const char *how, void **ret_db, struct error *error)
{
	char uri[3 * DB_PATH_MAX + 64];
	sqlite3 *db = NULL;
	int rc;

	format_uri(p->file.path, how, uri, sizeof(uri));
	rc = sqlite3_open_v2(uri, &db,
			     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
				     SQLITE_OPEN_NOFOLLOW,
			     NULL);
	if (!db)
		return -ENOMEM;
	*ret_db = db;
	rc = sqlite_fault(db, rc) ?: sqlite_settle(p, db, CONNECTION_READER);
	return rc != 0 ? sqlite_explain(p, db, rc, error) : look(p, db, error);
}

static int sqlite_look(const char *address, const char *accepted, char *ret_note, size_t size,
		       void **ret_place, void **ret_db, struct error *error)
{
	CLEANUP(freep) struct sqlite_place *p = calloc(1, sizeof(*p));
	const char *how;
	bool has;
	int r;

	if (!p)
		return -ENOMEM;
	r = db_file_look(&p->file, address, APPLICATION_ID, error);
	if (r != 0)
		return r;
	r = find_tables(&p->file, &has, &how);
	if (r != 0)
		db_file_cannot(error, "access", p->file.path, -r);
	else if (has)
		r = open_to_look(p, how, ret_db, error);
	*ret_place = TAKE(p);
	return r;
}

void sqlite_disconnect(void *db)
{
	int rc = sqlite3_close(db);

	assert(rc == SQLITE_OK);
	(void)rc;
}

/* This pragma answers with the mode now in effect, which may still be the old one. */
static int use_log(sqlite3 *db)
{
	sqlite3_stmt *st;
	const char *mode = NULL;
	int rc, r;

	rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &st, NULL);
	if (rc != SQLITE_OK)
		return sqlite_fault(db, rc);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		mode = (const char *)sqlite3_column_text(st, 0);
	if (mode)
		r = strcmp(mode, "wal") == 0 ? 0 : -ENOTSUP;
	else
		r = rc == SQLITE_ROW ? -ENOMEM : sqlite_fault(db, rc);
	sqlite3_finalize(st);
	return r;
}

static int sqlite_claim(void *db)
{
	char claim[120];
	int id = 0, r;

	/* Do this before the log exists, so that the file itself always says whose it is. Only
	 * before its first page can a file be told that it may shrink. */
	r = sqlite_read_number(db, "PRAGMA application_id", &id);
	snprintf(claim, sizeof(claim),
		 "BEGIN; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = %d; COMMIT",
		 APPLICATION_ID);
	if (r == 0 && id != APPLICATION_ID)
		r = exec(db, claim);
	if (r == 0)
		r = use_log(db);
	if (r != 0)
		return r;
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	/* The log is copied into the file when it reaches 16 MB. Ids and hashes touch pages all
	 * over the file; the later the copy, the more changes share one page write. */
	r = exec(db, "PRAGMA synchronous = FULL;"
		     "PRAGMA wal_autocheckpoint = 4000;"
		     "PRAGMA journal_size_limit = 16777216;");
	return r != 0 ? r : sqlite_rewrite_to_shrink(db);
}

static int version(void *db, int *ret_version)
{
	return sqlite_read_number(db, "PRAGMA user_version", ret_version);
}

static int set_version(void *db, int number)
{
	char sql[48];

	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", number);
	return exec(db, sql);
}

static bool in_transaction(void *db)
{
	return !sqlite3_get_autocommit(db);
}

static int still_there(void *db)
{
	int moved = 0;

	sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	return moved ? -ESTALE : 0;
}

static int sqlite_prepare(void *db, const struct query *query, const char *sql, const char *many,
			  void **ret_st)
{
	sqlite3_stmt *st;
	int r;

	r = sqlite_fault(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL));
	if (r == 0)
		*ret_st = st;
	return r;
}

static void finalize(void *st)
{
	sqlite3_finalize(st);
}

static void reset(void *st)
{
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
}

static void rewind_statement(void *st)
{
	sqlite3_reset(st);
}

static int sqlite_place_of(void *st, const char *name)
{
	return sqlite3_bind_parameter_index(st, name);
}

/* No address means NULL. */
static int bind(void *st, int place, const struct query_value *v)
{
	int rc = SQLITE_MISUSE;

	switch (v->kind) {
	case QUERY_INT:
		rc = sqlite3_bind_int64(st, place, v->n);
		break;
	case QUERY_DOUBLE:
		rc = sqlite3_bind_double(st, place, v->d);
		break;
	case QUERY_TEXT:
		rc = sqlite3_bind_text64(st, place, v->t.data, v->t.len, SQLITE_STATIC,
					 SQLITE_UTF8);
		break;
	case QUERY_BLOB:
		rc = sqlite3_bind_blob64(st, place, v->t.data, v->t.len, SQLITE_STATIC);
		break;
	case QUERY_NOUN:
		break;
	}
	return sqlite_fault(sqlite3_db_handle(st), rc);
}

static int step(void *st, bool *ret_row)
{
	int rc = sqlite3_step(st);

	*ret_row = rc == SQLITE_ROW;
	return sqlite_fault(sqlite3_db_handle(st), rc);
}

static bool column_null(void *st, int i)
{
	return sqlite3_column_type(st, i) == SQLITE_NULL;
}

static int64_t column_int(void *st, int i)
{
	return sqlite3_column_int64(st, i);
}

static double column_double(void *st, int i)
{
	return sqlite3_column_double(st, i);
}

static int column_text(void *st, int i, struct text *ret_text)
{
	const char *data;

	if (column_null(st, i))
		return 0;
	data = (const char *)sqlite3_column_text(st, i);
	if (!data)
		return -ENOMEM;
	*ret_text = (struct text) {.data = data, .len = (size_t)sqlite3_column_bytes(st, i)};
	return 0;
}

static int column_blob(void *st, int i, struct text *ret_bytes)
{
	const void *data;

	if (column_null(st, i))
		return 0;
	data = sqlite3_column_blob(st, i);
	/* SQLite returns no address for an empty value; here that would mean NULL, not "". */
	if (!data && sqlite3_column_bytes(st, i) > 0)
		return -ENOMEM;
	*ret_bytes = (struct text) {.data = data ? data : "",
				    .len = (size_t)sqlite3_column_bytes(st, i)};
	return 0;
}

static int64_t changes(void *db)
{
	return sqlite3_total_changes64(db);
}

static int64_t inserted(void *st)
{
	return sqlite3_last_insert_rowid(sqlite3_db_handle(st));
}

const struct store_ops sqlite_ops = {
	.scheme = "sqlite",
	.begin = {"BEGIN IMMEDIATE"},
	.look = sqlite_look,
	.makes = sqlite_makes,
	.open = sqlite_open,
	.close = sqlite_close,
	.path = sqlite_path,
	.place_id = sqlite_place_id,
	.connect = sqlite_connect,
	.claim = sqlite_claim,
	.disconnect = sqlite_disconnect,
	.explain = sqlite_explain,
	.message = message,
	.version = version,
	.set_version = set_version,
	.steps = sqlite_steps,
	.n_steps = &sqlite_n_steps,
	.at_once = true,
	.exec = exec,
	.in_transaction = in_transaction,
	.still_there = still_there,
	.prepare = sqlite_prepare,
	.finalize = finalize,
	.reset = reset,
	.rewind = rewind_statement,
	.place_of = sqlite_place_of,
	.bind = bind,
	.step = step,
	.column_null = column_null,
	.column_int = column_int,
	.column_double = column_double,
	.column_text = column_text,
	.column_blob = column_blob,
	.inserted = inserted,
	.changes = changes,
	.columns = {SQLITE_COLUMNS},
	.set_triggers = sqlite_set_triggers,
	.last_number = {SQLITE_LAST_NUMBER},
	.set_last_number = sqlite_set_last_number,
	.space = sqlite_space,
	.scrub = sqlite_scrub,
	.give_back = sqlite_give_back,
	.backup = sqlite_backup,
	.quick_check = sqlite_quick_check,
	.stop = sqlite_stop,
};
