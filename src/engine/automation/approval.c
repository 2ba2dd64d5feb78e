/*
 * A rule that needs approval asks for it (engine/approval), waits, and acts once it is
 * approved.
 *
 * The decider sees what would be done: the rule, the event, and the prompt, command, address
 * or message exactly as they would be used. Firings that wait do not count as under way, so
 * that they do not keep other rules from acting; they have limits of their own, in number and
 * in bytes.
 *
 * What is waiting when we stop is given up. The question stays in the store, where nobody
 * could act on an answer any more: the next start withdraws it.
 */
#include <stdio.h>
#include <string.h>

#include "base/pack.h"
#include "base/object_builder.h"
#include "base/uuid.h"
#include "engine/approval/approval.h"
#include "engine/automation/inner.h"

enum {
	WAITING_MAX = 64,
	WAITING_BYTES_MAX = 64 << 20,
	SHOWN_MAX = 256 << 10, /* bytes of an event, and of its subject, that are shown */
	COMMENT_SHOWN = 300,
};

static const char asker[] = "rule";
static const char id_prefix[] = "rule-";

/* ---- what is shown ---- */

static size_t packed_size(const struct value *v)
{
	struct buf packed;
	size_t n;

	buf_init(&packed, SHOWN_MAX);
	value_pack(&packed, v);
	n = packed.err ? SHOWN_MAX + 1 : packed.len;
	buf_done(&packed);
	return n;
}

/* An event that is too long is shown without its payload. */
static int shown_event(struct firing *f, const struct value **ret_event, bool *ret_cut)
{
	*ret_cut = packed_size(f->event) > SHOWN_MAX;
	if (!*ret_cut) {
		*ret_event = f->event;
		return 0;
	}
	return event_tree(&f->arena, f->type, value_text(value_find(f->event, "source")), NULL,
			  ret_event);
}

static int make_input(struct firing *f, const struct value **ret_input)
{
	const struct value *event = NULL;
	const char *name = NULL;
	struct text action = {0};
	bool is_cut;
	struct object_builder r;
	int e = shown_event(f, &event, &is_cut) ?: action_text(f, &name, &action);

	if (e != 0)
		return e;
	object_begin(&r, &f->arena);
	object_text(&r, "rule", f->rule->def.id);
	if (f->rule->def.project.len > 0)
		object_text(&r, "project", f->rule->def.project);
	object_value(&r, "event", event);
	object_text(&r, name, text_cut(action, SHOWN_MAX));
	if (is_cut || action.len > SHOWN_MAX)
		object_bool(&r, "truncated", true);
	*ret_input = r.root;
	return r.err;
}

/* ---- waiting firings ---- */

static bool has_room(const struct automation *a, const struct firing *f)
{
	return a->n_waiting < WAITING_MAX && a->waiting_bytes + f->arena.used <= WAITING_BYTES_MAX;
}

static void start_waiting(struct firing *f)
{
	struct automation *a = f->rule->automation;

	f->waits = true;
	f->held = f->arena.used;
	a->n_firings--;
	a->n_waiting++;
	a->waiting_bytes += f->held;
}

void firing_stop_waiting(struct firing *f)
{
	struct automation *a = f->rule->automation;

	if (!f->waits)
		return;
	approval_leave(f->waiter);
	f->waiter = NULL;
	f->waits = false;
	a->n_waiting--;
	a->waiting_bytes -= f->held;
	a->n_firings++;
}

/* ---- the answer ---- */

static void decided(struct firing *f, const struct approval *row)
{
	static const struct {
		enum outcome outcome;
		const char *words;
	} answers[N_APPROVAL_STATUSES] = {
		[APPROVAL_DENIED] = {OUTCOME_DENIED, "denied"},
		[APPROVAL_EXPIRED] = {OUTCOME_EXPIRED, "no decision before the deadline"},
		[APPROVAL_SUPERSEDED] = {OUTCOME_SUPERSEDED, "the request was withdrawn"},
	};
	const char *words = answers[row->status].words;
	char text[2 * COMMENT_SHOWN];

	if (row->status == APPROVAL_APPROVED) {
		action_start(f);
		return;
	}
	if (!words) {
		firing_done(f, OUTCOME_ERROR, "invalid decision for this request");
		return;
	}
	snprintf(text, sizeof(text), "%s%s%.*s", words, row->comment.len > 0 ? ": " : "",
		 TEXT_ARGS(text_cut(row->comment, COMMENT_SHOWN)));
	firing_done(f, answers[row->status].outcome, text);
}

static void on_kept(void *arg, int result, const struct approval *approval,
		    const struct error *error)
{
	struct firing *f = arg;

	f->asked = true;
}

static void on_decided(void *arg, int result, const struct approval *approval,
		       const struct error *error)
{
	struct firing *f = arg;

	f->waiter = NULL;
	firing_stop_waiting(f);
	/* A firing that was asked about stays claimed: nobody is asked twice about one
	 * occurrence. */
	if (result == REFUSE_STOPPING && !f->asked)
		firing_give_back(f);
	else if (result != 0)
		firing_fail(f, result, error);
	else
		decided(f, approval);
}

/* ---- the question ---- */

static int automation_approval_ask(struct firing *f, struct error *error)
{
	const struct rule *d = &f->rule->def;
	char tool[sizeof(asker) + 1 + RULE_ID_MAX];
	char uuid[UUID_LEN + 1];
	struct approval_new in = {
		.kind = APPROVAL_FUNCTION, .agent = TEXT(asker), .origin = d->project};
	int r = make_input(f, &in.input) ?: uuid4(uuid);

	if (r != 0)
		return r;
	snprintf(f->ask, sizeof(f->ask), "%s%s", id_prefix, uuid);
	in.id = text_of(f->ask);
	snprintf(tool, sizeof(tool), "%s:%.*s", asker, TEXT_ARGS(d->id));
	in.tool = text_of(tool);
	start_waiting(f);
	return approval_wait(f->rule->automation->opts.approvals, &in, on_kept, on_decided, f,
			     &f->waiter, error);
}

void firing_ask(struct firing *f)
{
	const struct automation *a = f->rule->automation;
	struct error error;
	int r;

	if (!a->opts.approvals) {
		firing_done(
			f, OUTCOME_NO_APPROVER,
			"the action requires approval, but this server does not support approvals");
		return;
	}
	if (!has_room(a, f)) {
		firing_done(f, OUTCOME_TOO_MANY_WAITING, "too many rules are waiting for approval");
		return;
	}
	r = automation_approval_ask(f, &error);
	if (r == 0)
		return;
	firing_stop_waiting(f);
	if (r == REFUSE_STOPPING)
		firing_give_back(f);
	else
		firing_fail(f, r, &error);
}

bool rule_asked_for(const struct live_rule *r, struct text tool)
{
	const size_t n = sizeof(asker);

	return tool.len == n + r->def.id.len && memcmp(tool.data, "rule:", n) == 0 &&
	       memcmp(tool.data + n, r->def.id.data, r->def.id.len) == 0;
}

/* ---- requests of an earlier daemon ---- */

static bool is_own(const struct approval *row)
{
	const size_t n = sizeof(id_prefix) - 1;

	return row->id.len > n && memcmp(row->id.data, id_prefix, n) == 0;
}

void asks_withdraw_old(struct automation *a)
{
	if (a->withdrew || !a->opts.approvals)
		return;
	a->withdrew = true;
	approvals_withdraw_left(a->opts.approvals, TEXT(asker), is_own);
}
