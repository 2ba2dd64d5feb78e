/*
 * Asking. A request is checked on the loop. On the writer's thread a rule or a grant answers
 * it, or it is stored as pending. Then the asker is told, on the loop.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pack.h"
#include "base/uuid.h"
#include "engine/approval/inner.h"
#include "engine/event/event.h"
#include "io/process/lineage.h"
#include "store/session.h"
#include "store/store.h"

static const int64_t LONGEST_MS = 100LL * 366 * 24 * 3600 * 1000;

struct approval_ask {
	struct work work;
	struct approvals *approvals;
	struct approval_rules *rules;
	struct arena arena;
	struct approval row; /* as requested, then as stored */
	struct approval asked;
	struct text session; /* as it was named */
	bool named;          /* the id was given, and may already exist */
	bool found;          /* it did */
	bool must_be_known;
	bool by_rules;
	bool full;
	bool abandoned; /* its waiter's connection is closed */
	unsigned total;
	size_t n_bytes;
	struct approval_client from;
	uint64_t serial;
	struct error error;
	struct approval_waiter *waiter; /* NULL: it has left */
};

/* ---- the request ---- */

static int check_names(const struct approval_new *in, struct error *error)
{
	const struct text_limit names[] = {
		{in->id, "id", APPROVAL_ID_MAX},
		{in->session, "session_id", APPROVAL_NAME_MAX},
		{in->run, "run_id", APPROVAL_NAME_MAX},
		{in->agent, "agent", APPROVAL_NAME_MAX},
		{in->origin, "origin", APPROVAL_ORIGIN_MAX},
		{in->tool_use_id, "tool_use_id", APPROVAL_NAME_MAX},
		{in->tool, "tool", APPROVAL_TOOL_MAX},
	};

	if (in->id.data && in->id.len == 0)
		return refuse_field(error, "id", "id is empty");
	return texts_check(names, sizeof(names) / sizeof(names[0]), error);
}

/* Even a small input can take much memory from everybody who reads it. */
static bool has_too_many(const struct value *v, unsigned *n)
{
	if (++*n > APPROVAL_INPUT_VALUES_MAX)
		return true;
	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return false;
	value_each (child, v) {
		if (has_too_many(child, n))
			return true;
	}
	return false;
}

static int check_input(const struct value *input, struct error *error)
{
	unsigned n = 0;

	if (!input)
		return 0;
	if (input->kind != VALUE_OBJECT)
		return refuse_field(error, "input", "input must be an object, not %s",
				    value_kind_name(input));
	if (has_too_many(input, &n))
		return refuse_field(error, "input", "input has more than %d values",
				    APPROVAL_INPUT_VALUES_MAX);
	return 0;
}

static int check_new(const struct approval_new *in, struct error *error)
{
	int r = check_names(in, error);

	if (r != 0)
		return r;
	if (in->tool.len == 0 && in->kind == APPROVAL_FUNCTION)
		return refuse_field(error, "tool", "tool is empty");
	r = check_input(in->input, error);
	if (r != 0)
		return r;
	if (in->timeout_ms > LONGEST_MS)
		return refuse_field(error, "timeout",
				    "timeout must be at most 100 years, not %lld ms",
				    (long long)in->timeout_ms);
	return 0;
}

static int check_room(const struct approvals *a, struct error *error)
{
	if (a->stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (a->n_coming_bytes > APPROVAL_COMING_BYTES_MAX)
		return refuse(error, REFUSE_LIMIT,
			      "approval requests in progress use too much memory (limit %d bytes); "
			      "try again later",
			      APPROVAL_COMING_BYTES_MAX);
	return 0;
}

static int pack_input(struct approval_ask *ask, const struct value *input, struct error *error)
{
	static const struct value nothing = {.kind = VALUE_OBJECT};
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, APPROVAL_INPUT_MAX);
	value_pack(&out, input ? input : &nothing);
	if (out.err == -EMSGSIZE)
		return refuse_field(error, "input", "input is larger than %d bytes",
				    APPROVAL_INPUT_MAX);
	if (out.err != 0)
		return out.err;
	ask->n_bytes = out.len;
	return arena_copy_text(&ask->arena, (struct text) {.data = out.data, .len = out.len},
			       &ask->row.input.bytes);
}

