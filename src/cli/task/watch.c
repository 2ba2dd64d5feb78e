/* koine task watch: what runs, what waits and what has ended, redrawn continually. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/kit/talk.h"
#include "cli/screen/live.h"
#include "cli/task/task.h"

enum { EVERY_MS = 1000, TASKS_MAX = 200, ENDED_MAX = 50 };

/* The three requests. */
enum part { RUNNING, QUEUED, NEWEST, N_PARTS };

struct watch;

struct question {
	struct watch *watch;
	struct koine_doc *doc; /* the last answer; NULL: none yet */
};

struct watch {
	struct live live;
	struct question parts[N_PARTS];
	unsigned n_open; /* requests without an answer */
	bool stale;      /* something has changed since they were sent */
	uint64_t next_ms;
	/* of the current frame */
	struct canvas *canvas;
	unsigned row; /* the next */
	unsigned n_hidden;
};

/* ---- asking ---- */

static void on_answer(void *arg, int result, const struct koine_answer *a)
{
	struct question *q = arg;
	struct watch *w = q->watch;
	struct koine_doc *doc;

	if (w->n_open > 0)
		w->n_open--;
	if (!live_took(&w->live, "task.find", result, a))
		return;
	doc = doc_of_value(koine_answer_result(a));
	if (!doc)
		return;
	koine_doc_free(q->doc);
	q->doc = doc;
	w->live.changed = w->n_open == 0;
}

static bool ask_part(struct watch *w, enum part part)
{
	static const char *const states[] = {[RUNNING] = "running", [QUEUED] = "queued", NULL};
	const struct task_options *o = w->live.cli->own;
	struct koine_json *j = task_params(w->live.cli);

	params_add(j, "state", states[part]);
	params_add(j, "group", o->group);
	params_add_bool(j, "lines", part != QUEUED);
	params_add_int(j, "limit", part == NEWEST ? ENDED_MAX : TASKS_MAX);
	w->n_open++;
	return live_call(&w->live, "task.find", j, on_answer, &w->parts[part]);
}

static bool runs_any(const struct watch *w)
{
	return member_first(koine_doc_root(w->parts[RUNNING].doc), "tasks") != NULL;
}

/* An event says when tasks come and go, but nothing says when one prints. */
static int ask(void *arg)
{
	struct watch *w = arg;
	uint64_t now = clock_steady_ms();

	if (w->n_open > 0 || (!w->stale && !runs_any(w)))
		return LIVE_NEVER;
	if (now < w->next_ms)
		return (int)(w->next_ms - now);
	w->stale = false;
	w->next_ms = now + EVERY_MS;
	for (int i = 0; i < N_PARTS; i++) {
		if (!ask_part(w, (enum part)i))
			break;
	}
	return EVERY_MS;
}

static void on_back(void *arg)
{
	struct watch *w = arg;

	w->stale = true;
	w->next_ms = 0;
}

static void on_away(void *arg)
{
	struct watch *w = arg;

	w->n_open = 0;
}

static void on_told(void *arg, const struct koine_value *event)
{
	struct watch *w = arg;

	w->stale = true;
}

/* ---- drawing ---- */

static bool begin_row(struct watch *w)
{
	if (w->row + 1 >= w->canvas->rows)
		return false;
	canvas_row(w->canvas, w->row++);
	return true;
}

static void put(struct watch *w, struct text text, unsigned width)
{
	canvas_put(w->canvas, text, width);
}

static void draw_counts(struct watch *w)
{
	static const char *const states[] = {"running", "queued", "completed", "failed",
					     "cancelled"};
	const struct koine_value *counts =
		koine_value_get(koine_doc_root(w->parts[NEWEST].doc), "counts");
	char line[160];
	int n = 0;

	if (!begin_row(w))
		return;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%s%lld %s", i > 0 ? "  " : "",
			      (long long)member_number(counts, states[i]), states[i]);
	canvas_style(w->canvas, w->canvas->color ? STYLE_BOLD : STYLE_PLAIN);
	canvas_print(w->canvas, (struct text) {.data = line, .len = (size_t)n});
	(void)begin_row(w);
}

