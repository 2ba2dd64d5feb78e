/*
 * koine approval watch: a live list on a terminal. In a pipe, the pending approvals, then a line for
 * each that arrives and each that is decided, including those from while the daemon was away.
 */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/approval/inbox.h"
#include "cli/kit/follow.h"
#include "cli/kit/list.h"
#include "cli/kit/talk.h"
#include "cli/kit/tool_gist.h"

/* ---- approvals for people ---- */

enum {
	NARROW = 60, /* columns; below it only id, tool and input fit */
	WIDE = 100,  /* from here on the session fits, too */
	ID_SHOWN_MAX = 36,
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

	for (EACH(other, koine_value_next(approval))) {
		if (text_equal(id, approval_short_id(other, width)))
			return true;
	}
	return false;
}

size_t approval_id_width(const struct koine_value *approvals)
{
	size_t width = SHORT_ID;

	for (EACH(a, koine_value_first(approvals))) {
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

static const struct word_color status_colors[] = {
	{"pending", COLOR_YELLOW},
	{"approved", COLOR_GREEN},
	{"denied", COLOR_RED},
	{"responded", COLOR_GREEN},
	{"expired", COLOR_GREY},
	{"superseded", COLOR_GREY},
	{NULL},
};

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

int approval_print_list(const struct cli *cli, const struct koine_value *approvals)
{
	static const struct column columns[] = {
		{"ID", NULL, cell_id},
		{"STATUS", "status", .colors = status_colors},
		{"AGE", "created_at", cell_age, 'r', NARROW},
		{"AGENT", "agent", cell_member, 'n', NARROW},
		{"SESSION", "session_id", cell_session, 'l', WIDE},
		{"TOOL", "tool", cell_member, 'n'},
		{"INPUT", NULL, cell_gist},
		{NULL},
	};
	const struct approval_options *o = cli->own;
	size_t width = approval_id_width(approvals);
	const struct cli_list list = {.columns = columns,
				      .without = o->all ? NULL : "STATUS",
				      .most = request_limit(cli),
				      .says_more = true,
				      .arg = &width};

	if (!koine_value_first(approvals)) {
		fputs("no pending approvals\n", stderr);
		return 0;
	}
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

/* Prints a line about an approval that arrived or was decided. */
static void approval_print_change(const struct cli *cli, const struct koine_value *approval)
{
	CLEANUP(buf_donep) struct buf gist;
	struct text end = member_string(approval, "comment");
	char at[16] = "-";
	time_t now = time(NULL);
	struct tm tm;

	buf_init(&gist, GIST_MAX);
	if (print_if_json(cli, approval))
		return;
	approval_gist(&gist, approval);
	if (localtime_r(&now, &tm))
		strftime(at, sizeof(at), "%H:%M:%S", &tm);
	printf("%s ", at);
	print_part(approval_short_id(approval, SHORT_ID), SHORT_ID);
	print_style(cli,
		    color_begin(color_of_word(status_colors, member_string(approval, "status"))));
	print_part(member_string(approval, "status"), 10);
	print_plain(cli);
	print_part(member_string(approval, "agent"), 6);
	print_part(member_string(approval, "tool"), 6);
	print_fitting_exact(stdout, buf_text(&gist), 400);
	fputs(end.len > 0 ? " -- " : "", stdout);
	print_fitting_exact(stdout, end, 400);
	fputc('\n', stdout);
}

/* ---- on a terminal ---- */

static const struct option_list types = {.values = {"approval.*"}, .n = 1};

int approvals_watch(struct cli *cli)
{
	const struct approval_options *o = cli->own;
	struct inbox inbox;
	struct live_part list;
	struct live_view live = {.cli = cli,
				 .arg = &inbox,
				 .types = &types,
				 .parts = &list,
				 .n_parts = 1,
				 .away = inbox_away,
				 .told = inbox_told,
				 .key = inbox_key,
				 .draw = inbox_draw};
	int r;

	inbox_init(&inbox, &live, &list, o->session);
	r = live_run(&live);
	inbox_done(&inbox);
	return r;
}

/* ---- into a pipe ---- */

struct approval_watch_viewer {
	struct follow follow;
	struct koine_answer *before; /* what existed when we started */
	int64_t seq;                 /* of the last event printed */
};

static void on_found(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch_viewer *v = arg;

	if (result == 0)
		approval_print_change(v->follow.cli, koine_answer_result(a));
}

static bool was_there(const struct approval_watch_viewer *v, struct text id)
{
	for (EACH(a, member_first(koine_answer_result(v->before), "approvals"))) {
		if (text_equal(member_string(a, "id"), id))
			return true;
	}
	return false;
}

static void on_event(void *arg, struct text method, const struct koine_value *params)
{
	struct approval_watch_viewer *v = arg;
	struct text id = member_string(koine_value_get(params, "data"), "approval_id");

	if (!text_is(method, "event"))
		return;
	koine_value_int(koine_value_get(params, "seq"), &v->seq);
	if (id.len == 0 || (member_is(params, "type", "approval.requested") && was_there(v, id)))
		return;
	(void)call_async(v->follow.cli->client, "approval.get", approval_id_params(id, true),
			 on_found, v, NULL);
}

static struct koine_json *subscribe_params(void *arg)
{
	const struct approval_watch_viewer *v = arg;
	const struct approval_options *o = v->follow.cli->own;
	struct koine_json *j = params_new();

	if (v->seq >= 0)
		params_add_int(j, "since", v->seq);
	params_add_list(j, "types", &types);
	params_add(j, "session_id", o->session);
	return j;
}

/* Finds the end of the log: what comes after it is printed. */
static int find_seq(struct approval_watch_viewer *v)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	params_add_int(j, "limit", 1);
	r = call_send(v->follow.cli, "event.list", j, &a);
	v->seq = member_number(koine_answer_result(a), "last");
	return r;
}

static int print_before(struct approval_watch_viewer *v)
{
	struct cli *cli = v->follow.cli;
	const struct approval_options *o = cli->own;
	struct koine_json *j = params_new();
	int r;

	params_add(j, "session_id", o->session);
	params_add_int(j, "limit", APPROVALS_MAX);
	r = call_send(cli, "approval.list", j, &v->before);

	for (EACH(a, member_first(koine_answer_result(v->before), "approvals")))
		approval_print_change(cli, a);
	return r;
}

int approvals_follow(struct cli *cli)
{
	struct approval_watch_viewer v = {
		.follow = {.cli = cli, .arg = &v, .params = subscribe_params, .told = on_event}};
	int r = find_seq(&v) ?: print_before(&v) ?: follow_events(&v.follow);

	/* Callbacks of pending calls may still use v. */
	talk_hang_up(cli);
	koine_answer_free(v.before);
	return r;
}
