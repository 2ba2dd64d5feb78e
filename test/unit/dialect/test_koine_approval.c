/*
 * koine's approval methods in a real server, over a service that the test plays itself: only so
 * can a client leave, cancel or be answered at the right moment.
 *
 * In the texts below ' stands for ".
 */
#include "check.h"

#include "../call_world.h"
#include "dialect/koine/koine.h"
#include "engine/approval/approval.h"
#include "engine/engine.h"

enum { BIG = 100 << 10 };

/* ---- the service ---- */

static struct {
	int refusal;
	approval_fn fn;
	void *arg;
	struct approval_new new;
	char tool[64];
	unsigned n_waits;
	unsigned n_left;
	unsigned n_abandoned; /* of these */
	struct approval_decision decision;
	char id[64];
	char comment[64];
	struct approval_filter filter;
	struct grant grant;
	char grant_tool[64];
	unsigned n_listed;
	bool big;
	char revoked[64];
} played;

static void keep(char out[64], struct text t)
{
	snprintf(out, 64, "%.*s", TEXT_ARGS(t));
}

static struct approval approval_like(enum approval_status status)
{
	struct approval a = {
		.id = TEXT("local-1"),
		.tool = TEXT("Bash"),
		.status = status,
		.created_ms = 1000,
	};

	if (status != APPROVAL_PENDING) {
		a.decided_by = TEXT("human");
		a.decided_ms = 2000;
	}
	return a;
}

static void tell(int result, enum approval_status status, struct text comment)
{
	struct approval a = approval_like(status);
	struct why why = {0};
	approval_fn fn = played.fn;

	a.comment = comment;
	if (result > 0)
		(void)refuse(&why, (enum refusal)result, "no");
	assert_non_null(fn);
	played.fn = NULL;
	fn(played.arg, result, result == REFUSE_NOT_FOUND ? NULL : &a, &why);
}

static void take(const struct approval_new *in, approval_fn fn, void *arg)
{
	played.new = *in;
	keep(played.tool, in->tool);
	keep(played.id, in->id);
	played.fn = fn;
	played.arg = arg;
}

void approval_request(struct approvals *s, const struct approval_new *in, approval_fn fn, void *arg)
{
	take(in, fn, arg);
	tell(played.refusal, APPROVAL_PENDING, (struct text) {0});
}

int approval_wait(struct approvals *s, const struct approval_new *in, approval_fn on_kept,
		  approval_fn fn, void *arg, struct approval_waiter **ret_waiter)
{
	if (played.refusal < 0)
		return played.refusal;
	take(in, fn, arg);
	played.n_waits++;
	*ret_waiter = (struct approval_waiter *)&played;
	return 0;
}

void approval_leave(struct approval_waiter *w)
{
	if (!w)
		return;
	assert_ptr_equal(w, &played);
	played.fn = NULL;
	played.n_left++;
}

void approval_abandon(struct approval_waiter *w)
{
	played.n_abandoned += w != NULL;
	approval_leave(w);
}

void approval_decide(struct approvals *s, const struct approval_decision *d, approval_fn fn,
		     void *arg)
{
	played.decision = *d;
	keep(played.id, d->id);
	keep(played.comment, d->comment);
	played.fn = fn;
	played.arg = arg;
	tell(played.refusal, d->status, d->comment);
}

static const struct value *big_input(struct arena *a)
{
	struct value *v = arena_zalloc(a, 2 * sizeof(*v));
	char *text = arena_alloc(a, BIG);

	memset(text, 'x', BIG);
	v[0] = (struct value) {.kind = VALUE_OBJECT, .len = 1, .first = &v[1]};
	v[1] = (struct value) {
		.kind = VALUE_STRING, .key = "k", .key_len = 1, .text = text, .len = BIG};
	return v;
}

int approval_list(struct approvals *s, int lane, struct arena *a, const struct approval_filter *f,
		  struct approval **ret_approvals, unsigned *ret_n)
{
	struct approval *all = arena_zalloc(a, (played.n_listed + 1) * sizeof(all[0]));

	played.filter = *f;
	for (unsigned i = 0; i < played.n_listed; i++) {
		all[i] = approval_like(APPROVAL_PENDING);
		all[i].input.value = played.big ? big_input(a) : NULL;
	}
	*ret_approvals = all;
	*ret_n = played.n_listed;
	return 0;
}

