#include "cli/kit/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	double ms;
} units[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}, {"w", 7 * 86400e3},
};

static const double longest_ms = 3650.0 * 86400e3;

/* The unit at the beginning of the text, and what follows it. */
static bool take_unit(const char **text, double *ret_ms)
{
	size_t len = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) == len && memcmp(*text, units[i].name, len) == 0) {
			*text += len;
			*ret_ms = units[i].ms;
			return true;
		}
	}
	return false;
}

/* Only digits and a point: strtod would also accept "inf", "0x10" and "1e3". */
static bool take_number(const char **text, double *ret)
{
	size_t len = strspn(*text, "0123456789.");
	char *end;

	if (len == 0 || len > 20)
		return false;
	*ret = strtod(*text, &end);
	if (end != *text + len)
		return false;
	*text = end;
	return true;
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
	double all = 0;
	bool only = true;

	do {
		double n;
		double unit = 1000;

		if (!take_number(&text, &n))
			return false;
		/* A bare number means seconds, but "1h30" is invalid. */
		if ((*text || !only) && !take_unit(&text, &unit))
			return false;
		only = false;
		all += n * unit;
	} while (*text);
	if (all > longest_ms)
		return false;
	*ret_ms = (int64_t)(all + 0.5);
	return true;
}

void duration_format(int64_t ms, char shown[SPAN_SHOWN])
{
	long long s = ms > 0 ? ms / 1000 : 0;

	if (s < 60)
		snprintf(shown, SPAN_SHOWN, "%llds", s);
	else if (s < 3600)
		snprintf(shown, SPAN_SHOWN, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(shown, SPAN_SHOWN, "%lldh%02lldm", s / 3600, s / 60 % 60);
	else
		snprintf(shown, SPAN_SHOWN, "%lldd%02lldh", s / 86400 % 1000000, s / 3600 % 24);
}

void duration_format_age(int64_t ms, char shown[SPAN_SHOWN])
{
	duration_format(ms, shown);
	shown[strcspn(shown, "smhd") + 1] = '\0';
}
