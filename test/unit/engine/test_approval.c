/*
 * Approvals as the daemon serves them: a loop, the workers' threads, a real store. The sessions are
 * rows of the store; the test plays the service that runs them.
 */
#include "stage.h"

#include <errno.h>

#include "base/clock.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "engine/approval/inner.h"
#include "engine/event/event.h"
#include "engine/session/session.h"
#include "store/session.h"
#include "store/store.h"
#include "wire/json.h"

struct world {
	struct stage stage;
	struct approval_rule rules[8];
	unsigned n_rules;
	unsigned pending;
	int64_t timeout_ms;
	int64_t keep_ms;
	int n_waits; /* what sessions were told, in all */
};

static void on_wait(void *arg, struct text id, int change)
{
	struct world *w = arg;

	/* Those that are not ours are nothing to it. */
	if (text_is(id, "s1"))
		w->n_waits += change;
}

static struct engine *engine(struct world *w)
{
	return w->stage.f->engine;
}

static struct approvals *approvals(struct world *w)
{
	return engine(w)->approvals;
}

static void world_open(struct world *w)
{
	const struct events_opts events = {.store = engine(w)->store,
					   .loop = w->stage.loop,
					   .workers = stage_workers(&w->stage)};
	struct approvals_opts opts = {
		.store = engine(w)->store,
		.loop = w->stage.loop,
		.workers = stage_workers(&w->stage),
		.pending = w->pending,
		.timeout_ms = w->timeout_ms,
		.keep_ms = w->keep_ms,
		.rules = w->rules,
		.n_rules = w->n_rules,
		.on_wait = on_wait,
		.arg = w,
	};
	struct error error = {0};

	assert_int_equal(events_start(&events, &engine(w)->events), 0);
	opts.events = engine(w)->events;
	if (approvals_start(&opts, &engine(w)->approvals, &error) != 0)
		fail_msg("%s", error.text);
	stage_open(&w->stage);
}

static void world_close(struct world *w)
{
	stage_close(&w->stage);
	engine_close(engine(w));
	w->stage.f->engine = NULL;
}

/* As a crash leaves it. */
static void world_reopen(struct world *w)
{
	world_close(w);
	fixture_open(w->stage.f, 1 << 20);
	world_open(w);
}

/* On the writer's connection, while no thread has it. */
static void add_session(struct world *w)
{
	const struct session row = {.id = TEXT("s1"),
				    .run = TEXT("r1"),
				    .agent_session = TEXT("c1"),
				    .query = TEXT("q"),
				    .working_dir = TEXT("/"),
				    .runner = TEXT("claude"),
				    .status = SESSION_RUNNING,
				    .created_ms = 1,
				    .active_ms = 1,
				    .cost_usd = -1,
				    .input_tokens = -1,
				    .output_tokens = -1,
				    .duration_ms = -1,
				    .turns = -1};
	int64_t seq;

	begin(w->stage.f);
	assert_int_equal(store_session_add(store_writer(engine(w)->store), &row, &seq), 0);
	end(w->stage.f);
}

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct fixture *f;

	if (setup((void **)&f) != 0)
		return -1;
	stage_make(&w->stage, f);
	add_session(w);
	world_open(w);
	*state = w;
	return 0;
}

static int world_teardown(void **state)
{
	struct world *w = *state;
	struct fixture *f = w->stage.f;

	world_close(w);
	fixture_open(f, 1 << 20);
	teardown((void **)&f);
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

static void set_rules(struct world *w)
{
	approvals_set_rules(approvals(w), w->rules, w->n_rules);
}

static void add_rule(struct world *w, enum approval_verdict verdict, const char *tool,
		     const char *input)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	w->rules[w->n_rules] = (struct approval_rule) {
		.name = names[w->n_rules], .verdict = verdict, .tool = tool, .input = input};
	w->n_rules++;
	set_rules(w);
}

/* ---- asking ---- */

struct told {
	int n;
	int n_kept;
	int result;
	struct error error;
	enum approval_status status;
	char id[160];
	char by[80];
	char comment[80];
	char session[80];
	int64_t event_id;
	struct approval_waiter *waiter;
};

static void note(struct told *t, int result, const struct approval *a, const struct error *error)
{
	t->result = result;
	t->error = *error;
	if (!a)
		return;
	assert_non_null(a->input.value);
	t->status = a->status;
	t->event_id = a->event_id;
	snprintf(t->id, sizeof(t->id), "%.*s", TEXT_ARGS(a->id));
	snprintf(t->by, sizeof(t->by), "%.*s", TEXT_ARGS(a->decided_by));
	snprintf(t->comment, sizeof(t->comment), "%.*s", TEXT_ARGS(a->comment));
	snprintf(t->session, sizeof(t->session), "%.*s", TEXT_ARGS(a->session));
}

static void on_told(void *arg, int result, const struct approval *a, const struct error *error)
{
	struct told *t = arg;

	t->n++;
	t->waiter = NULL;
	note(t, result, a, error);
}

static void on_kept(void *arg, int result, const struct approval *a, const struct error *error)
{
	struct told *t = arg;

	t->n_kept++;
	assert_int_equal(result, 0);
	assert_int_equal(a->status, APPROVAL_PENDING);
	note(t, result, a, error);
}

static struct approval_new plain_new(const char *tool)
{
	return (struct approval_new) {.tool = text_of(tool), .agent = TEXT("claude")};
}

/* Tests look at every result in one way. */
static void tell_refusal(struct told *t, int result)
{
	const struct error error = t->error;

	assert_int_equal(t->n, 0);
	if (result != 0)
		on_told(t, result, NULL, &error);
}

static struct told request(struct world *w, const struct approval_new *in)
{
	struct told t = {0};

	tell_refusal(&t, approval_request(approvals(w), in, on_told, &t, &t.error));
	stage_until(&w->stage, t.n);
	return t;
}

static struct told ask(struct world *w, const char *tool)
{
	const struct approval_new in = plain_new(tool);

	return request(w, &in);
}

static const struct value *command(struct world *w, const char *text)
{
	struct object_builder inner;
	struct object_builder r;

	object_begin(&inner, &w->stage.f->arena);
	object_text(&inner, "command", text_of(text));
	object_begin(&r, &w->stage.f->arena);
	object_int(&r, "n", 1);
	object_value(&r, "deep", inner.root);
	assert_int_equal(r.err, 0);
	return r.root;
}

static struct told ask_with(struct world *w, const char *tool, const char *text)
{
	struct approval_new in = plain_new(tool);

	in.input = command(w, text);
	return request(w, &in);
}

static void start_wait(struct world *w, const struct approval_new *in, struct told *t)
{
	*t = (struct told) {0};
	tell_refusal(t,
		     approval_wait(approvals(w), in, on_kept, on_told, t, &t->waiter, &t->error));
}

/* One that waits for a human, with somebody who waits for it. */
static void wait_kept(struct world *w, const struct approval_new *in, struct told *t)
{
	start_wait(w, in, t);
	stage_until(&w->stage, t->n_kept);
	assert_int_equal(t->n, 0);
}

static struct told decide_as(struct world *w, const struct approval_decision *d)
{
	struct told t = {0};

	tell_refusal(&t, approval_decide(approvals(w), d, on_told, &t, &t.error));
	stage_until(&w->stage, t.n);
	return t;
}

static struct told decide(struct world *w, const char *id, enum approval_status status)
{
	const struct approval_decision d = {.id = text_of(id), .status = status};

	return decide_as(w, &d);
}

static struct approval get(struct world *w, const char *id)
{
	struct approval a;

