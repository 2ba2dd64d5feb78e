/* The hooks of agents: what they say, and what each reads. ../../vectors/hooks.json has what agents send. */
#include "check.h"

#include "hook/hook.h"
#include "wire/json.h"

enum { ARENA = 4 << 20, OUT = 1 << 20 };

struct world {
	struct arena arena;
	struct hook hook;
	struct error error;
};

static const struct value *parse(struct arena *a, struct text t)
{
	struct value *v = NULL;
	struct error error;

	if (json_read(a, t.data, t.len, &json_default_limits, &v, &error) != 0)
		fail_msg("%s in %.*s", error.text, TEXT_ARGS(t));
	return v;
}

static int hook_of(struct world *w, struct text text, struct text format, struct text agent)
{
	struct hook_source from = {.text = text, .format = format, .agent = agent};
	struct value *tree = NULL;

	w->error = (struct error) {0};
	(void)json_read(&w->arena, text.data, text.len, &json_default_limits, &tree, &w->error);
	from.tree = tree;
	return hook_read(&w->arena, &from, &w->hook, &w->error);
}

static int setup(void **state)
{
	static struct world w;

	arena_init(&w.arena, ARENA);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	arena_done(&((struct world *)*state)->arena);
	return 0;
}

GROUP_FIXTURE(setup, teardown);

/* ---- vectors ---- */

static bool same_value(const struct value *a, const struct value *b)
{
	const struct value *x;
	const struct value *y;

	if (a->kind != b->kind || a->len != b->len)
		return false;
	if (a->kind == VALUE_STRING || a->kind == VALUE_NUMBER)
		return memcmp(a->text, b->text, a->len) == 0;
	if (a->kind != VALUE_ARRAY && a->kind != VALUE_OBJECT)
		return true;
	for (x = a->first, y = b->first; x; x = x->next, y = y->next) {
		if (x->key_len != y->key_len ||
		    (x->key && memcmp(x->key, y->key, x->key_len) != 0) || !same_value(x, y))
			return false;
	}
	return true;
}

static const struct value *read_vectors(struct arena *a)
{
	char *text = arena_alloc(a, 64 << 10);
	FILE *f = fopen(getenv("KOINE_HOOK_VECTORS"), "rb");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, 64 << 10, f);
	fclose(f);
	assert_true(n < 64 << 10);
	return parse(a, (struct text) {.data = text, .len = n});
}

static struct text member(const struct value *v, const char *key)
{
	return value_text(value_find(v, key));
}

/* A member that the request lacks is empty. */
static void expect_text(const struct value *request, const char *key, struct text got,
			struct text name)
{
	if (!text_equal(member(request, key), got))
		fail_msg("%.*s: %s is '%.*s'", TEXT_ARGS(name), key, TEXT_ARGS(got));
}

/* koined gets the time limit and the id from `koine hook`. */
static void check_request(const struct hook *h, const struct value *row, struct text name)
{
	const struct hook_run run = {.session = member(row, "session"), .id = member(row, "run")};
	const struct value *want = value_find(row, "request");
	const struct value *by_rules = value_find(want, "by_rules");
	const struct value *input = value_find(want, "input");
	const struct hook_place place = hook_place(h, &run);

	expect_text(want, "kind", h->kind, name);
	expect_text(want, "tool", h->tool, name);
	expect_text(want, "agent", h->agent, name);
	expect_text(want, "tool_use_id", h->tool_use_id, name);
	expect_text(want, "session_id", place.session, name);
	expect_text(want, "run_id", place.run, name);
	expect_text(want, "origin", place.origin, name);
	assert_int_equal(h->by_rules, by_rules && by_rules->kind == VALUE_TRUE);
	if (!input != !h->input || (input && !same_value(input, h->input)))
		fail_msg("%.*s: its input", TEXT_ARGS(name));
}

static void check_answer(struct world *w, const struct value *pair, struct text name)
{
	const struct value *end = pair->first;
	const struct value *want = end->next;
	const struct value *refused = value_find(end, "refused");
	const struct hook_outcome o = {
		.status = member(end, "status"),
		.comment = member(end, "comment"),
		.decided_by = member(end, "decided_by"),
		.id = TEXT("ID"),
		.refused = refused && refused->kind == VALUE_TRUE,
	};
	struct buf out;

	buf_init(&out, OUT);
	hook_answer(&w->hook, &o, &out);
	assert_int_equal(out.err, 0);
	if (out.len == 0 && want->kind != VALUE_NULL)
		fail_msg("%.*s: nothing for %.*s", TEXT_ARGS(name), TEXT_ARGS(o.status));
	if (out.len > 0 &&
	    !same_value(want, parse(&w->arena, (struct text) {.data = out.data, .len = out.len})))
		fail_msg("%.*s: %.*s", TEXT_ARGS(name), (int)out.len, out.data);
	buf_done(&out);
}

