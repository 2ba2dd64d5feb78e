/*
 * Rules as the daemon runs them: a loop, the workers' threads, a real store, the event log; with a
 * clock that the test turns, and a task service and approvals that it plays.
 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <math.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "io/workers.h"
#include "http_server.h"
#include "io/loop.h"
#include "engine/approval/approval.h"
#include "engine/automation/automation.h"
#include "engine/automation/inner.h"
#include "engine/event/event.h"
#include "base/error.h"
#include "base/pattern/pattern.h"
#include "engine/task/task.h"
#include "store/store.h"
#include "wire/json.h"

enum { WAIT_S = 60, TASKS_MAX = 2000, ASKED_MAX = 80, MINUTE = 60 * 1000, HOUR = 60 * MINUTE };

/* ---- the world ---- */

struct submitted_task {
	char prompt[200];
	char rule[64];
	char type[64];
	char agent[32];
	char project[64];
	double priority;
	int64_t now_ms;
};

/* What a rule has asked a human. */
struct approval_waiter {
	approval_fn fn; /* NULL: told, or left */
	approval_fn on_kept;
	void *arg;
	char id[APPROVAL_ID_MAX];
	char tool[64];
	char agent[32];
	char origin[64];
	char input[512];
};

struct world {
	struct fixture *f;
	struct automation *automation;
	struct approval_waiter asked[ASKED_MAX];
	unsigned n_asked;
	unsigned n_left;
	int ask_refuses;        /* what approval_wait returns, if not 0 */
	struct approval old[4]; /* pending since before */
	unsigned n_old;
	char withdrawn[80]; /* the last, and how often */
	unsigned n_withdrawn;
	struct loop *loop;
	struct timer *tick;
	struct workers *workers;
	struct fake_workers fake;
	bool closed;
	int64_t now_ms;
	struct submitted_task tasks[TASKS_MAX];
	unsigned n_tasks;
	int refuses;     /* what task_submit answers, if not 0 */
	int fail_writes; /* what each write fails with, if not 0 */
	unsigned n_complaints;
	char complaint[512];
	unsigned n_heard;
	char heard[512]; /* the last rule.executed or rule.failed */
	struct event_subscriber *listener;
	bool long_actions; /* they need not be waited for */
};

static struct world *the_world;

static int submit(void *arg, struct work *work, bool writes)
{
	struct world *w = arg;

	if (w->closed)
		return -ECANCELED;
	if (writes && w->fail_writes != 0)
		return w->fail_writes;
	if (writes)
		workers_write(w->workers, work);
	else
		workers_read(w->workers, work);
	return 0;
}

static struct work *trailer(void *arg)
{
	struct world *w = arg;

	if (!engine_trails(w->f->engine))
		return NULL;
	return engine_trailer(w->f->engine);
}

static int64_t now_of(void *arg)
{
	return ((struct world *)arg)->now_ms;
}

static void on_tick(void *arg)
{
}

static void note(char *out, size_t size, struct text t)
{
	snprintf(out, size, "%.*s", TEXT_ARGS(t));
}

int __wrap_task_submit(struct tasks *tasks, const struct task_new *in, task_submitted_fn fn,
		       void *arg, struct error *error);

int __wrap_task_submit(struct tasks *tasks, const struct task_new *in, task_submitted_fn fn,
		       void *arg, struct error *error)
{
	struct world *w = the_world;
	struct submitted_task *t = &w->tasks[w->n_tasks];
	struct task_submitted told;
	char id[32];

	if (w->refuses)
		return refuse(error, w->refuses, "not now");
	assert_true(w->n_tasks < TASKS_MAX);
	note(t->prompt, sizeof(t->prompt), in->task.prompt);
	note(t->rule, sizeof(t->rule), value_text(value_find(in->task.metadata.value, "ruleId")));
	note(t->type, sizeof(t->type),
	     value_text(value_find(in->task.metadata.value, "eventType")));
	note(t->agent, sizeof(t->agent), in->task.agent);
	note(t->project, sizeof(t->project), in->task.project);
	t->priority = in->task.priority;
	t->now_ms = w->now_ms;
	snprintf(id, sizeof(id), "task-%04u", w->n_tasks++);
	told = (struct task_submitted) {.project = in->task.project, .id = text_of(id)};
	fn(arg, 0, &told, error);
	return 0;
}

static int to_json(struct arena *a, const struct value *v, struct text *ret_text)
{
	struct buf out;
	struct json j;

	buf_init(&out, 1 << 20);
	j = json_writer(&out);
	json_value(&j, v);
	assert_int_equal(out.err, 0);
	*ret_text = (struct text) {.data = arena_copy(a, out.data, out.len), .len = out.len};
	buf_done(&out);
	return 0;
}

int __wrap_approval_wait(struct approvals *s, const struct approval_new *in, approval_fn on_kept,
			 approval_fn fn, void *arg, struct approval_waiter **ret_waiter,
			 struct error *error);
void __wrap_approval_leave(struct approval_waiter *w);
void __wrap_approvals_withdraw_left(struct approvals *s, struct text agent,
				    bool (*is_own)(const struct approval *row));

int __wrap_approval_wait(struct approvals *s, const struct approval_new *in, approval_fn on_kept,
			 approval_fn fn, void *arg, struct approval_waiter **ret_waiter,
			 struct error *error)
{
	struct world *w = the_world;
	struct approval_waiter *q = &w->asked[w->n_asked];
	struct text json;

	if (w->ask_refuses != 0)
		return w->ask_refuses;
	assert_true(w->n_asked < ASKED_MAX);
	assert_int_equal(in->kind, APPROVAL_FUNCTION);
	note(q->id, sizeof(q->id), in->id);
	note(q->tool, sizeof(q->tool), in->tool);
	note(q->agent, sizeof(q->agent), in->agent);
	note(q->origin, sizeof(q->origin), in->origin);
	assert_int_equal(to_json(&w->f->arena, in->input, &json), 0);
	note(q->input, sizeof(q->input), json);
	q->fn = fn;
	q->arg = arg;
	q->on_kept = on_kept;
	w->n_asked++;
	*ret_waiter = q;
	return 0;
}

void __wrap_approval_leave(struct approval_waiter *q)
{
	if (!q)
		return;
	assert_non_null(q->fn);
	q->fn = NULL;
	the_world->n_left++;
}

void __wrap_approvals_withdraw_left(struct approvals *s, struct text agent,
				    bool (*is_own)(const struct approval *row))
{
	struct world *w = the_world;

	for (unsigned i = 0; i < w->n_old; i++) {
		if (!text_equal(w->old[i].agent, agent) || !is_own(&w->old[i]))
			continue;
		note(w->withdrawn, sizeof(w->withdrawn), w->old[i].id);
		w->n_withdrawn++;
	}
}

/* As a human decides. */
static void decide(struct world *w, unsigned i, enum approval_status status, const char *comment)
{
	struct approval_waiter *q = &w->asked[i];
	approval_fn fn = q->fn;
	const struct approval how = {
		.id = text_of(q->id),
		.status = status,
		.comment = comment ? text_of(comment) : (struct text) {0},
	};
	const struct error error = {.text = ""};

	assert_non_null(fn);
	q->fn = NULL;
	fn(q->arg, 0, &how, &error);
}

static int on_rule_event(void *arg, const struct event *e)
{
	struct world *w = arg;
	struct arena a;
	struct value *data;
	struct text json;

	arena_init(&a, 1 << 20);
	assert_int_equal(event_unpack(&a, e, &data), 0);
	assert_int_equal(to_json(&a, data, &json), 0);
	snprintf(w->heard, sizeof(w->heard), "%.*s %.*s", TEXT_ARGS(e->type), TEXT_ARGS(json));
	w->n_heard++;
	arena_done(&a);
	return 0;
}

static void listen_to_rules(struct world *w)
{
	static const struct text types[] = {TEXT("rule.*")};
	const struct event_filter filter = {.types = types, .n_types = 1};
	const struct event_sink sink = {.on_event = on_rule_event, .arg = w};

	assert_int_equal(event_subscribe(w->f->engine->events, &filter, -1, &sink, &w->listener),
			 0);
}

static void world_start(struct world *w)
{
	struct workers_opts workers = fixture_workers(w->f, N_READERS);
	const struct events_opts events = {
		.store = w->f->engine->store, .loop = w->loop, .workers = fake_workers(&w->fake)};
	struct automation_opts opts = {
		.loop = w->loop,
		.workers = fake_workers(&w->fake),
		.store = w->f->engine->store,
		.tasks = (struct tasks *)w,
		.now_ms = now_of,
		.to_json = to_json,
		.arg = w,
	};

	w->fake = (struct fake_workers) {.submit = submit, .arg = w};
	w->closed = false;
	assert_int_equal(events_start(&events, &w->f->engine->events), 0);
	workers.trailer = trailer;
	workers.trailer_arg = w;
	assert_int_equal(workers_new(w->loop, &workers, &w->workers), 0);
	opts.events = w->f->engine->events;
	assert_int_equal(automation_new(&opts, &w->automation), 0);
	listen_to_rules(w);
}

