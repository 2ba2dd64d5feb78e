/* Adding tasks: for an agent, or a command of the user's own. */
#include <errno.h>
#include <string.h>

#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/task.h"
#include "engine/task/task.h"

struct koine_task_add_add_in {
	struct task_new new; /* fields that need no conversion are read into it directly */
	const struct value *after;
	const struct value *env;
};

/* ---- adding one ---- */

int koine_read_after(const struct value *list, struct arena *a, struct texts *ret_after,
		     struct error *error)
{
	struct text *after;
	unsigned n = 0;

	if (!list)
		return 0;
	if (list->len > TASK_AFTER_MAX)
		return refuse_field(error, "after", "'after' has more than %d task ids",
				    TASK_AFTER_MAX);
	after = arena_alloc(a, (list->len + 1) * sizeof(after[0]));
	if (!after)
		return -ENOMEM;
	value_each (id, list) {
		if (id->kind != VALUE_STRING)
			return refuse_field(error, "after", "after[%u] must be a task id, not %s",
					    n, value_kind_name(id));
		after[n++] = value_text(id);
	}
	*ret_after = (struct texts) {.items = after, .n = n};
	return 0;
}

static int read_variable(const struct value *v, struct arena *a, struct text *ret,
			 struct error *error)
{
	char *text;

	if (v->kind != VALUE_STRING)
		return refuse_field(error, "env", "env.%.*s must be a string, not %s",
				    v->key_len < 60 ? (int)v->key_len : 60, v->key,
				    value_kind_name(v));
	if (v->key_len == 0 || memchr(v->key, '=', v->key_len))
		return refuse_field(error, "env",
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
		    struct error *error)
{
	struct text *env;
	unsigned n = 0;

	if (!object)
		return 0;
	if (object->len > TASK_ENV_MAX)
		return refuse_field(error, "env", "env has more than %d variables", TASK_ENV_MAX);
	env = arena_alloc(a, (object->len + 1) * sizeof(env[0]));
	if (!env)
		return -ENOMEM;
	value_each (v, object) {
		int r = read_variable(v, a, &env[n++], error);

		if (r != 0)
			return r;
	}
	new->env = env;
	new->n_env = n;
	return 0;
}

static void on_added(void *arg, int r, const struct task_submitted *task, const struct error *error)
{
	struct call *c = arg;
	struct json *j = call_object_for(c, r, error);

	if (!j)
		return;
	json_member_text(j, "project", task->project);
	json_member_text(j, "id", task->id);
	json_member_str(j, "state", task_state_name(task->state));
	(void)call_reply_object(c);
}

static struct done koine_task_add_add(struct call *c)
{
	const struct koine_task_add_add_in *in = c->in;

	/* This takes a single commit, so there is nothing to cancel. */
	return call_await(c, task_submit(call_tasks(c), &in->new, on_added, c, &c->error));
}

static struct done handle_add(struct call *c)
{
	struct koine_task_add_add_in *in = (struct koine_task_add_add_in *)c->in;
	struct texts *after = &in->new.task.after;
	int r = koine_read_after(in->after, &c->arena, after, &c->error)
			?: read_env(in->env, &c->arena, &in->new, &c->error);

	if (r != 0)
		return call_fail(c, r);
	if (!in->new.task.project.data)
		in->new.task.project = TEXT("");
	return koine_task_named(c, &in->new.task.project, (struct text *)after->items, after->n,
				koine_task_add_add);
}

/* ---- the method table ---- */

#define ADD_FIELDS                                                                                 \
	FIELD_AS("priority", NUMBER, koine_task_add_add_in, new.task.priority,                     \
		 "Priority; tasks with higher numbers start first"),                               \
		FIELD_AS("group", STRING, koine_task_add_add_in, new.task.group,                   \
			 "Group of the task; a group can have a limit of running tasks"),          \
		FIELD_AS("label", STRING, koine_task_add_add_in, new.task.label,                   \
			 "Short name shown in lists, up to 80 bytes"),                             \
		FIELD_AS("stash", BOOL, koine_task_add_add_in, new.task.stashed,                   \
			 "Stash the task, so that it does not start before task.enqueue"),         \
		FIELD(ARRAY, koine_task_add_add_in, after,                                         \
		      "Dependencies: ids or labels of tasks in the same project that must "        \
		      "complete before this task starts"),                                         \
		FIELD_AS("cwd", STRING, koine_task_add_add_in, new.task.cwd,                       \
			 "Absolute working directory; default: the project's folder",              \
			 .for_humans = HUMANS),                                                    \
		FIELD(OBJECT, koine_task_add_add_in, env,                                          \
		      "Environment variables: an object of strings", .for_humans = HUMANS),        \
		FIELD_AS("timeout", INT, koine_task_add_add_in, new.task.timeout_ms,               \
			 "Timeout of one attempt in milliseconds; default: tasks.timeout"),        \
		FIELD_AS("delay", INT, koine_task_add_add_in, new.delay_ms,                        \
			 "Minimum delay before the task starts, in milliseconds"),                 \
		FIELD_AS("retries", INT, koine_task_add_add_in, new.retries,                       \
			 "Number of retries after a failure"),                                     \
		FIELD_AS("retry_delay", INT, koine_task_add_add_in, new.task.retry_ms,             \
			 "Delay in milliseconds before the first retry, doubled for each further " \
			 "retry; default 1000"),                                                   \
		FIELD_AS(                                                                          \
			"host", STRING, koine_task_add_add_in, new.task.on_host,                   \
			"Host that runs the task, or \"any\"; default: this host if the task has " \
			"a project or folder, otherwise \"any\""),                                 \
		FIELD_AS("on", STRING, koine_task_add_add_in, new.task.on_label,                   \
			 "Run the task only on a host with this label"),                           \
		FIELD_AS("project", STRING, koine_task_add_add_in, new.task.project,               \
			 "Folder of the project; default: none")

static const struct field add_fields[] = {
	FIELD_AS("prompt", STRING, koine_task_add_add_in, new.task.prompt, "Prompt of the task",
		 .required = true),
	FIELD_AS("agent", STRING, koine_task_add_add_in, new.task.agent,
		 "Agent name to pass to claude --agent", .for_humans = HUMANS_IF_PROGRAM),
	FIELD_AS("runner", STRING, koine_task_add_add_in, new.task.runner,
		 "Name of an agent in koine.conf, or \"claude\"; default: tasks.runner",
		 .for_humans = HUMANS),
	ADD_FIELDS,
	FIELD_AS("metadata", OBJECT, koine_task_add_add_in, new.task.metadata.value,
		 "JSON object that koine stores unchanged"),
};

static const struct field run_fields[] = {
	FIELD_AS("command", ARRAY, koine_task_add_add_in, new.task.command.value,
		 "Program and arguments; koined does not use a shell", .required = true),
	ADD_FIELDS,
};

#define ADDED "{project:string id:string state:queued|running|completed|failed|cancelled}"

static const struct method rows[] = {
	{"task.add", "Add a task; return when it is stored on disk", ADDED,
	 FIELDS(add_fields, koine_task_add_add_in), .handle = handle_add, .flags = METHOD_LATER},
	{"task.run", "Add a task that runs a command; agents cannot call this method", ADDED,
	 FIELDS(run_fields, koine_task_add_add_in), .handle = handle_add,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
};

const struct method_table koine_task_add_methods = METHOD_TABLE(rows);
