/* Prompts, and the completion of their arguments. */
#include "mcp/inner.h"

int mcp_open_prompt(struct mcp_call *mc)
{
	struct call *c = mc->call;
	const struct mcp_prompt *prompt;
	int r = mcp_text_param(mc, "name", &mc->name) ?: mcp_read_arguments(mc);

	if (r != 0)
		return r;
	prompt = mcp_find_prompt(mc->mcp, mc->name);
	if (!prompt)
		return refuse_name(&c->error, REFUSE_PARAMS, "prompt not found: ", mc->name);
	r = mcp_read_answers(mc);
	if (r != 0)
		return r;
	mc->kind = MCP_MESSAGES;
	c->method = &prompt->row;
	c->request.params = mc->arguments;
	return 0;
}

/* What is completed: an argument of a prompt, or a place of a template. */
static int check_ref(struct mcp_call *mc)
{
	const struct value *ref = value_find(mc->call->request.params, "ref");
	struct text type = value_text(value_find(ref, "type"));
	bool prompt = text_is(type, "ref/prompt");
	const char *key = prompt ? "name" : "uri";

	if (!prompt && !text_is(type, "ref/resource"))
		return refuse_field(&mc->call->error, "ref",
				    "ref.type must be ref/prompt or ref/resource");
	mc->name = value_text(value_find(ref, key));
	if (!mc->name.data)
		return refuse_field(&mc->call->error, "ref", "ref.%s must be a string", key);
	if (prompt && mcp_has(mc->mcp, PART_PROMPTS) && !mcp_find_prompt(mc->mcp, mc->name))
		return refuse_name(&mc->call->error, REFUSE_PARAMS, "prompt not found: ", mc->name);
	return 0;
}

int mcp_open_completion(struct mcp_call *mc)
{
	const struct value *argument = value_find(mc->call->request.params, "argument");
	int r = check_ref(mc);

	if (r != 0)
		return r;
	if (!value_text(value_find(argument, "name")).data ||
	    !value_text(value_find(argument, "value")).data)
		return refuse_field(&mc->call->error, "argument",
				    "argument must have a name and a value, both strings");
	mc->call->method = mc->mcp->opts.complete;
	return 0;
}
