#include "model/observed.h"

#define MEMBER(kind, field) MEMBER_OF(struct observed, kind, field)

enum { MADE = MEMBER_MADE, CHANGES = MEMBER_CHANGES, NOT_NULL = MEMBER_NOT_NULL };

/* Clients see a struct session, so no member has a name. */
/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MADE},
	{NULL, "id", MEMBER(TEXT, id)},
	{NULL, "agent", MEMBER(TEXT, agent), NOT_NULL},
	{NULL, "folder", MEMBER(TEXT, folder), NOT_NULL | CHANGES},
	{NULL, "project", MEMBER(TEXT, project), CHANGES},
	{NULL, "query", MEMBER(TEXT, query), NOT_NULL | CHANGES},
	{NULL, "host", MEMBER(TEXT, host), CHANGES},
	{NULL, "pid", MEMBER(INT, pid), CHANGES},
	{NULL, "started", MEMBER(INT, started), CHANGES},
	{NULL, "created_ms", MEMBER(TIME, created_ms)},
	{NULL, "active_ms", MEMBER(TIME, active_ms), CHANGES},
	{NULL, "ended_ms", MEMBER(TIME, ended_ms), CHANGES},
	{NULL, "reason", MEMBER(TEXT, reason), CHANGES},
};
/* clang-format on */

const struct portrait observed_portrait = PORTRAIT(struct observed, members);
