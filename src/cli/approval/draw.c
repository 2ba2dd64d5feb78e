/* What koine approvals -w shows: a frame is written at once, and never wider than the terminal. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/approval/watch.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/tool_gist.h"
#include "cli/kit/value.h"

enum { NARROW = 60, WIDE = 100 };

static struct screen_row begin_row(unsigned columns)
{
	screen_begin_row();
	return (struct screen_row) {.room = columns, .print = print_fitting_exact};
}

/* ---- the list ---- */

static void draw_head(const struct approval_watch *w, unsigned columns)
{
	const struct approval_options *o = w->cli->own;
	struct screen_row r;
	char head[96];
	size_t n = koine_value_count(watch_list(w));
	int64_t all = (int64_t)n;

	/* How many are waiting in all; the list may have only some of them. */
	if (!o->session)
		koine_value_int(koine_value_get(koine_doc_root(w->doc), "pending"), &all);
	if (!w->subscribed)
		snprintf(head, sizeof(head), "koined is away; waiting for it");
	else if (n == 0)
		snprintf(head, sizeof(head), "nobody asks for anything");
	else if (all > (int64_t)n)
		snprintf(head, sizeof(head), "%lld wait, the oldest %zu of them here",
			 (long long)all, n);
	else
		snprintf(head, sizeof(head), "%zu %s", n, n == 1 ? "waits" : "wait");
	r = begin_row(columns);
	print_style(w->cli, style_bold);
	screen_put(&r, text_of(head), columns);
	screen_end_row();
}

static void put_gist(struct screen_row *r, const struct koine_value *a)
{
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	approval_gist(&gist, a);
	screen_put(r, buf_text(&gist), r->room);
}

static void draw_row(const struct koine_value *a, size_t id_width, bool selected, unsigned columns)
{
	struct screen_row r = begin_row(columns);
	struct text session = text_cut(member_string(a, "session_id"), SHORT_ID);
	char age[SPAN_SHOWN];

	duration_format_age(clock_utc_ms() - member_time(a, "created_at"), age);
	fputs(selected ? "\033[7m" : "", stdout);
	screen_put(&r, text_of(selected ? ">" : " "), 1);
	screen_put(&r, approval_short_id(a, id_width), (unsigned)id_width);
	if (columns >= NARROW) {
		screen_put(&r, text_of(age), 4);
		screen_put(&r, member_string(a, "agent"), 8);
	}
	if (columns >= WIDE)
		screen_put(&r, session, SHORT_ID);
	screen_put(&r, member_string(a, "tool"), columns >= NARROW ? 12 : 8);
	put_gist(&r, a);
	screen_end_row();
}

/* The selected one is always among those shown. */
static void scroll(struct approval_watch *w, size_t n, unsigned rows)
{
	if (w->at < w->top)
		w->top = w->at;
	if (rows > 0 && w->at >= w->top + rows)
		w->top = w->at - rows + 1;
	if (w->top + rows > n)
		w->top = n > rows ? n - rows : 0;
}

static void draw_list(struct approval_watch *w, unsigned columns, unsigned rows)
{
	size_t n = koine_value_count(watch_list(w));
	size_t id_width = approval_id_width(watch_list(w));

	draw_head(w, columns);
	scroll(w, n, rows - 1);
	for (size_t i = w->top; i < n && i - w->top < rows - 1; i++)
		draw_row(watch_row(w, i), id_width, w->selected[0] && i == w->at, columns);
}

/* ---- all of one ---- */

static void draw_view(struct approval_watch *w, unsigned columns, unsigned rows)
{
	size_t n;

	if (w->view_columns != columns && view_wrap(&w->view, columns) == 0)
		w->view_columns = columns;
	n = view_n_rows(&w->view);
	if (w->view_top + rows > n)
		w->view_top = n > rows ? n - rows : 0;
	w->n_below = n - w->view_top > rows ? n - w->view_top - rows : 0;
	for (size_t i = w->view_top; i < n && i - w->view_top < rows; i++) {
		screen_begin_row();
		view_print_row(&w->view, i, stdout, w->cli->color);
		screen_end_row();
	}
}

/* ---- the last row ---- */

/* Its end is shown: that is what is being typed. */
static void draw_line(const struct approval_watch *w, unsigned columns)
{
	static const char prompts[][10] = {"Why? ", "Answer: "};
	const char *prompt = prompts[strcmp(w->decision, "respond") == 0];
	struct text t = {.data = w->line, .len = w->line_len};
	size_t room = columns > strlen(prompt) + 1 ? columns - strlen(prompt) - 1 : 1;

	screen_begin_row();
	while (t.len > 0 && text_columns(t) > room) {
		struct glyph g;

		glyph_read(&g, t.data, t.data + t.len);
		t.data += g.used;
		t.len -= g.used;
	}
	if (columns > strlen(prompt))
		fputs(prompt, stdout);
	print_fitting(stdout, t, room);
	fputs("\033[?25h", stdout);
}

/* The way out comes first: a narrow terminal cuts the end. */
static const char *keys_of(const struct approval_watch *w)
{
	if (w->mode == WATCH_VIEW)
		return "q back  a approve  d deny  r respond  g grant for session  arrows scroll";
	return "q quit  a approve  d deny  v view  r respond  g grant for session";
}

static void draw_foot(const struct approval_watch *w, unsigned columns)
{
	struct screen_row r;
	const char *keys = keys_of(w);
	char foot[sizeof(w->note)];

	if (w->mode == WATCH_LINE) {
		draw_line(w, columns);
		return;
	}
	if (w->note[0])
		snprintf(foot, sizeof(foot), "%s", w->note);
	else if (w->mode == WATCH_VIEW && w->n_below > 0)
		snprintf(foot, sizeof(foot), "… %zu rows below  %s", w->n_below, keys);
	else
		snprintf(foot, sizeof(foot), "%s", keys);
	fputs("\033[?25l", stdout);
	r = begin_row(columns);
	if (!w->note[0])
		print_style(w->cli, color_begin(COLOR_GREY));
	screen_put(&r, text_of(foot), columns);
	fputs("\033[0m", stdout);
}

void watch_draw(struct approval_watch *w)
{
	enum watch_mode mode = w->mode == WATCH_LINE ? w->mode_before : w->mode;
	unsigned columns;
	unsigned rows;

	screen_size(&columns, &rows);
	rows = rows > 2 ? rows : 2;
	fputs("\033[H", stdout);
	if (mode == WATCH_VIEW)
		draw_view(w, columns, rows - 1);
	else
		draw_list(w, columns, rows - 1);
	printf("\033[J\033[%u;1H", rows);
	draw_foot(w, columns);
	fflush(stdout);
	w->drawn_ms = clock_steady_ms();
	w->changed = false;
}