static void turn_once(struct world *w)
{
	struct pollfd p = {.fd = loop_fd(w->loop), .events = POLLIN};

	loop_step(w->loop);
	poll(&p, 1, loop_timeout_ms(w->loop));
}

#define turn_until(w, condition)                                                                   \
	do {                                                                                       \
		uint64_t until_ = clock_steady_ms() + WAIT_S * 1000;                               \
		while (!(condition)) {                                                             \
			if (clock_steady_ms() > until_)                                            \
				fail_msg("never: %s", #condition);                                 \
			turn_once(w);                                                              \
		}                                                                                  \
	} while (0)

/* As a stop in good order does it. */
static void world_stop(struct world *w)
{
	automation_stop(w->automation);
	turn_until(w, automation_idle(w->automation));
	event_unsubscribe(w->listener);
	workers_free(w->workers);
	w->closed = true;
	automation_free(w->automation);
	engine_close(w->f->engine);
	w->f->engine = NULL;
}

static void world_restart(struct world *w)
{
	world_stop(w);
	fixture_open(w->f, 64 << 20);
	world_start(w);
}

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	the_world = w;
	assert_int_equal(setup((void **)&w->f), 0);
	assert_true(clock_parse_iso(TEXT("2026-01-01T12:00:30Z"), &w->now_ms));
	assert_int_equal(loop_new(&w->loop), 0);
	assert_int_equal(timer_new(w->loop, on_tick, NULL, &w->tick), 0);
	timer_repeat(w->tick, 10);
	world_start(w);
	*state = w;
	return 0;
}

static int world_teardown(void **state)
{
	struct world *w = *state;

	world_stop(w);
	teardown((void **)&w->f);
	timer_free(w->tick);
	loop_free(w->loop);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

/* Everything that was begun by now has come to its end, and so has what its events have begun: the
 * writer keeps its order. */
struct marker {
	struct work work;
	bool done;
};

static int marker_run(struct work *w, int lane)
{
	return 0;
}

static void marker_finished(struct work *w, int result)
{
	assert_int_equal(result, 0);
	list_entry(w, struct marker, work)->done = true;
}

static void settle(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		struct marker m = {.work = {.run = marker_run, .finished = marker_finished}};

		assert_int_equal(submit(w, &m.work, true), 0);
		turn_until(w, m.done);
		turn_until(w, automation_idle(w->automation) || w->long_actions);
	}
}

/* ---- rules ---- */

static void on_complaint(void *arg, const char *sentence)
{
	struct world *w = arg;

	w->n_complaints++;
	snprintf(w->complaint, sizeof(w->complaint), "%s", sentence);
}

static void set_rules(struct world *w, const struct rule *rules, unsigned n)
{
	assert_int_equal(automation_set_rules(w->automation, TEXT(""), rules, n, on_complaint, w),
			 0);
	settle(w);
}

static struct rule a_rule(const char *id)
{
	return (struct rule) {.id = text_of(id),
			      .where = TEXT("koine.conf:7"),
			      .action = ACTION_TASK,
			      .prompt = TEXT("go")};
}

static struct rule by_cron(const char *id, const char *cron, const char *zone)
{
	struct rule r = a_rule(id);

	r.trigger = TRIGGER_CRON;
	r.cron = text_of(cron);
	r.zone = text_of(zone);
	return r;
}

static struct rule by_event(const char *id, const char *type)
{
	struct rule r = a_rule(id);

	r.trigger = TRIGGER_EVENT;
	r.type = text_of(type);
	return r;
}

static int64_t ms(const char *iso)
{
	int64_t t;

	assert_true(clock_parse_iso(text_of(iso), &t));
	return t;
}

static void clock_to(struct world *w, int64_t now_ms)
{
	w->now_ms = now_ms;
	schedules_look(w->automation);
	settle(w);
}

static void happen(struct world *w, const char *type, const char *source, const char *payload)
{
	struct arena a;
	struct value *v = NULL;

	arena_init(&a, 1 << 20);
	if (payload)
		assert_int_equal(
			json_read(&a, payload, strlen(payload), &json_default_limits, &v, NULL), 0);
	automation_event(w->automation, TEXT(""), text_of(source), text_of(type), v);
	arena_done(&a);
	settle(w);
}

static const struct rule_execution *last_execution(struct world *w)
{
	const struct rule_execution *log;
	unsigned n;

	automation_recent(w->automation, (struct text) {NULL, 0}, &log, &n);
	assert_true(n > 0);
	return &log[n - 1];
}

static unsigned n_executions(struct world *w)
{
	const struct rule_execution *log;
	unsigned n;

	automation_recent(w->automation, (struct text) {NULL, 0}, &log, &n);
	return n;
}

static const struct rule *info(struct world *w, const char *id)
{
	const struct rule *rule = NULL;

	while ((rule = automation_next_rule(w->automation, (struct text) {NULL, 0}, rule))) {
		if (text_is(rule->id, id))
			return rule;
	}
	fail_msg("no rule %s", id);
	return NULL;
}

/* ---- schedules ---- */

TEST(a_schedule_fires_once_an_occurrence)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "* * * * *", "");
	int64_t begin = w->now_ms;

	r.agent = TEXT("reviewer");
	r.priority = 3;
	r.prompt = TEXT("{{payload.job_id}} at {{payload.time}} {{payload.none}}");
	set_rules(w, &r, 1);
	assert_int_equal(info(w, "tick")->next_ms, ms("2026-01-01T12:01Z"));
	for (int i = 1; i <= 60; i++)
		clock_to(w, begin + i * 10 * 1000);
	assert_int_equal(w->n_tasks, 10);
	assert_string_equal(w->tasks[0].prompt,
			    "tick at 2026-01-01T12:01:00.000Z {{payload.none}}");
	assert_string_equal(w->tasks[0].rule, "tick");
	assert_string_equal(w->tasks[0].type, "cron.fired");
	assert_string_equal(w->tasks[0].agent, "reviewer");
	assert_true(w->tasks[0].priority == 3);
	assert_int_equal(info(w, "tick")->n_fired, 10);
	assert_string_equal(w->heard,
			    "rule.executed {\"ruleId\":\"tick\",\"eventType\":\"cron.fired\","
			    "\"status\":\"submitted\",\"taskId\":\"task-0009\"}");
	assert_true(text_is(last_execution(w)->status, "submitted"));
}

TEST(a_restart_around_the_minute_fires_once)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "*/5 * * * *", "");

	set_rules(w, &r, 1);
	for (int minute = 1; minute <= 20; minute++) {
		/* Down over each full minute, and once more right behind it. */
		clock_to(w, ms("2026-01-01T12:00Z") + minute * MINUTE - 500);
		world_restart(w);
		w->now_ms += 1500;
		set_rules(w, &r, 1);
		world_restart(w);
		set_rules(w, &r, 1);
		clock_to(w, w->now_ms + 1000);
	}
	assert_int_equal(w->n_tasks, 4);
	for (int i = 0; i < 4; i++)
		assert_in_range(w->tasks[i].now_ms - ms("2026-01-01T12:05Z") - i * 5 * MINUTE, 0,
				2000);
}

/* Three days and nights, a bit less than a minute at a time, with restarts all the while. */
static void through_the_night(struct world *w, const char *from, const char *const *expected)
{
	struct rule r = by_cron("nightly", "30 2 * * *", "Europe/Berlin");
	unsigned n = 0;

	w->now_ms = ms(from);
	set_rules(w, &r, 1);
	for (int i = 0; i < 3 * 24 * 72; i++) {
		w->now_ms += 50 * 1000;
		if (i % 36 == 0) {
			world_restart(w);
			set_rules(w, &r, 1);
		}
		schedules_look(w->automation);
		turn_until(w, automation_idle(w->automation));
	}
	for (; expected[n]; n++) {
		int64_t late = w->tasks[n].now_ms - ms(expected[n]);

		assert_true(n < w->n_tasks);
		assert_in_range(late, 0, MINUTE);
	}
	assert_int_equal(w->n_tasks, n);
}

TEST(once_across_the_start_of_summer)
{
	struct world *w = *state;

	through_the_night(w, "2026-03-27T12:01:00Z",
			  (const char *const[]) {"2026-03-28T01:30Z", "2026-03-29T01:00Z",
						 "2026-03-30T00:30Z", NULL});
}

TEST(once_across_the_end_of_summer)
{
	struct world *w = *state;

	through_the_night(w, "2026-10-23T12:01:00Z",
			  (const char *const[]) {"2026-10-24T00:30Z", "2026-10-25T00:30Z",
						 "2026-10-26T01:30Z", NULL});
}

TEST(a_clock_set_back_repeats_nothing)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "* * * * *", "");
	int64_t begin = w->now_ms;

	set_rules(w, &r, 1);
	for (int i = 1; i <= 60; i++)
		clock_to(w, begin + i * MINUTE);
	assert_int_equal(w->n_tasks, 60);
	/* The hour comes again, with a restart in it. */
	for (int i = 0; i <= 60; i++) {
		clock_to(w, begin + i * MINUTE);
		if (i == 30) {
			world_restart(w);
			set_rules(w, &r, 1);
		}
	}
	assert_int_equal(w->n_tasks, 60);
	clock_to(w, begin + 61 * MINUTE);
	assert_int_equal(w->n_tasks, 61);
}

