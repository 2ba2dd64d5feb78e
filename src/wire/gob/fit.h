/*
 * Is what came what was expected? As Go decides it, and in its words.
 *
 * Fields are matched by name alone; those that are not expected are passed over, those that
 * are missing are zero. Kinds must agree: an int is no uint, no float and no string, while
 * widths are free as long as the number fits. What an interface holds is free.
 */
#pragma once

#include "wire/gob/type.h"

/*
 * Refuses with REFUSE_PARAMS. `field` of why is the field at fault where one is.
 *
 * type and value are what gob_decode.h has read from the stream that has these types.
 */
int gob_fit(struct gob_types *t, const struct gob_type *type, const struct value *value,
	    const struct gob_shape *shape, struct why *why);
