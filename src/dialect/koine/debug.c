/* Methods for tests and demonstrations, served only with --debug-methods. */
#include "call/call.h"
#include "dialect/koine/koine.h"

struct sleep_in {
	int64_t ms;
};

enum { LONGEST_SLEEP_MS = 3600 * 1000 };

static struct done debug_echo(struct call *c)
{
	json_value(call_result(c), c->request.params);
	return call_reply(c);
}

static struct done slept(struct call *c)
{
	const struct sleep_in *in = c->in;

	return call_answer(c, 0, NULL, PAIRS(JSON_INT("slept_ms", in->ms)));
}

static struct done debug_sleep(struct call *c)
{
	const struct sleep_in *in = c->in;

	return call_after(c, (uint64_t)in->ms, slept);
}

static const struct field sleep_fields[] = {
	FIELD(INT, sleep_in, ms, "Delay in milliseconds, up to one hour", .required = true,
	      RANGE(0, LONGEST_SLEEP_MS)),
};

static const struct method rows[] = {
	{"debug.echo", "Return the parameters unchanged", .handle = debug_echo},
	{"debug.sleep", "Return after a delay; can be cancelled", "{slept_ms:integer}",
	 FIELDS(sleep_fields, sleep_in), .handle = debug_sleep, .flags = METHOD_LATER},
};

const struct method_table koine_debug_methods = METHOD_TABLE(rows);