static void check_row(struct world *w, const struct value *row)
{
	const struct value *in = value_find(row, "stdin");
	const struct value *refused = value_find(row, "refused");
	const struct value *answers = value_find(row, "answers");
	struct text name = member(row, "name");
	int r = hook_of(w, (struct text) {.data = in->raw, .len = in->raw_len},
			member(row, "format"), member(row, "agent"));

	if (refused && refused->kind == VALUE_TRUE) {
		if (r <= 0 || !w->error.text[0])
			fail_msg("%.*s: taken", TEXT_ARGS(name));
	} else if (r != 0) {
		fail_msg("%.*s: %s", TEXT_ARGS(name), w->error.text);
	} else {
		check_request(&w->hook, row, name);
	}
	if (!answers)
		return;
	value_each (pair, answers)
		check_answer(w, pair, name);
}

TEST(hooks_are_as_their_agents_have_them)
{
	struct world *w = *state;
	const struct value *rows = read_vectors(&w->arena);

	value_each (row, rows)
		check_row(w, row);
	assert_true(rows->len > 8);
}

/* ---- odd input ---- */

static int read_str(struct world *w, const char *text, const char *format)
{
	return hook_of(w, text_of(text), text_of(format), (struct text) {0});
}

/* A human would be shown the one, and the agent do the other. */
TEST(a_hook_that_says_something_twice_is_none)
{
	static const char *const texts[] = {
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Read\",\"tool_name\":"
		"\"Bash\"}",
		"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{},"
		"\"tool_input\":{}}",
		/* The second one needs no decision. */
		"{\"hook_event_name\":\"PreToolUse\",\"hook_event_name\":\"Stop\",\"tool_name\":"
		"\"Bash\"}",
		"{\"hook_event_name\":\"PreToolUse\",\"hook_event_name\":\"Notification\","
		"\"tool_name\":\"Bash\"}",
	};
	static const char command[] = "{\"conversation_id\":\"c\",\"hook_event_name\":"
				      "\"beforeShellExecution\",\"command\":\"ls\","
				      "\"command\":\"rm\"}";
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_str(w, texts[i], "auto"), REFUSE_PARAMS);
		assert_non_null(strstr(w->error.text, "duplicate"));
		assert_int_equal(w->hook.form, HOOK_PRE_TOOL);
	}
	assert_int_equal(read_str(w, command, "auto"), REFUSE_PARAMS);
	assert_int_equal(w->hook.form, HOOK_CURSOR);
}

TEST(what_is_no_json_is_no_hook)
{
	static const char *const texts[] = {"", "{", "yes", "{\"tool_name\":\"a\"}}", "\xff"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct world *w = *state;

		assert_int_equal(read_str(w, texts[i], "auto"), REFUSE_PARSE);
		assert_true(w->error.text[0] != '\0');
	}
}

static enum hook_form form_of(struct world *w, const char *text, const char *format)
{
	assert_true(read_str(w, text, format) > 0);
	return w->hook.form;
}

