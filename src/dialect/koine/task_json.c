#include "dialect/koine/task_json.h"

#include "wire/json_members.h"

static void write(struct json *j, const struct task *task, struct selection s, size_t cut)
{
	struct task shown = *task;

	/* A task that was cancelled while held stays held, so that a retry must be released.
	 * Until then nobody waits for that, and it is not shown. */
	shown.held = task->held && task->state == TASK_QUEUED;
	shown.stashed = task->stashed && task->state == TASK_QUEUED;
	json_members(j, &task_portrait, s, &shown, cut);
}

void task_json_write(struct json *j, const struct task *task)
{
	json_begin_object(j);
	write(j, task, (struct selection) {0}, 0);
	json_end_object(j);
}

void task_json_begin_short(struct json *j, const struct task *task)
{
	json_begin_object(j);
	write(j, task, (struct selection) {.with = MEMBER_LISTED}, TASK_SHOWN);
}

void task_json_write_end(struct json *j, const struct task *task)
{
	json_begin_object(j);
	json_members(j, &task_portrait, (struct selection) {.with = TASK_ENDS}, task, 0);
	json_end_object(j);
}

void task_json_counts(struct json *j, const int64_t n[N_TASK_STATES])
{
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		json_member_int(j, task_state_name((enum task_state)i), n[i]);
}

static void write_group(void *arg, struct text group)
{
	json_text(arg, group);
}

void task_json_pauses(struct json *j, struct tasks *tasks)
{
	json_member_bool(j, "paused", tasks_paused(tasks));
	json_key(j, "paused_groups");
	json_begin_array(j);
	tasks_each_paused(tasks, write_group, j);
	json_end_array(j);
}
