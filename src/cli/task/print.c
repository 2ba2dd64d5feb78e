/* Tasks for people: a table that fits the terminal, all of one, and what one printed. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/task/task.h"

enum {
	NARROW = 48, /* columns; below it id, state and prompt are all there is room for */
	MIDDLING = 76,
	NAME_WIDTH = 16, /* of the last part of a project's folder, a group, an agent */
};

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

/* Of a string or number; "" for anything else. */
static const char *member_text(const struct koine_value *v, const char *key, size_t *ret_len)
{
	const char *text = koine_value_text(koine_value_get(v, key), ret_len);

	if (!text)
		*ret_len = 0;
	return text ? text : "";
}

bool value_is(const struct koine_value *v, const char *text)
{
	size_t len;
	const char *found = koine_value_text(v, &len);

	return found && len == strlen(text) && memcmp(found, text, len) == 0;
}

static bool is_state(const struct koine_value *task, const char *state)
{
	return value_is(koine_value_get(task, "state"), state);
}

int64_t task_time(const struct koine_value *task, const char *member)
{
	struct text iso = {0};
	int64_t ms = 0;

	iso.data = koine_value_text(koine_value_get(task, member), &iso.len);
	return iso.data && clock_parse_iso(iso, &ms) ? ms : 0;
}

bool task_is_held(const struct koine_value *task)
{
	bool held = false;

	return koine_value_bool(koine_value_get(task, "held"), &held) && held;
}

/* As people are told: one that is held is queued, but not in line. */
static const char *state_of(const struct koine_value *task, size_t *ret_len)
{
	if (!task_is_held(task))
		return member_text(task, "state", ret_len);
	*ret_len = strlen("held");
	return "held";
}

enum cell_color task_color(const struct koine_value *task)
{
	static const struct {
		const char *state;
		enum cell_color color;
	} rows[] = {
		{"queued", CELL_YELLOW}, {"running", CELL_BLUE},   {"completed", CELL_GREEN},
		{"failed", CELL_RED},    {"cancelled", CELL_GREY},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (is_state(task, rows[i].state))
			return rows[i].color;
	}
	return CELL_PLAIN;
}

void task_span(const struct koine_value *task, char shown[SPAN_SHOWN])
{
	int64_t from = task_time(task, "started_at");
	int64_t to = task_time(task, "completed_at");

	snprintf(shown, SPAN_SHOWN, "-");
	if (from > 0 && !is_state(task, "queued"))
		duration_format((to > 0 ? to : clock_utc_ms()) - from, shown);
}

/* ---- columns ---- */

static void cell_short(struct table *t, const char *text, size_t len)
{
	char cut[4 * NAME_WIDTH + 4];
	size_t n = 0;
	size_t columns = 0;
	struct glyph g;

	for (size_t i = 0; i < len; i += g.used) {
		glyph_read(&g, text + i, text + len);
		columns += g.width;
		if (columns > NAME_WIDTH || n + g.len > sizeof(cut) - 4)
			break;
		memcpy(cut + n, text + i, g.used);
		n += g.used;
	}
	table_cell(t, len > 0 ? cut : "-", len > 0 ? n : 1);
}

/* The last part of its folder; "-" for none. */
static void cell_project(struct table *t, const struct koine_value *task)
{
	size_t len;
	const char *text = member_text(task, "project", &len);
	size_t from = len;

	while (from > 0 && text[from - 1] != '/')
		from--;
	cell_short(t, text + from, len - from);
}

static void cell_id(struct table *t, const struct koine_value *task)
{
	table_cell_value(t, koine_value_get(task, "id"));
}

/* "running 2/3": which attempt, where there was more than one. */
static void cell_state(struct table *t, const struct koine_value *task)
{
	char shown[64];
	size_t len;
	const char *state = state_of(task, &len);
	int64_t n = 0;
	int64_t of = 1;

	koine_value_int(koine_value_get(task, "attempts"), &n);
	koine_value_int(koine_value_get(task, "max_attempts"), &of);
	if (n > 1 || (n == 1 && is_state(task, "queued")))
		snprintf(shown, sizeof(shown), "%.*s %lld/%lld", len < 20 ? (int)len : 20, state,
			 (long long)n, (long long)of);
	else
		snprintf(shown, sizeof(shown), "%.*s", len < 20 ? (int)len : 20, state);
	table_cell_color(t, shown, strlen(shown), task_color(task));
}

static void cell_priority(struct table *t, const struct koine_value *task)
{
	table_cell_value(t, koine_value_get(task, "priority"));
}

