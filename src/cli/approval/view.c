#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/approval/view.h"
#include "cli/kit/glyph.h"
#include "cli/kit/value.h"
#include "model/approval.h"

/* ---- the differences between two texts, line by line ---- */

enum { CELLS_MAX = 4 << 20 };

static size_t count_lines(struct text t)
{
	struct text line;
	size_t n = 0;

	while (text_next(&t, '\n', &line))
		n++;
	return n;
}

/* NULL: none, or out of memory. */
static struct text *split(struct text t, size_t *ret_n)
{
	size_t n = count_lines(t);
	struct text *lines = n > 0 ? calloc(n, sizeof(*lines)) : NULL;

	*ret_n = lines ? n : 0;
	for (size_t i = 0; i < *ret_n; i++)
		(void)text_next(&t, '\n', &lines[i]);
	return lines;
}

struct diff {
	const struct text *old;
	const struct text *new;
	size_t n_old;
	size_t n_new;
	diff_fn fn;
	void *arg;
};

static void approval_view_notify(const struct diff *d, char sign, const struct text *lines,
				 size_t n)
{
	for (size_t i = 0; i < n; i++)
		d->fn(d->arg, sign, lines[i]);
}

static void replace(const struct diff *d)
{
	approval_view_notify(d, '-', d->old, d->n_old);
	approval_view_notify(d, '+', d->new, d->n_new);
}

/* table[i][j] is how many lines the texts from old i and new j on have in common. */
static void approval_view_fill(const struct diff *d, uint16_t *table)
{
	size_t width = d->n_new + 1;

	for (size_t i = d->n_old; i-- > 0;) {
		uint16_t *row = table + i * width;
		const uint16_t *below = row + width;

		for (size_t j = d->n_new; j-- > 0;) {
			if (text_equal(d->old[i], d->new[j]))
				row[j] = (uint16_t)(below[j + 1] + 1);
			else
				row[j] = below[j] >= row[j + 1] ? below[j] : row[j + 1];
		}
	}
}

static void walk(const struct diff *d, const uint16_t *table)
{
	size_t width = d->n_new + 1;
	size_t i = 0;
	size_t j = 0;

	while (i < d->n_old && j < d->n_new) {
		const uint16_t *row = table + i * width;

		if (text_equal(d->old[i], d->new[j])) {
			d->fn(d->arg, ' ', d->old[i++]);
			j++;
		} else if (row[width + j] >= row[j + 1]) {
			d->fn(d->arg, '-', d->old[i++]);
		} else {
			d->fn(d->arg, '+', d->new[j++]);
		}
	}
	approval_view_notify(d, '-', d->old + i, d->n_old - i);
	approval_view_notify(d, '+', d->new + j, d->n_new - j);
}

static void middle(const struct diff *d)
{
	CLEANUP(freep) uint16_t *table = NULL;

	if (d->n_old > 0 && d->n_new > 0 && d->n_old < UINT16_MAX && d->n_new < UINT16_MAX &&
	    (d->n_old + 1) * (d->n_new + 1) <= CELLS_MAX)
		table = calloc((d->n_old + 1) * (d->n_new + 1), sizeof(*table));
	if (!table) {
		replace(d);
		return;
	}
	approval_view_fill(d, table);
	walk(d, table);
}

/* Without memory to compare, report both texts whole: nothing may go unseen. */
static void tell_whole(struct text t, char sign, diff_fn fn, void *arg)
{
	struct text line;

	while (text_next(&t, '\n', &line))
		fn(arg, sign, line);
}

void diff_lines(struct text before, struct text after, diff_fn fn, void *arg)
{
	struct diff d = {.fn = fn, .arg = arg};
	CLEANUP(freep) struct text *old = split(before, &d.n_old);
	CLEANUP(freep) struct text *new = split(after, &d.n_new);
	size_t head = 0;
	size_t tail = 0;

	if ((before.len > 0 && !old) || (after.len > 0 && !new)) {
		tell_whole(before, '-', fn, arg);
		tell_whole(after, '+', fn, arg);
		return;
	}
	while (head < d.n_old && head < d.n_new && text_equal(old[head], new[head]))
		head++;
	while (tail < d.n_old - head && tail < d.n_new - head &&
	       text_equal(old[d.n_old - 1 - tail], new[d.n_new - 1 - tail]))
		tail++;
	approval_view_notify(&d, ' ', old, head);
	d.old = old ? old + head : NULL;
	d.new = new ? new + head : NULL;
	d.n_old -= head + tail;
	d.n_new -= head + tail;
	middle(&d);
	approval_view_notify(&d, ' ', old ? old + head + d.n_old : NULL, tail);
}

