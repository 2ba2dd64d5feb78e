#include "store/index/kept.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/memory_inner.h"

int store_memory_position(struct connection *c, struct store_position *ret_position)
{
	QUERY sql = {"SELECT (SELECT coalesce(max(seq), 0) FROM memory),"
		     " (SELECT coalesce(max(number), 0) FROM memory_change)"};
	_Static_assert(sizeof(*ret_position) == 2 * sizeof(int64_t), "numbers side by side");
	return query_find_ints(c, &sql, &ret_position->seq, 2, NULL);
}

/* ---- files ---- */

#define KEPT "token, seq, change, memories, bytes"

static int read_kept(struct statement *q, struct store_kept *ret)
{
	struct text token = query_text(q, 0);

	if (query_fault(q) != 0)
		return query_fault(q);
	if (token.len != STORE_TOKEN_LEN)
		return -EBADMSG;
	snprintf(ret->token, sizeof(ret->token), "%.*s", TEXT_ARGS(token));
	ret->position = (struct store_position) {query_int(q, 1), query_int(q, 2)};
	ret->memories = query_int(q, 3);
	ret->bytes = query_int(q, 4);
	return query_fault(q);
}

int store_kept_find(struct connection *c, const char *kind, struct text name,
		    struct store_kept *ret_kept, bool *ret_found)
{
	QUERY sql = {"SELECT " KEPT " FROM memory_index WHERE kind = :kind AND name = :name"};
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &sql, BIND(":kind", text_of(kind)), BIND(":name", name));
	int r;

	r = query_next(q, ret_found);
	return r == 0 && *ret_found ? read_kept(q, ret_kept) : r;
}

int store_kept_put(struct connection *c, const struct store_kept *kept)
{
	QUERY sql = {
		"INSERT INTO memory_index (kind, name, " KEPT ", written_ms)"
		" VALUES (:kind, :name, :token, :seq, :change, :memories, :bytes, :now)"
		" ON CONFLICT (kind, name) DO UPDATE SET token = excluded.token, seq = "
		"excluded.seq,"
		" change = excluded.change, memories = excluded.memories, bytes = excluded.bytes,"
		" written_ms = excluded.written_ms"};

	return query_do(c, &sql, BIND(":kind", text_of(kept->kind)), BIND(":name", kept->name),
			BIND(":token", text_of(kept->token)), BIND(":seq", kept->position.seq),
			BIND(":change", kept->position.change), BIND(":memories", kept->memories),
			BIND(":bytes", kept->bytes), BIND(":now", clock_utc_ms()));
}

int store_kept_drop(struct connection *c, const char *token)
{
	QUERY sql = {"DELETE FROM memory_index WHERE token = :token"};

	return query_do(c, &sql, BIND(":token", text_of(token)));
}

int store_kept_drop_scope(struct connection *c, const char *kind, struct text name,
			  char (*ret_tokens)[STORE_TOKEN_LEN + 1], unsigned *ret_n)
{
	QUERY sql = {"DELETE FROM memory_index WHERE kind = 'all'"
		     " OR (kind = :kind AND name = :name) RETURNING token"};
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &sql, BIND(":kind", text_of(kind)), BIND(":name", name));
	bool more = true;
	int r = 0;

	for (*ret_n = 0; r == 0 && more && *ret_n < 2;) {
		r = query_next(q, &more);
		if (r == 0 && more)
			snprintf(ret_tokens[(*ret_n)++], STORE_TOKEN_LEN + 1, "%.*s",
				 TEXT_ARGS(query_text(q, 0)));
	}
	return r != 0 ? r : query_fault(q);
}

int store_kept_drop_all(struct connection *c)
{
	QUERY sql = {"DELETE FROM memory_index"};

	return query_do(c, &sql);
}

