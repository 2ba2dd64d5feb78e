/* What sessions said last: asked for once, and then told by events. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/kit/tool_gist.h"
#include "cli/kit/value.h"
#include "cli/top/top.h"

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

static void take(struct top_line *line, const struct koine_value *said)
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

void top_take_line(struct top *t, const struct koine_value *event)
{
	const struct koine_value *data = koine_value_get(event, "data");
	struct top_line *line;

	if (!member_is(event, "type", "session.event"))
		return;
	line = slot_of(t, member_string(data, "session_id"));
	if (line)
		take(line, data);
	t->live.changed = true;
}

/* What an event has told meanwhile is newer. */
static void on_events(void *arg, int result, const struct koine_answer *a)
{
	const struct koine_value *said = member_first(koine_answer_result(a), "events");
	struct top_line *line = arg;

	if (result == 0 && said && line->text[0] == '\0' &&
	    text_is(member_string(said, "session_id"), line->id))
		take(line, said);
}

void top_ask_lines(struct top *t, const struct koine_value *sessions)
{
	const struct koine_value *s = koine_value_first(sessions);

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

void top_count(struct top *t, const struct koine_value *result)
{
	struct text all = member_string(result, "text");
	struct top_figures f = {.at_ms = clock_steady_ms(), .own_calls = t->calls_asked};
	const struct {
		struct text family;
		double *sum;
	} families[] = {
		{TEXT("koine_calls_total"), &f.calls},
		{TEXT("koine_agent_tokens_total"), &f.tokens},
		{TEXT("koine_process_resident_memory_bytes"), &f.resident},
	};

	while (all.len > 0) {
		const char *end = memchr(all.data, '\n', all.len);
		struct text line = {.data = all.data,
				    .len = end ? (size_t)(end - all.data) : all.len};

		for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
			add_sample(line, families[i].family, families[i].sum);
		all = text_skip(all, line.len + (end != NULL));
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

void top_add_costs(struct top *t, const struct koine_value *sessions, size_t limit)
{
	const struct koine_value *s = koine_value_first(sessions);
	int64_t today = begin_of_today_ms();
	size_t n = 0;

	t->cost_today = 0;
	for (; s; s = koine_value_next(s)) {
		double usd;

		if (member_time(s, "active_at") < today)
			continue;
		n++;
		if (koine_value_double(koine_value_get(s, "cost_usd"), &usd))
			t->cost_today += usd;
	}
	t->cost_is_less = n >= limit;
}
