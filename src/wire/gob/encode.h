/*
 * Writing a gob stream, of values pushed one after another. No I/O.
 *
 * The shape says what a value is made of; the caller pushes in its order, and what is
 * pushed must agree with it. Definitions are written before the value that needs them
 * first, those of what its interfaces hold too, so that a value is always one message. Of
 * a struct, fields that are zero are left out, as gob wants it.
 *
 *	gob_begin(e, &stats_reply);
 *	gob_begin_struct(e);
 *	gob_field(e, 0);
 *	gob_begin_map(e, 1);
 *	gob_text(e, TEXT("messages"));
 *	gob_int(e, 150);
 *	gob_end_map(e);
 *	gob_end_struct(e);
 *	r = gob_end(e, out);
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "wire/gob/gob.h"
#include "wire/gob/number.h"

struct gob_sent;
struct gob_level;

/* What the other side has been told about types. */
struct gob_mark {
	unsigned n_sent;
	int32_t last_id;
};

struct gob_encoder {
	size_t max;            /* bytes of one message */
	struct gob_sent *sent; /* types that this side has defined, with their ids */
	unsigned cap_sent;
	struct gob_mark known;
	struct gob_mark kept; /* what remains if the current value is dropped */
	struct buf definitions;
	struct buf value;
	const struct gob_shape *top;
	bool is_open; /* a value has begun and not ended */
	bool has_value;
	struct gob_level *levels; /* what has begun and not ended */
	unsigned n_levels;
	unsigned cap_levels;
	int err; /* sticks: -ENOMEM, -EMSGSIZE, or -EINVAL for what does not match the shape */
};

void gob_encoder_init(struct gob_encoder *e, size_t max);
void gob_encoder_done(struct gob_encoder *e);

/* One value of this shape follows. Shapes are told apart by address, and must stay in place. */
void gob_begin(struct gob_encoder *e, const struct gob_shape *shape);

/* Appends the new definitions and the value. On failure out is unchanged, and what this value
 * would have defined counts as not sent. */
int gob_end(struct gob_encoder *e, struct buf *out);

/* What was written since is not sent after all. */
void gob_take_back(struct gob_encoder *e, struct gob_mark since);

/* Drops the value that has begun, if any; gob_begin does so by itself. */
void gob_give_up(struct gob_encoder *e);

void gob_bool(struct gob_encoder *e, bool b);
void gob_int(struct gob_encoder *e, int64_t n);
void gob_uint(struct gob_encoder *e, uint64_t n);
void gob_float(struct gob_encoder *e, double d);
void gob_complex(struct gob_encoder *e, double re, double im);
void gob_text(struct gob_encoder *e, struct text t); /* string, []byte, opaque */

void gob_begin_struct(struct gob_encoder *e);
/* What comes next is field number i; fields come in ascending order, and may be skipped. */
void gob_field(struct gob_encoder *e, unsigned i);
void gob_end_struct(struct gob_encoder *e);

/* A slice or an array of n. */
void gob_begin_list(struct gob_encoder *e, uint64_t n);
void gob_end_list(struct gob_encoder *e);

/* n times a key and a value. A map that is nil is left out by its struct. */
void gob_begin_map(struct gob_encoder *e, uint64_t n);
void gob_end_map(struct gob_encoder *e);

/* What an interface holds: one value of the shape, known to the receiver by this name. Every Go
 * program knows "string", "int", "float64", "bool", "[]uint8" ...; net/rpc programs have mostly
 * registered "map[string]interface {}" and "[]interface {}". */
void gob_nil(struct gob_encoder *e);
void gob_begin_interface(struct gob_encoder *e, const char *name, const struct gob_shape *shape);
void gob_end_interface(struct gob_encoder *e);

/*
 * A whole tree, as the shape wants it. Members that the shape does not know are left out; null
 * and missing ones are zero. Refuses with REFUSE_PARAMS what does not fit.
 */
int gob_put(struct gob_encoder *e, const struct gob_shape *shape, const struct value *v,
	    struct error *error);

/* Any value, where the shape has an interface: under one of the names above. */
void gob_put_any(struct gob_encoder *e, const struct value *v);

/* What encode.c and define.c share: how a type is described to the other side. */

/* Remembers the first failure. */
static inline void gob_fail(struct gob_encoder *e, int err)
{
	if (e->err == 0)
		e->err = err;
}

/* Puts the number of bytes from `start` on in front of them. */
static inline void gob_count_from(struct buf *b, size_t start)
{
	unsigned char count[GOB_UINT_MAX];
	size_t n = b->len - start;
	size_t size = gob_format_uint(count, n);

	if (buf_reserve(b, size) != 0)
		return;
	memmove(b->data + start + size, b->data + start, n);
	memcpy(b->data + start, count, size);
	b->len += size;
}

static inline void gob_add_text(struct buf *out, const char *text)
{
	gob_add_uint(out, strlen(text));
	buf_add_str(out, text);
}

/* The id of a type; defines it, and what it is made of, where that was not done before. */
int32_t gob_need_type(struct gob_encoder *e, const struct gob_shape *shape);
