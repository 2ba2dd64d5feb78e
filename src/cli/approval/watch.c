/*
 * koine approvals -w: a live list on a terminal. In a pipe, the pending approvals, then a line for
 * each that arrives and each that is decided, including those from while the daemon was away.
 */
#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/approval/inbox.h"
#include "cli/kit/call.h"
#include "cli/kit/follow.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

/* ---- on a terminal ---- */

struct watch {
	struct live live;
	struct inbox inbox;
};

static void on_back(void *arg)
{
	struct watch *w = arg;

	inbox_back(&w->inbox);
}

static void on_away(void *arg)
{
	struct watch *w = arg;

	inbox_away(&w->inbox);
}

static void on_told(void *arg, const struct koine_value *event)
{
	struct watch *w = arg;

	inbox_told(&w->inbox, event);
}

static int ask(void *arg)
{
	struct watch *w = arg;

	inbox_ask(&w->inbox);
	return LIVE_NEVER;
}

static void on_key(void *arg, int key)
{
	struct watch *w = arg;

	inbox_key(&w->inbox, key);
}

static void draw(void *arg, struct canvas *c)
{
	struct watch *w = arg;

	if (inbox_is_viewing(&w->inbox))
		inbox_draw_view(&w->inbox, c);
	else
		inbox_draw_list(&w->inbox, c, 0, c->rows > 2 ? c->rows - 1 : 1);
	inbox_draw_foot(&w->inbox, c);
}

int approvals_watch(struct cli *cli)
{
	static const struct option_list types = {.values = {"approval.*"}, .n = 1};
	const struct approval_options *o = cli->own;
	struct watch w = {
		.live = {.cli = cli,
			 .arg = &w,
			 .types = &types,
			 .back = on_back,
			 .away = on_away,
			 .told = on_told,
			 .ask = ask,
			 .key = on_key,
			 .draw = draw},
	};
	int r;

	inbox_init(&w.inbox, &w.live, o->session);
	r = live_run(&w.live);
	inbox_done(&w.inbox);
	return r;
}

/* ---- into a pipe ---- */

struct viewer {
	struct follow follow;
	struct koine_answer *before; /* what existed when we started */
	int64_t seq;                 /* of the last event printed */
};

static void on_found(void *arg, int result, const struct koine_answer *a)
{
	struct viewer *v = arg;

	if (result == 0)
		approval_print_change(v->follow.cli, koine_answer_result(a));
}

static bool was_there(const struct viewer *v, struct text id)
{
	const struct koine_value *a = member_first(koine_answer_result(v->before), "approvals");

	for (; a; a = koine_value_next(a)) {
		if (text_equal(member_string(a, "id"), id))
			return true;
	}
	return false;
}

static void on_event(void *arg, struct text method, const struct koine_value *params)
{
	struct viewer *v = arg;
	struct text id = member_string(koine_value_get(params, "data"), "approval_id");

	if (!text_is(method, "event"))
		return;
	koine_value_int(koine_value_get(params, "seq"), &v->seq);
	if (id.len == 0 || (member_is(params, "type", "approval.requested") && was_there(v, id)))
		return;
	(void)call_async(v->follow.cli->client, "approval.get", approval_id_params(id, true),
			 on_found, v, NULL);
}

static struct koine_json *subscribe_params(void *arg)
{
	const struct viewer *v = arg;
	const struct approval_options *o = v->follow.cli->own;

	return approval_event_params(o->session, v->seq);
}

/* Finds the end of the log: what comes after it is printed. */
static int find_seq(struct viewer *v)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	params_add_int(j, "limit", 1);
	r = call_send(v->follow.cli, "event.list", j, &a);
	v->seq = member_number(koine_answer_result(a), "last");
	return r;
}

static int print_before(struct viewer *v)
{
	struct cli *cli = v->follow.cli;
	const struct koine_value *a;
	int r = call_send(cli, "approval.list", approval_list_params(cli, false, APPROVALS_MAX),
			  &v->before);

	a = member_first(koine_answer_result(v->before), "approvals");
	for (; a; a = koine_value_next(a))
		approval_print_change(cli, a);
	return r;
}

int approvals_follow(struct cli *cli)
{
	struct viewer v = {
		.follow = {.cli = cli, .arg = &v, .params = subscribe_params, .told = on_event}};
	int r = find_seq(&v) ?: print_before(&v) ?: follow_events(&v.follow);

	/* Callbacks of pending calls may still use v. */
	talk_hang_up(cli);
	koine_answer_free(v.before);
	return r;
}