static void cell_age(struct table *t, const struct koine_value *task)
{
	char shown[SPAN_SHOWN];

	duration_format_age(clock_utc_ms() - task_time(task, "created_at"), shown);
	table_cell_str(t, shown);
}

static void cell_time(struct table *t, const struct koine_value *task)
{
	char shown[SPAN_SHOWN];

	task_span(task, shown);
	table_cell_str(t, shown);
}

static void cell_group(struct table *t, const struct koine_value *task)
{
	size_t len;
	const char *text = member_text(task, "group", &len);

	cell_short(t, text, len);
}

static void cell_agent(struct table *t, const struct koine_value *task)
{
	size_t len;
	const char *text = member_text(task, "agent", &len);

	cell_short(t, text, len);
}

static void cell_prompt(struct table *t, const struct koine_value *task)
{
	size_t len;
	const char *text = member_text(task, "prompt", &len);

	table_cell(t, text, len);
}

static const struct column {
	const char *title;
	char align;
	unsigned room;      /* columns the terminal must have */
	const char *member; /* shown only if one of the tasks has it; NULL: always */
	void (*cell)(struct table *t, const struct koine_value *task);
} columns[] = {
	{"PROJECT", 'l', NARROW, NULL, cell_project},
	{"ID", 'l', 0, NULL, cell_id},
	{"STATE", 'l', 0, NULL, cell_state},
	{"PRI", 'r', MIDDLING, "priority", cell_priority},
	{"AGE", 'r', NARROW, NULL, cell_age},
	{"TIME", 'r', NARROW, NULL, cell_time},
	{"GROUP", 'l', MIDDLING, "group", cell_group},
	{"AGENT", 'l', MIDDLING, "agent", cell_agent},
	{"PROMPT", 'l', 0, NULL, cell_prompt},
};

enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* A priority of 0 is none. */
static bool any_has(const struct koine_value *tasks, const char *member)
{
	const struct koine_value *task = koine_value_first(tasks);

	for (; task; task = koine_value_next(task)) {
		const struct koine_value *v = koine_value_get(task, member);

		if (koine_value_kind(v) != KOINE_NULL && !value_is(v, "0"))
			return true;
	}
	return false;
}

static bool is_shown(const struct task_call *t, const struct column *c, unsigned room,
		     const struct koine_value *tasks)
{
	if (c->cell == cell_project && !t->all_projects)
		return false;
	return room >= c->room && (!c->member || any_has(tasks, c->member));
}

int task_print_list(const struct task_call *t, const struct koine_value *tasks)
{
	unsigned room = t->cli->terminal ? terminal_columns() : 1000;
	const struct koine_value *task = koine_value_first(tasks);
	const struct column *shown[N_COLUMNS];
	CLEANUP(table_freep) struct table *table = NULL;
	char align[N_COLUMNS + 1] = "";
	int n = 0;

	for (int i = 0; i < N_COLUMNS; i++) {
		if (!is_shown(t, &columns[i], room, tasks))
			continue;
		align[n] = columns[i].align;
		shown[n++] = &columns[i];
	}
	table = table_new(align);
	if (!table)
		return out_of_memory();
	for (int i = 0; i < n; i++)
		table_cell_str(table, shown[i]->title);
	for (; task; task = koine_value_next(task)) {
		for (int i = 0; i < n; i++)
			shown[i]->cell(table, task);
	}
	if (t->cli->terminal)
		table_fit(table, room);
	return table_print(table, stdout, t->cli->color);
}

int task_print_groups(const struct task_call *t, const struct koine_value *groups)
{
	static const char *const members[] = {"group",     "queued", "running",
					      "completed", "failed", "cancelled"};
	static const char *const titles[] = {"GROUP",     "QUEUED", "RUNNING",
					     "COMPLETED", "FAILED", "CANCELLED"};
	CLEANUP(table_freep) struct table *table = table_new("lrrrrr");
	const struct koine_value *group = koine_value_first(groups);

	if (!table)
		return out_of_memory();
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell_str(table, titles[i]);
	for (; group; group = koine_value_next(group)) {
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
			table_cell_value(table, koine_value_get(group, members[i]));
	}
	return table_print(table, stdout, t->cli->color);
}

/* ---- all of one ---- */

static void print_name(const char *name)
{
	printf("%-13s ", name);
}

/* Nothing for what is not given. */
static void print_member(const struct koine_value *task, const char *name, const char *member)
{
	size_t len;
	const char *text = member_text(task, member, &len);

	if (len == 0)
		return;
	print_name(name);
	print_text(stdout, text, len);
	fputc('\n', stdout);
}

