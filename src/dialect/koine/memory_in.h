/* Who asks for memories in koine's own methods. */
#pragma once

#include "dialect/memory_wire.h"

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
		FIELD_AS("common", BOOL, in, who.common,                                           \
			 "Return only common memories, which belong to no user, chat or project")

/* What was believed at another time. */
struct memory_then_in {
	const struct value *at;
	bool include_replaced;
};

#define MEMORY_AT(in, where)                                                                       \
	FIELD_AS("at", ANY, in, where, "Return memories that were valid at this time (ISO 8601)")

#define MEMORY_THEN(in)                                                                            \
	MEMORY_AT(in, then.at), FIELD_AS("include_replaced", BOOL, in, then.include_replaced,      \
					 "Include replaced memories and earlier versions; "        \
					 "ignored if `at` is given")

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

/* ---- memory_entry.c: a memory in full, as export writes it and import reads it ---- */

/* Its members, within an object that is begun; and the whole object. */
void memory_entry_members(struct json *j, const struct memory *m);
void memory_entry_write(struct json *j, const struct memory *m);

/*
 * Adds the memories of one entry, and counts them. An entry is an exported memory or, from the
 * MCP memory server's file, an entity (one memory for each observation) or a relation (one
 * memory). `by` owns a memory that names no owner.
 */
int memory_entry_import(struct memories *m, struct arena *a, const struct value *entry,
			const struct memory_asker *by, int64_t *n_added, struct error *error);
