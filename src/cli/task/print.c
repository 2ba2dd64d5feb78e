/* Tasks for people: a table that fits the terminal, one in full, and what one printed. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/task.h"
#include "cli/kit/show.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

enum {
	NARROW = 48, /* columns; below it only id, state and prompt fit */
	MIDDLING = 76,
};

struct text task_state(const struct koine_value *task)
{
	static const char *const kept_back[] = {"held", "stashed", "paused", NULL};

	for (const char *const *reason = kept_back; *reason; reason++) {
		if (member_flag(task, *reason))
			return text_of(*reason);
	}
	return member_text(task, "state");
}

enum color task_color(const struct koine_value *task)
{
	static const struct word_color rows[] = {
		{"queued", COLOR_YELLOW},
		{"running", COLOR_BLUE},
		{"completed", COLOR_GREEN},
		{"failed", COLOR_RED},
		{"skipped", COLOR_RED},
		{"cancelled", COLOR_GREY},
		{NULL},
	};

	return color_of_word(rows, member_text(task, "state"));
}

void task_span(const struct koine_value *task, char shown[SPAN_SHOWN])
{
	int64_t from = member_time(task, "started_at");
	int64_t to = member_time(task, "completed_at");

	snprintf(shown, SPAN_SHOWN, "-");
	if (from > 0 && !member_is(task, "state", "queued"))
		duration_format((to > 0 ? to : clock_utc_ms()) - from, shown);
}

/* ---- a list ---- */

struct attempts {
	int64_t n;
	int64_t of;
};

static struct attempts attempts_of(const struct koine_value *task)
{
	struct attempts a = {.n = member_number(task, "attempts"), .of = 1};

	koine_value_int(koine_value_get(task, "max_attempts"), &a.of);
	return a;
}

/* "running 2/3": which attempt, where there was more than one. */
static void cell_state(const struct cell *c)
{
	struct text state = text_cut(task_state(c->row), 20);
	struct attempts a = attempts_of(c->row);
	char shown[64];
	int n = snprintf(shown, sizeof(shown), "%.*s", TEXT_ARGS(state));

	if (a.n > 1 || (a.n == 1 && member_is(c->row, "state", "queued")))
		snprintf(shown + n, sizeof(shown) - (size_t)n, " %lld/%lld", (long long)a.n,
			 (long long)a.of);
	table_cell_color(c->table, text_of(shown), task_color(c->row));
}

static void cell_span(const struct cell *c)
{
	char shown[SPAN_SHOWN];

	task_span(c->row, shown);
	table_cell_str(c->table, shown);
}

/* "held", "stashed" and "paused" are reasons themselves. */
static bool has_reason(const struct koine_value *task)
{
	return koine_value_get(task, "waits") && text_equal(task_state(task), TEXT("queued"));
}

void task_waits(const struct koine_value *task, char shown[WAITS_SHOWN])
{
	const struct koine_value *waits = koine_value_get(task, "waits");
	struct text text = text_cut(member_text(waits, "text"), WAITS_SHOWN - 1);
	char time[TIME_SHOWN];

	shown[0] = '\0';
	if (!has_reason(task))
		return;
	if (member_time(waits, "until") > 0) {
		format_soon(koine_value_get(waits, "until"), time);
		snprintf(shown, WAITS_SHOWN, "at %s", time);
	} else {
		snprintf(shown, WAITS_SHOWN, "%.*s", TEXT_ARGS(text));
	}
}

static void cell_waits(const struct cell *c)
{
	char shown[WAITS_SHOWN];

	task_waits(c->row, shown);
	table_cell_str(c->table, shown);
}

/* The exit status as a shell shows it: 128 and the signal for a program that a signal has ended. One that will
 * be tried again has none. */
static void cell_exit(const struct cell *c)
{
	bool ended = member_text(c->row, "completed_at").data != NULL;
	int64_t status, signal = member_number(c->row, "signal");
	char shown[32] = "-";

	if (ended && signal > 0)
		snprintf(shown, sizeof(shown), "%lld", 128 + (long long)signal);
	else if (ended && koine_value_int(koine_value_get(c->row, "exit_status"), &status))
		snprintf(shown, sizeof(shown), "%lld", (long long)status);
	table_cell_str(c->table, shown);
}

