/* Approvals: asking, looking, deciding. */
#include "dialect/koine/approval/approval.h"

#include <errno.h>
#include <string.h>

#include "dialect/koine/koine.h"
#include "call/server.h"
#include "dialect/engine.h"
#include "dialect/asker.h"

struct approval_one_in {
	struct text id;
	struct text decision;
	struct text comment;
	const struct value *grant;
	bool exact;
};

struct approval_list_in {
	struct text status;
	struct text session_id;
	int64_t limit;
};

/* ---- asking ---- */

static int read_approval(struct call *c, struct approval_new *ret)
{
	const struct approval_in *in = c->in;

	*ret = (struct approval_new) {
		.id = in->id,
		.session = in->session_id,
		.run = in->run_id,
		.agent = in->agent,
		.origin = in->origin,
		.tool = in->tool,
		.tool_use_id = in->tool_use_id,
		.input = in->input,
		.by_rules = in->by_rules,
		.from = {.is = true, .peer = c->peer},
	};
	(void)approval_kind_parse(in->kind, &ret->kind);
	return koine_read_seconds(in->timeout, "timeout", &ret->timeout_ms, &c->error);
}

/* Somebody else was quicker: the error carries what they decided. */
static void fail_decided(struct call *c, const struct approval *a, const struct error *error)
{
	struct buf data;
	struct json j;

	buf_init(&data, APPROVAL_COMMENT_MAX * 6 + 4096);
	j = json_writer(&data);
	json_begin_object(&j);
	json_key(&j, "approval");
	approval_json_write_end(&j, a);
	json_end_object(&j);
	(void)call_fail_with(c, c->dialect->errors[REFUSE_CONFLICT].code, text_of(error->text),
			     (struct text) {.data = data.err ? NULL : data.data,
					    .len = data.err ? 0 : data.len});
	buf_done(&data);
}

static void on_told(void *arg, int r, const struct approval *a, const struct error *error)
{
	struct call *c = arg;

	if (r == REFUSE_CONFLICT && a) {
		fail_decided(c, a, error);
		return;
	}
	if (r != 0) {
		(void)call_fail_for(c, r, error);
		return;
	}
	approval_json_write_end(call_result(c), a);
	(void)call_reply(c);
}

/*
 * approval.request asks, and answers once the approval is decided.
 *
 * No thread is held meanwhile. A client that cancels its call stops waiting; its approval stays, and
 * the client may ask again with the same id. So may one that has lost its connection, as long as its
 * process lives; then the approval ends. Where the kernel does not name the process, it ends with the
 * connection.
 */
struct approval_waiting {
	struct call *call;
	struct approval_waiter *waiter;
};

static void approval_on_decided(void *arg, int r, const struct approval *a,
				const struct error *error)
{
	struct approval_waiting *w = arg;

	w->waiter = NULL;
	on_told(w->call, r, a, error);
}

/* The client cancelled or disconnected, or the daemon is stopping; then the client should ask
 * again. */
