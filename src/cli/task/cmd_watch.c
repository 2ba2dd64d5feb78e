/* koine task watch: what runs, what waits and what has ended, drawn again and again. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/screen.h"
#include "cli/task/task.h"

enum { EVERY_MS = 500, TASKS_MAX = 200, ENDED_MAX = 50 };

/* The three questions of a round. */
enum part { RUNNING, QUEUED, NEWEST, N_PARTS };

struct watch;

struct question {
	struct watch *watch;
	struct koine_doc *doc; /* the last answer; NULL: none yet */
};

struct watch {
	struct task_call call;
	struct screen screen;
	struct question parts[N_PARTS];
	unsigned n_open; /* questions without an answer */
	uint64_t next_ms;
	int status; /* how we exit; 0: go on */
	bool leave; /* and what is answered now is of no use */
	/* of the frame that is drawn */
	unsigned columns;
	unsigned rows_left;
	unsigned room; /* columns left in this row */
	unsigned n_hidden;
};

/* ---- asking ---- */

static void on_answer(void *arg, int result, const struct koine_answer *a)
{
	struct question *q = arg;
	struct watch *w = q->watch;
	struct koine_doc *doc = NULL;
	size_t len;
	const char *raw;

	w->n_open--;
	if (w->leave)
		return;
	if (result != 0) {
		screen_end(&w->screen);
		w->leave = true;
		if (result == KOINE_ERROR_ANSWER)
			talk_print_error("task.find", a);
		w->status = result == KOINE_ERROR_ANSWER
				    ? EXIT_ERROR_ANSWER
				    : talk_failed(w->call.client, "task.find", result, NULL);
		return;
	}
	raw = koine_value_raw(koine_answer_result(a), &len);
	if (koine_doc_parse(raw, len, &doc, NULL, 0) != 0)
		return;
	koine_doc_free(q->doc);
	q->doc = doc;
}

static int ask_part(struct watch *w, enum part part)
{
	static const char *const states[] = {[RUNNING] = "running", [QUEUED] = "queued"};
	const char *group = w->call.cli->options.task.group;
	struct koine_json *j = task_params(&w->call);
	const char *text;
	int r;

	if (!j)
		return -1;
	if (part != NEWEST) {
		koine_json_key(j, "state");
		koine_json_string(j, states[part]);
	}
	if (group) {
		koine_json_key(j, "group");
		koine_json_string(j, group);
	}
	koine_json_key(j, "lines");
	koine_json_bool(j, part != QUEUED);
	koine_json_key(j, "limit");
	koine_json_int(j, part == NEWEST ? ENDED_MAX : TASKS_MAX);
	koine_json_end_object(j);
	text = koine_json_text(j, NULL);
	r = text ? koine_client_call_async(w->call.client, "task.find", text, on_answer,
					   &w->parts[part], NULL)
		 : -1;
	koine_json_free(j);
	w->n_open += r == 0;
	return r;
}

static void ask(struct watch *w)
{
	w->next_ms = clock_steady_ms() + EVERY_MS;
	for (int i = 0; i < N_PARTS && w->status == 0; i++) {
		int r = ask_part(w, (enum part)i);

		if (r != 0 && w->status == 0) {
			screen_end(&w->screen);
			w->leave = true;
			w->status = talk_failed(w->call.client, "task.find", r, NULL);
		}
	}
}

/* ---- drawing ---- */

static bool begin_row(struct watch *w)
{
	if (w->rows_left == 0)
		return false;
	w->rows_left--;
	w->room = w->columns;
	/* First: behind a full row the cursor still stands on its last character. */
	fputs("\033[K", stdout);
	return true;
}

static void end_row(void)
{
	fputs("\033[0m\n", stdout);
}

/* In so many columns, and a space behind. */
static void put(struct watch *w, const char *text, size_t len, unsigned width)
{
	unsigned most = width < w->room ? width : w->room;
	size_t used;

	if (most == 0)
		return;
	used = print_fitting(stdout, text, len, NULL, most);
	w->room -= most;
	for (; used < most; used++)
		fputc(' ', stdout);
	if (w->room > 0) {
		fputc(' ', stdout);
		w->room--;
	}
}