TEST(what_was_missed_is_caught_up_as_asked)
{
	struct world *w = *state;
	struct rule r[3] = {by_cron("none", "0 * * * *", ""), by_cron("one", "0 * * * *", ""),
			    by_cron("all", "0 * * * *", "")};
	unsigned n[3] = {0};

	r[1].catch_up = CATCH_UP_ONE;
	r[2].catch_up = CATCH_UP_ALL;
	set_rules(w, r, 3);
	clock_to(w, ms("2026-01-01T13:00:01Z"));
	assert_int_equal(w->n_tasks, 3);
	w->n_tasks = 0;
	world_stop(w);
	fixture_open(w->f, 64 << 20);
	w->now_ms = ms("2026-01-01T18:30Z");
	world_start(w);
	set_rules(w, r, 3);
	for (unsigned i = 0; i < w->n_tasks; i++)
		n[w->tasks[i].rule[0] == 'n' ? 0 : w->tasks[i].rule[0] == 'o' ? 1 : 2]++;
	assert_int_equal(n[0], 0);
	assert_int_equal(n[1], 1);
	assert_int_equal(n[2], 5);
	/* And it goes on from there. */
	w->n_tasks = 0;
	clock_to(w, ms("2026-01-01T19:00:00Z"));
	assert_int_equal(w->n_tasks, 3);
}

TEST(catching_up_has_an_end)
{
	struct world *w = *state;
	struct rule r[2] = {by_cron("cron", "* * * * *", ""), a_rule("every")};

	r[0].catch_up = CATCH_UP_ALL;
	r[1].catch_up = CATCH_UP_ALL;
	r[1].trigger = TRIGGER_EVERY;
	r[1].every_ms = 1000;
	set_rules(w, r, 2);
	world_restart(w);
	w->now_ms = ms("2036-01-01T00:00Z");
	set_rules(w, r, 2);
	turn_until(w, w->n_tasks == 200);
	settle(w);
	assert_int_equal(w->n_tasks, 200);
}

TEST(a_new_rule_has_missed_nothing)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "* * * * *", "");

	r.catch_up = CATCH_UP_ALL;
	w->now_ms = ms("2026-01-01T12:00:10Z");
	set_rules(w, &r, 1);
	assert_int_equal(w->n_tasks, 0);
	/* From then on it can. */
	world_restart(w);
	w->now_ms = ms("2026-01-01T12:02:50Z");
	set_rules(w, &r, 1);
	assert_int_equal(w->n_tasks, 2);
}

TEST(every_fires_at_its_multiples)
{
	struct world *w = *state;
	struct rule r = a_rule("every");

	r.trigger = TRIGGER_EVERY;
	r.every_ms = 90 * 1000;
	set_rules(w, &r, 1);
	for (int i = 1; i <= 30; i++)
		clock_to(w, ms("2026-01-01T12:00:30Z") + i * 30 * 1000);
	assert_int_equal(w->n_tasks, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(w->tasks[i].now_ms % 90000, 0);
}

TEST(a_real_clock_fires_by_itself)
{
	struct world *w = *state;
	struct rule r = a_rule("every");

	r.trigger = TRIGGER_EVERY;
	r.every_ms = 1000;
	w->now_ms = ms("2026-01-01T12:00:00.990Z");
	set_rules(w, &r, 1);
	/* The test's clock stands still but for this: nobody calls schedules_look. */
	w->now_ms += 100;
	turn_until(w, w->n_tasks == 1);
	settle(w);
	assert_int_equal(w->n_tasks, 1);
}

TEST(a_claim_that_a_stop_cut_off_is_given_back)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "0 * * * *", "");

	set_rules(w, &r, 1);
	w->refuses = REFUSE_STOPPING;
	clock_to(w, ms("2026-01-01T13:00:00Z"));
	assert_int_equal(w->n_tasks, 0);
	w->refuses = 0;
	world_restart(w);
	w->now_ms += 2000;
	set_rules(w, &r, 1);
	assert_int_equal(w->n_tasks, 1);
	world_restart(w);
	set_rules(w, &r, 1);
	assert_int_equal(w->n_tasks, 1);
}

/* ---- events ---- */

TEST(events_wake_the_rules_that_fit)
{
	struct world *w = *state;
	struct rule r[5] = {by_event("exact", "build.failed"), by_event("glob", "build.*"),
			    by_event("other", "deploy.*"), by_event("source", NULL),
			    by_event("pattern", NULL)};

	r[3].source = TEXT("ci");
	r[4].pattern = TEXT("^build\\.\\w+:c\\w$");
	r[1].prompt = TEXT("{{.n}} {{payload..n}} {{payload.}} {{payload.n}x {{}} {{} "
			   "{{type}} of {{source}}: {{payload.n}} {{payload.who.0}} {{payload.o}} "
			   "{{payload.no}} {{{payload.n}} {{ payload.n }} {{payload.n");
	set_rules(w, r, 5);
	happen(w, "build.failed", "ci", "{\"n\":1.50,\"who\":[\"ann\"],\"o\":{\"a\":null}}");
	assert_int_equal(w->n_tasks, 4);
	assert_string_equal(w->tasks[1].prompt,
			    "{{.n}} {{payload..n}} {{payload.}} {{payload.n}x {{}} {{} "
			    "build.failed of ci: 1.50 ann {\"a\":null} "
			    "{{payload.no}} {1.50 {{ payload.n }} {{payload.n");
	happen(w, "build.begun", "hand", NULL);
	assert_int_equal(w->n_tasks, 5);
	assert_string_equal(w->tasks[4].rule, "glob");
}

TEST(conditions_are_those_of_javascript)
{
	static char huge[1101]; /* more digits than are compared */
	static char data[1300];
	static const struct {
		const char *field, *operator, * value;
		bool holds;
	} cases[] = {
		{"payload.n", "eq", "5", true},
		{"payload.n", "equals", "5.0", true},
		{"payload.n", "eq", "\"5\"", false},
		{"payload.s", "eq", "\"abc\"", true},
		{"payload.s", "neq", "\"abc\"", false},
		{"payload.s", "not_equals", "\"abd\"", true},
		{"payload.none", "neq", "1", true},
		{"payload.none", "eq", NULL, true},
		{"payload.null", "eq", "null", true},
		{"payload.yes", "eq", "true", true},
		{"payload.yes", "eq", "1", false},
		{"payload.o", "eq", "{}", false},
		{"payload.s", "contains", "\"bc\"", true},
		{"payload.s", "contains", "\"bd\"", false},
		{"payload.l", "contains", "2", true},
		{"payload.l", "contains", "\"2\"", false},
		{"payload.n", "contains", "5", false},
		{"payload.s", "matches", "\"^a.c$\"", true},
		{"payload.s", "matches", "\"^b\"", false},
		{"payload.n", "matches", "\"5\"", false},
		{"payload.n", "gt", "4.5", true},
		{"payload.n", "gt", "5", false},
		{"payload.n", "gte", "5", true},
		{"payload.n", "lt", "\"6\"", true},
		{"payload.n", "lte", "4", false},
		{"payload.s", "gt", "1", false},
		{"payload.s", "exists", NULL, true},
		{"payload.null", "exists", NULL, false},
		{"payload.none.deep", "exists", NULL, false},
		{"payload.none", "not_exists", NULL, true},
		{"payload.null", "not_exists", NULL, true},
		{"payload.l.1", "eq", "2", true},
		{"payload.l.9", "exists", NULL, false},
		{"payload.l.1x", "exists", NULL, false},
		{"payload.l.", "exists", NULL, false},
		{"payload.", "exists", NULL, false},
		{"payload.yes", "eq", "false", false},
		{"payload.null", "eq", "false", false},
		{"payload.n", "lte", "5", true},
		{"payload.n", "lt", "5", false},
		{"payload.n", "gte", "5.1", false},
		{"payload.none", "gte", "0", false},
		{"payload.none", "lt", "1", false},
		{"payload.none", "contains", "1", false},
		{"payload.none", "matches", "\"a\"", false},
		{"payload.o", "contains", "1", false},
		{"payload.s", "contains", "{}", false},
		{"payload.s", "contains", "\"\"", true},
		{"payload.huge", "eq", huge, false},
		{"payload.huge", "gt", "1", false},
		{"payload.huge", "lte", "1", false},
		{"payload.n", "lt",
		 "\"000000000000000000000000000000000000000000000000000000000000006\"", true},
		{"payload.n", "eq", NULL, false},
		{"payload.seq", "eq", "7", true},
		{"payload.s.a", "exists", NULL, false},
		{"payload.l.0000000001", "exists", NULL, false},
		{"payload.l.000000001", "eq", "2", true},
		{"type", "eq", "\"x\"", true},
		{"source", "eq", "\"y\"", true},
	};
	struct world *w = *state;

	memset(huge, '1', sizeof(huge) - 1);
	snprintf(data, sizeof(data),
		 "{\"n\":5,\"s\":\"abc\",\"null\":null,\"yes\":true,\"o\":{},\"l\":[1,2],"
		 "\"huge\":%s,\"seq\":7}",
		 huge);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event_condition c = {.field = text_of(cases[i].field),
					    .operator= text_of(cases[i].operator)};
		struct rule r = by_event("r", "x");
		struct value *v = NULL;
		unsigned before = w->n_tasks;
		struct arena a;

		arena_init(&a, 1 << 20);
		if (cases[i].value)
			assert_int_equal(json_read(&a, cases[i].value, strlen(cases[i].value),
						   &json_default_limits, &v, NULL),
					 0);
		c.value = v;
		r.conditions = &c;
		r.n_conditions = 1;
		set_rules(w, &r, 1);
		arena_done(&a);
		happen(w, "x", "y", data);
		if ((w->n_tasks > before) != cases[i].holds)
			fail_msg("%s %s %s", cases[i].field, cases[i].operator, cases[i].value);
	}
	assert_int_equal(w->n_complaints, 0);
}