int approval_get(struct approvals *s, int lane, struct arena *a, struct text id, bool short_id,
		 struct approval *ret_approval, struct why *why)
{
	assert_true(short_id);
	if (!text_is(id, "local") && !text_is(id, "local-1"))
		return refuse(why, REFUSE_NOT_FOUND, "approval not found: %.*s", TEXT_ARGS(id));
	*ret_approval = approval_like(APPROVAL_PENDING);
	ret_approval->input.value = played.big ? big_input(a) : NULL;
	return 0;
}

unsigned approvals_pending(const struct approvals *s)
{
	return 7;
}

int grant_list(struct approvals *s, int lane, struct arena *a, struct grant **ret_rows,
	       unsigned *ret_n)
{
	struct grant *rows = arena_zalloc(a, 2 * sizeof(rows[0]));

	rows[0] = (struct grant) {.id = TEXT("aa1"), .tool = TEXT("Bash"), .uses = -1};
	rows[1] = (struct grant) {
		.id = TEXT("aa2"), .verdict = GRANT_DENIES, .uses = 3, .expires_ms = 3000};
	*ret_rows = rows;
	*ret_n = 2;
	return 0;
}

void grant_add(struct approvals *s, const struct grant *row, const struct approval_client *from,
	       approval_fn fn, void *arg)
{
	played.grant = *row;
	keep(played.grant_tool, row->tool);
	fn(arg, 0, NULL, NULL);
}

void grant_remove(struct approvals *s, struct text id, const struct approval_client *from,
		  approval_fn fn, void *arg)
{
	keep(played.revoked, id);
	fn(arg, 0, NULL, NULL);
}

/* ---- the world ---- */

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {-32001, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32002, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32003, "Limit reached", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32005, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32008, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32800, "Cancelled", WORDS_ONLY, 0},
};

static struct dialect dialect = {
	.name = "koine",
	.framing = SPEAKS_LINE,
	.message_max = 16 << 20,
	.errors = errors,
	.methods = koine_approval_methods,
};

static struct engine engine;

struct fixture {
	struct world world;
	struct dialer client;
};

static void start(struct fixture *f)
{
	struct server_opts opts = {.limits = default_limits, .engine = &engine, .version = "1"};

	/* Cancelled at once when it stops. */
	opts.limits.stop_ms = 1;
	memset(&played, 0, sizeof(played));
	engine.approvals = (struct approvals *)&played;
	dialect.n_methods = koine_n_approval_methods;
	assert_int_equal(world_init(&f->world, &dialect, &opts), 0);
	assert_int_equal(dialer_init(&f->client, &f->world), 0);
}

static void finish(struct fixture *f)
{
	dialer_done(&f->client);
	world_done(&f->world);
}

static const char *quoted(const char *text)
{
	static char out[8192];

	assert_true(strlen(text) < sizeof(out));
	for (size_t i = 0; i <= strlen(text); i++)
		out[i] = text[i] == '\'' ? '"' : text[i];
	return out;
}

static void say(struct fixture *f, const char *text)
{
	const char *bytes = quoted(text);

	assert_true(dialer_send_n(&f->client, &f->world, bytes, strlen(bytes)));
	world_settle(&f->world);
}

static void hear(struct fixture *f, const char *expected)
{
	const char *bytes = quoted(expected);
	size_t n = strlen(bytes);

	if (!dialer_wait(&f->client, &f->world, n) || memcmp(f->client.in.data, bytes, n) != 0)
		fail_msg("expected %s\n     got %.*s", bytes, (int)f->client.in.len,
			 f->client.in.data ? f->client.in.data : "");
	buf_consume(&f->client.in, n);
}

#define CALL(method, params) "{'jsonrpc':'2.0','method':'" method "','params':" params ",'id':1}\n"
#define RESULT(result)       "{'jsonrpc':'2.0','result':" result ",'id':1}\n"
#define ERROR(code, words)                                                                         \
	"{'jsonrpc':'2.0','error':{'code':" code ",'message':'" words "'},'id':1}\n"
#define REFUSED(field, words)                                                                      \
	"{'jsonrpc':'2.0','error':{'code':-32602,'message':'Invalid params: " words                \
	"','data':{'field':'" field "'}},'id':1}\n"
#define STANDS(status, comment)                                                                    \
	"{'id':'local-1','status':'" status "','comment':" comment                                 \
	",'decided_by':'human','decided_at':'1970-01-01T00:00:02.000Z'}"