int approval_make_id(struct arena *arena, struct text *ret_id)
{
	char uuid[UUID_LEN + 1];
	char made[UUID_LEN + 16];
	int r = uuid4(uuid);

	if (r != 0)
		return r;
	snprintf(made, sizeof(made), "local-%s", uuid);
	return arena_copy_text(arena, text_of(made), ret_id);
}

static int approval_ask_fill(struct approval_ask *ask, const struct approval_new *in,
			     struct error *error)
{
	int64_t timeout = in->timeout_ms ? in->timeout_ms : ask->approvals->opts.timeout_ms;
	int64_t now = clock_utc_ms();
	int r;

	ask->row = (struct approval) {
		.id = in->id,
		.run = in->run,
		.agent = in->agent,
		.origin = in->origin,
		.tool_use_id = in->tool_use_id,
		.kind = in->kind,
		.tool = in->tool,
		.bond = in->bond,
		.host = events_host(ask->approvals->opts.events),
		.created_ms = now,
		.deadline_ms = timeout > 0 ? now + timeout : 0,
	};
	ask->named = in->id.data != NULL;
	ask->must_be_known = in->must_be_known;
	ask->by_rules = in->by_rules;
	ask->from = in->from;
	r = schema_copy(&approval_schema, &ask->arena, &ask->row);
	if (r == 0 && !ask->named)
		r = approval_make_id(&ask->arena, &ask->row.id);
	if (r == 0)
		r = arena_copy_text(&ask->arena, in->session, &ask->session);
	return r == 0 ? pack_input(ask, in->input, error) : r;
}

/* ---- on the writer's thread ---- */

static int find_session(struct approval_ask *ask, struct connection *db, struct session *ret,
			bool *ret_found)
{
	int r = 0;

	*ret_found = false;
	if (ask->row.run.len > 0)
		r = store_session_find_run(db, ask->row.run, &ask->arena, ret, ret_found);
	if (r == 0 && !*ret_found && ask->session.len > 0)
		r = store_session_find(db, ask->session, &ask->arena, ret, ret_found);
	if (r == 0 && !*ret_found && ask->session.len > 0)
		r = store_session_find_agent(db, ask->session, &ask->arena, ret, ret_found);
	return r;
}

static int set_session(struct approval_ask *ask, struct connection *db)
{
	struct session session;
	struct text asked = ask->row.run.len > 0 ? ask->row.run : ask->session;
	bool found;
	int r = find_session(ask, db, &session, &found);

	if (r != 0)
		return r;
	if (found) {
		ask->row.session = session.id;
		ask->row.run = session.run;
		return 0;
	}
	if (ask->must_be_known)
		return refuse(&ask->error, REFUSE_NOT_FOUND, "session not found: %.*s",
			      (int)(asked.len < 128 ? asked.len : 128),
			      asked.data ? asked.data : "");
	/* Agents that we did not start have sessions, too, and a grant may be limited to one. */
	if (ask->session.len > 0)
		ask->row.session = ask->session;
	return 0;
}

/* If the id of the tool use is known, only that call will do: the newest of the same name might
 * be another one, and the right one is tied when it arrives. */
static int tie_to_call(struct approval_ask *ask, struct connection *db)
{
	struct approval *row = &ask->row;
	bool found = false;
	int r;

	if (!row->session.data || row->kind != APPROVAL_FUNCTION)
		return 0;
	r = store_session_open_call(db, row->session, row->tool, row->tool_use_id,
				    row->created_ms - APPROVAL_TIE_MS, &row->event_id, &found);
	if (r != 0 || !found) {
		row->event_id = 0;
		return r;
	}
	return store_session_event_approval(db, row->event_id, approval_event_word(row->status),
					    row->id);
}

/* Counted here: the loop may not have heard yet of a decision that was stored just before. */
static int tell_requested(struct approval_ask *ask, struct connection *db)
{
	int64_t total;
	int r = store_approval_waiting(db, &total);

	return r != 0 ? r
		      : approval_tell_requested(ask->approvals->opts.events, &ask->row,
						(unsigned)total);
}

