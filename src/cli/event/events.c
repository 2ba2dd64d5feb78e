/* koine event: past events, and with -f new ones. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/kit/duration.h"
#include "cli/kit/follow.h"
#include "cli/kit/print.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"

/* ---- an event for people ---- */

enum { TYPE_COLUMNS = 18, VALUE_MAX = 160 };

/* On one line, cut if it is long. */
static void print_short(struct text t)
{
	struct text left = text_cut(t, VALUE_MAX);
	bool cut = left.len < t.len;

	while (left.len > 0) {
		size_t n = 0;

		while (n < left.len && left.data[n] != '\n' && left.data[n] != '\t')
			n++;
		print_text(stdout, (struct text) {.data = left.data, .len = n});
		if (n < left.len) {
			fputc(' ', stdout);
			n++;
		}
		left = text_skip(left, n);
	}
	if (cut)
		fputs("…", stdout);
}

static void print_member(const struct cli *cli, struct text key, const struct koine_value *v)
{
	fputs("  ", stdout);
	print_style(cli, style_faint);
	print_short(key);
	fputc('=', stdout);
	print_plain(cli);
	print_short(text_of_any(v));
}

/* Whether the data already contains that id: a conversation's events have its name twice. */
static bool said_already(const struct koine_value *data, struct text id)
{
	for (EACH(v, koine_value_first(data))) {
		struct text other = text_of_value(v);

		if (other.data && text_equal(other, id))
			return true;
	}
	return false;
}

static void print_ids(const struct cli *cli, const struct koine_value *event)
{
	static const char *const ids[][2] = {
		{"project", "project"}, {"session_id", "session"}, {"run_id", "run"}};
	const struct koine_value *data = koine_value_get(event, "data");

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct text id = member_string(event, ids[i][0]);

		if (id.data && !said_already(data, id))
			print_member(cli, text_of(ids[i][1]), koine_value_get(event, ids[i][0]));
	}
}

/* Whether it is empty. */
static bool is_empty(const struct koine_value *v)
{
	if (koine_value_kind(v) == KOINE_STRING)
		return text_of_value(v).len == 0;
	return koine_value_kind(v) == KOINE_OBJECT && !koine_value_first(v);
}

static void events_print_line(const struct cli *cli, const struct koine_value *event)
{
	const struct koine_value *data = koine_value_get(event, "data");
	struct text type = member_text(event, "type");
	char when[TIME_SHOWN];

	format_second(koine_value_get(event, "time"), when);
	printf("%s  ", when);
	print_style(cli, style_bold);
	print_short(type.data ? type : TEXT("-"));
	print_plain(cli);
	for (size_t i = type.len; i < TYPE_COLUMNS; i++)
		fputc(' ', stdout);
	for (EACH(v, koine_value_first(data))) {
		if (!is_empty(v))
			print_member(cli, text_of_key(v), v);
	}
	print_ids(cli, event);
	fputc('\n', stdout);
}

/* Prints one event as the options say: a line for people, or a JSON object. */
static void event_print(const struct cli *cli, const struct koine_value *event)
{
	if (cli->options.json)
		print_json_without(stdout, event, "subscription");
	else
		events_print_line(cli, event);
}

/* Prints that so many are no longer kept. */
static void event_print_gone(const struct cli *cli, int64_t n)
{
	if (n <= 0)
		return;
	if (cli->options.json) {
		printf("{\"gone\":%lld}\n", (long long)n);
		return;
	}
	fflush(stdout);
	complain("%lld event%s already deleted", (long long)n, n == 1 ? " was" : "s were");
}

/* ---- where to start ---- */

enum {
	ROWS = 20,
	ROWS_BEFORE = 10, /* how many -f starts with */
	PAGE_MAX = 1000,
};

struct event_options {
	bool follow;
	const char *since; /* as typed; NULL: not given */
	int64_t limit;     /* negative: not given */
};

/* Where to start: a number of the log, a time, or neither. */
struct start {
	int64_t seq;   /* -1: none */
	char time[32]; /* "": none */
};

struct tail {
	struct follow follow;
	struct start start; /* where to continue */
};

/* ---- where to start ---- */

/* "10m", "2h", "7d": that long ago; digits: a sequence number; otherwise an ISO time. */
static bool start_read(const char *since, struct start *ret_start)
{
	int64_t n;
	int64_t ms;

	*ret_start = (struct start) {.seq = -1};
	if (isdigit((unsigned char)since[0]) && option_read_int(since, &n)) {
		ret_start->seq = n;
		return true;
	}
	if (duration_parse(since, &ms))
		ms = clock_utc_ms() - ms;
	else if (!clock_parse_iso(text_of(since), &ms))
		return false;
	clock_format_iso(ms, ret_start->time);
	return true;
}

/* limit 0: no limit. */
static struct koine_json *params_of(const struct tail *t, int64_t limit)
{
	struct koine_json *j = params_new();

	request_options(t->follow.cli, j);
	params_add(j, "since", t->start.time[0] ? t->start.time : NULL);
	if (t->start.seq >= 0)
		params_add_int(j, "since", t->start.seq);
	if (limit > 0)
		params_add_int(j, "limit", limit);
	return j;
}

static void go_on_from(struct tail *t, int64_t seq)
{
	t->start = (struct start) {.seq = seq};
}

/* ---- what has happened ---- */

