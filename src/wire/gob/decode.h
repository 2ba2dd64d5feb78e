/*
 * Reading a gob stream: bytes in, values out. No I/O.
 *
 * The caller holds the bytes that are not used yet and offers them, always from the first
 * unused one, and drops *ret_used of them after every call. A message is looked at when it
 * is whole; a value that goes on over several messages is read as they come, so nothing is
 * ever read twice. Nothing is recursive, and nothing is set aside for a count before what
 * it counts is there.
 *
 * A value becomes a tree of base/value, copied into the arena:
 *
 *	struct, map         object, by the fields' names or the keys; keys that are no
 *	                    strings are put into words. Fields that are zero were not sent.
 *	slice, array        array
 *	int, uint, float    number, exact. A float that is not finite is null, because JSON has
 *	                    none; its text says "NaN", "+Inf" or "-Inf".
 *	complex             array of two numbers
 *	string, []byte      string; the bytes may be anything
 *	GobEncoder and kin  string, opaque
 *	interface           what it holds; nil is null
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/value.h"
#include "base/error.h"
#include "wire/gob/gob.h"
#include "wire/gob/number.h"
#include "wire/gob/type.h"

/* Every value of a tree that was read here is the first member of one of these. */
struct gob_node {
	struct value value;
	int32_t type; /* an id for gob_type_find; 0 for an interface that holds nothing */
	uint32_t interface_len;
	const char *interface; /* the name under which an interface held it; NULL: none did */
};

static inline const struct gob_node *gob_node_of(const struct value *v)
{
	return (const struct gob_node *)v;
}

/* What the next byte belongs to. */
enum gob_at {
	GOB_AT_TYPE,  /* definitions, or the id of the value */
	GOB_AT_VALUE, /* a value of the type `want` */
	GOB_AT_STEP,  /* what is open: its next member, or its end */
};

struct gob_open;

/* A value that is being read. */
struct gob_reading {
	enum gob_at at;
	const struct gob_type *want;
	const struct gob_type *type; /* of the whole value */
	struct arena *arena;
	struct gob_node *root;
	struct gob_open *open; /* the structs, lists and maps around the next value */
	unsigned n_open;
	unsigned cap_open;
	bool in_interface; /* an interface has begun, and its type is awaited */
	struct text interface;
	uint32_t n_values;
};

struct gob_decoder {
	struct gob_limits limits;
	struct gob_types types;
	struct gob_in in; /* the message in hand */
	struct gob_reading value;
	struct gob_reading definition; /* a definition may come in the middle of a value */
	struct arena scratch;          /* for that one */
	size_t bytes;                  /* of all messages of the value being read */
	bool begun;                    /* a message has begun, or a value */
	const struct error *broken;    /* NULL: not yet */
};

enum gob_said {
	GOB_MORE,  /* no whole value yet */
	GOB_VALUE, /* here is one */
	/* This value cannot be had; its message is over, the stream goes on. If the value would have
	 * continued in more messages, those are no values. */
	GOB_REFUSED,
	GOB_BROKEN, /* the stream cannot be used any more; every later call says the same */
};

struct gob_value {
	struct value *value;
	const struct gob_type *type;
	struct error error; /* GOB_REFUSED, GOB_BROKEN; REFUSE_INTERNAL when memory ran out */
};

void gob_decoder_init(struct gob_decoder *d, const struct gob_limits *limits);
void gob_decoder_done(struct gob_decoder *d);

/*
 * The next value, into the arena, which must be the same until a value has ended.
 *
 * eof: nothing follows the bytes offered. A stream that ends inside something is then broken
 * ("unexpected EOF"); one that ends between values gives GOB_MORE.
 */
enum gob_said gob_next(struct gob_decoder *d, struct arena *a, const char *in, size_t len, bool eof,
		       size_t *ret_used, struct gob_value *ret);

/* True while a message or a value has begun and not ended. */
bool gob_in_message(const struct gob_decoder *d);

/* Reading one value, message by message: what decode.c and read.c tell each other. */

/* From a reading: the message is over and the value is not. */
enum { GOB_WAIT = N_REFUSALS };

void gob_reading_begin(struct gob_reading *r, struct arena *a);
void gob_reading_done(struct gob_reading *r);

/*
 * Goes on with d->in. 0: the value has ended. GOB_WAIT, a refusal or a fault otherwise; only
 * after GOB_WAIT may it go on.
 */
int gob_read_on(struct gob_decoder *d, struct gob_reading *r, struct error *error);
