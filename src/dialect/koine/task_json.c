#include "dialect/koine/task.h"

#include <stdio.h>

#include "base/clock.h"
#include "wire/json.h"

/* Its words are around what it waits on; its name is what a program compares. */
static const struct {
	const char *name;
	const char *before;
	const char *behind;
} waits[N_TASK_WAITS] = {
	[WAIT_AFTER] = {"dependency", "after ", ""},
	[WAIT_UNTIL] = {"time", "at ", ""},
	[WAIT_GROUP] = {"group", "group ", " has reached its limit of running tasks"},
	[WAIT_PROJECT] = {"project", "the project has reached its limit of running tasks", ""},
	[WAIT_PARALLEL] = {"parallel", "koined has reached its limit of running tasks", ""},
	[WAIT_HOST] = {"host", "host ", " has not started the task yet"},
	[WAIT_NO_HOST] = {"host", "host ", " is not alive"},
	[WAIT_LABEL] = {"label", "hosts with label ", " have not started the task yet"},
	[WAIT_NO_LABEL] = {"label", "no host has label ", ""},
	[WAIT_RELEASE] = {"release", "until the task is released", ""},
	[WAIT_ENQUEUE] = {"enqueue", "until the task is enqueued", ""},
	[WAIT_PAUSE] = {"pause", "all tasks are paused", ""},
	[WAIT_GROUP_PAUSE] = {"pause", "group ", " is paused"},
	[WAIT_DRAIN] = {"drain", "koined is draining before shutdown", ""},
	[WAIT_STORE] = {"store", "the database is unavailable", ""},
	[WAIT_UNSERVED] = {"project", "the project is not served", ""},
};

enum { WAITS_SHOWN = TASK_NAME_MAX + 64 };

static void write_waits(struct json *j, const struct task_waits *w)
{
	char on[ISO_LEN + 1] = "";
	char shown[WAITS_SHOWN];
	int n;

	if (w->reason == WAIT_NONE)
		return;
	if (w->until_ms > 0)
		clock_format_iso(w->until_ms, on);
	n = snprintf(shown, sizeof(shown), "%s%.*s%s", waits[w->reason].before,
		     TEXT_ARGS(w->on.data ? w->on : text_of(on)), waits[w->reason].behind);
	if (w->more > 0 && n > 0 && (size_t)n < sizeof(shown))
		snprintf(shown + n, sizeof(shown) - (size_t)n, " and %u more", w->more);
	json_member_object(j, "waits");
	json_member_str(j, "for", waits[w->reason].name);
	if (w->on.data)
		json_member_text(j, "on", w->on);
	if (w->until_ms > 0)
		json_member_str(j, "until", on);
	json_member_str(j, "text", shown);
	json_end_object(j);
}

static void write(struct json *j, const struct task *task, struct selection s, size_t cut)
{
	struct task shown = *task;

	/* A task that was cancelled while held stays held, so that a retry must be released.
	 * Until then nobody waits for that, and it is not shown. */
	shown.attempts = task_tries(task);
	shown.held = task->held && task->state == TASK_QUEUED;
	shown.stashed = task->stashed && task->state == TASK_QUEUED;
	schema_each(m, &task_schema)
	{
		if (!m->name || !member_is_in(m, s))
			continue;
		if (m->offset == offsetof(struct task, state))
			json_member_str(j, m->name, task_word(task));
		else
			json_noun_member(j, m, &shown, cut);
		if (m->offset == offsetof(struct task, state))
			write_waits(j, &task->waits);
	}
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
	write(j, task, (struct selection) {.with = TASK_ENDS}, 0);
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
	json_member_bool(j, "paused", task_group_state(tasks, (struct text) {0}).paused);
	json_member_array(j, "paused_groups");
	tasks_each_paused(tasks, write_group, j);
	json_end_array(j);
}
