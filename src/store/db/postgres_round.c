/*
 * Round trips of the PostgreSQL driver: what is sent, what waits, what was left for later, and what
 * the answers mean.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/db/postgres.h"

enum {
	POLL_MS = 200,          /* how soon a stop is noticed */
	ANSWER_MS = 60 * 1000,  /* a server that says nothing for so long is gone */
	WRITTEN_MS = 40 * 1000, /* the same of what is written */
};

void pg_keep_message(struct pg *db, const char *words)
{
	snprintf(db->message, sizeof(db->message), "%s", words ? words : "");
	db->message[strcspn(db->message, "\n")] = '\0';
}

int pg_fault(struct pg *db, const PGresult *result)
{
	/* By SQLSTATE, the longer first. 57014: somebody has cancelled it, who is not us. 42: there is no such
	 * table or column; permission, which is of that class, too, comes before it. */
	static const struct {
		const char *state;
		int fault;
	} faults[] = {
		{"23505", -EEXIST}, {"53100", -ENOSPC},  {"53200", -ENOMEM},  {"25006", -EROFS},
		{"42501", -EACCES}, {"40001", -EDEADLK}, {"40P01", -EDEADLK}, {"55P03", -EBUSY},
		{"57014", -EBUSY},  {"58030", -EIO},     {"57P01", -EIO},     {"57P02", -EIO},
		{"57P03", -EIO},    {"57P04", -EIO},     {"57P05", -EIO},     {"25P02", -EIO},
		{"25P03", -EIO},    {"3B", -EIO},        {"XX001", -EBADMSG}, {"XX002", -EBADMSG},
		{"08", -EIO},       {"53", -EBUSY},      {"54", -EMSGSIZE},   {"28", -EACCES},
		{"42", -ENXIO},     {"3F", -ENXIO},
	};
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	pg_keep_message(db, PQresultErrorMessage(result));
	db->waited = state && (strcmp(state, "55P03") == 0 || strcmp(state, "57014") == 0);
	for (size_t i = 0; state && i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (strncmp(state, faults[i].state, strlen(faults[i].state)) != 0)
			continue;
		/* Only the writer has a transaction that can be begun again. */
		return faults[i].fault == -EDEADLK && db->kind != CONNECTION_WRITER
			       ? -EBUSY
			       : faults[i].fault;
	}
	return state ? -EINVAL : -EIO;
}

int pg_lost(struct pg *db)
{
	pg_keep_message(db, PQerrorMessage(db->conn));
	return -EIO;
}

int pg_add_first(struct pg *db, const char *command)
{
	int r = pg_send_kept(db);

	buf_add(&db->first, command, strlen(command) + 1);
	return r != 0 ? r : db->first.err;
}

/* ---- a round trip ---- */

/* Whether something can be read, or sent, in time. */
static int wait_ready(struct pg *db, short events, uint64_t end)
{
	struct pollfd p = {.fd = PQsocket(db->conn), .events = events};

	while (p.fd >= 0 && clock_steady_ms() < end) {
		int n = poll(&p, 1, POLL_MS);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (atomic_load(&db->place->stop))
			end = end < clock_steady_ms() + 2000 ? end : clock_steady_ms() + 2000;
	}
	pg_keep_message(db, "the server is not responding");
	return -EIO;
}

/* What only reads may take long; others wait for what is written. */
static unsigned answer_ms(const struct pg *db)
{
	switch (db->kind) {
	case CONNECTION_WRITER:
		return WRITTEN_MS;
	case CONNECTION_FEED:
		return db->place->feed_ms;
	case CONNECTION_READER:
		break;
	}
	return ANSWER_MS;
}

/* What is sent waits in libpq's own memory until the kernel takes it: a server that hangs takes
 * nothing, and would hold whoever writes for ever. One that takes or says something does not hang. */
int pg_answer(struct pg *db, PGresult **ret)
{
	int unsent = PQflush(db->conn);

	while (unsent >= 0 && PQisBusy(db->conn)) {
		if (wait_ready(db, unsent > 0 ? POLLIN | POLLOUT : POLLIN,
			       clock_steady_ms() + answer_ms(db)) != 0) {
			/* Whatever it would still say is not waited for. */
			PQfinish(db->conn);
			db->conn = NULL;
			return -EIO;
		}
		if (!PQconsumeInput(db->conn))
			return pg_lost(db);
		unsent = PQflush(db->conn);
	}
	if (unsent < 0)
		return pg_lost(db);
	*ret = PQgetResult(db->conn);
	return 0;
}

