/*
 * Uses of one statement as one. A statement may have a second form that does many rows: each of
 * its parameters is an array of what the uses have bound, and a row that it returns says first which
 * use it is about, counted from 1.
 */

#include "base/cleanup.h"
#include "store/db/postgres.h"

enum {
	USES_MAX = 4096,       /* at once */
	ALONE_MIN = 64 << 10,  /* a use with more bytes goes by itself */
	ARRAYS_MAX = 16 << 20, /* all bytes may have to be escaped */
};

/* Where each use begins; those that were sent are NULL. */
struct uses {
	const char *list[USES_MAX];
	unsigned n;
};

/* ---- arrays ---- */

static void put_text(struct buf *out, const struct pg_value *v)
{
	buf_add_char(out, '"');
	for (int i = 0; i < v->len; i++) {
		if (v->data[i] == '"' || v->data[i] == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, v->data[i]);
	}
	buf_add_char(out, '"');
}

static void put_bytes(struct buf *out, const struct pg_value *v)
{
	static const char digits[] = "0123456789abcdef";

	buf_add_str(out, "\"\\\\x");
	for (int i = 0; i < v->len; i++) {
		unsigned char c = (unsigned char)v->data[i];

		buf_add_char(out, digits[c >> 4]);
		buf_add_char(out, digits[c & 15]);
	}
	buf_add_char(out, '"');
}

static void put_element(struct buf *out, const struct pg_value *v)
{
	if (!v->data)
		buf_add_str(out, "NULL");
	else if (v->format != PG_BINARY)
		buf_add(out, v->data, (size_t)v->len);
	else if (v->bytes)
		put_bytes(out, v);
	else
		put_text(out, v);
}

static void put_array(struct buf *out, const char *const *uses, unsigned n, unsigned param)
{
	char sign = '{';

	for (unsigned i = 0; i < n; i++) {
		struct pg_use u;
		struct pg_value v;
		const char *at = pg_take_use(uses[i], &u);

		for (unsigned p = 0; p <= param; p++)
			at = pg_take_value(at, &v);
		buf_add_char(out, sign);
		put_element(out, &v);
		sign = ',';
	}
	buf_add(out, "}", 2);
}

/* ---- one statement for many ---- */

static int want_rows(struct pg *db, const char *const *uses, unsigned n, unsigned n_ret)
{
	struct pg_wanted w = {.n = n_ret, .rows = db->rets.len / sizeof(int64_t *), .n_rows = n};

	for (unsigned i = 0; n_ret > 0 && i < n; i++) {
		struct pg_use u;

		pg_take_use(uses[i], &u);
		buf_add(&db->rets, &u.ret, sizeof(u.ret));
	}
	if (db->rets.err != 0)
		return db->rets.err;
	pg_want(db, &w);
	return 0;
}

static int send_many(struct pg *db, const char *const *uses, unsigned n)
{
	const char *values[PG_PARAMS_MAX];
	int nothing[PG_PARAMS_MAX] = {0};
	size_t starts[PG_PARAMS_MAX];
	CLEANUP(buf_donep) struct buf arrays;
	struct pg_use u;
	struct pg_bound b = {.values = values, .lengths = nothing, .formats = nothing};
	int r;

	buf_init(&arrays, ARRAYS_MAX);
	pg_take_use(uses[0], &u);
	r = pg_settle_some(db) ?: pg_many_ready(db, u.many, &b);
	for (unsigned p = 0; r == 0 && p < b.n; p++) {
		starts[p] = arrays.len;
		put_array(&arrays, uses, n, pg_many_param(u.many, p));
	}
	if (r == 0)
		r = arrays.err ? arrays.err : want_rows(db, uses, n, u.n_ret);
	if (r != 0)
		return r;
	for (unsigned p = 0; p < b.n; p++)
		values[p] = arrays.data + starts[p];
	db->n_late++;
	return pg_send_bound(db, &b);
}

/* ---- which go together ---- */

static bool goes_alone(const struct pg_use *u)
{
	return !u->many || u->size > ALONE_MIN;
}

/* Takes those that are like the first, up to one that may not be overtaken. */
static unsigned take_alike(struct uses *all, unsigned from, const char **ret)
{
	struct pg_use first, u;
	unsigned n = 0;

	pg_take_use(all->list[from], &first);
	for (unsigned i = from; i < all->n; i++) {
		if (!all->list[i])
			continue;
		pg_take_use(all->list[i], &u);
		if (!u.many && n > 0)
			break;
		if (n > 0 && (u.many != first.many || goes_alone(&u)))
			continue;
		ret[n++] = all->list[i];
		all->list[i] = NULL;
		if (goes_alone(&first))
			break;
	}
	return n;
}

static int send_some(struct pg *db, struct uses *all)
{
	const char *alike[USES_MAX];
	int r = 0;

	for (unsigned i = 0; i < all->n && r == 0; i++) {
		unsigned n = all->list[i] ? take_alike(all, i, alike) : 0;

		if (n == 1)
			r = pg_send_use(db, alike[0]);
		else if (n > 1)
			r = send_many(db, alike, n);
	}
	return r;
}

int pg_send_uses(struct pg *db, const struct buf *uses)
{
	struct uses all;
	size_t at = 0;
	int r = 0;

	while (at < uses->len && r == 0) {
		for (all.n = 0; at < uses->len && all.n < USES_MAX; all.n++) {
			struct pg_use u;

			pg_take_use(uses->data + at, &u);
			all.list[all.n] = uses->data + at;
			at += u.size;
		}
		r = send_some(db, &all);
	}
	return r;
}