	assert_int_equal(approval_get(approvals(w), 1, &w->stage.f->arena, text_of(id), true, &a,
				      &w->stage.f->error),
			 0);
	return a;
}

/* The data of the newest event of the type; NULL: there is none. */
static const struct value *event_of(struct world *w, const char *type)
{
	const struct text types[] = {text_of(type)};
	const struct event_filter f = {.types = types, .n_types = 1};
	struct event_page page;
	struct value *data;

	assert_int_equal(event_list(engine(w)->events, 1, &w->stage.f->arena, &f, 0, 0, 100, &page),
			 0);
	if (page.n == 0)
		return NULL;
	assert_int_equal(event_unpack(&w->stage.f->arena, &page.events[page.n - 1], &data), 0);
	return data;
}

static bool says(const struct value *data, const char *key, const char *want)
{
	return text_is(value_text(value_find(data, key)), want);
}

/* ---- rules ---- */

static void grant(struct world *w, const struct grant *row);

TEST(the_last_rule_that_matches_wins)
{
	struct world *w = *state;
	struct told t;

	add_rule(w, VERDICT_ALLOW, NULL, NULL);
	add_rule(w, VERDICT_DENY, "Ba*", NULL);
	add_rule(w, VERDICT_ASK, "Bash", "git push*");
	assert_int_equal(ask(w, "Read").status, APPROVAL_APPROVED);
	t = ask_with(w, "Bash", "ls");
	assert_int_equal(t.status, APPROVAL_DENIED);
	assert_string_equal(t.by, "policy:b");
	assert_int_equal(ask_with(w, "Bash", "git push -f").status, APPROVAL_PENDING);
	/* As a whole, not somewhere in it. */
	assert_int_equal(ask_with(w, "Bash", "x git push").status, APPROVAL_DENIED);
	assert_int_equal(approvals_pending(approvals(w)), 1);
}

TEST(a_rule_knows_who_asks)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");

	w->rules[0] = (struct approval_rule) {.name = "codex only",
					      .verdict = VERDICT_DENY,
					      .agent = "codex*",
					      .comment = "not you"};
	w->n_rules = 1;
	set_rules(w);
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
	in.agent = TEXT("codex-cli");
	assert_string_equal(request(w, &in).comment, "not you");
	in.agent = (struct text) {0};
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
}

TEST(what_a_rule_answers_is_kept_and_told)
{
	struct world *w = *state;
	const struct value *data;
	struct told t;

	add_rule(w, VERDICT_ALLOW, "Read", NULL);
	t = ask(w, "Read");
	assert_int_equal(get(w, t.id).status, APPROVAL_APPROVED);
	data = event_of(w, "approval.resolved");
	assert_true(says(data, "decision", "approved"));
	assert_true(says(data, "decided_by", "policy:a"));
	assert_int_equal(value_find(data, "approved")->kind, VALUE_TRUE);
	assert_null(event_of(w, "approval.requested"));
}

/* {"n":1,"deep":{"command":...}} has no member "command" itself. */
TEST(a_rule_may_name_the_member)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct object_builder r;

	add_rule(w, VERDICT_ALLOW, "Bash", "command=git *");
	assert_int_equal(ask_with(w, "Bash", "git status").status, APPROVAL_PENDING);
	object_begin(&r, &w->stage.f->arena);
	object_text(&r, "command", TEXT("rm -rf /"));
	object_text(&r, "description", TEXT("command=git status"));
	object_text(&r, "text", TEXT("git status"));
	in.input = r.root;
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
	object_begin(&r, &w->stage.f->arena);
	object_text(&r, "text", TEXT("rm"));
	object_text(&r, "command", TEXT("git status"));
	in.input = r.root;
	assert_int_equal(request(w, &in).status, APPROVAL_APPROVED);
	/* Of two, nobody knows which one counts. */
	object_text(&r, "command", TEXT("rm -rf /"));
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
	add_rule(w, VERDICT_DENY, "Bash", "*A=b");
	assert_int_equal(ask_with(w, "Bash", "A=b").status, APPROVAL_DENIED);
}

TEST(input_pattern_may_begin_with_the_name_of_a_member)
{
	static const struct {
		const char *pattern, *key, *text;
		bool fits;
	} rows[] = {
		{"a-b_c.9=x*", "a-b_c.9", "xy", true},
		{"a-b_c.9=x*", "a-b_c.9", "yx", false},
		{"a-b_c.9=x*", "ab", "a-b_c.9=xy", false},
		/* These name no member. */
		{"a b=x*", "k", "a b=xy", true},
		{"a b=x*", "a b", "xy", false},
		{"=x*", "k", "=xy", true},
		{"=x*", "", "xy", false},
		{"*=x", "k", "A=x", true},
		{"xy", "k", "xy", true},
		{"", "k", "", true},
		{"", "k", "x", false},
		{"k=", "k", "", true},
		{"k=", "k", "x", false},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct approval_new in = plain_new("Bash");
		struct object_builder r;

		w->n_rules = 0;
		add_rule(w, VERDICT_ALLOW, "Bash", rows[i].pattern);
		object_begin(&r, &w->stage.f->arena);
		object_text(&r, rows[i].key, text_of(rows[i].text));
		in.input = r.root;
		if ((request(w, &in).status == APPROVAL_APPROVED) != rows[i].fits)
			fail_msg("%s: %s=%s", rows[i].pattern, rows[i].key, rows[i].text);
	}
}

TEST(questions_are_for_humans)
{
	struct world *w = *state;
	struct approval_new in = plain_new("what now?");
	struct told t;

	in.kind = APPROVAL_CONTACT;
	add_rule(w, VERDICT_ALLOW, NULL, NULL);
	t = request(w, &in);
	assert_int_equal(t.status, APPROVAL_PENDING);
	assert_string_equal(decide(w, t.id, APPROVAL_APPROVED).error.field, "decision");
	assert_string_equal(decide(w, t.id, APPROVAL_RESPONDED).error.field, "comment");
	t = decide_as(w, &(struct approval_decision) {.id = text_of(t.id),
						      .status = APPROVAL_RESPONDED,
						      .comment = TEXT("this")});
	assert_int_equal(t.result, 0);
	assert_true(says(event_of(w, "approval.resolved"), "response", "this"));
}

/* ---- what a rule sees is what runs ---- */

static struct told ask_json(struct world *w, const char *json)
{
	struct approval_new in = plain_new("Bash");
	struct value *v;

	assert_int_equal(json_read(&w->stage.f->arena, json, strlen(json), &json_default_limits, &v,
				   &w->stage.f->error),
			 0);
	in.input = v;
	return request(w, &in);
}

struct judged {
	const char *json;
	enum approval_status status;
};

static void judge(struct world *w, const struct judged *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct told t = ask_json(w, cases[i].json);

		if (t.result != 0 || t.status != cases[i].status)
			fail_msg("%s: %s", cases[i].json, approval_status_name(t.status));
	}
}

#define JUDGE(w, cases) judge(w, cases, sizeof(cases) / sizeof((cases)[0]))