#define BASH CALL("approval.request", "{'tool':'Bash'}")

/* ---- waiting ---- */

static void who_asks_is_answered_when_it_is_decided(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, CALL("approval.request",
		     "{'id':'a1','kind':'human_contact','tool':'Bash','input':{'command':'ls'},"
		     "'session_id':'s1','run_id':'r1','agent':'claude','origin':'/src',"
		     "'tool_use_id':'t1','timeout':1.5}"));
	assert_int_equal(played.n_waits, 1);
	assert_int_equal(f.client.in.len, 0);
	assert_string_equal(played.id, "a1");
	assert_int_equal(played.new.kind, APPROVAL_CONTACT);
	assert_int_equal(played.new.timeout_ms, 1500);
	assert_true(text_is(played.new.session, "s1"));
	assert_true(text_is(played.new.run, "r1"));
	assert_true(text_is(played.new.agent, "claude"));
	assert_true(text_is(played.new.origin, "/src"));
	assert_true(text_is(played.new.tool_use_id, "t1"));
	assert_true(text_is(value_text(value_find(played.new.input, "command")), "ls"));
	assert_false(played.new.must_be_known);
	tell(0, APPROVAL_DENIED, TEXT("not now"));
	hear(&f, RESULT(STANDS("denied", "'not now'")));
	assert_int_equal(played.n_left, 0);
	finish(&f);
}

static void what_follows_waits_and_then_goes_on(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, BASH "{'jsonrpc':'2.0','method':'approval.request','params':{'tool':'Edit'},"
		     "'id':2}\n");
	assert_string_equal(played.tool, "Bash");
	/* Answering runs the next request within. */
	tell(0, APPROVAL_APPROVED, (struct text) {0});
	hear(&f, RESULT(STANDS("approved", "null")));
	assert_string_equal(played.tool, "Edit");
	tell(REFUSE_STOPPING, APPROVAL_PENDING, (struct text) {0});
	hear(&f, "{'jsonrpc':'2.0','error':{'code':-32008,'message':'no'},'id':2}\n");
	finish(&f);
}

static void a_client_that_leaves_waits_no_longer(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, BASH);
	assert_int_equal(played.n_waits, 1);
	dialer_done(&f.client);
	world_settle(&f.world);
	assert_int_equal(played.n_left, 1);
	assert_int_equal(played.n_abandoned, 1);
	assert_int_equal(f.world.server->n_calls, 0);
	finish(&f);
}

static void of_a_batch_everybody_leaves(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, "[{'jsonrpc':'2.0','method':'approval.request','params':{'tool':'A'},'id':1},"
		"{'jsonrpc':'2.0','method':'approval.request','params':{'tool':'B'},'id':2}]\n");
	assert_in_range(played.n_waits, 1, 2);
	finish(&f);
	assert_int_equal(played.n_left, played.n_waits);
}

static void cancelling_ends_the_waiting(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, BASH "{'jsonrpc':'2.0','method':'rpc.cancel','params':{'id':1},'id':2}\n");
	hear(&f, ERROR("-32800", "Cancelled"));
	hear(&f, "{'jsonrpc':'2.0','result':{'cancelled':true},'id':2}\n");
	assert_int_equal(played.n_left, 1);
	assert_int_equal(played.n_abandoned, 0);
	say(&f, BASH);
	assert_int_equal(played.n_waits, 2);
	finish(&f);
	assert_int_equal(played.n_left, 2);
}

static void a_daemon_that_stops_says_ask_again(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, BASH);
	server_stop(f.world.server);
	hear(&f, ERROR("-32008", "koined is stopping: ask again with the same id"));
	assert_int_equal(played.n_left, 1);
	finish(&f);
}

static void a_wait_that_cannot_be_is_a_fault(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	played.refusal = -ENOMEM;
	say(&f, BASH);
	hear(&f, ERROR("-32603", "Internal error: Cannot allocate memory"));
	engine.approvals = NULL;
	say(&f, BASH);
	hear(&f, ERROR("-32005", "approvals are not running"));
	finish(&f);
	assert_int_equal(played.n_left, 0);
}

/* ---- the others ---- */

