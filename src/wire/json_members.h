/* A noun as JSON, from its portrait. */
#pragma once

#include "base/portrait.h"
#include "wire/json.h"

/*
 * Writes the members that were selected, as members of the object that is open; texts with
 * MEMBER_CUT are cut to `cut` bytes (0: never). Of an environment only the names are
 * written.
 */
void json_members(struct json *j, const struct portrait *p, struct selection s, const void *noun,
		  size_t cut);

/* Writes one of them. */
void json_noun_member(struct json *j, const struct member *m, const void *noun, size_t cut);