static void approval_on_cancel(struct call *c, void *arg)
{
	struct approval_waiting *w = arg;

	if (c->client)
		approval_leave(w->waiter);
	else
		approval_abandon(w->waiter);
	w->waiter = NULL;
	if (c->server->stopping)
		(void)call_fail(c, refuse(&c->error, REFUSE_STOPPING,
					  "koined is stopping: retry with the same id"));
	else
		(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done handle_request(struct call *c)
{
	struct approval_waiting *w = arena_zalloc(&c->arena, sizeof(*w));
	struct approval_new new;
	int r = read_approval(c, &new);

	if (r != 0)
		return call_fail(c, r);
	if (!w)
		return call_fail(c, -ENOMEM);
	new.bond = BOND_PROCESS;
	new.from = call_asker(c);
	w->call = c;
	r = approval_wait(call_approvals(c), &new, NULL, approval_on_decided, w, &w->waiter,
			  &c->error);
	return r != 0 ? call_fail(c, r) : call_later(c, approval_on_cancel, w);
}

static struct done handle_create(struct call *c)
{
	struct approval_new new;
	int r = read_approval(c, &new)
			?: approval_request(call_approvals(c), &new, on_told, c, &c->error);

	/* This takes a single commit, so there is nothing to cancel. */
	return call_await(c, r);
}

/* ---- looking ---- */

struct approval_looking {
	struct approval_filter filter;
	struct approval *found; /* several, or one */
	unsigned n;
	unsigned n_pending;
	struct approval_decision decision;
};

static int get_work(struct call *c)
{
	const struct approval_one_in *in = c->in;
	struct approval_looking *l = c->state;

	l->found = arena_zalloc(&c->arena, sizeof(l->found[0]));
	if (!l->found)
		return -ENOMEM;
	return approval_get(call_approvals(c), c->lane, &c->arena, in->id, !in->exact, l->found,
			    &c->error);
}

static struct done get_then(struct call *c, int r)
{
	const struct approval_looking *l = c->state;

	if (r != 0)
		return call_fail(c, r);
	approval_json_write(call_result(c), l->found, NULL);
	return call_reply(c);
}

static int approval_begin(struct call *c, struct approval_looking **ret)
{
	c->state = *ret = arena_zalloc(&c->arena, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static struct done handle_get(struct call *c)
{
	struct approval_looking *l;
	int r = approval_begin(c, &l);

	return r != 0 ? call_fail(c, r) : call_work(c, READER, get_work, get_then);
}

static int list_work(struct call *c)
{
	struct approval_looking *l = c->state;

	return approval_list(call_approvals(c), c->lane, &c->arena, &l->filter, &l->found, &l->n);
}

static struct done list_then(struct call *c, int r)
{
	const struct approval_looking *l = c->state;
	size_t left = APPROVALS_SHOWN_MAX;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "approvals");
	for (unsigned i = 0; i < l->n; i++)
		approval_json_write(j, &l->found[i], &left);
	json_end_array(j);
	json_member_uint(j, "pending", l->n_pending);
	return call_reply_object(c);
}

/* The count comes from the loop, the approvals from the store. */
static struct done approval_handle_list(struct call *c)
{
	const struct approval_list_in *in = c->in;
	enum approval_status status;
	struct approval_looking *l;
	int r = approval_begin(c, &l);

	if (r != 0)
		return call_fail(c, r);
	l->filter = (struct approval_filter) {
		.status = approval_status_parse(in->status, &status) ? (int)status : -1,
		.session = in->session_id,
		.limit = in->limit,
	};
	l->n_pending = approvals_pending(call_approvals(c));
	return call_work(c, READER, list_work, list_then);
}

/* ---- deciding ---- */

static int read_grant(const struct value *grant, struct approval_decision *d, struct error *error)
{
	const struct value *given;
	double seconds = 0;
	struct text scope;
	int r;

	if (!grant)
		return 0;
	scope = value_text(value_find(grant, "scope"));
	if (!text_is(scope, "session") && !text_is(scope, "all"))
		return refuse_field(error, "grant",
				    "grant.scope must be session or all, not '%.*s'",
				    TEXT_ARGS(text_cut(scope, 40)));
	d->grants = true;
	d->grant_session = text_is(scope, "session");
	given = value_find(grant, "uses");
	if (given && given->kind != VALUE_NULL &&
	    (!value_int(given, &d->grant_uses) || d->grant_uses < 1))
		return refuse_field(error, "grant", "grant.uses must be an integer greater than 0");
	given = value_find(grant, "for");
	if (!given || given->kind == VALUE_NULL)
		return 0;
	if (!value_double(given, &seconds) || !(seconds > 0))
		return refuse_field(error, "grant",
				    "grant.for must be a number of seconds greater than 0");
	r = koine_read_seconds(seconds, "grant.for", &d->grant_ms, error);
	/* The sentence names the member; the error's data names the parameter. */
	if (r > 0)
		error->field[strlen("grant")] = '\0';
	return r;
}

static int read_decision(const struct approval_one_in *in, struct approval_decision *d,
			 struct error *error)
{
	static const struct {
		const char *word;
		enum approval_status status;
	} words[] = {
		{"approve", APPROVAL_APPROVED},
		{"deny", APPROVAL_DENIED},
		{"respond", APPROVAL_RESPONDED},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (text_is(in->decision, words[i].word))
			d->status = words[i].status;
	}
	if (d->status == APPROVAL_RESPONDED && in->comment.len == 0)
		return refuse_field(error, "comment",
				    "comment is required: pass the answer as comment");
	if (d->status == APPROVAL_RESPONDED && in->grant)
		return refuse_field(error, "grant", "a question cannot have a grant");
	d->comment = in->comment;
	return read_grant(in->grant, d, error);
}

/* The client may give only the beginning of an id; from here on the whole id is used. */
static struct done decide_then(struct call *c, int r)
{
	struct approval_looking *l = c->state;

	if (r != 0)
		return call_fail(c, r);
	l->decision.id = l->found->id;
	l->decision.from = (struct approval_client) {
		.is = true, .let_in = c->endpoint->dialect->lets_in, .peer = c->peer};
	return call_await(c,
			  approval_decide(call_approvals(c), &l->decision, on_told, c, &c->error));
}

static struct done handle_decide(struct call *c)
{
	struct approval_looking *l;
	int r = approval_begin(c, &l) ?: read_decision(c->in, &l->decision, &c->error);

	return r != 0 ? call_fail(c, r) : call_work(c, READER, get_work, decide_then);
}

static struct done handle_withdraw(struct call *c)
{
	const struct approval_one_in *in = c->in;
	struct approval_looking *l;
	int r = approval_begin(c, &l);

	if (r != 0)
		return call_fail(c, r);
	l->decision.status = APPROVAL_SUPERSEDED;
	l->decision.comment = in->comment;
	return call_work(c, READER, get_work, decide_then);
}

/* ---- the method table ---- */

static const struct field ask_fields[] = {
	FIELD(STRING, approval_in, tool, "Tool to call, or subject of a question",
	      .required = true),
	FIELD(OBJECT, approval_in, input, "Input of the tool; for a question: {\"msg\":…}"),
	FIELD(STRING, approval_in, id,
	      "Id chosen by the client; default: generated. Repeat the same request with this id "
	      "to wait for the same decision"),
	FIELD(STRING, approval_in, kind,
	      "Kind of request: function_call (permission) or human_contact (question)",
	      .default_text = "function_call", WORDS("function_call", "human_contact")),
	FIELD(STRING, approval_in, session_id,
	      "Id of the requesting session, assigned by koine or by the agent"),
	FIELD(STRING, approval_in, run_id, "Id of the requesting run"),
	FIELD(STRING, approval_in, agent,
	      "Name of the requesting agent, such as \"claude\" or \"codex\""),
	FIELD(STRING, approval_in, origin,
	      "Where the request comes from, such as a folder or session; shown to the user"),
	FIELD(STRING, approval_in, tool_use_id, "Tool call id assigned by the agent"),
	FIELD(NUMBER, approval_in, timeout,
	      "Seconds until the approval expires; default: approval.timeout"),
	FIELD(BOOL, approval_in, by_rules,
	      "Do not ask a human; fail with -32005 if no policy or grant matches"),
};

#define AN_ID                                                                                      \
	FIELD(STRING, approval_one_in, id, "Id of the approval, or a unique prefix of the id",     \
	      .required = true)
#define EXACT         FIELD(BOOL, approval_one_in, exact, "Match the whole id, not a prefix")
#define COMMENT(text) FIELD(STRING, approval_one_in, comment, text)

static const struct field id_fields[] = {AN_ID, EXACT};

static const struct field decide_fields[] = {
	AN_ID,
	EXACT,
	FIELD(STRING, approval_one_in, decision,
	      "Decision: approve, deny or respond (questions only)", .required = true,
	      WORDS("approve", "deny", "respond")),
	COMMENT("Reason, or the answer to a question"),
	FIELD(OBJECT, approval_one_in, grant,
	      "Decide matching requests the same way: {\"scope\":\"session\" or \"all\", \"for\": "
	      "seconds, \"uses\": number}"),
};

static const struct field withdraw_fields[] = {AN_ID, EXACT, COMMENT("Reason")};

static const struct field list_fields[] = {
	FIELD(STRING, approval_list_in, status,
	      "Status: pending, approved, denied, responded, expired, superseded or any",
	      .default_text = "pending",
	      WORDS("any", "pending", "approved", "denied", "responded", "expired", "superseded")),
	FIELD(STRING, approval_list_in, session_id, "Return only approvals for this session"),
	FIELD(INT, approval_list_in, limit, "Maximum number of approvals, up to 1000",
	      .default_number = 100, RANGE(1, APPROVAL_LIST_MAX)),
};

static const struct field grant_fields[] = {
	FIELD(STRING, grant_in, tool, "Pattern for the tool name: \"Bash\", \"mcp__*\", \"*\"",
	      .required = true),
	FIELD(STRING, grant_in, pattern,
	      "Pattern for the input, as in a policy; default: any input"),
	FIELD(STRING, grant_in, verdict, "Verdict: allow or deny", .default_text = "allow",
	      WORDS("allow", "deny")),
	FIELD(STRING, grant_in, session_id, "Limit the grant to this session"),
	FIELD(STRING, grant_in, agent, "Limit the grant to this agent"),
	FIELD(STRING, grant_in, comment, "Comment to send to the agent with the verdict"),
	FIELD_AS("for", NUMBER, grant_in, seconds, "Lifetime in seconds; default: no limit"),
	FIELD(INT, grant_in, uses, "Maximum number of uses; default: no limit", AT_LEAST(0)),
};

static const struct field revoke_fields[] = {
	FIELD(STRING, grant_in, id, "Id of the grant, or a unique prefix of the id",
	      .required = true),
};

#define HOW_IT_STANDS                                                                              \
	"{id:string status:pending|approved|denied|responded|expired|superseded "                  \
	"comment:string|null decided_by:string|null decided_at:string|null}"

static const struct method rows[] = {
	{"approval.request",
	 "Request permission to call a tool, or ask a human a question, and wait for the decision",
	 HOW_IT_STANDS, FIELDS(ask_fields, approval_in), .handle = handle_request,
	 .flags = METHOD_LATER | METHOD_ENDS},
	{"approval.create",
	 "Add a request and return its id immediately, without waiting for the decision",
	 HOW_IT_STANDS, FIELDS(ask_fields, approval_in), .handle = handle_create,
	 .flags = METHOD_LATER},
	{"approval.decide", "Decide a pending request; the first decision is final", HOW_IT_STANDS,
	 FIELDS(decide_fields, approval_one_in), .handle = handle_decide, .flags = METHOD_LATER},
	{"approval.withdraw", "Withdraw a pending request; its status becomes superseded",
	 HOW_IT_STANDS, FIELDS(withdraw_fields, approval_one_in), .handle = handle_withdraw,
	 .flags = METHOD_LATER},
	{"approval.list",
	 "List pending approvals, oldest first, and then decided approvals, newest first",
	 "{approvals:[object] pending:integer}", FIELDS(list_fields, approval_list_in),
	 .handle = approval_handle_list, .flags = METHOD_LATER},
	{"approval.get", "Return one approval in full", "object",
	 FIELDS(id_fields, approval_one_in), .handle = handle_get, .flags = METHOD_LATER},
	{"approval.grants", "List grants, oldest first", "{grants:[object]}",
	 .handle = koine_grant_list, .where = READER},
	{"approval.grant",
	 "Create a grant, which allows or denies matching requests without asking a human",
	 "object", FIELDS(grant_fields, grant_in), .handle = koine_grant_add,
	 .flags = METHOD_LATER},
	{"approval.revoke", "Revoke a grant", "{id:string revoked:true}",
	 FIELDS(revoke_fields, grant_in), .handle = koine_grant_remove, .flags = METHOD_LATER},
};

const struct method_table koine_approval_methods = METHOD_TABLE(rows);