struct publish {
	struct work work;
	struct engine *engine;
	const char *type, *run;
	struct text project, output;
	bool done;
};

static int publish_run(struct work *work, int lane)
{
	struct publish *p = list_entry(work, struct publish, work);
	struct event_new e = {.type = p->type, .run = text_of(p->run), .project = p->project};
	struct object_builder r;
	struct arena a;
	int result;

	arena_init(&a, 1 << 20);
	object_begin(&r, &a);
	object_text(&r, "taskId", text_of(p->run));
	object_text(&r, "output", p->output);
	e.data = r.root;
	result = event_add(p->engine->events, &e);
	arena_done(&a);
	return result;
}

static void publish_finished(struct work *work, int result)
{
	assert_int_equal(result, 0);
	list_entry(work, struct publish, work)->done = true;
}

static void publish_this(struct world *w, struct publish *p)
{
	p->work = (struct work) {.run = publish_run, .finished = publish_finished};
	p->engine = w->f->engine;
	assert_int_equal(submit(w, &p->work, true), 0);
	turn_until(w, p->done);
	settle(w);
}

static void publish(struct world *w, const char *type, const char *run)
{
	publish_this(w, &(struct publish) {.type = type, .run = run});
}

TEST(the_logs_events_wake_rules)
{
	struct world *w = *state;
	struct rule r = by_event("after", "task.completed");

	r.prompt = TEXT("{{source}} {{payload.taskId}} {{payload.run}} {{payload.seq}}");
	set_rules(w, &r, 1);
	publish(w, "task.started", "t1");
	assert_int_equal(w->n_tasks, 0);
	publish(w, "task.completed", "t1");
	assert_int_equal(w->n_tasks, 1);
	assert_string_equal(w->tasks[0].prompt, "task t1 t1 2");
}

TEST(a_rule_that_is_not_for_the_log_hears_only_what_is_told)
{
	struct world *w = *state;
	struct rule r[] = {by_event("any", ""), by_event("logged", "task.started")};

	r[0].not_logged = true;
	r[0].prompt = TEXT("{{type}} {{source}}");
	set_rules(w, r, 2);
	publish(w, "task.started", "t1");
	assert_int_equal(w->n_tasks, 1);
	assert_string_equal(w->tasks[0].rule, "logged");
	happen(w, "file.create", "watch", NULL);
	assert_int_equal(w->n_tasks, 2);
	assert_string_equal(w->tasks[1].prompt, "file.create watch");
}

TEST(rules_hear_from_when_they_were_set)
{
	struct world *w = *state;
	struct rule r = by_event("early", "memory.added");

	assert_int_equal(automation_set_rules(w->automation, TEXT(""), &r, 1, NULL, NULL), 0);
	publish(w, "memory.added", "m");
	turn_until(w, w->n_tasks == 1);
}

TEST(a_rule_is_not_woken_by_itself)
{
	struct world *w = *state;
	struct rule r[2] = {by_event("self", "*"), by_event("asks", "task.*")};
	struct value *v = NULL;
	struct event_condition c = {
		.field = TEXT("payload.ruleId"), .operator= TEXT("not_exists"), .value = v};

	set_rules(w, r, 1);
	publish(w, "memory.added", "m");
	assert_int_equal(w->n_tasks, 1);
	/* Its task's events, and its own rule.executed, which came meanwhile. */
	publish(w, "task.completed", "task-0000");
	assert_int_equal(w->n_tasks, 1);
	publish(w, "task.completed", "task-9999");
	assert_int_equal(w->n_tasks, 2);
	/* One that asks for the rule in its conditions knows what it does. */
	w->n_tasks = 0;
	r[1].conditions = &c;
	r[1].n_conditions = 1;
	set_rules(w, &r[1], 1);
	publish(w, "task.completed", "x");
	assert_int_equal(w->n_tasks, 1);
	publish(w, "task.completed", "task-0000");
	assert_int_equal(w->n_tasks, 2);
}

TEST(rules_that_wake_each_other_are_stopped)
{
	struct world *w = *state;
	struct rule r[2] = {by_event("ping", "rule.executed"), by_event("pong", "rule.executed")};

	set_rules(w, r, 2);
	publish(w, "rule.executed", "x");
	turn_until(w, w->n_tasks == 100);
	settle(w);
	settle(w);
	assert_int_equal(w->n_tasks, 100);
}

TEST(a_rule_cools_down_over_a_restart)
{
	struct world *w = *state;
	struct rule r = by_event("hot", "x");

	r.cooldown_ms = 10 * MINUTE;
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
	world_restart(w);
	w->now_ms += 9 * MINUTE;
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
	w->now_ms += MINUTE;
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 2);
}

TEST(a_schedule_cools_down)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "* * * * *", "");

	r.cooldown_ms = 2 * MINUTE;
	set_rules(w, &r, 1);
	for (int i = 1; i <= 4; i++)
		clock_to(w, ms("2026-01-01T12:00Z") + i * MINUTE);
	assert_int_equal(w->n_tasks, 2);
}

TEST(approval_that_nobody_can_give)
{
	struct world *w = *state;
	struct rule r = by_event("careful", "x");

	r.needs_approval = true;
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 0);
	assert_true(text_is(last_execution(w)->status, "skipped_no_approver"));
	assert_true(last_execution(w)->error.len > 0);
}

/* ---- approval ---- */

/* A rule that needs it, and somebody to ask. */
static struct rule careful(struct world *w, const char *type)
{
	struct rule r = by_event("careful", type);

	w->automation->opts.approvals = (struct approvals *)w;
	w->long_actions = true;
	r.needs_approval = true;
	return r;
}

TEST(approved_it_acts)
{
	struct world *w = *state;
	struct rule r = careful(w, "x");

	r.prompt = TEXT("look at {{payload.path}}");
	set_rules(w, &r, 1);
	happen(w, "x", "y", "{\"path\":\"a.c\"}");
	turn_until(w, w->n_asked == 1);
	assert_int_equal(w->n_tasks, 0);
	assert_int_equal(n_executions(w), 0);
	assert_string_equal(w->asked[0].agent, "rule");
	assert_string_equal(w->asked[0].tool, "rule:careful");
	assert_string_equal(w->asked[0].input,
			    "{\"rule\":\"careful\",\"event\":{\"type\":\"x\",\"source\":\"y\","
			    "\"payload\":{\"path\":\"a.c\"}},\"prompt\":\"look at a.c\"}");
	decide(w, 0, APPROVAL_APPROVED, "go on");
	settle(w);
	assert_int_equal(w->n_tasks, 1);
	assert_string_equal(w->tasks[0].prompt, "look at a.c");
	assert_true(text_is(last_execution(w)->status, "submitted"));
	assert_int_equal(w->n_left, 0);
}

TEST(a_request_for_approval_names_its_project)
{
	struct world *w = *state;
	struct rule r = careful(w, "x");

	r.project = TEXT("/p");
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	turn_until(w, w->n_asked == 1);
	assert_non_null(strstr(w->asked[0].input, "\"rule\":\"careful\",\"project\":\"/p\""));
}

TEST(not_approved_it_does_not)
{
	static const struct {
		enum approval_status status;
		const char *comment;
		const char *told;
		const char *error;
	} ways[] = {
		{APPROVAL_DENIED, "not today", "denied_by_approver", "denied: not today"},
		{APPROVAL_DENIED, NULL, "denied_by_approver", "denied"},
		{APPROVAL_EXPIRED, NULL, "approval_expired", "no decision before the deadline"},
		{APPROVAL_SUPERSEDED, NULL, "approval_superseded", "the request was withdrawn"},
		{APPROVAL_RESPONDED, "hm", "error", "invalid decision for this request"},
	};
	struct world *w = *state;
	struct rule r = careful(w, "x");

	set_rules(w, &r, 1);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		happen(w, "x", "y", NULL);
		turn_until(w, w->n_asked == i + 1);
		decide(w, i, ways[i].status, ways[i].comment);
		settle(w);
		assert_int_equal(n_executions(w), i + 1);
		assert_true(text_is(last_execution(w)->status, ways[i].told));
		assert_true(text_is(last_execution(w)->error, ways[i].error));
	}
	assert_int_equal(w->n_tasks, 0);
}

