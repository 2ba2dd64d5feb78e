/*
 * A time zone: how far its clocks are from UTC, and when that changes. We read the tz database
 * ourselves (TZif, RFC 8536), since libc has one zone for the whole process.
 */
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "base/why.h"

struct zone;

enum { ZONE_NAME_MAX = 64, ZONE_FILE_MAX = 256 << 10 };

/* "Europe/Berlin", from /usr/share/zoneinfo. REFUSE_NOT_FOUND, or REFUSE_PARAMS if it is not a
 * name or not a zone. */
int zone_open(const char *name, struct zone **ret_zone, struct why *why);

/* Reads the file's bytes. -EBADMSG if they are not well-formed, or count leap seconds. */
int zone_read(struct text bytes, struct zone **ret_zone);

void zone_free(struct zone *z); /* accepts NULL */

/* The period with one offset around a moment: starting at `from` and ending before `until`, in
 * seconds since 1970. INT64_MIN and INT64_MAX mean no bound. */
struct zone_period {
	int64_t from;
	int64_t until;
	int32_t offset; /* seconds east of UTC */
	int32_t before; /* the offset before `from` */
};

struct zone_period zone_period(const struct zone *z, int64_t utc_s);
