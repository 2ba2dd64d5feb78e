/*
 * What koine top shows: a head of four rows, what waits for a human, what runs, what is queued, and
 * the keys. Each section says how much of it there was no room for.
 */
#include <stdarg.h>

#include "base/clock.h"
#include "cli/session/session.h"
#include "cli/task/task.h"
#include "cli/top/top.h"

enum { HEAD_ROWS = 4, WIDE = 100 };

struct page {
	struct top *top;
	struct rows rows;
};

/* ---- the head ---- */

static void put_words(struct canvas *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put_words(struct canvas *c, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	canvas_print_str(c, text);
}

static void put_text(struct canvas *c, const char *before, struct text t)
{
	canvas_print_str(c, before);
	canvas_print(c, t);
}

static void draw_daemon(struct page *p)
{
	const struct koine_value *status = koine_doc_root(p->top->parts[TOP_STATUS].doc);
	struct canvas *c = p->rows.canvas;
	char span[SPAN_SHOWN];

	if (!rows_begin(&p->rows))
		return;
	canvas_style(c, c->color ? STYLE_BOLD : STYLE_PLAIN);
	if (!p->top->live.here) {
		canvas_print_str(c, live_away_words(&p->top->live));
		return;
	}
	duration_format(member_number(status, "uptime_seconds") * 1000, span);
	put_text(c, "koined ", member_string(status, "version"));
	put_text(c, "  up ", text_of(span));
	put_text(c, "  ", member_string(status, "health"));
	put_words(c, "  %lld connected", (long long)member_number(status, "connections"));
}

static void draw_counts(struct page *p)
{
	const struct koine_value *status = koine_doc_root(p->top->parts[TOP_STATUS].doc);
	const struct koine_value *tasks =
		koine_value_get(koine_value_get(status, "subsystems"), "supervisor");
	const struct koine_value *memory = koine_doc_root(p->top->parts[TOP_MEMORY].doc);

	if (!rows_begin(&p->rows))
		return;
	put_words(p->rows.canvas, "tasks %lld running, %lld queued",
		  (long long)member_number(tasks, "running"),
		  (long long)member_number(tasks, "queued"));
	put_words(p->rows.canvas, "   sessions %lld running",
		  (long long)member_number(status, "sessions_running"));
	put_words(p->rows.canvas, "   memories %lld", (long long)member_number(memory, "total"));
}

static void put_rate(struct canvas *c, const char *before, double rate, const char *of)
{
	if (rate < 0)
		put_words(c, "%s- %s/s", before, of);
	else
		put_words(c, "%s%.*f %s/s", before, rate < 10 ? 1 : 0, rate, of);
}

static void draw_rates(struct page *p)
{
	const struct top *t = p->top;

	if (!rows_begin(&p->rows))
		return;
	put_rate(p->rows.canvas, "rates ", top_calls_rate(t), "calls");
	put_rate(p->rows.canvas, ", ", top_tokens_rate(t), "tokens");
	put_words(p->rows.canvas, "   memory %.0f MB", t->now.resident / 1e6);
	put_words(p->rows.canvas, "   cost today %s$%.2f", t->cost_is_less ? "over " : "",
		  t->cost_today);
}

static void draw_agents(struct page *p)
{
	const struct koine_value *a = koine_value_first(top_list(p->top, TOP_AGENTS, "agents"));

	if (!rows_begin(&p->rows))
		return;
	canvas_print_str(p->rows.canvas, "agents");
	for (; a && p->rows.canvas->room > 1; a = koine_value_next(a)) {
		put_text(p->rows.canvas, " ", member_string(a, "name"));
		canvas_print_str(p->rows.canvas, member_flag(a, "default") ? " (default)" : "");
		canvas_print_str(p->rows.canvas, koine_value_next(a) ? "," : "");
	}
}

/* ---- what runs ---- */

/* The folder that it works for is shown where there is room. */
static unsigned place_width(const struct page *p)
{
	return p->rows.canvas->columns >= WIDE ? NAME_COLUMNS : 0;
}

static bool draw_task(struct page *p, const struct koine_value *task)
{
	return task_draw(&p->rows, task, text_base_name(member_string(task, "project")),
			 place_width(p));
}

static bool draw_session(struct page *p, const struct koine_value *session)
{
	const struct top_line *line = top_line_of(p->top, member_string(session, "id"));
	bool waits = member_is(session, "status", "waiting_input");
	struct live_work work = {
		.id = text_cut(member_string(session, "id"), SHORT_ID),
		.state = waits ? TEXT("waits") : member_string(session, "status"),
		.color = session_color(session),
		.where = text_base_name(member_string(session, "working_dir")),
		.where_width = place_width(p),
		.title = session_name(session),
	};
	char span[SPAN_SHOWN];

	duration_format(clock_utc_ms() - member_time(session, "created_at"), span);
	work.span = span;
	if (!rows_work(&p->rows, &work))
		return false;
	if (line)
		rows_below(&p->rows, text_of(line->text));
	return true;
}

static void draw_title(struct page *p, const char *title)
{
	if (!rows_begin(&p->rows))
		return;
	canvas_style(p->rows.canvas, p->rows.canvas->color ? STYLE_BOLD : STYLE_PLAIN);
	canvas_print_str(p->rows.canvas, title);
}

/* Draws as many as there is room for; returns how many there was none for. */
static size_t draw_items(struct page *p, const struct koine_value *items,
			 bool (*draw)(struct page *p, const struct koine_value *item))
{
	size_t hidden = 0;

	for (EACH(item, koine_value_first(items))) {
		if (hidden > 0 || !draw(p, item))
			hidden++;
	}
	return hidden;
}

/* So many rows are there for a section that wants so many. If they are too few, the last one is kept
 * for draw_hidden. */
static void begin_section(struct page *p, unsigned rows, unsigned wanted)
{
	p->rows.end = p->rows.at + (wanted > rows && rows > 0 ? rows - 1 : rows);
}

static void draw_hidden(struct page *p, size_t hidden)
{
	if (hidden == 0)
		return;
	p->rows.end++;
	if (rows_begin(&p->rows))
		put_words(p->rows.canvas, "… and %zu more", hidden);
}

static unsigned running_wanted(const struct top *t)
{
	const struct koine_value *v = koine_value_first(top_list(t, TOP_RUNNING, "tasks"));
	unsigned rows = 1;

	for (; v; v = koine_value_next(v))
		rows += 1 + (member_text(v, "last_line").len > 0);
	for (int i = TOP_SESSIONS; i <= TOP_WAITING; i++) {
		v = koine_value_first(top_list(t, (enum top_part)i, "sessions"));
		for (; v; v = koine_value_next(v)) {
			const struct top_line *line = top_line_of(t, member_string(v, "id"));

			rows += 1 + (line && line->text[0]);
		}
	}
	return rows;
}

static void draw_running(struct page *p, unsigned rows)
{
	const struct koine_value *tasks = top_list(p->top, TOP_RUNNING, "tasks");
	const struct koine_value *sessions = top_list(p->top, TOP_SESSIONS, "sessions");
	const struct koine_value *waiting = top_list(p->top, TOP_WAITING, "sessions");
	unsigned wanted = running_wanted(p->top);
	size_t hidden;

	begin_section(p, rows, wanted);
	draw_title(p, wanted > 1 ? "running" : "nothing is running");
	hidden = draw_items(p, waiting, draw_session);
	hidden += draw_items(p, sessions, draw_session);
	hidden += draw_items(p, tasks, draw_task);
	draw_hidden(p, hidden);
}

/* koined may have more than were asked for. */
static size_t n_queued(const struct top *t)
{
	size_t n = koine_value_count(top_list(t, TOP_QUEUED, "tasks"));
	int64_t all = member_number(top_list(t, TOP_QUEUED, "counts"), "queued");

	return all > (int64_t)n ? (size_t)all : n;
}

static unsigned queue_wanted(const struct top *t)
{
	size_t listed = koine_value_count(top_list(t, TOP_QUEUED, "tasks"));

	return listed == 0 ? 0 : 1 + (unsigned)listed + (n_queued(t) > listed);
}

static void draw_queue(struct page *p, unsigned rows)
{
	const struct koine_value *tasks[TOP_LIST_MAX];
	size_t listed = task_in_order(top_list(p->top, TOP_QUEUED, "tasks"), tasks, TOP_LIST_MAX);
	size_t drawn = 0;
	char title[48];

	begin_section(p, rows, queue_wanted(p->top));
	snprintf(title, sizeof(title), "queue: %zu", n_queued(p->top));
	draw_title(p, title);
	while (drawn < listed && draw_task(p, tasks[drawn]))
		drawn++;
	draw_hidden(p, n_queued(p->top) - drawn);
}

/* ---- the page ---- */

static unsigned at_most(unsigned n, unsigned most)
{
	return n < most ? n : most;
}

/* What waits for a human is the reason to look here: it has a third, and more when nothing else
 * wants it. The queue has a fifth, what runs the rest; and the queue what that leaves. */
static void draw_lists(struct page *p, unsigned left)
{
	unsigned waits = 1 + (unsigned)koine_value_count(inbox_list(&p->top->inbox));
	unsigned runs = running_wanted(p->top);
	unsigned queued = queue_wanted(p->top);
	unsigned queue = at_most(queued, 2 + left / 5);
	unsigned others = 1 + runs + (queue > 0 ? 1 + queue : 0);
	unsigned most = left / 3 > 4 ? left / 3 : at_most(4, left);
	unsigned inbox = at_most(waits, left > others + most ? left - others : most);

	inbox_draw_list(&p->top->inbox, p->rows.canvas, p->rows.at, inbox);
	p->rows.at += inbox + 1;
	left -= at_most(left, inbox + 1);
	if (queue == 0 || left < queue + 2) {
		draw_running(p, left);
		return;
	}
	runs = at_most(runs, left - queue - 1);
	draw_running(p, runs);
	p->rows.at++;
	draw_queue(p, at_most(queued, left - runs - 1));
}

void top_draw(void *arg, struct canvas *c)
{
	struct page p = {.top = arg, .rows = {.canvas = c, .end = c->rows - 1}};
	struct top *t = arg;

	/* What can be answered is worth more than what can be read. */
	if (inbox_is_viewing(&t->inbox) || c->rows < HEAD_ROWS + 6) {
		inbox_draw(&t->inbox, c);
		return;
	}
	draw_daemon(&p);
	draw_counts(&p);
	draw_rates(&p);
	draw_agents(&p);
	p.rows.at++;
	draw_lists(&p, c->rows - 1 - p.rows.at);
	inbox_draw_foot(&t->inbox, c);
}
