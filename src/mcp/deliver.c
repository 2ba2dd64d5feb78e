/*
 * From a handler's answer to the message that its client gets: composed for its era, and sent as a
 * line, a body, or the last event of a stream.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "call/client.h"
#include "call/http.h"
#include "mcp/inner.h"
#include "mcp/session.h"
#include "mcp/track.h"

static const struct jsonrpc_rules rules = {.flags = JSONRPC_ID_SECOND};

/* What the handler wrote; {NULL, 0} for nothing, which call_reply has made a null. */
static struct text bare(const struct call *c)
{
	struct text t = {.data = c->out.data, .len = c->out.len};

	return t.len > 0 && !text_is(t, "null") ? t : (struct text) {0};
}

/* ---- results ---- */

void mcp_write_server_info(const struct mcp *m, struct json *j)
{
	json_begin_object(j);
	json_member_str(j, "name", m->opts.name);
	if (m->opts.title)
		json_member_str(j, "title", m->opts.title);
	json_member_str(j, "version", m->opts.version);
	json_end_object(j);
}

/* The members of an object that is text already, among those of another. */
static void splice(struct json *j, struct text object)
{
	struct text inner = {.data = object.data + 1, .len = object.len - 2};

	if (object.len < 2 || object.data[0] != '{')
		return;
	while (inner.len > 0 && strchr(" \t\r\n", inner.data[0])) {
		inner.data++;
		inner.len--;
	}
	if (inner.len == 0)
		return;
	if (j->comma)
		buf_add_char(j->out, ',');
	buf_add(j->out, inner.data, inner.len);
	j->comma = true;
}

static void write_items(const struct mcp_call *mc, struct json *j, const char *key)
{
	json_member_array(j, key);
	if (mc->items.len > 0)
		json_raw(j, mc->items.data, mc->items.len);
	json_end_array(j);
}

/* Models read text: without content of its own, a tool's output is shown as text, too. */
static void write_tool(const struct mcp_call *mc, struct json *j)
{
	const struct call *c = mc->call;
	struct text output = !mc->is_error ? bare(c) : (struct text) {0};

	if (output.len > 0 && mc->n_items == 0) {
		json_member_array(j, "content");
		json_begin_object(j);
		json_member_str(j, "type", "text");
		json_member_text(j, "text", output);
		json_end_object(j);
		json_end_array(j);
	} else {
		write_items(mc, j, "content");
	}
	if (output.len > 0 && (output.data[0] == '{' || mc->era == MCP_MODERN))
		json_member_raw(j, "structuredContent", output);
	if (mc->is_error)
		json_member_bool(j, "isError", true);
}

static void write_completion(const struct mcp_call *mc, struct json *j)
{
	json_member_object(j, "completion");
	write_items(mc, j, "values");
	json_member_uint(j, "total", mc->n_items);
	json_member_bool(j, "hasMore", mc->n_items > MCP_COMPLETIONS_MAX);
	json_end_object(j);
}

/* A handler that has written its result as a whole knows what it is. */
static void write_members(struct mcp_call *mc, struct json *j)
{
	const struct call *c = mc->call;

	if (bare(c).data && mc->kind != MCP_TOOL && mc->kind != MCP_INPUT) {
		splice(j, bare(c));
		return;
	}
	switch (mc->kind) {
	case MCP_TOOL:
		write_tool(mc, j);
		break;
	case MCP_CONTENTS:
		write_items(mc, j, "contents");
		break;
	case MCP_MESSAGES:
		if (c->method->doc)
			json_member_str(j, "description", c->method->doc);
		write_items(mc, j, "messages");
		break;
	case MCP_COMPLETION:
		write_completion(mc, j);
		break;
	case MCP_INPUT:
		mcp_write_questions(mc, j);
		break;
	case MCP_PLAIN:
	case MCP_CACHED:
	case MCP_SILENT:
		break;
	}
}

static void write_modern(struct mcp_call *mc, struct json *j)
{
	if (mc->kind == MCP_CACHED || mc->kind == MCP_CONTENTS) {
		json_member_uint(j, "ttlMs", mc->mcp->opts.ttl_ms);
		json_member_str(j, "cacheScope", "private");
	}
	json_member_object(j, "_meta");
	json_key(j, "io.modelcontextprotocol/serverInfo");
	mcp_write_server_info(mc->mcp, j);
	mcp_listen_write_meta(mc, j);
	json_end_object(j);
}

