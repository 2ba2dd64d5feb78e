/*
 * Rows of a large answer. libpq would hold all of them before the first could be read; in its
 * single-row mode each is a result of its own. Until the last one was read the connection is theirs.
 */
#include <errno.h>
#include <stdlib.h>

#include "store/db/postgres.h"

enum {
	DROPPED_MAX = 512 << 10
}; /* bytes that are read in vain, before the server is asked to stop */

int pg_stream_begin(struct pg *db, unsigned n_before, struct pg_rest *rest)
{
	int r = pg_round_to(db, n_before);

	if (r != 0)
		return r;
	if (!PQsetSingleRowMode(db->conn))
		return pg_lost(db);
	rest->db = db;
	db->stream = rest;
	return 0;
}

/* The end of the query and of the pipeline; the connection is free again. */
static int postgres_stream_finish(struct pg_rest *rest, int fault)
{
	struct pg *db = rest->db;
	PGresult *end = NULL;
	int r = pg_answer(db, &end); /* NULL, behind the last of the query */

	PQclear(end);
	end = NULL;
	if (r == 0)
		r = pg_take_answer(db, &end);
	PQclear(end);
	rest->db = NULL;
	db->stream = NULL;
	return fault != 0 ? fault : r;
}

static int read_row(struct pg_rest *rest, PGresult **ret)
{
	struct pg *db = rest->db;
	PGresult *result = NULL;
	int r = pg_answer(db, &result);

	if (r == 0 && PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
		*ret = result;
		return 0;
	}
	if (r != 0 || !result) {
		rest->db = NULL;
		db->stream = NULL;
		return r != 0 ? r : pg_lost(db);
	}
	r = PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : pg_fault(db, result);
	PQclear(result);
	return postgres_stream_finish(rest, r);
}

int pg_stream_next(struct pg_rest *rest, PGresult **ret)
{
	*ret = NULL;
	if (rest->next < rest->n) {
		*ret = rest->taken[rest->next++];
		return 0;
	}
	return rest->db ? read_row(rest, ret) : rest->fault;
}

void pg_stream_absorb(struct pg *db)
{
	struct pg_rest *rest = db->stream;
	size_t cap = 0;

	while (db->stream && rest->fault == 0) {
		PGresult *row = NULL;

		if (rest->n == cap) {
			PGresult **more =
				realloc(rest->taken, (cap = 2 * cap + 64) * sizeof(*more));

			if (!more) {
				pg_stream_end(rest);
				rest->fault = -ENOMEM;
				return;
			}
			rest->taken = more;
		}
		rest->fault = read_row(rest, &row);
		if (row)
			rest->taken[rest->n++] = row;
	}
}

/* In a transaction it would be lost with that. */
static void ask_to_stop(const struct pg *db)
{
	PGcancel *cancel = db->in_transaction ? NULL : PQgetCancel(db->conn);
	char words[256];

	if (cancel)
		(void)PQcancel(cancel, words, sizeof(words));
	PQfreeCancel(cancel);
}

void pg_stream_end(struct pg_rest *rest)
{
	size_t dropped = 0;
	bool asked = false;

	while (rest->db) {
		PGresult *row = NULL;

		if (dropped > DROPPED_MAX && !asked)
			ask_to_stop(rest->db);
		asked = asked || dropped > DROPPED_MAX;
		(void)read_row(rest, &row);
		dropped += row ? PQresultMemorySize(row) : 0;
		PQclear(row);
	}
	while (rest->next < rest->n)
		PQclear(rest->taken[rest->next++]);
	free(rest->taken);
	*rest = (struct pg_rest) {0};
}
