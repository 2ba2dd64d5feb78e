/* Shared by the files of the PostgreSQL driver. */
#pragma once

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/db/driver.h"

enum {
	PG_NAME_MAX = 24,
	PG_MESSAGE_MAX = 256,
	PG_SHOWN_MAX = 512,
	PG_PATH_MAX = 4096,
	PG_LINEAGE_MAX = 96,
	PG_PARAMS_MAX = 64,
	PG_WANTED_MAX = 512,
	PG_KEYS_MAX = 256,
	PG_LATE_MAX = 4000, /* commands; each takes some memory until its answer is read */
	PG_BINARY = 1,      /* libpq's format of texts and bytes */
};

struct pg_place {
	char *url;
	char shown[PG_SHOWN_MAX];     /* where it is, without secrets */
	char accepted[PG_PATH_MAX];   /* the file that lists accepted owners; "" if there is none */
	bool accepts;                 /* for an adoption: any owner but us alone */
	unsigned feed_ms;             /* how long the feed waits for an answer */
	char lineage[PG_LINEAGE_MAX]; /* of the database that was opened; "" until then */
	int64_t n_rules;              /* constraints and triggers in it */
	atomic_bool rewound;          /* another one is in its place now */
	pthread_mutex_t lock;         /* guards `lineage` and the next two */
	int64_t seen, seen_ms; /* the last event that we know of; ms 0: its time is not known */
	atomic_bool stop;
};

/*
 * Keys of one table that were drawn ahead. They are drawn for one batch: as many as the one before it
 * used. What is left then is not used: others may have gone past it.
 */
struct pg_keys {
	char table[PG_NAME_MAX];
	int64_t list[PG_KEYS_MAX];
	unsigned n, next;
	unsigned n_used; /* in this batch; once that is over, in the one before */
	bool stale;      /* of an earlier batch */
};

/*
 * A call of a batch has a savepoint only if it needs one. As long as it has only left statements for later,
 * those are held: kept, they are sent; undone, they are dropped.
 */
enum pg_call { CALL_NONE, CALL_HELD, CALL_SAVED };

/* Numbers that a command left for later will return: for one use of a statement, or for many. */
struct pg_wanted {
	unsigned at; /* the command, counted from 0 */
	unsigned n;
	int64_t *ret;
	size_t rows; /* the first of many in the connection's `rets` */
	unsigned n_rows;
};

/*
 * A connection. What needs no answer of its own (BEGIN, SAVEPOINT, RELEASE) waits in `first` and
 * goes out with the next statement, so that it costs no round trip. Commands that are left for later
 * are sent, and answered with the next round.
 */
struct pg_rest;

struct pg {
	struct pg_place *place;
	enum connection_kind kind;
	PGconn *conn;
	uint64_t life; /* counts connections: what was prepared on an earlier one is gone */
	uint64_t n_prepared;
	struct buf first;   /* commands, each ended by NUL */
	struct buf dropped; /* names of statements to forget, likewise */
	enum pg_call call;
	struct buf held; /* statements of the current call, see postgres_call.c */
	struct buf kept; /* and of those before it, not sent yet */
	struct buf rets; /* where wanted numbers of many rows go */
	unsigned n_late; /* commands left for later */
	struct pg_wanted wanted[PG_WANTED_MAX]; /* in the order of their commands */
	unsigned n_wanted;
	struct pg_rest *stream; /* whose rows are under way; NULL: nobody's */
	struct pg_keys keys;
	bool in_transaction;
	bool alone;                    /* it has the store's lock for itself */
	int64_t writer;                /* our row of the table writer; 0: none yet */
	char transaction[PG_NAME_MAX]; /* the server's name of the writer's; "" where not known */
	int64_t batch;                 /* and our own, if we have a row */
	int64_t changes;
	unsigned failed_at; /* which command of the last round failed, counted from 0 */
	char message[PG_MESSAGE_MAX];
	bool waited; /* the last fault: others held a lock for too long */
};

/* ---- postgres_round.c ---- */

/* -errno for what the server answered, whose words are kept in `message`. */
int pg_fault(struct pg *db, const PGresult *result);
/* Words for the next explanation. */
void pg_keep_message(struct pg *db, const char *words);
/* The same for a connection that is gone. */
int pg_lost(struct pg *db);
/* Returns r, or what it means. A batch is lost with its connection, and with a fault that nothing
 * but the whole of it can be undone for. */
int pg_note_fault(struct pg *db, int r);
/* What is sent before the next statement. */
int pg_add_first(struct pg *db, const char *command);

/* A new connection in place of one that is lost. The writer takes hold of the store again. */
int pg_connect_again(struct pg *db);
/* Connects again where it must. Not inside a transaction. */
int pg_ready(struct pg *db);
/* Waits for the next answer. *ret is NULL between those of two commands. */
int pg_answer(struct pg *db, PGresult **ret);
/*
 * Reads the answers to these commands and to those left for later, and returns that of one. A fault
 * is that of the first command that failed. Where that was left for later, the transaction is over.
 */
