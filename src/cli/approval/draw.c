/* What koine approvals -w shows: a frame is written at once, and never wider than the terminal. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/approval/watch.h"
#include "cli/kit/glyph.h"

enum { NARROW = 60, WIDE = 100, SESSION_SHOWN = 8 };

struct row {
	unsigned room; /* columns left */
};

/* What was there goes first: behind a full row the cursor still stands on its last character. */
static void begin_row(void)
{
	fputs("\033[0m\033[K", stdout);
}

static void end_row(void)
{
	fputs("\033[0m\n", stdout);
}

/* In so many columns, and a space behind. */
static void put(struct row *r, struct text t, unsigned width)
{
	unsigned most = width < r->room ? width : r->room;
	size_t used;

	if (most == 0)
		return;
	used = print_fitting_exact(stdout, t, most);
	r->room -= most;
	for (; used < most; used++)
		fputc(' ', stdout);
	if (r->room > 0) {
		fputc(' ', stdout);
		r->room--;
	}
}

/* ---- the list ---- */

static void draw_head(const struct approval_watch *w, unsigned columns)
{
	struct row r = {.room = columns};
	char words[96];
	size_t n = koine_value_count(watch_list(w));
	int64_t all = (int64_t)n;

	/* Of all sessions, and some may not have been sent. */
	if (!w->cli->options.approval.session)
		koine_value_int(koine_value_get(koine_doc_root(w->doc), "pending"), &all);
	if (!w->subscribed)
		snprintf(words, sizeof(words), "koined is away; waiting for it");
	else if (n == 0)
		snprintf(words, sizeof(words), "nobody asks for anything");
	else if (all > (int64_t)n)
		snprintf(words, sizeof(words), "%lld wait, the oldest %zu of them here",
			 (long long)all, n);
	else
		snprintf(words, sizeof(words), "%zu %s", n, n == 1 ? "waits" : "wait");
	begin_row();
	fputs(w->cli->color ? "\033[1m" : "", stdout);
	put(&r, text_of(words), columns);
	end_row();
}

static struct text beginning(struct text id)
{
	if (id.len > SESSION_SHOWN)
		id.len = SESSION_SHOWN;
	return id;
}

static void put_gist(struct row *r, const struct koine_value *a)
{
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	approval_gist(&gist, a);
	put(r, (struct text) {.data = gist.data, .len = gist.len}, r->room);
}

static void draw_row(const struct approval_watch *w, const struct koine_value *a, size_t id_width,
		     bool selected, unsigned columns)
{
	struct row r = {.room = columns};
	char age[16];

	approval_age(a, age, sizeof(age));
	begin_row();
	fputs(selected ? "\033[7m" : "", stdout);
	put(&r, text_of(selected ? ">" : " "), 1);
	put(&r, approval_short_id(a, id_width), (unsigned)id_width);
	if (columns >= NARROW) {
		put(&r, text_of(age), 4);
		put(&r, approval_member(a, "agent"), 8);
	}
	if (columns >= WIDE)
		put(&r, beginning(approval_member(a, "session_id")), SESSION_SHOWN);
	put(&r, approval_member(a, "tool"), columns >= NARROW ? 12 : 8);
	put_gist(&r, a);
	end_row();
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
		draw_row(w, watch_row(w, i), id_width, w->selected[0] && i == w->at, columns);
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
		begin_row();
		view_print_row(&w->view, i, stdout, w->cli->color);
		end_row();
	}
}

/* ---- the last row ---- */

/* The end of it is what is being typed. */
static void draw_line(const struct approval_watch *w, unsigned columns)
{
	static const char prompts[][10] = {"Why? ", "Answer: "};
	const char *prompt = prompts[strcmp(w->decision, "respond") == 0];
	struct text t = {.data = w->line, .len = w->line_len};
	size_t room = columns > strlen(prompt) + 1 ? columns - strlen(prompt) - 1 : 1;

	begin_row();
	while (t.len > 0 && text_columns(t.data, t.len) > room) {
		struct glyph g;

		glyph_read(&g, t.data, t.data + t.len);
		t.data += g.used;
		t.len -= g.used;
	}
	if (columns > strlen(prompt))
		fputs(prompt, stdout);
	print_fitting(stdout, t.data, t.len, NULL, room);
	fputs("\033[?25h", stdout);
}

/* The way out first: where it is narrow the end is cut. */
static const char *keys_of(const struct approval_watch *w)
{
	if (w->mode == WATCH_VIEW)
		return "q back  a approve  d deny  r respond  g grant for session  arrows scroll";
	return "q quit  a approve  d deny  v view  r respond  g grant for session";
}

static void draw_foot(const struct approval_watch *w, unsigned columns)
{
	struct row r = {.room = columns};
	const char *words = w->note[0] ? w->note : keys_of(w);
	char line[sizeof(w->note) + 64];

	if (w->mode == WATCH_LINE) {
		draw_line(w, columns);
		return;
	}
	fputs("\033[?25l", stdout);
	begin_row();
	fputs(w->cli->color && !w->note[0] ? color_begin(CELL_GREY) : "", stdout);
	if (w->mode == WATCH_VIEW && w->n_below > 0 && !w->note[0]) {
		snprintf(line, sizeof(line), "… %zu rows below  %s", w->n_below, words);
		words = line;
	}
	put(&r, text_of(words), columns);
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
