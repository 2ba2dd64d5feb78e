/* koine top: its calls. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/kit/tool_gist.h"
#include "cli/top/top.h"

/* ---- what sessions said last: asked for once, and then told by events ---- */

const struct top_line *top_line_of(const struct top *t, struct text id)
{
	for (unsigned i = 0; i < TOP_LINES; i++) {
		if (t->lines[i].id[0] && text_is(id, t->lines[i].id))
			return &t->lines[i];
	}
	return NULL;
}

/* The slot of a session; if it has none, the one that was given away longest ago. NULL: its id is
 * none of koined's. */
static struct top_line *slot_of(struct top *t, struct text id)
{
	struct top_line *line = (struct top_line *)top_line_of(t, id);

	if (line || id.len == 0 || id.len >= sizeof(line->id))
		return line;
	line = &t->lines[t->next_line++ % TOP_LINES];
	snprintf(line->id, sizeof(line->id), "%.*s", TEXT_ARGS(id));
	line->text[0] = '\0';
	return line;
}

/* Its last line that is not empty. */
static struct text last_line(struct text t)
{
	const char *newline;

	while (t.len > 0 &&
	       (t.data[t.len - 1] == '\n' || t.data[t.len - 1] == '\r' || t.data[t.len - 1] == ' '))
		t.len--;
	newline = t.len > 0 ? memrchr(t.data, '\n', t.len) : NULL;
	return newline ? text_skip(t, (size_t)(newline + 1 - t.data)) : t;
}

/* A NUL is shown as what it is, which ends no text here. */
static void set_line(struct top_line *line, const char *before, struct text t)
{
	static const char mark[] = "…";
	CLEANUP(buf_donep) struct buf shown;
	struct text all;

	buf_init(&shown, GIST_MAX);
	buf_add_str(&shown, before);
	text_add_exact(&shown, text_cut(t, 2 * TOP_LINE_SIZE));
	all = buf_text(&shown);
	if (all.len < sizeof(line->text)) {
		snprintf(line->text, sizeof(line->text), "%.*s", TEXT_ARGS(all));
		return;
	}
	all.len = utf8_whole(all.data, sizeof(line->text) - sizeof(mark));
	snprintf(line->text, sizeof(line->text), "%.*s%s", TEXT_ARGS(all), mark);
}

static void take_said(struct top_line *line, const struct koine_value *said)
{
	struct text tool = member_string(said, "tool_name");
	CLEANUP(buf_donep) struct buf gist;

	buf_init(&gist, GIST_MAX);
	if (member_is(said, "event_type", "tool_call")) {
		buf_add(&gist, tool.data, tool.len);
		buf_add_str(&gist, " ");
		tool_gist(&gist, tool, koine_value_get(said, "tool_input"));
		set_line(line, "", buf_text(&gist));
	} else if (member_is(said, "event_type", "tool_result")) {
		set_line(line, "= ", last_line(member_string(said, "tool_result_content")));
	} else if (member_is(said, "event_type", "message")) {
		set_line(line, member_is(said, "role", "user") ? "> " : "",
			 last_line(member_string(said, "content")));
	}
}

/* An event of a session has come. */
static void top_take_line(struct top *t, const struct koine_value *event)
{
	const struct koine_value *data = koine_value_get(event, "data");
	struct top_line *line;

	if (!member_is(event, "type", "session.event"))
		return;
	line = slot_of(t, member_string(data, "session_id"));
	if (line)
		take_said(line, data);
	t->live.changed = true;
}

/* What an event has told meanwhile is newer. */
static void on_events(void *arg, int result, const struct koine_answer *a)
{
	const struct koine_value *said = member_first(koine_answer_result(a), "events");
	struct top_line *line = arg;

	if (result == 0 && said && line->text[0] == '\0' &&
	    text_is(member_string(said, "session_id"), line->id))
		take_said(line, said);
}