static void cell_prompt(const struct cell *c)
{
	table_cell(c->table, member_text(c->row, c->member));
}

static const struct column columns[] = {
	{"PROJECT", "project", cell_folder, 'l', NARROW},
	{"ID", "id"},
	{"STATE", NULL, cell_state},
	{"PRI", "priority", NULL, 'r', MIDDLING, .if_any = true},
	{"AGE", "created_at", cell_age, 'r', NARROW},
	{"TIME", NULL, cell_span, 'r', NARROW},
	{"EXIT", "completed_at", cell_exit, 'r', NARROW, .if_any = true},
	{"WAITS", "waits", cell_waits, 'l', NARROW, .if_any = true, .has = has_reason},
	{"GROUP", "group", cell_name, 'l', MIDDLING, .if_any = true},
	{"AGENT", "agent", cell_name, 'l', MIDDLING, .if_any = true},
	{"HOST", "host", cell_name, 'l', NARROW, .if_any = true},
	{"LABEL", "label", cell_name, 'l', NARROW, .if_any = true},
	{"PROMPT", "prompt", cell_prompt},
	{NULL},
};

/* Beside the table: why nothing begins. */
static void say_paused(const struct koine_value *found)
{
	fflush(stdout);
	if (member_flag(found, "paused"))
		fputs("all tasks are paused (resume: koine task resume)\n", stderr);
	for (EACH(group, member_first(found, "paused_groups"))) {
		PRINT(stderr, TEXT("group "), text_of_value(group), TEXT(" is paused\n"));
	}
}

/* Beside the table: what the limit has hidden. The counts know neither groups and labels nor what was skipped. */
static void say_hidden(const struct task_options *o, const struct koine_value *found, int64_t shown)
{
	const char *state = o->state ? o->state : "total";
	bool skipped = strcmp(state, "skipped") == 0;
	int64_t all = member_number(koine_value_get(found, "counts"), skipped ? "failed" : state);
	bool exact = !o->group && !o->label && !skipped && strcmp(state, "failed") != 0;

	if (member_number(found, "next") > 0)
		list_say_hidden("first", shown, exact && all > shown ? all : -1, true);
}

int task_print_list(const struct cli *cli, const struct koine_value *found, bool last,
		    int64_t shown)
{
	const struct task_options *o = cli->own;
	const struct cli_list list = {.columns = columns,
				      .without = o->all_projects ? NULL : "PROJECT"};

	int r = list_print_as(cli, &list, koine_value_get(found, "tasks"));

	if (last)
		say_hidden(o, found, shown);
	if (last)
		say_paused(found);
	return r;
}

/* ---- counts ---- */

const struct column task_group_columns[] = {
	{"GROUP", "group"},
	{"QUEUED", "queued", NULL, 'r'},
	{"RUNNING", "running", NULL, 'r'},
	{"COMPLETED", "completed", NULL, 'r'},
	{"FAILED", "failed", NULL, 'r'},
	{"CANCELLED", "cancelled", NULL, 'r'},
	{"PAUSED", "paused", .truth = {"", "paused"}, .if_any = true},
	{NULL},
};

int task_print_counts(const struct cli *cli, const struct koine_value *counts)
{
	static const char *const states[] = {"queued",    "running", "completed", "failed",
					     "cancelled", "total",   NULL};

	return list_print_counts(counts, states);
}

/* ---- all of one ---- */

static void show_state(const struct show *s, const struct show_row *row)
{
	char span[SPAN_SHOWN], waits[WAITS_SHOWN];

	task_span(s->thing, span);
	show_label(s, row->label);
	print_styled(s->cli, color_begin(task_color(s->thing)), task_state(s->thing));
	if (member_is(s->thing, "state", "skipped"))
		PRINT(stdout, TEXT(": "), member_text(s->thing, "error"));
	task_waits(s->thing, waits);
	if (waits[0])
		PRINT(stdout, TEXT(": "), text_of(waits));
	printf(span[0] == '-' ? "\n" : " (%s)\n", span);
}

