/* The engine has no JSON text; it gets this function for what must leave as JSON. */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/value.h"

/* In the arena. -EMSGSIZE for more than 8 MiB. */
int tree_json(struct arena *a, const struct value *v, struct text *ret_text);
