/*
 * A rule that needs approval asks for it (service/approval), waits, and acts once it has it.
 *
 * Whoever decides sees what would be done: the rule, the event, and the prompt, command, address or
 * message as they would be used. Those who wait do not count among those who act, so that they keep
 * nobody from acting; there is a bound of their own, in number and in bytes.
 *
 * What waits when we stop is given up. The question stays in the store, where nobody could act on
 * an answer any more: the next start withdraws it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/pack.h"
#include "base/record.h"
#include "base/uuid.h"
#include "engine/approval/approval.h"
#include "engine/automation/inner.h"

enum {
	SHOWN_MAX = 256 << 10, /* bytes of an event, and of what it is about, that are shown */
	OLD_ARENA_MAX = 64 << 20,
	TEXT_SHOWN = 300,
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

static struct text cut(struct text t, bool *ret_cut)
{
	if (t.len <= SHOWN_MAX)
		return t;
	t.len = SHOWN_MAX;
	/* Not in the middle of a character. */
	while (t.len > 0 && ((unsigned char)t.data[t.len] & 0xc0) == 0x80)
		t.len--;
	*ret_cut = true;
	return t;
}

/* One that is too long goes without its payload. */
static int shown_event(struct firing *f, const struct value **ret_event, bool *ret_cut)
{
	if (packed_size(f->event) <= SHOWN_MAX) {
		*ret_event = f->event;
		return 0;
	}
	*ret_cut = true;
	return event_tree(&f->arena, f->type, value_text(value_find(f->event, "source")), NULL,
			  ret_event);
}

/* As the action would have it. */
static int shown_action(struct firing *f, const char **ret_key, struct text *ret_text)
{
	const struct rule_new *d = &f->rule->def;

	switch (d->action) {
	case ACTION_TASK:
		*ret_key = "prompt";
		return firing_fill(f, d->prompt, ret_text);
	case ACTION_DESKTOP:
		*ret_key = "message";
		return firing_fill(f, d->message, ret_text);
	case ACTION_COMMAND:
		*ret_key = "command";
		*ret_text = d->command;
		return 0;
	case ACTION_WEBHOOK:
		*ret_key = "url";
		*ret_text = d->url;
		return 0;
	}
	return -EINVAL;
}

static int make_input(struct firing *f, const struct value **ret_input)
{
	const struct value *event = NULL;
	const char *key = NULL;
	struct text action = {0};
	bool is_cut = false;
	struct record r;
	int e = shown_event(f, &event, &is_cut);

	if (e == 0)
		e = shown_action(f, &key, &action);
	if (e != 0)
		return e;
	record_begin(&r, &f->arena);
	record_text(&r, "rule", f->rule->def.id);
	if (f->rule->def.project.len > 0)
		record_text(&r, "project", f->rule->def.project);
	record_value(&r, "event", event);
	record_text(&r, key, cut(action, &is_cut));
	if (is_cut)
		record_bool(&r, "truncated", true);
	*ret_input = r.root;
	return r.err;
}

/* ---- who waits ---- */

static bool has_room(const struct automation *a, const struct firing *f)
{
	return a->n_waiting < WAITING_MAX && a->waiting_bytes + f->arena.used <= WAITING_BYTES_MAX;
}

static void wait_begins(struct firing *f)
{
	struct automation *a = f->rule->automation;

	f->waits = true;
	f->held = f->arena.used;
	a->n_firings--;
	a->n_waiting++;
	a->waiting_bytes += f->held;
}

void ask_ends(struct firing *f)
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

static void done_with(struct firing *f, const char *status, const char *words,
		      const struct approval_row *row)
{
	char text[2 * TEXT_SHOWN];
	bool says = row->comment.len > 0;

	snprintf(text, sizeof(text), "%s%s%.*s", words, says ? ": " : "",
		 row->comment.len < TEXT_SHOWN ? (int)row->comment.len : TEXT_SHOWN,
		 says ? row->comment.data : "");
	firing_done(f, status, text);
}

static void decided(struct firing *f, const struct approval_row *row)
{
	switch (row->status) {
	case APPROVAL_APPROVED:
		action_start(f);
		return;
	case APPROVAL_DENIED:
		done_with(f, "denied_by_approver", "it was denied", row);
		return;
	case APPROVAL_EXPIRED:
		done_with(f, "approval_expired", "nobody decided in time", row);
		return;
	case APPROVAL_SUPERSEDED:
		done_with(f, "approval_superseded", "the question was withdrawn", row);
		return;
	case APPROVAL_PENDING:
	case APPROVAL_RESPONDED:
	case N_APPROVAL_STATUSES:
		break;
	}
	firing_done(f, "error", "that is no answer to whether it may");
}

static void on_kept(void *arg, int result, const struct approval *approval, const struct why *why)
{
	struct firing *f = arg;

	(void)result;
	(void)approval;
	(void)why;
	f->asked = true;
}

