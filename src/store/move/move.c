#include "store/move/move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/move/place.h"

struct move_pair {
	struct move_rows from, to;
	struct move_sum from_sum, to_sum;
	int64_t n; /* rows in the source */
};

struct move {
	const struct move_opts *opts;
	struct move_place from, to;
	struct move_catalogue from_tables, to_tables;
	struct move_pair pairs[MOVE_TABLES_MAX]; /* in the order of copying */
	unsigned n_pairs;
	struct move_progress now;
	char state[MOVE_STATE_MAX]; /* what the source is now */
	bool resumed;
};

/* ---- a page after the other ---- */

static int report(struct move *m, const struct move_pair *p, enum move_phase phase, int64_t n)
{
	m->now.all +=
		n - (m->now.table == p->from.table->name && m->now.phase == phase ? m->now.n : 0);
	m->now.phase = phase;
	m->now.table = p->from.table->name;
	m->now.n = n;
	m->now.total = p->n;
	m->opts->progress(&m->now);
	return m->opts->stopped() ? -ECANCELED : 0;
}

struct summing {
	struct move_sum *sum;
	move_digest_fn digest;
};

static int sum_row(struct move_walk *w, struct statement *q, void *arg)
{
	struct summing *s = arg;

	move_sum_add(s->sum, w, s->digest);
	return 0;
}

static int sum_table(struct move *m, struct move_pair *p, enum move_phase phase)
{
	bool reading = phase == MOVE_READING;
	struct summing s = {.sum = reading ? &p->from_sum : &p->to_sum, .digest = m->opts->digest};
	CLEANUP(move_walk_done) struct move_walk w;
	int r;

	move_walk_init(&w, reading ? &p->from : &p->to, 0);
	do
		r = move_walk_page(&w, sum_row, &s) ?: report(m, p, phase, s.sum->n);
	while (r == 0 && w.n > 0);
	return r;
}

static int copy_row(struct move_walk *w, struct statement *q, void *to)
{
	return move_rows_insert(to, w, q);
}

/* A page's rows are there together or not at all, so the next run can count them. */
static int copy_page(struct move *m, struct move_pair *p, struct move_walk *w)
{
	QUERY commit = {"COMMIT"};
	QUERY rollback = {"ROLLBACK"};
	struct connection *c = &m->to.conn;
	int r = query_do(c, &c->ops->begin);

	if (r != 0)
		return r;
	r = move_walk_page(w, copy_row, &p->to);
	if (r == 0)
		return query_do(c, &commit);
	(void)query_do(c, &rollback);
	return r;
}

static int copy_table(struct move *m, struct move_pair *p)
{
	CLEANUP(move_walk_done) struct move_walk w;
	int64_t n = 0;
	int r = move_rows_count(&p->to, &n);

	move_walk_init(&w, &p->from, n);
	if (r == 0)
		r = report(m, p, MOVE_COPYING, n);
	while (r == 0 && n < p->n) {
		r = copy_page(m, p, &w);
		if (r == 0 && w.n == 0)
			break;
		n += w.n;
		if (r == 0)
			r = report(m, p, MOVE_COPYING, n);
	}
	return r;
}

/* ---- the numbers that tables give to new rows ---- */

static int last_number(struct move_place *p, const char *table, int64_t *ret_n)
{
	return query_find_int(&p->conn, &p->ops->last_number, ret_n,
			      BIND(":table", text_of(table)));
}

/* SQLite numbers rows of some tables past the highest that is there. */
static int highest_key(struct move *m, const struct move_table *t, int64_t *ret_n)
{
	const struct move_column *key = &t->columns[t->keys[0]];
	char sql[3 * MOVE_NAME_MAX];
	const struct query query = {sql};
	void *st = NULL;
	bool row = false;
	int r;

	*ret_n = 0;
	if (t->n_keys != 1 || key->kind != MOVE_INT)
		return 0;
	snprintf(sql, sizeof(sql), "SELECT coalesce(max(\"%s\"), 0) FROM %s", key->name, t->name);
	r = m->to.ops->prepare(m->to.conn.db, &query, sql, NULL, &st);
	if (r != 0)
		return r;
	r = m->to.ops->step(st, &row);
	if (r == 0 && row)
		*ret_n = m->to.ops->column_int(st, 0);
	m->to.ops->finalize(st);
	return r;
}

