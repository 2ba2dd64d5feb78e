/* Who asks for memories in koine's own methods. */
#pragma once

#include "dialect/memory_wire.h"
#include "dialect/memory_who.h"

struct memory_who_in {
	struct text user_id;
	struct text chat_id;
	struct text chat_type;
	struct text project;
	bool common;
};

/* For a struct `in` with the member `who`, after MEMORY_WHO and chat_type. */
#define MEMORY_WHERE(in)                                                                           \
	{.name = "project",                                                                        \
	 .type = FIELD_STRING,                                                                     \
	 .doc = "Include memories of this project: host/owner/name of its git remote, or a path",  \
	 .offset = offsetof(in, who.project)},                                                     \
	{                                                                                          \
		.name = "common", .type = FIELD_BOOL, .doc = "Only common memories",               \
		.offset = offsetof(in, who.common)                                                 \
	}

/* What was believed at another time. */
struct memory_then_in {
	const struct value *at;
	bool include_replaced;
};

#define MEMORY_AT(in, where)                                                                       \
	{                                                                                          \
		.name = "at", .type = FIELD_ANY,                                                   \
		.doc = "Return memories that were valid at this time (ISO 8601)",                  \
		.offset = offsetof(in, where)                                                      \
	}

#define MEMORY_THEN(in)                                                                            \
	MEMORY_AT(in, then.at),                                                                    \
	{                                                                                          \
		.name = "include_replaced", .type = FIELD_BOOL,                                    \
		.doc = "Include replaced memories and former versions; ignored if `at` is given",  \
		.offset = offsetof(in, then.include_replaced)                                      \
	}

/* All of them. */
#define MEMORY_ASKER(in)                                                                           \
	MEMORY_WHO(in),                                                                            \
		MEMORY_CHAT_TYPE(in, who.chat_type,                                                \
				 "Type of the chat; group and supergroup exclude memories from "   \
				 "private chats"),                                                 \
		MEMORY_WHERE(in)

static inline struct memory_asker memory_asker_of(const struct memory_who_in *in)
{
	return (struct memory_asker) {.user = in->user_id,
				      .chat = in->chat_id,
				      .chat_type = in->chat_type,
				      .project = in->project,
				      .common = in->common};
}