static void show_attempts(const struct show *s, const struct show_row *row)
{
	struct attempts a = attempts_of(s->thing);

	if (a.of < 2 && a.n < 2)
		return;
	show_label(s, row->label);
	printf("%lld of %lld\n", (long long)a.n, (long long)a.of);
}

static const struct show_row rows[] = {
	{"id", "id"},
	{"state", "state", show_state},
	{"project", "project"},
	{"label", "label"},
	{"agent", "agent"},
	{"runner", "runner"},
	{"group", "group"},
	{"priority", "priority", show_number},
	{"after", "after"},
	{"directory", "cwd"},
	{"environment", "env"},
	{"attempts", "attempts", show_attempts},
	{"timeout", "timeout", show_span},
	{"created", "created_at"},
	{"earliest start", "not_before"},
	{"started", "started_at"},
	{"ended", "completed_at"},
	{"pid", "pid"},
	{"exit status", "exit_status"},
	{"signal", "signal"},
	{"output bytes", "output_bytes"},
	{"", "held"}, /* the state already says so */
	{"", "skipped"},
	{"", "waits"},
	{"", "stashed"},
	{"", "paused"},
	{"", "command"}, /* the prompt shows it */
	{"", "max_attempts"},
	{"", "retry_delay"},
	{"", "metadata"},
	{"Prompt:", "prompt", show_long},
	{"Error:", "error", show_long},
	{"Result:", "result", show_long},
	{NULL},
};

const struct show_form task_form = {.rows = rows, .schema = &task_schema, .width = 13};

/* ---- what one printed ---- */

/* The length in bytes of the colour sequence that starts here: ESC [ digits ; m. 0: it is not
 * one. */
static size_t color_length(const char *text, size_t len)
{
	size_t n = 2;

	if (len < 3 || text[0] != '\033' || text[1] != '[')
		return 0;
	while (n < len && ((text[n] >= '0' && text[n] <= '9') || text[n] == ';'))
		n++;
	return n < len && text[n] == 'm' ? n + 1 : 0;
}

void task_print_output(const struct cli *cli, struct text output)
{
	const char *text = output.data;
	const char *end = text + output.len;

	if (output.len == 0)
		return;
	if (!cli->terminal) {
		fwrite(text, 1, output.len, stdout);
		return;
	}
	while (text < end) {
		const char *escape = memchr(text, '\033', (size_t)(end - text));
		size_t color = escape ? color_length(escape, (size_t)(end - escape)) : 0;
		const char *until = escape ? escape + (color == 0) : end;

		print_text(stdout, (struct text) {.data = text, .len = (size_t)(until - text)});
		if (cli->color)
			fwrite(until, 1, color, stdout);
		text = until + color;
	}
}

/* ---- the queue ---- */

static double priority_of(const struct koine_value *task)
{
	double p = 0;

	koine_value_double(koine_value_get(task, "priority"), &p);
	return p;
}

/* In the order in which they will start. */
static int by_order(const void *a, const void *b)
{
	const struct koine_value *x = *(const struct koine_value *const *)a;
	const struct koine_value *y = *(const struct koine_value *const *)b;
	double by_priority = priority_of(y) - priority_of(x);
	int64_t by_time = member_time(x, "created_at") - member_time(y, "created_at");

	if (by_priority != 0)
		return by_priority > 0 ? 1 : -1;
	return (by_time > 0) - (by_time < 0);
}

size_t task_in_order(const struct koine_value *tasks, const struct koine_value **ret_tasks,
		     size_t max)
{
	const struct koine_value *task = koine_value_first(tasks);
	size_t n = 0;

	for (; task && n < max; task = koine_value_next(task))
		ret_tasks[n++] = task;
	qsort(ret_tasks, n, sizeof(ret_tasks[0]), by_order);
	return n;
}
