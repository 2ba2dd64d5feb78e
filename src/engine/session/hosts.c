/*
 * Sessions of several hosts. A session runs where it was launched, and only that life of its host writes
 * about it. What is wished of it elsewhere is written down, and an event tells its host.
 *
 * Sessions of a life that is over are failed by whoever looks first. Without other hosts that is
 * a start after a crash.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/session/inner.h"
#include "store/store.h"

enum { OPEN_ARENA_MAX = 1 << 30 };

static const char restarted[] = "daemon restarted while session was active";

/* ---- what lost hosts have left ---- */

static int word_loss(const struct sessions *s, struct arena *a, struct session *row, bool at_start)
{
	char text[HOST_NAME_MAX_BYTES + 32];

	row->error = TEXT(restarted);
	if (!row->host.data || (at_start && node_is_us(s->opts.node, row->host)))
		return 0;
	snprintf(text, sizeof(text), "host %.*s was declared dead", TEXT_ARGS(row->host));
	return arena_copy_text(a, text_of(text), &row->error);
}

static int session_hosts_settle(struct sessions *s, struct arena *a, struct session *row,
				bool at_start)
{
	enum session_status old = row->status;
	bool done = false;
	int r = word_loss(s, a, row, at_start);

	row->status = SESSION_FAILED;
	row->ended_ms = clock_utc_ms();
	row->active_ms = row->ended_ms;
	if (r == 0)
		r = store_session_settle(store_writer(s->opts.store), row, &done);
	return r == 0 && done ? session_tell_status(s->opts.events, row, old) : r;
}

static int settle_all(struct sessions *s, struct arena *a, bool at_start, struct session **ret_rows,
		      unsigned *ret_n)
{
	int r = store_session_open(store_writer(s->opts.store), a, ret_rows, ret_n);

	for (unsigned i = 0; r == 0 && i < *ret_n; i++)
		r = session_hosts_settle(s, a, *ret_rows + i, at_start);
	return r;
}

/* Also of those that somebody else has settled just before: their approvals end once. */
static void end_approvals(struct sessions *s, const struct session *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		approval_session_ended(s->opts.approvals, rows[i].id);
	if (n > 0)
		log_info("previous shutdown interrupted sessions", "n=%u", n);
}

/* What a start finds. */
struct session_hosts_found_open {
	struct sessions *sessions;
	struct record_reaped reaped;
};

static int settle_found(void *arg)
{
	struct session_hosts_found_open *f = arg;
	struct session *rows = NULL;
	unsigned n_silent;
	int r;

	arena_reset(&f->reaped.arena);
	r = settle_all(f->sessions, &f->reaped.arena, true, &rows, &f->reaped.n)
		    ?: observed_end_silent(f->sessions, &n_silent);
	f->reaped.rows = rows;
	return r;
}

/* The previous daemon died: tasks_start has ended its programs. */
int sessions_recover(struct sessions *s)
{
	struct session_hosts_found_open f = {.sessions = s};
	int r;

	arena_init(&f.reaped.arena, OPEN_ARENA_MAX);
	r = records_settle(s->opts.store, s->opts.events, settle_found, &f);
	if (r == 0)
		end_approvals(s, f.reaped.rows, f.reaped.n);
	arena_done(&f.reaped.arena);
	return r;
}

static int session_hosts_reap(void *sessions, struct record_reaped *ret)
{
	struct session *rows = NULL;
	int r = settle_all(sessions, &ret->arena, false, &rows, &ret->n);

	ret->rows = rows;
	return r;
}

static void take_reaped(void *sessions, const struct record_reaped *reaped)
{
	const struct session *rows = reaped->rows;

	end_approvals(sessions, rows, reaped->n);
	for (unsigned i = 0; i < reaped->n; i++)
		session_look_elsewhere(sessions, rows[i].id);
}

/* Nothing of it can be written any more. */
static void on_fenced(void *sessions)
{
	struct sessions *s = sessions;

	list_for_each (at, following, &s->live)
		session_kill(list_entry(at, struct live_session, link));
}

/* ---- wishes ---- */

int session_wish(struct sessions *s, struct arena *a, struct session *row, bool *ret_wished)
{
	struct connection *db = store_writer(s->opts.store);
	bool found;
	int r;

	*ret_wished = false;
	if (!node_is_other(s->opts.node, row->host))
		return 0;
	r = store_session_wish(db, row->seq, ret_wished);
	if (r == 0 && !*ret_wished)
		return store_session_find(db, row->id, a, row, &found);
	return r == 0 ? session_tell_wish(s->opts.events, row) : r;
}

void session_look_elsewhere(struct sessions *s, struct text id)
{
	struct list waiting;
	struct list *first;

	list_init(&waiting);
	list_splice(&waiting, &s->elsewhere);
	while ((first = list_first(&waiting))) {
		struct session_ender *e = list_entry(first, struct session_ender, link);

		list_remove(first);
		if (id.data && !text_equal(e->session, id))
			list_append(&s->elsewhere, first);
		else
			e->look(e);
	}
}

/* Another host wants it to be interrupted. */
static void take_wish(void *sessions, const struct record_found *found)
{
	struct live_session *l = session_live(sessions, found->id);

	if (l)
		session_cancel(l);
}

static bool session_hosts_heard(void *sessions, const struct event *e, struct text *ret_project,
				struct text *ret_id)
{
	if (text_is(e->type, "session.status"))
		session_look_elsewhere(sessions, e->session);
	else
		take_wish(sessions, &(struct record_found) {.id = e->session});
	return false;
}

static int session_hosts_reload(void *sessions)
{
	session_look_elsewhere(sessions, (struct text) {0});
	return 0;
}

static int list_wishes(void *sessions, int lane, struct arena *a, struct record_found **ret,
		       unsigned *ret_n)
{
	const struct sessions *s = sessions;
	struct text *ids;
	int r = store_session_wishes(store_lane(s->opts.store, lane), node_name(s->opts.node), a,
				     &ids, ret_n);

	return r ?: record_keys(a, ids, *ret_n, ret);
}

int sessions_join(struct sessions *s)
{
	static const struct text types[] = {TEXT("session.interrupting"), TEXT("session.status")};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 2,
		.heard = session_hosts_heard,
		.sync = take_wish,
		.reload = session_hosts_reload,
		.list = list_wishes,
	};
	static const struct record_owner_ops owners = {
		.fenced = on_fenced, .reap = session_hosts_reap, .reaped = take_reaped};
	const struct records_opts opts = {
		.events = s->opts.events,
		.node = s->opts.node,
		.loop = s->opts.loop,
		.workers = s->opts.workers,
		.name = "session",
		.arg = s,
		.changes = &session_changes,
		.reads = &reads,
		.owners = &owners,
	};

	return records_start(&s->records, &opts);
}