static void on_decided(void *arg, int result, const struct approval *approval,
		       const struct why *why)
{
	struct firing *f = arg;

	f->waiter = NULL;
	ask_ends(f);
	/* One that was asked stays claimed: nobody is asked twice about one occurrence. */
	if (result == REFUSE_STOPPING && !f->asked)
		firing_give_back(f);
	else if (result != 0)
		firing_done(f, "error", result > 0 ? why->text : strerror(-result));
	else
		decided(f, &approval->row);
}

/* ---- the question ---- */

static int ask(struct firing *f)
{
	const struct rule_new *d = &f->rule->def;
	char tool[sizeof(asker) + 1 + RULE_ID_MAX];
	char uuid[UUID_LEN + 1];
	struct approval_new in = {
		.kind = APPROVAL_FUNCTION, .agent = TEXT(asker), .origin = d->project};
	int r = make_input(f, &in.input);

	if (r == 0)
		r = uuid4(uuid);
	if (r != 0)
		return r;
	snprintf(f->ask, sizeof(f->ask), "%s%s", id_prefix, uuid);
	in.id = text_of(f->ask);
	snprintf(tool, sizeof(tool), "%s:%.*s", asker, TEXT_ARGS(d->id));
	in.tool = text_of(tool);
	wait_begins(f);
	return approval_wait(f->rule->automation->opts.approvals, &in, on_kept, on_decided, f,
			     &f->waiter);
}

void ask_start(struct firing *f)
{
	const struct automation *a = f->rule->automation;
	int r;

	if (!a->opts.approvals) {
		firing_done(f, "skipped_no_approver",
			    "it needs approval, and there is nobody to give it");
		return;
	}
	if (!has_room(a, f)) {
		firing_done(f, "skipped_too_many_waiting", "too many wait for approval already");
		return;
	}
	r = ask(f);
	if (r == 0)
		return;
	ask_ends(f);
	if (r == REFUSE_STOPPING)
		firing_give_back(f);
	else
		firing_done(f, "error", r > 0 ? "it could not ask for approval" : strerror(-r));
}

bool ask_is_own(const struct rule *r, struct text tool)
{
	const size_t n = sizeof(asker);

	return tool.len == n + r->def.id.len && memcmp(tool.data, "rule:", n) == 0 &&
	       memcmp(tool.data + n, r->def.id.data, r->def.id.len) == 0;
}

/* ---- what a life before us has asked ---- */

struct old_asks {
	struct work work;
	struct automation *automation;
	struct arena arena;
	struct approval *list;
	unsigned n;
};

static int old_run(struct work *w, int lane)
{
	struct old_asks *o = list_entry(w, struct old_asks, work);
	const struct approval_filter pending = {.status = APPROVAL_PENDING};

	return approval_list(o->automation->opts.approvals, lane, &o->arena, &pending,
			     &o->list, &o->n);
}

static bool is_waited_for(const struct automation *a, struct text id)
{
	list_for_each (at, following, &a->firings) {
		const struct firing *f = list_entry(at, struct firing, link);

		if (f->waits && text_is(id, f->ask))
			return true;
	}
	return false;
}

static bool is_old(const struct automation *a, const struct approval_row *row)
{
	const size_t n = sizeof(id_prefix) - 1;

	return text_is(row->agent, asker) && row->id.len > n &&
	       memcmp(row->id.data, id_prefix, n) == 0 && !is_waited_for(a, row->id);
}

static void on_withdrawn(void *arg, int result, const struct approval *approval,
			 const struct why *why)
{
	(void)arg;
	(void)approval;
	if (result != 0 && result != REFUSE_CONFLICT)
		log_warn("rule's question stays", "why=\"%s\"",
			 result > 0 ? why->text : strerror(-result));
}

static void old_finished(struct work *w, int result)
{
	struct old_asks *o = list_entry(w, struct old_asks, work);
	struct automation *a = o->automation;

	if (result != 0 && result != -ECANCELED)
		log_warn("rules' questions stay", "error=%s",
			 result > 0 ? "refused" : strerror(-result));
	for (unsigned i = 0; result == 0 && !a->stopping && i < o->n; i++) {
		const struct approval_decision d = {.id = o->list[i].row.id,
						    .status = APPROVAL_SUPERSEDED,
						    .comment = TEXT("koined has been restarted"),
						    .by = TEXT(asker)};

		if (is_old(a, &o->list[i].row))
			approval_decide(a->opts.approvals, &d, on_withdrawn, NULL);
	}
	a->old_asks = NULL;
	arena_done(&o->arena);
	free(o);
}

void asks_withdraw_old(struct automation *a)
{
	const struct background *b = &a->opts.background;
	struct old_asks *o;
	int r;

	if (a->withdrew || !a->opts.approvals)
		return;
	o = calloc(1, sizeof(*o));
	if (!o)
		return;
	a->withdrew = true;
	a->old_asks = o;
	o->automation = a;
	o->work = (struct work) {.run = old_run, .finished = old_finished};
	arena_init(&o->arena, OLD_ARENA_MAX);
	r = b->submit(b->arg, &o->work, false);
	if (r != 0)
		old_finished(&o->work, r);
}
