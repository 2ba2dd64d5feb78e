/*
 * The approvals that wait for a human, in memory: they are found by id, and ended by one
 * timer, which is set for the next one due.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/pack.h"
#include "engine/approval/inner.h"
#include "engine/node/node.h"
#include "store/session.h"
#include "store/store.h"

enum { LOAD_PAGE = 100, ELSEWHERE_MS = 2000, LOAD_BYTES = 4 << 20, LOAD_ARENA_MAX = 16 << 20 };

struct pending *pending_find(struct approvals *a, struct text id)
{
	for (struct table_link *at = table_find(&a->by_id, table_hash(id)); at;
	     at = table_next(at)) {
		struct pending *p = list_entry(at, struct pending, by_id);

		if (text_equal(p->row.id, id))
			return p;
	}
	return NULL;
}

/* ---- expiry ---- */

static void arm(struct approvals *a, uint64_t due_ms)
{
	uint64_t now = clock_steady_ms();

	if (a->stopping || (a->armed_ms != 0 && a->armed_ms <= due_ms))
		return;
	a->armed_ms = due_ms;
	timer_start(a->due, due_ms > now ? due_ms - now : 0);
}

static void set_due(struct approvals *a, struct pending *p, uint64_t due_ms)
{
	a->n_due += p->due_ms == 0;
	p->due_ms = due_ms;
	arm(a, due_ms);
}

void pending_end_as(struct approvals *a, struct pending *p, enum pending_end end)
{
	p->end = p->gone ? END_CLIENT : end;
	set_due(a, p, clock_steady_ms());
}

void pending_go_on(struct approvals *a, struct pending *p)
{
	p->ending = false;
	p->gone = false;
	p->end = END_EXPIRES;
	a->n_due -= p->due_ms != 0;
	p->due_ms = 0;
	if (p->expires_ms > 0)
		set_due(a, p, p->expires_ms);
}

void pending_end_again(struct approvals *a, struct pending *p)
{
	p->ending = false;
	set_due(a, p, clock_steady_ms() + APPROVAL_AGAIN_MS);
}

/* Its own host ends it in time, as long as there is one; two would only get into each other's way. */
static bool is_left_to_its_host(const struct approvals *a, const struct pending *p)
{
	const struct host *h = p->row.host.data ? node_find(a->opts.node, p->row.host) : NULL;

	return h && h->state == HOST_ALIVE && p->end == END_EXPIRES;
}

void pending_on_due(void *approvals)
{
	struct approvals *a = approvals;
	uint64_t now = clock_steady_ms();

	a->armed_ms = 0;
	list_for_each (at, following, &a->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		if (p->due_ms == 0 || p->ending)
			continue;
		if (p->due_ms <= now && is_left_to_its_host(a, p))
			set_due(a, p, now + ELSEWHERE_MS);
		else if (p->due_ms <= now)
			approval_end(a, p);
		else
			arm(a, p->due_ms);
	}
}

/* From here on the steady clock is used: setting the wall clock must not end anything early. */
static uint64_t steady_of(int64_t utc_ms)
{
	int64_t wait = utc_ms - clock_utc_ms();

	return clock_steady_ms() + (uint64_t)(wait > 0 ? wait : 0);
}

/* ---- calls that were made meanwhile ---- */

static uint64_t number_of(struct text tool, struct text input)
{
	return text_hash(text_hash(TEXT_HASH, tool), input) | 1;
}

static struct pending *find_call(struct approvals *a, struct text session, uint64_t call)
{
	list_for_each (at, following, &a->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		if (p->call == call && !p->ending && text_equal(p->row.session, session))
			return p;
	}
	return NULL;
}

static bool has_any(struct approvals *a, struct text session)
{
	list_for_each (at, following, &a->pending) {
		const struct pending *p = list_entry(at, struct pending, link);

		if (p->call != 0 && text_equal(p->row.session, session))
			return true;
	}
	return false;
}

void approval_call_was_made(struct approvals *a, struct text session, struct text tool,
			    const struct value *input)
{
	struct pending *p = NULL;
	struct buf packed;

	if (!a || session.len == 0 || !input || !has_any(a, session))
		return;
	buf_init(&packed, APPROVAL_INPUT_MAX);
	value_pack(&packed, input);
	if (packed.err == 0)
		p = find_call(a, session, number_of(tool, (struct text) {packed.data, packed.len}));
	buf_done(&packed);
	if (p)
		pending_end_as(a, p, END_SESSION);
}

/* ---- askers of an earlier daemon ---- */

static bool is_asked_by(const struct pending *p, struct text agent)
{
	return !p->row.host.data && text_equal(p->row.agent, agent);
}

void approvals_each(struct approvals *a, struct text agent,
		    void (*fn)(void *arg, const struct approval *row), void *arg)
{
	list_for_each (at, following, &a->pending) {
		const struct pending *p = list_entry(at, struct pending, link);

		if (is_asked_by(p, agent))
			fn(arg, &p->row);
	}
}

void approvals_withdraw_left(struct approvals *a, struct text agent,
			     bool (*is_own)(const struct approval *row))
{
	if (!a)
		return;
	list_for_each (at, following, &a->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		if (p->left && !p->ending && is_asked_by(p, agent) && is_own(&p->row))
			pending_end_as(a, p, END_RESTART);
	}
}

/* ---- adding and removing ---- */

static struct text own_text(char **at, struct text t)
{
	struct text copy = {.data = t.data ? *at : NULL, .len = t.len};

	if (t.len > 0)
		memcpy(*at, t.data, t.len);
	*at += t.len;
	return copy;
}

