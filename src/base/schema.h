/*
 * A noun's schema: one const table of its members. The store's columns, koine's own JSON,
 * events and the command line's tables are made from it, so that a member is spelled only once.
 *
 *	struct task { int64_t seq; struct text id; enum task_state state; ... };
 *
 *	#define MEMBER(kind, field) MEMBER_OF(struct task, kind, field)
 *
 *	static const struct member members[] = {
 *		{NULL, "seq", MEMBER(INT, seq), MEMBER_MADE},
 *		{"id", "id", MEMBER(TEXT, id), MEMBER_LISTED},
 *		{"pid", "pid", MEMBER(INT, pid), MEMBER_CHANGES, NONE_IS_ZERO},
 *		{"state", "state", MEMBER(ENUM, state), MEMBER_LISTED, MEMBER_NAMES(states)},
 *	};
 *	const struct schema task_schema = SCHEMA(struct task, members);
 *
 * Each noun is a plain struct, with its schema, in model/. A dialect that spells members
 * differently has its own table over the same struct, without columns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/value.h"

struct packer;

/* The member's type in the struct. */
enum member_kind {
	MEMBER_TEXT,  /* struct text */
	MEMBER_BLOB,  /* struct text: any bytes; JSON shows them as text */
	MEMBER_LINES, /* struct text: lines, each ending in a line feed; JSON shows an array */
	MEMBER_JSON,  /* struct text: an object on one line; empty: none */
	MEMBER_ENV, /* struct text: "NAME=VALUE", each NUL-terminated; only names are ever shown */
	MEMBER_PACKED, /* struct packed */
	MEMBER_TEXTS,  /* struct texts; its column has their number, another table the texts */
	MEMBER_INT,    /* int64_t */
	MEMBER_TIME,   /* int64_t: UTC in milliseconds */
	MEMBER_REAL,   /* double */
	MEMBER_BOOL,   /* bool */
	MEMBER_ENUM,   /* an enum from 0, with names */
};

/* Which number means none. A text or a tree is none when its pointer is NULL, an enum when its
 * name is. */
enum member_none { NONE_IS_NOTHING, NONE_IS_ZERO, NONE_IS_NEGATIVE, NONE_IS_MAX };

/* What is written for none. */
enum member_absent {
	ABSENT_NULL,
	ABSENT_LEFT_OUT,
	ABSENT_EMPTY, /* "", {} or [] */
};

/* Flags that all nouns share. A noun's own start at MEMBER_OWN. */
enum {
	MEMBER_MADE = 1 << 0,     /* made by the store, like a key: read, never written */
	MEMBER_CHANGES = 1 << 1,  /* may change later: an update writes it */
	MEMBER_NOT_NULL = 1 << 2, /* its column stores a missing text as "" */
	MEMBER_NULLABLE = 1 << 3, /* its column stores a missing number as NULL */
	MEMBER_LISTED = 1 << 4,   /* shown in lists */
	MEMBER_CUT = 1 << 5,      /* its text is cut when the writer is given a length */
	MEMBER_OFFSET = 1 << 6,   /* a time that JSON shows with "+00:00", not with "Z" */
	MEMBER_OWN = 1 << 8,
};

struct member {
	const char *name; /* as koine's own dialect and the command line spell it; NULL: internal */
	const char *column; /* NULL: not stored */
	uint8_t kind;       /* enum member_kind */
	uint16_t offset;
	uint32_t flags;
	uint8_t none;             /* enum member_none */
	uint8_t absent;           /* enum member_absent */
	const char *const *names; /* of an enum */
	unsigned n_names;
};

#define MEMBER_OF(type, what, field) .kind = MEMBER_##what, .offset = offsetof(type, field)

#define MEMBER_NAMES(table) .names = (table), .n_names = sizeof(table) / sizeof((table)[0])

struct schema {
	size_t size;
	const struct member *members; /* in the order in which they are shown */
	unsigned n;
};

#define SCHEMA(type, table)                                                                        \
	{                                                                                          \
		.size = sizeof(type), .members = (table), .n = sizeof(table) / sizeof((table)[0])  \
	}

#define schema_each(m, schema)                                                                     \
	for (const struct member *m = (schema)->members; m < (schema)->members + (schema)->n; m++)

/* A selection of members: those that have all flags of `with` and none of `without`. */
struct selection {
	uint32_t with;
	uint32_t without;
};

static inline bool member_is_in(const struct member *m, struct selection s)
{
	return (m->flags & s.with) == s.with && (m->flags & s.without) == 0;
}

static inline const void *member_at(const struct member *m, const void *noun)
{
	return (const char *)noun + m->offset;
}

/* The bytes of a TEXT, BLOB, LINES, JSON, ENV or PACKED member, to be read or replaced; NULL for
 * other kinds. */
static inline struct text *member_bytes(const struct member *m, void *noun)
{
	_Static_assert(offsetof(struct packed, bytes) == 0, "a tree's bytes come first");
	return m->kind <= MEMBER_PACKED ? (struct text *)((char *)noun + m->offset) : NULL;
}

static inline int64_t member_int(const struct member *m, const void *noun)
{
	return *(const int64_t *)member_at(m, noun);
}

/* Whether an integer of this member means none. */
static inline bool member_int_is_none(const struct member *m, int64_t n)
{
	switch ((enum member_none)m->none) {
	case NONE_IS_ZERO:
		return n == 0;
	case NONE_IS_NEGATIVE:
		return n < 0;
	case NONE_IS_MAX:
		return n == INT64_MAX;
	case NONE_IS_NOTHING:
		break;
	}
	return false;
}

static inline bool member_real_is_none(const struct member *m, double d)
{
	return (m->none == NONE_IS_NEGATIVE && d < 0) || (m->none == NONE_IS_ZERO && d == 0);
}

/* Which integer means none. */
int64_t member_none_int(const struct member *m);

/* The name of an enum's value; NULL: none. */
const char *member_word(const struct member *m, const void *noun);

/* The index of a name among `names`; false: it is not one of them. */
bool member_find_word(const char *const *names, unsigned n, struct text word, unsigned *ret_place);

/* A text of the member as it is shown: cut to so many bytes (0: never), at a character boundary. */
struct text member_shown(const struct member *m, struct text t, size_t cut);

/* How many bytes a noun has beside its struct. Those of TEXTS are not counted. */
size_t schema_bytes(const struct schema *p, const void *noun);

/* Copies them into the arena. */
int schema_copy(const struct schema *p, struct arena *a, void *noun);

/* The next entry of an ENV; false: there is none. In a store that others wrote, the last NUL may
 * be missing. */
bool member_next_variable(struct text *env, struct text *ret_variable);

/* "NAME" of "NAME=VALUE". */
struct text member_variable_name(struct text variable);

/* The next entry of LINES that is not empty; false: there is none. */
bool member_next_line(struct text *lines, struct text *ret_line);

/* Packs the selected members, as members of the object that is begun; `cut` as in member_shown. */
void packer_members(struct packer *p, const struct schema *schema, struct selection s,
		    const void *noun, size_t cut);