static int keep_new(struct approval_ask *ask, struct connection *db, struct arena *scratch)
{
	struct events *events = ask->approvals->opts.events;
	int r = set_session(ask, db);

	if (ask->from.is)
		asker_see(&ask->from, &ask->row);
	if (r == 0)
		r = policy_decide(db, scratch, ask->rules, &ask->row);
	if (r == 0 && ask->row.status == APPROVAL_PENDING && ask->by_rules)
		r = refuse(&ask->error, REFUSE_UNAVAILABLE,
			   "no policy matches this request, and asking a human is disabled");
	if (r == 0 && ask->row.status == APPROVAL_PENDING && ask->full)
		r = refuse(&ask->error, REFUSE_LIMIT, "too many pending approvals (limit %u)",
			   ask->approvals->opts.pending);
	if (r == 0)
		r = arena_copy_text(&ask->arena, ask->row.decided_by, &ask->row.decided_by) ?:
			arena_copy_text(&ask->arena, ask->row.comment, &ask->row.comment) ?:
			tie_to_call(ask, db) ?:
			store_approval_add(db, &ask->row, &ask->row.seq);
	if (r == 0 && ask->row.status == APPROVAL_PENDING)
		r = tell_requested(ask, db);
	else if (r == 0)
		r = approval_tell_resolved(events, &ask->row);
	return r;
}

/* A decision holds for what was shown, not for something else that is asked under the same id. A
 * tree has only one packed form, so bytes can be compared. */
static int take_there(struct approval_ask *ask, const struct approval *there)
{
	const struct approval *row = &ask->row;

	if (row->kind != there->kind || !text_equal(row->tool, there->tool) ||
	    !text_equal(row->agent, there->agent) ||
	    !text_equal(row->input.bytes, there->input.bytes))
		return refuse(&ask->error, REFUSE_CONFLICT,
			      "approval '%.*s' already exists with a different tool or input",
			      TEXT_ARGS(row->id));
	ask->row = *there;
	return 0;
}

/* Whether the row's asker is another process, and may still be alive: those of other hosts cannot be
 * seen. */
static bool has_other_asker(const struct approval_ask *ask, const struct approval *row)
{
	const struct approval *old = &ask->row;

	if (old->asker_pid == 0)
		return false;
	if (!approval_is_of_here(ask->approvals, old))
		return true;
	return (row->asker_pid != old->asker_pid || row->asker_started != old->asker_started) &&
	       !process_is_gone((pid_t)old->asker_pid, old->asker_started);
}

/* It is asked again, perhaps on another host: the process that waits now counts. One that was asked
 * without a bond keeps none. A live asker stays the asker: if an agent could pass its question to a
 * child, it could decide it, because it does not descend from its child. */
static int bind_again(struct approval_ask *ask, struct connection *db)
{
	const struct approval *new = &ask->asked;
	struct approval row = ask->row;

	if (row.status != APPROVAL_PENDING || row.bond == BOND_NONE || !ask->from.is)
		return 0;
	row.bond = new->bond;
	row.host = new->host;
	row.asker_pid = 0;
	row.asker_started = 0;
	asker_see(&ask->from, &row);
	if (has_other_asker(ask, &row))
		return 0;
	ask->row = row;
	return store_approval_bind(db, &row);
}

static int ask_run(struct work *w, int lane)
{
	struct approval_ask *ask = list_entry(w, struct approval_ask, work);
	struct connection *db = store_writer(ask->approvals->opts.store);
	struct approval there = {0};
	struct arena scratch;
	bool found = false;
	int r = 0;

	ask->row = ask->asked;
	arena_init(&scratch, APPROVAL_INPUT_ARENA_MAX);
	if (ask->named)
		r = store_approval_find(db, ask->row.id, &ask->arena, &there, &found);
	ask->found = found;
	if (found)
		r = take_there(ask, &there) ?: bind_again(ask, db);
	else if (r == 0)
		r = keep_new(ask, db, &scratch);
	arena_done(&scratch);
	/* Another host asks under the same id just now: next time it is found. */
	return r == -EEXIST && ask->named ? WORK_UNDONE : r;
}

/* ---- on the loop again ---- */

static void ask_free(struct approval_ask *ask)
{
	policy_rules_unref(ask->rules);
	arena_done(&ask->arena);
	free(ask);
}

void approval_ask_forget(struct approval_ask *ask, bool abandoned)
{
	ask->waiter = NULL;
	ask->abandoned = abandoned;
}

/* Do this last: the callback may do anything. */
static void approval_ask_notify(struct approval_ask *ask, int result,
				const struct approval *approval)
{
	struct approval_waiter *w = ask->waiter;

	if (!w)
		return;
	w->ask = NULL;
	waiter_tell(w, result, approval, &ask->error);
}

