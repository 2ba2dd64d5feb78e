/* [gateway]: which tools, by their names. */
#include <string.h>

#include "base/text.h"
#include "daemon/settings/settings.h"
#include "engine/program/tool.h"

static const unsigned memory_bits =
	1U << TOOL_MEMORY_SEARCH | 1U << TOOL_MEMORY_GET | 1U << TOOL_MEMORY_STORE;

static bool add_tool(struct text name, unsigned *bits)
{
	if (text_is(name, "none") || name.len == 0)
		return true;
	if (text_is(name, "memory")) {
		*bits |= memory_bits;
		return true;
	}
	for (unsigned i = TOOL_EXEC; i < N_TOOLS; i++) {
		if (text_is(name, tool_name((enum tool_id)i))) {
			*bits |= 1U << i;
			return true;
		}
	}
	return false;
}

int settings_gateway_tools(const struct settings *s, unsigned *ret_bits, struct why *why)
{
	const char *at = s->gateway_tools;
	unsigned bits = 0;

	while (*at) {
		struct text name = {.data = at, .len = strcspn(at, ", ")};

		if (!add_tool(name, &bits))
			return refuse(why, REFUSE_PARAMS,
				      "gateway.tools: there is no '%.*s'; there are memory, exec, "
				      "read, write, edit and none",
				      TEXT_ARGS(text_cut(name, 40)));
		at += name.len;
		at += strspn(at, ", ");
	}
	if ((bits & ~memory_bits) && !s->gateway_folder[0])
		return refuse(why, REFUSE_PARAMS,
			      "gateway.tools has more than memory: gateway.folder must say where");
	if (s->gateway_process && !s->gateway_folder[0])
		return refuse(why, REFUSE_PARAMS,
			      "gateway.process is on: gateway.folder must say where");
	*ret_bits = bits;
	return 0;
}