enum { TEXT_MAX = 64 << 20, TAB_WIDTH = 4 };

/* A line, or a row of one. */
struct view_piece {
	size_t at; /* in text */
	size_t len;
	enum color color;
};

void view_init(struct view *v)
{
	buf_init(&v->text, TEXT_MAX);
	buf_init(&v->lines, TEXT_MAX);
	buf_init(&v->rows, TEXT_MAX);
}

void view_done(struct view *v)
{
	buf_done(&v->text);
	buf_done(&v->lines);
	buf_done(&v->rows);
}

static int fault_of(const struct view *v)
{
	if (v->text.err != 0)
		return v->text.err;
	return v->lines.err != 0 ? v->lines.err : v->rows.err;
}

/* ---- lines ---- */

/* Terminates what was added to text since `at`. */
static void end_line(struct view *v, size_t at, enum color color)
{
	const struct view_piece line = {.at = at, .len = v->text.len - at, .color = color};

	buf_add(&v->lines, &line, sizeof(line));
}

/* Text is kept as it will be shown, so that an escape may continue in the next row. Code keeps
 * its indentation: a tab is TAB_WIDTH spaces here. */
static void add_expanded(struct view *v, struct text t)
{
	static const char blanks[TAB_WIDTH + 1] = "    ";
	struct text part;

	while (text_next(&t, '\t', &part)) {
		text_add_exact(&v->text, part);
		/* What is left, or the byte before it, follows a tab. */
		if (t.data > part.data + part.len)
			buf_add(&v->text, blanks, TAB_WIDTH);
	}
}

static void add_line(struct view *v, const char *before, struct text t, enum color color)
{
	size_t at = v->text.len;

	buf_add_str(&v->text, before);
	add_expanded(v, t);
	end_line(v, at, color);
}

static void add_lines(struct view *v, const char *before, struct text t, enum color color)
{
	struct text line;

	while (text_next(&t, '\n', &line))
		add_line(v, before, line, color);
}

static void add_named(struct view *v, const char *name, struct text t)
{
	char before[32];

	if (t.len == 0)
		return;
	snprintf(before, sizeof(before), "%-10s ", name);
	add_line(v, before, t, COLOR_NONE);
}

/* ---- edits ---- */

static void on_diff(void *arg, char sign, struct text line)
{
	const char before[] = {sign, ' ', '\0'};

	add_line(arg, before, line,
		 sign == '-'   ? COLOR_RED
		 : sign == '+' ? COLOR_GREEN
			       : COLOR_NONE);
}

static bool is_string(const struct koine_value *v)
{
	return koine_value_kind(v) == KOINE_STRING;
}

/* No tool's input has more members; one that does is shown as it came. */
enum { MEMBERS_MAX = 64 };

/* Whether all its members have different names, so that none hides another. */
static bool is_plain(const struct koine_value *object)
{
	if (koine_value_count(object) > MEMBERS_MAX)
		return false;
	for (EACH(m, koine_value_first(object))) {
		for (EACH(other, koine_value_next(m))) {
			if (text_equal(text_of_key(m), text_of_key(other)))
				return false;
		}
	}
	return true;
}

static bool is_edit(const struct koine_value *v)
{
	return is_plain(v) && is_string(koine_value_get(v, "old_string")) &&
	       is_string(koine_value_get(v, "new_string"));
}

/* An edit all of whose members its diff would show. */
static bool is_bare_edit(const struct koine_value *v)
{
	size_t known = 2 + (koine_value_get(v, "replace_all") != NULL);
	bool everywhere;

	return is_edit(v) && koine_value_count(v) == known &&
	       (known == 2 || koine_value_bool(koine_value_get(v, "replace_all"), &everywhere));
}

