#include "model/event.h"

#include <errno.h>

#define MEMBER(kind, field) MEMBER_OF(struct event, kind, field)

/* clang-format off */
static const struct member members[] = {
	{"seq", "seq", MEMBER(INT, seq), MEMBER_MADE},
	{"type", "type", MEMBER(TEXT, type)},
	{"time", "time_ms", MEMBER(TIME, time_ms)},
	{"project", "project", MEMBER(TEXT, project), .absent = ABSENT_LEFT_OUT},
	{"session_id", "session", MEMBER(TEXT, session), .absent = ABSENT_LEFT_OUT},
	{"run_id", "run", MEMBER(TEXT, run), .absent = ABSENT_LEFT_OUT},
	{"host", "host", MEMBER(TEXT, host), .absent = ABSENT_LEFT_OUT},
	{NULL, "data", MEMBER(BLOB, data)}, /* shown unpacked */
};
/* clang-format on */

const struct schema event_schema = SCHEMA(struct event, members);

/* ---- names that are shown ---- */

/*
 * The store has the members of an event under neutral names. Rules and clients know some of them by other names: rules
 * by those that aiwg gives them, clients by those of snake_case, which are put in when the JSON is written, once for
 * all subscribers. Events of older versions were stored under the names that rules see, and are sent unchanged.
 */

/* clang-format off */
#define LITERAL(text)            {.data = (text), .len = sizeof(text) - 1}
#define NAME(stored, shown, ...) {LITERAL(stored), LITERAL(shown), __VA_ARGS__}

static const struct packed_name task_names[] = {
	NAME("task_id", "taskId"),
	NAME("queue_size", "queueSize"),
	NAME("exit_status", "exitCode"),
	NAME("duration_ms", "duration"),
	{{NULL}},
};

static const struct packed_name rule_names[] = {
	NAME("rule_id", "ruleId"),
	NAME("event_type", "eventType"),
	NAME("task_id", "taskId"),
	NAME("exit_status", "exitCode"),
	NAME("duration_ms", "duration"),
	{{NULL}},
};

/* For clients, of tasks and rules. */
static const struct packed_name work_names[] = {
	NAME("duration_ms", "duration"),
	{{NULL}},
};

static const struct packed_name session_names[] = {
	NAME("agent_session_id", "claude_session_id", NULL_IS_EMPTY),
	{{NULL}},
};

/* The first clients expected what was said with a decision under a name that says what it is;
 * later ones expect one name for all of them. */
static const struct packed_name approval_names[] = {
	NAME("id", "approval_id"),
	NAME("id", "call_id"),
	NAME("session_id", "session_id", NULL_IS_EMPTY),
	NAME("run_id", "run_id", NULL_IS_EMPTY),
	NAME("kind", "type"),
	NAME("tool", "tool_name", NULL_IS_EMPTY),
	NAME("input", "tool_input"),
	NAME("status", "status"),
	NAME("status", "decision"),
	NAME("reason", "response_text"),
	NAME("reason", "reason"),
	NAME("response", "response_text"),
	NAME("response", "response"),
	NAME("comment", "response_text", NULL_IS_EMPTY),
	NAME("comment", "comment", NULL_IS_LEFT_OUT),
	NAME("decided_by", "decided_by", NULL_IS_EMPTY),
	{{NULL}},
};

static const struct source {
	struct text name;  /* a type up to its first dot */
	struct text first; /* member; data that begins with another was stored as it is shown */
	const struct packed_name *rule_names;
	const struct packed_name *client_names;
} sources[] = {
	{LITERAL("task"), LITERAL("task_id"), task_names, work_names},
	{LITERAL("rule"), LITERAL("rule_id"), rule_names, work_names},
	{LITERAL("session"), LITERAL("session_id"), session_names, session_names},
	{LITERAL("approval"), LITERAL("id"), approval_names, approval_names},
};
/* clang-format on */

static const struct source *find_source(struct text type)
{
	const char *dot = type.len > 0 ? memchr(type.data, '.', type.len) : NULL;
	const struct text name = {.data = type.data,
				  .len = dot ? (size_t)(dot - type.data) : type.len};

	for (unsigned i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (text_equal(name, sources[i].name))
			return &sources[i];
	}
	return NULL;
}

/* NULL: the data was stored as it is shown. */
static const struct source *find_stored(const struct event *e)
{
	const struct source *source = find_source(e->type);
	struct packed_reader data = packed_reader(e->data);
	struct packed_item object;
	struct text first;

	if (!source || packed_take(&data, &object) != 0 || packed_take_text(&data, &first) != 0 ||
	    !text_equal(first, source->first))
		return NULL;
	return source;
}

const struct packed_name *event_names(const struct event *e)
{
	const struct source *source = find_stored(e);

	return source ? source->client_names : NULL;
}

/* ---- as a tree ---- */

/* Puts the member before *link, under each of its names. */
static int add_renamed(struct arena *a, const struct value *member, const struct packed_name *name,
		       struct value ***link, uint32_t *len)
{
	const struct text stored = name->stored;

	for (; text_equal(name->stored, stored); name++) {
		struct value *copy;

		if (member->kind == VALUE_NULL && name->null == NULL_IS_LEFT_OUT)
			continue;
		copy = arena_alloc(a, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		*copy = member->kind == VALUE_NULL && name->null == NULL_IS_EMPTY
				? (struct value) {.kind = VALUE_STRING, .text = ""}
				: *member;
		copy->key = name->shown.data;
		copy->key_len = (uint32_t)name->shown.len;
		copy->next = **link;
		**link = copy;
		*link = &copy->next;
		(*len)++;
	}
	return 0;
}

static int rename_members(struct arena *a, struct value *object, const struct packed_name *names)
{
	struct value **link = &object->first;
	uint32_t n = 0;
	struct value *member;
	int r = 0;

	while (r == 0 && (member = *link)) {
		const struct text key = {.data = member->key, .len = member->key_len};
		const struct packed_name *name = packed_name_find(names, key);

		if (name) {
			*link = member->next;
			r = add_renamed(a, member, name, &link, &n);
		} else {
			link = &member->next;
			n++;
		}
	}
	object->len = n;
	return r;
}

int event_unpack(struct arena *a, const struct event *e, struct value **ret_data)
{
	const struct source *source = find_stored(e);
	struct value *data;
	int r = value_unpack(a, e->data, &data);

	if (r == 0 && source)
		r = rename_members(a, data, source->rule_names);
	if (r == 0)
		*ret_data = data;
	return r;
}
