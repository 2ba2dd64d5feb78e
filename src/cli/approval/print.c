/* Approvals for people: a table that fits the terminal, all of one, and lines as they change. */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/approval/approval.h"
#include "cli/approval/view.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/tool_gist.h"
#include "cli/kit/value.h"

enum {
	NARROW = 60, /* columns; below it only id, tool and input fit */
	WIDE = 100,  /* from here on the session fits, too */
	ID_SHOWN_MAX = 36,
	ROWS = 100,
};

/* ---- parts ---- */

bool approval_is_question(const struct koine_value *approval)
{
	return text_is(member_string(approval, "kind"), "human_contact");
}

/* Ids that koined makes begin with a word that is not shown. */
static struct text bare_id(const struct koine_value *approval)
{
	static const struct text begins[] = {TEXT("local-"), TEXT("rule-")};
	struct text id = member_string(approval, "id");

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		if (id.len > begins[i].len && text_begins(id, begins[i]))
			return text_skip(id, begins[i].len);
	}
	return id;
}

struct text approval_short_id(const struct koine_value *approval, size_t width)
{
	if (width == ID_WHOLE)
		return member_string(approval, "id");
	return text_cut(bare_id(approval), width);
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
	size_t width = SHORT_ID;

	for (; a; a = koine_value_next(a)) {
		while (width < ID_SHOWN_MAX && collides(a, width))
			width += 4;
		/* They differ only in what is left out. */
		if (collides(a, width))
			return ID_WHOLE;
	}
	return width;
}

static void add_choices(struct buf *out, const struct koine_value *choices)
{
	const struct koine_value *choice = koine_value_first(choices);
	const char *before = "  [";

	if (koine_value_kind(choices) != KOINE_ARRAY || !choice)
		return;
	for (; choice; choice = koine_value_next(choice)) {
		buf_add_str(out, before);
		text_add_exact(out, text_of_any(choice));
		before = ", ";
	}
	buf_add_char(out, ']');
}

void approval_gist(struct buf *out, const struct koine_value *approval)
{
	const struct koine_value *input = koine_value_get(approval, "input");
	struct text message = member_string(input, "msg");

	if (koine_value_kind(koine_value_get(approval, "input_omitted")) == KOINE_TRUE) {
		buf_add_str(out, "(large)");
	} else if (approval_is_question(approval) && message.len > 0) {
		text_add_exact(out, message);
		add_choices(out, koine_value_get(input, "choices"));
	} else {
		tool_gist(out, member_string(approval, "tool"), input);
	}
}

void approval_say_end(const struct koine_value *approval, char *out, size_t size)
{
	struct text status = member_string(approval, "status");
	struct text by = member_string(approval, "decided_by");
	struct text comment = member_string(approval, "comment");
	int n;

	/* Events always have it under this name, whatever the decision was. */
	if (!comment.data)
		comment = member_string(approval, "response_text");
	n = snprintf(out, size, "%.*s%s%.*s%s%.*s", TEXT_ARGS(status), by.len > 0 ? " by " : "",
		     TEXT_ARGS(by), comment.len > 0 ? ": " : "", TEXT_ARGS(comment));
	/* Do not leave half a character at the end. */
	if (n > 0 && (size_t)n >= size)
		out[utf8_whole(out, size - 1)] = '\0';
}

static enum color color_of(const struct koine_value *approval)
{
	static const struct word_color rows[] = {
		{"pending", COLOR_YELLOW},
		{"approved", COLOR_GREEN},
		{"denied", COLOR_RED},
		{"responded", COLOR_GREEN},
		{"expired", COLOR_GREY},
		{"superseded", COLOR_GREY},
		{NULL},
	};

	return color_of_word(rows, member_string(approval, "status"));
}

/* ---- the table ---- */

static void cell_exact(const struct cell *c, struct text text)
{
	CLEANUP(buf_donep) struct buf shown;

	buf_init(&shown, GIST_MAX);
	text_add_exact(&shown, text);
	cell_text(c, buf_text(&shown));
}

static void cell_id(const struct cell *c)
{
	const size_t *width = c->arg;

	cell_exact(c, approval_short_id(c->row, *width));
}

static void cell_status(const struct cell *c)
{
	table_cell_color(c->table, member_string(c->row, c->member), color_of(c->row));
}

static void cell_member(const struct cell *c)
{
	cell_exact(c, member_string(c->row, c->member));
}

static void cell_session(const struct cell *c)
{
	cell_exact(c, text_cut(member_string(c->row, c->member), SHORT_ID));
}

static void cell_gist(const struct cell *c)
{
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	approval_gist(&gist, c->row);
	cell_text(c, buf_text(&gist));
}

int64_t approval_list_limit(const struct approval_options *o)
{
	return o->limit > 0 ? o->limit : ROWS;
}

int approval_print_list(const struct cli *cli, const struct koine_value *approvals)
{
	static const struct column columns[] = {
		{"ID", NULL, cell_id},
		{"STATUS", "status", cell_status},
		{"AGE", "created_at", cell_age, 'r', NARROW},
		{"AGENT", "agent", cell_member, 'n', NARROW},
		{"SESSION", "session_id", cell_session, 'l', WIDE},
		{"TOOL", "tool", cell_member, 'n'},
		{"INPUT", NULL, cell_gist},
		{NULL},
	};
	const struct approval_options *o = cli->own;
	size_t width = approval_id_width(approvals);
	const struct list list = {.columns = columns,
				  .without = o->all ? NULL : "STATUS",
				  .most = approval_list_limit(o),
				  .says_more = true,
				  .arg = &width};

	return list_print_as(cli, &list, approvals);
}

/* ---- all of one ---- */

int approval_print_one(const struct cli *cli, const struct koine_value *approval)
{
	struct view v;
	int r;

	view_init(&v);
	r = view_fill(&v, approval) ?: view_wrap(&v, cli->terminal ? terminal_columns() : 1U << 30);
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
	struct text end = member_string(approval, "comment");
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
	print_part(approval_short_id(approval, SHORT_ID), SHORT_ID);
	print_style(cli, color_begin(color_of(approval)));
	print_part(member_string(approval, "status"), 10);
	print_plain(cli);
	print_part(member_string(approval, "agent"), 6);
	print_part(member_string(approval, "tool"), 6);
	print_fitting_exact(stdout, buf_text(&gist), 400);
	if (end.len > 0) {
		fputs(" -- ", stdout);
		print_fitting_exact(stdout, end, 400);
	}
	fputc('\n', stdout);
}
