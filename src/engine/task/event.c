/* What events say of a task. Stores rely on these names; each table lists them in output order. */
#include <string.h>

#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/task.h"

/* Bytes of a text in an event. */
enum { PROMPT_TOLD = 80, RESULT_TOLD = 64 << 10 };

/* Only for a task that is completed, not for others that have ended. */
enum { OF_COMPLETED = MEMBER_OWN };

#define MEMBER(kind, field) NULL, MEMBER_OF(struct task, kind, field)
#define LEFT_OUT            .absent = ABSENT_LEFT_OUT

static const struct member queued_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"prompt", MEMBER(TEXT, prompt), MEMBER_CUT},
};

static const struct member started_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"pid", MEMBER(INT, pid), 0, NONE_IS_ZERO, LEFT_OUT},
	{"attempt", MEMBER(INT, attempts)},
};

static const struct member edited_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"prompt", MEMBER(TEXT, prompt), MEMBER_CUT},
	{"label", MEMBER(TEXT, label), LEFT_OUT},
};

static const struct member other_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"result", MEMBER(BLOB, result), OF_COMPLETED | MEMBER_CUT},
	{"error", MEMBER(TEXT, error), LEFT_OUT},
	{"exit_status", MEMBER(INT, exit_status), 0, NONE_IS_NEGATIVE, LEFT_OUT},
	{"signal", MEMBER(INT, signal), 0, NONE_IS_ZERO, LEFT_OUT},
};

static const struct portrait queued = PORTRAIT(struct task, queued_members);
static const struct portrait started = PORTRAIT(struct task, started_members);
static const struct portrait edited = PORTRAIT(struct task, edited_members);
static const struct portrait other = PORTRAIT(struct task, other_members);

static void say(struct packer *p, const char *event, const struct task *task, int64_t queue_size)
{
	const struct selection all = {0};
	const struct selection unless_completed = {.without = OF_COMPLETED};

	if (strcmp(event, "task.queued") == 0) {
		packer_members(p, &queued, all, task, PROMPT_TOLD);
		packer_int(p, "queue_size", queue_size);
		return;
	}
	if (strcmp(event, "task.started") == 0) {
		packer_members(p, &started, all, task, 0);
		return;
	}
	if (strcmp(event, "task.edited") == 0) {
		packer_members(p, &edited, all, task, PROMPT_TOLD);
		return;
	}
	packer_members(p, &other, task->state == TASK_COMPLETED ? all : unless_completed, task,
		       RESULT_TOLD);
	if (task->started_ms > 0 && task->completed_ms > 0)
		packer_int(p, "duration_ms", task->completed_ms - task->started_ms);
}

static int add(struct tasks *t, struct event_new *e, const struct task *task, int64_t queue_size,
	       struct text tool_use_id)
{
	struct event_data d;

	e->project = task->project;
	e->run = task->id;
	event_data_begin(&d);
	say(&d.members, e->type, task, queue_size);
	packer_given(&d.members, "tool_use_id", tool_use_id);
	return event_add_data(t->events, e, &d);
}

int task_event_add(struct tasks *t, const char *event, const struct task *task, int64_t queue_size)
{
	return task_event_later(t, event, task, queue_size, NULL);
}

int task_event_later(struct tasks *t, const char *event, const struct task *task,
		     int64_t queue_size, const int64_t *change)
{
	struct event_new e = {.type = event, .change = change};

	return add(t, &e, task, queue_size, (struct text) {0});
}

int task_event_fenced(struct tasks *t, const struct task *task,
		      const struct store_task_guard *guard, const int64_t *change)
{
	struct event_new e = {.type = "task.fenced",
			      .project = task->project,
			      .run = task->id,
			      .change = change,
			      .unless = true};
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "task_id", task->id);
	packer_int(&d.members, "attempt", guard->attempts);
	packer_text(&d.members, "host", node_name(t->node));
	return event_add_data(t->events, &e, &d);
}

int task_event_submitted(struct tasks *t, const struct task *task, int64_t queue_size,
			 struct text tool_use_id)
{
	struct event_new e = {.type = "task.queued"};

	return add(t, &e, task, queue_size, tool_use_id);
}