TEST(a_rule_that_denies_fits_if_anything_does)
{
	static const struct judged cases[] = {
		{"{\"command\":\"ls\"}", APPROVAL_APPROVED},
		{"{\"command\":\"rm -rf /\"}", APPROVAL_DENIED},
		{"{\"command\":\"ls\",\"command\":\"rm -rf /\"}", APPROVAL_DENIED},
		{"{\"command\":\"rm -rf /\",\"command\":\"ls\"}", APPROVAL_DENIED},
		{"{\"command\":[\"ls\",\"rm -rf /\"]}", APPROVAL_DENIED},
		{"{\"command\":{\"a\":[{\"b\":\"rm -rf /\"}]}}", APPROVAL_DENIED},
		/* The words of a program, as some agents give them. */
		{"{\"command\":[\"rm\",\"-rf\",\"/\"]}", APPROVAL_DENIED},
		{"{\"command\":[\"sudo\",[\"rm\",\"-rf\",\"/\"]]}", APPROVAL_DENIED},
		{"{\"command\":[\"rm\",\"/\"]}", APPROVAL_APPROVED},
		{"{\"command\":{\"rm -rf /\":1}}", APPROVAL_DENIED},
		{"{\"command\":\"\\u0072m -rf /\"}", APPROVAL_DENIED},
		{"{\"\\u0063ommand\":\"rm -rf /\"}", APPROVAL_DENIED},
		{"{\"Command\":\"rm -rf /\"}", APPROVAL_DENIED},
		{"{\"description\":\"rm -rf /\",\"command\":\"ls\"}", APPROVAL_APPROVED},
		{"{\"command\":\"ls\",\"signal\":9}", APPROVAL_DENIED},
		{"{\"command\":\"ls\",\"signal\":\"9\"}", APPROVAL_DENIED},
		{"{\"command\":\"ls\",\"signal\":15}", APPROVAL_APPROVED},
		/* Whoever reads it as C does sees what stands before the NUL. */
		{"{\"path\":\"a.key\\u0000.txt\"}", APPROVAL_DENIED},
	};
	struct world *w = *state;

	add_rule(w, VERDICT_ALLOW, NULL, NULL);
	add_rule(w, VERDICT_DENY, "Bash", "command=*rm -rf*");
	add_rule(w, VERDICT_DENY, "Bash", "signal=9");
	add_rule(w, VERDICT_DENY, "Bash", "*.key");
	JUDGE(w, cases);
}

TEST(a_rule_that_allows_fits_if_everything_does)
{
	static const struct judged cases[] = {
		{"{\"command\":\"git status\"}", APPROVAL_APPROVED},
		{"{\"command\":\"git status\",\"timeout\":5}", APPROVAL_APPROVED},
		{"{\"command\":[\"git status\",\"git log\"]}", APPROVAL_APPROVED},
		{"{\"command\":[\"git status\",\"rm -rf /\"]}", APPROVAL_PENDING},
		{"{\"command\":[\"git status\",[\"rm -rf /\"]]}", APPROVAL_PENDING},
		{"{\"command\":[\"git status\",7]}", APPROVAL_PENDING},
		{"{\"command\":{\"rm -rf /\":\"git status\"}}", APPROVAL_PENDING},
		{"{\"command\":[]}", APPROVAL_PENDING},
		{"{\"command\":[\"git\",\"status\"]}", APPROVAL_PENDING},
		{"{\"command\":null}", APPROVAL_PENDING},
		{"{\"Command\":\"git status\"}", APPROVAL_PENDING},
		{"{\"command\":\"git status\",\"Command\":\"rm -rf /\"}", APPROVAL_PENDING},
		{"{\"command\":\"git status\",\"command\":\"git log\"}", APPROVAL_PENDING},
		{"{\"command\":\"git status\",\"x\":[{\"y\":1,\"y\":1}]}", APPROVAL_PENDING},
		{"{\"command\":\"git status\\u0000\"}", APPROVAL_PENDING},
	};
	struct world *w = *state;

	add_rule(w, VERDICT_ALLOW, "Bash", "command=git *");
	JUDGE(w, cases);
}

/* A grant is judged as a rule is, and one without a pattern is for an input that says one thing. */
TEST(no_key_stands_twice_in_what_is_allowed)
{
	static const struct judged cases[] = {
		{"{\"command\":\"ls\"}", APPROVAL_APPROVED},
		{"{\"command\":\"ls\",\"command\":\"ls\"}", APPROVAL_PENDING},
		{"{\"command\":\"ls\",\"COMMAND\":\"ls\"}", APPROVAL_PENDING},
		/* Some readers take these for "k" and "s". */
		{"{\"task\":\"ls\",\"ta\\u017f\\u212a\":\"ls\"}", APPROVAL_PENDING},
		{"{\"a\":{\"b\":[{\"c\":1,\"d\":2,\"c\":3}]}}", APPROVAL_PENDING},
		{"{\"a\":{\"c\":1},\"b\":{\"c\":1}}", APPROVAL_APPROVED},
	};
	struct world *w = *state;

	grant(w, &(struct grant) {.tool = TEXT("Bash")});
	JUDGE(w, cases);
	add_rule(w, VERDICT_ALLOW, NULL, NULL);
	JUDGE(w, cases);
}

TEST(all_texts_fit_what_allows_without_a_name)
{
	static const struct judged cases[] = {
		{"{\"command\":\"git status\",\"n\":1}", APPROVAL_APPROVED},
		{"{\"command\":\"rm -rf /\",\"description\":\"git status\"}", APPROVAL_PENDING},
		{"{\"n\":1}", APPROVAL_PENDING},
	};
	struct world *w = *state;

	add_rule(w, VERDICT_ALLOW, "Bash", "git *");
	JUDGE(w, cases);
}

/* A list of which one fits neither asks in the place of what denies, nor allows in that of what
 * asks. */
TEST(a_rule_that_asks_is_no_way_around_one_that_denies)
{
	static const struct judged cases[] = {
		{"{\"command\":\"git push\"}", APPROVAL_PENDING},
		{"{\"command\":\"git push; rm -rf /\"}", APPROVAL_PENDING},
		{"{\"command\":[\"git push\",\"rm -rf /\"]}", APPROVAL_DENIED},
		{"{\"command\":[\"git push\",\"ls\"]}", APPROVAL_PENDING},
		{"{\"command\":\"ls\"}", APPROVAL_APPROVED},
	};
	struct world *w = *state;

	add_rule(w, VERDICT_ALLOW, NULL, NULL);
	add_rule(w, VERDICT_DENY, "Bash", "command=*rm -rf*");
	add_rule(w, VERDICT_ASK, "Bash", "command=git push*");
	JUDGE(w, cases);
}

/* ---- asking again ---- */

static struct told ask_again(struct world *w, const char *tool, const char *text)
{
	struct approval_new in = plain_new(tool);

	in.id = TEXT("mine");
	in.input = command(w, text);
	return request(w, &in);
}

TEST(an_id_is_for_what_was_asked_under_it)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told t;

	assert_int_equal(ask_again(w, "Bash", "ls").status, APPROVAL_PENDING);
	t = ask_again(w, "Bash", "rm -rf /");
	assert_int_equal(t.result, REFUSE_CONFLICT);
	assert_string_equal(t.error.text,
			    "approval 'mine' already exists with a different tool or input");
	decide(w, "mine", APPROVAL_APPROVED);
	assert_int_equal(ask_again(w, "Bash", "ls").status, APPROVAL_APPROVED);
	assert_int_equal(ask_again(w, "Bash", "rm -rf /").result, REFUSE_CONFLICT);
	assert_int_equal(ask_again(w, "Zsh", "ls").result, REFUSE_CONFLICT);
	in.id = TEXT("mine");
	in.input = command(w, "ls");
	in.agent = TEXT("codex");
	assert_int_equal(request(w, &in).result, REFUSE_CONFLICT);
	in.agent = TEXT("claude");
	in.kind = APPROVAL_CONTACT;
	assert_int_equal(request(w, &in).result, REFUSE_CONFLICT);
	/* Who waits is refused, too, and what waits for a human stays one. */
	in.kind = APPROVAL_FUNCTION;
	in.input = command(w, "other");
	start_wait(w, &in, &t);
	stage_until(&w->stage, t.n);
	assert_int_equal(t.result, REFUSE_CONFLICT);
	assert_int_equal(t.n_kept, 0);
}

