/* koine top: its calls. */
#include "cli/top/top.h"

#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/kit/value.h"

enum { TODAY_MAX = 1000, SECOND = 1000 };

/* ---- the parts ---- */

static void names_params(struct koine_json *j)
{
	params_add_bool(j, "names", true);
}

static void running_params(struct koine_json *j)
{
	params_add(j, "state", "running");
	params_add_bool(j, "lines", true);
	params_add_int(j, "limit", TOP_LIST_MAX);
}

static void queued_params(struct koine_json *j)
{
	params_add(j, "state", "queued");
	params_add_int(j, "limit", TOP_LIST_MAX);
}

static void sessions_params(struct koine_json *j)
{
	params_add(j, "status", "running");
	params_add_int(j, "limit", TOP_LIST_MAX);
}

static void waiting_params(struct koine_json *j)
{
	params_add(j, "status", "waiting_input");
	params_add_int(j, "limit", TOP_LIST_MAX);
}

static void today_params(struct koine_json *j)
{
	params_add(j, "archived", "any");
	params_add_int(j, "limit", TODAY_MAX);
}

static const struct part_row {
	const char *method;
	void (*params)(struct koine_json *j); /* NULL: none */
	/* Those whose type begins so change it; NULL: none does. */
	const char *events;
	const char *other_events;
	int least_ms; /* between two requests */
	int most_ms;  /* the same, if nothing is told; 0: it stays */
} rows[N_TOP_PARTS] = {
	[TOP_STATUS] = {"daemon.status", NULL, NULL, NULL, SECOND, 2 * SECOND},
	[TOP_FIGURES] = {"daemon.metrics", NULL, NULL, NULL, SECOND, 5 * SECOND},
	[TOP_AGENTS] = {"chat.agents", names_params, NULL, NULL, SECOND, 60 * SECOND},
	[TOP_MEMORY] = {"memory.stats", NULL, "memory.", NULL, 2 * SECOND, 0},
	[TOP_RUNNING] = {"task.find", running_params, "task.", NULL, SECOND, 0},
	[TOP_QUEUED] = {"task.find", queued_params, "task.", NULL, SECOND, 0},
	[TOP_SESSIONS] = {"session.list", sessions_params, "session.status", "agent.", SECOND, 0},
	[TOP_WAITING] = {"session.list", waiting_params, "session.status", "agent.", SECOND, 0},
	/* Also at midnight. */
	[TOP_TODAY] = {"session.list", today_params, "session.status", NULL, 30 * SECOND,
		       600 * SECOND},
};

const struct koine_value *top_list(const struct top *t, enum top_part part, const char *member)
{
	return koine_value_get(koine_doc_root(t->answers[part].doc), member);
}

/* ---- answers ---- */

static void keep(struct top_answer *answer, const struct koine_value *result)
{
	koine_doc_free(answer->doc);
	answer->doc = result ? doc_of_value(result) : NULL;
}

static void take(struct top *t, struct top_answer *answer, const struct koine_value *result)
{
	if (answer == &t->answers[TOP_FIGURES])
		top_count(t, result);
	else if (answer == &t->answers[TOP_TODAY])
		top_add_costs(t, koine_value_get(result, "sessions"), TODAY_MAX);
	else
		keep(answer, result);
	if (answer == &t->answers[TOP_SESSIONS] || answer == &t->answers[TOP_WAITING])
		top_ask_lines(t, koine_value_get(result, "sessions"));
}

/* A koined that does not know the method leaves its part empty. */
static void on_answer(void *arg, int result, const struct koine_answer *a)
{
	struct top_answer *answer = arg;
	struct top *t = answer->top;

	answer->open = false;
	if (t->live.screen.leave)
		return;
	if (live_is_loss(result, a))
		live_lost(&t->live);
	else
		take(t, answer, result == 0 ? koine_answer_result(a) : NULL);
	t->live.changed = true;
}

static bool runs_any(const struct top *t)
{
	return koine_value_first(top_list(t, TOP_RUNNING, "tasks")) != NULL;
}

