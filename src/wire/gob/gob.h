/*
 * Go's gob encoding: what its types are made of, and the limits of reading it.
 *
 * A gob stream describes its own types: a type is defined by a message before the first
 * value that needs it, once for each connection and direction. decode.h reads such a
 * stream, type.h asks whether what came is what was expected, encode.h writes one.
 *
 * What is expected, and what is sent, is told by a shape: const data in the form of a Go type.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The first eight are the ids that those types have on every stream. */
enum gob_kind {
	GOB_BOOL = 1,
	GOB_INT,
	GOB_UINT,
	GOB_FLOAT,
	GOB_BYTES,
	GOB_STRING,
	GOB_COMPLEX,
	GOB_INTERFACE,
	GOB_ARRAY,
	GOB_SLICE,
	GOB_MAP,
	GOB_STRUCT,
	GOB_OPAQUE, /* bytes that only the Go type itself understands, such as time.Time's */
};

enum {
	GOB_FIRST_ID = 64, /* of types that are defined on a stream */

	GOB_MESSAGE_MAX = 10 << 20,   /* bytes of one message, and of all that make up one value */
	GOB_TYPES_MAX = 1024,         /* types that one side may define on one connection */
	GOB_TYPE_BYTES_MAX = 1 << 20, /* bytes kept of them */
	GOB_FIELDS_MAX = 1024,        /* of one struct */
	GOB_DEPTH_MAX = 128,          /* nesting of structs, lists and maps */
	GOB_VALUES_MAX = 1000000,     /* in one message */
	GOB_NAME_MAX = 1024,          /* bytes of the name of an interface's type; Go's own limit */
	GOB_KEY_MAX = 4096,           /* bytes of a map's key that had to be written as text */
};

struct gob_limits {
	size_t message;
	unsigned types;
	size_t type_bytes;
	unsigned fields;
	unsigned depth;
	uint32_t values;
};

extern const struct gob_limits gob_default_limits;

struct gob_shape_field {
	const char *name;
	const struct gob_shape *shape;
};

struct gob_shape {
	enum gob_kind kind;
	unsigned bits;    /* of GOB_INT, GOB_UINT, GOB_FLOAT: 8, 16, 32, 64; 0 is 64 */
	const char *name; /* as Go defines the type on a stream: "ChatArgs", "[]main.Message", "" */
	const char *go;   /* as Go prints the type: "main.ChatArgs", "int64"; NULL: as `name` */
	const struct gob_shape *key;  /* of a map */
	const struct gob_shape *elem; /* of a map, a slice, an array */
	uint64_t len;                 /* of an array */
	const struct gob_shape_field *fields;
	unsigned n_fields;
};

extern const struct gob_shape gob_shape_bool;
extern const struct gob_shape gob_shape_int;
extern const struct gob_shape gob_shape_int64;
extern const struct gob_shape gob_shape_uint;
extern const struct gob_shape gob_shape_uint64;
extern const struct gob_shape gob_shape_float64;
extern const struct gob_shape gob_shape_string;
extern const struct gob_shape gob_shape_bytes;
extern const struct gob_shape gob_shape_interface;    /* interface {} */
extern const struct gob_shape gob_shape_any_map;      /* map[string]interface {} */
extern const struct gob_shape gob_shape_any_slice;    /* []interface {} */
extern const struct gob_shape gob_shape_empty_struct; /* struct {} */

/* The type as Go prints it. */
static inline const char *gob_shape_go(const struct gob_shape *shape)
{
	return shape->go ? shape->go : shape->name;
}
