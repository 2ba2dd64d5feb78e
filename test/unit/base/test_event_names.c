/* The names of an event's data: what is stored, and what is shown of it. */
#include "check.h"

#include "base/cleanup.h"
#include "model/event.h"
#include "wire/json.h"

/* Each is stored in the second form; earlier versions stored the third, which rules see. */
static const struct {
	const char *type;
	const char *stored;
	const char *shown;
	const char *client; /* what clients see; NULL: the same as rules */
} cases[] = {
	{"task.queued", "{\"task_id\":\"task-0001\",\"prompt\":\"go\",\"queue_size\":3}",
	 "{\"taskId\":\"task-0001\",\"prompt\":\"go\",\"queueSize\":3}",
	 "{\"task_id\":\"task-0001\",\"prompt\":\"go\",\"queue_size\":3}"},
	{"task.started", "{\"task_id\":\"task-0001\",\"pid\":7,\"attempt\":1}",
	 "{\"taskId\":\"task-0001\",\"pid\":7,\"attempt\":1}",
	 "{\"task_id\":\"task-0001\",\"pid\":7,\"attempt\":1}"},
	{"task.failed",
	 "{\"task_id\":\"task-0001\",\"error\":\"no\",\"exit_status\":3,\"signal\":9,"
	 "\"duration_ms\":12}",
	 "{\"taskId\":\"task-0001\",\"error\":\"no\",\"exitCode\":3,\"signal\":9,"
	 "\"duration\":12}",
	 "{\"task_id\":\"task-0001\",\"error\":\"no\",\"exit_status\":3,\"signal\":9,"
	 "\"duration\":12}"},
	{"rule.executed",
	 "{\"rule_id\":\"r\",\"event_type\":\"cron.fired\",\"status\":\"submitted\","
	 "\"task_id\":\"task-0001\",\"message\":\"m\",\"error\":\"e\"}",
	 "{\"ruleId\":\"r\",\"eventType\":\"cron.fired\",\"status\":\"submitted\","
	 "\"taskId\":\"task-0001\",\"message\":\"m\",\"error\":\"e\"}",
	 "{\"rule_id\":\"r\",\"event_type\":\"cron.fired\",\"status\":\"submitted\","
	 "\"task_id\":\"task-0001\",\"message\":\"m\",\"error\":\"e\"}"},
	{"session.status",
	 "{\"session_id\":\"s\",\"run_id\":\"r\",\"old_status\":\"starting\","
	 "\"new_status\":\"running\"}",
	 "{\"session_id\":\"s\",\"run_id\":\"r\",\"old_status\":\"starting\","
	 "\"new_status\":\"running\"}"},
	{"session.event",
	 "{\"session_id\":\"s\",\"run_id\":\"r\",\"agent_session_id\":null,\"id\":1,"
	 "\"sequence\":1,\"event_type\":\"tool_call\",\"tool_input\":{\"task_id\":[1,{\"id\":"
	 "null}]},\"truncated\":true}",
	 "{\"session_id\":\"s\",\"run_id\":\"r\",\"claude_session_id\":\"\",\"id\":1,"
	 "\"sequence\":1,\"event_type\":\"tool_call\",\"tool_input\":{\"task_id\":[1,{\"id\":"
	 "null}]},\"truncated\":true}"},
	{"approval.requested",
	 "{\"id\":\"a\",\"session_id\":null,\"run_id\":\"r\",\"kind\":\"function_call\","
	 "\"tool\":\"Bash\",\"input\":{\"id\":1,\"kind\":{}},\"count\":1,\"total\":2}",
	 "{\"approval_id\":\"a\",\"call_id\":\"a\",\"session_id\":\"\",\"run_id\":\"r\","
	 "\"type\":\"function_call\",\"tool_name\":\"Bash\",\"tool_input\":{\"id\":1,\"kind\":{}},"
	 "\"count\":1,\"total\":2}"},
	{"approval.resolved",
	 "{\"id\":\"a\",\"session_id\":\"s\",\"run_id\":null,\"kind\":\"function_call\","
	 "\"tool\":null,\"status\":\"approved\",\"approved\":true,\"comment\":null,"
	 "\"decided_by\":null,\"decided_from\":{\"uid\":0}}",
	 "{\"approval_id\":\"a\",\"call_id\":\"a\",\"session_id\":\"s\",\"run_id\":\"\","
	 "\"type\":\"function_call\",\"tool_name\":\"\",\"status\":\"approved\","
	 "\"decision\":\"approved\",\"approved\":true,\"response_text\":\"\","
	 "\"decided_by\":\"\",\"decided_from\":{\"uid\":0}}"},
	{"approval.resolved",
	 "{\"id\":\"a\",\"status\":\"superseded\",\"approved\":false,\"comment\":\"\","
	 "\"decided_by\":\"human\",\"resolved_externally\":true}",
	 "{\"approval_id\":\"a\",\"call_id\":\"a\",\"status\":\"superseded\","
	 "\"decision\":\"superseded\",\"approved\":false,\"response_text\":\"\",\"comment\":\"\","
	 "\"decided_by\":\"human\",\"resolved_externally\":true}"},
	{"approval.resolved", "{\"id\":\"a\",\"status\":\"denied\",\"reason\":\"why not\"}",
	 "{\"approval_id\":\"a\",\"call_id\":\"a\",\"status\":\"denied\",\"decision\":\"denied\","
	 "\"response_text\":\"why not\",\"reason\":\"why not\"}"},
	{"approval.resolved", "{\"id\":\"a\",\"status\":\"responded\",\"response\":\"blue\"}",
	 "{\"approval_id\":\"a\",\"call_id\":\"a\",\"status\":\"responded\","
	 "\"decision\":\"responded\",\"response_text\":\"blue\",\"response\":\"blue\"}"},
	/* Those of other sources have one form. */
	{"memory.added", "{\"id\":\"m\",\"user\":\"ann\",\"category\":null}",
	 "{\"id\":\"m\",\"user\":\"ann\",\"category\":null}"},
	{"chat.turn.ended", "{\"conversation\":\"c\",\"tokens\":{\"input\":1}}",
	 "{\"conversation\":\"c\",\"tokens\":{\"input\":1}}"},
	{"pulse.added", "{\"task_id\":1,\"id\":2}", "{\"task_id\":1,\"id\":2}"},
	{"task.released", "{}", "{}"},
	{"", "{\"id\":1}", "{\"id\":1}"},
};

