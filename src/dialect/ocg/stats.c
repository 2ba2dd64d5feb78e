/* Stats: how much there is. */
#include <errno.h>

#include "call/call.h"
#include "dialect/ocg/ocg.h"
#include "engine/census.h"
#include "engine/services.h"

static struct done answer(struct call *c, const struct census *n)
{
	struct json *j = call_result(c);

	json_begin_object(j);
	json_key(j, "Stats");
	json_begin_object(j);
	json_member_int(j, "sessions", n->conversations);
	json_member_int(j, "messages", n->messages);
	json_member_int(j, "tools_calls", n->tool_calls);
	json_member_int(j, "memories", n->memories);
	/* The original indexes files; here none are kept. */
	json_member_int(j, "files", 0);
	json_end_object(j);
	json_end_object(j);
	return call_reply(c);
}

static int take(struct call *c)
{
	return census_take(call_services(c), c->lane, c->state);
}

static struct done taken(struct call *c, int r)
{
	const struct census *n = c->state;

	if (r != 0)
		return call_fail(c, refuse(&c->why, REFUSE_UNAVAILABLE, "storage not initialized"));
	census_keep(call_services(c), n);
	return answer(c, n);
}

struct done ocg_stats(struct call *c)
{
	const struct services *s = call_services(c);
	struct census n;

	if (!s || !s->store)
		return call_fail(c, refuse(&c->why, REFUSE_UNAVAILABLE, "storage not initialized"));
	if (census_at_hand(s, &n))
		return answer(c, &n);
	c->state = arena_zalloc(&c->arena, sizeof(n));
	if (!c->state)
		return call_fail(c, -ENOMEM);
	return call_work(c, READER, take, taken);
}
