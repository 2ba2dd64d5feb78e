/* What waits for a human: its calls and its keys. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/approval/inbox.h"
#include "cli/kit/duration.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"
#include "cli/kit/tool_gist.h"

enum { LIST_MAX = 200, LOOKED_MS = 400 };

const struct koine_value *inbox_list(const struct inbox *in)
{
	return live_member(in->list, "approvals");
}

static const struct koine_value *inbox_row(const struct inbox *in, size_t at)
{
	const struct koine_value *a = koine_value_first(inbox_list(in));

	while (a && at-- > 0)
		a = koine_value_next(a);
	return a;
}

static void note(struct inbox *in, const char *text)
{
	snprintf(in->note, sizeof(in->note), "%s", text);
	in->note[utf8_whole(in->note, strlen(in->note))] = '\0';
	in->live->changed = true;
}

/* ---- the list ---- */

static bool is_selected(const struct inbox *in, struct text id)
{
	return in->selected[0] && text_is(id, in->selected);
}

static void select_row(struct inbox *in, size_t at)
{
	struct text id = member_string(inbox_row(in, at), "id");

	in->at = at;
	in->ready_ms = 0;
	in->selected[0] = '\0';
	if (id.len > 0 && id.len < sizeof(in->selected))
		snprintf(in->selected, sizeof(in->selected), "%.*s", TEXT_ARGS(id));
	in->live->changed = true;
}

static const struct koine_value *selected_row(const struct inbox *in, size_t *ret_at)
{
	const struct koine_value *a = koine_value_first(inbox_list(in));

	for (size_t i = 0; a; a = koine_value_next(a), i++) {
		if (is_selected(in, member_string(a, "id"))) {
			*ret_at = i;
			return a;
		}
	}
	return NULL;
}

/* One that nobody chose may come under a key that was meant for another, or is still held. */
static void offer_row(struct inbox *in, size_t at)
{
	select_row(in, at);
	in->ready_ms = clock_steady_ms() + LOOKED_MS;
}

static bool comes_too_soon(struct inbox *in)
{
	uint64_t now = clock_steady_ms();

	if (now >= in->ready_ms)
		return false;
	in->ready_ms = now + LOOKED_MS;
	return true;
}

/* Finds the row of the selected one again. If somebody else decided it, none is selected:
 * otherwise the next key would act on a different one than it was pressed for. A view of it, or
 * a comment being typed, stays. */
static void find_selected(struct inbox *in, bool is_first, bool was_empty)
{
	size_t n = koine_value_count(inbox_list(in));

	if (selected_row(in, &in->at))
		return;
	if (in->at >= n)
		in->at = n > 0 ? n - 1 : 0;
	if (in->mode != INBOX_LIST)
		return;
	in->selected[0] = '\0';
	if (n > 0 && is_first)
		select_row(in, in->at);
	else if (n > 0 && (was_empty || in->step_on))
		offer_row(in, in->at);
	in->step_on = false;
}

static void back_to_list(struct inbox *in)
{
	in->mode = INBOX_LIST;
	find_selected(in, false, false);
}

static void take_list(void *arg, const struct koine_value *result)
{
	struct inbox *in = arg;

	find_selected(in, !in->known, in->was_empty);
	in->known = true;
	in->was_empty = !koine_value_first(inbox_list(in));
	in->live->changed = true;
}

static void add_session(void *arg, struct koine_json *params)
{
	const struct inbox *in = arg;

	params_add(params, "session_id", in->session);
}

void inbox_away(void *arg)
{
	struct inbox *in = arg;

	in->busy = false;
}

/* If somebody else decided the selected one, a note says so. */
void inbox_told(void *arg, const struct koine_value *event)
{
	struct inbox *in = arg;
	const struct koine_value *data = koine_value_get(event, "data");
	char said[400];
	size_t n;

	if (in->busy || in->step_on || !member_is(event, "type", "approval.resolved") ||
	    !is_selected(in, member_string(data, "approval_id")))
		return;
	n = (size_t)snprintf(said, sizeof(said), "%.*s was ",
			     TEXT_ARGS(member_string(data, "tool_name")));
	if (n < sizeof(said))
		approval_say_end(data, said + n, sizeof(said) - n);
	note(in, said);
}

/* ---- deciding ---- */

static void note_end(struct inbox *in, const char *before, const struct koine_value *end)
{
	char said[400];
	int n = snprintf(said, sizeof(said), "%s", before);

	approval_say_end(end, said + n, sizeof(said) - (size_t)n);
	note(in, said);
}

