/* koine task watch: what runs, what waits and what has ended, redrawn continually. */
#include <unistd.h>

#include "base/clock.h"
#include "cli/screen/live.h"
#include "cli/task/task.h"

enum { EVERY_MS = 1000, TASKS_MAX = 200, ENDED_MAX = 50, GROUP_WIDTH = 10 };

/* The three requests. */
enum part { RUNNING, QUEUED, NEWEST, N_PARTS };

struct tasks_watch {
	struct live_view live;
	struct live_part parts[N_PARTS];
	/* of the current frame */
	struct rows rows;
	unsigned n_hidden;
};

/* ---- asking ---- */

static void add_scope(void *arg, struct koine_json *params)
{
	const struct tasks_watch *w = arg;
	const struct task_options *o = w->live.cli->own;

	task_scope(w->live.cli, params);
	params_add(params, "group", o->group);
}

/* An event says when tasks come and go, but nothing says when one prints. */
static const struct live_row parts[N_PARTS] = {
	[RUNNING] = {"task.find",
		     {{"state", "\"running\""}, {"lines", "true"}},
		     TASKS_MAX,
		     add_scope,
		     {"task."},
		     EVERY_MS,
		     .polled = "tasks",
		     .needed = true},
	[QUEUED] = {"task.find",
		    {{"state", "\"queued\""}, {"lines", "false"}},
		    TASKS_MAX,
		    add_scope,
		    {"task."},
		    EVERY_MS,
		    .needed = true},
	[NEWEST] = {"task.find",
		    {{"lines", "true"}},
		    ENDED_MAX,
		    add_scope,
		    {"task."},
		    EVERY_MS,
		    .needed = true},
};

/* ---- drawing ---- */

static void draw_counts(struct tasks_watch *w)
{
	static const char *const states[] = {"running", "queued", "completed", "failed",
					     "cancelled"};
	const struct koine_value *counts = live_member(&w->parts[NEWEST], "counts");
	char line[160];
	int n = 0;

	if (!rows_begin(&w->rows))
		return;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%s%lld %s", i > 0 ? "  " : "",
			      (long long)member_number(counts, states[i]), states[i]);
	canvas_style(w->rows.canvas, w->rows.canvas->color ? STYLE_BOLD : STYLE_PLAIN);
	canvas_print(w->rows.canvas, (struct text) {.data = line, .len = (size_t)n});
	(void)rows_begin(&w->rows);
}

bool task_draw(struct rows *r, const struct koine_value *task, struct text where, unsigned width)
{
	bool waits = member_is(task, "state", "queued");
	char span[SPAN_SHOWN], reason[WAITS_SHOWN];
	const struct live_work work = {
		.id = member_text(task, "id"),
		.state = task_state(task),
		.color = task_color(task),
		.span = span,
		.where = where,
		.where_width = width,
		.title = member_text(task, "prompt"),
	};

	task_span(task, span);
	if (waits)
		duration_format(clock_utc_ms() - member_time(task, "created_at"), span);
	if (!rows_work(r, &work))
		return false;
	task_waits(task, reason);
	if (waits || member_is(task, "state", "running"))
		rows_below(r, waits ? text_of(reason) : member_text(task, "last_line"));
	return true;
}

static void draw_task(struct tasks_watch *w, const struct koine_value *task)
{
	struct text group = member_text(task, "group");

	w->n_hidden += !task_draw(&w->rows, task, group, group.data ? GROUP_WIDTH : 0);
}

static bool has_ended(const struct koine_value *task)
{
	return !member_is(task, "state", "queued") && !member_is(task, "state", "running");
}

static void draw_part(struct tasks_watch *w, enum part part)
{
	const struct koine_value *tasks = live_member(&w->parts[part], "tasks");
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

static bool is_empty(const struct tasks_watch *w)
{
	return !koine_value_first(live_member(&w->parts[NEWEST], "tasks"));
}

static void draw(void *arg, struct canvas *c)
{
	struct tasks_watch *w = arg;
	char hidden[64];

	if (!w->parts[NEWEST].doc)
		return;
	c->read = glyph_read;
	w->rows = (struct rows) {.canvas = c, .end = c->rows - 1};
	w->n_hidden = 0;
	draw_counts(w);
	for (int i = 0; i < N_PARTS; i++)
		draw_part(w, (enum part)i);
	if (is_empty(w))
		rows_below(&w->rows, TEXT("no tasks"));
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
	struct tasks_watch *w = arg;

	w->live.leave = key == 'q' || key == 'Q';
}

int cmd_task_watch(struct cli *cli)
{
	static const struct option_list types = {.values = {"task.*"}, .n = 1};
	struct tasks_watch w = {
		.live = {.cli = cli,
			 .arg = &w,
			 .types = &types,
			 .parts = w.parts,
			 .n_parts = N_PARTS,
			 .key = on_key,
			 .draw = draw},
	};

	if (cli->n_args > 0)
		return task_watch_one(cli);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail_with(
			EX_USAGE,
			"task watch without ID requires a terminal; use koine task list instead");
	for (int i = 0; i < N_PARTS; i++)
		w.parts[i] = (struct live_part) {.row = &parts[i], .arg = &w};
	return live_run(&w.live);
}