/* Asks what these sessions said last, where it is not known. */
static void take_sessions(void *arg, const struct koine_value *result)
{
	const struct koine_value *s = member_first(result, "sessions");
	struct top *t = arg;

	for (unsigned n = 0; s && n < TOP_LINES / 2; s = koine_value_next(s), n++) {
		struct text id = member_string(s, "id");
		struct top_line *line = top_line_of(t, id) ? NULL : slot_of(t, id);
		struct koine_json *j;

		if (!line)
			continue;
		j = params_new();
		params_add_text(j, "id", id);
		params_add_bool(j, "newest", true);
		params_add_int(j, "limit", 1);
		if (!live_call(&t->live, "session.events", j, on_events, line))
			return;
	}
}

/* "koine_calls_total{dialect="koine"} 17", without its newline: adds the number if it is of that
 * family. */
static void add_sample(struct text line, struct text family, double *sum)
{
	char number[32];
	struct text rest;
	const char *space;

	if (!text_begins(line, family))
		return;
	rest = text_skip(line, family.len);
	if (rest.len == 0 || (rest.data[0] != '{' && rest.data[0] != ' '))
		return;
	space = memrchr(rest.data, ' ', rest.len);
	if (!space)
		return;
	snprintf(number, sizeof(number), "%.*s", (int)(rest.data + rest.len - space - 1),
		 space + 1);
	*sum += strtod(number, NULL);
}

/* Reads what daemon.metrics answered. */
static void take_figures(void *arg, const struct koine_value *result)
{
	struct text line, all = member_string(result, "text");
	struct top *t = arg;
	struct top_figures f = {.at_ms = clock_steady_ms(), .own_calls = t->calls_asked};
	const struct {
		struct text family;
		double *sum;
	} families[] = {
		{TEXT("koine_calls_total"), &f.calls},
		{TEXT("koine_agent_tokens_total"), &f.tokens},
		{TEXT("koine_process_resident_memory_bytes"), &f.resident},
	};

	while (text_next(&all, '\n', &line)) {
		for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
			add_sample(line, families[i].family, families[i].sum);
	}
	t->before = t->now;
	t->now = f;
}

static double rate(const struct top *t, double before, double now)
{
	uint64_t ms = t->now.at_ms - t->before.at_ms;

	if (t->before.at_ms == 0 || t->now.at_ms == 0 || ms == 0)
		return -1;
	return now > before ? (now - before) * 1000 / (double)ms : 0;
}

double top_calls_rate(const struct top *t)
{
	return rate(t, t->before.calls - (double)t->before.own_calls,
		    t->now.calls - (double)t->now.own_calls);
}

double top_tokens_rate(const struct top *t)
{
	return rate(t, t->before.tokens, t->now.tokens);
}

static int64_t begin_of_today_ms(void)
{
	time_t now = time(NULL);
	struct tm day;

	localtime_r(&now, &day);
	day.tm_hour = day.tm_min = day.tm_sec = 0;
	day.tm_isdst = -1;
	return (int64_t)mktime(&day) * 1000;
}

enum { TODAY_MAX = 1000, SECOND = 1000 };

/* Adds up what sessions cost that were active today. */
static void take_costs(void *arg, const struct koine_value *result)
{
	const struct koine_value *sessions = koine_value_get(result, "sessions");
	struct top *t = arg;
	int64_t today = begin_of_today_ms();
	size_t n = 0;

	t->cost_today = 0;
	for (EACH(s, koine_value_first(sessions))) {
		double usd;

		if (member_time(s, "active_at") < today)
			continue;
		n++;
		if (koine_value_double(koine_value_get(s, "cost_usd"), &usd))
			t->cost_today += usd;
	}
	t->cost_is_less = n >= TODAY_MAX;
}

/* ---- the parts ---- */

/* Calls of a connection are answered in turn: these are counted when that one is. */
static void count_calls(void *arg, struct koine_json *params)
{
	struct top *t = arg;

	t->calls_asked = t->live.n_calls;
}

#define SESSIONS(state)                                                                            \
	{                                                                                          \
		"session.list", {{"status", state}}, TOP_LIST_MAX,                                 \
			.events = {"session.status", "agent."}, .least_ms = SECOND,                \
			.took = take_sessions                                                      \
	}

