/*
 * What is said in a session, as it arrives.
 *
 * An event of the log only signals that there is something new. The content is read from the
 * session itself, after the last event printed. So nothing is missed or printed twice,
 * whatever happens to the connection.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/follow.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"
#include "cli/session/session.h"

enum {
	PAGE = 500,
	FROM_THE_LAST = -1,
	APPROVALS_MAX = 32, /* how many are remembered as shown */
	RESOLVED_MAX = 8,
};

/* ---- reading; as koine_client_call, all of these ---- */

/* The first of those after `after`; if that is negative, the last of those before `before`. */
static int ask_page(struct cli *cli, const char *id, int64_t after, int64_t before, int64_t limit,
		    struct koine_answer **ret_answer)
{
	const struct session_options *o = cli->own;
	struct koine_json *j = params_new();

	params_add(j, "id", id);
	params_add_int(j, "after", after > 0 ? after : 0);
	params_add_int(j, "before", before);
	params_add_bool(j, "newest", after < 0);
	params_add_int(j, "limit", limit);
	params_add_bool(j, "raw", o->raw);
	params_add_bool(j, "chain", o->chain);
	return call_ask(cli, "session.events", j, ret_answer);
}

/* Goes back page by page to where the last n begin. Nothing is kept of what is read, so that n
 * may be any number. */
static int find_start(struct cli *cli, const char *id, int64_t n, int64_t *ret_after,
		      struct koine_answer **ret_failed)
{
	int64_t first = 0;
	bool more = true;

	while (more && n > 0) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		int r = ask_page(cli, id, -1, first, n < PAGE ? n : PAGE, &a);

		if (r != 0) {
			*ret_failed = TAKE(a);
			return r;
		}
		n -= (int64_t)koine_value_count(koine_value_get(koine_answer_result(a), "events"));
		first = member_number(koine_answer_result(a), "first");
		more = member_flag(koine_answer_result(a), "more");
	}
	*ret_after = first > 0 ? first - 1 : 0;
	return 0;
}

static int64_t where_to_start(const struct cli *cli)
{
	const struct session_options *o = cli->own;

	return o->last > 0 ? FROM_THE_LAST : 0;
}

/* Only the first page of a chain that is too long says so. */
static void tell_cut(const struct koine_value *page)
{
	if (member_flag(page, "truncated"))
		complain("too many earlier sessions; the oldest are omitted");
}

/* Prints what was said after the event *last, page by page. */
static int print_pages(struct cli *cli, const char *id, int64_t *last,
		       struct koine_answer **ret_failed)
{
	const struct session_options *o = cli->own;
	bool more = true;
	int r = 0;

	if (*last == FROM_THE_LAST)
		r = find_start(cli, id, o->last, last, ret_failed);
	if (r != 0)
		return r;
	while (more) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;

		r = ask_page(cli, id, *last, 0, PAGE, &a);
		if (r != 0) {
			*ret_failed = TAKE(a);
			return r;
		}
		tell_cut(koine_answer_result(a));
		for (EACH(e, member_first(koine_answer_result(a), "events")))
			session_print_event(cli, e);
		koine_value_int(koine_value_get(koine_answer_result(a), "last"), last);
		more = member_flag(koine_answer_result(a), "more");
	}
	fflush(stdout);
	return 0;
}

static int ask_about(struct cli *cli, const char *method, const char *key, const char *id,
		     struct koine_answer **ret_answer)
{
	struct koine_json *j = params_new();

	params_add(j, key, id);
	return call_ask(cli, method, j, ret_answer);
}

/* ---- without following ---- */

int session_print_approvals(struct cli *cli, const char *id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = ask_about(cli, "approval.list", "session_id", id, &a);

	if (r != 0)
		return talk_failed(cli->client, "approval.list", r, a);
	for (EACH(v, member_first(koine_answer_result(a), "approvals")))
		session_print_pending(cli, v);
	return 0;
}

int session_print_log(struct cli *cli, const struct koine_value *session)
{
	CLEANUP(answer_freep) struct koine_answer *failed = NULL;
	char id[SESSION_ID_MAX];
	int64_t last = where_to_start(cli);
	int r;

	member_copy(session, "id", id, sizeof(id));
	r = print_pages(cli, id, &last, &failed);
	if (r != 0)
		return talk_failed(cli->client, "session.events", r, failed);
	return member_is(session, "status", "waiting_input") ? session_print_approvals(cli, id) : 0;
}

/* ---- approvals ---- */

struct session_follow_viewer {
	struct follow follow;
	const char *id;
	int64_t last; /* the last event printed, or FROM_THE_LAST */
	bool said;    /* there is something new */
	bool moved;   /* its status may have changed */
	int status;   /* our exit status */
	/* The newest of them, so that none is shown twice. */
	char shown[APPROVALS_MAX][SESSION_ID_MAX];
	unsigned n_shown;
	/* Decisions to be printed after what was said before them. */
	struct koine_doc *resolved[RESOLVED_MAX];
	unsigned n_resolved;
};

static bool was_shown(const struct session_follow_viewer *v, const char *id)
{
	unsigned n = v->n_shown < APPROVALS_MAX ? v->n_shown : APPROVALS_MAX;

	for (unsigned i = 0; i < n; i++) {
		if (strcmp(v->shown[i], id) == 0)
			return true;
	}
	return false;
}

