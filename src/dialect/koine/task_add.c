/* Adding tasks: for an agent, or a command of the user's own. */
#include <errno.h>
#include <string.h>

#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/task.h"
#include "engine/task/task.h"

struct add_in {
	struct task_new new; /* fields that need no conversion are read into it directly */
	const struct value *after;
	const struct value *env;
};

/* ---- adding one ---- */

int koine_read_after(const struct value *list, struct arena *a, struct texts *ret_after,
		     struct why *why)
{
	struct text *after;
	unsigned n = 0;

	if (!list)
		return 0;
	if (list->len > TASK_AFTER_MAX)
		return refuse_field(why, "after", "'after' has more than %d task ids",
				    TASK_AFTER_MAX);
	after = arena_alloc(a, (list->len + 1) * sizeof(after[0]));
	if (!after)
		return -ENOMEM;
	value_each (id, list) {
		if (id->kind != VALUE_STRING)
			return refuse_field(why, "after", "after[%u] must be a task id", n);
		after[n++] = value_text(id);
	}
	*ret_after = (struct texts) {.items = after, .n = n};
	return 0;
}

static int read_variable(const struct value *v, struct arena *a, struct text *ret, struct why *why)
{
	char *text;

	if (v->kind != VALUE_STRING)
		return refuse_field(why, "env", "env.%.*s must be a string",
				    v->key_len < 60 ? (int)v->key_len : 60, v->key);
	if (v->key_len == 0 || memchr(v->key, '=', v->key_len))
		return refuse_field(why, "env",
				    "env: a variable name must not be empty or contain '='");
	text = arena_alloc(a, (size_t)v->key_len + v->len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, v->key, v->key_len);
	text[v->key_len] = '=';
	memcpy(text + v->key_len + 1, v->text, v->len);
	*ret = (struct text) {.data = text, .len = (size_t)v->key_len + 1 + v->len};
	return 0;
}

static int read_env(const struct value *object, struct arena *a, struct task_new *new,
		    struct why *why)
{
	struct text *env;
	unsigned n = 0;

	if (!object)
		return 0;
	if (object->len > TASK_ENV_MAX)
		return refuse_field(why, "env", "env has more than %d variables", TASK_ENV_MAX);
	env = arena_alloc(a, (object->len + 1) * sizeof(env[0]));
	if (!env)
		return -ENOMEM;
	value_each (v, object) {
		int r = read_variable(v, a, &env[n++], why);

		if (r != 0)
			return r;
	}
	new->env = env;
	new->n_env = n;
	return 0;
}

static void on_added(void *arg, int r, const struct task_submitted *task, const struct why *why)
{
	struct call *c = arg;
	struct json *j;

	if (r != 0) {
		(void)call_fail_for(c, r, why);
		return;
	}
	j = call_result(c);
	json_begin_object(j);
	json_member_text(j, "project", task->project);
	json_member_text(j, "id", task->id);
	json_member_str(j, "state", task_state_name(task->state));
	json_end_object(j);
	(void)call_reply(c);
}

static struct done submit(struct call *c, const struct task_new *new)
{
	task_submit(call_tasks(c), new, on_added, c);
	return call_settled(c);
}

static int read_new(struct call *c, struct task_new *new)
{
	const struct add_in *in = c->in;

	*new = in->new;
	return koine_read_after(in->after, &c->arena, &new->task.after, &c->why)
		       ?: read_env(in->env, &c->arena, new, &c->why);
}

static struct done handle_add(struct call *c)
{
	struct task_new new;
	int r = read_new(c, &new);

	if (r != 0)
		return call_fail(c, r);
	/* This takes a single commit, so there is nothing to cancel. */
	(void)call_later(c, NULL, NULL);
	return submit(c, &new);
}

/* ---- the method table ---- */

