#include "model/memory.h"

#define MEMBER(kind, field) MEMBER_OF(struct memory, kind, field)

/* Short names, so that a member is one line. */
enum {
	CHANGES = MEMBER_CHANGES,
	NOT_NULL = MEMBER_NOT_NULL,
	LISTED = MEMBER_LISTED,
	FOUND = MEMORY_FOUND,
	TRACE = MEMORY_TRACE,
};

static const char *const reviews[N_MEMORY_REVIEWS] = {
	[REVIEW_OPEN] = "open",
	[REVIEW_HELD] = "held",
};

/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MEMBER_MADE | LISTED | FOUND | TRACE},
	{"id", "id", MEMBER(TEXT, id), LISTED | FOUND | TRACE},
	{"content", "content", MEMBER(TEXT, content), LISTED | FOUND | CHANGES},
	{"source", "source", MEMBER(TEXT, source), LISTED | FOUND | CHANGES | NOT_NULL},
	{"category", "category", MEMBER(TEXT, category), FOUND | CHANGES},
	{"importance", "importance", MEMBER(REAL, importance), FOUND | CHANGES},
	{"subjects", "subjects", MEMBER(LINES, subjects), FOUND | CHANGES | NOT_NULL},
	{"user_id", "owner", MEMBER(TEXT, owner), FOUND | TRACE},
	{"chat_id", "chat", MEMBER(TEXT, chat), FOUND | TRACE},
	{"chat_type", "chat_type", MEMBER(TEXT, chat_type)},
	{"project", "project", MEMBER(TEXT, project), FOUND | TRACE},
	{"shared", "shared", MEMBER(BOOL, shared), TRACE},
	{"created_at", "created_ms", MEMBER(TIME, created_ms), LISTED | FOUND, NONE_IS_ZERO},
	{"updated_at", "updated_ms", MEMBER(TIME, updated_ms), FOUND | CHANGES, NONE_IS_ZERO},
	{NULL, "stored_ms", MEMBER(INT, stored_ms)},
	{"expires_at", "expires_ms", MEMBER(TIME, expires_ms), LISTED | CHANGES | MEMBER_NULLABLE,
		NONE_IS_MAX},
	{"metadata", "metadata", MEMBER(JSON, metadata), FOUND | CHANGES | NOT_NULL,
		.absent = ABSENT_EMPTY},
	{"valid_from", "valid_from_ms", MEMBER(TIME, valid_from_ms), FOUND | CHANGES, NONE_IS_ZERO},
	{"valid_until", "valid_until_ms", MEMBER(TIME, valid_until_ms), FOUND | MEMBER_NULLABLE,
		NONE_IS_ZERO},
	{"replaces", "replaces", MEMBER(TEXT, replaces)},
	{"replaced_by", "replaced_by", MEMBER(TEXT, replaced_by)},
	{"origin", "origin", MEMBER(TEXT, origin)},
	{"review", "review", MEMBER(ENUM, review), CHANGES, MEMBER_NAMES(reviews)},
};
/* clang-format on */

const struct schema memory_schema = SCHEMA(struct memory, members);

static const char *const categories[N_MEMORY_CATEGORIES] = {"preference", "decision", "fact",
							    "entity", "other"};

unsigned char memory_category(struct text name)
{
	for (unsigned i = 0; i < N_MEMORY_CATEGORIES; i++) {
		if (text_is(name, categories[i]))
			return (unsigned char)i;
	}
	return N_MEMORY_CATEGORIES - 1;
}

bool memory_is_open(const struct memory *m)
{
	return !m->owner.data || (m->chat_type.data && !text_is(m->chat_type, "private"));
}