/* ---- grants ---- */

static void grant(struct world *w, const struct grant *row)
{
	struct told t = {0};

	tell_refusal(&t, grant_add(approvals(w), row, NULL, on_told, &t, &t.error));
	stage_until(&w->stage, t.n);
	if (t.result != 0)
		fail_msg("%s", t.error.text);
}

TEST(a_grant_has_its_uses)
{
	struct world *w = *state;
	struct grant *rows;
	unsigned n;

	grant(w, &(struct grant) {.id = TEXT("g"), .tool = TEXT("Ba*"), .uses = 2});
	assert_string_equal(ask(w, "Bash").by, "grant:g");
	assert_int_equal(ask(w, "Read").status, APPROVAL_PENDING);
	assert_int_equal(ask(w, "Bash").status, APPROVAL_APPROVED);
	assert_int_equal(ask(w, "Bash").status, APPROVAL_PENDING);
	assert_int_equal(grant_list(approvals(w), 1, &w->stage.f->arena, &rows, &n), 0);
	assert_int_equal(n, 0);
}

TEST(a_grant_is_for_its_session_and_input)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");

	grant(w, &(struct grant) {.session = TEXT("s1"), .pattern = TEXT("ls *")});
	in.input = command(w, "ls -l");
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
	in.run = TEXT("r1");
	assert_int_equal(request(w, &in).status, APPROVAL_APPROVED);
	in.input = command(w, "rm -l");
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
}

TEST(a_grant_that_denies_wins_and_a_rule_comes_first)
{
	struct world *w = *state;
	struct told t = {0};

	grant(w, &(struct grant) {.tool = TEXT("*")});
	grant(w, &(struct grant) {.id = TEXT("no"), .tool = TEXT("Bash"), .verdict = GRANT_DENIES});
	assert_int_equal(ask(w, "Bash").status, APPROVAL_DENIED);
	assert_int_equal(ask(w, "Read").status, APPROVAL_APPROVED);
	add_rule(w, VERDICT_ASK, NULL, NULL);
	assert_int_equal(ask(w, "Read").status, APPROVAL_APPROVED);
	add_rule(w, VERDICT_DENY, "Read", NULL);
	assert_string_equal(ask(w, "Read").by, "policy:b");
	assert_int_equal(grant_remove(approvals(w), TEXT("no"), NULL, on_told, &t, NULL), 0);
	stage_until(&w->stage, t.n);
	assert_int_equal(t.result, 0);
	assert_int_equal(ask(w, "Bash").status, APPROVAL_APPROVED);
	assert_int_equal(grant_remove(approvals(w), TEXT("no"), NULL, on_told, &t, NULL), 0);
	stage_until(&w->stage, t.n == 2);
	assert_int_equal(t.result, REFUSE_NOT_FOUND);
}

TEST(a_decision_may_grant_the_same)
{
	struct world *w = *state;
	struct approval_decision d = {
		.status = APPROVAL_APPROVED, .grants = true, .grant_ms = 300, .grant_uses = 0};
	struct told t = ask(w, "Bash");
	struct told other;

	d.id = text_of(t.id);
	d.grant_session = true;
	assert_string_equal(decide_as(w, &d).error.field, "grant"); /* it has no session */
	assert_int_equal(get(w, t.id).status, APPROVAL_PENDING);
	d.grant_session = false;
	assert_int_equal(decide_as(w, &d).result, 0);
	assert_int_equal(ask(w, "Bash").status, APPROVAL_APPROVED);
	/* Until its time is over. */
	do
		other = ask(w, "Bash");
	while (other.status == APPROVAL_APPROVED);
	assert_int_equal(other.status, APPROVAL_PENDING);
}

TEST(grant_limits_are_exact_and_a_refusal_names_the_field)
{
	const int64_t longest_ms = 100LL * 366 * 24 * 3600 * 1000;
	const struct {
		const char *field; /* "": it is granted */
		struct approval_decision d;
	} rows[] = {
		{"", {.status = APPROVAL_APPROVED, .grant_ms = longest_ms}},
		{"grant_time", {.status = APPROVAL_APPROVED, .grant_ms = longest_ms + 1}},
		{"grant_time", {.status = APPROVAL_APPROVED, .grant_ms = -1}},
		{"", {.status = APPROVAL_DENIED, .grant_uses = 0}},
		{"grant_uses", {.status = APPROVAL_APPROVED, .grant_uses = -1}},
		{"grant", {.status = APPROVAL_RESPONDED, .comment = TEXT("yes")}},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct approval_decision d = rows[i].d;
		char tool[8];
		struct told t;

		snprintf(tool, sizeof(tool), "t%zu", i);
		t = ask(w, tool);
		d.id = text_of(t.id);
		d.grants = true;
		t = decide_as(w, &d);
		assert_int_equal(t.result, rows[i].field[0] ? REFUSE_PARAMS : 0);
		assert_string_equal(t.error.field, rows[i].field);
	}
}

TEST(a_grant_holds_for_a_session_that_is_not_ours)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct approval_decision d = {
		.status = APPROVAL_APPROVED, .grants = true, .grant_session = true};
	struct told t;

	in.session = TEXT("their-own");
	t = request(w, &in);
	d.id = text_of(t.id);
	assert_int_equal(decide_as(w, &d).result, 0);
	assert_int_equal(request(w, &in).status, APPROVAL_APPROVED);
	in.session = TEXT("another");
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
}

TEST(a_tool_that_is_a_pattern_cannot_be_granted)
{
	struct world *w = *state;
	struct told t = ask(w, "*");
	const struct approval_decision d = {
		.id = text_of(t.id), .status = APPROVAL_APPROVED, .grants = true};

	assert_int_equal(decide_as(w, &d).result, REFUSE_PARAMS);
	assert_int_equal(ask(w, "Bash").status, APPROVAL_PENDING);
	t = ask(w, "Bas?");
	assert_string_equal(decide_as(w, &d).error.field, "grant");
	assert_int_equal(ask(w, "Bash").status, APPROVAL_PENDING);
}

TEST(added_grant_names_something_and_ends_in_the_future)
{
	static char name[APPROVAL_NAME_MAX + 1];
	const struct {
		const char *field; /* "": it is added */
		struct grant grant;
	} rows[] = {
		{"tool", {.id = TEXT("g")}},
		{"", {.id = TEXT("session"), .session = TEXT("s")}},
		{"", {.id = TEXT("agent"), .agent = {name, APPROVAL_NAME_MAX}}},
		{"agent", {.agent = {name, APPROVAL_NAME_MAX + 1}}},
		{"", {.id = TEXT("pattern"), .pattern = TEXT("none")}},
		{"", {.id = TEXT("tool"), .tool = TEXT("none"), .expires_ms = INT64_MAX}},
		{"expires", {.tool = TEXT("none"), .expires_ms = 1}},
		{"expires", {.tool = TEXT("none"), .expires_ms = -1}},
	};
	struct world *w = *state;
	const struct grant again = {.id = TEXT("tool"), .tool = TEXT("none")};
	struct told t = {0};

	memset(name, 'x', sizeof(name));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error error = {0};

		if (rows[i].field[0])
			assert_int_equal(
				grant_add(approvals(w), &rows[i].grant, NULL, on_told, &t, &error),
				REFUSE_PARAMS);
		else
			grant(w, &rows[i].grant);
		assert_string_equal(error.field, rows[i].field);
	}
	assert_int_equal(t.n, 0);
	assert_int_equal(grant_add(approvals(w), &again, NULL, on_told, &t, NULL), 0);
	stage_until(&w->stage, t.n);
	assert_int_equal(t.result, REFUSE_CONFLICT);
	assert_string_equal(t.error.text, "duplicate grant 'tool'");
}