/* When it is to be asked for next; nothing tells when a task prints. */
static uint64_t due_ms(const struct top *t, enum top_part part)
{
	const struct top_answer *a = &t->answers[part];
	bool soon = a->stale || (part == TOP_RUNNING && runs_any(t));

	if (a->open || (!soon && rows[part].most_ms == 0))
		return UINT64_MAX;
	if (a->asked_ms == 0)
		return 0;
	return a->asked_ms + (uint64_t)(soon ? rows[part].least_ms : rows[part].most_ms);
}

static bool ask_part(struct top *t, enum top_part part, uint64_t now)
{
	struct top_answer *a = &t->answers[part];
	struct koine_json *j = params_new();

	if (rows[part].params)
		rows[part].params(j);
	a->stale = false;
	a->open = true;
	a->asked_ms = now;
	/* Calls of a connection are answered in turn: these are counted when that one is. */
	if (part == TOP_FIGURES)
		t->calls_asked = t->live.n_calls;
	return live_call(&t->live, rows[part].method, j, on_answer, a);
}

static int ask(void *arg)
{
	struct top *t = arg;
	uint64_t now = clock_steady_ms();
	uint64_t next = now + LIVE_NEVER;

	inbox_ask(&t->inbox);
	for (int i = 0; i < N_TOP_PARTS && t->live.here; i++) {
		if (due_ms(t, (enum top_part)i) <= now && !ask_part(t, (enum top_part)i, now))
			break;
		if (due_ms(t, (enum top_part)i) < next)
			next = due_ms(t, (enum top_part)i);
	}
	return next > now ? (int)(next - now) : 0;
}

/* ---- what the live view tells ---- */

static void on_back(void *arg)
{
	struct top *t = arg;

	inbox_back(&t->inbox);
	for (int i = 0; i < N_TOP_PARTS; i++)
		t->answers[i] =
			(struct top_answer) {.top = t, .doc = t->answers[i].doc, .stale = true};
	/* Its counters begin at nothing. */
	t->now = t->before = (struct top_figures) {0};
}

static void on_away(void *arg)
{
	struct top *t = arg;

	inbox_away(&t->inbox);
	for (int i = 0; i < N_TOP_PARTS; i++)
		t->answers[i].open = false;
}

static bool is_begun(struct text type, const char *with)
{
	return with && text_begins(type, text_of(with));
}

static void on_told(void *arg, const struct koine_value *event)
{
	struct text type = member_string(event, "type");
	struct top *t = arg;

	inbox_told(&t->inbox, event);
	top_take_line(t, event);
	for (int i = 0; i < N_TOP_PARTS; i++) {
		if (is_begun(type, rows[i].events) || is_begun(type, rows[i].other_events))
			t->answers[i].stale = true;
	}
}

static void on_key(void *arg, int key)
{
	struct top *t = arg;

	inbox_key(&t->inbox, key);
}

/* ---- the command ---- */

static int cmd_top(struct cli *cli)
{
	static const struct option_list types = {
		.values = {"approval.*", "task.*", "session.*", "memory.*", "agent.*"}, .n = 5};
	struct top t = {
		.live = {.cli = cli,
			 .arg = &t,
			 .types = &types,
			 .back = on_back,
			 .away = on_away,
			 .told = on_told,
			 .ask = ask,
			 .key = on_key,
			 .draw = top_draw},
	};
	int r;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		complain("top requires a terminal; use koine status instead");
		return EX_USAGE;
	}
	for (int i = 0; i < N_TOP_PARTS; i++)
		t.answers[i].top = &t;
	inbox_init(&t.inbox, &t.live, NULL);
	r = live_run(&t.live);
	inbox_done(&t.inbox);
	for (int i = 0; i < N_TOP_PARTS; i++)
		koine_doc_free(t.answers[i].doc);
	return r;
}

const struct command top_commands[] = {
	{"top", "", "Watch agents, tasks and approvals live",
	 "Shows agents, running tasks and sessions with their last line, the queue, rates, memory "
	 "use and today's cost. You can decide pending approvals on this screen. Keys: arrows, j "
	 "and k "
	 "move; a approves; d denies with a comment; r answers a question; v shows the whole "
	 "request; g approves for the rest of the session; q quits. The screen reconnects when "
	 "koined restarts.\n",
	 cmd_top, NO_ARGS, .examples = {"koine top", "koine top --color never"}},
	{NULL},
};
