/*
 * What memory looks like on the wire, where ash's methods and koine's own agree: the fields of a
 * search, a list and an add, and the rows that answer them.
 */
#pragma once

#include "call/call.h"
#include "call/method.h"
#include "engine/memory/memory.h"

/* ---- fields; each macro is for a struct `in` with the member `at` ---- */

struct memory_search_in {
	struct text query;
	int64_t limit;
};

#define MEMORY_SEARCH_FIELDS(in, at)                                                               \
	FIELD_AS("query", STRING, in, at.query, "Search query; a full question works best",        \
		 .required = true),                                                                \
		FIELD_AS("limit", INT, in, at.limit,                                               \
			 "Maximum number of memories, up to 1000; 0 or less means 10",             \
			 .default_number = 10)

struct memory_list_in {
	int64_t limit;
	bool include_expired;
};

#define MEMORY_LIST_FIELDS(in, at)                                                                 \
	FIELD_AS("limit", INT, in, at.limit,                                                       \
		 "Maximum number of memories, up to 1000; 0 or less means 20",                     \
		 .default_number = 20),                                                            \
		FIELD_AS("include_expired", BOOL, in, at.include_expired,                          \
			 "Include expired memories")

struct memory_add_in {
	struct text content;
	struct text source;
	const struct value *expires_days;
	const struct value *subjects;
	bool shared;
	const struct value *created_at;
	struct text category;
	double importance;
	const struct value *metadata;
};

#define MEMORY_ADD_FIELDS(in, at, whose)                                                           \
	FIELD_AS("content", STRING, in, at.content, "Content of the memory", .required = true),    \
		FIELD_AS("source", STRING, in, at.source, "Source of the memory",                  \
			 .default_text = "rpc"),                                                   \
		FIELD_AS("expires_days", ANY, in, at.expires_days,                                 \
			 "Days until the memory expires (integer); default: never"),               \
		FIELD_AS("subjects", ARRAY, in, at.subjects,                                       \
			 "Names of the people or things that the memory is about"),                \
		FIELD_AS("shared", BOOL, in, at.shared, whose),                                    \
		FIELD_AS("created_at", ANY, in, at.created_at,                                     \
			 "Creation time (ISO 8601); default: now"),                                \
		FIELD_AS("category", STRING, in, at.category,                                      \
			 "Category: preference, decision, fact, entity or other"),                 \
		FIELD_AS("importance", NUMBER, in, at.importance,                                  \
			 "Importance, 0 to 1; default 0.5", .default_number = -1),                 \
		FIELD_AS("metadata", OBJECT, in, at.metadata,                                      \
			 "JSON object that koine stores unchanged and returns with each hit")

/* For a struct `in` with who.user_id and who.chat_id. */
#define MEMORY_WHO(in)                                                                             \
	FIELD_AS(                                                                                  \
		"user_id", STRING, in, who.user_id,                                                \
		"Owner of the memories; calls without a user, chat or project read all memories"), \
		FIELD_AS("chat_id", STRING, in, who.chat_id, "Include memories of this chat")

#define MEMORY_THIS_CHAT(in, at)                                                                   \
	FIELD_AS("this_chat", BOOL, in, at, "Return only memories of this chat")

#define MEMORY_CHAT_TYPE_DOC                                                                       \
	"Type of the chat; group and supergroup exclude memories from private chats"
#define MEMORY_CHAT_TYPE(in, at, what) FIELD_AS("chat_type", STRING, in, at, what)

#define MEMORY_ROWS "[object]"

/* Everything of a new memory but who adds it. */
int memory_wire_new(struct call *c, const struct memory_add_in *in, struct memory_new *ret_new);

/* A field that is a time; not given, or null: stays as it is. Never sets 0. */
int memory_wire_time(struct call *c, const char *name, const struct value *v, int64_t *ret_ms);

/* ---- answers ---- */

typedef void (*memory_write_fn)(struct json *j, const struct memory *m);

/* The members of a hit, and of a row of a list, within an object that is begun. */
void memory_wire_hit(struct json *j, const struct memory *m);
void memory_wire_entry(struct json *j, const struct memory *m);

/* Rows as an array of objects, each with what `write` writes. A client cannot read an answer over
 * its limit, so the last rows are left out if need be. */
void memory_wire_rows(struct call *c, const struct memory *rows, unsigned n, memory_write_fn write);

/* For a row's at_once: whether the list is at hand, and was answered. */
bool memory_wire_list_at_once(struct call *c, struct memories *m, const struct memory_filter *f);

/* One object, without its content if it would not fit: the client has it. */
void memory_wire_added(struct call *c, const struct memory *m, memory_write_fn write);