static void add_edit(struct view *v, const struct koine_value *edit)
{
	diff_lines(member_string(edit, "old_string"), member_string(edit, "new_string"), on_diff,
		   v);
}

/* A patch has its own signs; a line without one must not look like a member. */
static void add_patch(struct view *v, struct text patch)
{
	struct text line;

	while (text_next(&patch, '\n', &line)) {
		char first = line.len > 0 ? line.data[0] : ' ';

		add_line(v, strchr("+-@* ", first) ? "" : "  ", line,
			 first == '-'   ? COLOR_RED
			 : first == '+' ? COLOR_GREEN
			 : first == '@' ? COLOR_BLUE
					: COLOR_NONE);
	}
}

static bool is_patch(struct text t)
{
	return text_begins(t, TEXT("*** Begin Patch")) || text_begins(t, TEXT("diff --git ")) ||
	       text_begins(t, TEXT("--- "));
}

/* ---- members ---- */

static void add_key(struct view *v, const struct koine_value *member, struct text value)
{
	size_t at = v->text.len;

	add_expanded(v, text_of_key(member));
	buf_add_str(&v->text, value.len > 0 ? ": " : ":");
	add_expanded(v, value);
	end_line(v, at, COLOR_NONE);
}

static void add_string(struct view *v, const struct koine_value *member, struct text t)
{
	const struct text none = {0};

	if (!memchr(t.len > 0 ? t.data : "", '\n', t.len)) {
		add_key(v, member, t.len > 0 ? t : TEXT("\"\""));
		return;
	}
	add_key(v, member, none);
	if (is_patch(t))
		add_patch(v, t);
	else
		add_lines(v, "  ", t, COLOR_NONE);
}

static bool is_named(const struct koine_value *member, const char *name)
{
	return text_is(text_of_key(member), name);
}

/* Each item of the list is an edit, or has members like any other input. */
static bool add_edits(struct view *v, const struct koine_value *list)
{
	for (EACH(edit, koine_value_first(list))) {
		if (!is_bare_edit(edit))
			return false;
	}
	for (EACH(edit, koine_value_first(list))) {
		add_line(v, member_flag(edit, "replace_all") ? "@@ everywhere @@" : "@@ @@",
			 TEXT(""), COLOR_BLUE);
		add_edit(v, edit);
	}
	return koine_value_first(list) != NULL;
}

static void add_member(struct view *v, const struct koine_value *input,
		       const struct koine_value *member)
{
	struct text t;

	if (is_edit(input) && is_named(member, "old_string")) {
		add_edit(v, input);
		return;
	}
	if (is_edit(input) && is_named(member, "new_string"))
		return;
	if (is_named(member, "edits") && add_edits(v, member))
		return;
	t = text_of_value(member);
	if (!is_string(member))
		add_key(v, member, text_of_raw(member));
	else if (t.len > 0 && is_named(member, "content") &&
		 is_string(koine_value_get(input, "file_path")))
		add_lines(v, "+ ", t, COLOR_GREEN);
	else
		add_string(v, member, t);
}

/* ---- who asks ---- */

static void add_time(struct view *v, const char *name, const struct koine_value *time)
{
	char shown[TIME_SHOWN];

	format_time(time, shown);
	add_named(v, name, text_of(shown));
}

/* "/usr/bin/koine, pid 4211, uid 1000, pts/3" */
static void add_decider(struct view *v, const struct koine_value *from)
{
	struct text program = member_string(from, "program");
	struct text terminal = member_string(from, "terminal");
	int64_t uid;
	char who[512];

	if (!koine_value_int(koine_value_get(from, "uid"), &uid))
		return;
	snprintf(who, sizeof(who), "%.*s, pid %lld, uid %lld%s%.*s",
		 TEXT_ARGS(program.len > 0 ? text_cut(program, 256) : TEXT("unknown")),
		 (long long)member_number(from, "pid"), (long long)uid,
		 terminal.len > 0 ? ", " : "", TEXT_ARGS(text_cut(terminal, 64)));
	add_named(v, "from", text_of(who));
}

