#include "dialect/aiwg/project.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/pack.h"
#include "engine/task/task.h"
#include "wire/json.h"

static int64_t time_in(const struct value *v, const char *key)
{
	int64_t ms;

	return clock_parse_iso(value_text(value_find(v, key)), &ms) && ms > 0 ? ms : 0;
}

/* A string is taken as it is, any other value as JSON. */
static int words_in(struct arena *a, const struct value *v, const char *key, struct text *ret)
{
	const struct value *found = value_find(v, key);

	*ret = value_text(found);
	if (!found || found->kind == VALUE_NULL || found->kind == VALUE_STRING)
		return 0;
	return json_compact(a, found, ret);
}

static int read_metadata(struct arena *a, const struct value *v, struct text *ret)
{
	const struct value *found = value_find(v, "metadata");
	struct buf out;
	const char *copy;
	int r;

	if (!found || found->kind != VALUE_OBJECT)
		return 0;
	buf_init(&out, AIWG_IMPORT_BYTES);
	value_pack(&out, found);
	copy = out.err == 0 ? arena_copy(a, out.data, out.len) : NULL;
	r = out.err != 0 ? out.err : copy ? 0 : -ENOMEM;
	if (r == 0)
		*ret = (struct text) {.data = copy, .len = out.len};
	buf_done(&out);
	return r;
}

static bool usable(struct text t, size_t max)
{
	return t.len > 0 && t.len <= max && !memchr(t.data, '\0', t.len);
}

static int read_texts(struct arena *a, const struct value *v, struct task *row)
{
	int r = words_in(a, v, "prompt", &row->prompt) ?: words_in(a, v, "result", &row->result) ?:
		words_in(a, v, "error", &row->error) ?: read_metadata(a, v, &row->metadata.bytes);

	row->agent = value_text(value_find(v, "agent"));
	if (row->agent.data && !usable(row->agent, TASK_NAME_MAX))
		row->agent = (struct text) {0};
	if (!row->prompt.data)
		row->prompt = TEXT("");
	return r;
}

/* A task that was running has ended with its daemon. */
static void aiwg_import_settle(struct task *row, int64_t now_ms)
{
	if (row->state == TASK_QUEUED && !usable(row->prompt, TASK_PROMPT_MAX)) {
		row->state = TASK_FAILED;
		row->error = TEXT("the prompt is empty or exceeds its size limit");
	}
	if (row->state == TASK_RUNNING) {
		row->state = TASK_FAILED;
		row->error = TEXT("daemon restarted");
	}
	if (row->state != TASK_QUEUED && row->completed_ms == 0)
		row->completed_ms = now_ms;
	if (row->created_ms == 0)
		row->created_ms = now_ms;
}

/* Sets *ret_found if the task can be used. */
static int read_task(struct arena *a, const struct value *v, int64_t now_ms,
		     struct printed_task *task, bool *ret_found)
{
	struct task *row = &task->task;
	int r;

	row->id = value_text(value_find(v, "id"));
	*ret_found = usable(row->id, TASK_NAME_MAX) &&
		     task_state_parse(value_text(value_find(v, "state")), &row->state);
	if (!*ret_found)
		return 0;
	if (!value_double(value_find(v, "priority"), &row->priority) || !isfinite(row->priority))
		row->priority = 0;
	row->created_ms = time_in(v, "createdAt");
	row->started_ms = time_in(v, "startedAt");
	row->completed_ms = time_in(v, "completedAt");
	r = read_texts(a, v, row);
	aiwg_import_settle(row, now_ms);
	/* A queued task starts afresh, so earlier output is dropped. */
	if (r == 0 && row->state != TASK_QUEUED)
		r = words_in(a, v, "output", &task->output);
	return r;
}

/* Tasks of the same instant keep their order; seq is their index until the store gives them a real
 * one. */
static int by_age(const void *a, const void *b)
{
	const struct task *left = &((const struct printed_task *)a)->task;
	const struct task *right = &((const struct printed_task *)b)->task;

	if (left->created_ms != right->created_ms)
		return left->created_ms < right->created_ms ? -1 : 1;
	return left->seq < right->seq ? -1 : left->seq > right->seq;
}

int aiwg_tasks_read(struct arena *a, struct text text, struct text project, int64_t timeout_ms,
		    struct printed_task **ret_tasks, unsigned *ret_n, struct error *error)
{
	int64_t now_ms = clock_utc_ms();
	const struct value *list;
	struct printed_task *tasks;
	struct value *root;
	unsigned n = 0;
	int r = json_read(a, text.data, text.len, &json_default_limits, &root, error);

	if (r != 0)
		return r;
	list = value_find(root, "tasks");
	if (!list || list->kind != VALUE_ARRAY || list->len > AIWG_IMPORT_MAX)
		return refuse(error, REFUSE_PARAMS, "expected a list of at most %d tasks",
			      AIWG_IMPORT_MAX);
	tasks = arena_zalloc(a, (list->len + 1) * sizeof(tasks[0]));
	if (!tasks)
		return -ENOMEM;
	value_each (item, list) {
		bool found;

		tasks[n].task = (struct task) {.project = project,
					       .seq = n,
					       .exit_status = -1,
					       .timeout_ms = timeout_ms,
					       .max_attempts = 1,
					       .retry_ms = 1000};
		r = read_task(a, item, now_ms, &tasks[n], &found);
		if (r != 0)
			return r;
		n += found;
	}
	qsort(tasks, n, sizeof(tasks[0]), by_age);
	*ret_tasks = tasks;
	*ret_n = n;
	return 0;
}
