/* koine task watch: what runs, what waits and what has ended, redrawn continually. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/screen.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

enum { EVERY_MS = 500, TASKS_MAX = 200, ENDED_MAX = 50 };

/* The three requests of a round. */
enum part { RUNNING, QUEUED, NEWEST, N_PARTS };

struct watch;

struct question {
	struct watch *watch;
	struct koine_doc *doc; /* the last answer; NULL: none yet */
};

struct watch {
	struct cli *cli;
	struct screen screen;
	struct question parts[N_PARTS];
	unsigned n_open; /* requests without an answer */
	uint64_t next_ms;
	/* of the current frame */
	unsigned columns;
	unsigned rows_left;
	struct screen_row row;
	unsigned n_hidden;
};

/* ---- asking ---- */

static void fail(struct watch *w, int result, const struct koine_answer *a)
{
	screen_fail(&w->screen, EXIT_ERROR_ANSWER);
	w->screen.status = talk_failed(w->cli->client, "task.find", result, a);
}

static void on_answer(void *arg, int result, const struct koine_answer *a)
{
	struct question *q = arg;
	struct watch *w = q->watch;
	struct koine_doc *doc;

	w->n_open--;
	if (w->screen.leave)
		return;
	if (result != 0) {
		fail(w, result, a);
		return;
	}
	doc = doc_of_value(koine_answer_result(a));
	if (!doc)
		return;
	koine_doc_free(q->doc);
	q->doc = doc;
}

static int ask_part(struct watch *w, enum part part)
{
	static const char *const states[] = {[RUNNING] = "running", [QUEUED] = "queued", NULL};
	const struct task_options *o = w->cli->own;
	struct koine_json *j = task_params(w->cli);
	int r;

	params_add(j, "state", states[part]);
	params_add(j, "group", o->group);
	params_add_bool(j, "lines", part != QUEUED);
	params_add_int(j, "limit", part == NEWEST ? ENDED_MAX : TASKS_MAX);
	r = call_async(w->cli->client, "task.find", j, on_answer, &w->parts[part], NULL);
	w->n_open += r == 0;
	return r;
}

static void ask(struct watch *w)
{
	w->next_ms = clock_steady_ms() + EVERY_MS;
	for (int i = 0; i < N_PARTS && w->screen.status == 0; i++) {
		int r = ask_part(w, (enum part)i);

		if (r != 0 && w->screen.status == 0)
			fail(w, r, NULL);
	}
}

/* ---- drawing ---- */

static bool begin_row(struct watch *w)
{
	if (w->rows_left == 0)
		return false;
	w->rows_left--;
	w->row.room = w->columns;
	screen_begin_row();
	return true;
}

static void put(struct watch *w, struct text text, unsigned width)
{
	screen_put(&w->row, text, width);
}

static void put_rest(struct watch *w, struct text text)
{
	print_fitting(stdout, text, w->row.room);
	w->row.room = 0;
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
	print_style(w->cli, style_bold);
	put_rest(w, (struct text) {.data = line, .len = (size_t)n});
	screen_end_row();
	if (begin_row(w))
		screen_end_row();
}

/* Why a queued task waits; "" when it only waits for others ahead of it. */
static void say_wait(const struct koine_value *task, char *out, size_t size)
{
	int64_t until = member_time(task, "not_before") - clock_utc_ms();
	const struct koine_value *after = member_first(task, "after");
	char span[SPAN_SHOWN];
	size_t n = 0;

	out[0] = '\0';
	if (until > 0) {
		duration_format(until, span);
		snprintf(out, size, "begins in %s", span);
		return;
	}
	for (; after && n + TASK_ID_MAX < size; after = koine_value_next(after)) {
		struct text id = text_of_value(after);

		if (id.len > TASK_ID_MAX)
			id.len = TASK_ID_MAX;
		n += (size_t)snprintf(out + n, size - n, "%s%.*s", n > 0 ? " " : "after ",
				      TEXT_ARGS(id));
	}
}

static void draw_below(struct watch *w, struct text text)
{
	if (text.len == 0 || !begin_row(w))
		return;
	put(w, TEXT(""), 3);
	print_style(w->cli, color_begin(COLOR_GREY));
	put_rest(w, text);
	screen_end_row();
}

