/* Sessions for people: a table, and one in full. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/kit/call.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/tool_gist.h"
#include "cli/session/session.h"
#include "model/session.h"

enum { NARROW = 60 };

static const struct word_color status_colors[] = {
	{"starting", COLOR_BLUE},        {"running", COLOR_BLUE},
	{"waiting_input", COLOR_YELLOW}, {"completing", COLOR_YELLOW},
	{"completed", COLOR_GREEN},      {"failed", COLOR_RED},
	{"interrupted", COLOR_GREY},     {NULL},
};

enum color session_color(const struct koine_value *session)
{
	return color_of_word(status_colors, member_text(session, "status"));
}

struct text session_name(const struct koine_value *session)
{
	struct text name = member_text(session, "title");

	return name.len > 0 ? name : member_text(session, "query");
}

/* `of_all`: archived ones were requested, too. */
static bool say_none(const struct koine_value *sessions, bool of_all)
{
	if (koine_value_first(sessions))
		return false;
	fprintf(stderr, "no sessions%s\n",
		of_all ? ""
		       : " (koine session add starts a session; koine session list --all "
			 "includes archived sessions)");
	return true;
}

/* ---- a table ---- */

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
	table_cell(c->table, session_name(c->row));
}

int session_print_list(const struct cli *cli, const struct koine_value *sessions)
{
	static const struct column columns[] = {
		{"ID", "id", cell_short_id},
		{"STATUS", "status", .colors = status_colors},
		{"KIND", "kind", NULL, 'n', NARROW, true},
		{"AGE", "active_at", cell_age, 'r'},
		{"COST", "cost_usd", cell_cost, 'r', NARROW},
		{"MODEL", "model", NULL, 'n', NARROW},
		{"FOLDER", "working_dir", cell_base_name, 'n', NARROW},
		{"TITLE", NULL, cell_title},
		{NULL},
	};
	const struct session_options *o = cli->own;
	const struct cli_list list = {
		.columns = columns, .most = request_limit(cli), .says_more = true};

	return say_none(sessions, o->all || o->status) ? 0 : list_print_as(cli, &list, sessions);
}

/* ---- all of one ---- */

