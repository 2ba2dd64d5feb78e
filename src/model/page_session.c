#include "model/page_session.h"

#define MEMBER(kind, field) MEMBER_OF(struct page_session, kind, field)

static const struct member members[] = {
	{"id", NULL, MEMBER(TEXT, id)},
	{"uid", NULL, MEMBER(INT, uid)},
	{"program", NULL, MEMBER(TEXT, program), .flags = MEMBER_NOT_NULL},
	{"behind", NULL, MEMBER(BOOL, behind)},
	{"entered_at", NULL, MEMBER(TIME, entered_ms)},
	{"seen_at", NULL, MEMBER(TIME, seen_ms), .none = NONE_IS_ZERO},
};

const struct schema page_session_schema = SCHEMA(struct page_session, members);
