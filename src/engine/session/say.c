/*
 * Turns what an agent says into events of its session. The query comes first, once the agent
 * has told its own id: everything that follows belongs to that id.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/session/inner.h"

enum {
	ROW_BYTES = 200, /* the approximate size of a row without its texts */
	NAME_BYTES = 256,
};

/* A session may say only so much in its life. Once it was told to end, nothing makes it wait any
 * more; from then on its output is limited to what the store can nearly keep up with. */
static bool is_too_much(const struct live_session *l)
{
	return l->kept_bytes > l->sessions->opts.keep_bytes ||
	       (l->attempt.intent != INTENT_NONE && l->unwritten > 4UL * SESSION_UNWRITTEN_MAX);
}

/* Stop keeping what it says, and say so in its conversation. */
static void end_keeping(struct live_session *l)
{
	struct session_event last = {
		.session = l->row.id,
		.agent_session = l->row.agent_session,
		.type = SESSION_RAW,
		.created_ms = clock_utc_ms(),
		.content = TEXT("koine: output limit reached; later output is not stored")};

	l->full = true;
	log_warn("session output limit reached", "session=%s bytes=%lld", l->id,
		 (long long)l->kept_bytes);
	session_write_event(l, &last, NULL);
}

void session_say(struct live_session *l, const struct session_event *from,
		 const struct value *tool_input)
{
	struct session_event row = *from;
	int r;

	if (l->full)
		return;
	row.session = l->row.id;
	row.agent_session = l->row.agent_session;
	row.created_ms = clock_utc_ms();
	/* These are put into events uncut, and an event has a size limit. */
	row.role = text_cut(row.role, NAME_BYTES);
	row.tool_id = text_cut(row.tool_id, NAME_BYTES);
	row.parent_tool = text_cut(row.parent_tool, NAME_BYTES);
	row.tool_name = text_cut(row.tool_name, NAME_BYTES);
	l->kept_bytes += (int64_t)(row.content.len + ROW_BYTES);
	if (tool_input)
		l->kept_bytes += tool_input->raw_len;
	if (is_too_much(l)) {
		end_keeping(l);
		return;
	}
	r = session_write_event(l, &row, tool_input);
	if (r != 0)
		log_err("could not store event", "session=%s error=%s", l->id, fault_words(r));
}

void session_say_query(struct live_session *l)
{
	const struct session_event row = {
		.type = SESSION_MESSAGE, .role = TEXT("user"), .content = l->row.query};

	if (l->begun)
		return;
	l->begun = true;
	session_say(l, &row, NULL);
}

/* The first id that it reports is its own; a resumed session may get another one. */
static void learn_id(struct live_session *l, struct text id)
{
	if (l->row.agent_session.data || !id.data || id.len == 0 ||
	    id.len >= sizeof(l->agent_session))
		return;
	memcpy(l->agent_session, id.data, id.len);
	l->agent_session[id.len] = '\0';
	l->row.agent_session = (struct text) {.data = l->agent_session, .len = id.len};
	session_say_query(l);
}

static void set_text(struct buf *b, size_t max, struct text t, struct text *at)
{
	t = text_cut(t, max);
	buf_clear(b);
	buf_add(b, t.data, t.len);
	*at = b->err == 0 && t.data ? (struct text) {.data = b->data ? b->data : "", .len = b->len}
				    : (struct text) {0};
}

static void learn_result(struct live_session *l, const struct said *said)
{
	struct session *row = &l->row;

	l->has_result = true;
	l->is_error = said->is_error;
	set_text(&l->result, SESSION_RESULT_MAX, said->text, &row->result);
	/* The last result counts. */
	row->error = (struct text) {0};
	if (said->is_error)
		set_text(&l->error, SESSION_RESULT_MAX,
			 said->error.len > 0 ? said->error : said->text, &row->error);
	row->cost_usd = said->cost_usd;
	row->duration_ms = said->duration_ms;
	row->turns = said->turns;
	row->input_tokens = said->input_tokens;
	row->output_tokens = said->output_tokens;
	session_write(l);
}

static void say_block(struct live_session *l, const struct said *said)
{
	static const enum session_event_type types[] = {
		[SAID_TEXT] = SESSION_MESSAGE,
		[SAID_THINKING] = SESSION_THINKING,
		[SAID_TOOL_CALL] = SESSION_TOOL_CALL,
		[SAID_TOOL_RESULT] = SESSION_TOOL_RESULT,
		[SAID_SYSTEM] = SESSION_SYSTEM,
		[SAID_RESULT] = SESSION_RAW,
		[SAID_RAW] = SESSION_RAW,
	};
	struct session_event row = {.type = types[said->kind], .parent_tool = said->parent_tool};
	bool calls = said->kind == SAID_TOOL_CALL;

	if (row.type != SESSION_RAW)
		row.role = said->role;
	if (!calls)
		row.content = said->text;
	if (calls || said->kind == SAID_TOOL_RESULT)
		row.tool_id = said->tool_id;
	if (calls)
		row.tool_name = said->tool_name;
	session_say(l, &row, calls ? said->tool_input : NULL);
}

int session_said(void *live, const struct said *said)
{
	struct live_session *l = live;

	learn_id(l, said->session);
	if (said->kind == SAID_RESULT) {
		learn_result(l, said);
		return 0;
	}
	/* A start line says nothing but the id. */
	if (said->kind == SAID_SYSTEM && text_is(said->subtype, "init"))
		return 0;
	/* Noise may come before the first proper line. */
	if (said->kind != SAID_RAW)
		session_say_query(l);
	if (said->kind == SAID_SYSTEM && !text_is(said->subtype, "session_created")) {
		struct said raw = *said;

		raw.kind = SAID_RAW;
		say_block(l, &raw);
		return 0;
	}
	say_block(l, said);
	return 0;
}
