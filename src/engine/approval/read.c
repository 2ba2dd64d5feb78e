/* Reading approvals, and deleting old ones. */
#include <stdio.h>

#include "base/clock.h"
#include "base/pack.h"
#include "engine/approval/inner.h"
#include "store/store.h"

enum {
	LIST_BYTES = 8 << 20,
	SWEEP_AT_ONCE = 100,
	SWEEP_EVERY_MS = 10 * 60 * 1000,
};

static const struct value nothing = {.kind = VALUE_OBJECT};

static int unpack(struct arena *a, struct approval *row)
{
	struct value *input = NULL;
	int r = row->input.bytes.data ? value_unpack(a, row->input.bytes, &input) : 0;

	if (r == 0)
		row->input.value = input ? input : &nothing;
	return r;
}

struct approval approval_of(struct arena *a, const struct approval *row)
{
	struct approval approval = *row;

	if (unpack(a, &approval) != 0)
		approval.input.value = &nothing;
	return approval;
}

/* An approval that does not fit into the arena is left out: a human must never see only a part
 * of it. */
static int unpack_all(struct arena *a, struct approval *list, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++) {
		int r = unpack(a, &list[i]);

		if (r != 0 && i == 0)
			return r;
		if (r != 0)
			*n = i;
	}
	return 0;
}

int approval_list(struct approvals *approvals, int lane, struct arena *a,
		  const struct approval_filter *f, struct approval **ret_approvals, unsigned *ret_n)
{
	const struct store_approval_query q = {
		.status = f->status,
		.session = f->session,
		.oldest_first = f->status == APPROVAL_PENDING,
		.limit = f->limit > 0 && f->limit < APPROVAL_LIST_MAX ? (unsigned)f->limit
								      : APPROVAL_LIST_MAX,
		.max_bytes = LIST_BYTES,
	};
	struct approval *rows;
	unsigned n = 0;
	int r = store_approval_list(store_lane(approvals->opts.store, lane), &q, a, &rows, &n)
			?: unpack_all(a, rows, &n);

	if (r != 0)
		return r;
	*ret_approvals = rows;
	*ret_n = n;
	return 0;
}

/* ---- prefixes of ids ---- */

/* The ids that start with what was typed. */
struct candidates {
	struct text ids[2];
	unsigned n; /* 2 for more */
	bool whole; /* the first one is exactly what was typed */
};

static int add_beginning(struct connection *db, struct arena *a, const char *word, struct text id,
			 bool waiting, struct candidates *c)
{
	char prefix[APPROVAL_ID_MAX + 8];
	struct text found[2];
	unsigned n = 0;
	int len = snprintf(prefix, sizeof(prefix), "%s%.*s", word, TEXT_ARGS(id));
	int r = store_approval_find_short(db, (struct text) {.data = prefix, .len = (size_t)len},
					  waiting, a, found, &n);

	for (unsigned i = 0; r == 0 && i < n && c->n < 2; i++) {
		c->whole = c->whole || found[i].len == (size_t)len;
		c->ids[c->n++] = found[i];
	}
	return r;
}

/* Ids that koined makes start with such a word, which people neither see nor type. */
static int find_candidates(struct connection *db, struct arena *a, struct text id, bool waiting,
			   struct candidates *ret)
{
	static const char *const words[] = {"", "local-", "rule-"};
	int r = 0;

	*ret = (struct candidates) {0};
	for (size_t i = 0; r == 0 && i < sizeof(words) / sizeof(words[0]); i++)
		r = add_beginning(db, a, words[i], id, waiting, ret);
	return r;
}

static int refuse_several(struct text id, const struct candidates *c, struct error *error)
{
	enum { TYPED = 36, SHOWN = 60 }; /* for ids that may be longer than a message */
	struct text typed = text_cut(id, TYPED);
	struct text first = text_cut(c->ids[0], SHOWN);
	struct text second = text_cut(c->ids[1], SHOWN);

	return refuse_field(error, "id", "ambiguous approval id %.*s: matches %.*s and %.*s",
			    TEXT_ARGS(typed), TEXT_ARGS(first), TEXT_ARGS(second));
}

/* Pending approvals are preferred to decided ones. But a whole id that is also a prefix of
 * another may mean either. */
static int find_short(struct connection *db, struct arena *a, struct text id, struct text *ret_id,
		      struct error *error)
{
	struct candidates all, waiting = {0};
	int r = find_candidates(db, a, id, false, &all);

	if (r == 0 && all.n > 1 && !all.whole)
		r = find_candidates(db, a, id, true, &waiting);
	if (r != 0)
		return r;
	if (waiting.n > 0)
		all = waiting;
	if (all.n > 1)
		return refuse_several(id, &all, error);
	if (all.n == 1)
		*ret_id = all.ids[0];
	return 0;
}

int approval_get(struct approvals *approvals, int lane, struct arena *a, struct text id,
		 bool short_id, struct approval *ret_approval, struct error *error)
{
	struct connection *db = store_lane(approvals->opts.store, lane);
	struct text whole = id;
	bool found = false;
	int r = text_check(id, "id", APPROVAL_ID_MAX, error);

	if (r == 0 && short_id && id.len > 0)
		r = find_short(db, a, id, &whole, error);
	if (r == 0)
		r = store_approval_find(db, whole, a, ret_approval, &found);
	if (r == 0 && !found)
		r = refuse(error, REFUSE_NOT_FOUND, "approval not found: %.*s", TEXT_ARGS(id));
	return r == 0 ? unpack(a, ret_approval) : r;
}

/* ---- deleting ---- */

bool approval_claim_sweep(struct approvals *a)
{
	uint64_t now = clock_steady_ms();

	if (!a || now < a->sweep_ms)
		return false;
	a->sweep_ms = now + SWEEP_EVERY_MS;
	return true;
}

int approval_sweep(struct approvals *a, bool *ret_more)
{
	struct connection *db = store_writer(a->opts.store);
	int64_t now = clock_utc_ms();
	unsigned n = 0;
	int r = store_grant_sweep(db, now);

	if (r == 0 && a->opts.keep_ms > 0)
		r = store_approval_sweep(db, now - a->opts.keep_ms, SWEEP_AT_ONCE, &n);
	if (r == 0)
		*ret_more = n == SWEEP_AT_ONCE;
	return r;
}
