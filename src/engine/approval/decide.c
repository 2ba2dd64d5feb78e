/*
 * Deciding, by a human or by timeout. The first decision that the writer stores wins; anyone
 * who comes later learns that it is decided, and how.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "base/error.h"
#include "engine/approval/inner.h"
#include "store/session.h"
#include "store/store.h"

struct decide {
	struct work work;
	struct approvals *approvals;
	struct arena arena;
	struct approval_decision in; /* copied */
	struct approval row;         /* as it is */
	bool found;
	bool gone; /* its asker is: this process */
	int64_t waiter_pid;
	int64_t waiter_started;
	unsigned n_bound; /* as it was in the pending */
	struct error error;
	approval_fn fn; /* NULL: nobody requested it */
	void *arg;
};

/* ---- the request ---- */

static int check_grant(const struct approval_decision *d, struct error *error)
{
	static const int64_t longest_ms = 100LL * 366 * 24 * 3600 * 1000;

	if (!d->grants)
		return 0;
	if (d->status != APPROVAL_APPROVED && d->status != APPROVAL_DENIED)
		return refuse_field(error, "grant",
				    "a grant requires the decision approve or deny");
	if (d->grant_ms < 0 || d->grant_ms > longest_ms)
		return refuse_field(error, "grant_time",
				    "grant time must be between 0 and 100 years, not %lld ms",
				    (long long)d->grant_ms);
	if (d->grant_uses < 0)
		return refuse_field(error, "grant_uses", "grant uses must be at least 0, not %lld",
				    (long long)d->grant_uses);
	return 0;
}

static int check_decision(const struct approval_decision *d, struct error *error)
{
	const struct text_limit texts[] = {
		{d->id, "id", APPROVAL_ID_MAX},
		{d->comment, "comment", APPROVAL_COMMENT_MAX},
		{d->by, "by", APPROVAL_NAME_MAX},
	};
	int r;

	if (d->id.len == 0)
		return refuse_field(error, "id", "id is empty");
	r = texts_check(texts, sizeof(texts) / sizeof(texts[0]), error);
	if (r == 0 && (d->status == APPROVAL_PENDING || d->status == APPROVAL_EXPIRED))
		r = refuse_field(error, "decision",
				 "invalid decision '%s': expected approved, denied or responded",
				 approval_status_name(d->status));
	if (r == 0 && d->status == APPROVAL_RESPONDED && d->comment.len == 0)
		r = refuse_field(error, "comment",
				 "comment is required for human contact response");
	return r ?: check_grant(d, error);
}

static int check_kind(const struct decide *d, struct error *error)
{
	enum approval_status status = d->in.status;

	if (d->row.kind == APPROVAL_FUNCTION && status == APPROVAL_RESPONDED)
		return refuse_field(error, "decision", "invalid decision for function_call: %s",
				    approval_status_name(status));
	if (d->row.kind == APPROVAL_CONTACT &&
	    (status == APPROVAL_APPROVED || status == APPROVAL_DENIED))
		return refuse_field(error, "decision", "invalid decision for human_contact: %s",
				    approval_status_name(status));
	return 0;
}

/* ---- on the writer's thread ---- */

/* If the tool's name is a pattern, it would grant far more than was asked. */
static bool is_pattern(struct text t)
{
	return text_find(t, '*') || text_find(t, '?');
}

static int add_grant(struct decide *d, struct connection *db)
{
	struct grant g = {
		.session = d->in.grant_session ? d->row.session : (struct text) {0},
		.agent = d->row.agent,
		.tool = d->row.tool,
		.verdict = d->in.status == APPROVAL_DENIED ? GRANT_DENIES : GRANT_ALLOWS,
		.comment = d->in.comment,
		.created_ms = d->row.decided_ms,
		.expires_ms = d->in.grant_ms > 0 ? d->row.decided_ms + d->in.grant_ms : 0,
		.uses = d->in.grant_uses > 0 ? d->in.grant_uses : -1,
	};
	char id[UUID_LEN + 1];
	int r;

	if (is_pattern(g.tool))
		return refuse_field(&d->error, "grant",
				    "cannot create a grant for a tool name with * or ?");
	if (d->in.grant_session && !g.session.data)
		return refuse_field(&d->error, "grant",
				    "cannot create a grant: this approval has no session");
	r = uuid4(id);
	g.id = text_of(id);
	return r == 0 ? grant_keep(db, &d->arena, &g, &d->error) : r;
}

