/*
 * A tree of structured data as bytes, and back: how the store keeps data that it does not look
 * into. The format is our own and the same on every machine: a byte for the kind, lengths as
 * varints, text as it is.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"

/* The nesting allowed in JSON text, plus what we put around it. */
enum { PACKED_DEPTH_MAX = 1100 };

/* What is empty, packed: "", 0, {} and []. */
#define PACKED_NO_TEXT   "\"\0"
#define PACKED_ZERO      "#\0010"
#define PACKED_NO_OBJECT "{\0"
#define PACKED_NO_ARRAY  "[\0"

/* NULL packs as null. Failures stick to out->err. */
void value_pack(struct buf *out, const struct value *v);

/* The texts of the tree point into `bytes`, and nothing has a source (raw is NULL). -EBADMSG for
 * anything that value_pack did not make. Nothing is allocated for a count that is merely
 * claimed, and nesting is bounded. */
int value_unpack(struct arena *a, struct text bytes, struct value **ret_value);

/* A separate copy of the tree, in the arena. */
int value_copy(struct arena *a, const struct value *v, const struct value **ret_copy);

/* ---- without a tree ---- */

/* Packs an object of up to 127 members, one by one. Failures stick to out->err. */
struct packer {
	struct buf *out;
	size_t at; /* where the number of members is */
	unsigned n;
};

void packer_begin(struct packer *p, struct buf *out);
void packer_end(struct packer *p);

/* What follows is the value of this member. It may be an object that is packed into the same
 * buffer. */
void packer_key(struct packer *p, const char *key);
void packer_text(struct packer *p, const char *key, struct text t);  /* {NULL, 0} is null */
void packer_given(struct packer *p, const char *key, struct text t); /* ... is left out */
void packer_texts(struct packer *p, const char *key, struct texts t);
void packer_int(struct packer *p, const char *key, int64_t n);
void packer_bool(struct packer *p, const char *key, bool b);
void packer_packed(struct packer *p, const char *key, struct text packed); /* already packed */

/* Walks the bytes in the order in which they were packed. -EBADMSG as with value_unpack. */
struct packed_reader {
	const char *at;
	const char *end;
};

static inline struct packed_reader packed_reader(struct text packed)
{
	const char *begin = packed.data ? packed.data : "";

	return (struct packed_reader) {.at = begin, .end = begin + packed.len};
}

struct packed_item {
	enum value_kind kind;
	struct text text; /* a number's source, or a string's bytes */
	uint32_t n;       /* of children, which follow; an object's are a key and a value each */
};

int packed_take(struct packed_reader *r, struct packed_item *ret);
int packed_take_text(struct packed_reader *r, struct text *ret); /* a key */

/* Another name of a member of an object. A member may have several, one behind the other. */
struct packed_name {
	struct text stored; /* {NULL, 0}: the end of a list */
	struct text shown;
	enum {
		NULL_IS_SHOWN,
		NULL_IS_EMPTY,
		NULL_IS_LEFT_OUT
	} null; /* "" instead of null, or nothing */
};

/* The first name of the member; NULL: its own. */
static inline const struct packed_name *packed_name_find(const struct packed_name *names,
							 struct text stored)
{
	for (; names && names->stored.data; names++) {
		if (text_equal(stored, names->stored))
			return names;
	}
	return NULL;
}

/* Whether value_pack could have made it from an object. */
bool packed_is_object(struct text packed);

/* The last member of that name, packed; {NULL, 0}: none, or not an object. */
struct text packed_find(struct text packed, const char *key);

/* The text of a string; {NULL, 0} for anything else. */
struct text packed_text(struct text packed);
