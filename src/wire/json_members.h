/* A noun as JSON, from its portrait. */
#pragma once

#include "base/portrait.h"
#include "wire/json.h"

/*
 * Writes the members that were selected, as members of the object that is open; texts with
 * MEMBER_CUT are cut to `cut` bytes (0: never). Of a tree only what was unpacked is written, of an
 * environment only the names.
 */
void json_members(struct json *j, const struct portrait *p, struct selection s, const void *noun,
		  size_t cut);
