/* Memory over HTTP: the answers of the memory tools, without an agent. */

#include "base/object_builder.h"
#include "dialect/gateway/gateway.h"
#include "engine/program/tool.h"
#include "dialect/engine.h"

static void on_result(void *arg, int result, const struct tool_result *got,
		      const struct error *error)
{
	struct call *c = arg;

	c->state = NULL;
	if (result != 0) {
		(void)call_fail_for(c, result, error);
		return;
	}
	json_raw(call_result(c), got->text.data, got->text.len);
	(void)call_reply(c);
}

static void gateway_memory_on_cancel(struct call *c, void *arg)
{
	tool_leave(c->state);
	c->state = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done gateway_memory_run(struct call *c, enum tool_id id,
				      const struct object_builder *input)
{
	const struct tool_ask ask = {
		.id = id,
		.input = input->root,
		.agent = TEXT("gateway"),
		.by = {.user = gateway_settings(c)->user},
		.peer = c->peer,
	};
	struct tool_run *run = NULL;
	int r = input->err ?: tool_run(call_tools(c), &ask, on_result, c, &run, &c->error);

	if (r != 0)
		return call_fail(c, r);
	c->state = run;
	return call_later(c, gateway_memory_on_cancel, NULL);
}

struct done gateway_memory_search(struct call *c)
{
	const struct gateway_memory_in *in = c->in;
	struct object_builder w;

	object_begin(&w, &c->arena);
	object_text(&w, "query", in->query);
	object_text(&w, "category", in->category);
	object_double(&w, "limit", in->limit);
	object_double(&w, "minScore", in->min_score);
	return gateway_memory_run(c, TOOL_MEMORY_SEARCH, &w);
}

struct done gateway_memory_get(struct call *c)
{
	const struct gateway_memory_in *in = c->in;
	struct object_builder w;

	object_begin(&w, &c->arena);
	object_text(&w, "path", in->path);
	return gateway_memory_run(c, TOOL_MEMORY_GET, &w);
}

struct done gateway_memory_store(struct call *c)
{
	const struct gateway_memory_in *in = c->in;
	struct object_builder w;

	object_begin(&w, &c->arena);
	object_text(&w, "text", in->text);
	object_text(&w, "category", in->category);
	object_double(&w, "importance", in->importance);
	return gateway_memory_run(c, TOOL_MEMORY_STORE, &w);
}
