#include "base/noun/event.h"

#define MEMBER(kind, field) MEMBER_OF(struct event, kind, field)

/* clang-format off */
static const struct member members[] = {
	{"seq", "seq", MEMBER(INT, seq), MEMBER_MADE},
	{"type", "type", MEMBER(TEXT, type)},
	{"time", "time_ms", MEMBER(TIME, time_ms)},
	{"project", "project", MEMBER(TEXT, project), .absent = ABSENT_LEFT_OUT},
	{"session_id", "session", MEMBER(TEXT, session), .absent = ABSENT_LEFT_OUT},
	{"run_id", "run", MEMBER(TEXT, run), .absent = ABSENT_LEFT_OUT},
	{NULL, "data", MEMBER(BLOB, data)}, /* shown unpacked */
};
/* clang-format on */

const struct portrait event_portrait = PORTRAIT(struct event, members);
