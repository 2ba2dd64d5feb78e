/* Approvals for people: a table that fits the terminal, all of one, and lines as they change. */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/approval/approval.h"
#include "cli/approval/view.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/tool_gist.h"

enum {
	NARROW = 60, /* columns; below it id, tool and input are all there is room for */
	WIDE = 100,  /* from here on the session, too */
	ID_SHOWN = 8,
	ID_SHOWN_MAX = 36,
};

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

/* ---- parts ---- */

struct text approval_short_id(const struct koine_value *approval, size_t width)
{
	if (width == ID_WHOLE)
		return approval_member(approval, "id");
	return text_cut(approval_bare_id(approval), width);
}

static bool collides(const struct koine_value *approval, size_t width)
{
	struct text id = approval_short_id(approval, width);
	const struct koine_value *other = koine_value_next(approval);

	for (; other; other = koine_value_next(other)) {
		if (text_equal(id, approval_short_id(other, width)))
			return true;
	}
	return false;
}

size_t approval_id_width(const struct koine_value *approvals)
{
	const struct koine_value *a = koine_value_first(approvals);
	size_t width = ID_SHOWN;

	for (; a; a = koine_value_next(a)) {
		while (width < ID_SHOWN_MAX && collides(a, width))
			width += 4;
		/* Only by the word that is left out, or far behind. */
		if (collides(a, width))
			return ID_WHOLE;
	}
	return width;
}

void approval_gist(struct buf *out, const struct koine_value *approval)
{
	bool question = text_is(approval_member(approval, "kind"), "human_contact");
	const struct koine_value *input = koine_value_get(approval, "input");
	struct text words = approval_member(input, "msg");

	if (koine_value_kind(koine_value_get(approval, "input_omitted")) == KOINE_TRUE)
		buf_add_str(out, "(large)");
	else if (question && words.len > 0)
		text_add_exact(out, words);
	else
		tool_gist(out, approval_member(approval, "tool"), input);
}

static int64_t time_of(const struct koine_value *approval, const char *member)
{
	int64_t ms;

	return clock_parse_iso(approval_member(approval, member), &ms) ? ms : 0;
}

void approval_age(const struct koine_value *approval, char *out, size_t size)
{
	char shown[SPAN_SHOWN];

	duration_format_age(clock_utc_ms() - time_of(approval, "created_at"), shown);
	snprintf(out, size, "%s", shown);
}

enum cell_color approval_color(const struct koine_value *approval)
{
	static const struct {
		const char *status;
		enum cell_color color;
	} rows[] = {
		{"pending", CELL_YELLOW},  {"approved", CELL_GREEN}, {"denied", CELL_RED},
		{"responded", CELL_GREEN}, {"expired", CELL_GREY},   {"superseded", CELL_GREY},
	};
	struct text status = approval_member(approval, "status");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (text_is(status, rows[i].status))
			return rows[i].color;
	}
	return CELL_PLAIN;
}

/* ---- the table ---- */

static void cell_text(struct table *t, struct text text)
{
	CLEANUP(buf_donep) struct buf shown;

	buf_init(&shown, GIST_MAX);
	text_add_exact(&shown, text);
	table_cell(t, shown.len > 0 ? shown.data : "-", shown.len > 0 ? shown.len : 1);
}

static void cell_gist(struct table *t, const struct koine_value *a)
{
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	approval_gist(&gist, a);
	table_cell(t, gist.len > 0 ? gist.data : "-", gist.len > 0 ? gist.len : 1);
}

static void cell_session(struct table *t, const struct koine_value *a)
{
	struct text id = approval_member(a, "session_id");

	if (id.len > ID_SHOWN)
		id.len = ID_SHOWN;
	cell_text(t, id);
}

static void add_row(struct table *t, const struct cli *cli, const struct koine_value *a,
		    size_t width, unsigned room)
{
	struct text status = approval_member(a, "status");
	char age[SPAN_SHOWN];

	cell_text(t, approval_short_id(a, width));
	if (cli->options.approval.all)
		table_cell_color(t, status.len > 0 ? status.data : "-", status.len,
				 approval_color(a));
	if (room >= NARROW) {
		approval_age(a, age, sizeof(age));
		table_cell_str(t, age);
		cell_text(t, approval_member(a, "agent"));
	}
	if (room >= WIDE)
		cell_session(t, a);
	cell_text(t, approval_member(a, "tool"));
	cell_gist(t, a);
}

int approval_print_list(const struct cli *cli, const struct koine_value *approvals)
{
	unsigned room = cli->terminal ? terminal_columns() : 1000;
	const struct koine_value *a = koine_value_first(approvals);
	size_t width = approval_id_width(approvals);
	bool all = cli->options.approval.all;
	const char *align = room < NARROW ? "llnl" : room < WIDE ? "llrnnl" : "llrnlnl";
	CLEANUP(table_freep) struct table *t = table_new(all ? align : align + 1);

	if (!t)
		return out_of_memory();
	table_cell_str(t, "ID");
	if (all)
		table_cell_str(t, "STATUS");
	if (room >= NARROW) {
		table_cell_str(t, "AGE");
		table_cell_str(t, "AGENT");
	}
	if (room >= WIDE)
		table_cell_str(t, "SESSION");
	table_cell_str(t, "TOOL");
	table_cell_str(t, "INPUT");
	for (; a; a = koine_value_next(a))
		add_row(t, cli, a, width, room);
	if (cli->terminal)
		table_fit(t, room);
	return table_print(t, stdout, cli->color);
}

/* ---- all of one ---- */

int approval_print_one(const struct cli *cli, const struct koine_value *approval)
{
	struct view v;
	int r;

	view_init(&v);
	r = view_fill(&v, approval);
	if (r == 0)
		r = view_wrap(&v, cli->terminal ? terminal_columns() : 1U << 30);
	for (size_t i = 0; r == 0 && i < view_n_rows(&v); i++) {
		view_print_row(&v, i, stdout, cli->color);
		fputc('\n', stdout);
	}
	view_done(&v);
	return r == 0 ? 0 : out_of_memory();
}

/* ---- as they change ---- */

static void print_part(struct text t, size_t width)
{
	size_t used = print_fitting_exact(stdout, t.len > 0 ? t : TEXT("-"), 1000);

	for (; used < width; used++)
		fputc(' ', stdout);
	fputc(' ', stdout);
}

void approval_print_change(const struct cli *cli, const struct koine_value *approval)
{
	CLEANUP(buf_donep) struct buf gist;
	struct text end = approval_member(approval, "comment");
	char at[16] = "-";
	time_t now = time(NULL);
	struct tm tm;

	buf_init(&gist, GIST_MAX);
	if (cli->options.json) {
		print_json_compact(stdout, approval);
		return;
	}
	approval_gist(&gist, approval);
	if (localtime_r(&now, &tm))
		strftime(at, sizeof(at), "%H:%M:%S", &tm);
	printf("%s ", at);
	print_part(approval_short_id(approval, ID_SHOWN), ID_SHOWN);
	fputs(cli->color ? color_begin(approval_color(approval)) : "", stdout);
	print_part(approval_member(approval, "status"), 10);
	fputs(cli->color ? "\033[0m" : "", stdout);
	print_part(approval_member(approval, "agent"), 6);
	print_part(approval_member(approval, "tool"), 6);
	print_fitting_exact(stdout, (struct text) {.data = gist.data, .len = gist.len}, 400);
	if (end.len > 0) {
		fputs(" -- ", stdout);
		print_fitting_exact(stdout, end, 400);
	}
	fputc('\n', stdout);
}
