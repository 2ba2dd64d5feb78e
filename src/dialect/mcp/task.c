/* Tools about tasks: work that other agents do while nobody waits for it. */
#include <errno.h>

#include "base/cleanup.h"
#include "dialect/engine.h"
#include "dialect/koine/task.h"
#include "dialect/mcp/server.h"
#include "engine/task/task.h"

enum {
	OUTPUT_DEFAULT = 8 << 10, /* bytes: a model reads all of it */
	OUTPUT_MAX = 1 << 20,
	TIMEOUT_MAX_S = 30 * 24 * 3600,
};

static const unsigned group = GROUP_TASKS;

struct mcp_task_add_in {
	struct text prompt;
	struct text agent;
	double priority;
	struct text group;
	const struct value *after;
	int64_t timeout_seconds;
	int64_t retries;
};

struct mcp_task_one_in {
	struct text id;
	int64_t offset;
	int64_t max;
};

struct mcp_task_list_in {
	struct text state;
	struct text group;
	int64_t limit;
};

/* ---- adding one ---- */

static void on_added(void *arg, int r, const struct task_submitted *task, const struct error *error)
{
	struct call *c = arg;
	struct json *j = call_object_for(c, r, error);

	if (!j)
		return;
	json_member_text(j, "id", task->id);
	json_member_str(j, "state", task_state_name(task->state));
	(void)call_reply_object(c);
}

/* It runs where its client works. */
static struct done handle_add(struct call *c)
{
	const struct mcp_task_add_in *in = c->in;
	struct task_new new = {
		.task = {.prompt = in->prompt,
			 .runner = in->agent,
			 .priority = in->priority,
			 .group = in->group,
			 .cwd = call_side(c)->folder,
			 .timeout_ms = in->timeout_seconds * 1000},
		.retries = in->retries,
		.tool_use_id = side_tool_use(c),
	};
	int r = koine_read_after(in->after, &c->arena, &new.task.after, &c->error);

	if (r != 0)
		return call_fail(c, r);
	return call_await(c, task_submit(call_tasks(c), &new, on_added, c, &c->error));
}

/* ---- looking ---- */

static bool says_nothing(const struct value *v)
{
	switch ((enum value_kind)v->kind) {
	case VALUE_NULL:
	case VALUE_FALSE:
		return true;
	case VALUE_STRING:
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		return v->len == 0;
	case VALUE_TRUE:
	case VALUE_NUMBER:
		return false;
	}
	return false;
}

/* A model reads every member, so those that say nothing are left out. */
static void write_task(struct call *c, struct json *j, const struct task *t, bool whole)
{
	CLEANUP(buf_donep) struct buf out = {0};
	const struct json_limits any = {.depth = JSON_DEPTH_MAX, .values = UINT32_MAX};
	struct value *members = NULL;
	struct error unused;
	struct json all;

	buf_init(&out, c->out.max);
	all = json_writer(&out);
	if (whole) {
		task_json_write(&all, t);
	} else {
		task_json_begin_short(&all, t);
		json_end_object(&all);
	}
	if (out.err != 0) {
		j->out->err = out.err;
		return;
	}
	/* What cannot be looked at is shown as it is. */
	if (json_read(&c->arena, out.data, out.len, &any, &members, &unused) != 0) {
		json_raw(j, out.data, out.len);
		return;
	}
	json_begin_object(j);
	value_each (v, members) {
		if (says_nothing(v))
			continue;
		json_key_text(j, (struct text) {v->key, v->key_len});
		json_raw(j, v->raw, v->raw_len);
	}
	json_end_object(j);
}

static int get_work(struct call *c)
{
	const struct mcp_task_one_in *in = c->in;

	return task_get(call_tasks(c), c->lane, &c->arena, (struct text) {0}, in->id, c->state,
			NULL, &c->error);
}

/* The store may not have the latest changes yet. */
static struct done get_then(struct call *c, int r)
{
	struct task *t = c->state;

	if (r != 0)
		return call_fail(c, r);
	(void)task_catch_up(call_tasks(c), t, NULL);
	write_task(c, call_result(c), t, true);
	return call_reply(c);
}

static struct done handle_get(struct call *c)
{
	c->state = arena_zalloc(&c->arena, sizeof(struct task));
	return c->state ? call_work(c, READER, get_work, get_then) : call_fail(c, -ENOMEM);
}

struct mcp_task_finding {
	struct task_filter filter;
	struct task *tasks;
	unsigned n;
};

static int list_work(struct call *c)
{
	struct mcp_task_finding *f = c->state;

	return task_list(call_tasks(c), c->lane, &c->arena, &f->filter, &f->tasks, &f->n, NULL);
}

static struct done list_then(struct call *c, int r)
{
	const struct mcp_task_finding *f = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "tasks");
	for (unsigned i = 0; i < f->n; i++) {
		(void)task_catch_up(call_tasks(c), &f->tasks[i], NULL);
		write_task(c, j, &f->tasks[i], false);
	}
	json_end_array(j);
	return call_reply_object(c);
}

static struct done mcp_task_handle_list(struct call *c)
{
	const struct mcp_task_list_in *in = c->in;
	struct mcp_task_finding *f = arena_zalloc(&c->arena, sizeof(*f));
	enum task_skips skips = SKIPS_TOO;
	enum task_state state;
	bool given = task_word_parse(in->state, &state, &skips);

	if (!f)
		return call_fail(c, -ENOMEM);
	f->filter = (struct task_filter) {
		.state = given ? (int)state : -1,
		.skips = skips,
		.group = in->group,
		.limit = in->limit,
		.brief = true,
	};
	c->state = f;
	return call_work(c, READER, list_work, list_then);
}

