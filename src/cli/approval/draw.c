/* What an inbox shows. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/approval/inbox.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/tool_gist.h"
#include "cli/kit/value.h"

enum { NARROW = 60, WIDE = 100 };

/* ---- the list ---- */

static void draw_head(const struct inbox *in, struct canvas *c, unsigned row)
{
	char head[96];
	size_t n = koine_value_count(inbox_list(in));
	int64_t all = inbox_count(in);

	if (!in->live->here)
		snprintf(head, sizeof(head), "%s", live_away_words(in->live));
	else if (n == 0)
		snprintf(head, sizeof(head), "no pending approvals");
	else if (all > (int64_t)n)
		snprintf(head, sizeof(head), "%lld pending, showing the oldest %zu", (long long)all,
			 n);
	else
		snprintf(head, sizeof(head), "%zu pending", n);
	canvas_row(c, row);
	canvas_style(c, c->color ? STYLE_BOLD : STYLE_PLAIN);
	canvas_print_str(c, head);
}

static void put_gist(struct canvas *c, const struct koine_value *a)
{
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	approval_gist(&gist, a);
	canvas_put(c, buf_text(&gist), c->room);
}

static void draw_row(struct canvas *c, unsigned row, const struct koine_value *a, size_t id_width,
		     bool selected)
{
	struct text session = text_cut(member_string(a, "session_id"), SHORT_ID);
	char age[SPAN_SHOWN];

	canvas_row(c, row);
	duration_format_age(clock_utc_ms() - member_time(a, "created_at"), age);
	canvas_style(c, selected ? STYLE_REVERSE : STYLE_PLAIN);
	canvas_put(c, text_of(selected ? ">" : " "), 1);
	canvas_put(c, approval_short_id(a, id_width), (unsigned)id_width);
	if (c->columns >= NARROW) {
		canvas_put(c, text_of(age), 4);
		canvas_put(c, member_string(a, "agent"), 8);
	}
	if (c->columns >= WIDE)
		canvas_put(c, session, SHORT_ID);
	canvas_put(c, member_string(a, "tool"), c->columns >= NARROW ? 12 : 8);
	put_gist(c, a);
}

/* The selected one is always among those shown. */
static void scroll(struct inbox *in, size_t n, unsigned rows)
{
	if (in->at < in->top)
		in->top = in->at;
	if (rows > 0 && in->at >= in->top + rows)
		in->top = in->at - rows + 1;
	if (in->top + rows > n)
		in->top = n > rows ? n - rows : 0;
}

void inbox_draw_list(struct inbox *in, struct canvas *c, unsigned row, unsigned rows)
{
	size_t n = koine_value_count(inbox_list(in));
	size_t id_width = approval_id_width(inbox_list(in));

	draw_head(in, c, row);
	scroll(in, n, rows - 1);
	for (size_t i = in->top; i < n && i - in->top < rows - 1; i++)
		draw_row(c, row + 1 + (unsigned)(i - in->top), inbox_row(in, i), id_width,
			 in->selected[0] && i == in->at);
}

/* ---- all of one ---- */

bool inbox_is_viewing(const struct inbox *in)
{
	return (in->mode == INBOX_LINE ? in->mode_before : in->mode) == INBOX_VIEW;
}

void inbox_draw_view(struct inbox *in, struct canvas *c)
{
	unsigned rows = c->rows > 1 ? c->rows - 1 : 1;
	size_t n;

	if (in->view_columns != c->columns && view_wrap(&in->view, c->columns) == 0)
		in->view_columns = c->columns;
	n = view_n_rows(&in->view);
	if (in->view_top + rows > n)
		in->view_top = n > rows ? n - rows : 0;
	in->n_below = n - in->view_top > rows ? n - in->view_top - rows : 0;
	for (size_t i = in->view_top; i < n && i - in->view_top < rows; i++) {
		enum color color;
		struct text t = view_row(&in->view, i, &color);

		canvas_row(c, (unsigned)(i - in->view_top));
		canvas_style(c, STYLE_COLOR(color));
		canvas_print(c, t);
	}
}

/* ---- the last row ---- */

/* Its end is shown: that is what is being typed. */
static void draw_line(const struct inbox *in, struct canvas *c)
{
	static const char prompts[][10] = {"Why? ", "Answer: "};
	const char *prompt = prompts[strcmp(in->decision, "respond") == 0];
	struct text t = {.data = in->line, .len = in->line_len};
	size_t room = c->columns > strlen(prompt) + 1 ? c->columns - strlen(prompt) - 1 : 1;

	while (t.len > 0 && text_columns(t) > room) {
		struct glyph g;

		glyph_read(&g, t.data, t.data + t.len);
		t.data += g.used;
		t.len -= g.used;
	}
	if (c->columns > strlen(prompt))
		canvas_print_str(c, prompt);
	c->read = glyph_read;
	canvas_print(c, t);
	c->read = glyph_read_exact;
	c->cursor = true;
}

/* The way out comes first: a narrow terminal cuts the end. */
static const char *keys_of(const struct inbox *in)
{
	if (in->mode == INBOX_VIEW)
		return "q back  a approve  d deny  r respond  g grant for session  arrows scroll";
	return "q quit  a approve  d deny  v view  r respond  g grant for session  j k move";
}

void inbox_draw_foot(const struct inbox *in, struct canvas *c)
{
	const char *keys = keys_of(in);
	char foot[sizeof(in->note)];

	canvas_row(c, c->rows - 1);
	if (in->mode == INBOX_LINE) {
		draw_line(in, c);
		return;
	}
	if (in->note[0])
		snprintf(foot, sizeof(foot), "%s", in->note);
	else if (in->mode == INBOX_VIEW && in->n_below > 0)
		snprintf(foot, sizeof(foot), "… %zu more rows  %s", in->n_below, keys);
	else
		snprintf(foot, sizeof(foot), "%s", keys);
	canvas_style(c, in->note[0] ? STYLE_PLAIN : STYLE_COLOR(COLOR_GREY));
	canvas_print_str(c, foot);
}
