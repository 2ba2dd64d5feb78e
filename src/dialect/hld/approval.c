/*
 * Approvals: creating, listing, deciding. Each is shown with the members of all generations of
 * clients at once: of the first, which knew function calls and human contacts, and of the
 * later ones.
 */
#include <string.h>

#include "dialect/hld/hld.h"
#include "dialect/engine.h"

/* ---- one ---- */

static void write_object(struct json *j, const char *key, const struct value *v)
{
	json_key(j, key);
	if (v && v->kind == VALUE_OBJECT)
		json_value(j, v);
	else
		json_raw(j, "{}", 2);
}

static void write_times(struct json *j, const struct approval *a)
{
	hld_write_time(j, "requested_at", a->created_ms);
	if (a->decided_ms > 0)
		hld_write_time(j, "responded_at", a->decided_ms);
}

static void write_function_call(struct json *j, const struct approval *a)
{
	json_member_object(j, "spec");
	hld_write_text(j, "fn", a->tool);
	write_object(j, "kwargs", a->input.value);
	json_end_object(j);
	json_member_object(j, "status");
	write_times(j, a);
	if (a->status == APPROVAL_APPROVED || a->status == APPROVAL_DENIED)
		json_member_bool(j, "approved", a->status == APPROVAL_APPROVED);
	hld_write_some(j, "comment", a->comment);
	json_end_object(j);
}

/* Further members of a question are shown as the asker gave them. Clients that check types
 * refuse the whole list for one member of the wrong type, so only members of the right types are
 * shown. */

static void write_member(struct json *j, const struct value *object, const char *key)
{
	struct text t = value_text(value_find(object, key));

	if (t.data)
		json_member_text(j, key, t);
}

static void write_option(struct json *j, const struct value *option)
{
	const struct value *interactive = value_find(option, "interactive");

	json_begin_object(j);
	write_member(j, option, "name");
	write_member(j, option, "title");
	write_member(j, option, "description");
	write_member(j, option, "prompt_fill");
	json_member_bool(j, "interactive", interactive && interactive->kind == VALUE_TRUE);
	json_end_object(j);
}

static void write_options(struct json *j, const struct value *options)
{
	if (!options || options->kind != VALUE_ARRAY)
		return;
	json_member_array(j, "response_options");
	value_each (option, options) {
		if (value_text(value_find(option, "name")).data)
			write_option(j, option);
	}
	json_end_array(j);
}

static void write_channel(struct json *j, const struct value *channel)
{
	static const struct {
		const char *name, *need;
	} ways[] = {{"slack", "channel_or_user_id"}, {"email", "address"}};

	if (!channel || channel->kind != VALUE_OBJECT)
		return;
	json_member_object(j, "channel");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const struct value *way = value_find(channel, ways[i].name);

		if (!value_text(value_find(way, ways[i].need)).data)
			continue;
		json_member_object(j, ways[i].name);
		write_member(j, way, ways[i].need);
		json_end_object(j);
	}
	json_end_object(j);
}

static void write_state(struct json *j, const struct value *state)
{
	if (state && state->kind == VALUE_OBJECT)
		write_object(j, "state", state);
}

static void write_human_contact(struct json *j, const struct approval *a)
{
	json_member_object(j, "spec");
	hld_write_text(j, "msg", value_text(value_find(a->input.value, "msg")));
	hld_write_some(j, "subject", a->tool);
	write_channel(j, value_find(a->input.value, "channel"));
	write_options(j, value_find(a->input.value, "response_options"));
	write_state(j, value_find(a->input.value, "state"));
	json_end_object(j);
	json_member_object(j, "status");
	write_times(j, a);
	if (a->status == APPROVAL_RESPONDED)
		hld_write_some(j, "response", a->comment);
	json_end_object(j);
}

/* The members that the first generation of clients knows. */
static void write_pending(struct json *j, const struct approval *a)
{
	const char *kind = approval_kind_name(a->kind);

	json_member_str(j, "type", kind);
	json_member_object(j, kind);
	hld_write_text(j, "run_id", a->run);
	json_member_text(j, "call_id", a->id);
	if (a->kind == APPROVAL_FUNCTION)
		write_function_call(j, a);
	else
		write_human_contact(j, a);
	json_end_object(j);
}

static void write_approval(struct json *j, const struct approval *a)
{
	const struct selection first = {.without = HLD_LAST};
	const struct selection last = {.with = HLD_LAST};

	json_begin_object(j);
	write_pending(j, a);
	hld_members(j, &hld_approval, first, a, NULL, NULL);
	if (a->input.value) {
		json_key(j, "tool_input");
		json_value(j, a->input.value);
	} else {
		write_object(j, "tool_input", NULL);
	}
	hld_members(j, &hld_approval, last, a, NULL, NULL);
	json_end_object(j);
}