/* Numbers of rows that are gone are not used again. */
static int copy_number(struct move *m, const struct move_pair *p)
{
	const struct move_table *t = p->from.table;
	int64_t source = 0, target = 0, highest = 0;
	int r = last_number(&m->from, t->name, &source)
			?: last_number(&m->to, t->name, &target)
			?: highest_key(m, t, &highest);

	if (source < highest)
		source = highest;
	return r == 0 && source > target
		       ? m->to.ops->set_last_number(m->to.conn.db, t->name, source)
		       : r;
}

/* ---- the target's tables ---- */

static int write_state(struct move *m)
{
	QUERY sql = {"INSERT INTO meta (key, value) VALUES (:key, :value)"};
	return query_do(&m->to.conn, &sql, BIND(":key", TEXT(MOVE_KEY)),
			BIND(":value", text_of(m->state)));
}

/* The steps of the schema put rows of their own into their tables. */
static int empty_tables(struct move *m)
{
	int r = move_catalogue_read(&m->to.conn, &m->to_tables);

	for (unsigned i = m->to_tables.n; i > 0 && r == 0; i--) {
		char sql[2 * MOVE_NAME_MAX];

		snprintf(sql, sizeof(sql), "DELETE FROM %s", m->to_tables.tables[i - 1].name);
		r = m->to.ops->exec(m->to.conn.db, sql);
	}
	return r;
}

static int make_tables(struct move *m)
{
	const struct store_ops *ops = m->to.ops;
	int r = 0;

	for (int i = 0; i < *ops->n_steps && r == 0; i++)
		r = ops->exec(m->to.conn.db, ops->steps[i]);
	if (r == 0)
		r = ops->set_version(m->to.conn.db, *ops->n_steps);
	if (r == 0)
		r = ops->set_triggers(m->to.conn.db, false);
	return r != 0 ? r : empty_tables(m) ?: write_state(m);
}

/* All in one transaction: an interrupted move is either not there or knows itself. */
static int in_transaction(struct move *m, int (*fn)(struct move *m))
{
	QUERY commit = {"COMMIT"};
	QUERY rollback = {"ROLLBACK"};
	int r = query_do(&m->to.conn, &m->to.ops->begin);

	if (r != 0)
		return r;
	r = fn(m);
	if (r == 0)
		return query_do(&m->to.conn, &commit);
	(void)query_do(&m->to.conn, &rollback);
	return r;
}

static int prepare_target(struct move *m)
{
	int r = m->to.ops->claim(m->to.conn.db) ?: m->to.ops->set_triggers(m->to.conn.db, false);

	return r == 0 && !m->resumed ? in_transaction(m, make_tables) : r;
}

static int finish_target(struct move *m)
{
	QUERY forget = {"DELETE FROM meta WHERE key = '" MOVE_KEY "'"};
	int r = 0;

	for (unsigned i = 0; i < m->n_pairs && r == 0; i++)
		r = copy_number(m, &m->pairs[i]);
	if (r == 0)
		r = m->to.ops->set_triggers(m->to.conn.db, true);
	return r != 0 ? r : query_do(&m->to.conn, &forget);
}

/* ---- the whole ---- */

/* What the source is: its identity and the digest of all that is in it. */
static void describe_source(struct move *m, const char *identity)
{
	char hex[MOVE_DIGEST_HEX + 1];
	struct buf all;

	buf_init(&all, sizeof(struct move_sum) * MOVE_TABLES_MAX);
	for (unsigned i = 0; i < m->n_pairs; i++)
		buf_add(&all, &m->pairs[i].from_sum, sizeof(m->pairs[i].from_sum));
	m->opts->digest((struct text) {.data = all.data, .len = all.len}, hex);
	buf_done(&all);
	snprintf(m->state, sizeof(m->state), "%.*s %s", (int)strcspn(identity, " "), identity, hex);
}

