/* Sessions for people: a table, and all of one. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/session/session.h"
#include "cli/task/task.h"

enum { NARROW = 60, LABEL = 14 };

static const char *member_text(const struct koine_value *v, const char *key, size_t *ret_len)
{
	const char *text = koine_value_text(koine_value_get(v, key), ret_len);

	if (!text)
		*ret_len = 0;
	return text ? text : "";
}

enum cell_color session_color(const struct koine_value *session)
{
	static const struct {
		const char *status;
		enum cell_color color;
	} rows[] = {
		{"starting", CELL_BLUE},        {"running", CELL_BLUE},
		{"waiting_input", CELL_YELLOW}, {"completing", CELL_YELLOW},
		{"completed", CELL_GREEN},      {"failed", CELL_RED},
		{"interrupted", CELL_GREY},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (value_is(koine_value_get(session, "status"), rows[i].status))
			return rows[i].color;
	}
	return CELL_PLAIN;
}

/* A summary is cut for those who cannot; a terminal shows of the query what there is room for. */
const char *session_name(const struct cli *cli, const struct koine_value *session, size_t *ret_len)
{
	static const char *const members[] = {"title", "summary", "query"};
	const char *text = "";

	*ret_len = 0;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && *ret_len == 0; i++) {
		if (i != 1 || !cli->terminal)
			text = member_text(session, members[i], ret_len);
	}
	return text;
}

void session_say_none(bool of_all)
{
	fprintf(stderr, "no sessions%s\n",
		of_all ? "" : "; koine session run starts one, list --all shows archived ones");
}

/* ---- a table ---- */

static void cell_beginning(struct table *t, const struct koine_value *session, const char *member,
			   size_t max)
{
	size_t len;
	const char *text = member_text(session, member, &len);

	if (len == 0)
		table_cell_str(t, "-");
	else
		table_cell(t, text, len < max ? len : max);
}

/* The last part of a folder. */
static void cell_folder(struct table *t, const struct koine_value *session)
{
	size_t len;
	const char *text = member_text(session, "working_dir", &len);
	size_t from = len;

	while (from > 0 && text[from - 1] != '/')
		from--;
	if (from == len)
		table_cell_str(t, "-");
	else
		table_cell(t, text + from, len - from);
}

static void cell_age(struct table *t, const struct koine_value *session)
{
	char shown[SPAN_SHOWN];

	duration_format_age(clock_utc_ms() - task_time(session, "active_at"), shown);
	table_cell_str(t, shown);
}

static void cell_cost(struct table *t, const struct koine_value *session)
{
	char shown[32] = "-";
	double usd;

	if (koine_value_double(koine_value_get(session, "cost_usd"), &usd))
		snprintf(shown, sizeof(shown), "$%.2f", usd);
	table_cell_str(t, shown);
}

static void row(const struct cli *cli, struct table *t, const struct koine_value *session,
		bool wide)
{
	size_t len;
	const char *status = member_text(session, "status", &len);

	cell_beginning(t, session, "id", SESSION_ID_SHOWN);
	table_cell_color(t, status, len, session_color(session));
	cell_age(t, session);
	if (wide) {
		cell_cost(t, session);
		table_cell_value(t, koine_value_get(session, "model"));
		cell_folder(t, session);
	}
	status = session_name(cli, session, &len);
	table_cell(t, status, len);
}

int session_print_list(const struct cli *cli, const struct koine_value *sessions)
{
	static const char *const titles[] = {"ID",    "STATUS", "AGE",  "COST",
					     "MODEL", "FOLDER", "TITLE"};
	unsigned room = cli->terminal ? terminal_columns() : 1000;
	bool wide = room >= NARROW;
	CLEANUP(table_freep) struct table *t = table_new(wide ? "llrrnnl" : "llrl");
	const struct koine_value *s = koine_value_first(sessions);

	if (!t) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	for (int i = 0; i < 7; i++) {
		if (wide || i < 3 || i == 6)
			table_cell_str(t, titles[i]);
	}
	for (; s; s = koine_value_next(s))
		row(cli, t, s, wide);
	if (cli->terminal)
		table_fit(t, room);
	return table_print(t, stdout, cli->color);
}

/* ---- all of one ---- */

/* Nothing for what is not given. */
static void print_member(const struct koine_value *session, const char *name, const char *member)
{
	size_t len;
	const char *text = member_text(session, member, &len);

	if (len == 0)
		return;
	printf("%-*s ", LABEL, name);
	print_text(stdout, text, len);
	fputc('\n', stdout);
}

static void print_when(const struct koine_value *session, const char *name, const char *member)
{
	char shown[TIME_SHOWN];

	if (task_time(session, member) == 0)
		return;
	format_time(koine_value_get(session, member), shown);
	printf("%-*s %s\n", LABEL, name, shown);
}

static void print_status(const struct cli *cli, const struct koine_value *session)
{
	size_t len;
	const char *status = member_text(session, "status", &len);
	bool archived = false;

	koine_value_bool(koine_value_get(session, "archived"), &archived);
	printf("%-*s %s", LABEL, "status", cli->color ? color_begin(session_color(session)) : "");
	print_text(stdout, status, len);
	printf("%s%s\n", cli->color ? "\033[0m" : "", archived ? " (archived)" : "");
}

static void print_cost(const struct koine_value *session)
{
	double usd;

	if (koine_value_double(koine_value_get(session, "cost_usd"), &usd))
		printf("%-*s $%.4f\n", LABEL, "cost", usd);
}

static void print_span(const struct koine_value *session)
{
	char shown[SPAN_SHOWN];
	int64_t ms;

	if (!koine_value_int(koine_value_get(session, "duration_ms"), &ms))
		return;
	duration_format(ms, shown);
	printf("%-*s %s\n", LABEL, "duration", shown);
}

static void print_long(const struct koine_value *session, const char *title, const char *member)
{
	size_t len;
	const char *text = member_text(session, member, &len);

	while (len > 0 && text[len - 1] == '\n')
		len--;
	if (len == 0)
		return;
	printf("\n%s\n", title);
	print_text(stdout, text, len);
	fputc('\n', stdout);
}

void session_print_one(const struct cli *cli, const struct koine_value *session)
{
	print_member(session, "id", "id");
	print_status(cli, session);
	print_member(session, "title", "title");
	print_member(session, "run", "run_id");
	print_member(session, "parent", "parent_session_id");
	print_member(session, "agent", "agent");
	print_member(session, "agent's id", "claude_session_id");
	print_member(session, "model", "model");
	print_member(session, "folder", "working_dir");
	print_when(session, "created", "created_at");
	print_when(session, "last active", "active_at");
	print_when(session, "ended", "ended_at");
	print_span(session);
	print_member(session, "turns", "turns");
	print_member(session, "tokens in", "input_tokens");
	print_member(session, "tokens out", "output_tokens");
	print_cost(session);
	print_long(session, "Query:", "query");
	print_long(session, "Error:", "error");
	print_long(session, "Result:", "result");
}