static void draw_below(struct watch *w, struct text text)
{
	if (text.len == 0 || !begin_row(w))
		return;
	put(w, TEXT(""), 3);
	canvas_style(w->canvas, STYLE_COLOR(COLOR_GREY));
	canvas_print(w->canvas, text);
}

static void draw_task(struct watch *w, const struct koine_value *task)
{
	bool waits = member_is(task, "state", "queued");
	char span[SPAN_SHOWN];
	char reason[WAITS_SHOWN];

	if (!begin_row(w)) {
		w->n_hidden++;
		return;
	}
	task_span(task, span);
	if (waits)
		duration_format(clock_utc_ms() - member_time(task, "created_at"), span);
	put(w, member_text(task, "id"), 9);
	canvas_style(w->canvas, STYLE_COLOR(task_color(task)));
	put(w, task_state(task), 9);
	canvas_style(w->canvas, STYLE_PLAIN);
	put(w, text_of(span), 6);
	put(w, member_text(task, "group"), member_text(task, "group").data ? 10 : 0);
	put(w, member_text(task, "prompt"), w->canvas->room);
	if (waits) {
		task_waits(task, reason);
		draw_below(w, text_of(reason));
	} else if (member_is(task, "state", "running")) {
		draw_below(w, member_text(task, "last_line"));
	}
}

static bool has_ended(const struct koine_value *task)
{
	return !member_is(task, "state", "queued") && !member_is(task, "state", "running");
}

static void draw_part(struct watch *w, enum part part)
{
	const struct koine_value *tasks =
		koine_value_get(koine_doc_root(w->parts[part].doc), "tasks");
	const struct koine_value *task = koine_value_first(tasks);
	const struct koine_value *queued[TASKS_MAX];
	size_t n = part == QUEUED ? task_in_order(tasks, queued, TASKS_MAX) : 0;

	for (size_t i = 0; i < n; i++)
		draw_task(w, queued[i]);
	for (; task && part != QUEUED; task = koine_value_next(task)) {
		if (part != NEWEST || has_ended(task))
			draw_task(w, task);
	}
}

static bool is_empty(const struct watch *w)
{
	return !member_first(koine_doc_root(w->parts[NEWEST].doc), "tasks");
}

static void draw(void *arg, struct canvas *c)
{
	struct watch *w = arg;
	char hidden[64];

	if (!w->parts[NEWEST].doc)
		return;
	c->read = glyph_read;
	w->canvas = c;
	w->row = 0;
	w->n_hidden = 0;
	draw_counts(w);
	for (int i = 0; i < N_PARTS; i++)
		draw_part(w, (enum part)i);
	if (is_empty(w))
		draw_below(w, TEXT("no tasks"));
	canvas_row(c, c->rows - 1);
	if (w->n_hidden > 0) {
		snprintf(hidden, sizeof(hidden), "… and %u more  ", w->n_hidden);
		canvas_print_str(c, hidden);
	}
	canvas_style(c, STYLE_COLOR(COLOR_GREY));
	canvas_print_str(c, w->live.here ? "q quit" : live_away_words(&w->live));
}

static void on_key(void *arg, int key)
{
	struct watch *w = arg;

	w->live.leave = key == 'q' || key == 'Q';
}

int cmd_task_watch(struct cli *cli)
{
	static const struct option_list types = {.values = {"task.*"}, .n = 1};
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

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		complain("task watch requires a terminal; use koine task list instead");
		return EX_USAGE;
	}
	for (int i = 0; i < N_PARTS; i++)
		w.parts[i].watch = &w;
	r = live_run(&w.live);
	for (int i = 0; i < N_PARTS; i++)
		koine_doc_free(w.parts[i].doc);
	return r;
}
