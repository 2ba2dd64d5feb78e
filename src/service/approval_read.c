/* Approvals as they are read, and forgotten. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/pack.h"
#include "service/approval_inner.h"
#include "service/services.h"
#include "store/store.h"

enum {
	LIST_BYTES = 8 << 20,
	SWEEP_AT_ONCE = 100,
	SWEEP_EVERY_MS = 10 * 60 * 1000,
};

static const struct value nothing = {.kind = VALUE_OBJECT};

static int unpack(struct arena *a, const struct approval_row *row, struct approval *ret)
{
	struct value *input = NULL;
	int r = row->input.data ? value_unpack(a, row->input, &input) : 0;

	if (r == 0)
		*ret = (struct approval) {.row = *row, .input = input ? input : &nothing};
	return r;
}

struct approval approval_of(struct arena *a, const struct approval_row *row)
{
	struct approval approval;

	if (unpack(a, row, &approval) != 0)
		approval = (struct approval) {.row = *row, .input = &nothing};
	return approval;
}

/* Of those that the arena has no room for none is shown: a human must not see less of one than it
 * is. */
static int unpack_all(struct arena *a, const struct approval_row *rows, unsigned n,
		      struct approval **ret_list, unsigned *ret_n)
{
	struct approval *list = arena_alloc(a, (n + 1) * sizeof(list[0]));
	unsigned i = 0;
	int r = list ? 0 : -ENOMEM;

	while (r == 0 && i < n) {
		r = unpack(a, &rows[i], &list[i]);
		i += r == 0;
	}
	if (r != 0 && i == 0)
		return r;
	*ret_list = list;
	*ret_n = i;
	return 0;
}

int approval_list(struct services *s, int lane, struct arena *a, const struct approval_filter *f,
		  struct approval **ret_approvals, unsigned *ret_n)
{
	const struct store_approval_query q = {
		.status = f->status,
		.session = f->session,
		.oldest_first = f->status == APPROVAL_PENDING,
		.limit = f->limit > 0 && f->limit < APPROVAL_LIST_MAX ? (unsigned)f->limit
								      : APPROVAL_LIST_MAX,
		.max_bytes = LIST_BYTES,
	};
	struct approval_row *rows;
	unsigned n = 0;
	int r = store_approval_list(store_lane(s->store, lane), &q, a, &rows, &n);

	return r == 0 ? unpack_all(a, rows, n, ret_approvals, ret_n) : r;
}

/* ---- the beginning of an id ---- */

/* What we make begins alike; people leave that out. */
static int find_id(struct connection *db, struct arena *a, struct text id, bool waiting,
		   struct text *ret_id, unsigned *ret_n)
{
	char made[APPROVAL_ID_MAX + 8];
	int r = store_approval_find_short(db, id, waiting, a, ret_id, ret_n);

	if (r != 0 || *ret_n > 0)
		return r;
	snprintf(made, sizeof(made), "local-%.*s", TEXT_ARGS(id));
	return store_approval_find_short(db, text_of(made), waiting, a, ret_id, ret_n);
}

/* One that waits is meant before all that were decided long ago. */
static int find_short(struct connection *db, struct arena *a, struct text id,
		      struct approval_row *ret_row, bool *ret_found, struct why *why)
{
	struct text whole;
	unsigned n = 0;
	int r = find_id(db, a, id, true, &whole, &n);

	if (r == 0 && n == 0)
		r = find_id(db, a, id, false, &whole, &n);
	if (r == 0 && n > 1)
		r = refuse_field(why, "id", "several approvals begin with %.*s", TEXT_ARGS(id));
	if (r != 0 || n == 0)
		return r;
	return store_approval_find(db, whole, a, ret_row, ret_found);
}

int approval_get(struct services *s, int lane, struct arena *a, struct text id, bool short_id,
		 struct approval *ret_approval, struct why *why)
{
	struct connection *db = store_lane(s->store, lane);
	struct approval_row row = {0};
	bool found = false;
	int r = approval_check_text(id, "id", APPROVAL_ID_MAX, why);

	if (r == 0)
		r = store_approval_find(db, id, a, &row, &found);
	if (r == 0 && !found && short_id && id.len > 0)
		r = find_short(db, a, id, &row, &found, why);
	if (r == 0 && !found)
		r = refuse(why, REFUSE_NOT_FOUND, "approval not found: %.*s", TEXT_ARGS(id));
	return r == 0 ? unpack(a, &row, ret_approval) : r;
}

/* ---- forgetting ---- */

bool approval_sweeps(struct services *s)
{
	struct approvals *a = s->approvals;
	uint64_t now = clock_steady_ms();

	if (!a || now < a->sweep_ms)
		return false;
	a->sweep_ms = now + SWEEP_EVERY_MS;
	return true;
}

int approval_sweep(struct services *s, bool *ret_more)
{
	struct connection *db = store_writer(s->store);
	int64_t now = clock_utc_ms();
	unsigned n = 0;
	int r = store_grant_sweep(db, now);

	if (r == 0 && s->approvals->keep_ms > 0)
		r = store_approval_sweep(db, now - s->approvals->keep_ms, SWEEP_AT_ONCE, &n);
	if (r == 0)
		*ret_more = n == SWEEP_AT_ONCE;
	return r;
}