enum session_approval approval_event_word(enum approval_status status)
{
	switch (status) {
	case APPROVAL_PENDING:
		return SESSION_APPROVAL_PENDING;
	case APPROVAL_APPROVED:
	case APPROVAL_RESPONDED:
		return SESSION_APPROVAL_APPROVED;
	case APPROVAL_DENIED:
		return SESSION_APPROVAL_DENIED;
	case APPROVAL_EXPIRED:
	case APPROVAL_SUPERSEDED:
	case N_APPROVAL_STATUSES:
		break;
	}
	return SESSION_APPROVAL_RESOLVED;
}

static int approval_decide_find(struct decide *d, struct connection *db)
{
	int r = store_approval_find(db, d->in.id, &d->arena, &d->row, &d->found);

	if (r == 0 && !d->found)
		r = refuse(&d->error, REFUSE_NOT_FOUND, "approval not found: %.*s",
			   TEXT_ARGS(d->in.id));
	return r;
}

static int refuse_second(struct decide *d)
{
	return refuse(&d->error, REFUSE_CONFLICT, "this approval has already been responded to");
}

/* The asker may withdraw it; only others may decide it. */
static int see_decider(struct decide *d, struct approval *row)
{
	if (d->in.status == APPROVAL_SUPERSEDED)
		return 0;
	if (d->in.via.data) {
		row->decider_known = true;
		row->decider_uid = getuid();
		row->decider_program = d->in.via;
		return decider_check(d->approvals, &d->arena, &d->in.from, &d->row, NULL,
				     &d->error);
	}
	return decider_check(d->approvals, &d->arena, &d->in.from, &d->row, row, &d->error);
}

/* Another host was quicker, since we looked. */
static int lost(struct decide *d, struct connection *db)
{
	int r = approval_decide_find(d, db);

	return r == 0 ? refuse_second(d) : r;
}

static int change(struct decide *d, struct connection *db)
{
	struct approval row = d->row;
	bool done = false;
	int r;

	row.status = d->in.status;
	row.comment = d->in.comment;
	row.decided_by = d->in.by;
	row.decided_ms = clock_utc_ms();
	r = see_decider(d, &row) ?: store_approval_decide(db, &row, &done);
	if (r != 0 || !done)
		return r != 0 ? r : lost(d, db);
	d->row = row;
	if (row.event_id > 0)
		r = store_session_event_approval(db, row.event_id, approval_event_word(row.status),
						 (struct text) {0});
	/* A grant covers more than this question, so the processes of all agents are refused. */
	if (r == 0 && d->in.grants)
		r = decider_check(d->approvals, &d->arena, &d->in.from, NULL, NULL, &d->error);
	if (r == 0 && d->in.grants)
		r = add_grant(d, db);
	return r == 0 ? approval_tell_resolved(d->approvals->opts.events, &row) : r;
}

static int decide_on(struct decide *d, struct connection *db)
{
	int r = approval_decide_find(d, db) ?: check_kind(d, &d->error);

	if (r == 0 && d->row.status != APPROVAL_PENDING)
		r = refuse_second(d);
	if (r == 0 && d->gone &&
	    !pending_is_bound(d->approvals, d->waiter_pid, d->waiter_started, &d->row))
		r = refuse(&d->error, REFUSE_FORBIDDEN,
			   "cannot withdraw: another process is waiting for this approval");
	if (r == 0 && d->in.check)
		r = d->in.check(d->in.shown, &d->row, &d->error);
	return r == 0 ? change(d, db) : r;
}

static int decide_run(struct work *w, int lane)
{
	struct decide *d = list_entry(w, struct decide, work);

	return decide_on(d, store_writer(d->approvals->opts.store));
}

/* ---- on the loop ---- */

static void decide_free(struct decide *d)
{
	arena_done(&d->arena);
	free(d);
}

/* An end that nobody requested must not be lost because the disk is full: try it again. */
static void end_failed(struct approvals *a, struct pending *p, int result)
{
	if (!a->ends_fail && result != -ECANCELED)
		log_err("could not store approval, retrying", "approval=%.*s error=%s",
			TEXT_ARGS(p->row.id), fault_words(result));
	a->ends_fail = true;
	pending_end_again(a, p);
}