static void on_decided(void *arg, int result, const struct koine_answer *a)
{
	struct inbox *in = arg;
	char said[400];

	in->busy = false;
	if (in->live->leave)
		return;
	in->list->stale = true;
	if (live_is_loss(result, a)) {
		live_lost(in->live);
		note(in, "lost connection to koined; check the list for the result");
	} else if (result == 0) {
		in->step_on = true;
		in->mode = INBOX_LIST;
		note_end(in, "", koine_answer_result(a));
	} else if (approval_quicker(a)) {
		note_end(in, "already decided: ", approval_quicker(a));
	} else {
		snprintf(said, sizeof(said), "%.*s", TEXT_ARGS(talk_error(a)));
		note(in, said);
	}
}

static void decide(struct inbox *in, const char *decision, struct text comment, bool grant)
{
	const struct approval_choice choice = {
		.id = text_of(in->selected),
		.decision = decision,
		.comment = comment,
		.grant = grant ? "session" : NULL,
	};

	in->busy = live_call(in->live, "approval.decide", approval_choice_params(&choice),
			     on_decided, in);
}

static void begin_line(struct inbox *in, const char *decision)
{
	in->decision = decision;
	in->line_len = 0;
	in->mode_before = in->mode;
	in->mode = INBOX_LINE;
}

static void act(struct inbox *in, int key)
{
	const struct text none = {0};
	size_t at;
	const struct koine_value *a = selected_row(in, &at);

	if (!a) {
		note(in, in->mode == INBOX_VIEW ? "already decided"
			 : koine_value_first(inbox_list(in))
				 ? "no request selected; press j or k to select one"
				 : "no pending approvals");
		return;
	}
	if (!in->live->here) {
		note(in, "lost connection to koined");
		return;
	}
	if (key == 'r' && approval_is_question(a))
		begin_line(in, "respond");
	else if (key == 'r')
		note(in, "this is not a question: press a to approve or d to deny");
	else if (approval_is_question(a))
		note(in, "this is a question: press r");
	else if (key == 'd')
		begin_line(in, "deny");
	else if (key == 'g' && member_string(a, "session_id").len == 0)
		note(in, "this request belongs to no session; to grant it, use koine approve "
			 "--grant always");
	else if (comes_too_soon(in))
		note(in, "this request just arrived: read it, then press the key again");
	else
		decide(in, "approve", none, key == 'g');
}

/* ---- all of one ---- */

static void on_got(void *arg, int result, const struct koine_answer *a)
{
	struct inbox *in = arg;

	if (in->live->leave)
		return;
	if (result != 0) {
		note(in, "the request was withdrawn");
		in->list->stale = true;
		return;
	}
	if (view_fill(&in->view, koine_answer_result(a)) != 0) {
		note(in, "the request is too large to show");
		return;
	}
	in->view_columns = 0;
	in->view_top = 0;
	in->mode = INBOX_VIEW;
	in->live->changed = true;
}

static void open_view(struct inbox *in)
{
	if (in->selected[0] && in->live->here)
		(void)live_call(in->live, "approval.get",
				approval_id_params(text_of(in->selected), true), on_got, in);
}

/* ---- keys ---- */

static void move(struct inbox *in, int by)
{
	size_t n = koine_value_count(inbox_list(in));

	if (n == 0)
		return;
	if (!in->selected[0])
		select_row(in, in->at);
	else if (by < 0)
		select_row(in, in->at >= (size_t)-by ? in->at - (size_t)-by : 0);
	else
		select_row(in, in->at + (size_t)by < n ? in->at + (size_t)by : n - 1);
}

static void scroll_view(struct inbox *in, int by)
{
	if (by < 0)
		in->view_top = in->view_top >= (size_t)-by ? in->view_top - (size_t)-by : 0;
	else
		in->view_top += (size_t)by; /* drawing knows where the end is */
}

static bool move_by_key(struct inbox *in, int key)
{
	void (*go)(struct inbox *, int) = in->mode == INBOX_VIEW ? scroll_view : move;
	unsigned columns;
	unsigned rows;

	live_size(&columns, &rows);
	if (key == 'j' || key == KEY_DOWN)
		go(in, 1);
	else if (key == 'k' || key == KEY_UP)
		go(in, -1);
	else if (key == KEY_PAGE_DOWN || key == ' ')
		go(in, rows > 3 ? (int)rows - 3 : 1);
	else if (key == KEY_PAGE_UP || key == 'b')
		go(in, rows > 3 ? 3 - (int)rows : -1);
	else if (key == KEY_HOME)
		go(in, -(1 << 30));
	else if (key == KEY_END)
		go(in, 1 << 30);
	else
		return false;
	return true;
}

