/* The options of koine events. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/event/event.h"

static bool set_follow(struct cli_options *o, const char *value)
{
	o->events.follow = true;
	return true;
}

static bool set_since(struct cli_options *o, const char *value)
{
	struct event_start start;

	o->events.since = value;
	return event_start_read(value, &start);
}

static bool set_type(struct cli_options *o, const char *value)
{
	if (value[0] == '\0' || o->events.n_types == EVENT_GLOBS_MAX)
		return false;
	o->events.types[o->events.n_types++] = value;
	return true;
}

static bool set_session(struct cli_options *o, const char *value)
{
	o->events.session = value;
	return value[0] != '\0';
}

static bool set_run(struct cli_options *o, const char *value)
{
	o->events.run = value;
	return value[0] != '\0';
}

static bool set_project(struct cli_options *o, const char *value)
{
	o->events.project = value;
	return value[0] != '\0';
}

static bool read_number(const char *text, int64_t *ret_n, const char **ret_end)
{
	char *end;
	long long n;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	n = strtoll(text, &end, 10);
	*ret_n = n;
	*ret_end = end;
	return errno == 0;
}

static bool set_limit(struct cli_options *o, const char *value)
{
	const char *end;

	o->events.limit_given = true;
	return read_number(value, &o->events.limit, &end) && *end == '\0';
}

const struct option event_options[] = {
	{"--follow", "-f", NULL, "go on with what comes", set_follow},
	{"--since", NULL, "10m|SEQ|TIME", "from so long ago, behind a number, or from a time on",
	 set_since},
	{"--type", NULL, "TYPE", "only these, * is anything: 'task.*'; may be repeated", set_type},
	{"--session", NULL, "ID", "only of this session, or conversation", set_session},
	{"--run", NULL, "ID", "only of this run", set_run},
	{"--project", NULL, "PROJECT", "only of this project", set_project},
	{"--limit", "-n", "N", "at most so many; the newest 20, with -f 10, without --since",
	 set_limit},
	{NULL},
};

/* ---- where to begin ---- */

static int64_t unit_seconds(char unit)
{
	switch (unit) {
	case 's':
		return 1;
	case 'm':
		return 60;
	case 'h':
		return 3600;
	case 'd':
		return 86400;
	case 'w':
		return 7 * 86400;
	}
	return 0;
}

bool event_start_read(const char *since, struct event_start *ret_start)
{
	const char *end = since;
	int64_t n = 0;
	int64_t ms;
	bool number = read_number(since, &n, &end);

	*ret_start = (struct event_start) {.seq = -1};
	if (number && *end == '\0') {
		ret_start->seq = n;
		return true;
	}
	if (number && end[1] == '\0' && unit_seconds(*end) > 0) {
		/* Longer ago than there are clocks is from the beginning. */
		if (n > 36500LL * 86400 / unit_seconds(*end))
			ret_start->seq = 0;
		else
			clock_format_iso(clock_utc_ms() - n * unit_seconds(*end) * 1000,
					 ret_start->time);
		return true;
	}
	if (!clock_parse_iso(text_of(since), &ms))
		return false;
	clock_format_iso(ms, ret_start->time);
	return true;
}
