/* Modern requests: each says by itself what it is, in _meta and over HTTP in headers as well. */
#include "base/cleanup.h"
#include "mcp/inner.h"
#include "wire/http/http1.h"

const char *const mcp_modern_version = "2026-07-28";

static const char version_key[] = "io.modelcontextprotocol/protocolVersion";
static const char capabilities_key[] = "io.modelcontextprotocol/clientCapabilities";

static const char *const legacy_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26",
					      "2024-11-05"};

const char *mcp_legacy_version(struct text name)
{
	for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(legacy_versions[0]); i++) {
		if (text_is(name, legacy_versions[i]))
			return legacy_versions[i];
	}
	return NULL;
}

const char *mcp_newest_legacy(void)
{
	return legacy_versions[0];
}

/* Methods that no legacy client has, and a header that none sends, show a modern request that lacks
 * its _meta. */
bool mcp_is_modern(const struct mcp_call *mc, const struct http_request *http)
{
	const struct mcp_row *row = mcp_find_row(mc->call->request.method);
	struct text header =
		http ? http_header_find(http, "MCP-Protocol-Version") : (struct text) {0};

	if (value_find(mc->meta, version_key) || (row && row->eras == MCP_MODERN))
		return true;
	return header.data && !mcp_legacy_version(header) &&
	       !http_header_find(http, "Mcp-Session-Id").data;
}

static int check_meta(struct mcp_call *mc)
{
	const struct value *version = value_find(mc->meta, version_key);

	mc->capabilities = value_find(mc->meta, capabilities_key);
	if (!mc->meta)
		return mcp_refuse_with(mc, -32602, 400, (struct text) {0},
				       "params._meta is required");
	if (!version || version->kind != VALUE_STRING)
		return mcp_refuse_with(mc, -32602, 400, (struct text) {0},
				       "_meta must have a string \"%s\"", version_key);
	if (!mc->capabilities || mc->capabilities->kind != VALUE_OBJECT)
		return mcp_refuse_with(mc, -32602, 400, (struct text) {0},
				       "_meta must have an object \"%s\"", capabilities_key);
	return 0;
}

static int wrong_version(struct mcp_call *mc, struct text asked)
{
	struct call *c = mc->call;
	CLEANUP(buf_donep) struct buf data = {0};
	struct text kept = {0};
	struct json j;

	buf_init(&data, asked.len * 6 + 256);
	j = json_writer(&data);
	json_begin_object(&j);
	json_member_array(&j, "supported");
	json_str(&j, mcp_modern_version);
	json_end_array(&j);
	json_member_text(&j, "requested", asked);
	json_end_object(&j);
	if (data.err == 0)
		(void)arena_copy_text(&c->arena, buf_bytes(&data), &kept);
	return mcp_refuse_with(mc, -32022, 400, kept, "Unsupported protocol version");
}

int mcp_open_modern(struct mcp_call *mc, const struct http_request *http)
{
	struct text version;
	int r;

	mc->version = mcp_modern_version;
	r = check_meta(mc);
	/* A version that we do not know may have other headers. */
	version = value_text(value_find(mc->meta, version_key));
	if (r == 0 && http && !mc->call->request.silent)
		r = mcp_check_headers(mc, http);
	if (r == 0 && !text_is(version, mcp_modern_version))
		r = wrong_version(mc, version);
	return r;
}
