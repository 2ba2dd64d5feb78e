#include "base/noun/visitor.h"

#define MEMBER(kind, field) MEMBER_OF(struct visitor, kind, field)

static const struct member members[] = {
	{"id", "id", MEMBER(TEXT, id)},
	{NULL, "digest", MEMBER(TEXT, digest)},
	{"uid", "uid", MEMBER(INT, uid)},
	{"program", "program", MEMBER(TEXT, program), .flags = MEMBER_NOT_NULL},
	{NULL, "host", MEMBER(TEXT, host)},
	{"behind", "behind", MEMBER(BOOL, behind)},
	{"entered_at", "entered_ms", MEMBER(TIME, entered_ms)},
	{"seen_at", NULL, MEMBER(TIME, seen_ms), .none = NONE_IS_ZERO},
};

const struct portrait visitor_portrait = PORTRAIT(struct visitor, members);