/* Each along an index, and there are few. */
int store_kept_drop_gone(struct connection *c)
{
	QUERY sql = {
		"DELETE FROM memory_index WHERE"
		" (kind = 'user' AND NOT EXISTS (SELECT 1 FROM memory WHERE owner = name))"
		" OR (kind = 'chat' AND NOT EXISTS"
		" (SELECT 1 FROM memory WHERE owner IS NULL AND chat = name))"
		" OR (kind = 'project' AND NOT EXISTS"
		" (SELECT 1 FROM memory WHERE owner IS NULL AND chat IS NULL AND project = name))"
		" OR NOT EXISTS (SELECT 1 FROM memory)"};

	return query_do(c, &sql);
}

int store_kept_each(struct connection *c, kept_fn fn, void *arg)
{
	QUERY sql = {"SELECT " KEPT " FROM memory_index ORDER BY written_ms DESC"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct store_kept kept = {0};
	bool more;
	int r;

	while ((r = query_next(q, &more)) == 0 && more) {
		r = read_kept(q, &kept) ?: fn(arg, &kept);
		if (r != 0)
			break;
	}
	return r;
}

int store_kept_count(struct connection *c, int64_t *ret_n, int64_t *ret_bytes)
{
	QUERY sql = {"SELECT count(*), coalesce(sum(bytes), 0) FROM memory_index"};
	int64_t found[2];
	int r = query_find_ints(c, &sql, found, 2, NULL);

	if (r != 0)
		return r;
	*ret_n = found[0];
	*ret_bytes = found[1];
	return 0;
}

/* ---- what has changed ---- */

enum { CHANGES_AT_ONCE = 256 };

/* Numbers have no gaps: where one is missing, notes have gone since it was decided to read them. */
static int read_notes(struct connection *c, int64_t *after, unsigned limit, int64_t *seqs,
		      unsigned *ret_n)
{
	QUERY sql = {"SELECT number, seq FROM memory_change"
		     " WHERE number > :after ORDER BY number LIMIT :limit"};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":after", *after), BIND(":limit", limit));
	unsigned n = 0;
	bool more;
	int r;

	while ((r = query_next(q, &more)) == 0 && more) {
		if (query_int(q, 0) != *after + 1)
			return -ESTALE;
		*after += 1;
		seqs[n++] = query_int(q, 1);
	}
	*ret_n = n;
	return r;
}

static int tell_row(struct connection *c, const struct store_scope *scope, int64_t seq,
		    memory_fn fn, void *arg)
{
	QUERY sql = {"SELECT {columns} FROM memory WHERE seq = :seq"
		     " AND " IN_SCOPE,
		     .of = &memory_schema};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":seq", seq), BIND_SCOPE(scope));
	struct memory row = {.seq = seq};
	bool found;
	int r;

	r = query_next(q, &found);
	if (r == 0 && found)
		query_read_members(q, &row);
	return r ?: query_fault(q) ?: fn(arg, &row);
}

int store_memory_each_changed(struct connection *c, const struct store_scope *scope, int64_t *after,
			      unsigned limit, memory_fn fn, void *arg, bool *ret_end)
{
	int64_t seqs[CHANGES_AT_ONCE];
	unsigned n = 0;
	int r;

	if (limit > CHANGES_AT_ONCE)
		limit = CHANGES_AT_ONCE;
	r = read_notes(c, after, limit, seqs, &n);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = tell_row(c, scope, seqs[i], fn, arg);
	*ret_end = n < limit;
	return r;
}

#define NUMBERED(hint)                                                                             \
	"SELECT {columns} FROM memory" hint " WHERE seq > :from AND seq <= :to AND " IN_SCOPE      \
	" ORDER BY seq"

/* Along the numbers: the scope's own order says nothing about what is new. */
int store_memory_each_numbered(struct connection *c, const struct store_scope *scope, int64_t from,
			       int64_t to, memory_fn fn, void *arg)
{
	QUERY sql = {NUMBERED(" NOT INDEXED"), .postgres = NUMBERED(""), .of = &memory_schema};
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &sql, BIND(":from", from), BIND(":to", to), BIND_SCOPE(scope));

	return store_memory_hand_out(q, fn, arg);
}