TEST(grant_applies_if_each_part_of_it_does)
{
	static const struct {
		const char *session, *agent, *tool;
		bool allowed;
	} rows[] = {
		{"their-own", "claude", "Bash", true},  {NULL, "claude", "Bash", false},
		{"another", "claude", "Bash", false},   {"their-own", NULL, "Bash", false},
		{"their-own", "codex", "Bash", false},  {"their-own", "claude", "Bush", true},
		{"their-own", "claude", "Edit", false},
	};
	struct world *w = *state;

	grant(w, &(struct grant) {.session = TEXT("their-own"),
				  .agent = TEXT("claude"),
				  .tool = TEXT("B?sh")});
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct approval_new in = {.session = text_of(rows[i].session),
						.agent = text_of(rows[i].agent),
						.tool = text_of(rows[i].tool)};

		assert_int_equal(request(w, &in).status,
				 rows[i].allowed ? APPROVAL_APPROVED : APPROVAL_PENDING);
	}
}

TEST(grants_and_rules_have_a_limit)
{
	static struct approval_rule rules[APPROVAL_RULES_MAX + 1];
	struct world *w = *state;
	struct connection *db = store_writer(engine(w)->store);
	struct approval_rules *set = NULL;
	struct told t = ask(w, "Bash");
	const struct approval_decision d = {
		.id = text_of(t.id), .status = APPROVAL_APPROVED, .grants = true};
	struct grant g = {.tool = TEXT("none"), .verdict = GRANT_ALLOWS, .uses = -1};
	char id[8];

	for (unsigned i = 0; i <= APPROVAL_RULES_MAX; i++)
		rules[i] = (struct approval_rule) {.name = "r", .verdict = VERDICT_ASK};
	assert_int_equal(policy_rules_new(rules, APPROVAL_RULES_MAX, &set), 0);
	policy_rules_unref(set);
	assert_int_equal(policy_rules_new(rules, APPROVAL_RULES_MAX + 1, &set), -E2BIG);
	assert_int_equal(engine_begin(engine(w)), 0);
	for (unsigned i = 1; i < APPROVAL_GRANTS_MAX; i++) {
		snprintf(id, sizeof(id), "g%u", i);
		g.id = text_of(id);
		assert_int_equal(store_grant_add(db, &g), 0);
	}
	assert_int_equal(engine_commit(engine(w)), 0);
	assert_int_equal(decide_as(w, &d).result, 0);
	t = ask(w, "Read");
	assert_int_equal(t.result, 0);
	assert_int_equal(decide_as(w, &(struct approval_decision) {.id = text_of(t.id),
								   .status = APPROVAL_APPROVED,
								   .grants = true})
				 .result,
			 REFUSE_LIMIT);
	assert_int_equal(get(w, t.id).status, APPROVAL_PENDING);
}

/* ---- deciding ---- */

TEST(who_waits_is_told_once_what_was_decided)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	const struct value *data;
	struct told a;
	struct told b;
	struct told t;

	in.id = TEXT("mine");
	in.session = TEXT("c1");
	wait_kept(w, &in, &a);
	assert_string_equal(a.session, "s1");
	assert_int_equal(w->n_waits, 1);
	data = event_of(w, "approval.requested");
	assert_true(says(data, "approval_id", "mine") && says(data, "run_id", "r1"));
	/* The same id and the same question are the same approval. */
	wait_kept(w, &in, &b);
	assert_int_equal(approvals_pending(approvals(w)), 1);
	t = decide_as(w, &(struct approval_decision) {.id = TEXT("mine"),
						      .status = APPROVAL_DENIED,
						      .comment = TEXT("no"),
						      .by = TEXT("anna")});
	assert_int_equal(t.result, 0);
	stage_until(&w->stage, a.n && b.n);
	assert_int_equal(a.status, APPROVAL_DENIED);
	assert_string_equal(b.comment, "no");
	assert_string_equal(b.by, "anna");
	assert_int_equal(w->n_waits, 0);
	assert_int_equal(approvals_pending(approvals(w)), 0);
	assert_true(says(event_of(w, "approval.resolved"), "reason", "no"));
	assert_int_equal(decide(w, "mine", APPROVAL_APPROVED).result, REFUSE_CONFLICT);
	assert_int_equal(a.n + b.n, 2);
}

TEST(the_first_of_two_decisions_wins)
{
	struct world *w = *state;
	struct approval_decision d = {.status = APPROVAL_APPROVED, .by = TEXT("one")};
	const struct approval_new in = plain_new("Bash");
	struct told waiting;
	struct told one = {0};
	struct told two = {0};

	wait_kept(w, &in, &waiting);
	d.id = text_of(waiting.id);
	assert_int_equal(approval_decide(approvals(w), &d, on_told, &one, NULL), 0);
	d.status = APPROVAL_DENIED;
	assert_int_equal(approval_decide(approvals(w), &d, on_told, &two, NULL), 0);
	stage_until(&w->stage, one.n && two.n);
	assert_int_equal(one.result, 0);
	assert_int_equal(two.result, REFUSE_CONFLICT);
	assert_string_equal(two.error.text, "this approval has already been responded to");
	assert_int_equal(two.status, APPROVAL_APPROVED);
	assert_string_equal(two.by, "one");
	assert_int_equal(waiting.n, 1);
	assert_int_equal(waiting.status, APPROVAL_APPROVED);
}

TEST(decisions_that_cannot_be_are_refused)
{
	struct world *w = *state;
	struct told t = ask(w, "Bash");

	assert_string_equal(decide(w, "", APPROVAL_APPROVED).error.field, "id");
	assert_string_equal(decide_as(w, &(struct approval_decision) {.id = text_of(t.id),
								      .status = APPROVAL_PENDING,
								      .comment = TEXT("a\0b")})
				    .error.field,
			    "comment");
	assert_int_equal(decide(w, "nobody", APPROVAL_APPROVED).result, REFUSE_NOT_FOUND);
	assert_string_equal(decide(w, "nobody", APPROVAL_APPROVED).error.text,
			    "approval not found: nobody");
	assert_int_equal(decide(w, t.id, APPROVAL_EXPIRED).result, REFUSE_PARAMS);
	assert_int_equal(decide(w, t.id, APPROVAL_PENDING).result, REFUSE_PARAMS);
	t = decide_as(w, &(struct approval_decision) {.id = text_of(t.id),
						      .status = APPROVAL_RESPONDED,
						      .comment = TEXT("x")});
	assert_string_equal(t.error.field, "decision");
	assert_int_equal(approvals_pending(approvals(w)), 1);
}

/* ---- time ---- */

TEST(nobody_in_time_is_not_denied)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told t;

	in.timeout_ms = 20;
	wait_kept(w, &in, &t);
	stage_until(&w->stage, t.n);
	assert_int_equal(t.result, 0);
	assert_int_equal(t.status, APPROVAL_EXPIRED);
	assert_true(says(event_of(w, "approval.resolved"), "decision", "expired"));
	assert_int_equal(decide(w, t.id, APPROVAL_DENIED).result, REFUSE_CONFLICT);
}

TEST(an_end_that_is_not_kept_is_tried_again)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told t;
	uint64_t then;

	in.timeout_ms = 20;
	wait_kept(w, &in, &t);
	w->stage.fail_writes = -ENOSPC;
	then = loop_now_ms(w->stage.loop);
	stage_until(&w->stage, loop_now_ms(w->stage.loop) > then + 50);
	assert_int_equal(t.n, 0);
	w->stage.fail_writes = 0;
	stage_until(&w->stage, t.n);
	assert_int_equal(t.status, APPROVAL_EXPIRED);
}

