/* What the user of tasks keeps back: single ones, those of a group, all of them. */
#include "dialect/koine/task.h"

#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/task/task.h"

struct group_in {
	struct text group;
	int64_t parallel;
};

enum { PARALLEL_MAX = 10000 };

/* ---- single ones ---- */

static struct done koine_task_control_hold(struct call *c, enum task_hold hold)
{
	const struct task_in *in = c->in;

	return call_await(c, task_hold(call_tasks(c), in->project, in->id, hold, in->delay_ms,
				       koine_task_did, c, &c->error));
}

static struct done stash(struct call *c)
{
	return koine_task_control_hold(c, TASK_STASH);
}

static struct done handle_stash(struct call *c)
{
	return koine_task_named_one(c, stash);
}

static struct done enqueue(struct call *c)
{
	return koine_task_control_hold(c, TASK_ENQUEUE);
}

static struct done handle_enqueue(struct call *c)
{
	return koine_task_named_one(c, enqueue);
}

static struct done koine_task_control_release(struct call *c)
{
	return koine_task_control_hold(c, TASK_RELEASE);
}

static struct done handle_release(struct call *c)
{
	return koine_task_named_one(c, koine_task_control_release);
}

/* ---- changing one ---- */

/* No number that anybody gives: it stays as it is. */
#define AS_IT_IS INT64_MIN

static struct done edit_named(struct call *c)
{
	const struct task_in *in = c->in;
	struct task_edit edit = in->edit;

	if (in->after)
		edit.after = &in->after_ids;
	if (in->priority != (double)AS_IT_IS)
		edit.priority = &in->priority;
	if (in->timeout_ms != AS_IT_IS)
		edit.timeout_ms = &in->timeout_ms;
	return call_await(c, task_edit(call_tasks(c), in->project, in->id, &edit, koine_task_did, c,
				       &c->error));
}

static struct done edit_after_named(struct call *c)
{
	struct task_in *in = (struct task_in *)c->in;

	return koine_task_named(c, &in->project, (struct text *)in->after_ids.items,
				in->after_ids.n, edit_named);
}

static struct done handle_edit(struct call *c)
{
	struct task_in *in = (struct task_in *)c->in;
	int r = koine_read_after(in->after, &c->arena, &in->after_ids, &c->error);

	return r != 0 ? call_fail(c, r) : koine_task_named_one(c, edit_after_named);
}

/* ---- a group, or all ---- */

/* The argument of the row of task.pause, which task.resume does not have. */
static const char pauses[] = "";

static void on_paused(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct group_in *in = c->in;

	(void)call_answer(c, r, error,
			  PAIRS(JSON_TEXT("group", in->group),
				JSON_BOOL("paused", c->method->arg == pauses)));
}

static struct done handle_pause(struct call *c)
{
	const struct group_in *in = c->in;

	return call_await(c, task_pause(call_tasks(c), in->group, c->method->arg == pauses,
					on_paused, c, &c->error));
}

static struct done handle_parallel(struct call *c)
{
	const struct group_in *in = c->in;
	unsigned was = task_group_state(call_tasks(c), in->group).parallel;
	int r = tasks_set_parallel(call_tasks(c), in->group, (unsigned)in->parallel, &c->error);

	return call_answer(c, r, NULL,
			   PAIRS(JSON_TEXT("group", in->group), JSON_INT("parallel", in->parallel),
				 JSON_INT("was", was)));
}

/* ---- what has ended ---- */

static void on_cleaned(void *arg, int r, int64_t n, const struct error *error)
{
	struct call *c = arg;

	(void)call_answer(c, r, error, PAIRS(JSON_INT("cleaned", n)));
}

static struct done clean(struct call *c)
{
	return call_await(c, task_clean(call_tasks(c), c->in, on_cleaned, c));
}

static struct done handle_clean(struct call *c)
{
	struct task_cleaning *in = (struct task_cleaning *)c->in;

	return koine_task_named(c, &in->project, &in->id, in->id.data != NULL, clean);
}

/* ---- the method table ---- */

static const struct field stash_fields[] = {TASK_FIELDS};

