#include "dialect/census_wire.h"
#include "dialect/engine.h"

#include <errno.h>

struct counting {
	census_wire_fn answer;
	struct census census;
};

static struct done refuse_census(struct call *c)
{
	return call_fail(c, refuse(&c->error, REFUSE_UNAVAILABLE, "storage not initialized"));
}

static int take_census(struct call *c)
{
	struct counting *n = c->state;

	return census_take(call_chat(c), c->lane, &n->census);
}

static struct done census_taken(struct call *c, int r)
{
	const struct counting *n = c->state;

	if (r != 0)
		return refuse_census(c);
	census_keep(call_chat(c), &n->census);
	return n->answer(c, &n->census);
}

struct done census_wire(struct call *c, census_wire_fn answer)
{
	struct counting *n;
	struct census known;

	if (!call_chat(c))
		return refuse_census(c);
	if (census_at_hand(call_chat(c), &known))
		return answer(c, &known);
	n = arena_zalloc(&c->arena, sizeof(*n));
	if (!n)
		return call_fail(c, -ENOMEM);
	n->answer = answer;
	c->state = n;
	return call_work(c, READER, take_census, census_taken);
}
