/*
 * Is what came what was expected? Decided as Go does, and in its words.
 *
 * Fields are matched by name alone; unexpected ones are skipped, missing ones are zero. Kinds
 * must agree: an int is no uint, float or string, while widths are free as long as the number
 * fits. What an interface holds is free.
 */
#pragma once

#include "wire/gob/type.h"

/*
 * Refuses with REFUSE_PARAMS. `field` of why names the field at fault, if there is one.
 *
 * type and value are what decode.h has read from the stream that has these types.
 */
int gob_fit(struct gob_types *t, const struct gob_type *type, const struct value *value,
	    const struct gob_shape *shape, struct why *why);
