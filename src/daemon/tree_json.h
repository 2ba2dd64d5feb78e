/* Services have no JSON text: what they ask for where the world outside wants some. */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/value.h"

/* In the arena. -EMSGSIZE for more than 8 MiB. */
int tree_json(struct arena *a, const struct value *v, struct text *ret_text);