/* List the waiter before any callback runs: the callback may make it leave. */
static void tell_pending(struct approval_ask *ask, struct pending *p,
			 const struct approval *approval)
{
	struct approval_waiter *w = ask->waiter;

	if (!w || w->until_stored) {
		approval_ask_notify(ask, 0, approval);
		return;
	}
	w->ask = NULL;
	w->pending = p;
	list_append(&p->waiters, &w->link);
	if (w->on_kept)
		w->on_kept(w->arg, 0, approval, &ask->error);
}

/* Without a human: by a rule of the settings, or by a grant. */
static void note_decided(struct approval_ask *ask)
{
	static const char grant[] = "grant:";
	struct text by = ask->row.decided_by;
	bool granted = by.len >= strlen(grant) && memcmp(by.data, grant, strlen(grant)) == 0;

	if (!ask->found && ask->row.status != APPROVAL_PENDING)
		approval_note(ask->approvals, &ask->row,
			      granted ? APPROVAL_BY_GRANT : APPROVAL_BY_RULE);
}

static void take_kept(struct approval_ask *ask)
{
	struct approvals *a = ask->approvals;
	struct pending *p = NULL;
	struct approval approval;
	struct arena arena;

	note_decided(ask);
	if (ask->row.status == APPROVAL_PENDING) {
		p = pending_get(a, &ask->row);
		/* The store has it: if the asker asks again, it is found there. */
		if (!p) {
			approval_ask_notify(ask, -ENOMEM, NULL);
			return;
		}
		p->left = false;
		/* Its row was read before it was in memory, and may have been decided between. */
		if (ask->found)
			record_stale(&p->record);
		if (ask->from.is)
			pending_bind(p, &ask->row);
		if (ask->abandoned)
			pending_abandoned(p);
		if (approval_ended_after(a, ask->serial, ask->row.session))
			pending_end_as(a, p, END_SESSION);
	}
	if (p && ask->waiter && !ask->waiter->until_stored && a->stopping) {
		approval_ask_notify(ask, refuse(&ask->error, REFUSE_STOPPING, "koined is stopping"),
				    NULL);
		return;
	}
	arena_init(&arena, APPROVAL_INPUT_ARENA_MAX);
	approval = approval_of(&arena, &ask->row);
	if (p)
		tell_pending(ask, p, &approval);
	else
		approval_ask_notify(ask, 0, &approval);
	arena_done(&arena);
}

static void ask_finished(struct work *w, int result)
{
	struct approval_ask *ask = list_entry(w, struct approval_ask, work);
	struct approvals *a = ask->approvals;

	a->n_coming--;
	a->n_coming_bytes -= ask->n_bytes;
	if (result == 0)
		take_kept(ask);
	else
		approval_ask_notify(ask, result, NULL);
	if (a->n_coming == 0)
		approval_ended_clear(a);
	ask_free(ask);
}

static void ask_submit(struct approval_ask *ask)
{
	struct approvals *a = ask->approvals;

	ask->work = (struct work) {.run = ask_run, .finished = ask_finished, .arena = &ask->arena};
	ask->asked = ask->row;
	ask->serial = ++a->n_asked;
	ask->total = (unsigned)a->by_id.n + a->n_coming + 1;
	ask->full = ask->total > a->opts.pending;
	a->n_coming++;
	a->n_coming_bytes += ask->n_bytes;
	workers_start(a->opts.workers, &ask->work, true);
}

static int ask_new(struct approvals *a, const struct approval_new *in, struct error *error,
		   struct approval_ask **ret_ask)
{
	struct approval_ask *ask;
	int r = check_new(in, error) ?: check_room(a, error);

	if (r != 0)
		return r;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	ask->approvals = a;
	ask->rules = a->rules;
	ask->rules->refs++;
	arena_init(&ask->arena, APPROVAL_ARENA_MAX);
	r = approval_ask_fill(ask, in, error);
	if (r == 0)
		*ret_ask = ask;
	else
		ask_free(ask);
	return r;
}

int approval_ask(struct approvals *a, const struct approval_new *in, struct approval_waiter *waiter,
		 struct error *error)
{
	struct approval_ask *ask;
	int r = ask_new(a, in, error, &ask);

	if (r != 0)
		return r;
	ask->waiter = waiter;
	waiter->ask = ask;
	ask_submit(ask);
	return 0;
}