static void put_str(struct watch *w, const char *text, unsigned width)
{
	put(w, text, strlen(text), width);
}

static void put_rest(struct watch *w, const char *text, size_t len)
{
	print_fitting(stdout, text, len, NULL, w->room);
	w->room = 0;
}

static void put_member(struct watch *w, const struct koine_value *task, const char *member,
		       unsigned width)
{
	size_t len = 0;
	const char *text = koine_value_text(koine_value_get(task, member), &len);

	put(w, text ? text : "", text ? len : 0, width);
}

static void color(const struct watch *w, enum cell_color c)
{
	if (w->call.cli->color)
		fputs(color_begin(c), stdout);
}

static void plain(const struct watch *w)
{
	if (w->call.cli->color)
		fputs("\033[0m", stdout);
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
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		int64_t count = 0;

		koine_value_int(koine_value_get(counts, states[i]), &count);
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%s%lld %s", i > 0 ? "  " : "",
			      (long long)count, states[i]);
	}
	if (w->call.cli->color)
		fputs("\033[1m", stdout);
	put_rest(w, line, (size_t)n);
	end_row();
	if (begin_row(w))
		end_row();
}

/* Why a queued one waits; "" when only for its turn. */
static void say_wait(const struct koine_value *task, char *out, size_t size)
{
	int64_t until = task_time(task, "not_before") - clock_utc_ms();
	const struct koine_value *after = koine_value_first(koine_value_get(task, "after"));
	char span[SPAN_SHOWN];
	size_t n = 0;

	out[0] = '\0';
	if (until > 0) {
		duration_format(until, span);
		snprintf(out, size, "begins in %s", span);
		return;
	}
	for (; after && n + TASK_ID_MAX < size; after = koine_value_next(after)) {
		size_t len = 0;
		const char *id = koine_value_text(after, &len);

		n += (size_t)snprintf(out + n, size - n, "%s%.*s", n > 0 ? " " : "after ",
				      len < TASK_ID_MAX ? (int)len : TASK_ID_MAX, id ? id : "");
	}
}

static void draw_below(struct watch *w, const char *text, size_t len)
{
	if (len == 0 || !begin_row(w))
		return;
	put_str(w, "", 3);
	color(w, CELL_GREY);
	put_rest(w, text, len);
	end_row();
}

static void draw_task(struct watch *w, const struct koine_value *task)
{
	bool waits = value_is(koine_value_get(task, "state"), "queued");
	char span[SPAN_SHOWN];
	char why[4 * TASK_ID_MAX];
	size_t len = 0;
	const char *line = koine_value_text(koine_value_get(task, "last_line"), &len);

	if (!begin_row(w)) {
		w->n_hidden++;
		return;
	}
	task_span(task, span);
	if (waits)
		duration_format(clock_utc_ms() - task_time(task, "created_at"), span);
	put_member(w, task, "id", 9);
	color(w, task_color(task));
	if (task_is_held(task))
		put_str(w, "held", 9);
	else
		put_member(w, task, "state", 9);
	plain(w);
	put_str(w, span, 6);
	put_member(w, task, "group",
		   koine_value_text(koine_value_get(task, "group"), NULL) ? 10 : 0);
	put_member(w, task, "prompt", w->room);
	end_row();
	if (waits) {
		say_wait(task, why, sizeof(why));
		draw_below(w, why, strlen(why));
	} else if (line && value_is(koine_value_get(task, "state"), "running")) {
		draw_below(w, line, len);
	}
}

static double priority_of(const struct koine_value *task)
{
	double p = 0;

	koine_value_double(koine_value_get(task, "priority"), &p);
	return p;
}

