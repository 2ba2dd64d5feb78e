#include "cli/approval/hook.h"

#include <stdio.h>
#include <string.h>

#include "cli/kit/value.h"

/* How many bytes koined accepts for names that decide nothing. */
enum { ID_MAX = 256, FOLDER_MAX = 4096 };

/* ---- in ---- */

static const struct {
	const char *name;
	enum hook_form form;
} events[] = {
	{"PreToolUse", HOOK_PRE_TOOL},
	{"PermissionRequest", HOOK_PERMISSION},
};

/* Without an event name it is this agent's event for permissions. */
static int find_form(struct hook *h, const char *format, char *error, size_t size)
{
	struct text event = member_string(koine_doc_root(h->doc), "hook_event_name");
	bool named = strcmp(format, "claude") == 0 || h->is_codex;

	if (strcmp(format, "plain") == 0 || (!event.data && !named)) {
		h->form = HOOK_PLAIN;
		return 0;
	}
	if (!event.data) {
		h->form = h->is_codex ? HOOK_PERMISSION : HOOK_PRE_TOOL;
		return 0;
	}
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (text_is(event, events[i].name)) {
			h->form = events[i].form;
			return 0;
		}
	}
	snprintf(error, size, "there is nothing to decide about this event");
	return KOINE_METHOD;
}

/* Only Codex numbers its turns. */
static bool is_codex(const struct koine_value *in, const char *format)
{
	if (strcmp(format, "auto") == 0)
		return member_string(in, "hook_event_name").data &&
		       member_string(in, "turn_id").data;
	return strcmp(format, "codex") == 0;
}

static const char *agent_of(const struct hook *h, const char *given)
{
	if (given)
		return given;
	if (h->is_codex)
		return "codex";
	return h->form == HOOK_PLAIN ? NULL : "claude";
}

/* What cannot be read may be what the agent wants to do, and printing nothing would let it. An
 * agent that expects another form ignores this one. */
static enum hook_form guess_form(const char *text, size_t len, const char *format)
{
	struct text event = TEXT("\"PreToolUse\"");

	if (strcmp(format, "plain") == 0)
		return HOOK_PLAIN;
	if (strcmp(format, "claude") == 0)
		return HOOK_PRE_TOOL;
	if (strcmp(format, "auto") == 0 && memmem(text, len, event.data, event.len))
		return HOOK_PRE_TOOL;
	return HOOK_NONE;
}

/* If a key occurs twice, nobody knows which one the agent means. */
static bool is_twice(const struct koine_value *in, const char *key)
{
	const struct koine_value *m = koine_value_first(in);
	unsigned n = 0;

	for (; m; m = koine_value_next(m))
		n += text_is(text_of_key(m), key);
	return n > 1;
}

int hook_read(struct hook *h, const char *text, size_t len, const char *format, const char *agent,
	      char *error, size_t error_size)
{
	const struct koine_value *in;
	int r;

	*h = (struct hook) {0};
	r = koine_doc_parse(text, len, &h->doc, error, error_size);
	if (r < 0)
		snprintf(error, error_size, "out of memory");
	if (r != 0) {
		h->form = guess_form(text, len, format);
		return r;
	}
	in = koine_doc_root(h->doc);
	h->is_codex = is_codex(in, format);
	h->tool = member_string(in, "tool_name");
	r = find_form(h, format, error, error_size);
	h->agent = agent_of(h, agent);
	if (r == 0 && (is_twice(in, "tool_name") || is_twice(in, "tool_input"))) {
		snprintf(error, error_size, "it names its tool, or what that is for, twice");
		r = KOINE_PARAMS;
	} else if (r == 0 && h->tool.len == 0) {
		snprintf(error, error_size, "it has no tool_name");
		if (h->form == HOOK_PLAIN)
			h->form = guess_form(text, len, format);
		r = KOINE_PARAMS;
	}
	return r;
}

void hook_done(struct hook *h)
{
	koine_doc_free(h->doc);
	h->doc = NULL;
}

/* ---- what is asked ---- */

static void add_text(struct koine_json *j, const char *key, struct text t)
{
	if (t.len == 0)
		return;
	koine_json_key(j, key);
	koine_json_text_n(j, t.data, t.len);
}

/* The input must be an object; anything else becomes the one member of one. */
static void add_input(struct koine_json *j, const struct koine_value *input)
{
	if (koine_value_kind(input) == KOINE_NULL)
		return;
	koine_json_key(j, "input");
	if (koine_value_kind(input) == KOINE_OBJECT) {
		koine_json_value(j, input);
		return;
	}
	koine_json_begin_object(j);
	koine_json_key(j, "input");
	koine_json_value(j, input);
	koine_json_end_object(j);
}

static bool is_given(const char *text)
{
	return text && text[0];
}