TEST(of_what_cannot_be_read_the_form_is_guessed)
{
	struct world *w = *state;
	static const char cut[] = "{\"hook_event_name\" : \"PreToolUse\",\"tool_input\":{\"a\":\"";

	assert_int_equal(form_of(w, cut, "auto"), HOOK_PRE_TOOL);
	assert_int_equal(form_of(w, cut, "claude"), HOOK_PRE_TOOL);
	/* It has no "ask", so it denies. */
	assert_int_equal(form_of(w, cut, "codex"), HOOK_VETO);
	assert_int_equal(form_of(w, cut, "plain"), HOOK_PLAIN);
	assert_int_equal(form_of(w, "{\"hook_event_name\":\"PreToolUse\"}", "auto"), HOOK_PRE_TOOL);
	assert_int_equal(form_of(w, "{\"hook_event_name\":\"PermissionRequest\"", "auto"),
			 HOOK_NONE);
	assert_int_equal(form_of(w, "{\"hook_event_name\":\"Stop\",\"a\":\"PreToolUse\"}", "auto"),
			 HOOK_NONE);
	assert_int_equal(form_of(w, "{}", "auto"), HOOK_NONE);
	assert_int_equal(form_of(w, "{\"hook_event_name\":\"BeforeTool\",\"tool_name\":\"", "auto"),
			 HOOK_GEMINI);
	assert_int_equal(form_of(w, "{\"conversation_id\":\"c\",\"tool_name\":\"", "auto"),
			 HOOK_CURSOR);
	assert_int_equal(form_of(w, "{\"toolName\":\"", "auto"), HOOK_COPILOT);
	assert_int_equal(
		form_of(w, "{\"turn_id\":\"t\",\"hook_event_name\":\"PreToolUse\"", "auto"),
		HOOK_VETO);
	/* What the agent writes into its call does not make it another's. */
	assert_int_equal(
		form_of(w,
			"{\"turn_id\":\"t\",\"hook_event_name\":\"PreToolUse\","
			"\"tool_input\":{\"description\":\"conversation_id\",\"command\":\"",
			"auto"),
		HOOK_VETO);
	assert_int_equal(form_of(w,
				 "{\"hook_event_name\":\"PreToolUse\",\"tool_input\":{"
				 "\"toolName\":\"conversation_id\",\"command\":\"",
				 "auto"),
			 HOOK_PRE_TOOL);
	/* Codex runs the command if it is told to ask, so it is assumed wherever it may be. */
	assert_int_equal(form_of(w,
				 "{\"hook_event_name\":\"PreToolUse\",\"turn_id\":\"t\",\"x\":\"",
				 "auto"),
			 HOOK_VETO);
	/* Whoever says whose it is need not be guessed about. */
	assert_int_equal(form_of(w, "", "claude"), HOOK_PRE_TOOL);
	assert_int_equal(form_of(w, "{\"tool_name\":5,\"tool_input\":{}}", "claude"),
			 HOOK_PRE_TOOL);
	assert_int_equal(form_of(w, "{\"tool_name\":\"Bash\",\"tool_input\":{\"a\":\"", "claude"),
			 HOOK_PRE_TOOL);
}

TEST(unknown_format_is_refused)
{
	struct world *w = *state;

	assert_int_equal(read_str(w, "{\"tool_name\":\"T\"}", "yaml"), REFUSE_PARAMS);
	assert_string_equal(
		w->error.text,
		"unknown format 'yaml': use auto, plain, claude, codex, gemini, cursor or copilot");
	assert_int_equal(read_str(w, "{\"tool_name\":\"T\"}", ""), 0);
	assert_int_equal(w->hook.form, HOOK_PLAIN);
}

TEST(long_names_are_cut_between_characters)
{
	struct world *w = *state;
	char text[4096];
	char id[600] = "";

	for (int i = 0; i < 130; i++)
		strcat(id, i < 127 ? "ab" : "\xe2\x82\xac");
	snprintf(text, sizeof(text),
		 "{\"tool_name\":\"T\",\"session_id\":\"%s\",\"tool_use_id\":\"%s\"}", id, id);
	assert_int_equal(read_str(w, text, "claude"), 0);
	assert_int_equal(w->hook.session.len, 254);
	assert_int_equal(w->hook.tool_use_id.len, 254);
}

/* Whatever was lost, an agent that would run the tool without an answer gets one. */
TEST(what_was_not_received_is_denied_or_asked_about)
{
	static const struct {
		const char *agent;
		const char *said;
	} rows[] = {
		{"claude", "\"permissionDecision\":\"ask\""},
		{"codex", "\"permissionDecision\":\"deny\""},
		{"gemini", "\"decision\":\"deny\""},
		{"cursor", "\"permission\":\"ask\""},
		{"copilot", "\"permissionDecision\":\"ask\""},
		{"another", "\"permissionDecision\":\"ask\""},
	};
	const struct hook_outcome o = {
		.status = TEXT("unavailable"), .comment = TEXT("too large"), .refused = true};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook h;
		struct buf out;

		hook_read_unreceived(text_of(rows[i].agent), &h);
		buf_init(&out, OUT);
		hook_answer(&h, &o, &out);
		buf_add_char(&out, '\0');
		assert_non_null(strstr(out.data, rows[i].said));
		assert_non_null(strstr(out.data, "too large"));
		buf_done(&out);
	}
}