static void show_approvals(struct session_follow_viewer *v, const struct koine_answer *a)
{
	char id[SESSION_ID_MAX];

	for (EACH(approval, member_first(koine_answer_result(a), "approvals"))) {
		member_copy(approval, "id", id, sizeof(id));
		if (was_shown(v, id))
			continue;
		memcpy(v->shown[v->n_shown++ % APPROVALS_MAX], id, sizeof(id));
		session_print_pending(v->follow.cli, approval);
	}
}

/* An approval that was decided before it was shown as waiting is printed, too: after the call
 * that it is about, if that is still to come. */
static void take_resolved(struct session_follow_viewer *v, const struct koine_value *data,
			  bool all_printed)
{
	char id[SESSION_ID_MAX];
	struct koine_doc *doc = NULL;

	member_copy(data, "approval_id", id, sizeof(id));
	if (!all_printed && !was_shown(v, id) && v->n_resolved < RESOLVED_MAX)
		doc = doc_of_value(data);
	if (doc)
		v->resolved[v->n_resolved++] = doc;
	else
		session_print_resolved(v->follow.cli, data);
	fflush(stdout);
}

static void print_resolved(struct session_follow_viewer *v)
{
	for (unsigned i = 0; i < v->n_resolved; i++) {
		session_print_resolved(v->follow.cli, koine_doc_root(v->resolved[i]));
		koine_doc_free(v->resolved[i]);
	}
	v->n_resolved = 0;
}

/* ---- signs ---- */

static void on_told(void *arg, struct text method, const struct koine_value *params)
{
	struct session_follow_viewer *v = arg;
	bool all_printed = !v->said;

	v->said = true;
	/* A question is shown after the call that it is about, so not yet. */
	if (member_is(params, "type", "session.status") ||
	    member_is(params, "type", "approval.requested"))
		v->moved = true;
	else if (member_is(params, "type", "approval.resolved"))
		take_resolved(v, koine_value_get(params, "data"), all_printed);
}

static struct koine_json *subscribe_params(void *arg)
{
	static const struct option_list types = {.values = {"session.*", "approval.*"}, .n = 2};
	const struct session_follow_viewer *v = arg;
	struct koine_json *j = params_new();

	params_add(j, "session_id", v->id);
	params_add_list(j, "types", &types);
	return j;
}

/* While there was no subscription, anything may have happened. */
static void on_subscribed(void *arg, const struct koine_value *result)
{
	struct session_follow_viewer *v = arg;

	v->said = v->moved = true;
}

/* ---- how it stands ---- */

static void end_with(struct session_follow_viewer *v, const struct koine_value *session)
{
	bool interrupted = member_is(session, "status", "interrupted");

	v->follow.ended = true;
	(void)print_if_json(v->follow.cli, session);
	fflush(stdout);
	if (member_is(session, "status", "completed"))
		return;
	v->status = interrupted ? EXIT_INTERRUPTED : EXIT_ERROR_ANSWER;
	if (v->follow.cli->options.json)
		return;
	fputs(interrupted ? "koine: the session was interrupted" : "koine: the session failed",
	      stderr);
	talk_print_reason(member_text(session, "error"));
}

static bool is_over(const struct koine_value *session)
{
	return member_is(session, "status", "completed") ||
	       member_is(session, "status", "failed") ||
	       member_is(session, "status", "interrupted");
}

/* Asks for the status first: if the session has ended, everything was said before. Then it asks
 * for approvals, which are shown after what was said before them. That is known to be stored once
 * the session is stored as waiting; until then, its change of status is still to be told. Returns
 * as koine_client_call does. */
static int session_follow_look(void *arg, struct koine_answer **ret_failed)
{
	CLEANUP(answer_freep) struct koine_answer *session = NULL;
	CLEANUP(answer_freep) struct koine_answer *approvals = NULL;
	struct session_follow_viewer *v = arg;
	struct cli *cli = v->follow.cli;
	bool moved = v->moved;
	bool over = false;
	int r = 0;

	if (!v->said)
		return 0;
	v->said = v->moved = false;
	if (moved)
		r = ask_about(cli, "session.get", "id", v->id, &session);
	if (r == 0 && moved) {
		over = is_over(koine_answer_result(session));
		if (member_is(koine_answer_result(session), "status", "waiting_input"))
			r = ask_about(cli, "approval.list", "session_id", v->id, &approvals);
	}
	if (r != 0)
		*ret_failed = approvals ? TAKE(approvals) : TAKE(session);
	else
		r = print_pages(cli, v->id, &v->last, ret_failed);
	print_resolved(v);
	if (r == 0 && over)
		end_with(v, koine_answer_result(session));
	else if (r == 0 && approvals)
		show_approvals(v, approvals);
	return r;
}

int session_follow(struct cli *cli, const char *id, int *ret_status)
{
	struct session_follow_viewer v = {
		.follow = {.cli = cli,
			   .arg = &v,
			   .params = subscribe_params,
			   .subscribed = on_subscribed,
			   .told = on_told,
			   .look = session_follow_look,
			   .leaves = true},
		.id = id,
		.last = where_to_start(cli),
	};
	int r = follow_events(&v.follow);

	print_resolved(&v);
	if (r == EXIT_INTERRUPTED)
		fprintf(stderr,
			"koine: quit; the session keeps running\n"
			"  follow it:     koine session log -f %.*s\n"
			"  cancel it:     koine session cancel %.*s\n",
			SHORT_ID, id, SHORT_ID, id);
	*ret_status = v.status;
	return r;
}
