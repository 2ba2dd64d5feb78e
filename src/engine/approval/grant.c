/* Grants: what a human has allowed or denied in advance. There are few, and they are only in the
 * store. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "engine/approval/inner.h"
#include "store/store.h"

int grant_keep(struct connection *db, struct arena *arena, const struct grant *row,
	       struct error *error)
{
	struct grant *grants;
	unsigned n = 0;
	int r = store_grant_list(db, clock_utc_ms(), arena, &grants, &n);

	if (r == 0 && n >= APPROVAL_GRANTS_MAX)
		r = refuse(error, REFUSE_LIMIT, "too many grants (limit %d); revoke some",
			   APPROVAL_GRANTS_MAX);
	return r == 0 ? store_grant_add(db, row) : r;
}

int grant_list(struct approvals *approvals, int lane, struct arena *a, struct grant **ret_rows,
	       unsigned *ret_n)
{
	return store_grant_list(store_lane(approvals->opts.store, lane), clock_utc_ms(), a,
				ret_rows, ret_n);
}

/* ---- changes ---- */

struct grant_change {
	struct work work;
	struct approvals *approvals;
	struct arena arena;
	struct grant row;
	struct approval_client from;
	bool removes;
	struct error error;
	approval_fn fn;
	void *arg;
};

static int remove_grant(struct grant_change *c, struct connection *db)
{
	bool found = false;
	int r = store_grant_remove(db, c->row.id, &found);

	if (r == 0 && !found)
		r = refuse(&c->error, REFUSE_NOT_FOUND, "grant not found: %.*s",
			   TEXT_ARGS(c->row.id));
	return r;
}

static int grant_run(struct work *w, int lane)
{
	struct grant_change *c = list_entry(w, struct grant_change, work);
	struct connection *db = store_writer(c->approvals->opts.store);
	int r = decider_check(c->approvals, &c->arena, &c->from, NULL, NULL, &c->error);

	if (r == 0)
		r = c->removes ? remove_grant(c, db)
			       : grant_keep(db, &c->arena, &c->row, &c->error);
	if (r == -EEXIST)
		r = refuse(&c->error, REFUSE_CONFLICT, "duplicate grant '%.*s'",
			   TEXT_ARGS(c->row.id));
	return r;
}

static void change_free(struct grant_change *c)
{
	arena_done(&c->arena);
	free(c);
}

static void grant_finished(struct work *w, int result)
{
	struct grant_change *c = list_entry(w, struct grant_change, work);

	c->fn(c->arg, result, NULL, &c->error);
	change_free(c);
}

static int approval_grant_submit(struct approvals *a, const struct grant *row, bool removes,
				 const struct approval_client *from, approval_fn fn, void *arg)
{
	struct grant_change *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct grant_change) {
		.work = {.run = grant_run, .finished = grant_finished, .arena = &c->arena},
		.approvals = a,
		.row = *row,
		.removes = removes,
		.fn = fn,
		.arg = arg,
	};
	if (from)
		c->from = *from;
	arena_init(&c->arena, APPROVAL_ARENA_MAX);
	r = schema_copy(&grant_schema, &c->arena, &c->row);
	if (r == 0)
		workers_start(a->opts.workers, &c->work, true);
	else
		change_free(c);
	return r;
}

static int check_grant(const struct grant *row, struct error *error)
{
	const struct text_limit texts[] = {
		{row->id, "id", APPROVAL_ID_MAX},
		{row->session, "session_id", APPROVAL_NAME_MAX},
		{row->agent, "agent", APPROVAL_NAME_MAX},
		{row->tool, "tool", APPROVAL_TOOL_MAX},
		{row->pattern, "pattern", APPROVAL_PATTERN_MAX},
		{row->comment, "comment", APPROVAL_COMMENT_MAX},
	};
	int r = texts_check(texts, sizeof(texts) / sizeof(texts[0]), error);

	if (r != 0)
		return r;
	if (!row->session.data && !row->agent.data && !row->tool.data && !row->pattern.data)
		return refuse_field(error, "tool",
				    "a grant requires a tool, an agent, a session or a pattern");
	if (row->expires_ms != 0 && row->expires_ms <= clock_utc_ms())
		return refuse_field(error, "expires", "expires must be a time in the future");
	return 0;
}

int grant_add(struct approvals *a, const struct grant *in, const struct approval_client *from,
	      approval_fn fn, void *arg, struct error *error)
{
	struct grant row = *in;
	char id[UUID_LEN + 1];
	int r = check_grant(in, error);

	if (r == 0 && row.id.len == 0) {
		r = uuid4(id);
		row.id = text_of(id);
	}
	if (row.created_ms == 0)
		row.created_ms = clock_utc_ms();
	if (row.uses <= 0)
		row.uses = -1;
	return r ?: approval_grant_submit(a, &row, false, from, fn, arg);
}

int grant_remove(struct approvals *a, struct text id, const struct approval_client *from,
		 approval_fn fn, void *arg, struct error *error)
{
	return text_check(id, "id", APPROVAL_ID_MAX, error)
		       ?: approval_grant_submit(a, &(struct grant) {.id = id}, true, from, fn, arg);
}