/* Returns how many it printed. */
static int64_t print_page(struct tail *t, const struct koine_value *page)
{
	const struct koine_value *e = member_first(page, "events");
	int64_t last = t->start.seq;
	int64_t n = 0;

	event_print_gone(t->follow.cli, member_number(page, "gone"));
	for (; e; e = koine_value_next(e), n++)
		event_print(t->follow.cli, e);
	koine_value_int(koine_value_get(page, "last"), &last);
	go_on_from(t, last);
	return n;
}

/* Up to `limit` in all; negative: no limit. */
static int list(struct tail *t, int64_t limit)
{
	bool more = limit != 0;

	while (more) {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		int64_t n = limit < 0 || limit > PAGE_MAX ? PAGE_MAX : limit;
		int r = call_send(t->follow.cli, "event.list", params_of(t, n), &a);

		if (r != 0)
			return r;
		n = print_page(t, koine_answer_result(a));
		if (limit > 0)
			limit -= n;
		more = member_flag(koine_answer_result(a), "more") && limit != 0;
	}
	return 0;
}

/* ---- what happens ---- */

static struct koine_json *subscribe_params(void *arg)
{
	return params_of(arg, 0);
}

static void on_subscribed(void *arg, const struct koine_value *result)
{
	struct tail *t = arg;
	int64_t since = t->start.seq;
	int64_t last;

	if (!koine_value_int(koine_value_get(result, "last"), &last))
		return;
	if (since > last)
		complain("the last event is number %lld; continuing from there", (long long)last);
	/* From here on we continue from that number, unless we wait for the first event after a
	 * time. */
	if (since > last || (since < 0 && !t->start.time[0]))
		go_on_from(t, last);
}

static void on_told(void *arg, struct text method, const struct koine_value *params)
{
	struct tail *t = arg;
	int64_t n;

	if (text_is(method, "event")) {
		event_print(t->follow.cli, params);
		if (koine_value_int(koine_value_get(params, "seq"), &n))
			go_on_from(t, n);
	} else if (text_is(method, "event.gone")) {
		event_print_gone(t->follow.cli, member_number(params, "count"));
	}
}

/* ---- the command ---- */

static int events_check(const struct cli *cli, const struct event_options *o)
{
	if (cli->n_args > 0)
		return fail_with(
			EX_USAGE,
			"event list takes no arguments; to filter by type, use --type '%s'",
			cli->args[0]);
	if (!o->since && o->limit > PAGE_MAX)
		return fail_with(EX_USAGE,
				 "invalid --limit '%lld': without --since, expected at most %d",
				 (long long)o->limit, PAGE_MAX);
	return 0;
}

static int64_t limit_of(const struct event_options *o)
{
	if (o->limit >= 0)
		return o->limit;
	if (o->since)
		return -1;
	return o->follow ? ROWS_BEFORE : ROWS;
}

static int cmd_events(struct cli *cli)
{
	const struct event_options *o = cli->own;
	struct tail t = {
		.follow = {.cli = cli,
			   .arg = &t,
			   .params = subscribe_params,
			   .subscribed = on_subscribed,
			   .told = on_told},
		.start = {.seq = -1},
	};
	int r = events_check(cli, o) ?: talk_connect(cli);

	if (r != 0)
		return r;
	if (o->since)
		(void)start_read(o->since, &t.start);
	/* With --since the subscription itself delivers past events. */
	if (!o->follow || !o->since)
		r = list(&t, limit_of(o));
	return r == 0 && o->follow ? follow_events(&t.follow) : r;
}

static bool set_since(const struct option *o, void *member, const char *value)
{
	struct start start;

	return option_text(o, member, value) && start_read(value, &start);
}

#define AT(member) OPTION_AT(struct event_options, member)

static const struct option options[] = {
	{"--follow", "-f", NULL, "keep printing new events", option_flag, AT(follow)},
	{"--since", NULL, "10m|SEQ|TIME",
	 "start some time ago (10m), after the event with number SEQ, or at TIME", set_since,
	 AT(since)},
	{"--type", NULL, "TYPE",
	 "show only events of this type; * matches any text: 'task.*' (repeatable)", option_list,
	 .max = 32, .param = "types"},
	{"--session", NULL, "ID", "show only events of this session or conversation", option_word,
	 .param = "session_id", .completes = COMPLETES_SESSION},
	{"--run", NULL, "ID", "show only events of this run", option_word, .param = "run_id"},
	{"--project", NULL, "PROJECT", "show only events of this project", option_word,
	 .param = "project"},
	{"--limit", "-n", "N", "show at most N events (default without --since: 20, with -f: 10)",
	 option_number, AT(limit), .usual = "-1"},
	{NULL},
};

static const struct command subs[] = {
	{"list", "", "Show events, oldest first",
	 "Without --since, the command shows the newest events. With -f, the command reconnects "
	 "when koined restarts and continues without a gap. With --json every event is an object "
	 "on one line; {\"gone\":N} replaces N deleted events.\n",
	 cmd_events, NULL, options,
	 .examples = {"koine event list --since 1h", "koine event list -f --type 'task.*'"}},
	{NULL},
};

const struct command event_commands[] = {
	{"event", "COMMAND", "Show events", NULL, NULL, subs, NULL, sizeof(struct event_options),
	 .examples = {"koine event list --since 1h", "koine event list -f --type 'task.*'"}},
	{NULL},
};
