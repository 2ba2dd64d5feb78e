/* Stats: counts of what is stored. */
#include "dialect/census_wire.h"
#include "dialect/ocg/ocg.h"

static struct done answer(struct call *c, const struct census *n)
{
	struct json *j = call_object(c);

	json_member_object(j, "Stats");
	json_member_int(j, "sessions", n->conversations);
	json_member_int(j, "messages", n->messages);
	json_member_int(j, "tools_calls", n->tool_calls);
	json_member_int(j, "memories", n->memories);
	/* The original indexes files; koine keeps none. */
	json_member_int(j, "files", 0);
	json_end_object(j);
	return call_reply_object(c);
}

struct done ocg_stats(struct call *c)
{
	return census_wire(c, answer);
}
