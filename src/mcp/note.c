/* Progress and log lines of a call. */
#include "base/cleanup.h"
#include "mcp/inner.h"
#include "mcp/session.h"

enum { NOTE_MAX = 1 << 20 };

int level_read(struct text name)
{
	static const char *const names[N_LEVELS] = {"debug", "info",     "notice", "warning",
						    "error", "critical", "alert",  "emergency"};

	for (int i = 0; i < N_LEVELS; i++) {
		if (text_is(name, names[i]))
			return i;
	}
	return -1;
}

static void mcp_note_notify(struct mcp_call *mc, const char *method, const struct buf *params)
{
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, NOTE_MAX);
	j = json_writer(&out);
	jsonrpc_write_request(&j, text_of(method), (struct text) {params->data, params->len},
			      (struct text) {0});
	/* A client that does not read misses it: it is only news. */
	if (params->err == 0 && out.err == 0)
		(void)mcp_tell(mc, (struct text) {out.data, out.len});
}

void mcp_progress(struct call *c, double progress, double total, const char *message)
{
	struct mcp_call *mc = opened(c);
	const struct value *token = value_find(mc->meta, "progressToken");
	CLEANUP(buf_donep) struct buf params = {0};
	struct json j;

	if (!token || (token->kind != VALUE_STRING && token->kind != VALUE_NUMBER))
		return;
	if (mc->progressed && progress <= mc->progress)
		return;
	mc->progressed = true;
	mc->progress = progress;
	buf_init(&params, NOTE_MAX);
	j = json_writer(&params);
	json_begin_object(&j);
	json_key(&j, "progressToken");
	json_raw(&j, token->raw, token->raw_len);
	json_key(&j, "progress");
	json_double(&j, progress);
	if (total > 0) {
		json_key(&j, "total");
		json_double(&j, total);
	}
	if (message)
		json_member_str(&j, "message", message);
	json_end_object(&j);
	mcp_note_notify(mc, "notifications/progress", &params);
}

/* N_LEVELS: nothing. A modern client says so with each request, a legacy one once. */
static int wanted_level(const struct mcp_call *mc)
{
	int level;

	if (!mc->mcp->opts.logs)
		return N_LEVELS;
	if (mc->era == MCP_LEGACY)
		return mc->session ? mc->session->log_level : N_LEVELS;
	level = level_read(value_text(value_find(mc->meta, "io.modelcontextprotocol/logLevel")));
	return level < 0 ? N_LEVELS : level;
}

void mcp_log(struct call *c, const char *level, const char *logger, struct text data)
{
	struct mcp_call *mc = opened(c);
	int is = level_read(text_of(level));
	CLEANUP(buf_donep) struct buf params = {0};
	struct json j;

	if (is < 0 || is < wanted_level(mc))
		return;
	buf_init(&params, NOTE_MAX);
	j = json_writer(&params);
	json_begin_object(&j);
	json_member_str(&j, "level", level);
	if (logger)
		json_member_str(&j, "logger", logger);
	json_key(&j, "data");
	json_raw(&j, data.data, data.len);
	json_end_object(&j);
	mcp_note_notify(mc, "notifications/message", &params);
}
