/* What each agent wants to read. */
#include <stdio.h>

#include "cli/approval/hook.h"

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

static bool is(const struct hook_outcome *o, const char *status)
{
	return text_is(o->status, status);
}

/* koined could not be asked, and nothing is wrong with the question: the agent asks by itself. */
static bool is_nobodys(const struct hook_outcome *o)
{
	return is(o, "unavailable") && !o->refused;
}

static void add_why(struct koine_json *j, const char *key, const struct hook_outcome *o)
{
	if (!is(o, "expired")) {
		add_reason(j, key, o);
		return;
	}
	koine_json_key(j, key);
	koine_json_string(j, "nobody answered in time");
}

static void add_word(struct koine_json *j, const char *key, const struct hook_outcome *o,
		     const char *allows, const char *denies, const char *asks)
{
	koine_json_key(j, key);
	koine_json_string(j, is(o, "approved") ? allows : is(o, "denied") ? denies : asks);
}

static bool write_empty(struct koine_json *j)
{
	koine_json_begin_object(j);
	koine_json_end_object(j);
	return true;
}

/* "ask" makes the agent show its own dialog, even where it would have continued without one. */
static bool write_pre_tool(const struct hook_outcome *o, struct koine_json *j)
{
	if (is_nobodys(o))
		return false;
	begin_specific(j, "PreToolUse");
	add_word(j, "permissionDecision", o, "allow", "deny", "ask");
	add_why(j, "permissionDecisionReason", o);
	end_specific(j);
	return true;
}

/* Codex takes "ask", a plain "allow" and a "deny" without a reason for mistakes, and runs the
 * command. */
static bool write_veto(const struct hook_outcome *o, struct koine_json *j)
{
	if (!is(o, "denied"))
		return false;
	begin_specific(j, "PreToolUse");
	koine_json_key(j, "permissionDecision");
	koine_json_string(j, "deny");
	add_reason(j, "permissionDecisionReason", o);
	end_specific(j);
	return true;
}

static bool write_permission(const struct hook_outcome *o, struct koine_json *j)
{
	bool allows = is(o, "approved");

	if (!allows && !is(o, "denied"))
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

/* Gemini has no "ask", and whoever lets koine decide has switched its own dialog off: without a yes
 * it is no. */
static bool write_gemini(const struct hook_outcome *o, struct koine_json *j)
{
	if (is_nobodys(o))
		return write_empty(j);
	koine_json_begin_object(j);
	add_word(j, "decision", o, "allow", "deny", "deny");
	if (!is(o, "approved"))
		add_why(j, "reason", o);
	koine_json_end_object(j);
	return true;
}

static bool write_cursor(const struct hook_outcome *o, struct koine_json *j)
{
	if (is_nobodys(o))
		return write_empty(j);
	koine_json_begin_object(j);
	add_word(j, "permission", o, "allow", "deny", "ask");
	if (!is(o, "approved")) {
		add_why(j, "user_message", o);
		add_why(j, "agent_message", o);
	}
	koine_json_end_object(j);
	return true;
}

static bool write_copilot(const struct hook_outcome *o, struct koine_json *j)
{
	if (is_nobodys(o))
		return write_empty(j);
	koine_json_begin_object(j);
	add_word(j, "permissionDecision", o, "allow", "deny", "ask");
	add_why(j, "permissionDecisionReason", o);
	koine_json_end_object(j);
	return true;
}

bool hook_write_answer(const struct hook *h, const struct hook_outcome *o, struct koine_json *j)
{
	switch (h->form) {
	case HOOK_NONE:
	case N_HOOK_FORMS:
		return false;
	case HOOK_EMPTY:
		return write_empty(j);
	case HOOK_PLAIN:
		write_plain(o, j);
		return true;
	case HOOK_PRE_TOOL:
		return write_pre_tool(o, j);
	case HOOK_VETO:
		return write_veto(o, j);
	case HOOK_PERMISSION:
		return write_permission(o, j);
	case HOOK_GEMINI:
		return write_gemini(o, j);
	case HOOK_CURSOR:
		return write_cursor(o, j);
	case HOOK_COPILOT:
		return write_copilot(o, j);
	}
	return false;
}
