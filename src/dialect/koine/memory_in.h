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
	FIELD_AS(                                                                                  \
		"project", STRING, in, who.project,                                                \
		"Include memories of this project: host/owner/name of its git remote, or a path"), \
		FIELD_AS("common", BOOL, in, who.common, "Return only common memories")

/* What was believed at another time. */
struct memory_then_in {
	const struct value *at;
	bool include_replaced;
};

#define MEMORY_AT(in, where)                                                                       \
	FIELD_AS("at", ANY, in, where, "Return memories that were valid at this time (ISO 8601)")

#define MEMORY_THEN(in)                                                                            \
	MEMORY_AT(in, then.at),                                                                    \
		FIELD_AS(                                                                          \
			"include_replaced", BOOL, in, then.include_replaced,                       \
			"Include replaced memories and former versions; ignored if `at` is given")

/* All of them. */
#define MEMORY_ASKER(in)                                                                           \
	MEMORY_WHO(in), MEMORY_CHAT_TYPE(in, who.chat_type, MEMORY_CHAT_TYPE_DOC), MEMORY_WHERE(in)

static inline struct memory_asker memory_asker_of(const struct memory_who_in *in)
{
	return (struct memory_asker) {.user = in->user_id,
				      .chat = in->chat_id,
				      .chat_type = in->chat_type,
				      .project = in->project,
				      .common = in->common};
}
