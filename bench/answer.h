/* Is this the answer to that request? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Reads the outermost members of a JSON-RPC answer.
 *
 * 0 when it is an object with a result that is not null, no error but null, and
 * an id that is a whole number; otherwise -EPROTO, and *ret_wrong says what is
 * the matter.
 */
int answer_read(struct text body, uint64_t *ret_id, const char **ret_wrong);

/*
 * One outermost member of a JSON object, as it stands there; of a string what is between
 * its quotes. False when there is none.
 */
bool answer_member(struct text object, const char *name, struct text *ret_value);