/* The agent's own name for its session is used only where there is nothing better. */
static void add_run(const struct hook *h, const struct hook_run *run, struct koine_json *j)
{
	const struct koine_value *in = koine_doc_root(h->doc);
	struct text own = text_cut(member_string(in, "session_id"), ID_MAX);
	struct text folder = text_cut(member_string(in, "cwd"), FOLDER_MAX);
	bool ours = is_given(run->session);

	add_text(j, "session_id", ours ? text_of(run->session) : own);
	if (is_given(run->id))
		add_text(j, "run_id", text_of(run->id));
	if (folder.len > 0)
		add_text(j, "origin", folder);
	else if (ours)
		add_text(j, "origin", own);
}

void hook_write_request(const struct hook *h, const struct hook_run *run, const char *id,
			int64_t timeout_ms, struct koine_json *j)
{
	const struct koine_value *in = koine_doc_root(h->doc);

	koine_json_begin_object(j);
	koine_json_key(j, "id");
	koine_json_string(j, id);
	/* Only in the plain form may it be a question rather than a request for permission. */
	if (h->form == HOOK_PLAIN)
		add_text(j, "kind", member_string(in, "kind"));
	add_text(j, "tool", h->tool);
	add_input(j, koine_value_get(in, "tool_input"));
	add_run(h, run, j);
	if (h->agent)
		add_text(j, "agent", text_of(h->agent));
	add_text(j, "tool_use_id", text_cut(member_string(in, "tool_use_id"), ID_MAX));
	if (timeout_ms > 0) {
		koine_json_key(j, "timeout");
		koine_json_double(j, (double)timeout_ms / 1000);
	}
	koine_json_end_object(j);
}

/* ---- what is answered ---- */

/* The human's own words, or else who it was. */
static void add_reason(struct koine_json *j, const char *key, const struct hook_outcome *o)
{
	char who[256];
	int n;

	koine_json_key(j, key);
	if (o->comment.len > 0) {
		koine_json_text_n(j, o->comment.data, o->comment.len);
		return;
	}
	n = snprintf(who, sizeof(who), "%.*s", TEXT_ARGS(o->status));
	if (o->decided_by.len > 0 && o->decided_by.len < sizeof(who) - (size_t)n - 4)
		n += snprintf(who + n, sizeof(who) - (size_t)n, " by %.*s",
			      TEXT_ARGS(o->decided_by));
	koine_json_text_n(j, who, (size_t)n);
}

static void write_plain(const struct hook_outcome *o, struct koine_json *j)
{
	koine_json_begin_object(j);
	koine_json_key(j, "decision");
	koine_json_text_n(j, o->status.data, o->status.len);
	koine_json_key(j, "comment");
	koine_json_text_n(j, o->comment.len > 0 ? o->comment.data : "", o->comment.len);
	koine_json_key(j, "approval_id");
	if (o->id)
		koine_json_string(j, o->id);
	else
		koine_json_null(j);
	koine_json_end_object(j);
}

static void begin_specific(struct koine_json *j, const char *event)
{
	koine_json_begin_object(j);
	koine_json_key(j, "hookSpecificOutput");
	koine_json_begin_object(j);
	koine_json_key(j, "hookEventName");
	koine_json_string(j, event);
}

static void end_specific(struct koine_json *j)
{
	koine_json_end_object(j);
	koine_json_end_object(j);
}

/* "ask" makes the agent show its own dialog, even where it would have continued without one.
 * Codex does not know "ask". */
static bool write_pre_tool(const struct hook *h, const struct hook_outcome *o, struct koine_json *j)
{
	bool allows = text_is(o->status, "approved");
	bool denies = text_is(o->status, "denied");

	if (text_is(o->status, "unavailable") && !o->refused)
		return false;
	if (h->is_codex && !allows && !denies)
		return false;
	begin_specific(j, "PreToolUse");
	koine_json_key(j, "permissionDecision");
	koine_json_string(j, allows ? "allow" : denies ? "deny" : "ask");
	if (text_is(o->status, "expired")) {
		koine_json_key(j, "permissionDecisionReason");
		koine_json_string(j, "nobody answered in time");
	} else {
		add_reason(j, "permissionDecisionReason", o);
	}
	end_specific(j);
	return true;
}

static bool write_permission(const struct hook_outcome *o, struct koine_json *j)
{
	bool allows = text_is(o->status, "approved");

	if (!allows && !text_is(o->status, "denied"))
		return false;
	begin_specific(j, "PermissionRequest");
	koine_json_key(j, "decision");
	koine_json_begin_object(j);
	koine_json_key(j, "behavior");
	koine_json_string(j, allows ? "allow" : "deny");
	if (!allows)
		add_reason(j, "message", o);
	koine_json_end_object(j);
	end_specific(j);
	return true;
}

bool hook_write_answer(const struct hook *h, const struct hook_outcome *o, struct koine_json *j)
{
	switch (h->form) {
	case HOOK_NONE:
		return false;
	case HOOK_PLAIN:
		write_plain(o, j);
		return true;
	case HOOK_PRE_TOOL:
		return write_pre_tool(h, o, j);
	case HOOK_PERMISSION:
		return write_permission(o, j);
	}
	return false;
}