TEST(those_who_wait_hold_nobody_up)
{
	struct world *w = *state;
	struct rule rules[2] = {careful(w, "x"), by_event("quick", "z")};

	set_rules(w, rules, 2);
	for (unsigned i = 0; i < 64; i++)
		happen(w, "x", "y", NULL);
	turn_until(w, w->n_asked == 64);
	assert_int_equal(n_executions(w), 0);
	happen(w, "z", "y", NULL);
	turn_until(w, w->n_tasks == 1);
	assert_true(text_is(last_execution(w)->status, "submitted"));
	/* But there is an end to how many may. */
	happen(w, "x", "y", NULL);
	turn_until(w, n_executions(w) == 2);
	assert_true(text_is(last_execution(w)->status, "skipped_too_many_waiting"));
	assert_int_equal(w->n_asked, 64);
	decide(w, 5, APPROVAL_APPROVED, NULL);
	turn_until(w, w->n_tasks == 2);
	happen(w, "x", "y", NULL);
	turn_until(w, w->n_asked == 65);
}

TEST(a_cooldown_counts_from_the_question)
{
	struct world *w = *state;
	struct rule r = careful(w, "x");

	r.cooldown_ms = 10 * MINUTE;
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	turn_until(w, w->n_asked == 1);
	w->now_ms += 9 * MINUTE;
	happen(w, "x", "y", NULL);
	decide(w, 0, APPROVAL_APPROVED, NULL);
	settle(w);
	assert_int_equal(w->n_asked, 1);
	w->now_ms += MINUTE;
	happen(w, "x", "y", NULL);
	turn_until(w, w->n_asked == 2);
}

static bool has_asked(const struct world *w, const char *part)
{
	for (unsigned i = 0; i < w->n_asked; i++) {
		if (strstr(w->asked[i].input, part))
			return true;
	}
	return false;
}

TEST(its_own_question_does_not_wake_it)
{
	struct world *w = *state;
	struct rule rules[2] = {careful(w, "approval.*"), by_event("other", "approval.*")};

	set_rules(w, rules, 2);
	happen(w, "approval.requested", "approval", "{\"tool_name\":\"rule:careful\"}");
	turn_until(w, w->n_tasks == 1);
	assert_string_equal(w->tasks[0].rule, "other");
	happen(w, "approval.requested", "approval", "{\"tool_name\":\"rule:careful2\"}");
	turn_until(w, has_asked(w, "rule:careful2"));
	assert_int_equal(w->n_asked, 1);
}

TEST(a_stop_does_not_wait_for_humans)
{
	struct world *w = *state;
	struct rule r = by_cron("careful", "* * * * *", "");

	r.needs_approval = true;
	r.catch_up = CATCH_UP_ALL;
	(void)careful(w, "");
	set_rules(w, &r, 1);
	clock_to(w, ms("2026-01-01T12:01Z"));
	turn_until(w, w->n_asked == 1);
	w->long_actions = false;
	world_restart(w);
	assert_int_equal(w->n_left, 1);
	assert_null(w->asked[0].fn);
	/* It was claimed: nobody is asked twice about one occurrence. */
	w->automation->opts.approvals = (struct approvals *)w;
	set_rules(w, &r, 1);
	assert_int_equal(w->n_asked, 1);
	w->long_actions = true;
	clock_to(w, ms("2026-01-01T12:02Z"));
	turn_until(w, w->n_asked == 2);
}

/* As approvals that stop before the rules do. */
static void tell_stopping(struct world *w, unsigned i)
{
	const struct error error = {.code = REFUSE_STOPPING, .text = "koined is stopping"};
	approval_fn fn = w->asked[i].fn;

	w->asked[i].fn = NULL;
	fn(w->asked[i].arg, REFUSE_STOPPING, NULL, &error);
}

/* Whether the same occurrence is asked about once more, after a stop. */
static bool comes_back(struct world *w, bool was_kept)
{
	struct rule r = by_cron("careful", "0 13 * * *", "");
	const struct error error = {.text = ""};

	r.needs_approval = true;
	r.catch_up = CATCH_UP_ALL;
	(void)careful(w, "");
	set_rules(w, &r, 1);
	clock_to(w, ms("2026-01-01T13:00Z"));
	turn_until(w, w->n_asked == 1);
	if (was_kept)
		w->asked[0].on_kept(w->asked[0].arg, 0, NULL, &error);
	tell_stopping(w, 0);
	w->long_actions = false;
	world_restart(w);
	w->automation->opts.approvals = (struct approvals *)w;
	w->long_actions = true;
	set_rules(w, &r, 1);
	clock_to(w, ms("2026-01-01T14:00Z"));
	settle(w);
	return w->n_asked == 2;
}

TEST(a_question_that_nobody_saw_comes_back)
{
	assert_true(comes_back(*state, false));
}

TEST(a_question_that_was_asked_does_not)
{
	assert_false(comes_back(*state, true));
}

TEST(approvals_that_fail_are_an_error)
{
	struct world *w = *state;
	struct rule r = careful(w, "x");
	const struct error error = {.text = "too many approvals are pending"};

	set_rules(w, &r, 1);
	w->ask_refuses = -ENOMEM;
	happen(w, "x", "y", NULL);
	turn_until(w, n_executions(w) == 1);
	assert_true(text_is(last_execution(w)->status, "error"));
	w->ask_refuses = 0;
	happen(w, "x", "y", NULL);
	turn_until(w, w->n_asked == 1);
	w->asked[0].fn(w->asked[0].arg, REFUSE_LIMIT, NULL, &error);
	assert_true(text_is(last_execution(w)->error, "too many approvals are pending"));
	settle(w);
}

TEST(questions_of_a_life_before_are_withdrawn)
{
	struct world *w = *state;
	struct rule r = careful(w, "x");

	w->old[0] = (struct approval) {.id = TEXT("rule-1"), .agent = TEXT("rule")};
	w->old[1] = (struct approval) {.id = TEXT("rule-2"), .agent = TEXT("claude")};
	w->old[2] = (struct approval) {.id = TEXT("local-3"), .agent = TEXT("rule")};
	w->n_old = 3;
	set_rules(w, &r, 1);
	turn_until(w, w->n_withdrawn > 0);
	assert_string_equal(w->withdrawn, "rule-1");
	/* Once: later ones are of this life. */
	set_rules(w, &r, 1);
	settle(w);
	assert_int_equal(w->n_withdrawn, 1);
}

TEST(a_long_event_is_cut_for_the_human)
{
	struct world *w = *state;
	struct rule r = careful(w, "x");
	char *payload = malloc(600 << 10);

	assert_non_null(payload);
	memset(payload, 'a', 600 << 10);
	memcpy(payload, "{\"b\":\"", 6);
	strcpy(payload + 500 * 1024, "\"}");
	r.prompt = TEXT("{{type}}");
	set_rules(w, &r, 1);
	happen(w, "x", "y", payload);
	free(payload);
	turn_until(w, w->n_asked == 1);
	assert_string_equal(w->asked[0].input,
			    "{\"rule\":\"careful\",\"event\":{\"type\":\"x\",\"source\":\"y\"},"
			    "\"prompt\":\"x\",\"truncated\":true}");
}

TEST(a_task_that_is_refused_is_an_error)
{
	struct world *w = *state;
	struct rule r = by_event("full", "x");

	set_rules(w, &r, 1);
	w->refuses = REFUSE_LIMIT;
	happen(w, "x", "y", NULL);
	assert_true(text_is(last_execution(w)->status, "error"));
	assert_true(text_is(last_execution(w)->error, "not now"));
	assert_string_equal(w->heard, "rule.failed {\"ruleId\":\"full\",\"eventType\":\"x\","
				      "\"status\":\"error\",\"error\":\"not now\"}");
}

/* ---- switching and running ---- */

struct told {
	unsigned n;
	int result;
	char text[ERROR_TEXT_MAX];
};

static void on_told(void *arg, int result, const struct error *error)
{
	struct told *t = arg;

	t->n++;
	t->result = result;
	snprintf(t->text, sizeof(t->text), "%s", error->text);
}

static int enable(struct world *w, const char *project, const char *rule, bool on)
{
	struct told t = {0};

	struct error error;
	int r = automation_enable(w->automation, text_of(project), text_of(rule), on, on_told, &t,
				  &error);

	assert_int_equal(t.n, 0);
	if (r != 0)
		return r;
	turn_until(w, t.n == 1);
	return t.result;
}

static int run(struct world *w, const char *rule, struct told *t)
{
	struct error error = {0};
	int r;

	*t = (struct told) {0};
	r = automation_run(w->automation, (struct text) {NULL, 0}, text_of(rule), on_told, t,
			   &error);
	if (r != 0)
		on_told(t, r, &error);
	turn_until(w, t->n == 1);
	settle(w);
	return t->result;
}

TEST(switches_outlive_a_restart)
{
	struct world *w = *state;
	struct rule r[2] = {by_event("a", "x"), by_event("b", "x")};

	r[1].disabled = true;
	set_rules(w, r, 2);
	assert_int_equal(enable(w, NULL, "nobody", true), REFUSE_NOT_FOUND);
	assert_int_equal(enable(w, NULL, "a", false), 0);
	assert_int_equal(enable(w, NULL, "b", true), 0);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
	assert_string_equal(w->tasks[0].rule, "b");
	world_restart(w);
	set_rules(w, r, 2);
	assert_false(info(w, "a")->enabled);
	assert_true(info(w, "b")->enabled);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 2);
	/* All of them. */
	assert_int_equal(enable(w, NULL, NULL, false), 0);
	world_restart(w);
	set_rules(w, r, 2);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 2);
	assert_int_equal(enable(w, NULL, NULL, true), 0);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 3);
}