/* As they will begin. */
static int by_turn(const void *a, const void *b)
{
	const struct koine_value *x = *(const struct koine_value *const *)a;
	const struct koine_value *y = *(const struct koine_value *const *)b;
	double by_priority = priority_of(y) - priority_of(x);
	int64_t by_time = task_time(x, "created_at") - task_time(y, "created_at");

	if (by_priority != 0)
		return by_priority > 0 ? 1 : -1;
	return (by_time > 0) - (by_time < 0);
}

static bool has_ended(const struct koine_value *task)
{
	const struct koine_value *state = koine_value_get(task, "state");

	return !value_is(state, "queued") && !value_is(state, "running");
}

static void draw_part(struct watch *w, enum part part)
{
	const struct koine_value *found[TASKS_MAX];
	const struct koine_value *task =
		koine_value_first(koine_value_get(koine_doc_root(w->parts[part].doc), "tasks"));
	unsigned n = 0;

	for (; task && n < TASKS_MAX; task = koine_value_next(task)) {
		if (part != NEWEST || has_ended(task))
			found[n++] = task;
	}
	if (part == QUEUED)
		qsort(found, n, sizeof(found[0]), by_turn);
	for (unsigned i = 0; i < n; i++)
		draw_task(w, found[i]);
}

static bool is_empty(const struct watch *w)
{
	const struct koine_value *newest = koine_doc_root(w->parts[NEWEST].doc);

	return !koine_value_first(koine_value_get(newest, "tasks"));
}

static void draw(struct watch *w)
{
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
		draw_below(w, "no tasks", 8);
	fputs("\033[J", stdout);
	if (w->n_hidden > 0)
		printf("… and %u more", w->n_hidden);
	fflush(stdout);
}

/* ---- the round ---- */

static int time_left(const struct watch *w)
{
	uint64_t now = clock_steady_ms();
	int ms = koine_client_timeout_ms(w->call.client);
	int until = w->n_open > 0 ? 1000 : now < w->next_ms ? (int)(w->next_ms - now) : 0;

	return ms >= 0 && ms < until ? ms : until;
}

static void turn(struct watch *w)
{
	char key = 0;
	int fd = w->n_open > 0 ? koine_client_fd(w->call.client) : -1;
	bool waited = w->n_open > 0;

	switch (screen_wait(&w->screen, fd, koine_client_events(w->call.client), time_left(w),
			    &key)) {
	case SCREEN_LEAVE:
		w->leave = true;
		break;
	case SCREEN_KEY:
		w->leave = key == 'q' || key == 'Q';
		break;
	case SCREEN_RESIZED:
		fputs("\033[2J", stdout);
		draw(w);
		break;
	case SCREEN_IDLE:
		break;
	}
	if (w->leave)
		return;
	if (w->n_open > 0)
		(void)koine_client_step(w->call.client);
	if (waited && w->n_open == 0 && w->status == 0)
		draw(w);
	if (w->n_open == 0 && !w->leave && clock_steady_ms() >= w->next_ms)
		ask(w);
}

static int refuse_pipe(void)
{
	complain("task watch needs a terminal; koine task list does not");
	return EX_USAGE;
}

static int watch(struct watch *w)
{
	if (screen_begin(&w->screen) != 0)
		return refuse_pipe();
	while (!w->leave)
		turn(w);
	if (w->status == 0)
		screen_end(&w->screen);
	return w->status;
}

int cmd_task_watch(struct cli *cli)
{
	static char frame[64 << 10];
	struct watch w = {0};
	int r;

	if (cli->n_args > 0) {
		complain("task watch takes no arguments");
		return EX_USAGE;
	}
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refuse_pipe();
	r = task_open(&w.call, cli, false);
	if (r != 0)
		return r;
	for (int i = 0; i < N_PARTS; i++)
		w.parts[i].watch = &w;
	/* A frame is written at once, or it would flicker. */
	setvbuf(stdout, frame, _IOFBF, sizeof(frame));
	r = watch(&w);
	w.leave = true;
	task_close(&w.call);
	for (int i = 0; i < N_PARTS; i++)
		koine_doc_free(w.parts[i].doc);
	return r;
}