/* The waiter whose end this is does not count any more. */
static bool is_bound_anew(const struct decide *d, const struct pending *p, int result)
{
	return result == REFUSE_FORBIDDEN || (d->gone && p->n_bound != d->n_bound);
}

/* Reports the row, or without one the refusal, to the decider and then to all waiters. Callbacks may do anything, so
 * only the local list is used afterwards. */
static void approval_decide_settle(struct decide *d, int result, struct pending *p,
				   const struct approval *row)
{
	struct approval approval;
	const struct error no_reason = {0};
	struct arena arena;
	struct list waiters;

	list_init(&waiters);
	if (p)
		pending_take(d->approvals, p, &waiters);
	arena_init(&arena, APPROVAL_INPUT_ARENA_MAX);
	if (row)
		approval = approval_of(&arena, row);
	if (d->fn)
		d->fn(d->arg, result, row ? &approval : NULL, &d->error);
	waiters_tell(&waiters, row ? 0 : result, row ? &approval : NULL,
		     row ? &no_reason : &d->error);
	arena_done(&arena);
}

static void decide_finished(struct work *w, int result)
{
	struct decide *d = list_entry(w, struct decide, work);
	struct approvals *a = d->approvals;
	struct pending *p = pending_find(a, d->in.id);

	if (result == 0) {
		records_touch(&a->records);
		a->ends_fail = false;
		approval_note(a, &d->row, d->fn ? APPROVAL_BY_CLIENT : APPROVAL_BY_NOBODY);
	}
	if (result == 0 || result == REFUSE_CONFLICT) {
		approval_decide_settle(d, result, p, &d->row);
	} else if (result == REFUSE_NOT_FOUND) {
		/* Somebody else has deleted it. */
		approval_decide_settle(d, result, p, NULL);
	} else if (d->fn) {
		d->fn(d->arg, result, NULL, &d->error);
	} else if (p && is_bound_anew(d, p, result)) {
		pending_bound_anew(p, d->n_bound);
	} else if (p) {
		end_failed(a, p, result);
	}
	decide_free(d);
}

static int decide_new(struct approvals *a, const struct approval_decision *in,
		      struct decide **ret_decide)
{
	struct decide *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->approvals = a;
	d->in = *in;
	arena_init(&d->arena, APPROVAL_ARENA_MAX);
	r = arena_copy_text(&d->arena, in->id, &d->in.id) ?:
		arena_copy_text(&d->arena, in->comment, &d->in.comment) ?:
		arena_copy_text(&d->arena, in->by.data ? in->by : TEXT("human"), &d->in.by) ?:
		arena_copy_text(&d->arena, in->via, &d->in.via);
	d->work =
		(struct work) {.run = decide_run, .finished = decide_finished, .arena = &d->arena};
	if (r == 0)
		*ret_decide = d;
	else
		decide_free(d);
	return r;
}

int approval_decide(struct approvals *a, const struct approval_decision *in, approval_fn fn,
		    void *arg, struct error *error)
{
	struct decide *d;
	int r = check_decision(in, error) ?: decide_new(a, in, &d);

	if (r != 0)
		return r;
	d->fn = fn;
	d->arg = arg;
	workers_start(a->opts.workers, &d->work, true);
	return 0;
}

void approval_end(struct approvals *a, struct pending *p)
{
	static const struct {
		enum approval_status status;
		const char *by; /* NULL: its agent */
		const char *comment;
	} ends[] = {
		[END_EXPIRES] = {APPROVAL_EXPIRED, "timeout"},
		[END_SESSION] = {APPROVAL_SUPERSEDED, "session"},
		[END_CLIENT] = {APPROVAL_SUPERSEDED, "client", APPROVAL_DISCONNECTED},
		[END_RESTART] = {APPROVAL_SUPERSEDED, NULL, "koined was restarted"},
	};
	const struct approval_decision in = {
		.id = p->row.id,
		.status = ends[p->end].status,
		.by = ends[p->end].by ? text_of(ends[p->end].by) : p->row.agent,
		.comment = text_of(ends[p->end].comment),
	};
	struct decide *d;
	int r = decide_new(a, &in, &d);

	if (r != 0) {
		end_failed(a, p, r);
		return;
	}
	p->ending = true;
	d->gone = p->gone;
	d->waiter_pid = p->waiter_pid;
	d->waiter_started = p->waiter_started;
	d->n_bound = p->n_bound;
	workers_start(a->opts.workers, &d->work, true);
}
