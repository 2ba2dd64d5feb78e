/* Shared by the files of the PostgreSQL driver. */
#pragma once

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/db/driver.h"

enum {
	PG_NAME_MAX = 24,
	PG_MESSAGE_MAX = 256,
	PG_SHOWN_MAX = 512,
	PG_PARAMS_MAX = 64,
};

struct pg_place {
	char *url;
	char shown[PG_SHOWN_MAX]; /* where it is, without secrets */
	atomic_bool stop;
};

/*
 * A connection. What needs no answer of its own (BEGIN, SAVEPOINT, RELEASE) waits in `first` and
 * goes out with the next statement, so that it costs no round trip.
 */
struct pg {
	struct pg_place *place;
	enum connection_kind kind;
	PGconn *conn;
	uint64_t life; /* counts connections: what was prepared on an earlier one is gone */
	uint64_t n_prepared;
	struct buf first;   /* commands, each ended by NUL */
	struct buf dropped; /* names of statements to forget, likewise */
	bool in_transaction;
	char transaction[PG_NAME_MAX]; /* the server's name of the writer's; "" where not known */
	int64_t changes;
	int64_t inserted;
	unsigned failed_at; /* which command of the last round failed, counted from 0 */
	char message[PG_MESSAGE_MAX];
};

/* -errno for what the server answered, whose words are kept in `message`. */
int pg_fault(struct pg *db, const PGresult *result);
/* The same for a connection that is gone. */
int pg_lost(struct pg *db);

/* A new connection in place of one that is lost. The writer takes hold of the store again. */
int pg_connect_again(struct pg *db);
/* Connects again where it must. Not inside a transaction. */
int pg_ready(struct pg *db);
/* Waits for the next answer. *ret is NULL between those of two commands. */
int pg_answer(struct pg *db, PGresult **ret);
/* Reads the answers to all commands that were sent, and returns that of one. A fault is that of the
 * first command that failed. */
int pg_round(struct pg *db, unsigned n_commands, unsigned which, PGresult **ret);
/* Sends one command without parameters, behind others. */
int pg_send_command(struct pg *db, const char *command);
/* One command after what waits. */
int pg_simple(struct pg *db, const char *sql, PGresult **ret);
/* How many commands went out. */
int pg_send_first(struct pg *db, unsigned *ret_n);

/* Several statements in one text, without parameters or rows. */
int pg_exec(void *db, const char *sql);

/* A text of ours in the server's words: `:name` becomes `$1`. `names` gets each name, ended by NUL. */
int pg_spell(const char *sql, struct buf *out, struct buf *names);

/* The column that numbers the rows of the table that this INSERT names; NULL: none does. */
const char *pg_key_of(const char *insert);

/* Whether a rule of its table may be against the row that this INSERT makes. */
bool pg_may_fail(const char *insert);

/* ---- postgres_statement.c ---- */

int pg_prepare(void *db, const char *sql, void **ret_st);
void pg_finalize(void *st);
void pg_reset(void *st);
void pg_rewind(void *st);
int pg_place_of(void *st, const char *name);
int pg_bind_null(void *st, int place);
int pg_bind_int(void *st, int place, int64_t value);
int pg_bind_double(void *st, int place, double value);
int pg_bind_text(void *st, int place, struct text value);
int pg_bind_blob(void *st, int place, const void *data, size_t n);
int pg_step(void *st, bool *ret_row);
bool pg_column_null(void *st, int i);
int64_t pg_column_int(void *st, int i);
double pg_column_double(void *st, int i);
int pg_column_text(void *st, int i, struct text *ret_text);
int pg_column_blob(void *st, int i, struct text *ret_bytes);

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
