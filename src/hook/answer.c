/* What each agent wants to read. */
#include <stdio.h>

#include "hook/inner.h"

struct hook_answer_writer {
	struct json j;
	const struct hook *h;
	const struct hook_outcome *o;
};

static bool is(const struct hook_answer_writer *w, const char *status)
{
	return text_is(w->o->status, status);
}

/* koined could not be asked, and nothing is wrong with the question: the agent asks by itself. */
static bool is_nobodys(const struct hook_answer_writer *w)
{
	return is(w, "unavailable") && !w->o->refused;
}

/* The human's own words, or else who it was. */
static void add_reason(struct hook_answer_writer *w, const char *key)
{
	const struct hook_outcome *o = w->o;
	char who[256];
	int n;

	if (o->comment.len > 0) {
		json_member_text(&w->j, key, o->comment);
		return;
	}
	n = snprintf(who, sizeof(who), "%.*s", TEXT_ARGS(o->status));
	if (o->decided_by.len > 0 && o->decided_by.len < sizeof(who) - (size_t)n - 4)
		snprintf(who + n, sizeof(who) - (size_t)n, " by %.*s", TEXT_ARGS(o->decided_by));
	json_member_str(&w->j, key, who);
}

static void add_reasons(struct hook_answer_writer *w, const char *key)
{
	if (is(w, "expired"))
		json_member_str(&w->j, key, "timed out waiting for an answer");
	else
		add_reason(w, key);
}

void hook_begin_specific(struct json *j, const char *event)
{
	json_begin_object(j);
	json_key(j, "hookSpecificOutput");
	json_begin_object(j);
	json_member_str(j, "hookEventName", event);
}

void hook_end_specific(struct json *j)
{
	json_end_object(j);
	json_end_object(j);
}

/* ---- a form each ---- */

static void write_empty(struct hook_answer_writer *w)
{
	json_begin_object(&w->j);
	json_end_object(&w->j);
}

static void write_plain(struct hook_answer_writer *w)
{
	const struct hook_outcome *o = w->o;

	json_begin_object(&w->j);
	json_member_text(&w->j, "decision", o->status);
	json_member_text(&w->j, "comment", o->comment.data ? o->comment : TEXT(""));
	json_member_text(&w->j, "approval_id", o->id);
	json_end_object(&w->j);
}

/* Codex takes "ask", a plain "allow" and a "deny" without a reason for mistakes, and runs the
 * command. So a question that koine refuses, such as one that is too large, is denied. */
static void write_veto(struct hook_answer_writer *w)
{
	if (!is(w, "denied") && !w->o->refused)
		return;
	hook_begin_specific(&w->j, "PreToolUse");
	json_member_str(&w->j, "permissionDecision", "deny");
	add_reason(w, "permissionDecisionReason");
	hook_end_specific(&w->j);
}

static void write_permission(struct hook_answer_writer *w)
{
	bool allows = is(w, "approved");

	if (!allows && !is(w, "denied"))
		return;
	hook_begin_specific(&w->j, "PermissionRequest");
	json_key(&w->j, "decision");
	json_begin_object(&w->j);
	json_member_str(&w->j, "behavior", allows ? "allow" : "deny");
	if (!allows)
		add_reason(w, "message");
	json_end_object(&w->j);
	hook_end_specific(&w->j);
}

/* How a form that always decides words it. */
static const struct wording {
	bool specific; /* within hookSpecificOutput; without a decision nothing is said, not even {} */
	bool reasons; /* an approval has reasons, too */
	const char *key;
	const char *asks; /* neither approved nor denied */
	const char *reason[2];
} wordings[N_HOOK_FORMS] = {
	/* "ask" makes the agent show its own dialog, even where it would have continued without one. */
	[HOOK_PRE_TOOL] = {true, true, "permissionDecision", "ask", {"permissionDecisionReason"}},
	/* Gemini has no "ask", and whoever lets koine decide has switched its own dialog off: without
	 * a yes it is no. */
	[HOOK_GEMINI] = {false, false, "decision", "deny", {"reason"}},
	[HOOK_CURSOR] = {false, false, "permission", "ask", {"user_message", "agent_message"}},
	[HOOK_COPILOT] = {false, true, "permissionDecision", "ask", {"permissionDecisionReason"}},
};