static void creating_answers_when_it_is_kept(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, CALL("approval.create", "{'tool':'Bash'}"));
	hear(&f, RESULT("{'id':'local-1','status':'pending','comment':null,'decided_by':null,"
			"'decided_at':null}"));
	assert_int_equal(played.new.timeout_ms, 0);
	assert_null(played.new.id.data);
	assert_null(played.new.input);
	played.refusal = REFUSE_LIMIT;
	say(&f, CALL("approval.create", "{'tool':'Bash'}"));
	hear(&f, ERROR("-32003", "no"));
	finish(&f);
}

static void a_decision_is_read_and_its_id_made_whole(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, CALL("approval.decide", "{'id':'local','decision':'deny','comment':'no',"
					"'grant':{'scope':'session','for':60,'uses':5}}"));
	hear(&f, RESULT(STANDS("denied", "'no'")));
	assert_string_equal(played.id, "local-1");
	assert_string_equal(played.comment, "no");
	assert_int_equal(played.decision.status, APPROVAL_DENIED);
	assert_true(played.decision.grants && played.decision.grant_session);
	assert_int_equal(played.decision.grant_ms, 60000);
	assert_int_equal(played.decision.grant_uses, 5);
	say(&f, CALL("approval.decide", "{'id':'local-1','decision':'approve'}"));
	hear(&f, RESULT(STANDS("approved", "null")));
	assert_false(played.decision.grants);
	say(&f, CALL("approval.withdraw", "{'id':'local-1'}"));
	hear(&f, RESULT(STANDS("superseded", "null")));
	say(&f, CALL("approval.decide", "{'id':'x','decision':'approve'}"));
	hear(&f, ERROR("-32001", "approval not found: x"));
	finish(&f);
}

static void the_second_decision_is_told_the_first(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	played.refusal = REFUSE_CONFLICT;
	say(&f, CALL("approval.decide", "{'id':'local-1','decision':'approve'}"));
	hear(&f,
	     "{'jsonrpc':'2.0','error':{'code':-32002,'message':'no','data':{'approval':" STANDS(
		     "approved", "null") "}},'id':1}\n");
	finish(&f);
}

static void bad_parameters_are_named(void **state)
{
	static const struct {
		const char *method, *params, *refused;
	} rows[] = {
		{"approval.request", "{}", REFUSED("tool", "tool is required")},
		{"approval.request", "{'tool':'a','kind':'x'}",
		 REFUSED("kind", "kind must be function_call or human_contact")},
		{"approval.create", "{'tool':'a','timeout':-1}",
		 REFUSED("timeout", "timeout must be seconds, at most 316224000")},
		{"approval.create", "{'tool':'a','timeout':1e300}",
		 REFUSED("timeout", "timeout must be seconds, at most 316224000")},
		{"approval.decide", "{'id':'a','decision':'maybe'}",
		 REFUSED("decision", "decision must be approve, deny or respond")},
		{"approval.decide", "{'id':'a','decision':'respond'}",
		 REFUSED("comment", "comment is missing: it is the answer")},
		{"approval.decide", "{'id':'a','decision':'respond','comment':'b','grant':{}}",
		 REFUSED("grant", "an answer cannot be granted beforehand")},
		{"approval.decide", "{'id':'a','decision':'approve','grant':{'scope':'world'}}",
		 REFUSED("grant", "grant.scope must be session or all")},
		{"approval.decide",
		 "{'id':'a','decision':'approve','grant':{'scope':'all','uses':0}}",
		 REFUSED("grant", "grant.uses must be a number above 0")},
		{"approval.decide",
		 "{'id':'a','decision':'approve','grant':{'scope':'all','for':'x'}}",
		 REFUSED("grant", "grant.for must be seconds")},
		{"approval.list", "{'limit':0}",
		 REFUSED("limit", "limit must be between 1 and 1000")},
		{"approval.list", "{'status':'resolved'}",
		 REFUSED("status", "status must be any, pending, approved, denied, responded, "
				   "expired or superseded")},
		{"approval.grant", "{'tool':''}",
		 REFUSED("tool", "tool must not be empty; * is any")},
		{"approval.grant", "{'tool':'a','verdict':'ask'}",
		 REFUSED("verdict", "verdict must be allow or deny")},
		{"approval.grant", "{'tool':'a','uses':-1}",
		 REFUSED("uses", "uses must not be negative")},
	};
	struct fixture f;

	(void)state;
	start(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[512];

		snprintf(line, sizeof(line), CALL("%s", "%s"), rows[i].method, rows[i].params);
		say(&f, line);
		hear(&f, rows[i].refused);
	}
	assert_int_equal(played.n_waits, 0);
	finish(&f);
}