static struct text pack(struct arena *a, struct buf *out, const char *json)
{
	const struct json_limits limits = {.depth = 16, .values = 100};
	struct value *v = NULL;
	struct error error;

	assert_int_equal(json_read(a, json, strlen(json), &limits, &v, &error), 0);
	value_pack(out, v);
	return (struct text) {.data = out->data, .len = out->len};
}

static void walk(struct json *j, const struct event *e)
{
	json_packed_as(j, e->data, event_names(e));
}

static void unpack(struct arena *a, struct json *j, const struct event *e)
{
	struct value *v = NULL;

	assert_int_equal(event_unpack(a, e, &v), 0);
	json_value(j, v);
}

static void assert_shown(const char *type, const char *stored, const char *shown, bool as_tree)
{
	CLEANUP(buf_donep) struct buf packed;
	CLEANUP(buf_donep) struct buf out;
	struct json j = json_writer(&out);
	struct event e = {.type = text_of(type)};
	struct arena a;

	arena_init(&a, 1 << 20);
	buf_init(&packed, 4096);
	buf_init(&out, 4096);
	e.data = pack(&a, &packed, stored);
	if (as_tree)
		unpack(&a, &j, &e);
	else
		walk(&j, &e);
	buf_add(&out, "", 1);
	assert_string_equal(out.data, shown);
	arena_done(&a);
}

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

TEST(stored_names_are_shown_as_clients_know_them)
{
	for (unsigned i = 0; i < N_CASES; i++)
		assert_shown(cases[i].type, cases[i].stored,
			     cases[i].client ? cases[i].client : cases[i].shown, false);
}

TEST(a_tree_has_the_names_that_rules_see)
{
	for (unsigned i = 0; i < N_CASES; i++)
		assert_shown(cases[i].type, cases[i].stored, cases[i].shown, true);
}

TEST(what_earlier_versions_stored_is_shown_as_it_is)
{
	for (unsigned i = 0; i < N_CASES; i++) {
		assert_shown(cases[i].type, cases[i].shown, cases[i].shown, false);
		assert_shown(cases[i].type, cases[i].shown, cases[i].shown, true);
	}
}

/* Cut anywhere, it ends; what is no object has no members. */
TEST(what_is_not_whole_ends)
{
	for (unsigned i = 0; i < N_CASES; i++) {
		struct event e = {.type = text_of(cases[i].type)};
		CLEANUP(buf_donep) struct buf packed;
		struct arena a;

		arena_init(&a, 1 << 20);
		buf_init(&packed, 4096);
		pack(&a, &packed, cases[i].stored);
		for (size_t len = 0; len < packed.len; len++) {
			char *bytes = malloc(len ? len : 1);
			struct value *v;

			memcpy(bytes, packed.data, len);
			e.data = (struct text) {.data = bytes, .len = len};
			(void)event_unpack(&a, &e, &v);
			free(bytes);
		}
		arena_done(&a);
	}
}