/* ---- a restart ---- */

TEST(a_restart_is_survived_by_asking_again)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told before;
	struct told after;
	struct told late;

	in.id = TEXT("mine");
	wait_kept(w, &in, &before);
	world_reopen(w);
	assert_int_equal(before.n, 0);
	assert_int_equal(approvals_pending(approvals(w)), 1);
	wait_kept(w, &in, &after);
	assert_int_equal(approvals_pending(approvals(w)), 1);
	assert_int_equal(decide(w, "mine", APPROVAL_APPROVED).result, 0);
	stage_until(&w->stage, after.n);
	assert_int_equal(after.status, APPROVAL_APPROVED);
	/* It was decided while the asker was away. */
	world_reopen(w);
	start_wait(w, &in, &late);
	stage_until(&w->stage, late.n);
	assert_int_equal(late.n_kept, 0);
	assert_int_equal(late.status, APPROVAL_APPROVED);
	assert_int_equal(after.n, 1);
}

static bool is(struct world *w, const char *id, enum approval_status status)
{
	return get(w, id).status == status;
}

TEST(what_expired_meanwhile_expires_at_the_start)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	int64_t then;

	in.id = TEXT("mine");
	in.timeout_ms = 40;
	request(w, &in);
	stage_close(&w->stage);
	then = clock_utc_ms();
	while (clock_utc_ms() < then + 50)
		(void)poll(NULL, 0, 5);
	stage_open(&w->stage);
	world_reopen(w);
	stage_until(&w->stage, is(w, "mine", APPROVAL_EXPIRED));
	stage_until(&w->stage, approvals_pending(approvals(w)) == 0);
}

static bool is_local(const struct approval *row)
{
	return text_is(row->tool, "Bash") && row->id.len > 6 &&
	       memcmp(row->id.data, "local-", 6) == 0;
}

TEST(request_of_an_earlier_daemon_is_withdrawn_unless_asked_again)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told left = ask(w, "Bash"), other = ask(w, "Read"), again = ask(w, "Bash"), late;

	world_reopen(w);
	in.id = text_of(again.id);
	again = request(w, &in);
	late = ask(w, "Bash");
	approvals_withdraw_left(approvals(w), TEXT("codex"), is_local);
	approvals_withdraw_left(approvals(w), TEXT("claude"), is_local);
	w->stage.fail_writes = -ENOSPC;
	stage_until(&w->stage, w->stage.n_failed > 0);
	w->stage.fail_writes = 0;
	stage_until(&w->stage, approvals_pending(approvals(w)) == 3);
	assert_true(is(w, left.id, APPROVAL_SUPERSEDED));
	assert_true(text_is(get(w, left.id).decided_by, "claude"));
	assert_true(text_is(get(w, left.id).comment, "koined was restarted"));
	assert_true(is(w, other.id, APPROVAL_PENDING));
	assert_true(is(w, again.id, APPROVAL_PENDING));
	assert_true(is(w, late.id, APPROVAL_PENDING));
}

struct listed {
	unsigned n;
	char origin[80];
	char agent[80];
};

static void note_row(void *arg, const struct approval *row)
{
	struct listed *l = arg;

	l->n++;
	snprintf(l->origin, sizeof(l->origin), "%.*s", TEXT_ARGS(row->origin));
	snprintf(l->agent, sizeof(l->agent), "%.*s", TEXT_ARGS(row->agent));
}

TEST(pending_requests_of_an_agent_are_listed)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct listed l = {0};

	ask(w, "Bash");
	in.agent = TEXT("opencode");
	in.origin = TEXT("/folder");
	request(w, &in);
	world_reopen(w);
	approvals_each(approvals(w), TEXT("opencode"), note_row, &l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.origin, "/folder");
	assert_string_equal(l.agent, "opencode");
	approvals_each(approvals(w), TEXT("open"), note_row, &l);
	assert_int_equal(l.n, 1);
}

TEST(a_stop_sends_those_who_wait_away)
{
	struct world *w = *state;
	const struct approval_new in = plain_new("Bash");
	struct told kept;
	struct told coming;
	struct told late;

	wait_kept(w, &in, &kept);
	start_wait(w, &in, &coming);
	approvals_stop(approvals(w));
	start_wait(w, &in, &late);
	stage_until(&w->stage, kept.n && coming.n && late.n);
	assert_int_equal(kept.result, REFUSE_STOPPING);
	assert_int_equal(coming.result, REFUSE_STOPPING);
	assert_int_equal(late.result, REFUSE_STOPPING);
	assert_true(is(w, kept.id, APPROVAL_PENDING));
}

/* ---- leaving, and doing things while one is told ---- */

TEST(who_leaves_is_not_told)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told early;
	struct told kept;
	struct told refused;

	in.id = TEXT("mine");
	start_wait(w, &in, &early);
	approval_leave(early.waiter);
	wait_kept(w, &in, &kept);
	approval_leave(kept.waiter);
	in.tool = TEXT("");
	start_wait(w, &in, &refused);
	assert_int_equal(refused.result, REFUSE_PARAMS);
	assert_null(refused.waiter);
	approval_leave(NULL);
	assert_int_equal(decide(w, "mine", APPROVAL_APPROVED).result, 0);
	assert_int_equal(ask(w, "Bash").n, 1);
	assert_int_equal(early.n + early.n_kept + kept.n, 0);
}

struct busy {
	struct world *world;
	struct told told;
	struct told *other; /* leaves when this one is told */
	struct told asked;
	struct told again;
};

static void on_busy(void *arg, int result, const struct approval *a, const struct error *error)
{
	struct busy *b = arg;
	const struct approval_new in = plain_new("Next");
	const struct approval_decision d = {.id = a->id, .status = APPROVAL_DENIED};

	on_told(&b->told, result, a, error);
	approval_leave(b->other->waiter);
	assert_int_equal(approval_decide(approvals(b->world), &d, on_told, &b->again, NULL), 0);
	assert_int_equal(approval_request(approvals(b->world), &in, on_told, &b->asked, NULL), 0);
	note(&b->told, result, a, error);
}

TEST(who_is_told_may_do_anything)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told other;
	struct busy b = {.world = w, .other = &other};
	struct approval_waiter *waiter;

	in.id = TEXT("mine");
	assert_int_equal(approval_wait(approvals(w), &in, NULL, on_busy, &b, &waiter, NULL), 0);
	wait_kept(w, &in, &other);
	assert_int_equal(decide(w, "mine", APPROVAL_APPROVED).result, 0);
	stage_until(&w->stage, b.told.n && b.again.n && b.asked.n);
	assert_int_equal(other.n, 0);
	assert_int_equal(b.again.result, REFUSE_CONFLICT);
	assert_int_equal(b.told.status, APPROVAL_APPROVED);
	assert_int_equal(b.asked.status, APPROVAL_PENDING);
}

/* ---- sessions ---- */

TEST(what_an_ended_session_asked_is_superseded)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told kept;
	struct told coming;
	struct told foreign;

	wait_kept(w, &in, &foreign);
	in.run = TEXT("r1");
	wait_kept(w, &in, &kept);
	start_wait(w, &in, &coming);
	approval_session_ended(approvals(w), TEXT("s1"));
	stage_until(&w->stage, kept.n && coming.n);
	assert_int_equal(kept.status, APPROVAL_SUPERSEDED);
	assert_int_equal(coming.status, APPROVAL_SUPERSEDED);
	assert_int_equal(foreign.n, 0);
	assert_int_equal(w->n_waits, 0);
	/* Whoever asks for it later lives elsewhere. */
	assert_int_equal(request(w, &in).status, APPROVAL_PENDING);
	approval_leave(foreign.waiter);
}

