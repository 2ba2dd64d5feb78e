/*
 * What a database must be able to do to be a store. One set of queries runs on all of them;
 * only the file that fills store_ops knows which database it is.
 *
 * Faults are -errno: -ENOSPC no room, -EIO the disk, -EBUSY somebody else has it, -EROFS,
 * -EACCES and -EPERM not allowed, -EBADMSG damaged, -EEXIST a key that is taken, -EINVAL any
 * other rule of a table, -ENXIO no such table or column, -EMSGSIZE too large, -ECANCELED stopped, -ESTALE moved away, -EDEADLK
 * the writer and somebody else waited for each other, and the writer was ended, -EINPROGRESS
 * nobody knows whether a commit has happened, -ENOMEM.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "store/db/query.h"
#include "store/tally.h"
#include "store/host/task_number.h"

enum { STORE_PLACE_MAX = 48 };

/* What the database takes, in pages. */
struct store_space {
	int64_t pages;
	int64_t free;
	bool shrinks; /* free ones can be given back */
};

/* The feed's is for hosts that share the database: see store/host/host.h. */
enum connection_kind { CONNECTION_WRITER, CONNECTION_READER, CONNECTION_FEED };

/* `place` is the database, `db` a connection to it, `st` a prepared statement. */
struct store_ops {
	const char *scheme;
	/* Faults that strerror does not explain; NULL if there are none. */
	const struct fault_name *faults;
	struct query begin; /* a transaction that will write */
	/* Several hosts may use it: queries take their locks, and `postgres` replaces their text. */
	bool is_shared;

	/* What can be said of an address without looking; NULL: nothing. The sentence contains
	 * nothing of it. */
	int (*check)(const char *address, struct error *error);
	/* Whether `open` and `connect` would accept it, as far as can be seen. Changes nothing.
	 * `accepted` as in set_accepted. ret_note is set to a sentence about what is accepted but should
	 * not be, and left alone otherwise. *ret_db is a connection that the caller only reads from; NULL
	 * if there is no database yet. The caller ends both, also after a failure. */
	int (*look)(const char *address, const char *accepted, char *ret_note, size_t size,
		    void **ret_place, void **ret_db, struct error *error);
	/* Whether `open` would make something that is not there yet. NULL: it never does. */
	bool (*makes)(const char *address);
	/* Takes hold of the database, and keeps other koined processes away. */
	int (*open)(const char *address, void **ret_place, struct error *error);
	void (*close)(void *place);
	const char *(*path)(const void *place);
	/* What distinguishes this database from a copy of it. */
	int (*place_id)(const void *place, char out[STORE_PLACE_MAX]);

	/* For databases in which other roles can create tables: the file that lists the accepted owners,
	 * whose tables are not refused. `all` is for an adoption: no owner is refused, but a database
	 * without foreign owners is. Call it before connect. NULL if no other role can create tables. */
	void (*set_accepted)(void *place, const char *file, bool all);
	/* Writes the accepted owners and all foreign ones to the file `next`, which the caller then puts in
	 * the place of the accepted file. *ret_roles receives the names of the foreign owners. */
	int (*accept)(void *db, const char *next, char *ret_roles, size_t size,
		      struct error *error);

	/* Inspects and refuses, but changes nothing yet. */
	int (*connect)(void *place, enum connection_kind kind, void **ret_db, struct error *error);
	/* Keeps others away as `claim` does, and changes nothing. NULL: `open` did. */
	int (*hold)(void *db);
	/* For the writer, once the schema's version is accepted: from here on the database is
	 * ours. */
	int (*claim)(void *db);
	/* The tables are as they should be: other koined processes may come in from now on. NULL:
	 * none may. */
	int (*share)(void *db);
	void (*disconnect)(void *db);

	/* Describes a fault of opening or migrating. Returns that fault, or a refusal instead. */
	int (*explain)(const void *place, const void *db, int fault, struct error *error);
	const char *(*message)(const void *db);

	int (*version)(void *db, int *ret_version);
	int (*set_version)(void *db, int version);
	/* Version n of the tables is what the first n of these make. */
	const char *const *steps;
	const int *n_steps;
	bool at_once; /* schema_at_once can put them together */

	/* One or more statements without parameters or rows. */
	int (*exec)(void *db, const char *sql);
	bool (*in_transaction)(void *db);
	/* Whether what is written now would be found again at the same address: -ESTALE when
	 * somebody has moved or removed it. */
	int (*still_there)(void *db);

	/* `sql` and `many` are the texts of the query without its marks; `many` is NULL if there is none. */
	int (*prepare)(void *db, const struct query *query, const char *sql, const char *many,
		       void **ret_st);
	void (*finalize)(void *st);
	void (*reset)(void *st);         /* also clears the bindings */
	void (*rewind)(void *statement); /* the same, but what is bound stays */

	/* The index of a parameter, 1 for the first in the text; 0: there is none. `name` includes its colon. */
	int (*place_of)(void *st, const char *name);
	/* No noun. Bytes are not copied: they must stay valid until the reset. */
	int (*bind)(void *st, int place, const struct query_value *value);