/* ---- fetchApprovals, getApproval ---- */

/* Used where nothing of the session waits. An agent that koined did not start is known only by
 * what it asks. */
static int check_session(struct call *c, struct text id)
{
	struct session row;
	int r;

	if (id.len == 0)
		return 0;
	r = session_get(call_sessions(c), c->lane, &c->arena, id, false, &row, &c->error);
	if (r == REFUSE_NOT_FOUND)
		r = refuse(&c->error, REFUSE_NOT_FOUND,
			   "session not found: session not found: session not found: %.*s",
			   TEXT_ARGS(id));
	return r;
}

/* A human must see each approval whole. If there are too many, the oldest are shown. */
static void write_list(struct json *j, const struct approval *approvals, unsigned n,
		       const struct hld_fit *fit)
{
	json_begin_object(j);
	json_member_array(j, "approvals");
	for (unsigned i = 0; i < hld_fit_count(fit, n); i++)
		write_approval(j, &approvals[i]);
	json_end_array(j);
	hld_fit_tell(fit, j);
	json_end_object(j);
}

struct done hld_fetch_approvals(struct call *c)
{
	const struct hld_approval_in *in = c->in;
	const struct approval_filter f = {
		.status = APPROVAL_PENDING,
		.session = in->session_id.len > 0 ? in->session_id : (struct text) {0},
	};
	struct approval *approvals = NULL;
	struct hld_fit fit;
	unsigned n = 0;
	int r = approval_list(call_approvals(c), c->lane, &c->arena, &f, &approvals, &n);

	if (r == 0 && n == 0)
		r = check_session(c, in->session_id);
	if (r != 0)
		return call_fail(c, r);
	fit = hld_fit_begin(c, false);
	do {
		write_list(fit.json, approvals, n, &fit);
	} while (hld_fit_again(&fit));
	return call_reply(c);
}

struct done hld_get_approval(struct call *c)
{
	const struct hld_approval_in *in = c->in;
	struct approval approval;
	struct json *j;
	int r = hld_need(c, in->approval_id, "approval_id")
			?: approval_get(call_approvals(c), c->lane, &c->arena, in->approval_id,
					false, &approval, &c->error);

	if (r == REFUSE_NOT_FOUND)
		r = refuse(&c->error, REFUSE_NOT_FOUND,
			   "failed to get approval: failed to get approval: approval not found: "
			   "%.*s",
			   TEXT_ARGS(in->approval_id));
	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_key(j, "approval");
	write_approval(j, &approval);
	return call_reply_object(c);
}

/* ---- createApproval ---- */

static void created(void *arg, int r, const struct approval *approval, const struct error *error)
{
	struct call *c = arg;
	const struct hld_approval_in *in = c->in;
	struct json *j;

	if (r != 0) {
		if (r > 0 && error)
			c->error = *error;
		if (r == REFUSE_NOT_FOUND)
			r = refuse(&c->error, REFUSE_NOT_FOUND,
				   "failed to create approval: session not found for run_id: %.*s",
				   TEXT_ARGS(in->run_id));
		(void)call_fail(c, r);
		return;
	}
	j = call_object(c);
	json_member_text(j, "approval_id", approval->id);
	(void)call_reply_object(c);
}

/* null counts as an input, an empty one. */
static int check_input(struct call *c, const struct value *input)
{
	if (!input)
		return refuse_field(&c->error, "tool_input", "tool_input is required");
	if (input->kind != VALUE_OBJECT && input->kind != VALUE_NULL)
		return refuse_field(&c->error, "tool_input", "tool_input must be an object");
	return 0;
}

struct done hld_create_approval(struct call *c)
{
	const struct hld_approval_in *in = c->in;
	const struct approval_new approval = {
		.kind = APPROVAL_FUNCTION,
		.run = in->run_id,
		.session = in->run_id, /* newer clients give the session's id */
		.must_be_known = true,
		.tool = in->tool_name,
		.tool_use_id = in->tool_use_id.len > 0 ? in->tool_use_id : (struct text) {0},
		.input = in->tool_input && in->tool_input->kind != VALUE_NULL ? in->tool_input
									      : NULL,
		.from = {.is = true, .peer = c->peer},
	};
	int r = hld_need(c, in->run_id, "run_id") ?: hld_need(c, in->tool_name, "tool_name") ?:
		check_input(c, in->tool_input) ?:
		approval_request(call_approvals(c), &approval, created, c, &c->error);

	return call_await(c, r);
}

/* ---- sendDecision ---- */

static struct text decision_id(const struct hld_approval_in *in)
{
	return in->approval_id.len > 0 ? in->approval_id : in->call_id;
}

