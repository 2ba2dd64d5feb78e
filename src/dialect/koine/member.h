/* Members that several of koine's own answers share. */
#pragma once

#include "base/clock.h"
#include "wire/json.h"

/* Writes null for 0. */
static inline void member_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	json_key(j, key);
	if (ms == 0) {
		json_null(j);
		return;
	}
	clock_format_iso(ms, text);
	json_str(j, text);
}

/* Writes null for the value `none`, since a count of 0 is a count. */
static inline void member_int_unless(struct json *j, const char *key, int64_t n, int64_t none)
{
	json_key(j, key);
	if (n == none)
		json_null(j);
	else
		json_int(j, n);
}