TEST(a_switch_counts_before_the_rule_is_ready)
{
	struct world *w = *state;
	struct rule r = by_event("a", "x");

	r.cooldown_ms = HOUR;
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	world_restart(w);
	assert_int_equal(automation_set_rules(w->automation, TEXT(""), &r, 1, NULL, NULL), 0);
	assert_int_equal(enable(w, NULL, "a", false), 0);
	settle(w);
	assert_false(info(w, "a")->enabled);
	world_restart(w);
	set_rules(w, &r, 1);
	assert_false(info(w, "a")->enabled);
	/* And when it fired is not forgotten by that. */
	assert_int_equal(info(w, "a")->fired_ms, w->now_ms);
}

TEST(a_projects_switch_is_its_own)
{
	struct world *w = *state;
	struct rule r[2] = {by_event("here", "x"), by_event("there", "x")};
	const struct rule *rule;

	r[0].project = TEXT("/p");
	r[1].project = TEXT("/q");
	set_rules(w, r, 2);
	assert_int_equal(enable(w, "/p", NULL, false), 0);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
	assert_string_equal(w->tasks[0].project, "/q");
	rule = automation_next_rule(w->automation, TEXT("/p"), NULL);
	assert_true(rule && text_is(rule->project, "/p"));
	assert_null(automation_next_rule(w->automation, TEXT("/p"), rule));
	assert_false(automation_is_enabled(w->automation, TEXT("/p")));
	assert_true(automation_is_enabled(w->automation, TEXT("/q")));
	/* An event of one project is not the other's. */
	automation_event(w->automation, TEXT("/p"), TEXT("y"), TEXT("x"), NULL);
	settle(w);
	assert_int_equal(w->n_tasks, 1);
}

TEST(switched_off_a_schedule_misses_nothing)
{
	struct world *w = *state;
	struct rule r = by_cron("tick", "0 * * * *", "");

	r.catch_up = CATCH_UP_ALL;
	set_rules(w, &r, 1);
	assert_int_equal(enable(w, NULL, "tick", false), 0);
	assert_int_equal(info(w, "tick")->next_ms, 0);
	for (int i = 0; i < 4; i++)
		clock_to(w, ms("2026-01-01T13:00:00Z") + i * HOUR);
	assert_int_equal(enable(w, NULL, "tick", true), 0);
	world_restart(w);
	set_rules(w, &r, 1);
	assert_int_equal(w->n_tasks, 0);
}

TEST(a_rule_runs_by_hand)
{
	struct world *w = *state;
	struct rule r[2] = {by_cron("never", "0 0 30 2 *", ""), by_event("careful", "x")};
	struct told t;

	r[0].disabled = true;
	r[0].prompt = TEXT("{{type}} {{source}}");
	r[1].needs_approval = true;
	set_rules(w, r, 2);
	assert_int_equal(info(w, "never")->next_ms, 0);
	assert_int_equal(run(w, "never", &t), 0);
	assert_string_equal(w->tasks[0].prompt, "rule.run manual");
	assert_int_equal(run(w, "careful", &t), REFUSE_FORBIDDEN);
	assert_int_equal(run(w, "nobody", &t), REFUSE_NOT_FOUND);
	assert_string_equal(t.text, "Rule not found: nobody");
	w->refuses = REFUSE_LIMIT;
	assert_int_equal(run(w, "never", &t), REFUSE_UNAVAILABLE);
	assert_string_equal(t.text, "not now");
}

TEST(a_rule_run_that_cannot_be_stored_fails)
{
	struct world *w = *state;
	struct rule r = by_event("a", "x");
	struct told t = {0};

	set_rules(w, &r, 1);
	w->fail_writes = -ENOSPC;
	assert_int_equal(automation_run(w->automation, (struct text) {NULL, 0}, TEXT("a"), on_told,
					&t, NULL),
			 0);
	turn_until(w, t.n == 1);
	assert_int_equal(t.result, REFUSE_UNAVAILABLE);
	assert_string_equal(t.text, fault_words(-ENOSPC));
	assert_int_equal(w->n_tasks, 0);
	w->fail_writes = 0;
}

/* ---- rules that cannot be ---- */

TEST(bad_rules_are_told_and_left_out)
{
	struct world *w = *state;
	struct event_condition unknown = {.field = TEXT("a"), .operator= TEXT("like")};
	struct event_condition broken = {.field = TEXT("a"), .operator= TEXT("matches")};
	struct event_condition compare = {.field = TEXT("a"), .operator= TEXT("gt")};
	struct event_condition nameless = {.field = TEXT(""), .operator= TEXT("exists")};
	struct event_condition vague[3] = {compare, compare, compare};
	const struct value numbers[] = {
		{.kind = VALUE_STRING, .text = "", .len = 0},
		{.kind = VALUE_STRING,
		 .text = "0000000000000000000000000000000000000000000000000000000000000006",
		 .len = 64},
		{.kind = VALUE_TRUE}};
	const struct value text = {.kind = VALUE_STRING, .text = "a(b", .len = 3};
	struct rule good = by_event("good", "x");
	struct {
		struct rule rule;
		const char *text;
	} bad[] = {
		{by_cron("a", "61 * * * *", ""), "minute '61'"},
		{by_cron("b", "@daily", "Mars/Olympus"), "time zone not found: 'Mars/Olympus'"},
		{by_event("", "x"), "id must have 1 to"},
		{by_event("x\ny", "x"), "control"},
		{by_event("c", "x"), "unknown operator 'like'"},
		{by_event("d", "x"), "regular expression"},
		{by_event("e", "x"), "requires a number"},
		{by_event("f", "x"), "prompt is empty"},
		{by_event("g", "x"), "http://"},
		{by_event("good", "x"), "duplicate rule name 'good'"},
		{by_event("h", NULL), "regular expression"},
		{a_rule("i"), "not an absolute path"},
		{a_rule("j"), "at least 1 second"},
		{by_event("k", "x"), "requires a field"},
		{by_event("l", "x"), "requires a number"},
		{by_event("m", "x"), "requires a number"},
		{by_event("n", "x"), "requires a number"},
	};
	const struct text relative = TEXT("src");

	broken.value = &text;
	compare.value = &text;
	for (unsigned i = 4; i <= 6; i++)
		bad[i].rule.n_conditions = 1;
	for (unsigned i = 13; i <= 16; i++) {
		bad[i].rule.n_conditions = 1;
		bad[i].rule.conditions = i == 13 ? &nameless : &vague[i - 14];
	}
	for (unsigned i = 0; i < 3; i++)
		vague[i].value = &numbers[i];
	bad[4].rule.conditions = &unknown;
	bad[5].rule.conditions = &broken;
	bad[6].rule.conditions = &compare;
	bad[7].rule.prompt = TEXT("");
	bad[8].rule.action = ACTION_WEBHOOK;
	bad[8].rule.url = TEXT("file:///etc/passwd");
	bad[10].rule.pattern = TEXT("(?=x)");
	bad[11].rule.trigger = TRIGGER_FILES;
	bad[11].rule.paths = (struct texts) {&relative, 1};
	bad[12].rule.trigger = TRIGGER_EVERY;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rule rules[2] = {good, bad[i].rule};

		w->n_complaints = 0;
		set_rules(w, rules, 2);
		assert_int_equal(w->n_complaints, 1);
		if (!strstr(w->complaint, bad[i].text) ||
		    strncmp(w->complaint, "koine.conf:7: rule '", 20) != 0)
			fail_msg("%u: %s", i, w->complaint);
		assert_true(info(w, "good")->enabled);
	}
}

TEST(rules_read_again_keep_what_they_were)
{
	struct world *w = *state;
	struct rule r[2] = {by_cron("tick", "* * * * *", ""), by_event("hot", "x")};

	r[1].cooldown_ms = HOUR;
	set_rules(w, r, 2);
	happen(w, "x", "y", NULL);
	assert_int_equal(enable(w, NULL, "tick", false), 0);
	set_rules(w, r, 2);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
	assert_false(info(w, "tick")->enabled);
	assert_int_equal(info(w, "hot")->n_fired, 1);
	/* And one that is gone does nothing any more. */
	set_rules(w, r, 1);
	w->now_ms += 2 * HOUR;
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
}

