/* The agents that have hooks, and how each is known. */
#include "hook/inner.h"

/* clang-format off */
static const struct hook_vendor vendors[] = {
	{.name = "cursor", .tool = "tool_name", .input = "tool_input", .session = "conversation_id",
	 .without = HOOK_CURSOR, .unread = HOOK_CURSOR, .silent = HOOK_EMPTY, .inner = true,
	 .known_by = "\"conversation_id\"",
	 .events = {{"preToolUse", HOOK_CURSOR},
		    {"beforeMCPExecution", HOOK_CURSOR},
		    {"beforeShellExecution", HOOK_CURSOR, "Shell", {"command", "cwd"}},
		    {"beforeReadFile", HOOK_CURSOR, "Read", {"file_path"}}}},
	{.name = "copilot", .tool = "toolName", .input = "toolArgs", .session = "sessionId",
	 .without = HOOK_COPILOT, .unread = HOOK_COPILOT, .silent = HOOK_EMPTY, .inner = true,
	 .known_by = "\"toolName\"", .own = "koine-", .has_no_mode = true,
	 .events = {{"preToolUse", HOOK_COPILOT}}},
	{.name = "gemini", .tool = "tool_name", .input = "tool_input", .session = "session_id",
	 .without = HOOK_GEMINI, .unread = HOOK_GEMINI, .silent = HOOK_EMPTY,
	 .known_by = "\"BeforeTool\"",
	 .events = {{"BeforeTool", HOOK_GEMINI}}},
	{.name = "codex", .tool = "tool_name", .input = "tool_input", .session = "session_id",
	 .without = HOOK_PERMISSION, .unread = HOOK_VETO, .silent = HOOK_NONE,
	 .known_by = "\"turn_id\"", .own = "mcp__koine__",
	 .events = {{"PreToolUse", HOOK_VETO}, {"PermissionRequest", HOOK_PERMISSION}}},
	{.name = "claude", .tool = "tool_name", .input = "tool_input", .session = "session_id",
	 .without = HOOK_PRE_TOOL, .unread = HOOK_PRE_TOOL, .silent = HOOK_NONE,
	 .known_by = "\"PreToolUse\"", .own = "mcp__koine__",
	 .events = {{"PreToolUse", HOOK_PRE_TOOL}, {"PermissionRequest", HOOK_PERMISSION},
		    {"Elicitation", HOOK_ELICITATION}},
	 .told = {{"SessionStart", "started", NULL, true},
		  {"UserPromptSubmit", "asked", "prompt", true},
		  {"PostToolUse", "tool", NULL, false},
		  {"PostToolUseFailure", "tool", NULL, false},
		  {"Stop", "stopped", "last_assistant_message", false},
		  {"SessionEnd", "ended", "reason", false}}},
};
/* clang-format on */
enum { N_VENDORS = sizeof(vendors) / sizeof(vendors[0]) };

const struct hook_vendor *hook_vendor_named(struct text name)
{
	for (size_t i = 0; i < N_VENDORS; i++) {
		if (text_is(name, vendors[i].name))
			return &vendors[i];
	}
	return NULL;
}

/* Gemini's events come before and after things; Claude has no such names. */
static bool is_geminis(struct text event)
{
	return (event.len > 6 && memcmp(event.data, "Before", 6) == 0) ||
	       (event.len > 5 && memcmp(event.data, "After", 5) == 0);
}

static bool has_text(const struct value *in, const char *key)
{
	return value_text(value_find(in, key)).data;
}

const struct hook_vendor *hook_vendor_of(const struct value *in)
{
	struct text event = value_text(value_find(in, "hook_event_name"));

	if (has_text(in, "conversation_id"))
		return hook_vendor_named(TEXT("cursor"));
	if (has_text(in, "toolName"))
		return hook_vendor_named(TEXT("copilot"));
	if (!event.data)
		return NULL;
	if (is_geminis(event))
		return hook_vendor_named(TEXT("gemini"));
	return hook_vendor_named(has_text(in, "turn_id") ? TEXT("codex") : TEXT("claude"));
}

static const char *find_mark(struct text text, const struct hook_vendor *v)
{
	return text.len > 0 ? memmem(text.data, text.len, v->known_by, strlen(v->known_by)) : NULL;
}

/* The first mark is the envelope's own: a later one may be in what the agent writes into its call,
 * to be answered in words that it ignores. Codex shares Claude's mark, and runs a command that it is
 * told to ask about, so its own mark counts wherever it is then. */
static const struct hook_vendor *vendor_of_text(struct text text)
{
	const struct hook_vendor *codex = hook_vendor_named(TEXT("codex"));
	const struct hook_vendor *found = NULL;
	const char *first = NULL;

	for (size_t i = 0; i < N_VENDORS; i++) {
		const char *at = find_mark(text, &vendors[i]);

		if (at && (!first || at < first)) {
			first = at;
			found = &vendors[i];
		}
	}
	return found == hook_vendor_named(TEXT("claude")) && find_mark(text, codex) ? codex : found;
}

enum hook_form hook_guess(struct text text, struct text format)
{
	const struct hook_vendor *named = hook_vendor_named(format);

	if (text_is(format, "plain"))
		return HOOK_PLAIN;
	if (!named)
		named = vendor_of_text(text);
	return named ? named->unread : HOOK_NONE;
}
