#include "store/host/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/db/query.h"

/* Whoever lost the attempt neither adds nor deletes: another host's are there by now. */
#define OUR_ATTEMPT                                                                                \
	"FROM task WHERE seq = :task AND state = 1 AND attempts = :attempt AND epoch = :life"      \
	" AND (CAST(:holder AS TEXT) IS NULL OR host = :holder)"

#define BIND_ATTEMPT(chunk, at)                                                                    \
	BIND(":task", (chunk)->task), BIND(":attempt", (chunk)->attempts),                         \
		BIND(":life", (chunk)->epoch), BIND(":holder", (chunk)->host), BIND(":place", at)

static int delete_from(struct connection *c, const struct task_chunk *chunk)
{
	QUERY sql = {"DELETE FROM task_chunk WHERE task = :task AND place >= :place"
		     " AND EXISTS (SELECT 1 " OUR_ATTEMPT ")"};
	return query_do(c, &sql, BIND_ATTEMPT(chunk, chunk->place));
}

static int delete_before(struct connection *c, const struct task_chunk *chunk, int64_t place)
{
	QUERY sql = {"DELETE FROM task_chunk WHERE task = :task AND place < :place"
		     " AND EXISTS (SELECT 1 " OUR_ATTEMPT ")"};
	return query_do(c, &sql, BIND_ATTEMPT(chunk, place));
}

static int chunk_insert(struct connection *c, const struct task_chunk *chunk)
{
	QUERY sql = {"INSERT INTO task_chunk (task, place, bytes) SELECT seq, "
		     ":place, :bytes " OUR_ATTEMPT " ON CONFLICT (task, place) DO NOTHING"};
	return query_do(c, &sql, BIND_ATTEMPT(chunk, chunk->place),
			BIND_BLOB(":bytes", chunk->bytes));
}

int store_chunk_add(struct connection *c, const struct task_chunk *chunk)
{
	int64_t end = chunk->place + (int64_t)chunk->bytes.len;
	int r = chunk->first ? delete_from(c, chunk) : 0;

	if (r == 0)
		r = chunk_insert(c, chunk);
	if (r == 0 && end > TASK_CHUNKS_MAX)
		r = delete_before(c, chunk, end - TASK_CHUNKS_MAX);
	return r;
}

int store_chunk_end(struct connection *c, int64_t task, int64_t *ret_end)
{
	QUERY sql = {"SELECT place + length(bytes) FROM task_chunk WHERE task = :task"
		     " ORDER BY place DESC LIMIT 1"};

	return query_find_int(c, &sql, ret_end, BIND(":task", task));
}

/* Copies what follows; what comes before `*at` is cut away, and a gap is skipped if nothing is there yet. */
static bool chunk_take(char *out, size_t max, size_t *n, int64_t *at, int64_t place,
		       struct text bytes)
{
	int64_t next = *at + (int64_t)*n;
	size_t skip = place < next ? (size_t)(next - place) : 0;
	size_t len;

	if (place > next && *n > 0)
		return false;
	if (place > next)
		*at = place;
	if (skip >= bytes.len)
		return true;
	len = bytes.len - skip;
	if (len > max - *n)
		len = max - *n;
	memcpy(out + *n, bytes.data + skip, len);
	*n += len;
	return *n < max;
}

int store_chunk_read(struct connection *c, int64_t task, int64_t offset, size_t max,
		     struct arena *arena, struct text *ret_bytes, int64_t *ret_offset,
		     int64_t *ret_end)
{
	/* By the index alone: there may be very many. */
	QUERY sql = {"SELECT place, bytes FROM task_chunk WHERE task = :task AND place >="
		     " coalesce((SELECT max(place) FROM task_chunk WHERE task = :task AND place <= "
		     ":from), 0)"
		     " ORDER BY place"};
	char *out = arena_alloc(arena, max);
	int64_t end = 0, at;
	bool more = true;
	size_t n = 0;
	int r = out ? store_chunk_end(c, task, &end) : -ENOMEM;

	if (r != 0)
		return r;
	at = offset >= 0 ? offset : end + offset > 0 ? end + offset : 0;
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":task", task), BIND(":from", at));
	while ((r = query_next(q, &more)) == 0 && more &&
	       chunk_take(out, max, &n, &at, query_int(q, 0), query_blob(q, 1)))
		continue;
	if (r != 0)
		return r;
	*ret_bytes = (struct text) {.data = out, .len = n};
	*ret_offset = at;
	*ret_end = end;
	return 0;
}
