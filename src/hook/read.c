#include "hook/inner.h"

static struct text hook_read_text_in(const struct value *in, const char *key)
{
	return value_text(value_find(in, key));
}

bool hook_is_twice(const struct value *in, const char *key)
{
	unsigned n = 0;

	value_each (m, in)
		n += text_is((struct text) {.data = m->key, .len = m->key_len}, key);
	return n > 1;
}

static int refuse_twice(struct error *error)
{
	return refuse(error, REFUSE_PARAMS,
		      "duplicate JSON member for the event name, the tool name or the tool input");
}

static const struct value *object_in(const struct value *tree, const char *key)
{
	const struct value *v = value_find(tree, key);

	return v && v->kind == VALUE_OBJECT ? v : NULL;
}

/* ---- what it is about ---- */

static int find_event(const struct hook_source *from, struct hook *h, const struct hook_event **ret,
		      struct error *error)
{
	struct text name = hook_read_text_in(from->tree, "hook_event_name");

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
		if (!text_is(name, t->event))
			continue;
		h->told = t;
		h->tool = text_cut(hook_read_text_in(from->tree, h->vendor->tool), HOOK_ID_MAX);
		h->input = object_in(from->tree, h->vendor->input);
		if (t->text)
			h->said = hook_read_text_in(from->tree, t->text);
	}
	h->form = h->vendor->silent;
	return refuse(error, REFUSE_METHOD, "this event requires no decision");
}

/* ---- what the tool is given ---- */

/* The input must be an object; anything else becomes the one member of one. */
static int wrap(struct arena *a, const struct value *input, struct hook *h)
{
	struct object_builder b;

	if (!input || input->kind == VALUE_NULL)
		return 0;
	if (input->kind == VALUE_OBJECT) {
		h->input = input;
		return 0;
	}
	object_begin(&b, a);
	object_value(&b, "input", input);
	h->input = b.root;
	return b.err;
}

/* Some agents put their JSON into a string. What is no object there stays the string. */
static int find_input(struct arena *a, const struct hook_source *from, struct hook *h,
		      const char *member)
{
	const struct value *input = value_find(from->tree, member);
	struct text inner = h->vendor && h->vendor->inner ? value_text(input) : (struct text) {0};
	struct value *parsed = NULL;
	struct error error;
	int r = 0;

	if (inner.data)
		r = json_read(a, inner.data, inner.len, &json_default_limits, &parsed, &error);
	if (r < 0)
		return r;
	return wrap(a, parsed && parsed->kind == VALUE_OBJECT ? parsed : input, h);
}

/* An event that stands for its tool. */
static int read_one_tool(struct arena *a, const struct hook_source *from,
			 const struct hook_event *event, struct hook *h, struct error *error)
{
	struct object_builder b;

	object_begin(&b, a);
	h->tool = text_of(event->tool);
	h->input = b.root;
	for (const char *const *key = event->members; *key; key++) {
		const struct value *v = value_find(from->tree, *key);

		if (hook_is_twice(from->tree, *key))
			return refuse_twice(error);
		if (v)
			object_value(&b, *key, v);
	}
	return b.err;
}

/* Whether the agent asks its user, or looks at its settings, if no hook says anything. A name alone
 * lets nothing pass: in any other mode of the agent the question is one like all others. */
static bool asks_by_itself(const struct hook *h, const struct value *in)
{
	static const char *const modes[] = {"default", "acceptEdits", "plan"};
	struct text mode = hook_read_text_in(in, "permission_mode");

	if (h->form == HOOK_PERMISSION || h->vendor->has_no_mode)
		return true;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (text_is(mode, modes[i]) && !hook_is_twice(in, "permission_mode"))
			return true;
	}
	return false;
}

/* Behind the server's name is that of a tool of ours: "koine-x-run" is a tool of the server koine-x. */
static bool is_koines(const struct hook *h)
{
	struct text own = text_of(h->vendor->own), name;

	if (!own.data || h->tool.len <= own.len || !text_begins(h->tool, own))
		return false;
	name = text_skip(h->tool, own.len);
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] != '_' && (name.data[i] < 'a' || name.data[i] > 'z'))
			return false;
	}
	return !memmem(name.data, name.len, "__", 2);
}

static int read_vendors(struct arena *a, const struct hook_source *from, struct hook *h,
			struct error *error)
{
	const struct hook_vendor *v = h->vendor;
	const struct hook_event *event;
	int r;

