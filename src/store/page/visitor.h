/* The browsers that were let in. There are few, and they are read as a whole. */
#pragma once

#include "base/arena.h"
#include "base/noun/visitor.h"

struct connection;

int store_visitor_add(struct connection *c, const struct visitor *v);
int store_visitor_delete(struct connection *c, struct text id);
/* Those of a host ({NULL, 0}: there is one only) that came longest ago first. */
int store_visitor_list(struct connection *c, struct text host, struct arena *arena,
		       struct visitor **ret_rows, unsigned *ret_n);
