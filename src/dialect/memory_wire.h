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
	{.name = "query",                                                                          \
	 .type = FIELD_STRING,                                                                     \
	 .required = true,                                                                         \
	 .doc = "Search query; a full question works best",                                        \
	 .offset = offsetof(in, at.query)},                                                        \
	{                                                                                          \
		.name = "limit", .type = FIELD_INT, .default_number = 10,                          \
		.doc = "Maximum number of memories, up to 1000; 0 or less means 10",               \
		.offset = offsetof(in, at.limit)                                                   \
	}

struct memory_list_in {
	int64_t limit;
	bool include_expired;
};

#define MEMORY_LIST_FIELDS(in, at)                                                                 \
	{.name = "limit",                                                                          \
	 .type = FIELD_INT,                                                                        \
	 .default_number = 20,                                                                     \
	 .doc = "Maximum number of memories, up to 1000; 0 or less means 20",                      \
	 .offset = offsetof(in, at.limit)},                                                        \
	{                                                                                          \
		.name = "include_expired", .type = FIELD_BOOL, .doc = "Include expired memories",  \
		.offset = offsetof(in, at.include_expired)                                         \
	}

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
	{.name = "content",                                                                        \
	 .type = FIELD_STRING,                                                                     \
	 .required = true,                                                                         \
	 .doc = "Content of the memory",                                                           \
	 .offset = offsetof(in, at.content)},                                                      \
		{.name = "source",                                                                 \
		 .type = FIELD_STRING,                                                             \
		 .default_text = "rpc",                                                            \
		 .doc = "Source of the memory",                                                    \
		 .offset = offsetof(in, at.source)},                                               \
		{.name = "expires_days",                                                           \
		 .type = FIELD_ANY,                                                                \
		 .doc = "Days until the memory expires (integer); default: never",                 \
		 .offset = offsetof(in, at.expires_days)},                                         \
		{.name = "subjects",                                                               \
		 .type = FIELD_ARRAY,                                                              \
		 .doc = "Names of the people or things that the memory is about",                  \
		 .offset = offsetof(in, at.subjects)},                                             \
		{.name = "shared",                                                                 \
		 .type = FIELD_BOOL,                                                               \
		 .doc = (whose),                                                                   \
		 .offset = offsetof(in, at.shared)},                                               \
		{.name = "created_at",                                                             \
		 .type = FIELD_ANY,                                                                \
		 .doc = "Creation time (ISO 8601); default: now",                                  \
		 .offset = offsetof(in, at.created_at)},                                           \
		{.name = "category",                                                               \
		 .type = FIELD_STRING,                                                             \
		 .doc = "Category: preference, decision, fact, entity or other",                   \
		 .offset = offsetof(in, at.category)},                                             \
		{.name = "importance",                                                             \
		 .type = FIELD_NUMBER,                                                             \
		 .default_number = -1,                                                             \
		 .doc = "Importance, 0 to 1; default 0.5",                                         \
		 .offset = offsetof(in, at.importance)},                                           \
	{                                                                                          \
		.name = "metadata", .type = FIELD_OBJECT,                                          \
		.doc = "Any JSON object; returned with each hit",                                  \
		.offset = offsetof(in, at.metadata)                                                \
	}

#define MEMORY_THIS_CHAT(in, at)                                                                   \
	{                                                                                          \
		.name = "this_chat", .type = FIELD_BOOL,                                           \
		.doc = "Return only memories of this chat", .offset = offsetof(in, at)             \
	}

#define MEMORY_CHAT_TYPE(in, at, what)                                                             \
	{                                                                                          \
		.name = "chat_type", .type = FIELD_STRING, .doc = (what),                          \
		.offset = offsetof(in, at)                                                         \
	}

#define MEMORY_ROWS "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"

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