static struct done handle_output(struct call *c)
{
	const struct mcp_task_one_in *in = c->in;
	int64_t max = in->max > 0 && in->max < OUTPUT_MAX ? in->max : OUTPUT_MAX;
	int64_t offset = in->offset >= 0 && c->given[1] ? in->offset : -max;
	struct task_output out = {.offset = offset, .max = (size_t)max};
	struct task task;
	int r = task_get(call_tasks(c), c->lane, &c->arena, (struct text) {0}, in->id, &task, &out,
			 &c->error);

	return call_answer(c, r, NULL,
			   PAIRS(JSON_TEXT("output", out.bytes.data ? out.bytes : TEXT("")),
				 JSON_INT("offset", out.offset), JSON_INT("end", out.end),
				 JSON_BOOL("running", out.running)));
}

/* ---- ending one ---- */

static void on_cancelled(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct mcp_task_one_in *in = c->in;

	(void)call_answer(c, r, error, PAIRS(JSON_TEXT("cancelled", in->id)));
}

static struct done handle_cancel(struct call *c)
{
	const struct mcp_task_one_in *in = c->in;

	return call_await(c, task_cancel(call_tasks(c), (struct text) {0}, in->id, on_cancelled, c,
					 &c->error));
}

/* ---- the tools ---- */

#define ID FIELD(STRING, mcp_task_one_in, id, "Id of the task, such as task-0003", .required = true)

static const struct field add_fields[] = {
	FIELD(STRING, mcp_task_add_in, prompt,
	      "Prompt, with all context that the agent needs: the agent does not see this "
	      "conversation",
	      .required = true),
	FIELD(STRING, mcp_task_add_in, agent,
	      "Name of an agent in koine's settings, or \"claude\"; default: the default agent",
	      .for_humans = HUMANS_IF_RUNNER),
	FIELD(NUMBER, mcp_task_add_in, priority,
	      "Priority (default 0); tasks with higher numbers start first"),
	FIELD(STRING, mcp_task_add_in, group, "Group of the task"),
	FIELD(ARRAY, mcp_task_add_in, after,
	      "Ids of tasks that must complete before this task "
	      "starts",
	      .items = FIELD_STRING),
	FIELD(INT, mcp_task_add_in, timeout_seconds,
	      "Timeout in seconds; default: the timeout in koine's settings",
	      RANGE(0, TIMEOUT_MAX_S)),
	FIELD(INT, mcp_task_add_in, retries, "Number of retries after a failure"),
};

static const struct field id_fields[] = {ID};

static const struct field output_fields[] = {
	ID,
	FIELD(INT, mcp_task_one_in, offset,
	      "Offset of the first byte to return; default: the end of the "
	      "output"),
	FIELD(INT, mcp_task_one_in, max, "Maximum number of bytes, up to 1000000",
	      .default_number = OUTPUT_DEFAULT),
};

static const char *const states[] = {"queued",  "running",   "completed", "failed",
				     "skipped", "cancelled", NULL};

static const struct field list_fields[] = {
	FIELD(STRING, mcp_task_list_in, state, "Return only tasks in this state", .words = states),
	FIELD(STRING, mcp_task_list_in, group, "Return only tasks of this group"),
	FIELD(INT, mcp_task_list_in, limit, "Maximum number of tasks, up to 1000",
	      .default_number = 20, AT_LEAST(0)),
};

#define A_TASK                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"                       \
	"\"state\":{\"type\":\"string\"}},\"required\":[\"id\",\"state\"]}"

static const struct mcp_tool tools[] = {
	{.row = {"task_add",
		 "Queue a task for another agent, which works in the background in this "
		 "folder. Returns the task id at once; task_get returns its state and "
		 "result.",
		 FIELDS(add_fields, mcp_task_add_in), .handle = handle_add, .flags = METHOD_LATER,
		 .arg = &group},
	 .title = "Add a task",
	 .output_schema = A_TASK,
	 .hints = MCP_HARMLESS},
	{.row = {"task_get", "Return one task: its state, its result or error, and its timestamps.",
		 FIELDS(id_fields, mcp_task_one_in), .handle = handle_get, .flags = METHOD_LATER,
		 .arg = &group},
	 .title = "Get a task",
	 .output_schema = A_TASK,
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
	{.row = {"task_list", "List tasks, newest first.", FIELDS(list_fields, mcp_task_list_in),
		 .handle = mcp_task_handle_list, .flags = METHOD_LATER, .arg = &group},
	 .title = "List tasks",
	 .output_schema = "{\"type\":\"object\",\"properties\":{\"tasks\":{\"type\":\"array\","
			  "\"items\":" A_TASK "}},\"required\":[\"tasks\"]}",
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
	{.row = {"task_cancel", "Cancel a queued or running task and terminate its processes.",
		 FIELDS(id_fields, mcp_task_one_in), .handle = handle_cancel, .flags = METHOD_LATER,
		 .arg = &group},
	 .title = "Cancel a task",
	 .output_schema =
		 "{\"type\":\"object\",\"properties\":{\"cancelled\":{\"type\":\"string\"}}}",
	 .hints = MCP_CLOSED},
	{.row = {"task_output", "Return the end of a task's output, or the output from an offset.",
		 FIELDS(output_fields, mcp_task_one_in), .handle = handle_output, .where = READER,
		 .arg = &group},
	 .title = "Get task output",
	 .output_schema = "{\"type\":\"object\",\"properties\":{\"output\":{\"type\":\"string\"},"
			  "\"offset\":{\"type\":\"integer\"},\"end\":{\"type\":\"integer\"},"
			  "\"running\":{\"type\":\"boolean\"}},\"required\":[\"output\"]}",
	 .hints = MCP_READ_ONLY | MCP_CLOSED},
};

const struct mcp_tools mcp_task_tools = {tools, sizeof(tools) / sizeof(tools[0])};