static void plain_key(struct inbox *in, int key)
{
	bool viewing = in->mode == INBOX_VIEW;

	if (move_by_key(in, key))
		return;
	if (key == 'a' || key == 'd' || key == 'r' || key == 'g')
		act(in, key);
	else if (viewing && (key == 'q' || key == 'v' || key == '\n' || key == KEY_ESCAPE))
		back_to_list(in);
	else if (key == 'v' || key == '\n' || key == '\r')
		open_view(in);
	else if (key == 'q' || key == 'Q')
		in->live->leave = true;
}

static void end_line(struct inbox *in)
{
	struct text typed = {.data = in->line, .len = in->line_len};

	in->mode = in->mode_before;
	if (typed.len == 0)
		note(in, "nothing was sent: the text is empty");
	else if (!in->live->here)
		note(in, "lost connection to koined");
	else
		decide(in, in->decision, typed, false);
	/* A terminal that does not mark pasted text may have more of it waiting. */
	live_forget_keys();
}

static void add_byte(struct inbox *in, int byte)
{
	if (in->line_len < sizeof(in->line) - 1)
		in->line[in->line_len++] = (char)byte;
}

static void line_key(struct inbox *in, int key)
{
	if (key == '\n' || key == '\r') {
		end_line(in);
	} else if (key == KEY_ESCAPE) {
		in->mode = in->mode_before;
		find_selected(in, false, false);
	} else if (key == 0x7f || key == '\b') {
		while (in->line_len > 0 && ((unsigned char)in->line[--in->line_len] & 0xc0) == 0x80)
			;
	} else if (key == ('U' & 0x1f)) {
		in->line_len = 0;
	} else if (key >= 0x20 && key < 0x100) {
		add_byte(in, key);
	}
}

/* Pasted text never acts as keys. Its lines become one line; where no line is being typed it is
 * dropped. */
static void take_pasted(struct inbox *in, int byte)
{
	if (in->mode != INBOX_LINE || in->busy)
		return;
	if (byte == '\n' || byte == '\r' || byte == '\t')
		byte = ' ';
	if (byte >= 0x20 && byte != 0x7f)
		add_byte(in, byte);
	in->live->changed = true;
}

void inbox_key(void *arg, int key)
{
	struct inbox *in = arg;

	if (key & KEY_PASTED) {
		take_pasted(in, key & 0xff);
		return;
	}
	in->live->changed = true;
	/* Keys pressed before a decision is answered were not meant for the next one. */
	if (in->busy && key != 'q')
		return;
	in->note[0] = '\0';
	if (in->mode == INBOX_LINE)
		line_key(in, key);
	else
		plain_key(in, key);
}

/* ---- its life ---- */

void inbox_init(struct inbox *in, struct live_view *live, struct live_part *list,
		const char *session)
{
	static const struct live_row row = {"approval.list",  {{"status", "\"pending\""}},
					    LIST_MAX,         add_session,
					    {"approval."},    .needed = true,
					    .took = take_list};

	*in = (struct inbox) {.live = live, .list = list, .session = session, .was_empty = true};
	*list = (struct live_part) {.row = &row, .arg = in};
	view_init(&in->view);
}

void inbox_done(struct inbox *in)
{
	view_done(&in->view);
}

/* How many wait in all; the list may have only some of them. */
static int64_t inbox_count(const struct inbox *in)
{
	int64_t all = (int64_t)koine_value_count(inbox_list(in));

	if (!in->session)
		koine_value_int(live_member(in->list, "pending"), &all);
	return all;
}

/* ---- what it shows ---- */

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

static void draw_view(struct inbox *in, struct canvas *c)
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
		t = text_skip(t, g.used);
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

void inbox_draw(void *arg, struct canvas *c)
{
	struct inbox *in = arg;

	if (inbox_is_viewing(in))
		draw_view(in, c);
	else
		inbox_draw_list(in, c, 0, c->rows > 2 ? c->rows - 1 : 1);
	inbox_draw_foot(in, c);
}
