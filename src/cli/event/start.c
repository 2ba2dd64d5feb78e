/* Where koine events starts. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/event/event.h"

static bool read_number(const char *text, int64_t *ret_n, const char **ret_end)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*ret_n = strtoll(text, &end, 10);
	*ret_end = end;
	return errno == 0;
}

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
		/* More than a century ago means the beginning. */
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