int pg_take_answer(struct pg *db, PGresult **ret)
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
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1 ||
	    PQnfields(result) != 2 || strcmp(PQfname(result, 0), "koine_transaction") != 0)
		return;
	snprintf(db->transaction, sizeof(db->transaction), "%s", PQgetvalue(result, 0, 0));
	db->batch = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
}

void pg_want(struct pg *db, const struct pg_wanted *wanted)
{
	if (wanted->n == 0)
		return;
	db->wanted[db->n_wanted] = *wanted;
	db->wanted[db->n_wanted++].at = db->n_late;
}

static void keep_row(int64_t *ret, unsigned n, const PGresult *result, int row, int from)
{
	for (unsigned c = 0; c < n; c++)
		ret[c] = strtoll(PQgetvalue(result, row, from + (int)c), NULL, 10);
}

static void keep_wanted(const struct pg *db, const struct pg_wanted *w, const PGresult *result)
{
	int n = PQntuples(result);

	if (w->ret && n > 0)
		keep_row(w->ret, w->n, result, 0, 0);
	for (int row = 0; !w->ret && row < n; row++) {
		unsigned which = (unsigned)strtoul(PQgetvalue(result, row, 0), NULL, 10) - 1;
		int64_t *ret;

		if (which >= w->n_rows)
			continue;
		memcpy(&ret, db->rets.data + (w->rows + which) * sizeof(ret), sizeof(ret));
		keep_row(ret, w->n, result, row, 1);
	}
}

/* The answers to what was left for later come first. */
static int take_late(struct pg *db, int *ret_fault)
{
	unsigned n_kept = 0;
	int r = 0;

	for (unsigned i = 0; i < db->n_late && r == 0; i++) {
		bool wanted = n_kept < db->n_wanted && db->wanted[n_kept].at == i;
		PGresult *result = NULL;

		r = pg_take_answer(db, &result);
		if (r == 0 && went_well(result)) {
			note_transaction(db, result);
			if (wanted)
				keep_wanted(db, &db->wanted[n_kept], result);
			db->changes += strtoll(PQcmdTuples(result), NULL, 10);
		} else if (r == 0 && *ret_fault == 0) {
			*ret_fault = pg_fault(db, result);
		}
		PQclear(result);
		n_kept += wanted;
	}
	db->n_late = 0;
	db->n_wanted = 0;
	buf_clear(&db->rets);
	return r;
}

static int take_one(struct pg *db, unsigned i, PGresult **ret, int *ret_fault)
{
	int r = pg_take_answer(db, ret);

	if (r != 0)
		return r;
	if (*ret_fault == 0 && !went_well(*ret)) {
		*ret_fault = pg_fault(db, *ret);
		db->failed_at = i;
	}
	note_transaction(db, *ret);
	return 0;
}

static int take_answers(struct pg *db, unsigned n_commands, unsigned which, PGresult **ret,
			int *ret_fault)
{
	int r = 0;

	for (unsigned i = 0; i <= n_commands && r == 0; i++) {
		PGresult *result = NULL;

		r = take_one(db, i, &result, ret_fault);
		if (i == which)
			*ret = result;
		else
			PQclear(result);
	}
	return r;
}

/*
 * A command that was left for later has failed. Whoever asked for it was told that all is well, so
 * nothing of the transaction may be kept; and what was to be prepared behind it is not.
 */
static int start_afresh(struct pg *db, int fault)
{
	/* None of these is an answer to who asks now. */
	static const int rules[] = {-EEXIST, -EINVAL, -EMSGSIZE, -ECANCELED};
	char message[PG_MESSAGE_MAX];

	memcpy(message, db->message, sizeof(message));
	db->in_transaction = false;
	pg_call_forget(db);
	buf_clear(&db->first);
	buf_clear(&db->dropped);
	db->life++;
	if (pg_exec(db, "ROLLBACK") != 0 || pg_exec(db, "DEALLOCATE ALL") != 0) {
		PQfinish(db->conn);
		db->conn = NULL;
	}
	memcpy(db->message, message, sizeof(message));
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (fault == rules[i])
			return -EIO;
	}
	return fault;
}

int pg_note_fault(struct pg *db, int r)
{
	if (r != 0 && PQstatus(db->conn) != CONNECTION_OK) {
		db->in_transaction = false;
		pg_call_forget(db);
		buf_clear(&db->first);
	} else if (r != 0 && db->in_transaction && db->call == CALL_HELD) {
		/* There is no savepoint to go back to. */
		r = start_afresh(db, r);
	}
	return r;
}