static void show_status(const struct show *s, const struct show_row *row)
{
	show_label(s, row->label);
	print_styled(s->cli, color_begin(session_color(s->thing)),
		     member_text(s->thing, row->member));
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

const struct show_form session_form = {.rows = rows, .schema = &session_schema, .width = 14};

/* ---- which session continues which ---- */

enum { SESSIONS_MAX = 1000, PREFIX_MAX = 64 };

struct session_print_node {
	const struct koine_value *session;
	int parent; /* -1: none known */
	bool printed;
};

struct tree {
	const struct cli *cli;
	struct session_print_node nodes[SESSIONS_MAX];
	int n;
};

static int session_print_find(const struct tree *t, struct text id)
{
	for (int i = 0; i < t->n; i++) {
		if (text_equal(member_text(t->nodes[i].session, "id"), id))
			return i;
	}
	return -1;
}

/* The list has the last active first; a tree reads better from its beginning. */
static void gather(struct tree *t, const struct koine_value *sessions)
{
	const struct koine_value *s = koine_value_first(sessions);

	for (; s && t->n < SESSIONS_MAX; s = koine_value_next(s))
		t->nodes[t->n++].session = s;
	for (int i = 0; i < t->n; i++) {
		struct text id = member_string(t->nodes[i].session, "parent_session_id");

		t->nodes[i].parent = id.data ? session_print_find(t, id) : -1;
	}
}

static void session_print_print_line(const struct tree *t, const struct session_print_node *n,
				     const char *prefix, const char *branch)
{
	unsigned columns = t->cli->terminal ? terminal_columns() : 160;
	size_t used = text_columns(text_of(prefix)) + text_columns(text_of(branch));
	struct text id = text_cut(member_text(n->session, "id"), SHORT_ID);

	printf("%s%s", prefix, branch);
	used += print_fitting(stdout, id, SHORT_ID) + 4;
	fputs("  ", stdout);
	print_style(t->cli, color_begin(session_color(n->session)));
	used += print_fitting(stdout, member_text(n->session, "status"), 20);
	print_plain(t->cli);
	fputs("  ", stdout);
	(void)print_fitting(stdout, session_name(n->session),
			    columns > used + 8 ? columns - used : 8);
	fputc('\n', stdout);
}

static int next_child(const struct tree *t, int parent, int before)
{
	int i = before - 1;

	while (i >= 0 && (t->nodes[i].parent != parent || t->nodes[i].printed))
		i--;
	return i;
}

/* Beyond some depth they are not indented any further. */
static void print_children(struct tree *t, int parent, const char *prefix)
{
	int at = next_child(t, parent, t->n);

	while (at >= 0) {
		int following;
		char deeper[PREFIX_MAX];

		t->nodes[at].printed = true;
		following = next_child(t, parent, at);
		session_print_print_line(t, &t->nodes[at], prefix, following >= 0 ? "├─ " : "└─ ");
		if (strlen(prefix) + 6 < sizeof(deeper))
			snprintf(deeper, sizeof(deeper), "%s%s", prefix,
				 following >= 0 ? "│  " : "   ");
		else
			snprintf(deeper, sizeof(deeper), "%s", prefix);
		print_children(t, at, deeper);
		at = following;
	}
}

static void print_root(struct tree *t, int at)
{
	t->nodes[at].printed = true;
	session_print_print_line(t, &t->nodes[at], "", "");
	print_children(t, at, "");
}

/* The first session of its chain. A server could claim a cycle, so the walk is bounded. */
static int root_of(const struct tree *t, int at)
{
	for (int i = 0; i < t->n && t->nodes[at].parent >= 0; i++)
		at = t->nodes[at].parent;
	return at;
}

static void print_roots(struct tree *t)
{
	for (int i = t->n - 1; i >= 0; i--) {
		if (t->nodes[i].parent < 0)
			print_root(t, i);
	}
}

/* All of them, or the tree of one. */
static int print_tree(const struct cli *cli, const struct koine_value *sessions, struct text wanted)
{
	CLEANUP(freep) struct tree *t = calloc(1, sizeof(*t));
	int at;

	if (!t)
		return out_of_memory();
	t->cli = cli;
	gather(t, sessions);
	if (!wanted.data) {
		print_roots(t);
		return 0;
	}
	at = session_print_find(t, wanted);
	if (at < 0)
		return fail_with(EXIT_ERROR_ANSWER,
				 "session '%.*s' not found among the last %d sessions",
				 TEXT_ARGS(wanted), SESSIONS_MAX);
	print_root(t, root_of(t, at));
	return 0;
}

int cmd_session_tree(struct cli *cli)
{
	const struct session_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(answer_freep) struct koine_answer *one = NULL;
	const struct koine_value *sessions;
	struct koine_json *j;
	struct text wanted;
	int r = 0;

	if (cli->n_args > 0)
		r = call_with(cli, "session.get", "id", cli->args[0], &one);
	if (r != 0)
		return r;
	j = params_new();
	params_add(j, "archived", o->all || cli->n_args > 0 ? "any" : "no");
	params_add_int(j, "limit", SESSIONS_MAX);
	r = call_send(cli, "session.list", j, &a);
	if (r != 0)
		return r;
	sessions = koine_value_get(koine_answer_result(a), "sessions");
	wanted = member_text(koine_answer_result(one), "id");
	if (!print_if_json(cli, sessions) && (wanted.data || !say_none(sessions, o->all)))
		r = print_tree(cli, sessions, wanted);
	return r;
}

/* ---- what was said: texts as they are, a tool call on one line and its result on another ---- */

enum { LINE_MAX_COLUMNS = 160 };

static size_t room(const struct cli *cli)
{
	unsigned columns = cli->terminal ? terminal_columns() : LINE_MAX_COLUMNS;

	return columns > 20 ? columns : 20;
}

static bool is_full(const struct cli *cli)
{
	const struct session_options *o = cli->own;

	return o->full;
}

static struct text without_end(struct text t)
{
	while (t.len > 0 && (t.data[t.len - 1] == '\n' || t.data[t.len - 1] == ' '))
		t.len--;
	return t;
}

/* ---- messages ---- */

/* What the user said is marked, line by line. */
static void print_asked(const struct cli *cli, struct text t)
{
	do {
		const char *end = t.len > 0 ? memchr(t.data, '\n', t.len) : NULL;
		size_t n = end ? (size_t)(end - t.data) : t.len;

		print_style(cli, style_bold);
		PRINT(stdout, TEXT("> "), (struct text) {.data = t.data, .len = n});
		print_plain(cli);
		fputc('\n', stdout);
		n += end != NULL;
		t.len -= n;
		t.data = t.len > 0 ? t.data + n : NULL;
	} while (t.len > 0);
}

static void print_message(const struct cli *cli, const struct koine_value *e)
{
	struct text content = without_end(member_text(e, "content"));

	if (member_is(e, "role", "user"))
		print_asked(cli, content);
	else
		PRINT(stdout, content, TEXT("\n"));
}

/* A line that nobody needs to read. */
static void print_aside(const struct cli *cli, const char *mark, struct text t)
{
	print_style(cli, style_faint);
	printf("%s ", mark);
	(void)print_fitting(stdout, without_end(t), room(cli) - 2);
	print_plain(cli);
	fputc('\n', stdout);
}

static void print_other(const struct cli *cli, const struct koine_value *e, const char *mark)
{
	struct text t = member_text(e, "content");

	if (t.len == 0)
		t = member_text(e, "subtype");
	if (is_full(cli))
		PRINT(stdout, text_of(mark), TEXT(" "), without_end(t), TEXT("\n"));
	else
		print_aside(cli, mark, t);
}

/* ---- tools ---- */

static void print_approval(const struct cli *cli, const struct koine_value *e)
{
	struct text status = member_text(e, "approval_status");

	/* A separate line says that it is waiting. */
	if (status.len == 0 || text_is(status, "pending"))
		return;
	print_style(cli, color_begin(COLOR_YELLOW));
	PRINT(stdout, TEXT(" ("), status, TEXT(")"));
	print_plain(cli);
}

static void print_gist(const struct koine_value *e, struct text tool, size_t columns)
{
	const struct koine_value *input = koine_value_get(e, "tool_input");
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	if (koine_value_first(input))
		tool_gist(&gist, tool, input);
	(void)print_fitting_exact(stdout, buf_text(&gist), columns);
}

static void print_call(const struct cli *cli, const struct koine_value *e)
{
	const struct koine_value *input = koine_value_get(e, "tool_input");
	struct text tool = member_text(e, "tool_name");
	size_t used = 3;

	print_style(cli, color_begin(COLOR_BLUE));
	fputs("* ", stdout);
	used += print_fitting(stdout, tool, room(cli) / 2);
	print_plain(cli);
	if (!is_full(cli)) {
		fputc(' ', stdout);
		print_gist(e, tool, room(cli) > used + 12 ? room(cli) - used - 12 : 8);
	}
	print_approval(cli, e);
	fputc('\n', stdout);
	if (is_full(cli) && koine_value_first(input))
		print_json_pretty(stdout, input, cli->color);
}

static size_t count_lines(struct text t)
{
	size_t n = t.len > 0;

	for (size_t i = 0; i + 1 < t.len; i++)
		n += t.data[i] == '\n';
	return n;
}

static void format_size(size_t bytes, char *out, size_t size)
{
	if (bytes < 1024)
		snprintf(out, size, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
	else if (bytes < 1 << 20)
		snprintf(out, size, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(out, size, "%.1f MiB", (double)bytes / (1 << 20));
}

/* "  = 12 lines, 3.1 KiB: the first of them" */
static void print_result_of(const struct cli *cli, const struct koine_value *e)
{
	struct text t = member_text(e, "tool_result_content");
	size_t lines = count_lines(t);
	const char *end = t.len > 0 ? memchr(t.data, '\n', t.len) : NULL;
	char size[32];
	char head[96];

	if (is_full(cli)) {
		PRINT(stdout, without_end(t), TEXT("\n"));
		return;
	}
	format_size(t.len, size, sizeof(size));
	if (t.len == 0)
		snprintf(head, sizeof(head), "  = nothing");
	else if (lines == 1)
		snprintf(head, sizeof(head), "  = %s: ", size);
	else
		snprintf(head, sizeof(head), "  = %zu lines, %s: ", lines, size);
	print_style(cli, style_faint);
	fputs(head, stdout);
	if (end)
		t.len = (size_t)(end - t.data);
	(void)print_fitting(stdout, t, room(cli) > strlen(head) + 8 ? room(cli) - strlen(head) : 8);
	print_plain(cli);
	fputc('\n', stdout);
}

void session_print_event(const struct cli *cli, const struct koine_value *e)
{
	if (print_if_json(cli, e))
		return;
	if (member_is(e, "event_type", "tool_call"))
		print_call(cli, e);
	else if (member_is(e, "event_type", "tool_result"))
		print_result_of(cli, e);
	else if (member_is(e, "event_type", "message"))
		print_message(cli, e);
	else
		print_other(cli, e,
			    member_is(e, "event_type", "raw")        ? "~"
			    : member_is(e, "event_type", "thinking") ? "?"
								     : "-");
	if (member_flag(e, "truncated"))
		print_aside(cli, "-", TEXT("(cut)"));
}

/* ---- approvals ---- */

static void print_question(const struct koine_value *approval, size_t columns)
{
	fputs(" asks: ", stdout);
	(void)print_fitting_exact(stdout, member_text(koine_value_get(approval, "input"), "msg"),
				  columns);
	PRINT(stdout, TEXT("\n  to answer:  koine respond "), approval_short_id(approval, SHORT_ID),
	      TEXT(" TEXT"));
}

void session_print_pending(const struct cli *cli, const struct koine_value *approval)
{
	struct text id = approval_short_id(approval, SHORT_ID);

	if (cli->options.json)
		return;
	print_style(cli, color_begin(COLOR_YELLOW));
	fputs("? ", stdout);
	(void)print_fitting_exact(stdout, member_text(approval, "tool"), room(cli) / 2);
	if (member_is(approval, "kind", "human_contact")) {
		print_question(approval, 10 * room(cli));
	} else {
		PRINT(stdout, TEXT(" waits for approval: koine approve "), id,
		      TEXT(", or koine deny "), id, TEXT(" --comment TEXT"));
	}
	print_plain(cli);
	fputc('\n', stdout);
}

void session_print_resolved(const struct cli *cli, const struct koine_value *data)
{
	static const char *const reasons[] = {"comment", "reason", "response", "response_text"};
	struct text by = member_text(data, "decided_by");
	struct text reason = {0};

	if (cli->options.json)
		return;
	print_style(cli, color_begin(COLOR_YELLOW));
	fputs("? ", stdout);
	(void)print_fitting(stdout, member_text(data, "tool_name"), room(cli) / 2);
	PRINT(stdout, TEXT(" was "), member_text(data, "decision"),
	      by.len > 0 ? TEXT(" by ") : TEXT(""));
	(void)print_fitting(stdout, by, room(cli) / 2);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]) && reason.len == 0; i++)
		reason = member_text(data, reasons[i]);
	fputs(reason.len > 0 ? ": " : "", stdout);
	(void)print_fitting(stdout, reason, room(cli));
	print_plain(cli);
	fputc('\n', stdout);
}
