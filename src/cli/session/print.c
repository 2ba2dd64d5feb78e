/* Sessions for people: a table, and one in full. */
#include "model/session.h"
#include "cli/kit/duration.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/value.h"
#include "cli/session/session.h"

enum { NARROW = 60, ROWS = 20 };

enum color session_color(const struct koine_value *session)
{
	static const struct word_color rows[] = {
		{"starting", COLOR_BLUE},        {"running", COLOR_BLUE},
		{"waiting_input", COLOR_YELLOW}, {"completing", COLOR_YELLOW},
		{"completed", COLOR_GREEN},      {"failed", COLOR_RED},
		{"interrupted", COLOR_GREY},     {NULL},
	};

	return color_of_word(rows, member_text(session, "status"));
}

/* A summary is the beginning of the query; a terminal shows as much of the query as fits. */
struct text session_name(const struct cli *cli, const struct koine_value *session)
{
	struct text name = member_text(session, "title");

	if (name.len == 0 && !cli->terminal)
		name = member_text(session, "summary");
	return name.len > 0 ? name : member_text(session, "query");
}

int session_print_found(const struct cli *cli, const struct koine_value *sessions, bool of_all,
			int (*print)(const struct cli *cli, const struct koine_value *sessions))
{
	if (cli->options.json) {
		print_json_compact(stdout, sessions);
		return 0;
	}
	if (!cli->terminal || koine_value_first(sessions))
		return print(cli, sessions);
	fprintf(stderr, "no sessions%s\n",
		of_all ? "" : " (koine session run starts one; list --all includes archived ones)");
	return 0;
}

/* ---- a table ---- */

static void cell_status(const struct cell *c)
{
	table_cell_color(c->table, member_text(c->row, c->member), session_color(c->row));
}

static void cell_cost(const struct cell *c)
{
	char shown[32] = "-";
	double usd;

	if (koine_value_double(koine_value_get(c->row, c->member), &usd))
		snprintf(shown, sizeof(shown), "$%.2f", usd);
	table_cell_str(c->table, shown);
}

static void cell_base_name(const struct cell *c)
{
	cell_text(c, text_base_name(member_text(c->row, c->member)));
}

static void cell_title(const struct cell *c)
{
	table_cell(c->table, session_name(c->cli, c->row));
}

int64_t session_list_limit(const struct session_options *o)
{
	return o->limit ? o->limit : ROWS;
}

int session_print_list(const struct cli *cli, const struct koine_value *sessions)
{
	static const struct column columns[] = {
		{"ID", "id", cell_short_id},
		{"STATUS", "status", cell_status},
		{"KIND", "kind", NULL, 'n', NARROW, true},
		{"AGE", "active_at", cell_age, 'r'},
		{"COST", "cost_usd", cell_cost, 'r', NARROW},
		{"MODEL", "model", NULL, 'n', NARROW},
		{"FOLDER", "working_dir", cell_base_name, 'n', NARROW},
		{"TITLE", NULL, cell_title},
		{NULL},
	};
	const struct list list = {
		.columns = columns, .most = session_list_limit(cli->own), .says_more = true};

	return list_print_as(cli, &list, sessions);
}

/* ---- all of one ---- */

static void show_status(const struct show *s, const struct show_row *row)
{
	show_label(s, row->label);
	print_style(s->cli, color_begin(session_color(s->thing)));
	print_text(stdout, member_text(s->thing, row->member));
	print_plain(s->cli);
	puts(member_flag(s->thing, "archived") ? " (archived)" : "");
}

static void show_cost(const struct show *s, const struct show_row *row)
{
	double usd;

	if (!koine_value_double(koine_value_get(s->thing, row->member), &usd))
		return;
	show_label(s, row->label);
	printf("$%.4f\n", usd);
}

/* Even one that took no time at all. */
static void show_duration(const struct show *s, const struct show_row *row)
{
	char shown[SPAN_SHOWN];
	int64_t ms;

	if (!koine_value_int(koine_value_get(s->thing, row->member), &ms))
		return;
	duration_format(ms, shown);
	show_label(s, row->label);
	puts(shown);
}

static const struct show_row rows[] = {
	{"id", "id"},
	{"status", "status", show_status},
	{"kind", "kind"},
	{"waiting", "approvals"},
	{"title", "title"},
	{"run", "run_id"},
	{"parent", "parent_session_id"},
	{"agent", "agent"},
	{"agent's id", "claude_session_id"},
	{"model", "model"},
	{"folder", "working_dir"},
	{"project", "project"},
	{"created", "created_at"},
	{"last active", "active_at"},
	{"ended", "ended_at"},
	{"duration", "duration_ms", show_duration},
	{"turns", "turns"},
	{"input tokens", "input_tokens"},
	{"output tokens", "output_tokens"},
	{"cost", "cost_usd", show_cost},
	{"", "archived"}, /* shown after the status */
	{"", "summary"},
	{"Query:", "query", show_long},
	{"Error:", "error", show_long},
	{"Result:", "result", show_long},
	{NULL},
};

const struct show_form session_form = {.rows = rows, .portrait = &session_portrait, .width = 14};
