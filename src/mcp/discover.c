/* What this server can do, as each era wants to know it; and what a call's client can. */
#include "mcp/inner.h"
#include "mcp/session.h"

static void write_flags(struct json *j, const char *key, bool changes, bool subscribes)
{
	json_member_object(j, key);
	if (changes)
		json_member_bool(j, "listChanged", true);
	if (subscribes)
		json_member_bool(j, "subscribe", true);
	json_end_object(j);
}

void mcp_write_capabilities(const struct mcp *m, struct json *j, enum mcp_era era)
{
	json_begin_object(j);
	if (mcp_has(m, PART_TOOLS))
		write_flags(j, "tools", true, false);
	if (mcp_has(m, PART_RESOURCES))
		write_flags(j, "resources", true, mcp_has(m, PART_SUBSCRIBE));
	if (mcp_has(m, PART_PROMPTS))
		write_flags(j, "prompts", true, false);
	if (mcp_has(m, PART_COMPLETIONS))
		write_flags(j, "completions", false, false);
	if (mcp_has(m, PART_LOGGING))
		write_flags(j, "logging", false, false);
	if (mcp_has(m, PART_TASKS) && era == MCP_MODERN) {
		json_member_object(j, "extensions");
		write_flags(j, mcp_tasks_extension, false, false);
		json_end_object(j);
	}
	json_end_object(j);
}

struct done mcp_discover(struct call *c)
{
	const struct mcp *m = opened(c)->mcp;
	struct json *j = call_result(c);

	json_begin_object(j);
	json_member_array(j, "supportedVersions");
	json_str(j, mcp_modern_version);
	json_end_array(j);
	json_key(j, "capabilities");
	mcp_write_capabilities(m, j, MCP_MODERN);
	if (m->opts.instructions)
		json_member_str(j, "instructions", m->opts.instructions);
	json_end_object(j);
	return call_reply(c);
}

/* ---- the client ---- */

const char *mcp_version(const struct call *c)
{
	return opened(c)->version;
}

void mcp_set_own(struct call *c, void *own)
{
	opened(c)->own = own;
}

void *mcp_own(const struct call *c)
{
	return opened(c)->own;
}

struct text mcp_client_name(const struct call *c)
{
	const struct mcp_call *mc = opened(c);

	if (mc->session)
		return mc->session->client_name ? text_of(mc->session->client_name)
						: (struct text) {0};
	return value_text(
		value_find(value_find(mc->meta, "io.modelcontextprotocol/clientInfo"), "name"));
}

const struct value *mcp_meta(const struct call *c)
{
	return opened(c)->meta;
}

bool mcp_can(const struct call *c, const char *capability)
{
	const struct mcp_call *mc = opened(c);
	const struct value *v = value_find(mc->capabilities, capability);

	if (mc->session)
		return session_declares(mc->session, text_of(capability));
	return v && v->kind == VALUE_OBJECT;
}