	int (*step)(void *st, bool *ret_row);
	/*
	 * Runs a statement whose outcome nobody waits for, and which no rule of a table refuses. It
	 * may come as late as the commit, which then fails; so does everything in between. What is
	 * bound is copied. The numbers in the first `n` columns of its first row are in `ret` once
	 * the batch is committed or settled. NULL: everything is done at once.
	 */
	int (*later)(void *st, int64_t *ret, unsigned n);
	/* Waits for what has been left for later. NULL: nothing ever is. */
	int (*settle)(void *db);
	/* The key of a row that is to be inserted into this table, so that nobody has to wait for
	 * it. Within a batch. NULL: the row gets one by itself. */
	int (*draw_key)(void *db, const char *table, int64_t *ret_key);
	/* The most bytes of texts that one index has in a row; 0: any number. More are refused by
	 * the table, which a statement left for later must not be. */
	size_t indexed_max;

	/* Of the current row. Bytes are valid until the next step or reset. */
	bool (*column_null)(void *st, int i);
	int64_t (*column_int)(void *st, int i);
	double (*column_double)(void *st, int i);
	int (*column_text)(void *st, int i, struct text *ret_text);
	int (*column_blob)(void *st, int i, struct text *ret_bytes);

	/* The integer key of the row that this INSERT has made. */
	int64_t (*inserted)(void *st);
	/* How many rows this connection has changed since it was opened. */
	int64_t (*changes)(void *db);

	/* For copying a store (store/move/): table, column, its kind (i, d, t or b), and its place in the
	 * primary key from 1, or 0. In the order in which the tables were made. */
	struct query columns;
	/* Whether triggers of ours run when rows are written. */
	int (*set_triggers)(void *db, bool on);
	/* The last number that the table :table has given to a row by itself; 0: none. */
	struct query last_number;
	/* The next one is higher. Nothing happens where rows are not numbered. */
	int (*set_last_number)(void *db, const char *table, int64_t number);

	int (*space)(void *db, struct store_space *ret_space);
	/* Empties the logs that the database keeps beside itself. Outside a transaction. NULL: it keeps
	 * none. -EBUSY: a reader needs them. */
	int (*scrub)(void *db);
	/* Returns this many of the free pages to the file system. Within a transaction. */
	int (*give_back)(void *db, unsigned pages);

	int (*backup)(void *place, const char *path, struct error *error);
	int (*quick_check)(void *place, void *db, struct error *error);
	/* Feeds, of several koined over one database; NULL: only one can use it. How long a feed waits
	 * for an answer; before it connects. */
	void (*set_feed)(void *place, unsigned answer_ms);
	/* From any thread. Whether the database that was opened has lost commits in a fail-over, or is
	 * another one since a restore; from then on every new connection fails with -ESTALE. For that
	 * it is told the last event that is known, and its time (0: not known). */
	bool (*rewound)(const void *place);
	/* -EIO while a restore has not put back all of it, as far as can be seen. */
	int (*whole)(void *db);
	void (*note_event)(void *place, int64_t seq, int64_t time_ms);
	/* Says to all other feeds that there is something new. */
	int (*tell)(void *db);
	/* Waits until one of them has said so, `fd` can be read, or the time is over. */
	int (*hear)(void *db, int fd, int timeout_ms, bool *ret_told);

	/* From any thread: from now on these two end early, and nothing waits for another's
	 * lock. */
	void (*stop)(void *place);
};

/* The kind of database that an address names, and the rest of the address. */
int store_find_kind(const char *url, const struct store_ops **ret_ops, const char **ret_address,
		    struct error *error);

extern const struct store_ops sqlite_ops;
extern const struct store_ops postgres_ops;

/* Every kind of database that this program was built with; NULL at the end. */
extern const struct store_ops *const store_kinds[];

/* Of so many values that a query is opened with, their places are known after the first time. */
enum { PLACES_KNOWN = 16 };

struct statement {
	struct connection *conn;
	const struct query *query;
	void *handle;
	uint64_t used; /* last use, counted in uses of the connection */
	int err;       /* the first fault since it was started */
	bool busy;
	bool loose; /* not cached: freed when done */
	int beside; /* the first column after the members that were read */
	int places[PLACES_KNOWN];
	const char *names[PLACES_KNOWN]; /* which values these are of */
};

/* Keeps the first fault. */
static inline void query_stick(struct statement *q, int r)
{
	if (q->err == 0)
		q->err = r;
}

/* Limits how many queries stay prepared. One more evicts the least recently used. */
enum { STATEMENTS_MAX = 128 };

struct connection {
	const struct store_ops *ops;
	void *db;      /* NULL while it cannot be reopened */
	bool in_batch; /* between store_begin and store_commit */
	int lost;      /* the fault that undid the current batch */
	int trouble;   /* the database's own last fault in the current batch; 0: none */
	int64_t stepped
		[N_TALLIED]; /* the number at which it last looked after a mark: see tally.c */
	struct task_numbers numbers; /* of the current batch */
	uint64_t uses;
	unsigned n_statements;
	const struct query *queries[STATEMENTS_MAX]; /* beside them, for a quick search */
	struct statement statements[STATEMENTS_MAX];
	struct statement failed; /* stands in for one that could not be opened */
};

/* Frees the prepared statements; none may be in use. */
void connection_forget(struct connection *c);