static int start_pairs(struct move *m, struct error *error)
{
	const struct move_catalogue *from = &m->from_tables;
	int r = move_explain(&m->from, move_catalogue_read(&m->from.conn, &m->from_tables), error);

	for (unsigned i = 0; i < from->n && r == 0; i++) {
		struct move_pair *p = &m->pairs[m->n_pairs++];

		r = move_rows_init(&p->from, &m->from.conn, &from->tables[i])
			    ?: move_explain(&m->from, move_rows_count(&p->from, &p->n), error);
		m->now.all_total += 3 * p->n;
	}
	return r;
}

static int read_source(struct move *m, struct error *error)
{
	char identity[MOVE_STATE_MAX / 2] = "";
	int r = query_meta(&m->from.conn, TEXT("identity"), identity, sizeof(identity));

	for (unsigned i = 0; i < m->n_pairs && r == 0; i++)
		r = sum_table(m, &m->pairs[i], MOVE_READING);
	describe_source(m, identity);
	return r == -ECANCELED && m->opts->stopped() ? r : move_explain(&m->from, r, error);
}

/* A move goes on only from the same store, and only if that is as it was. */
static int compare_state(struct move *m, const char *was, struct error *error)
{
	m->resumed = was[0] != '\0';
	if (!m->resumed || strcmp(was, m->state) == 0)
		return 0;
	if (strncmp(was, m->state, strcspn(m->state, " ") + 1) == 0)
		return refuse(error, REFUSE_CONFLICT,
			      "%s has changed since the move to %.60s started; restart the move "
			      "with another target",
			      move_place_name(&m->from), move_place_name(&m->to));
	return refuse(error, REFUSE_CONFLICT, "%s contains an unfinished move of another store",
		      move_place_name(&m->to));
}

static int copy_all(struct move *m, struct error *error)
{
	int r = move_catalogue_read(&m->to.conn, &m->to_tables)
			?: move_catalogue_compare(&m->from_tables, &m->to_tables, error);

	for (unsigned i = 0; i < m->n_pairs && r == 0; i++) {
		struct move_pair *p = &m->pairs[i];

		r = move_rows_init(&p->to, &m->to.conn,
				   move_catalogue_find(&m->to_tables, p->from.table->name))
			    ?: copy_table(m, p);
	}
	return r;
}

static int check_all(struct move *m, struct error *error)
{
	int r = 0;

	for (unsigned i = 0; i < m->n_pairs && r == 0; i++) {
		struct move_pair *p = &m->pairs[i];

		r = sum_table(m, p, MOVE_CHECKING);
		if (r == 0 && !move_sum_same(&p->from_sum, &p->to_sum))
			r = refuse(error, REFUSE_INTERNAL,
				   "the copy differs in table %s (%lld rows in the original, %lld "
				   "in the copy)",
				   p->from.table->name, (long long)p->from_sum.n,
				   (long long)p->to_sum.n);
	}
	return r;
}

static int move_all(struct move *m, const char *from, const char *to, struct error *error)
{
	char was[MOVE_STATE_MAX];
	int r = move_open_source(from, &m->from, error)
			?: move_open_target(to, &m->to, was, error)
			?: start_pairs(m, error)
			?: read_source(m, error)
			?: compare_state(m, was, error);

	if (r != 0)
		return r;
	r = prepare_target(m) ?: copy_all(m, error) ?: check_all(m, error)
		?: in_transaction(m, finish_target);
	if (r == -ECANCELED && m->opts->stopped())
		return r;
	return move_explain(m->from.conn.trouble ? &m->from : &m->to, r, error);
}

static void move_free(struct move *m)
{
	move_place_close(&m->from);
	move_place_close(&m->to);
	for (unsigned i = 0; i < m->n_pairs; i++) {
		move_rows_done(&m->pairs[i].from);
		move_rows_done(&m->pairs[i].to);
	}
	free(m);
}

int store_move(const char *from, const char *to, const struct move_opts *opts,
	       struct store_moved *ret_moved, struct error *error)
{
	struct move *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->opts = opts;
	if (strcmp(from, to) == 0)
		r = refuse(error, REFUSE_PARAMS, "both addresses are the same: %s", from);
	else
		r = move_all(m, from, to, error);
	if (r == 0) {
		*ret_moved = (struct store_moved) {.n_tables = m->n_pairs, .resumed = m->resumed};
		for (unsigned i = 0; i < m->n_pairs; i++)
			ret_moved->n_rows += m->pairs[i].n;
	}
	move_free(m);
	return r;
}