/* ---- files ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static struct rule by_files(const char *dir, struct text *ret_path)
{
	static const struct text ignore[] = {TEXT(".git"), TEXT("*.tmp")};
	static const struct text extensions[] = {TEXT(".c"), TEXT(".h")};
	struct rule r = a_rule("files");

	*ret_path = text_of(dir);
	r.trigger = TRIGGER_FILES;
	r.paths = (struct texts) {ret_path, 1};
	r.ignore = (struct texts) {ignore, 2};
	r.extensions = (struct texts) {extensions, 2};
	r.debounce_ms = 100;
	r.prompt = TEXT("{{type}} {{payload.path}} {{payload.event_type}}");
	return r;
}

TEST(files_that_change_wake_a_rule_once)
{
	struct world *w = *state;
	char dir[100], sub[120], want[300], path[160];
	struct text watched;
	struct rule r;

	snprintf(dir, sizeof(dir), "%s/src", w->f->dir);
	snprintf(sub, sizeof(sub), "%s/.git", dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	r = by_files(dir, &watched);
	set_rules(w, &r, 1);
	/* One file, many changes; and those nobody wants. */
	for (int i = 0; i < 5; i++)
		write_file(dir, "a.c", "x");
	write_file(dir, "a.txt", "x");
	write_file(dir, "b.tmp", "x");
	write_file(sub, "c.c", "x");
	turn_until(w, w->n_tasks >= 1);
	settle(w);
	snprintf(want, sizeof(want), "file.create %s/a.c create", dir);
	assert_string_equal(w->tasks[0].prompt, want);
	write_file(dir, "a.c", "y");
	turn_until(w, w->n_tasks >= 2);
	snprintf(want, sizeof(want), "file.modify %s/a.c modify", dir);
	assert_string_equal(w->tasks[1].prompt, want);
	snprintf(path, sizeof(path), "%s/a.c", dir);
	unlink(path);
	turn_until(w, w->n_tasks >= 3);
	snprintf(want, sizeof(want), "file.delete %s/a.c delete", dir);
	assert_string_equal(w->tasks[2].prompt, want);
	/* A folder that came later. */
	snprintf(sub, sizeof(sub), "%s/deep", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	write_file(sub, "d.h", "x");
	turn_until(w, w->n_tasks >= 4);
	snprintf(want, sizeof(want), "file.create %s/deep/d.h create", dir);
	assert_string_equal(w->tasks[3].prompt, want);
	settle(w);
	assert_int_equal(w->n_tasks, 4);
}

TEST(a_watched_folder_may_go_and_come_back)
{
	struct world *w = *state;
	struct rule r[2];
	struct text watched;
	char dir[100];

	snprintf(dir, sizeof(dir), "%s/src", w->f->dir);
	r[0] = by_files(dir, &watched);
	r[0].debounce_ms = 0;
	r[1] = by_event("other", "x");
	/* Not there yet: the other rule goes on. */
	set_rules(w, r, 2);
	assert_int_equal(w->n_complaints, 0);
	happen(w, "x", "y", NULL);
	assert_int_equal(w->n_tasks, 1);
	for (unsigned round = 2; round <= 3; round++) {
		uint64_t end = clock_steady_ms() + WAIT_S * 1000;

		assert_int_equal(mkdir(dir, 0700), 0);
		/* Until it is looked for again nothing is seen, so it is written again and again. */
		while (w->n_tasks < round && clock_steady_ms() < end) {
			write_file(dir, "a.c", "x");
			turn_once(w);
		}
		settle(w);
		assert_true(w->n_tasks >= round);
		w->n_tasks = round;
		tempdir_remove(dir);
		for (int i = 0; i < 20; i++)
			turn_once(w);
		settle(w);
		w->n_tasks = round;
	}
}

/* ---- other actions ---- */

