#include "cli/approval/hook.h"

#include <stdio.h>
#include <string.h>

#include "cli/kit/value.h"

/* How many bytes koined accepts for names that decide nothing. */
enum { ID_MAX = 256, FOLDER_MAX = 4096 };

/* ---- vendors ---- */

struct hook_event {
	const char *name;
	enum hook_form form;
	const char *tool;       /* of an event that is about one tool only; else NULL */
	const char *members[3]; /* what that is for */
};

/* What an agent's hooks look like. */
struct hook_vendor {
	const char *name; /* as --format and approvals have it */
	const char *tool; /* the member that names the tool */
	const char *input;
	const char *session;
	enum hook_form without; /* the form of an event without a name */
	enum hook_form unread;  /* of what cannot be read: whether the agent can be told to ask */
	enum hook_form silent;  /* of an event that nobody decides about */
	/* Bytes by which it is known; what nobody else writes. */
	const char *known_by;
	struct hook_event events[5];
	struct hook_told told[6];
};

/* The first that is known counts, so the one that shares another's events comes before it. */
/* clang-format off */
static const struct hook_vendor vendors[] = {
	{.name = "cursor", .tool = "tool_name", .input = "tool_input", .session = "conversation_id",
	 .without = HOOK_CURSOR, .unread = HOOK_CURSOR, .silent = HOOK_EMPTY,
	 .known_by = "\"conversation_id\"",
	 .events = {{"preToolUse", HOOK_CURSOR},
		    {"beforeMCPExecution", HOOK_CURSOR},
		    {"beforeShellExecution", HOOK_CURSOR, "Shell", {"command", "cwd"}},
		    {"beforeReadFile", HOOK_CURSOR, "Read", {"file_path"}}}},
	{.name = "copilot", .tool = "toolName", .input = "toolArgs", .session = "sessionId",
	 .without = HOOK_COPILOT, .unread = HOOK_COPILOT, .silent = HOOK_EMPTY,
	 .known_by = "\"toolName\"",
	 .events = {{"preToolUse", HOOK_COPILOT}}},
	{.name = "gemini", .tool = "tool_name", .input = "tool_input", .session = "session_id",
	 .without = HOOK_GEMINI, .unread = HOOK_GEMINI, .silent = HOOK_EMPTY,
	 .known_by = "\"BeforeTool\"",
	 .events = {{"BeforeTool", HOOK_GEMINI}}},
	{.name = "codex", .tool = "tool_name", .input = "tool_input", .session = "session_id",
	 .without = HOOK_PERMISSION, .unread = HOOK_NONE, .silent = HOOK_NONE,
	 .known_by = "\"turn_id\"",
	 .events = {{"PreToolUse", HOOK_VETO}, {"PermissionRequest", HOOK_PERMISSION}}},
	{.name = "claude", .tool = "tool_name", .input = "tool_input", .session = "session_id",
	 .without = HOOK_PRE_TOOL, .unread = HOOK_PRE_TOOL, .silent = HOOK_NONE,
	 .known_by = "\"PreToolUse\"",
	 .events = {{"PreToolUse", HOOK_PRE_TOOL}, {"PermissionRequest", HOOK_PERMISSION}},
	 .told = {{"SessionStart", "started", NULL, true},
		  {"UserPromptSubmit", "asked", "prompt", true},
		  {"PostToolUse", "tool", NULL, false},
		  {"Stop", "stopped", "last_assistant_message", false},
		  {"SessionEnd", "ended", "reason", false}}},
};
/* clang-format on */
enum { N_VENDORS = sizeof(vendors) / sizeof(vendors[0]) };