/* clang-format off */
#define ADD_FIELDS \
	{.name = "priority", \
	 .type = FIELD_NUMBER, \
	 .doc = "Priority; tasks with higher numbers start first", \
	 .offset = offsetof(struct add_in, new.task.priority)}, \
	{.name = "group", \
	 .type = FIELD_STRING, \
	 .doc = "Group of the task; [group NAME] of koine.conf limits the number of running tasks in a group", \
	 .offset = offsetof(struct add_in, new.task.group)}, \
	{.name = "label", \
	 .type = FIELD_STRING, \
	 .doc = "Short name shown in lists, up to 80 bytes", \
	 .offset = offsetof(struct add_in, new.task.label)}, \
	{.name = "stash", \
	 .type = FIELD_BOOL, \
	 .doc = "Stash the task, so that it does not start before task.enqueue", \
	 .offset = offsetof(struct add_in, new.task.stashed)}, \
	{.name = "after", \
	 .type = FIELD_ARRAY, \
	 .doc = "Dependencies: ids of tasks of the same project that must complete first", \
	 .offset = offsetof(struct add_in, after)}, \
	{.name = "cwd", \
	 .type = FIELD_STRING, \
	 .for_humans = HUMANS, \
	 .doc = "Absolute working folder; default: the project's folder", \
	 .offset = offsetof(struct add_in, new.task.cwd)}, \
	{.name = "env", \
	 .type = FIELD_OBJECT, \
	 .for_humans = HUMANS, \
	 .doc = "Environment variables: an object of strings", \
	 .offset = offsetof(struct add_in, env)}, \
	{.name = "timeout", \
	 .type = FIELD_INT, \
	 .doc = "Timeout of one attempt in milliseconds; default: tasks.timeout", \
	 .offset = offsetof(struct add_in, new.task.timeout_ms)}, \
	{.name = "delay", \
	 .type = FIELD_INT, \
	 .doc = "Minimum delay before the task starts, in milliseconds", \
	 .offset = offsetof(struct add_in, new.delay_ms)}, \
	{.name = "retries", \
	 .type = FIELD_INT, \
	 .doc = "Number of retries after a failure", \
	 .offset = offsetof(struct add_in, new.retries)}, \
	{.name = "retry_delay", \
	 .type = FIELD_INT, \
	 .doc = "Delay before the first retry in milliseconds, then doubled; default 1000", \
	 .offset = offsetof(struct add_in, new.task.retry_ms)}, \
	{.name = "host", \
	 .type = FIELD_STRING, \
	 .doc = "Host that runs the task, or \"any\"; default: this host if the task has a project or folder, else any", \
	 .offset = offsetof(struct add_in, new.task.on_host)}, \
	{.name = "on", \
	 .type = FIELD_STRING, \
	 .doc = "Run the task only on a host with this label", \
	 .offset = offsetof(struct add_in, new.task.on_label)}, \
	{.name = "project", \
	 .type = FIELD_STRING, \
	 .doc = "Folder of the project; default: none", \
	 .offset = offsetof(struct add_in, new.task.project)}
/* clang-format on */

static const struct field add_fields[] = {
	{.name = "prompt",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Prompt of the task",
	 .offset = offsetof(struct add_in, new.task.prompt)},
	{.name = "agent",
	 .type = FIELD_STRING,
	 .for_humans = HUMANS_IF_PROGRAM,
	 .doc = "Agent name to pass to claude --agent",
	 .offset = offsetof(struct add_in, new.task.agent)},
	{.name = "runner",
	 .type = FIELD_STRING,
	 .for_humans = HUMANS,
	 .doc = "Name of an agent in koine.conf, or \"claude\"; default: tasks.runner",
	 .offset = offsetof(struct add_in, new.task.runner)},
	ADD_FIELDS,
	{.name = "metadata",
	 .type = FIELD_OBJECT,
	 .doc = "Any JSON object; koine stores it, but does not use it",
	 .offset = offsetof(struct add_in, new.task.metadata.value)},
};

static const struct field run_fields[] = {
	{.name = "command",
	 .type = FIELD_ARRAY,
	 .required = true,
	 .doc = "Program and arguments; no shell is used",
	 .offset = offsetof(struct add_in, new.task.command.value)},
	ADD_FIELDS,
};

#define ADDED                                                                                      \
	"{\"type\":\"object\",\"properties\":{\"project\":{\"type\":\"string\"},\"id\":{\"type\":" \
	"\"string\"},\"state\":{\"enum\":[\"queued\",\"running\",\"completed\",\"failed\","        \
	"\"cancelled\"]}}}"

const struct method koine_task_add_methods[] = {
	{.name = "task.add",
	 .doc = "Add a task; respond when it is on disk",
	 .result = ADDED,
	 FIELDS(add_fields),
	 .in_size = sizeof(struct add_in),
	 .handle = handle_add,
	 .flags = METHOD_LATER},
	{.name = "task.run",
	 .doc = "Add a task that runs a command; agents cannot call this method",
	 .result = ADDED,
	 FIELDS(run_fields),
	 .in_size = sizeof(struct add_in),
	 .handle = handle_add,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
};

const unsigned koine_n_task_add_methods =
	sizeof(koine_task_add_methods) / sizeof(koine_task_add_methods[0]);
