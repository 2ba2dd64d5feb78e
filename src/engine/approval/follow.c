/*
 * Approvals that other hosts ask for and decide. All pending ones are in memory on every host, so that
 * waiters here are notified wherever a decision was made.
 */
#include <errno.h>
#include <stddef.h>

#include "base/log.h"
#include "engine/approval/inner.h"
#include "store/store.h"

static struct record *approval_follow_find(void *approvals, struct text project, struct text id)
{
	struct pending *p = pending_find(approvals, id);

	return p ? &p->record : NULL;
}

static void key_of(const struct record *r, struct text *ret_project, struct text *ret_id)
{
	*ret_project = (struct text) {0};
	*ret_id = list_entry(r, struct pending, record)->row.id;
}

static int approval_follow_read_rows(void *arg, int lane, struct arena *a,
				     struct record_found *found, unsigned n)
{
	const struct approvals *of = arg;
	const struct text *ids = record_ids(a, found, n);
	struct approval *rows;
	unsigned n_rows;
	int r = ids ? store_approval_find_named(store_lane(of->opts.store, lane), ids, n, a, &rows,
						&n_rows)
		    : -ENOMEM;

	if (r == 0)
		record_match(found, n, rows, n_rows, sizeof(*rows), offsetof(struct approval, id));
	return r;
}

static void take_found(void *approvals, const struct record_found *found)
{
	struct approvals *a = approvals;
	struct pending *p = pending_find(a, found->id);
	const struct approval *row = found->row;
	bool waits = row && row->status == APPROVAL_PENDING;

	if (p && waits)
		record_fresh(&p->record);
	else if (p)
		pending_resolved(a, p, row);
	else if (waits && !pending_get(a, row))
		log_err("could not load approval from another host", "approval=%.*s reason=\"%s\"",
			TEXT_ARGS(found->id), "out of memory");
}

static int approval_follow_reload(void *approvals)
{
	struct approvals *a = approvals;
	int r = 0;

	list_for_each (at, following, &a->pending) {
		if (r == 0)
			r = records_want(&a->records, (struct text) {0},
					 list_entry(at, struct pending, link)->row.id);
	}
	return r;
}

static int list_pending(void *approvals, int lane, struct arena *a, struct record_found **ret,
			unsigned *ret_n)
{
	const struct approvals *of = approvals;
	struct text *ids;
	int r = store_approval_pending(store_lane(of->opts.store, lane), a, &ids, ret_n);

	return r ?: record_keys(a, ids, *ret_n, ret);
}

int approvals_follow(struct approvals *a)
{
	static const struct text types[] = {TEXT("approval.*")};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 1,
		.find = approval_follow_find,
		.key = key_of,
		.read = approval_follow_read_rows,
		.sync = take_found,
		.reload = approval_follow_reload,
		.list = list_pending,
	};
	const struct records_opts opts = {
		.events = a->opts.events,
		.node = a->opts.node,
		.loop = a->opts.loop,
		.workers = a->opts.workers,
		.name = "approval",
		.arg = a,
		.reads = &reads,
	};

	return records_start(&a->records, &opts);
}