int pg_round(struct pg *db, unsigned n_commands, unsigned which, PGresult **ret);
/* The answers to these commands and to those left for later, and no further. */
int pg_round_to(struct pg *db, unsigned n_commands);
/* The answer to one command of a pipeline, which NULL ends. */
int pg_take_answer(struct pg *db, PGresult **ret);
/* Sends one command without parameters, behind others. */
int pg_send_command(struct pg *db, const char *command);
/* One command after what waits. */
int pg_simple(struct pg *db, const char *sql, PGresult **ret);
/* Sends what waits; *n grows. */
int pg_send_waiting(struct pg *db, unsigned *n);
/* The same, and forgets statements. How many commands went out. */
int pg_send_first(struct pg *db, unsigned *ret_n);

/* Waits for what was left for later. */
int pg_settle(void *db);
/* The same, if there is too much of it for one more. */
int pg_settle_some(struct pg *db);
/* The numbers that the command that is sent next will return are wanted. */
void pg_want(struct pg *db, const struct pg_wanted *wanted);

/* Several statements in one text, without parameters or rows. */
int pg_read_number(struct pg *db, const char *sql, int64_t *ret);
int pg_exec(void *db, const char *sql);

/* ---- postgres_text.c ---- */

bool pg_needs_marks(struct text t);
bool pg_has_marks(struct text t);
/* A text as it is kept, and as it was before; NULL: no memory. */
char *pg_put_marks(struct text t, size_t *ret_len);
char *pg_take_marks(struct text t, size_t *ret_len);
unsigned char pg_hex_byte(const char *at);

/* ---- postgres_stream.c ---- */

/* Rows that come one by one, each as a result of its own. */
struct pg_rest {
	struct pg *db;    /* NULL: none are under way */
	PGresult **taken; /* what was read ahead, since somebody wanted the connection */
	size_t n, next;
	int fault; /* after those */
};

/* The query that was sent behind `n_before` commands is answered row by row. */
int pg_stream_begin(struct pg *db, unsigned n_before, struct pg_rest *rest);
/* The next row; *ret is NULL at the end. */
int pg_stream_next(struct pg_rest *rest, PGresult **ret);
/* No more of them are wanted. */
void pg_stream_end(struct pg_rest *rest);
/* Somebody else has something to send: what is left is read first. */
void pg_stream_absorb(struct pg *db);

/* ---- postgres_session.c ---- */

/* Never NULL but without memory; PQstatus says whether it is connected. */
PGconn *pg_connect_to(const struct pg_place *p, enum connection_kind kind);
/* Of a new connection, which is in pipeline mode: its settings. */
int pg_begin_session(struct pg *db);
/* Remembers what is connected to, if nothing is remembered yet. */
int pg_note_lineage(struct pg *db);
/* -ESTALE if it is another one. */
int pg_check_lineage(struct pg *db);
/* -EIO while another one is being restored in its place. */
int pg_whole(void *db);
bool pg_rewound(const void *place);
void pg_note_event(void *place, int64_t seq, int64_t time_ms);

/* ---- postgres_owner.c: see also driver.h ---- */

/* What distinguishes a database from a copy that was restored elsewhere. The casts leave no operator
 * to choose: one of another role, in a schema that everybody may write to, could fit better. */
#define PG_PLACE_ID                                                                                \
	"SELECT 'pg:' || CAST(s.system_identifier AS TEXT) || ':' || CAST(d.oid AS TEXT)"          \
	" FROM pg_database AS d, pg_control_system() AS s WHERE d.datname = current_database()"

/* Refuses a schema of which anything belongs to a role that is neither ours nor accepted, and for an adoption one
 * that is ours. */
int pg_check_owners(struct pg *db, struct error *error);
/* -EBUSY if a role that is not ours holds this advisory lock, which the message then names. */
int pg_name_holder(struct pg *db, int lock, int number);
/* "" unless the server is on another machine and is not authenticated. */
void pg_note_server(struct pg *db, char *ret_note, size_t size);
void pg_set_accepted(void *place, const char *file, bool all);
int pg_accept(void *db, const char *next, char *ret_roles, size_t size, struct error *error);

/* ---- postgres_feed.c: see driver.h ---- */

/* What a feed asks for when it is connected. */
int pg_listen(struct pg *db);
int pg_tell(void *db);
int pg_hear(void *db, int fd, int timeout_ms, bool *ret_told);
void pg_set_feed(void *place, unsigned answer_ms);

/* A text of ours in the server's words: `:name` becomes `$1`. `names` gets each name, ended by NUL. */
int pg_spell(const char *sql, struct buf *out, struct buf *names);

/* ---- postgres_statement.c ---- */