int pg_round(struct pg *db, unsigned n_commands, unsigned which, PGresult **ret)
{
	PGresult *wanted = NULL;
	int late = 0, fault = 0, r;

	if (!PQpipelineSync(db->conn))
		return pg_lost(db);
	r = take_late(db, &late);
	fault = late;
	if (r == 0)
		r = take_answers(db, n_commands, which, &wanted, &fault);
	if (r == 0)
		r = late != 0 ? start_afresh(db, late) : fault;
	if (r == 0 && ret)
		*ret = wanted;
	else
		PQclear(wanted);
	return r;
}

int pg_round_to(struct pg *db, unsigned n_commands)
{
	PGresult *none = NULL;
	int late = 0, fault = 0, r;

	if (!PQpipelineSync(db->conn))
		return pg_lost(db);
	r = take_late(db, &late);
	fault = late;
	for (unsigned i = 0; i < n_commands && r == 0; i++) {
		r = take_one(db, i, &none, &fault);
		PQclear(none);
		none = NULL;
	}
	if (r != 0 || fault == 0)
		return r;
	/* The query was not run; its answer says so, and the end of the pipeline follows. */
	r = take_answers(db, 1, 2, &none, &fault);
	return r != 0 ? r : late != 0 ? start_afresh(db, late) : fault;
}

int pg_settle(void *handle)
{
	struct pg *db = handle;
	int r = db->held.len > 0 ? pg_call_save(db) : 0;

	if (r == 0)
		r = pg_send_kept(db);
	return r == 0 && db->n_late > 0 ? pg_round(db, 0, 1, NULL) : r;
}

int pg_settle_some(struct pg *db)
{
	return db->n_late >= PG_LATE_MAX || db->n_wanted == PG_WANTED_MAX ? pg_settle(db) : 0;
}

int pg_send_command(struct pg *db, const char *command)
{
	return PQsendQueryParams(db->conn, command, 0, NULL, NULL, NULL, NULL, 0) ? 0 : pg_lost(db);
}

/* Each of the words, ended by NUL, as a command of its own. */
static int send_each(struct pg *db, const struct buf *words, const char *before, unsigned *n)
{
	int r = 0;

	for (size_t at = 0; at < words->len && r == 0; ++*n) {
		char command[320];

		snprintf(command, sizeof(command), "%s%s", before, words->data + at);
		at += strlen(words->data + at) + 1;
		r = pg_send_command(db, command);
	}
	return r;
}

int pg_send_waiting(struct pg *db, unsigned *n)
{
	int r = send_each(db, &db->first, "", n);

	buf_clear(&db->first);
	return r;
}

int pg_send_first(struct pg *db, unsigned *ret_n)
{
	/* In a transaction that failed nothing can be forgotten; what waits would mend it. What is held
	 * may need it yet. */
	bool forgets = (!db->in_transaction || db->first.len > 0) && db->held.len == 0;
	unsigned n = 0;
	int r;

	pg_stream_absorb(db);
	r = pg_send_kept(db) ?: pg_send_waiting(db, &n);
	if (r == 0 && forgets) {
		r = send_each(db, &db->dropped, "DEALLOCATE ", &n);
		buf_clear(&db->dropped);
	}
	*ret_n = n;
	return r;
}

int pg_simple(struct pg *db, const char *sql, PGresult **ret)
{
	unsigned n = 0;
	int r = pg_send_first(db, &n) ?: pg_send_command(db, sql);

	return r != 0 ? r : pg_round(db, n + 1, n, ret);
}

/* Not in a pipeline. */
static int exec_plainly(struct pg *db, const char *sql)
{
	PGresult *result = NULL;
	int fault = 0, r = PQsendQuery(db->conn, sql) ? 0 : pg_lost(db);

	while (r == 0 && (r = pg_answer(db, &result)) == 0 && result) {
		if (fault == 0 && !went_well(result))
			fault = pg_fault(db, result);
		PQclear(result);
	}
	return r != 0 ? r : fault;
}

int pg_exec(void *handle, const char *sql)
{
	struct pg *db = handle;
	unsigned n = 0;
	int r = pg_send_first(db, &n);

	if (r == 0 && n + db->n_late > 0)
		r = pg_round(db, n, n + 1, NULL);
	if (r != 0)
		return r;
	if (!PQexitPipelineMode(db->conn))
		return pg_lost(db);
	r = exec_plainly(db, sql);
	if (!PQenterPipelineMode(db->conn))
		return pg_lost(db);
	return r;
}