static const struct field enqueue_fields[] = {
	TASK_FIELDS,
	FIELD_AS("delay", INT, task_in, delay_ms,
		 "Minimum delay before the task starts, in milliseconds"),
};

static const struct field edit_fields[] = {
	TASK_FIELDS,
	FIELD_AS("prompt", STRING, task_in, edit.prompt, "Prompt of the task"),
	FIELD(NUMBER, task_in, priority, "Priority; tasks with higher numbers start first",
	      .default_number = AS_IT_IS),
	FIELD_AS("label", STRING, task_in, edit.label,
		 "Short name shown in lists; \"\" removes the name"),
	FIELD_AS("runner", STRING, task_in, edit.runner,
		 "Name of an agent in koine.conf, or \"claude\"; \"\" selects the default"),
	FIELD_AS("host", STRING, task_in, edit.on_host, "Host that runs the task, or \"any\""),
	FIELD_AS("on", STRING, task_in, edit.on_label,
		 "Run the task only on a host with this label; \"\" means any host"),
	FIELD(ARRAY, task_in, after,
	      "New list of dependencies: ids or labels of tasks in the same project that must "
	      "complete before this task starts"),
	FIELD_AS("timeout", INT, task_in, timeout_ms,
		 "Timeout of one attempt in milliseconds; 0 selects tasks.timeout",
		 .default_number = AS_IT_IS),
};

static const struct field pause_fields[] = {
	FIELD(STRING, group_in, group, "Group of tasks, in all projects; default: all tasks"),
};

static const struct field parallel_fields[] = {
	FIELD(INT, group_in, parallel,
	      "Maximum number of running tasks; 0 removes the limit of a group", .required = true,
	      RANGE(0, PARALLEL_MAX)),
	FIELD(STRING, group_in, group, "Group of tasks, in all projects; default: all tasks"),
};

static const struct field clean_fields[] = {
	FIELD(STRING, task_cleaning, id, "Delete only the task with this id or label"),
	FIELD(STRING, task_cleaning, group, "Delete only tasks of this group"),
	FIELD(BOOL, task_cleaning, successful_only, "Delete only completed tasks"),
	TASK_PROJECT(task_cleaning,
		     "Folder of the project (default: all tasks); \"\" selects tasks without a "
		     "project"),
};

#define PAUSED "{group:string|null paused:boolean}"

static const struct method rows[] = {
	{"task.stash", "Stash a queued task, so that it does not start before task.enqueue",
	 "{id:string stashed:true}", FIELDS(stash_fields, task_in), .handle = handle_stash,
	 .arg = "stashed", .flags = METHOD_LATER},
	{"task.enqueue", "Requeue a stashed task", "{id:string enqueued:true}",
	 FIELDS(enqueue_fields, task_in), .handle = handle_enqueue, .arg = "enqueued",
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"task.release", "Release a held task, so that it can start", "{id:string released:true}",
	 FIELDS(stash_fields, task_in), .handle = handle_release, .arg = "released",
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"task.edit", "Change a queued task; omitted parameters keep their values",
	 "{id:string edited:true}", FIELDS(edit_fields, task_in), .handle = handle_edit,
	 .arg = "edited", .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"task.pause", "Pause all tasks or one group; running tasks continue", PAUSED,
	 FIELDS(pause_fields, group_in), .handle = handle_pause, .arg = pauses,
	 .flags = METHOD_LATER},
	{"task.resume", "Resume all tasks or one group", PAUSED, FIELDS(pause_fields, group_in),
	 .handle = handle_pause, .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"task.parallel",
	 "Set the maximum number of running tasks, in total or for one group, until koined "
	 "restarts",
	 "{group:string|null parallel:integer was:integer}", FIELDS(parallel_fields, group_in),
	 .handle = handle_parallel, .flags = METHOD_FOR_HUMANS},
	{"task.clean", "Delete ended tasks and their output", "{cleaned:integer}",
	 FIELDS(clean_fields, task_cleaning), .handle = handle_clean, .flags = METHOD_LATER},
};

const struct method_table koine_task_control_methods = METHOD_TABLE(rows);