TEST(a_run_that_must_be_known_is)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told t;

	in.run = TEXT("r2");
	in.must_be_known = true;
	t = request(w, &in);
	assert_int_equal(t.result, REFUSE_NOT_FOUND);
	assert_string_equal(t.error.text, "session not found: r2");
	in.must_be_known = false;
	assert_string_equal(request(w, &in).session, "");
	in.session = TEXT("s1");
	assert_string_equal(request(w, &in).session, "s1");
}

/* Something on the writer's thread. */
struct written {
	struct work work;
	struct world *world;
	void (*run)(struct world *w, void *arg);
	void *arg;
	bool done;
};

static int written_run(struct work *work, int lane)
{
	struct written *x = list_entry(work, struct written, work);

	x->run(x->world, x->arg);
	return 0;
}

static void written_finished(struct work *work, int result)
{
	assert_int_equal(result, 0);
	list_entry(work, struct written, work)->done = true;
}

static void write_with(struct world *w, void (*run)(struct world *w, void *arg), void *arg)
{
	struct written x = {.work = {.run = written_run, .finished = written_finished},
			    .world = w,
			    .run = run,
			    .arg = arg};

	assert_int_equal(stage_submit(&w->stage, &x.work, true), 0);
	stage_until(&w->stage, x.done);
}

/* ---- bonds ---- */

static struct approval_new by_unknown(void)
{
	struct approval_new in = plain_new("Bash");

	in.id = TEXT("mine");
	in.bond = BOND_CONNECTION;
	in.from.is = true;
	return in;
}

/* The asker's connection is closed, and another asks for the same before that is stored. */
static struct work *ask_in_between(struct world *w, struct told *other)
{
	const struct approval_new in = by_unknown();
	struct told first;

	wait_kept(w, &in, &first);
	w->stage.held = NULL;
	w->stage.hold_writes = true;
	approval_abandon(first.waiter);
	stage_until(&w->stage, w->stage.held);
	wait_kept(w, &in, other);
	assert_string_equal(other->id, first.id);
	return w->stage.held;
}

static void nothing(struct world *w, void *arg)
{
}

TEST(the_end_of_one_connection_is_not_that_of_another)
{
	struct world *w = *state;
	struct told other;

	workers_write(w->stage.workers, ask_in_between(w, &other));
	write_with(w, nothing, NULL);
	assert_int_equal(other.n, 0);
	assert_true(is(w, "mine", APPROVAL_PENDING));
	approval_abandon(other.waiter);
	stage_until(&w->stage, is(w, "mine", APPROVAL_SUPERSEDED));
}

TEST(an_end_while_that_of_another_connection_is_stored_is_not_lost)
{
	struct world *w = *state;
	struct told other;
	struct work *end = ask_in_between(w, &other);

	approval_abandon(other.waiter);
	workers_write(w->stage.workers, end);
	stage_until(&w->stage, is(w, "mine", APPROVAL_SUPERSEDED));
}

TEST(a_failed_end_of_one_connection_is_not_that_of_another)
{
	struct world *w = *state;
	struct told other;

	work_back(ask_in_between(w, &other), -ENOSPC);
	assert_false(pending_find(approvals(w), TEXT("mine"))->gone);
	assert_int_equal(pending_find(approvals(w), TEXT("mine"))->due_ms, 0);
	approval_abandon(other.waiter);
	stage_until(&w->stage, is(w, "mine", APPROVAL_SUPERSEDED));
}

/* ---- calls ---- */

struct tool_call {
	const char *tool;
	const char *tool_id;
	int64_t id;
	char tied[80];
};

static void add_call(struct world *w, void *arg)
{
	struct tool_call *call = arg;
	struct session_event row = {.session = TEXT("s1"),
				    .agent_session = TEXT("c1"),
				    .type = SESSION_TOOL_CALL,
				    .created_ms = clock_utc_ms(),
				    .tool_id = text_of(call->tool_id),
				    .tool_name = text_of(call->tool)};
	struct text tied = {0};
	struct arena a;
	int64_t sequence;

	arena_init(&a, 1 << 20);
	if (store_session_event_add(store_writer(engine(w)->store), &row, &row.id, &sequence) ==
		    0 &&
	    approval_tie(approvals(w), &a, &row, TEXT("r1"), &tied) == 0)
		snprintf(call->tied, sizeof(call->tied), "%.*s", TEXT_ARGS(tied));
	call->id = row.id;
	arena_done(&a);
}

static struct session_event event_row(struct world *w, int64_t id)
{
	const struct store_session_events_query q = {
		.session = TEXT("s1"), .after_id = id - 1, .limit = 1};
	struct session_event *rows;
	unsigned n = 0;

	assert_int_equal(store_session_events(store_reader(engine(w)->store, 1), &q,
					      &w->stage.f->arena, &rows, &n),
			 0);
	assert_int_equal(n, 1);
	return rows[0];
}

TEST(an_approval_is_tied_to_its_call)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct tool_call first = {.tool = "Bash", .tool_id = "t1"};
	struct tool_call second = {.tool = "Bash", .tool_id = "t2"};
	struct session_event row;
	struct told t;

	in.run = TEXT("r1");
	in.tool_use_id = TEXT("t1");
	write_with(w, add_call, &first);
	write_with(w, add_call, &second);
	t = request(w, &in);
	assert_int_equal(t.event_id, first.id);
	row = event_row(w, first.id);
	assert_int_equal(row.approval, SESSION_APPROVAL_PENDING);
	assert_true(text_is(row.approval_id, t.id));
	decide(w, t.id, APPROVAL_DENIED);
	assert_int_equal(event_row(w, first.id).approval, SESSION_APPROVAL_DENIED);
	/* Without an id the newest that is open. */
	in.tool_use_id = (struct text) {0};
	assert_int_equal(request(w, &in).event_id, second.id);
}

TEST(a_call_is_tied_to_the_approval_before_it)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct tool_call other = {.tool = "Bash", .tool_id = "t2"};
	struct tool_call call = {.tool = "Bash", .tool_id = "t1"};
	struct told t;

	in.run = TEXT("r1");
	in.tool_use_id = TEXT("t1");
	t = request(w, &in);
	assert_int_equal(t.event_id, 0);
	write_with(w, add_call, &other);
	assert_string_equal(other.tied, "");
	write_with(w, add_call, &call);
	assert_string_equal(call.tied, t.id);
	assert_int_equal(event_row(w, call.id).approval, SESSION_APPROVAL_PENDING);
	decide(w, t.id, APPROVAL_APPROVED);
	assert_int_equal(event_row(w, call.id).approval, SESSION_APPROVAL_APPROVED);
}

TEST(a_call_that_comes_after_the_decision_is_tied_too)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct tool_call call = {.tool = "Bash", .tool_id = "t1"};
	struct told t;

	in.run = TEXT("r1");
	in.tool_use_id = TEXT("t1");
	t = request(w, &in);
	decide(w, t.id, APPROVAL_DENIED);
	write_with(w, add_call, &call);
	assert_string_equal(call.tied, t.id);
	assert_int_equal(event_row(w, call.id).approval, SESSION_APPROVAL_DENIED);
}

/* ---- limits ---- */