/* A koined that does not know a method leaves its part empty. */
static const struct live_row rows[N_TOP_PARTS] = {
	[TOP_STATUS] = {"daemon.status", .least_ms = SECOND, .most_ms = 2 * SECOND},
	[TOP_FIGURES] = {"daemon.metrics", .add = count_calls, .least_ms = SECOND,
			 .most_ms = 5 * SECOND, .passing = true, .took = take_figures},
	[TOP_AGENTS] = {"chat.agents",
			{{"names", "true"}},
			.least_ms = SECOND,
			.most_ms = 60 * SECOND},
	[TOP_MEMORY] = {"memory.stats", .events = {"memory."}, .least_ms = 2 * SECOND},
	/* Nothing tells when a task prints. */
	[TOP_RUNNING] = {"task.find",
			 {{"state", "\"running\""}, {"lines", "true"}},
			 TOP_LIST_MAX,
			 .events = {"task."},
			 .least_ms = SECOND,
			 .polled = "tasks"},
	[TOP_QUEUED] = {"task.find",
			{{"state", "\"queued\""}},
			TOP_LIST_MAX,
			.events = {"task."},
			.least_ms = SECOND},
	[TOP_SESSIONS] = SESSIONS("\"running\""),
	[TOP_WAITING] = SESSIONS("\"waiting_input\""),
	/* Also at midnight. */
	[TOP_TODAY] = {"session.list",
		       {{"archived", "\"any\""}},
		       TODAY_MAX,
		       .events = {"session.status"},
		       .least_ms = 30 * SECOND,
		       .most_ms = 600 * SECOND,
		       .passing = true,
		       .took = take_costs},
};

const struct koine_value *top_list(const struct top *t, enum top_part part, const char *member)
{
	return live_member(&t->parts[part], member);
}

/* ---- what the live view tells ---- */

/* Its counters begin at nothing. */
static void on_back(void *arg)
{
	struct top *t = arg;

	t->now = t->before = (struct top_figures) {0};
}

static void on_away(void *arg)
{
	struct top *t = arg;

	inbox_away(&t->inbox);
}

static void on_told(void *arg, const struct koine_value *event)
{
	struct top *t = arg;

	inbox_told(&t->inbox, event);
	top_take_line(t, event);
}

static void on_key(void *arg, int key)
{
	struct top *t = arg;

	inbox_key(&t->inbox, key);
}

/* ---- the command ---- */

static int cmd_top(struct cli *cli)
{
	static const struct option_list types = {
		.values = {"approval.*", "task.*", "session.*", "memory.*", "agent.*"}, .n = 5};
	struct top t = {
		.live = {.cli = cli,
			 .arg = &t,
			 .types = &types,
			 .parts = t.parts,
			 .n_parts = N_TOP_PARTS,
			 .back = on_back,
			 .away = on_away,
			 .told = on_told,
			 .key = on_key,
			 .draw = top_draw},
	};
	int r;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail_with(EX_USAGE, "top requires a terminal; use koine status instead");
	for (int i = 0; i < N_TOP_PARTS; i++)
		t.parts[i] = (struct live_part) {.row = &rows[i], .arg = &t};
	inbox_init(&t.inbox, &t.live, &t.parts[TOP_INBOX], NULL);
	r = live_run(&t.live);
	inbox_done(&t.inbox);
	return r;
}

const struct command top_commands[] = {
	{"top", "", "Watch agents, tasks and approvals live",
	 "The screen shows agents, running tasks and sessions with their last line of "
	 "output, the queue, rates, memory use and today's cost. You can decide "
	 "pending approvals on this screen. Keys: arrows, j and k select a request; a "
	 "approves it; d denies with a comment; r answers a question; v shows the "
	 "whole request; g approves for the rest of the session; q quits. The screen "
	 "reconnects when koined restarts.\n",
	 cmd_top, NO_ARGS, .examples = {"koine top", "koine top --color never"}},
	{NULL},
};