static const struct head_row {
	const char *label; /* NULL: it is not shown here */
	const char *member;
	bool is_time;
} head_rows[] = {
	{"id", "id"},
	{"tool", "tool"},
	{"status", "status"},
	{"agent", "agent"},
	{"session", "session_id"},
	{"run", "run_id"},
	{"where", "origin"},
	{"asked", "created_at", true},
	{"until", "deadline", true},
	{"decided", "decided_at", true},
	{"decided by", "decided_by"},
	{"comment", "comment"},
	{NULL, "kind"},
	{NULL, "tool_use_id"},
	{NULL, "event_id"},
	{NULL, "input"}, /* below */
};

enum { N_HEAD_ROWS = sizeof(head_rows) / sizeof(head_rows[0]) };

static bool has_row(const char *member)
{
	for (unsigned i = 0; i < N_HEAD_ROWS; i++) {
		if (strcmp(head_rows[i].member, member) == 0)
			return true;
	}
	return false;
}

static void add_row(struct view *v, const struct koine_value *approval, const struct head_row *row)
{
	struct text t = member_string(approval, row->member);

	if (row->is_time && t.len > 0)
		add_time(v, row->label, koine_value_get(approval, row->member));
	else
		add_named(v, row->label, t);
}

/* Members that have no row here are shown by their own names. */
static void add_head(struct view *v, const struct koine_value *approval)
{
	for (unsigned i = 0; i < N_HEAD_ROWS; i++) {
		if (head_rows[i].label)
			add_row(v, approval, &head_rows[i]);
	}
	schema_each(m, &approval_schema)
	{
		const struct head_row row = {m->name, m->name, m->kind == MEMBER_TIME};

		if (m->name && !has_row(m->name))
			add_row(v, approval, &row);
	}
	add_decider(v, koine_value_get(approval, "decided_from"));
}

int view_fill(struct view *v, const struct koine_value *approval)
{
	const struct koine_value *input = koine_value_get(approval, "input");
	const struct koine_value *member = koine_value_first(input);

	buf_clear(&v->text);
	buf_clear(&v->lines);
	buf_clear(&v->rows);
	add_head(v, approval);
	if (member)
		add_line(v, "", TEXT(""), COLOR_NONE);
	for (; member; member = koine_value_next(member))
		add_member(v, input, member);
	return fault_of(v);
}

/* ---- rows ---- */

static void wrap_line(struct view *v, const struct view_piece *line, unsigned columns)
{
	size_t from = 0;

	do {
		struct text rest = {.data = v->text.data + line->at + from,
				    .len = line->len - from};
		struct view_piece row = {.at = line->at + from, .color = line->color};
		struct glyph g;

		row.len = text_fitting_by(rest, columns, glyph_read_exact);
		/* A wide character in a single column must go somewhere. */
		if (row.len == 0 && rest.len > 0) {
			glyph_read_exact(&g, rest.data, rest.data + rest.len);
			row.len = g.used;
		}
		buf_add(&v->rows, &row, sizeof(row));
		from += row.len;
	} while (from < line->len && v->rows.err == 0);
}

int view_wrap(struct view *v, unsigned columns)
{
	size_t n = v->lines.len / sizeof(struct view_piece);

	buf_clear(&v->rows);
	for (size_t i = 0; i < n; i++) {
		struct view_piece line;

		memcpy(&line, v->lines.data + i * sizeof(line), sizeof(line));
		wrap_line(v, &line, columns > 0 ? columns : 1);
	}
	return fault_of(v);
}

size_t view_n_rows(const struct view *v)
{
	return v->rows.len / sizeof(struct view_piece);
}

struct text view_row(const struct view *v, size_t row, enum color *ret_color)
{
	struct view_piece r;

	memcpy(&r, v->rows.data + row * sizeof(r), sizeof(r));
	*ret_color = r.color;
	return (struct text) {.data = v->text.data + r.at, .len = r.len};
}

void view_print_row(const struct view *v, size_t row, FILE *out, bool color)
{
	enum color its_color;
	struct text t = view_row(v, row, &its_color);

	fputs(color ? color_begin(its_color) : "", out);
	print_exact(out, t);
	fputs(color && its_color != COLOR_NONE ? "\033[0m" : "", out);
}
