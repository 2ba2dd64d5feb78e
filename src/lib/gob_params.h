/*
 * Parameters in JSON, as the gob value that a Go server wants.
 *
 * Go is strict about types, and JSON knows few, so a shape is made up for what was given:
 *
 *	object            struct, its fields by name as written; null and [] are left out
 *	string, boolean   string, bool
 *	number            int; float64 with a fraction or an exponent; uint beyond 2^63
 *	array             slice of its elements' type; []interface {} if they have several
 *
 * Structs in one array are one type, which has the fields of all of them; numbers in one
 * array are floats if one is. What JSON cannot say is an object with one member:
 *
 *	{"$int": 7}  {"$uint": "7"}  {"$float": 1}  {"$bytes": "00ff"}
 *	{"$map": {...}}   map[string]T, T made up like a slice's
 *	{"$any": VALUE}   interface {} that holds it: objects in it are map[string]interface {},
 *	                  arrays []interface {}, numbers int or float64
 */
#pragma once

#include "base/arena.h"
#include "base/value.h"
#include "base/why.h"
#include "wire/gob/gob.h"

enum { GOB_SHAPES_MAX = 512 };

/* Shapes that were made up. They are kept, because encoders know them by their address; equal
 * ones are shared. */
struct gob_shapes {
	struct arena arena;
	unsigned n;
	const struct gob_shape *all[GOB_SHAPES_MAX];
};

void gob_shapes_init(struct gob_shapes *s);
void gob_shapes_done(struct gob_shapes *s);

/*
 * Finds the shape, and turns the tree into what gob_put takes for it: the forms with a "$"
 * become what they say. The arena is that of the tree.
 *
 * Refuses with REFUSE_PARAMS what cannot be sent, and with REFUSE_LIMIT when there are too
 * many shapes already.
 */
int gob_params_read(struct gob_shapes *s, struct arena *a, struct value *v,
		    const struct gob_shape **ret_shape, struct why *why);