static struct pending *pending_new(struct approvals *a, const struct approval *row)
{
	struct text host = !approval_is_of_here(a, row) ? row->host : (struct text) {0};
	struct pending *p = calloc(1, sizeof(*p) + row->id.len + row->session.len + row->agent.len +
					      row->tool.len + row->origin.len + host.len);
	char *at;

	if (!p)
		return NULL;
	at = p->own;
	p->row.id = own_text(&at, row->id);
	p->row.session = own_text(&at, row->session);
	p->row.agent = own_text(&at, row->agent);
	p->row.tool = own_text(&at, row->tool);
	p->row.origin = own_text(&at, row->origin);
	p->row.host = own_text(&at, host);
	p->approvals = a;
	list_init(&p->waiters);
	record_init(&p->record, &a->records);
	if (row->kind == APPROVAL_FUNCTION && row->tool_use_id.len == 0)
		p->call = number_of(row->tool, row->input.bytes);
	return p;
}

static void tell_session(struct approvals *a, const struct pending *p, int change)
{
	if (p->row.session.data && a->opts.on_wait)
		a->opts.on_wait(a->opts.arg, p->row.session, change);
}

struct pending *pending_get(struct approvals *a, const struct approval *row)
{
	struct pending *p = pending_find(a, row->id);

	if (p)
		return p;
	p = pending_new(a, row);
	if (!p)
		return NULL;
	list_append(&a->pending, &p->link);
	table_add(&a->by_id, &p->by_id, table_hash(p->row.id));
	p->expires_ms = row->deadline_ms > 0 ? steady_of(row->deadline_ms) : 0;
	if (p->expires_ms > 0)
		set_due(a, p, p->expires_ms);
	tell_session(a, p, 1);
	return p;
}

static void remove_pending(struct approvals *a, struct pending *p)
{
	pending_unbind(p);
	record_drop(&p->record);
	list_remove(&p->link);
	table_remove(&a->by_id, &p->by_id);
	a->n_due -= p->due_ms != 0;
	if (a->n_due == 0) {
		timer_stop(a->due);
		a->armed_ms = 0;
	}
}

void pending_take_waiters(struct pending *p, struct list *ret_waiters)
{
	list_for_each (at, following, &p->waiters)
		list_entry(at, struct approval_waiter, link)->pending = NULL;
	list_splice(ret_waiters, &p->waiters);
}

void pending_take(struct approvals *a, struct pending *p, struct list *ret_waiters)
{
	remove_pending(a, p);
	pending_take_waiters(p, ret_waiters);
	tell_session(a, p, -1);
	free(p);
}

void pending_resolved(struct approvals *a, struct pending *p, const struct approval *row)
{
	struct approval approval;
	struct arena arena;
	struct list waiters;
	struct error error = {0};

	list_init(&waiters);
	if (!row)
		refuse(&error, REFUSE_NOT_FOUND, "approval not found: %.*s", TEXT_ARGS(p->row.id));
	pending_take(a, p, &waiters);
	arena_init(&arena, APPROVAL_INPUT_ARENA_MAX);
	if (row)
		approval = approval_of(&arena, row);
	waiters_tell(&waiters, row ? 0 : REFUSE_NOT_FOUND, row ? &approval : NULL, &error);
	arena_done(&arena);
}

void pending_free_all(struct approvals *a)
{
	list_for_each (at, following, &a->pending) {
		struct pending *p = list_entry(at, struct pending, link);

		remove_pending(a, p);
		waiters_free(&p->waiters);
		free(p);
	}
}

/* ---- loading from the store ---- */

/* A session that ended after it asked was ended with its program, when the daemon crashed or
 * stopped. If its session had already ended before it asked, the asker runs elsewhere, and asks
 * again. */
static int is_left(struct approvals *a, struct arena *arena, const struct approval *row,
		   bool *ret_left)
{
	struct session session = {0};
	bool found = false;
	int r = 0;

	*ret_left = false;
	if (row->session.data)
		r = store_session_find(store_writer(a->opts.store), row->session, arena, &session,
				       &found);
	if (r == 0 && found)
		*ret_left = session.ended_ms > 0 && session.ended_ms >= row->created_ms;
	return r;
}

static int load_row(struct approvals *a, struct arena *arena, const struct approval *row)
{
	struct pending *p;
	bool left;
	int r = is_left(a, arena, row, &left);

	if (r != 0)
		return r;
	p = pending_get(a, row);
	if (!p)
		return -ENOMEM;
	p->left = true;
	if (left)
		pending_end_as(a, p, END_SESSION);
	else
		pending_bind_again(p, row);
	return 0;
}

/* Read page by page: inputs may be large, and are not kept in memory. */
int pending_load(struct approvals *a)
{
	struct store_approval_query q = {.status = APPROVAL_PENDING,
					 .oldest_first = true,
					 .limit = LOAD_PAGE,
					 .max_bytes = LOAD_BYTES};
	struct approval *rows;
	struct arena arena;
	unsigned n;
	int r;

	arena_init(&arena, LOAD_ARENA_MAX);
	do {
		arena_reset(&arena);
		n = 0;
		r = store_approval_list(store_writer(a->opts.store), &q, &arena, &rows, &n);
		for (unsigned i = 0; r == 0 && i < n; i++)
			r = load_row(a, &arena, &rows[i]);
		if (r == 0 && n > 0)
			q.after_seq = rows[n - 1].seq;
	} while (r == 0 && n > 0);
	arena_done(&arena);
	return r;
}
