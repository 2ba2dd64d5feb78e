/*
 * The types of one stream: those that every stream has, and those defined on it.
 *
 * The sender chooses ids, and they may refer to types defined later, so they are looked up
 * when a value needs them. A type is never changed or withdrawn.
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "wire/gob/gob.h"

struct gob_field {
	struct text name;
	int32_t id;
};

struct gob_type {
	int32_t id;
	enum gob_kind kind;
	struct text name; /* the sender's; may be "" */
	int32_t key;      /* of a map */
	int32_t elem;     /* of a map, a slice, an array */
	uint64_t len;     /* of an array */
	const struct gob_field *fields;
	uint32_t n_fields;
};

enum { GOB_FITS = 16 };

struct gob_types {
	struct gob_limits limits;
	struct arena arena;
	struct gob_type **by_id; /* sorted */
	unsigned n;
	unsigned cap;
	struct {
		const struct gob_type *type;
		const struct gob_shape *shape;
	} fits[GOB_FITS]; /* pairs that gob_fit has found to fit */
};

/* Of a value that defines a type. */
enum { GOB_WIRE_TYPE = 16 };

void gob_types_init(struct gob_types *t, const struct gob_limits *limits);
void gob_types_done(struct gob_types *t);

/* NULL: it was not defined (yet). */
const struct gob_type *gob_type_find(const struct gob_types *t, int64_t id);

/*
 * Learns a type from a value of GOB_WIRE_TYPE.
 *
 * Refuses ids that are taken or reserved, and what defines nothing or two things, with
 * REFUSE_PARSE; what exceeds the limits with REFUSE_TOO_LARGE.
 */
int gob_type_define(struct gob_types *t, int64_t id, const struct value *wire, struct error *error);

/* Refuses what gob_type_define would refuse for its id alone. */
int gob_type_may_define(const struct gob_types *t, int64_t id, struct error *error);

/* The type as Go describes it in an error, cut to size. */
void gob_type_describe(const struct gob_types *t, int64_t id, char *ret_text, size_t size);

/*
 * Is what came what was expected? Decided as Go does, and in its words.
 *
 * Fields are matched by name alone; unexpected ones are skipped, missing ones are zero. Kinds
 * must agree: an int is no uint, float or string, while widths are free as long as the number
 * fits. What an interface holds is free.
 */

/*
 * Refuses with REFUSE_PARAMS. `field` of error names the field at fault, if there is one.
 *
 * type and value are what decode.h has read from the stream that has these types.
 */
int gob_fit(struct gob_types *t, const struct gob_type *type, const struct value *value,
	    const struct gob_shape *shape, struct error *error);