int pg_prepare(void *db, const struct query *query, const char *sql, const char *many,
	       void **ret_st);
int64_t pg_inserted(void *st);
void pg_finalize(void *st);
void pg_reset(void *st);
void pg_rewind(void *st);
int pg_place_of(void *st, const char *name);
int pg_bind(void *st, int place, const struct query_value *value);
int pg_step(void *st, bool *ret_row);
int pg_later(void *st, int64_t *ret, unsigned n);
bool pg_column_null(void *st, int i);
int64_t pg_column_int(void *st, int i);
double pg_column_double(void *st, int i);
int pg_column_text(void *st, int i, struct text *ret_text);
int pg_column_blob(void *st, int i, struct text *ret_bytes);

/* Prepares it, where it is not. */
struct pg_statement;
struct pg_bound;
int pg_many_ready(struct pg *db, struct pg_statement *st, struct pg_bound *ret_bound);
/* The parameter of the other form that has the same name as this one. */
unsigned pg_many_param(const struct pg_statement *st, unsigned i);

/* ---- postgres_call.c ---- */

/* One that runs with what is bound: numbers as texts ended by NUL, the rest as it is. */
struct pg_bound {
	const char *name; /* prepared */
	unsigned n;
	const char *const *values; /* NULL: SQL's */
	const int *lengths, *formats;
	const bool *bytes;         /* it is no text */
	struct pg_statement *many; /* NULL: each use is one */
	int64_t *ret;              /* what the first columns of its first row are wanted in */
	unsigned n_ret;
};

/* The same as bytes in a buffer: this, and then each of its values. */
struct pg_use {
	char name[PG_NAME_MAX];
	size_t size; /* of all */
	unsigned n, n_ret;
	int64_t *ret;
	struct pg_statement *many;
};

struct pg_value {
	const char *data; /* ended by NUL; NULL: SQL's */
	int len;
	int format;
	bool bytes;
};

/* They return what comes behind. */
const char *pg_take_use(const char *at, struct pg_use *ret);
const char *pg_take_value(const char *at, struct pg_value *ret);

int pg_send_bound(struct pg *db, const struct pg_bound *bound);
int pg_call_begin(struct pg *db);
int pg_call_keep(struct pg *db);
int pg_call_undo(struct pg *db);
/* The call needs its savepoint: whatever comes next is sent at once. */
int pg_call_save(struct pg *db);
/* Holds a statement until the call is kept; outside of calls it is kept. */
int pg_call_hold(struct pg *db, const struct pg_bound *bound);
/* Nothing is left of it, nor of what was kept. */
void pg_call_forget(struct pg *db);
/* Whatever is said next must come behind what is kept. */
int pg_send_kept(struct pg *db);
/* One of them. */
int pg_send_use(struct pg *db, const char *use);

/* ---- postgres_many.c ---- */

int pg_send_uses(struct pg *db, const struct buf *uses);

/* ---- postgres_keys.c ---- */

int pg_draw_key(void *db, const char *table, int64_t *ret_key);
/* A batch begins. */
void pg_keys_begin(struct pg_keys *keys);

/* ---- postgres_schema.c ---- */

extern const char *const pg_steps[];
extern const int pg_n_steps;

/* ---- postgres_move.c: see driver.h ---- */

#define PG_COLUMNS                                                                                 \
	"SELECT t.relname, c.attname, CASE format_type(c.atttypid, NULL) WHEN 'bigint' THEN 'i'"   \
	" WHEN 'double precision' THEN 'd' WHEN 'text' THEN 't' WHEN 'bytea' THEN 'b' ELSE '?' "   \
	"END,"                                                                                     \
	" coalesce(array_position(string_to_array(CAST(k.indkey AS text), ' '),"                   \
	" CAST(c.attnum AS text)), 0) FROM pg_class AS t"                                          \
	" JOIN pg_namespace AS s ON s.oid = t.relnamespace AND s.nspname = 'koine'"                \
	" JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped"    \
	" LEFT JOIN pg_index AS k ON k.indrelid = t.oid AND k.indisprimary"                        \
	" WHERE t.relkind = 'r' ORDER BY t.oid, c.attnum"

/* The sequence that belongs to a table's key. */
#define PG_NUMBERS                                                                                 \
	" FROM pg_depend AS d JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'"           \
	" JOIN pg_class AS t ON t.oid = d.refobjid"                                                \
	" JOIN pg_namespace AS s ON s.oid = t.relnamespace AND s.nspname = 'koine'"                \
	" WHERE d.deptype = 'i' AND d.classid = CAST('pg_class' AS regclass)"
#define PG_LAST_NUMBER                                                                             \
	"SELECT coalesce(max(pg_sequence_last_value(q.oid)), 0)" PG_NUMBERS                        \
	" AND t.relname = :table"

int pg_set_triggers(void *db, bool on);
int pg_set_last_number(void *db, const char *table, int64_t number);