static void write_decision(struct hook_answer_writer *w)
{
	const struct wording *words = &wordings[w->h->form];
	bool allows = is(w, "approved");

	if (is_nobodys(w)) {
		if (!words->specific)
			write_empty(w);
		return;
	}
	if (words->specific)
		hook_begin_specific(&w->j, "PreToolUse");
	else
		json_begin_object(&w->j);
	json_member_str(&w->j, words->key,
			allows            ? "allow"
			: is(w, "denied") ? "deny"
					  : words->asks);
	for (unsigned i = 0; (words->reasons || !allows) && i < 2 && words->reason[i]; i++)
		add_reasons(w, words->reason[i]);
	json_end_object(&w->j);
	if (words->specific)
		json_end_object(&w->j);
}

static void write_elicitation(struct hook_answer_writer *w)
{
	if (is(w, "responded"))
		hook_answer_elicitation(w->h, w->o->comment, w->j.out);
}

static void write_nothing(struct hook_answer_writer *w)
{
}

void hook_answer(const struct hook *h, const struct hook_outcome *o, struct buf *out)
{
	static void (*const writers[N_HOOK_FORMS])(struct hook_answer_writer * w) = {
		[HOOK_NONE] = write_nothing,     [HOOK_EMPTY] = write_empty,
		[HOOK_PLAIN] = write_plain,      [HOOK_PRE_TOOL] = write_decision,
		[HOOK_VETO] = write_veto,        [HOOK_PERMISSION] = write_permission,
		[HOOK_GEMINI] = write_decision,  [HOOK_CURSOR] = write_decision,
		[HOOK_COPILOT] = write_decision, [HOOK_ELICITATION] = write_elicitation,
	};
	struct hook_answer_writer w = {.j = json_writer(out), .h = h, .o = o};

	writers[h->form](&w);
}

/* ---- what is remembered ---- */

/* Agents read it as what they know, so it says where it comes from. */
static const char head[] = "Memories from koine, stored by agents and people in earlier work:\n";

void hook_context_begin(struct buf *out)
{
	buf_init(out, 2 * HOOK_CONTEXT_MAX);
	buf_add_str(out, head);
}

enum { DAY_LEN = 10, ID_SHOWN = 8 }; /* of 2026-11-15T07:47:17Z, and of a UUID */

static struct text first_bytes(struct text t, size_t n)
{
	return (struct text) {.data = t.data, .len = t.len < n ? t.len : n};
}

/* With the day, since what is old may not be true any more, and with as much of the id as the tools
 * that change a memory need. */
void hook_context_add(struct buf *out, const struct hook_memory *m)
{
	struct text content = text_cut(m->content, HOOK_MEMORY_SHOWN);

	if (content.len == 0 || out->len + content.len + DAY_LEN + ID_SHOWN + 8 > HOOK_CONTEXT_MAX)
		return;
	buf_printf(out, "- %.*s [%.*s] ", TEXT_ARGS(first_bytes(m->created, DAY_LEN)),
		   TEXT_ARGS(first_bytes(m->id, ID_SHOWN)));
	for (size_t i = 0; i < content.len; i++)
		buf_add_char(out, content.data[i] == '\n' ? ' ' : content.data[i]);
	buf_add_char(out, '\n');
}

void hook_context_answer(const struct hook_told *told, const struct buf *context, struct buf *out)
{
	struct json j = json_writer(out);

	if (context->err != 0 || context->len < sizeof(head))
		return;
	hook_begin_specific(&j, told->event);
	json_member_text(&j, "additionalContext", (struct text) {context->data, context->len});
	hook_end_specific(&j);
}