static void draw_task(struct watch *w, const struct koine_value *task)
{
	bool waits = member_is(task, "state", "queued");
	char span[SPAN_SHOWN];
	char why[4 * TASK_ID_MAX];

	if (!begin_row(w)) {
		w->n_hidden++;
		return;
	}
	task_span(task, span);
	if (waits)
		duration_format(clock_utc_ms() - member_time(task, "created_at"), span);
	put(w, member_text(task, "id"), 9);
	print_style(w->cli, color_begin(task_color(task)));
	put(w, task_state(task), 9);
	print_plain(w->cli);
	put(w, text_of(span), 6);
	put(w, member_text(task, "group"), member_text(task, "group").data ? 10 : 0);
	put(w, member_text(task, "prompt"), w->row.room);
	screen_end_row();
	if (waits) {
		say_wait(task, why, sizeof(why));
		draw_below(w, text_of(why));
	} else if (member_is(task, "state", "running")) {
		draw_below(w, member_text(task, "last_line"));
	}
}

static double priority_of(const struct koine_value *task)
{
	double p = 0;

	koine_value_double(koine_value_get(task, "priority"), &p);
	return p;
}

/* In the order in which they will start. */
static int by_order(const void *a, const void *b)
{
	const struct koine_value *x = *(const struct koine_value *const *)a;
	const struct koine_value *y = *(const struct koine_value *const *)b;
	double by_priority = priority_of(y) - priority_of(x);
	int64_t by_time = member_time(x, "created_at") - member_time(y, "created_at");

	if (by_priority != 0)
		return by_priority > 0 ? 1 : -1;
	return (by_time > 0) - (by_time < 0);
}

static bool has_ended(const struct koine_value *task)
{
	return !member_is(task, "state", "queued") && !member_is(task, "state", "running");
}

static void draw_part(struct watch *w, enum part part)
{
	const struct koine_value *found[TASKS_MAX];
	const struct koine_value *task = member_first(koine_doc_root(w->parts[part].doc), "tasks");
	unsigned n = 0;

	for (; task && n < TASKS_MAX; task = koine_value_next(task)) {
		if (part != NEWEST || has_ended(task))
			found[n++] = task;
	}
	if (part == QUEUED)
		qsort(found, n, sizeof(found[0]), by_order);
	for (unsigned i = 0; i < n; i++)
		draw_task(w, found[i]);
}

static bool is_empty(const struct watch *w)
{
	return !member_first(koine_doc_root(w->parts[NEWEST].doc), "tasks");
}

static void draw(void *arg)
{
	struct watch *w = arg;
	unsigned rows;

	if (!w->parts[NEWEST].doc)
		return;
	screen_size(&w->columns, &rows);
	w->rows_left = rows > 1 ? rows - 1 : 1;
	w->n_hidden = 0;
	fputs("\033[H", stdout);
	draw_counts(w);
	for (int i = 0; i < N_PARTS; i++)
		draw_part(w, (enum part)i);
	if (is_empty(w))
		draw_below(w, TEXT("no tasks"));
	fputs("\033[J", stdout);
	if (w->n_hidden > 0)
		printf("… and %u more", w->n_hidden);
	fflush(stdout);
}

/* ---- the round ---- */

static int time_left(const struct watch *w)
{
	uint64_t now = clock_steady_ms();

	if (w->n_open > 0)
		return 1000;
	return now < w->next_ms ? (int)(w->next_ms - now) : 0;
}

static void on_key(void *arg, char key)
{
	struct watch *w = arg;

	w->screen.leave = key == 'q' || key == 'Q';
}

static void go_on(void *arg)
{
	struct watch *w = arg;
	bool waited = w->n_open > 0;

	screen_wait(&w->screen, waited ? w->cli->client : NULL, time_left(w));
	if (w->screen.leave)
		return;
	if (waited)
		(void)koine_client_step(w->cli->client);
	if (waited && w->n_open == 0 && w->screen.status == 0)
		draw(w);
	if (w->n_open == 0 && !w->screen.leave && clock_steady_ms() >= w->next_ms)
		ask(w);
}

int cmd_task_watch(struct cli *cli)
{
	struct watch w = {
		.cli = cli,
		.row.print = print_fitting,
		.screen = {.arg = &w, .key = on_key, .redraw = draw, .round = go_on},
	};
	int r;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		complain("task watch needs a terminal; koine task list does not");
		return EX_USAGE;
	}
	r = talk_connect(cli);
	if (r != 0)
		return r;
	for (int i = 0; i < N_PARTS; i++)
		w.parts[i].watch = &w;
	r = screen_run(&w.screen);
	talk_hang_up(cli);
	for (int i = 0; i < N_PARTS; i++)
		koine_doc_free(w.parts[i].doc);
	return r;
}