	/* The agent may mean an event that needs a decision, even if the last one needs none. */
	if (hook_is_twice(from->tree, "hook_event_name")) {
		h->form = v->unread;
		return refuse_twice(error);
	}
	r = find_event(from, h, &event, error);
	if (r != 0)
		return r;
	if (h->form == HOOK_ELICITATION) {
		r = hook_read_elicitation(a, from->tree, h, error);
		if (r != 0)
			h->form = v->silent;
		return r;
	}
	if (event && event->tool)
		return read_one_tool(a, from, event, h, error);
	h->tool = hook_read_text_in(from->tree, v->tool);
	if (hook_is_twice(from->tree, v->tool) || hook_is_twice(from->tree, v->input))
		return refuse_twice(error);
	if (h->tool.len == 0)
		return refuse(error, REFUSE_PARAMS, "missing tool name");
	h->by_rules = is_koines(h) && asks_by_itself(h, from->tree);
	return find_input(a, from, h, v->input);
}

static int read_plain(struct arena *a, const struct hook_source *from, struct hook *h,
		      struct error *error)
{
	h->form = HOOK_PLAIN;
	h->tool = hook_read_text_in(from->tree, "tool_name");
	/* Only here may it be a question rather than a request for permission. */
	h->kind = hook_read_text_in(from->tree, "kind");
	if (hook_is_twice(from->tree, "tool_name") || hook_is_twice(from->tree, "tool_input"))
		return refuse_twice(error);
	if (h->tool.len > 0)
		return find_input(a, from, h, "tool_input");
	h->form = hook_guess(from->text, from->format);
	return refuse(error, REFUSE_PARAMS, "missing tool_name");
}

/* ---- where it comes from ---- */

/* Cursor has several folders, the first of which is the one that was opened. */
static struct text folder_of(const struct value *in)
{
	const struct value *roots = value_find(in, "workspace_roots");
	struct text folder = hook_read_text_in(in, "cwd");

	if (!folder.data && roots && roots->kind == VALUE_ARRAY)
		folder = value_text(roots->first);
	return folder;
}

static void read_names(const struct value *in, struct hook *h)
{
	const char *session = h->vendor ? h->vendor->session : "session_id";

	h->session = text_cut(hook_read_text_in(in, session), HOOK_ID_MAX);
	h->folder = text_cut(folder_of(in), HOOK_FOLDER_MAX);
	h->tool_use_id = text_cut(hook_read_text_in(in, "tool_use_id"), HOOK_ID_MAX);
}

/* An event whose name is no text is none that we know, and not the plain form, which has none. */
static bool has_odd_event(const struct value *in)
{
	const struct value *event = value_find(in, "hook_event_name");

	return event && event->kind != VALUE_STRING;
}

static int read_odd(const struct hook_source *from, struct hook *h, struct error *error)
{
	h->form = hook_guess(from->text, from->format);
	if (!from->tree)
		return REFUSE_PARSE;
	return refuse(error, REFUSE_PARAMS, "%s",
		      from->tree->kind != VALUE_OBJECT ? "the hook input is not an object"
						       : "hook_event_name must be a string");
}

void hook_read_unreceived(struct text agent, struct hook *ret)
{
	const struct hook_vendor *v = hook_vendor_named(agent) ?: hook_vendor_named(TEXT("claude"));

	*ret = (struct hook) {.agent = text_of(v->name), .vendor = v, .form = v->unread};
}

int hook_read(struct arena *a, const struct hook_source *from, struct hook *ret,
	      struct error *error)
{
	bool is_auto = from->format.len == 0 || text_is(from->format, "auto");

	*ret = (struct hook) {.agent = from->agent};
	if (!from->tree || from->tree->kind != VALUE_OBJECT || has_odd_event(from->tree))
		return read_odd(from, ret, error);
	ret->vendor = is_auto ? hook_vendor_of(from->tree) : hook_vendor_named(from->format);
	if (!is_auto && !ret->vendor && !text_is(from->format, "plain"))
		return refuse_field(error, "format",
				    "unknown format '%.*s': use auto, plain, claude, codex, "
				    "gemini, cursor or copilot",
				    TEXT_ARGS(text_cut(from->format, 40)));
	if (!ret->agent.data && ret->vendor)
		ret->agent = text_of(ret->vendor->name);
	read_names(from->tree, ret);
	return ret->vendor ? read_vendors(a, from, ret, error) : read_plain(a, from, ret, error);
}

/* The agent's own name for its session is used only where there is nothing better. */
struct hook_place hook_place(const struct hook *h, const struct hook_run *run)
{
	bool ours = run->session.len > 0;

	return (struct hook_place) {
		.session = ours ? run->session : h->session,
		.run = run->id,
		.origin = h->folder.len > 0 ? h->folder
			  : ours            ? h->session
					    : (struct text) {0},
	};
}