static void write_result(struct mcp_call *mc, struct json *j)
{
	bool modern = mc->era == MCP_MODERN;

	json_begin_object(j);
	if (modern)
		json_member_str(j, "resultType",
				mc->kind == MCP_INPUT ? "input_required" : "complete");
	write_members(mc, j);
	if (modern)
		write_modern(mc, j);
	json_end_object(j);
}

/* ---- errors ---- */

static int64_t error_code(const struct mcp_call *mc)
{
	enum refusal code = mc->call->error.code;

	if (mc->code != 0)
		return mc->code;
	if (code == REFUSE_NOT_FOUND && mc->era == MCP_LEGACY && mc->kind == MCP_CONTENTS)
		return -32002;
	return mcp_errors[code].code;
}

static void write_error(struct mcp_call *mc, struct json *j)
{
	const struct error *error = &mc->call->error;
	const struct error_row *row = &mcp_errors[error->code];

	json_begin_object(j);
	json_member_int(j, "code", error_code(mc));
	if (mc->code != 0 || row->wording == WORDS_TEXT || !error->text[0]) {
		json_member_str(j, "message", error->text[0] ? error->text : row->words);
	} else {
		char message[sizeof(error->text) + 64];

		snprintf(message, sizeof(message), "%s: %s", row->words, error->text);
		json_member_str(j, "message", message);
	}
	if (mc->data.data)
		json_member_raw(j, "data", mc->data);
	json_end_object(j);
}

/* What a model can do something about is a tool's result. */
static bool is_result(const struct mcp_call *mc)
{
	enum refusal code = mc->call->error.code;

	return mc->kind == MCP_TOOL && mc->code == 0 && code != 0 && code != REFUSE_STOPPING;
}

static void refuse_as_result(struct mcp_call *mc)
{
	const struct error *error = &mc->call->error;

	mcp_drop_items(mc);
	mc->is_error = true;
	mcp_text(mc->call, text_of(error->text[0] ? error->text : mcp_errors[error->code].words));
}

static void begin_message(const struct call *c, struct json *j, const char *key)
{
	json_begin_object(j);
	json_member_str(j, "jsonrpc", "2.0");
	json_key(j, "id");
	if (c->request.id.data)
		json_raw(j, c->request.id.data, c->request.id.len);
	else
		json_null(j);
	json_key(j, key);
}

/* Whether the answer is an error; what is a tool's to say becomes its result. */
static bool is_error(struct mcp_call *mc)
{
	if (!mc->call->failed)
		return false;
	if (!is_result(mc))
		return true;
	refuse_as_result(mc);
	return false;
}

static void write_bare(struct mcp_call *mc, struct json *j, bool failed)
{
	const struct call *c = mc->call;

	if (!failed)
		write_result(mc, j);
	else if (c->error.code == 0)
		json_raw(j, c->out.data, c->out.len);
	else
		write_error(mc, j);
}

bool mcp_compose_bare(struct mcp_call *mc, struct json *j)
{
	bool failed = is_error(mc);

	write_bare(mc, j, failed);
	return !failed;
}

/* False: the answer is an error. */
static bool compose(struct mcp_call *mc, struct buf *out)
{
	struct json j = json_writer(out);
	bool failed = is_error(mc);

	begin_message(mc->call, &j, failed ? "error" : "result");
	write_bare(mc, &j, failed);
	json_end_object(&j);
	return !failed;
}

/* A message that cannot be made becomes a refusal, and a model reads it as its tool's result. */
static bool compose_shortage(struct mcp_call *mc, struct buf *out)
{
	struct call *c = mc->call;
	bool done;

	if (out->err == -EMSGSIZE || mc->too_large)
		refuse(&c->error, REFUSE_TOO_LARGE, "the result is larger than %zu bytes",
		       out->max);
	else
		refuse(&c->error, REFUSE_TOO_LARGE, "not enough memory for the response");
	c->failed = true;
	mc->starved = false;
	mc->code = 0;
	mc->data = (struct text) {0};
	buf_clear(out);
	done = compose(mc, out);
	if (out->err != 0 || mc->starved) {
		struct json j = json_writer(out);

		buf_clear(out);
		jsonrpc_write_error(&rules, &j, c->request.id, mcp_errors[REFUSE_TOO_LARGE].code,
				    text_of(c->error.text), (struct text) {0});
	}
	return done;
}

