/* Members that several of koine's own answers have alike. */
#pragma once

#include "base/clock.h"
#include "wire/json.h"

/* null for none. */
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

/* null for `none`: a count of 0 is one. */
static inline void member_int_unless(struct json *j, const char *key, int64_t n, int64_t none)
{
	json_key(j, key);
	if (n == none)
		json_null(j);
	else
		json_int(j, n);
}