/* Checked in the original's order. Clients that give an approval_id give no type any more. */
static int check_needs(struct call *c, const struct hld_approval_in *in)
{
	int r = hld_need(c, decision_id(in), "call_id");

	if (r == 0 && in->approval_id.len == 0)
		r = hld_need(c, in->type, "type");
	if (r == 0)
		r = hld_need(c, in->decision, "decision");
	return r;
}

static int need_comment(struct call *c, const struct hld_approval_in *in, const char *for_what)
{
	if (in->comment.len > 0)
		return 0;
	return refuse_field(&c->error, "comment", "comment is required for %s", for_what);
}

static int read_function(struct call *c, const struct hld_approval_in *in,
			 struct approval_decision *d)
{
	if (text_is(in->decision, "approve")) {
		d->status = APPROVAL_APPROVED;
		return 0;
	}
	if (!text_is(in->decision, "deny"))
		return refuse_field(&c->error, "decision",
				    "invalid decision for function_call: %.*s",
				    TEXT_ARGS(in->decision));
	d->status = APPROVAL_DENIED;
	return need_comment(c, in, "denial");
}

static int read_contact(struct call *c, const struct hld_approval_in *in,
			struct approval_decision *d)
{
	if (!text_is(in->decision, "respond"))
		return refuse_field(&c->error, "decision",
				    "invalid decision for human_contact: %.*s",
				    TEXT_ARGS(in->decision));
	d->status = APPROVAL_RESPONDED;
	return need_comment(c, in, "human contact response");
}

static int read_decision(struct call *c, const struct hld_approval_in *in,
			 struct approval_decision *d)
{
	enum approval_kind kind;

	if (in->type.len > 0) {
		if (!approval_kind_parse(in->type, &kind))
			return refuse_field(&c->error, "type", "invalid type: %.*s",
					    TEXT_ARGS(in->type));
		return kind == APPROVAL_FUNCTION ? read_function(c, in, d) : read_contact(c, in, d);
	}
	if (text_is(in->decision, "respond"))
		return read_contact(c, in, d);
	if (!text_is(in->decision, "approve") && !text_is(in->decision, "deny"))
		return refuse_field(&c->error, "decision",
				    "invalid decision: %.*s (must be 'approve' or 'deny')",
				    TEXT_ARGS(in->decision));
	return read_function(c, in, d);
}

/* An approval of another kind is reported as not found. */
static void explain_decision(struct call *c, int r, const struct error *error)
{
	const struct hld_approval_in *in = c->in;
	struct text id = decision_id(in);

	c->error = *error;
	if (r != REFUSE_NOT_FOUND && r != REFUSE_PARAMS)
		return;
	if (text_is(in->type, "function_call"))
		refuse(&c->error, REFUSE_NOT_FOUND,
		       "function call not found: function call not found: %.*s", TEXT_ARGS(id));
	else if (text_is(in->type, "human_contact"))
		refuse(&c->error, REFUSE_NOT_FOUND,
		       "human contact not found: human contact not found: %.*s", TEXT_ARGS(id));
	else if (r == REFUSE_NOT_FOUND)
		refuse(&c->error, REFUSE_NOT_FOUND,
		       "failed to get approval: approval not found: %.*s", TEXT_ARGS(id));
	else if (strcmp(error->field, "decision") == 0)
		refuse(&c->error, REFUSE_PARAMS, "invalid decision for %s: %.*s",
		       text_is(in->decision, "respond") ? "function_call" : "human_contact",
		       TEXT_ARGS(in->decision));
}

/* Whatever fails after the checks is reported in a result, not as an error. */
static struct done answer_decision(struct call *c, int r, const struct error *error)
{
	struct json *j;

	if (r < 0)
		return call_fail(c, r);
	if (r > 0)
		explain_decision(c, r, error);
	j = call_object(c);
	json_member_bool(j, "success", r == 0);
	if (r > 0)
		json_member_str(j, "error", c->error.text);
	return call_reply_object(c);
}

static void decided(void *arg, int r, const struct approval *approval, const struct error *error)
{
	(void)answer_decision(arg, r, error);
}

struct done hld_send_decision(struct call *c)
{
	const struct hld_approval_in *in = c->in;
	struct approval_decision d = {
		.id = decision_id(in),
		.comment = in->comment.len > 0 ? in->comment : (struct text) {0},
		.from = {.is = true, .peer = c->peer},
	};
	struct error error;
	int r = check_needs(c, in) ?: read_decision(c, in, &d);

	if (r != 0)
		return call_fail(c, r);
	r = approval_decide(call_approvals(c), &d, decided, c, &error);
	return r != 0 ? answer_decision(c, r, &error) : call_later(c, NULL, NULL);
}