/* ---- sending ---- */

static int http_status(const struct mcp_call *mc, bool failed)
{
	enum refusal code = mc->call->error.code;

	if (!failed)
		return 200;
	if (mc->status != 0)
		return mc->status;
	if (code == 0)
		return 200;
	/* For a legacy client a 404 would mean that its session has ended. */
	if (code == REFUSE_METHOD && mc->era == MCP_LEGACY)
		return 200;
	return mcp_errors[code].http_status ? mcp_errors[code].http_status : 200;
}

static void send_body(struct client *s, struct mcp_call *mc, struct buf *out, bool failed)
{
	char extra[80] = "";

	if (mc->opens_session && !failed)
		snprintf(extra, sizeof(extra), "Mcp-Session-Id: %s\r\n", mc->session->id);
	if (mc->status == 405)
		snprintf(extra, sizeof(extra), "Allow: POST\r\n");
	if (s->server->opts.log_messages)
		client_log(s, "out", out->data, out->len);
	if (extra[0])
		http_send(s, http_status(mc, failed), extra, out->data, out->len);
	else
		answer_send(s, http_status(mc, failed), out);
}

/* Whatever the client has not taken: the last event of a stream is never left out. */
static void send_last_event(struct client *s, struct mcp_call *mc, const struct buf *message)
{
	CLEANUP(buf_donep) struct buf event = {0};

	buf_init(&event, message->len + 256);
	mcp_event_add(&event, (struct text) {0}, buf_bytes(message));
	if (event.err != 0 || s->http_head)
		return;
	if (s->http_old)
		buf_add(conn_out(s->conn), event.data, event.len);
	else
		http_write_chunk(conn_out(s->conn), event.data, event.len);
}

static void send_answer(struct client *s, struct mcp_call *mc, struct buf *out, bool failed)
{
	struct call *c = mc->call;

	if (mc->track)
		(void)track_add(mc->track, buf_bytes(out));
	else if (s && c->streaming)
		send_last_event(s, mc, out);
	else if (s && mc->http)
		send_body(s, mc, out, failed);
	else if (s)
		answer_send(s, 0, out);
}

void mcp_send(struct client *s, struct mcp_call *mc, struct buf *message)
{
	send_answer(s, mc, message, false);
}

static bool is_silent(const struct mcp_call *mc)
{
	const struct call *c = mc->call;

	if (mc->withdrawn)
		return true;
	/* Over HTTP even a notification that is refused gets a body that says why. */
	if (c->failed && mc->http && !c->streaming)
		return false;
	return mc->kind == MCP_SILENT || c->request.silent;
}

static void answer(struct client *s, struct mcp_call *mc)
{
	CLEANUP(buf_donep) struct buf out = {0};
	bool failed;

	if (is_silent(mc)) {
		if (s && mc->http && !mc->call->streaming)
			http_send(s, 202, NULL, "", 0);
		return;
	}
	buf_init(&out, mc->call->out.max);
	failed = !compose(mc, &out);
	if (out.err != 0 || mc->starved)
		failed = !compose_shortage(mc, &out);
	send_answer(s, mc, &out, failed);
}

/* The call ends here; nothing that others hold may point to it any more. */
static void let_go(struct mcp_call *mc)
{
	struct mcp_session *session = mc->session;

	mcp_forget_questions(mc);
	mcp_stream_ended(mc);
	mcp_listen_ended(mc);
	if (mc->track && mc->track->call == mc)
		track_end(mc->track);
	else if (mc->track)
		track_dropped(mc->track, mc);
	if (session && session->stream == mc)
		session->stream = NULL;
	mc->session = NULL;
	session_unref(session);
	buf_done(&mc->items);
}

void mcp_deliver(struct client *s, struct call *c)
{
	struct mcp_call *mc = c->opened;

	bool failed = c->failed;

	if (mc->task)
		mcp_task_ended(mc);
	else
		answer(s, mc);
	/* An error was told by the last event, and the stream is whole. */
	c->failed = failed && mc->kind == MCP_SILENT;
	if (s && c->streaming)
		http_stream_finish(s, c);
	c->failed = failed;
	let_go(mc);
}
