/* What each agent wants to read. */
#include <errno.h>
#include <stdio.h>

#include "hook/inner.h"

struct writer {
	struct maker m;
	const struct hook *h;
	const struct hook_outcome *o;
	const struct value *said; /* NULL: nothing */
};

static bool is(const struct writer *w, const char *status)
{
	return text_is(w->o->status, status);
}

/* koined could not be asked, and nothing is wrong with the question: the agent asks by itself. */
static bool is_nobodys(const struct writer *w)
{
	return is(w, "unavailable") && !w->o->refused;
}

/* The human's own words, or else who it was. */
static void add_reason(struct writer *w, struct value *into, const char *key)
{
	const struct hook_outcome *o = w->o;
	struct text reason = o->comment;
	char who[256];
	int n;

	if (reason.len == 0) {
		n = snprintf(who, sizeof(who), "%.*s", TEXT_ARGS(o->status));
		if (o->decided_by.len > 0 && o->decided_by.len < sizeof(who) - (size_t)n - 4)
			snprintf(who + n, sizeof(who) - (size_t)n, " by %.*s",
				 TEXT_ARGS(o->decided_by));
		if (arena_copy_text(w->m.arena, text_of(who), &reason) != 0)
			w->m.err = -ENOMEM;
	}
	make_text(&w->m, into, key, reason);
}

static void add_why(struct writer *w, struct value *into, const char *key)
{
	if (is(w, "expired"))
		make_word(&w->m, into, key, "no answer in time");
	else
		add_reason(w, into, key);
}

static void add_word(struct writer *w, struct value *into, const char *key, const char *allows,
		     const char *denies, const char *asks)
{
	make_word(&w->m, into, key, is(w, "approved") ? allows : is(w, "denied") ? denies : asks);
}

static struct value *begin(struct writer *w)
{
	struct value *object = make_object(&w->m, NULL, NULL);

	w->said = object;
	return object;
}

struct value *hook_make_specific(struct maker *m, const char *event, const struct value **ret)
{
	struct value *whole = make_object(m, NULL, NULL);
	struct value *specific = make_object(m, whole, "hookSpecificOutput");

	make_word(m, specific, "hookEventName", event);
	*ret = whole;
	return specific;
}

/* ---- a form each ---- */

static void write_plain(struct writer *w)
{
	struct value *object = begin(w);

	make_text(&w->m, object, "decision", w->o->status);
	make_text(&w->m, object, "comment", w->o->comment);
	if (w->o->id.data)
		make_text(&w->m, object, "approval_id", w->o->id);
	else
		make_null(&w->m, object, "approval_id");
}

/* "ask" makes the agent show its own dialog, even where it would have continued without one. */
static void write_pre_tool(struct writer *w)
{
	struct value *specific;

	if (is_nobodys(w))
		return;
	specific = hook_make_specific(&w->m, "PreToolUse", &w->said);
	add_word(w, specific, "permissionDecision", "allow", "deny", "ask");
	add_why(w, specific, "permissionDecisionReason");
}

/* Codex takes "ask", a plain "allow" and a "deny" without a reason for mistakes, and runs the
 * command. So a question that koine refuses, such as one that is too large, is denied. */
static void write_veto(struct writer *w)
{
	struct value *specific;

	if (!is(w, "denied") && !w->o->refused)
		return;
	specific = hook_make_specific(&w->m, "PreToolUse", &w->said);
	make_word(&w->m, specific, "permissionDecision", "deny");
	add_reason(w, specific, "permissionDecisionReason");
}

static void write_permission(struct writer *w)
{
	bool allows = is(w, "approved");
	struct value *decision;

	if (!allows && !is(w, "denied"))
		return;
	decision = make_object(&w->m, hook_make_specific(&w->m, "PermissionRequest", &w->said),
			       "decision");
	make_word(&w->m, decision, "behavior", allows ? "allow" : "deny");
	if (!allows)
		add_reason(w, decision, "message");
}

/* Gemini has no "ask", and whoever lets koine decide has switched its own dialog off: without a yes
 * it is no. */
static void write_gemini(struct writer *w)
{
	struct value *object = begin(w);

	if (is_nobodys(w))
		return;
	add_word(w, object, "decision", "allow", "deny", "deny");
	if (!is(w, "approved"))
		add_why(w, object, "reason");
}

static void write_cursor(struct writer *w)
{
	struct value *object = begin(w);

	if (is_nobodys(w))
		return;
	add_word(w, object, "permission", "allow", "deny", "ask");
	if (is(w, "approved"))
		return;
	add_why(w, object, "user_message");
	add_why(w, object, "agent_message");
}

static void write_copilot(struct writer *w)
{
	struct value *object = begin(w);

	if (is_nobodys(w))
		return;
	add_word(w, object, "permissionDecision", "allow", "deny", "ask");
	add_why(w, object, "permissionDecisionReason");
}

static void write_elicitation(struct writer *w)
{
	const struct value *said;

	if (is(w, "responded") && hook_answer_elicitation(&w->m, w->h, w->o->comment, &said))
		w->said = said;
}

static void write_nothing(struct writer *w)
{
	(void)w;
}

static void write_empty(struct writer *w)
{
	(void)begin(w);
}

int hook_answer(struct arena *a, const struct hook *h, const struct hook_outcome *o,
		const struct value **ret)
{
	static void (*const writers[N_HOOK_FORMS])(struct writer * w) = {
		[HOOK_NONE] = write_nothing,    [HOOK_EMPTY] = write_empty,
		[HOOK_PLAIN] = write_plain,     [HOOK_PRE_TOOL] = write_pre_tool,
		[HOOK_VETO] = write_veto,       [HOOK_PERMISSION] = write_permission,
		[HOOK_GEMINI] = write_gemini,   [HOOK_CURSOR] = write_cursor,
		[HOOK_COPILOT] = write_copilot, [HOOK_ELICITATION] = write_elicitation,
	};
	struct writer w = {.m = {.arena = a}, .h = h, .o = o};

	writers[h->form](&w);
	if (w.m.err == 0)
		*ret = w.said;
	return w.m.err;
}

/* ---- what is remembered ---- */

/* Agents read it as what they know, so it says where it comes from. */
static const char head[] = "Remembered by koine, from earlier work of agents and people:\n";

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

int hook_context_answer(struct arena *a, const struct hook_told *told, const struct buf *context,
			const struct value **ret)
{
	struct maker m = {.arena = a};
	struct text kept;
	int r = context->err;

	*ret = NULL;
	if (r != 0 || context->len < sizeof(head))
		return r;
	r = arena_copy_text(a, (struct text) {context->data, context->len}, &kept);
	if (r != 0)
		return r;
	make_text(&m, hook_make_specific(&m, told->event, ret), "additionalContext", kept);
	return m.err;
}