static void read_file(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	assert_non_null(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	fclose(f);
}

TEST(a_command_has_the_event_in_its_environment)
{
	struct world *w = *state;
	struct rule r = by_event("cmd", "x");
	char command[300], path[100], said[500];

	snprintf(path, sizeof(path), "%s/said", w->f->dir);
	snprintf(
		command, sizeof(command),
		"echo \"$KOINE_EVENT_TYPE|$KOINE_EVENT_SOURCE|$KOINE_EVENT_JSON|$KOINE_RULE\" > %s",
		path);
	r.action = ACTION_COMMAND;
	r.command = text_of(command);
	set_rules(w, &r, 1);
	happen(w, "x", "y", "{\"a\":[1]}");
	turn_until(w, n_executions(w) == 1);
	assert_true(text_is(last_execution(w)->status, "command_run"));
	read_file(path, said, sizeof(said));
	assert_string_equal(said,
			    "x|y|{\"type\":\"x\",\"source\":\"y\",\"payload\":{\"a\":[1]}}|cmd\n");
}

TEST(a_command_that_fails_is_an_error)
{
	struct world *w = *state;
	struct rule r = by_event("cmd", "x");
	struct told t;

	r.action = ACTION_COMMAND;
	r.command = TEXT("echo no >&2; exit 3");
	set_rules(w, &r, 1);
	assert_int_equal(run(w, "cmd", &t), REFUSE_UNAVAILABLE);
	assert_string_equal(t.text, "the command failed with status 3");
	assert_true(text_is(last_execution(w)->status, "error"));
}

TEST(a_stop_ends_commands)
{
	struct world *w = *state;
	struct rule r = by_event("cmd", "x");

	r.action = ACTION_COMMAND;
	r.command = TEXT("exec sleep 1000");
	w->long_actions = true;
	set_rules(w, &r, 1);
	happen(w, "x", "y", NULL);
	assert_int_equal(n_executions(w), 0);
	automation_stop(w->automation);
	assert_true(text_is(last_execution(w)->error, "koined is stopping"));
}

struct hook {
	struct http_server server;
	atomic_uint n_fails; /* how many come first */
	char body[500];
	char head[500];
};

static bool answer_hook(struct http_server_conn *c, const struct http_server_request *r)
{
	struct hook *h = (struct hook *)c->server->arg;
	unsigned fails = atomic_load(&h->n_fails);

	snprintf(h->body, sizeof(h->body), "%.*s", (int)r->body_len, r->body);
	snprintf(h->head, sizeof(h->head), "%.490s", r->head);
	if (fails > 0)
		atomic_store(&h->n_fails, fails - 1);
	http_reply(c, fails > 0 ? 503 : 204, "", "", 0);
	return true;
}

TEST(a_webhook_gets_the_event)
{
	struct world *w = *state;
	struct hook *h = calloc(1, sizeof(*h));
	struct rule r = by_event("hook", "x");
	char url[64];

	h->server.answer = answer_hook;
	h->server.arg = h;
	atomic_init(&h->n_fails, 1);
	http_server_start(&h->server, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/in", h->server.port);
	r.action = ACTION_WEBHOOK;
	r.url = text_of(url);
	set_rules(w, &r, 1);
	happen(w, "x", "y", "{\"a\":1}");
	turn_until(w, n_executions(w) == 1);
	assert_true(text_is(last_execution(w)->status, "webhook_sent"));
	assert_int_equal(atomic_load(&h->server.n_requests), 2);
	assert_string_equal(h->body, "{\"type\":\"x\",\"source\":\"y\",\"payload\":{\"a\":1}}");
	assert_non_null(strstr(h->head, "POST /in "));
	assert_non_null(strstr(h->head, "Content-Type: application/json"));
	http_server_stop(&h->server);
	free(h);
}

TEST(a_webhook_that_never_answers_well_is_an_error)
{
	struct world *w = *state;
	struct hook *h = calloc(1, sizeof(*h));
	struct rule r = by_event("hook", "x");
	struct told t;
	char url[64];

	h->server.answer = answer_hook;
	h->server.arg = h;
	atomic_init(&h->n_fails, 99);
	http_server_start(&h->server, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/in", h->server.port);
	r.action = ACTION_WEBHOOK;
	r.url = text_of(url);
	set_rules(w, &r, 1);
	assert_int_equal(run(w, "hook", &t), REFUSE_UNAVAILABLE);
	assert_string_equal(t.text, "the webhook returned HTTP 503");
	assert_int_equal(atomic_load(&h->server.n_requests), 3);
	http_server_stop(&h->server);
	free(h);
}

TEST(the_desktop_is_told_where_there_is_one)
{
	struct world *w = *state;
	struct rule r = by_event("tell", "x");
	const char *path = getenv("PATH");
	char *before = strdup(path ? path : "");
	char script[200], out[100], said[300], with[300];
	struct told t;

	r.action = ACTION_DESKTOP;
	r.message = TEXT("it is {{payload.a}}");
	set_rules(w, &r, 1);
	setenv("PATH", w->f->dir, 1);
	happen(w, "x", "y", "{\"a\":\"late\"}");
	assert_true(text_is(last_execution(w)->status, "skipped_no_desktop"));
	assert_string_equal(w->heard,
			    "rule.executed {\"ruleId\":\"tell\",\"eventType\":\"x\","
			    "\"status\":\"skipped_no_desktop\",\"message\":\"it is late\","
			    "\"error\":\"notify-send not found\"}");
	snprintf(out, sizeof(out), "%s/said", w->f->dir);
	snprintf(script, sizeof(script), "#!/bin/sh\necho \"$@\" > %s\n", out);
	write_file(w->f->dir, "notify-send", script);
	snprintf(script, sizeof(script), "%s/notify-send", w->f->dir);
	assert_int_equal(chmod(script, 0755), 0);
	snprintf(with, sizeof(with), "%s:/usr/bin:/bin", w->f->dir);
	setenv("PATH", with, 1);
	assert_int_equal(run(w, "tell", &t), 0);
	setenv("PATH", before, 1);
	read_file(out, said, sizeof(said));
	assert_string_equal(said, "--app-name=koine -- koine: tell it is {{payload.a}}\n");
	assert_true(text_is(last_execution(w)->status, "notified"));
	free(before);
}

/* ---- the log ---- */

TEST(the_log_keeps_the_last_hundred)
{
	struct world *w = *state;
	struct rule r = by_event("r", "x");
	const struct rule_execution *log;
	struct told t;
	unsigned n;

	set_rules(w, &r, 1);
	for (int i = 0; i < 103; i++)
		assert_int_equal(run(w, "r", &t), 0);
	automation_recent(w->automation, (struct text) {NULL, 0}, &log, &n);
	assert_int_equal(n, 100);
	assert_true(text_is(log[0].task, "task-0003"));
	assert_true(text_is(log[99].task, "task-0102"));
	automation_recent(w->automation, TEXT("/elsewhere"), &log, &n);
	assert_int_equal(n, 0);
}

TEST(the_log_of_no_project_is_found_behind_long_entries_of_others)
{
	enum { OUTPUT = 200 << 10, OTHERS = 30, ARENA = 2 << 20 };
	struct world *w = *state;
	char *output = calloc(1, OUTPUT);
	struct rule_execution *log;
	struct arena a;
	unsigned n;

	assert_non_null(output);
	memset(output, 'x', OUTPUT);
	publish(w, "rule.executed", "ours");
	for (unsigned i = 0; i < OTHERS; i++) {
		struct publish p = {.type = "rule.executed",
				    .run = "theirs",
				    .project = TEXT("/p"),
				    .output = {output, OUTPUT}};

		publish_this(w, &p);
	}
	arena_init(&a, ARENA);
	assert_int_equal(automation_log_read(w->automation, 0, &a, TEXT(""), 10, &log, &n), 0);
	assert_int_equal(n, 1);
	assert_true(text_is(log[0].task, "ours"));
	arena_done(&a);
	free(output);
}

/* A repository with many such expressions: each event has its bound, and our own rules have theirs. */
TEST(expressions_of_a_project_have_a_bound_for_each_event)
{
	struct world *w = *state;
	const uint64_t *steps = w->automation->steps;
	static char text[PATTERN_TEXT_MAX];
	struct value costly = {.kind = VALUE_STRING, .text = "(a?){60}a{60}c", .len = 14};
	struct value cheap = {.kind = VALUE_STRING, .text = "a$", .len = 2};
	struct event_condition c[] = {{TEXT("payload.s"), TEXT("matches"), &costly},
				      {TEXT("payload.s"), TEXT("matches"), &cheap}};
	struct rule theirs[20], ours = by_event("ours", "x");
	struct object_builder payload;
	struct arena a;

	for (unsigned i = 0; i < 20; i++) {
		static char ids[20][8];

		snprintf(ids[i], sizeof(ids[i]), "r%u", i);
		theirs[i] = by_event(ids[i], "x");
		theirs[i].project = TEXT("/p");
		theirs[i].conditions = &c[i == 19];
		theirs[i].n_conditions = 1;
	}
	ours.conditions = &c[1];
	ours.n_conditions = 1;
	assert_int_equal(automation_set_rules(w->automation, TEXT("/p"), theirs, 20, NULL, NULL),
			 0);
	set_rules(w, &ours, 1);
	memset(text, 'a', sizeof(text));
	arena_init(&a, 1 << 20);
	object_begin(&payload, &a);
	object_text(&payload, "s", (struct text) {text, sizeof(text)});
	automation_event(w->automation, TEXT("/p"), TEXT("y"), TEXT("x"), payload.root);
	/* Before anything else happens. */
	assert_int_equal(steps[1], 0);
	assert_in_range(steps[0], 1, EVENT_STEPS - 1);
	settle(w);
	/* The cheap one came when nothing was left; ours was not concerned. */
	assert_int_equal(w->n_tasks, 1);
	assert_string_equal(w->tasks[0].rule, "ours");
	/* The next event has as many again. */
	object_begin(&payload, &a);
	object_text(&payload, "s", TEXT("aa"));
	automation_event(w->automation, TEXT("/p"), TEXT("y"), TEXT("x"), payload.root);
	settle(w);
	assert_int_equal(w->n_tasks, 3);
	arena_done(&a);
}

/* ---- limits ---- */

/* A rule in which one member is beyond its limit, or what it must not be. */
struct rule_row {
	const char *field; /* NULL: the rule is valid */
	struct rule rule;
};

static void check_rules(const struct rule_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct rule r = rows[i].rule;
		struct error error = {0};
		int e;

		if (!r.id.data)
			r.id = TEXT("r");
		if (r.action == ACTION_TASK && !r.prompt.data)
			r.prompt = TEXT("p");
		e = automation_check_rule(&r, &error);
		if (rows[i].field ? e <= 0 || strcmp(error.field, rows[i].field) != 0 : e != 0)
			fail_msg("row %zu: %d, %s, %s", i, e, error.field, error.text);
	}
}

TEST(rule_limits_are_exact_and_a_refusal_names_the_field)
{
	static char big[(1 << 20) + 1];
	static struct text paths[17], names[65];
	static struct event_condition conditions[33];
	const struct text path = TEXT("/a"), nul = {"a\0b", 3}, nul_path = {"/\0b", 3};
	const struct text relative = TEXT("a"), none = {0};
	const struct rule_row rows[] = {
		{NULL, {.trigger = TRIGGER_EVENT, .id = {big, 128}}},
		{"id", {.trigger = TRIGGER_EVENT, .id = {big, 129}}},
		{"id", {.trigger = TRIGGER_EVENT, .id = {"", 0}}},
		{"id", {.trigger = TRIGGER_EVENT, .id = TEXT("a\x1f")}},
		{NULL, {.trigger = TRIGGER_EVENT, .id = TEXT("a b")}},
		{"project", {.trigger = TRIGGER_EVENT, .project = nul}},
		{NULL, {.trigger = TRIGGER_EVENT, .conditions = conditions, .n_conditions = 32}},
		{"conditions",
		 {.trigger = TRIGGER_EVENT, .conditions = conditions, .n_conditions = 33}},
		{NULL, {.trigger = TRIGGER_EVENT, .cooldown_ms = 0}},
		{"cooldown", {.trigger = TRIGGER_EVENT, .cooldown_ms = -1}},
		{"watch", {.trigger = TRIGGER_FILES}},
		{"watch", {.trigger = TRIGGER_FILES, .paths = {&none, 1}}},
		{"watch", {.trigger = TRIGGER_FILES, .paths = {&relative, 1}}},
		{"watch", {.trigger = TRIGGER_FILES, .paths = {&nul_path, 1}}},
		{NULL, {.trigger = TRIGGER_FILES, .paths = {paths, 16}}},
		{"watch", {.trigger = TRIGGER_FILES, .paths = {paths, 17}}},
		{NULL, {.trigger = TRIGGER_FILES, .paths = {&path, 1}, .ignore = {names, 64}}},
		{"watch", {.trigger = TRIGGER_FILES, .paths = {&path, 1}, .ignore = {names, 65}}},
		{NULL, {.trigger = TRIGGER_FILES, .paths = {&path, 1}, .extensions = {names, 64}}},
		{"watch",
		 {.trigger = TRIGGER_FILES, .paths = {&path, 1}, .extensions = {names, 65}}},
		{NULL, {.trigger = TRIGGER_FILES, .paths = {&path, 1}, .debounce_ms = 0}},
		{"debounce", {.trigger = TRIGGER_FILES, .paths = {&path, 1}, .debounce_ms = -1}},
		{NULL, {.trigger = TRIGGER_CRON, .cron = {"* * * * *", 9}}},
		{"zone", {.trigger = TRIGGER_CRON, .cron = {"* * * * *", 9}, .zone = nul}},
		{"cron", {.trigger = TRIGGER_CRON, .cron = {"* * * *\0*", 9}}},
		{"priority", {.trigger = TRIGGER_EVENT, .priority = INFINITY}},
		{NULL, {.trigger = TRIGGER_EVENT, .prompt = {big, 1 << 20}}},
		{"prompt", {.trigger = TRIGGER_EVENT, .prompt = {big, (1 << 20) + 1}}},
		{"prompt", {.trigger = TRIGGER_EVENT, .prompt = nul}},
		{"prompt", {.trigger = TRIGGER_EVENT, .prompt = {"", 0}}},
		{"command", {.trigger = TRIGGER_EVENT, .action = ACTION_COMMAND}},
		{"webhook",
		 {.trigger = TRIGGER_EVENT, .action = ACTION_WEBHOOK, .url = TEXT("ftp://x")}},
		{"webhook",
		 {.trigger = TRIGGER_EVENT, .action = ACTION_WEBHOOK, .url = TEXT("http://")}},
	};

	memset(big, 'a', sizeof(big));
	for (int i = 0; i < 65; i++) {
		names[i] = TEXT(".c");
		paths[i < 17 ? i : 0] = TEXT("/a");
		conditions[i < 33 ? i : 0] =
			(struct event_condition) {.field = TEXT("type"), .operator= TEXT("exists")};
	}
	check_rules(rows, sizeof(rows) / sizeof(rows[0]));
}