#define WHOLE(input)                                                                               \
	"{'id':'local-1','status':'pending','kind':'function_call','tool':'Bash','input':" input   \
	",'session_id':null,'run_id':null,'agent':null,'origin':null,'tool_use_id':null,"          \
	"'event_id':null,'created_at':'1970-01-01T00:00:01.000Z','deadline':null,'comment':null,"  \
	"'decided_by':null,'decided_at':null}"

static void the_inbox_is_listed(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	played.n_listed = 2;
	say(&f, CALL("approval.list", "{'session_id':'s1','limit':5}"));
	hear(&f, RESULT("{'approvals':[" WHOLE("{}") "," WHOLE("{}") "],'pending':7}"));
	assert_int_equal(played.filter.status, APPROVAL_PENDING);
	assert_int_equal(played.filter.limit, 5);
	played.n_listed = 0;
	say(&f, CALL("approval.list", "{'status':'any'}"));
	hear(&f, RESULT("{'approvals':[],'pending':7}"));
	assert_int_equal(played.filter.status, -1);
	finish(&f);
}

static void a_large_input_is_left_out_of_lists_alone(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	played.n_listed = 1;
	played.big = true;
	say(&f, CALL("approval.list", "{}"));
	hear(&f, RESULT("{'approvals':[" WHOLE("null,'input_omitted':true") "],'pending':7}"));
	say(&f, CALL("approval.get", "{'id':'local'}"));
	assert_true(dialer_wait(&f.client, &f.world, BIG + 300));
	assert_non_null(memmem(f.client.in.data, f.client.in.len, "xxxxx\"},\"session_id\"", 20));
	finish(&f);
}

static void grants_come_and_go(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	say(&f, CALL("approval.grants", "{}"));
	hear(&f, RESULT("{'grants':[{'id':'aa1','verdict':'allow','tool':'Bash','pattern':null,"
			"'session_id':null,'agent':null,'comment':null,'created_at':null,"
			"'expires_at':null,'uses':null},{'id':'aa2','verdict':'deny','tool':null,"
			"'pattern':null,'session_id':null,'agent':null,'comment':null,"
			"'created_at':null,'expires_at':'1970-01-01T00:00:03.000Z','uses':3}]}"));
	say(&f, CALL("approval.grant", "{'tool':'Edit','verdict':'deny','for':2,'uses':4}"));
	assert_true(dialer_wait(&f.client, &f.world, 200));
	buf_clear(&f.client.in);
	assert_string_equal(played.grant_tool, "Edit");
	assert_int_equal(played.grant.verdict, GRANT_DENIES);
	assert_int_equal(played.grant.uses, 4);
	assert_int_equal(played.grant.expires_ms - played.grant.created_ms, 2000);
	say(&f, CALL("approval.revoke", "{'id':'aa2'}"));
	hear(&f, RESULT("{'id':'aa2','revoked':true}"));
	assert_string_equal(played.revoked, "aa2");
	say(&f, CALL("approval.revoke", "{'id':'aa'}"));
	hear(&f, ERROR("-32002", "several grants begin so: aa1 and aa2"));
	say(&f, CALL("approval.revoke", "{'id':'b'}"));
	hear(&f, ERROR("-32001", "grant not found: b"));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_is_answered_when_it_is_decided),
		cmocka_unit_test(what_follows_waits_and_then_goes_on),
		cmocka_unit_test(a_client_that_leaves_waits_no_longer),
		cmocka_unit_test(of_a_batch_everybody_leaves),
		cmocka_unit_test(cancelling_ends_the_waiting),
		cmocka_unit_test(a_daemon_that_stops_says_ask_again),
		cmocka_unit_test(a_wait_that_cannot_be_is_a_fault),
		cmocka_unit_test(creating_answers_when_it_is_kept),
		cmocka_unit_test(a_decision_is_read_and_its_id_made_whole),
		cmocka_unit_test(the_second_decision_is_told_the_first),
		cmocka_unit_test(bad_parameters_are_named),
		cmocka_unit_test(the_inbox_is_listed),
		cmocka_unit_test(a_large_input_is_left_out_of_lists_alone),
		cmocka_unit_test(grants_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