static const struct hook_vendor *vendor_named(const char *name)
{
	for (size_t i = 0; i < N_VENDORS; i++) {
		if (strcmp(vendors[i].name, name) == 0)
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

/* NULL: the plain form. */
static const struct hook_vendor *vendor_of(const struct koine_value *in, const char *format)
{
	struct text event = member_string(in, "hook_event_name");

	if (strcmp(format, "auto") != 0)
		return vendor_named(format);
	if (member_string(in, "conversation_id").data)
		return vendor_named("cursor");
	if (member_string(in, "toolName").data)
		return vendor_named("copilot");
	if (!event.data)
		return NULL;
	if (is_geminis(event))
		return vendor_named("gemini");
	return vendor_named(member_string(in, "turn_id").data ? "codex" : "claude");
}

/* ---- in ---- */

/* What cannot be read may be what the agent wants to do, and printing nothing would let it. An
 * agent that expects another form ignores this one. */
static enum hook_form guess_form(const char *text, size_t len, const char *format)
{
	const struct hook_vendor *named = vendor_named(format);

	if (strcmp(format, "plain") == 0)
		return HOOK_PLAIN;
	if (named)
		return named->unread;
	for (size_t i = 0; i < N_VENDORS; i++) {
		if (memmem(text, len, vendors[i].known_by, strlen(vendors[i].known_by)))
			return vendors[i].unread;
	}
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

static int refuse_hook(char *error, size_t size, int code, const char *why)
{
	snprintf(error, size, "%s", why);
	return code;
}

static int find_event(struct hook *h, const struct hook_event **ret, char *error, size_t size)
{
	struct text name = member_string(koine_doc_root(h->doc), "hook_event_name");

	*ret = NULL;
	h->form = h->vendor->without;
	if (!name.data)
		return 0;
	for (const struct hook_event *e = h->vendor->events; e->name; e++) {
		if (text_is(name, e->name)) {
			h->form = e->form;
			*ret = e;
			return 0;
		}
	}
	for (const struct hook_told *t = h->vendor->told; t->event; t++) {
		if (text_is(name, t->event))
			h->told = t;
	}
	h->form = h->vendor->silent;
	return refuse_hook(error, size, KOINE_METHOD,
			   "there is nothing to decide about this event");
}

/* Some agents put their JSON into a string. What is no object there stays the string. */
static void find_input(struct hook *h, const char *member)
{
	const struct koine_value *in = koine_value_get(koine_doc_root(h->doc), member);
	struct text text = {0};

	h->input = in;
	if (h->form != HOOK_CURSOR && h->form != HOOK_COPILOT)
		return;
	if (koine_value_kind(in) == KOINE_STRING)
		text.data = koine_value_text(in, &text.len);
	if (text.data && koine_doc_parse(text.data, text.len, &h->inner, NULL, 0) == 0 &&
	    koine_value_kind(koine_doc_root(h->inner)) == KOINE_OBJECT)
		h->input = koine_doc_root(h->inner);
}

static int refuse_twice(char *error, size_t size)
{
	return refuse_hook(error, size, KOINE_PARAMS,
			   "it names its tool, or what that is for, twice");
}

/* An event that stands for its tool. */
static int read_one_tool(struct hook *h, const struct hook_event *event, char *error, size_t size)
{
	h->tool = text_of(event->tool);
	h->members = event->members;
	for (const char *const *m = h->members; *m; m++) {
		if (is_twice(koine_doc_root(h->doc), *m))
			return refuse_twice(error, size);
	}
	return 0;
}

static int read_vendors(struct hook *h, char *error, size_t size)
{
	const struct hook_vendor *v = h->vendor;
	const struct koine_value *in = koine_doc_root(h->doc);
	const struct hook_event *event;
	int r = find_event(h, &event, error, size);

	if (r != 0)
		return r;
	if (event && event->tool)
		return read_one_tool(h, event, error, size);
	h->tool = member_string(in, v->tool);
	if (is_twice(in, v->tool) || is_twice(in, v->input))
		return refuse_twice(error, size);
	if (h->tool.len == 0)
		return refuse_hook(error, size, KOINE_PARAMS, "it has no tool's name");
	find_input(h, v->input);
	return 0;
}

static int read_plain(struct hook *h, const char *text, size_t len, const char *format, char *error,
		      size_t size)
{
	const struct koine_value *in = koine_doc_root(h->doc);

	h->form = HOOK_PLAIN;
	h->tool = member_string(in, "tool_name");
	h->input = koine_value_get(in, "tool_input");
	if (is_twice(in, "tool_name") || is_twice(in, "tool_input"))
		return refuse_twice(error, size);
	if (h->tool.len > 0)
		return 0;
	h->form = guess_form(text, len, format);
	return refuse_hook(error, size, KOINE_PARAMS, "it has no tool_name");
}

int hook_read(struct hook *h, const char *text, size_t len, const char *format, const char *agent,
	      char *error, size_t error_size)
{
	int r;

	*h = (struct hook) {0};
	r = koine_doc_parse(text, len, &h->doc, error, error_size);
	if (r < 0)
		snprintf(error, error_size, "out of memory");
	if (r != 0) {
		h->form = guess_form(text, len, format);
		return r;
	}
	h->vendor = vendor_of(koine_doc_root(h->doc), format);
	h->agent = agent ? agent : h->vendor ? h->vendor->name : NULL;
	return h->vendor ? read_vendors(h, error, error_size)
			 : read_plain(h, text, len, format, error, error_size);
}

void hook_done(struct hook *h)
{
	koine_doc_free(h->inner);
	koine_doc_free(h->doc);
	h->inner = NULL;
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

static void add_members(struct koine_json *j, const struct hook *h)
{
	const struct koine_value *in = koine_doc_root(h->doc);

	koine_json_key(j, "input");
	koine_json_begin_object(j);
	for (const char *const *m = h->members; *m; m++) {
		if (!koine_value_get(in, *m))
			continue;
		koine_json_key(j, *m);
		koine_json_value(j, koine_value_get(in, *m));
	}
	koine_json_end_object(j);
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

/* Cursor has several folders, the first of which is the one that was opened. */
static struct text folder_of(const struct koine_value *in)
{
	const struct koine_value *first = koine_value_first(koine_value_get(in, "workspace_roots"));
	struct text folder = member_string(in, "cwd");

	if (!folder.data && koine_value_kind(first) == KOINE_STRING)
		folder.data = koine_value_text(first, &folder.len);
	return folder;
}

/* The agent's own name for its session is used only where there is nothing better. */
static void add_run(const struct hook *h, const struct hook_run *run, struct koine_json *j)
{
	const struct koine_value *in = koine_doc_root(h->doc);
	const char *session = h->vendor ? h->vendor->session : "session_id";
	struct text own = text_cut(member_string(in, session), ID_MAX);
	struct text folder = text_cut(folder_of(in), FOLDER_MAX);
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
	if (h->members)
		add_members(j, h);
	else
		add_input(j, h->input);
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