static void print_when(const struct koine_value *task, const char *name, const char *member)
{
	char shown[TIME_SHOWN];

	if (task_time(task, member) == 0)
		return;
	format_time(koine_value_get(task, member), shown);
	print_name(name);
	printf("%s\n", shown);
}

static void print_span(const struct koine_value *task, const char *name, const char *member)
{
	char shown[SPAN_SHOWN];
	int64_t ms = 0;

	if (!koine_value_int(koine_value_get(task, member), &ms) || ms == 0)
		return;
	duration_format(ms, shown);
	print_name(name);
	printf("%s\n", shown);
}

static void print_names(const struct koine_value *task, const char *name, const char *member)
{
	const struct koine_value *v = koine_value_first(koine_value_get(task, member));

	if (!v)
		return;
	print_name(name);
	for (; v; v = koine_value_next(v)) {
		size_t len;
		const char *text = koine_value_text(v, &len);

		print_text(stdout, text ? text : "", text ? len : 0);
		fputs(koine_value_next(v) ? " " : "\n", stdout);
	}
}

static void print_state(const struct cli *cli, const struct koine_value *task)
{
	size_t len;
	const char *state = state_of(task, &len);
	char span[SPAN_SHOWN];

	task_span(task, span);
	print_name("state");
	fputs(cli->color ? color_begin(task_color(task)) : "", stdout);
	print_text(stdout, state, len);
	fputs(cli->color ? "\033[0m" : "", stdout);
	printf(span[0] == '-' ? "\n" : " (%s)\n", span);
}

static void print_attempts(const struct koine_value *task)
{
	int64_t n = 0;
	int64_t of = 1;

	koine_value_int(koine_value_get(task, "attempts"), &n);
	koine_value_int(koine_value_get(task, "max_attempts"), &of);
	if (of < 2 && n < 2)
		return;
	print_name("attempts");
	printf("%lld of %lld\n", (long long)n, (long long)of);
}

static void print_long(const struct koine_value *task, const char *title, const char *member)
{
	size_t len;
	const char *text = member_text(task, member, &len);

	while (len > 0 && text[len - 1] == '\n')
		len--;
	if (len == 0)
		return;
	printf("\n%s\n", title);
	print_text(stdout, text, len);
	fputc('\n', stdout);
}

int task_print_one(const struct cli *cli, const struct koine_value *task)
{
	print_member(task, "id", "id");
	print_state(cli, task);
	print_member(task, "project", "project");
	print_member(task, "agent", "agent");
	print_member(task, "runner", "runner");
	print_member(task, "group", "group");
	if (!value_is(koine_value_get(task, "priority"), "0"))
		print_member(task, "priority", "priority");
	print_names(task, "after", "after");
	print_member(task, "directory", "cwd");
	print_names(task, "environment", "env");
	print_attempts(task);
	print_span(task, "timeout", "timeout");
	print_when(task, "created", "created_at");
	print_when(task, "not before", "not_before");
	print_when(task, "started", "started_at");
	print_when(task, "ended", "completed_at");
	print_member(task, "pid", "pid");
	print_member(task, "exit status", "exit_status");
	print_member(task, "signal", "signal");
	print_member(task, "output bytes", "output_bytes");
	print_long(task, "Prompt:", "prompt");
	print_long(task, "Error:", "error");
	print_long(task, "Result:", "result");
	return 0;
}

/* ---- what one printed ---- */

/* Bytes of the colour that begins here: ESC [ digits ; m. 0: it is none. */
static size_t color_length(const char *text, size_t len)
{
	size_t n = 2;

	if (len < 3 || text[0] != '\033' || text[1] != '[')
		return 0;
	while (n < len && ((text[n] >= '0' && text[n] <= '9') || text[n] == ';'))
		n++;
	return n < len && text[n] == 'm' ? n + 1 : 0;
}

void task_print_output(const struct cli *cli, const char *text, size_t len)
{
	const char *end = text + len;

	if (!cli->terminal) {
		fwrite(text, 1, len, stdout);
		return;
	}
	while (text < end) {
		const char *escape = memchr(text, '\033', (size_t)(end - text));
		size_t color = escape ? color_length(escape, (size_t)(end - escape)) : 0;
		const char *until = escape ? escape + (color == 0) : end;

		print_text(stdout, text, (size_t)(until - text));
		if (cli->color)
			fwrite(until, 1, color, stdout);
		text = until + color;
	}
}