TEST(too_many_are_refused_but_not_those_that_are_there)
{
	struct world *w = *state;
	struct approval_new in = plain_new("Bash");
	struct told t;

	w->pending = 2;
	world_reopen(w);
	in.id = TEXT("one");
	request(w, &in);
	assert_int_equal(ask(w, "Bash").result, 0);
	t = ask(w, "Bash");
	assert_int_equal(t.result, REFUSE_LIMIT);
	assert_string_equal(t.error.text, "too many pending approvals (limit 2)");
	assert_int_equal(request(w, &in).result, 0);
	add_rule(w, VERDICT_ALLOW, "Read", NULL);
	assert_int_equal(ask(w, "Read").status, APPROVAL_APPROVED);
	decide(w, "one", APPROVAL_APPROVED);
	assert_int_equal(ask(w, "Bash").status, APPROVAL_PENDING);
}

static const char *field_of(struct world *w, const struct approval_new *in)
{
	static struct told t;

	t = request(w, in);
	assert_int_equal(t.result, REFUSE_PARAMS);
	assert_true(t.error.text[0]);
	return t.error.field;
}

TEST(bad_requests_name_their_field)
{
	struct world *w = *state;
	static char big[APPROVAL_INPUT_MAX + 10];
	static const struct value list = {.kind = VALUE_ARRAY};
	struct approval_new in = plain_new("Bash");
	struct object_builder r;

	memset(big, 'x', sizeof(big));
	in.id = (struct text) {.data = big, .len = APPROVAL_ID_MAX + 1};
	assert_string_equal(field_of(w, &in), "id");
	in.id.len = 0;
	assert_string_equal(field_of(w, &in), "id");
	in = plain_new("");
	assert_string_equal(field_of(w, &in), "tool");
	in.tool = (struct text) {.data = big, .len = APPROVAL_TOOL_MAX + 1};
	assert_string_equal(field_of(w, &in), "tool");
	in = plain_new("Bash");
	in.input = &list;
	assert_string_equal(field_of(w, &in), "input");
	object_begin(&r, &w->stage.f->arena);
	for (int i = 0; i < APPROVAL_INPUT_VALUES_MAX; i++)
		object_null(&r, "n");
	in.input = r.root;
	assert_string_equal(field_of(w, &in), "input");
	big[sizeof(big) - 1] = '\0';
	in.input = command(w, big);
	assert_string_equal(field_of(w, &in), "input");
	in = plain_new("Bash");
	in.timeout_ms = 100LL * 366 * 24 * 3600 * 1000 + 1;
	assert_string_equal(field_of(w, &in), "timeout");
	assert_int_equal(approvals_pending(approvals(w)), 0);
	in.timeout_ms--;
	assert_int_equal(request(w, &in).result, 0);
	/* A question needs no tool. */
	in = plain_new("");
	in.kind = APPROVAL_CONTACT;
	assert_int_equal(request(w, &in).result, 0);
}

/* ---- reading ---- */

static int find(struct world *w, struct text id, bool may_be_short)
{
	struct approval a;

	return approval_get(approvals(w), 1, &w->stage.f->arena, id, may_be_short, &a,
			    &w->stage.f->error);
}

TEST(lists_are_in_order_and_ids_may_be_short)
{
	struct world *w = *state;
	const struct approval_filter waiting = {.status = APPROVAL_PENDING};
	const struct approval_filter all = {.status = -1, .limit = 2};
	struct approval_new in = plain_new("Bash");
	struct approval *list;
	struct approval one;
	struct told made = ask_with(w, "Bash", "ls");
	unsigned n;

	in.id = TEXT("abc1");
	request(w, &in);
	in.id = TEXT("abc2");
	request(w, &in);
	assert_int_equal(approval_list(approvals(w), 1, &w->stage.f->arena, &waiting, &list, &n),
			 0);
	assert_int_equal(n, 3);
	assert_true(text_is(list[0].id, made.id));
	assert_true(text_is(
		value_text(value_find(value_find(list[0].input.value, "deep"), "command")), "ls"));
	assert_int_equal(approval_list(approvals(w), 1, &w->stage.f->arena, &all, &list, &n), 0);
	assert_int_equal(n, 2);
	assert_true(text_is(list[0].id, "abc2"));
	/* Without what all that we make begin with. */
	made.id[strlen("local-") + 8] = '\0';
	in.id = text_of(made.id + strlen("local-"));
	assert_true(text_is(get(w, made.id + strlen("local-")).tool, "Bash"));
	assert_int_equal(approval_get(approvals(w), 1, &w->stage.f->arena, TEXT("abc"), true, &one,
				      &w->stage.f->error),
			 REFUSE_PARAMS);
	assert_string_equal(w->stage.f->error.text,
			    "ambiguous approval id abc: matches abc1 and abc2");
	/* What is shown without its first word is no other one's whole id. */
	request(w, &in);
	assert_int_equal(find(w, in.id, true), REFUSE_PARAMS);
	assert_non_null(strstr(w->stage.f->error.text, in.id.data));
	assert_non_null(strstr(w->stage.f->error.text, "local-"));
	assert_int_equal(find(w, in.id, false), 0);
	/* A whole id that is the beginning of another never wins silently. */
	in.id = TEXT("abc22");
	request(w, &in);
	assert_int_equal(find(w, TEXT("abc2"), true), REFUSE_PARAMS);
	assert_string_equal(w->stage.f->error.text,
			    "ambiguous approval id abc2: matches abc2 and abc22");
	assert_int_equal(find(w, TEXT("abc2"), false), 0);
	decide(w, "abc22", APPROVAL_APPROVED);
	assert_int_equal(find(w, TEXT("abc2"), true), REFUSE_PARAMS);
	/* One that waits is meant before one that was decided. */
	decide(w, "abc1", APPROVAL_APPROVED);
	assert_true(text_is(get(w, "abc").id, "abc2"));
	assert_true(text_is(get(w, "abc1").id, "abc1"));
	decide(w, "abc2", APPROVAL_APPROVED);
	assert_int_equal(approval_get(approvals(w), 1, &w->stage.f->arena, TEXT("abc"), true, &one,
				      &w->stage.f->error),
			 REFUSE_PARAMS);
	assert_int_equal(approval_get(approvals(w), 1, &w->stage.f->arena, TEXT("ab"), false, &one,
				      &w->stage.f->error),
			 REFUSE_NOT_FOUND);
	assert_string_equal(w->stage.f->error.text, "approval not found: ab");
}

static void sweep(struct world *w, void *arg)
{
	(void)approval_sweep(approvals(w), arg);
}

TEST(old_ones_are_forgotten_but_not_those_that_wait)
{
	struct world *w = *state;
	const struct approval_filter all = {.status = -1};
	struct approval *list;
	struct told t;
	unsigned n;
	bool more = true;
	int64_t then;

	w->keep_ms = 1;
	world_reopen(w);
	t = ask(w, "Bash");
	ask(w, "Bash");
	decide(w, t.id, APPROVAL_APPROVED);
	then = clock_utc_ms();
	stage_until(&w->stage, clock_utc_ms() > then + 5);
	write_with(w, sweep, &more);
	assert_false(more);
	assert_int_equal(approval_list(approvals(w), 1, &w->stage.f->arena, &all, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].status, APPROVAL_PENDING);
}

TEST_WITH(every_word_is_understood, NULL, NULL)
{
	enum approval_status status;
	enum approval_kind kind;

	for (int i = 0; i < N_APPROVAL_STATUSES; i++) {
		assert_true(approval_status_parse(
			text_of(approval_status_name((enum approval_status)i)), &status));
		assert_int_equal(status, i);
	}
	assert_false(approval_status_parse(TEXT("resolved"), &status));
	assert_true(approval_kind_parse(TEXT("human_contact"), &kind));
	assert_int_equal(kind, APPROVAL_CONTACT);
	assert_false(approval_kind_parse(TEXT(""), &kind));
}
