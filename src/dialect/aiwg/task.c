/* A project's tasks: submitting, cancelling, showing. */
#include <errno.h>

#include "base/object_builder.h"
#include "base/utf8.h"
#include "call/client.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/engine.h"
#include "wire/json.h"

enum {
	OUTPUT_SHOWN = 256 << 10, /* the last bytes of a task's output */
	LIST_BYTES = 8 << 20,     /* bytes after which a list ends, complete or not */
};

/* ---- one task ---- */

static const char *const states[N_TASK_STATES] = {
	[TASK_QUEUED] = "queued", [TASK_RUNNING] = "running",     [TASK_COMPLETED] = "completed",
	[TASK_FAILED] = "failed", [TASK_CANCELLED] = "cancelled",
};

#define MEMBER(kind, field) MEMBER_OF(struct task, kind, field)

enum { EACH = AIWG_TASK | AIWG_RUNNING | AIWG_QUEUED };

/* clang-format off */
static const struct member members[] = {
	{"id", NULL, MEMBER(TEXT, id), EACH},
	{"prompt", NULL, MEMBER(TEXT, prompt), EACH},
	{"agent", NULL, MEMBER(TEXT, agent), EACH},
	{"priority", NULL, MEMBER(REAL, priority), AIWG_TASK | AIWG_QUEUED},
	{"state", NULL, MEMBER(ENUM, state), AIWG_TASK, MEMBER_NAMES(states)},
	{"createdAt", NULL, MEMBER(TIME, created_ms), AIWG_TASK, NONE_IS_ZERO},
	{"startedAt", NULL, MEMBER(TIME, started_ms), AIWG_TASK | AIWG_RUNNING, NONE_IS_ZERO},
	{"completedAt", NULL, MEMBER(TIME, completed_ms), AIWG_TASK, NONE_IS_ZERO},
	{"pid", NULL, MEMBER(INT, pid), AIWG_TASK | AIWG_RUNNING, NONE_IS_ZERO},
	{"result", NULL, MEMBER(BLOB, result), AIWG_TASK},
	{"error", NULL, MEMBER(TEXT, error), AIWG_TASK},
	{"metadata", NULL, MEMBER(PACKED, metadata), AIWG_METADATA, .absent = ABSENT_EMPTY},
	{"project", NULL, MEMBER(TEXT, project), AIWG_FOLDERS},
	{"cwd", NULL, MEMBER(TEXT, cwd), AIWG_FOLDERS},
};
/* clang-format on */

static const struct schema task_shown = SCHEMA(struct task, members);

void aiwg_write_task(struct json *j, const struct task *t, uint32_t which)
{
	json_members(j, &task_shown, (struct selection) {which}, t, 0);
}

/* A text whose beginning was cut off may begin inside a character. */
static struct text whole_characters(struct text t)
{
	size_t n = 0;

	if (!t.data)
		return TEXT("");
	while (n < t.len && n < 3 && ((unsigned char)t.data[n] & 0xc0) == 0x80)
		n++;
	return (struct text) {.data = t.data + n, .len = t.len - n};
}

/* In a list, a text is cut to this many bytes without splitting a character. */
static struct text list_text(struct text t)
{
	if (t.len >= TASK_LIST_TEXT)
		t.len = utf8_whole(t.data, TASK_LIST_TEXT);
	return t;
}

static void write_task(const struct call *c, struct json *j, const struct task *task,
		       struct text output)
{
	struct task shown = *task;
	char unstarted[AIWG_UNSTARTED];

	if (c->dialect == &aiwg_dialect &&
	    aiwg_word_unstarted(task->error, task->exit_status, unstarted))
		shown.error = text_of(unstarted);
	/* koine's own task.show has the results of tasks in other states. */
	if (shown.state != TASK_COMPLETED)
		shown.result = (struct text) {0};
	/* Metadata is shown only in its unpacked form. */
	shown.metadata.bytes = (struct text) {0};
	json_begin_object(j);
	aiwg_write_task(j, &shown, AIWG_TASK);
	json_member_text(j, "output", whole_characters(output));
	aiwg_write_task(j, &shown, AIWG_METADATA);
	/* The original's clients know only the thirteen members above. */
	if (c->dialect != &aiwg_dialect)
		aiwg_write_task(j, &shown, AIWG_FOLDERS);
	json_end_object(j);
}

/* ---- submit, chat ---- */

static void submitted(void *arg, int r, const struct task_submitted *task,
		      const struct error *error)
{
	struct call *c = arg;
	struct json *j = call_object_for(c, r, error);

	if (!j)
		return;
	json_member_text(j, "taskId", task->id);
	/* chat.send does not answer with the state. */
	if (c->method->handle == aiwg_task_submit)
		json_member_str(j, "state", task_state_name(task->state));
	(void)call_reply_object(c);
}

static struct done submit(struct call *c, const struct task_new *task)
{
	return call_await(c, task_submit(call_tasks(c), task, submitted, c, &c->error));
}

/* The original treats "" as missing. */
static int need_text(struct call *c, struct text t, unsigned field)
{
	if (t.len > 0)
		return 0;
	return refuse_field(&c->error, c->method->fields[field].name,
			    "Missing required parameter: %s", c->method->fields[field].name);
}

struct done aiwg_task_submit(struct call *c)
{
	const struct aiwg_submit_in *in = c->in;
	const struct task_new task = {
		.task = {.project = aiwg_folder(c, in->project),
			 .prompt = in->prompt,
			 .agent = in->agent.len > 0 ? in->agent : (struct text) {0},
			 .priority = in->priority},
		/* The original's clients expect the pid at once. */
		.until_begun = c->dialect == &aiwg_dialect,
	};
	int r = need_text(c, in->prompt, 0);

	if (r == 0 && task.until_begun)
		client_hold_for(c);
	return r != 0 ? call_fail(c, r) : submit(c, &task);
}

struct done aiwg_chat_send(struct call *c)
{
	const struct aiwg_submit_in *in = c->in;
	struct object_builder source;
	struct task_new task = {
		.task = {.project = aiwg_folder(c, in->project),
			 .prompt = in->prompt,
			 .priority = in->priority == 0 ? 5 : in->priority},
	};
	int r = need_text(c, in->prompt, 0);

	object_begin(&source, &c->arena);
	object_text(&source, "source", TEXT("ipc-chat"));
	if (r == 0)
		r = source.err;
	task.task.metadata.value = source.root;
	return r != 0 ? call_fail(c, r) : submit(c, &task);
}

/* ---- cancel ---- */

static void cancelled(void *arg, int r, const struct error *error)
{
	struct call *c = arg;

	(void)call_answer(c, r, error, PAIRS(JSON_BOOL("cancelled", true)));
}

struct done aiwg_task_cancel(struct call *c)
{
	const struct aiwg_task_in *in = c->in;
	int r = need_text(c, in->id, 0);

	if (r != 0)
		return call_fail(c, r);
	return call_await(c, task_cancel(call_tasks(c), aiwg_folder(c, in->project), in->id,
					 cancelled, c, &c->error));
}

/* ---- list ---- */

/* c->state, shared by the loop and a reader's thread. */
struct aiwg_task_listing {
	struct task_filter filter;
	struct task *tasks;
	unsigned n;
};

/* Returns false if no task can be in that state. */
static bool read_state(const struct value *v, int *ret_state)
{
	enum task_state state;

	*ret_state = -1;
	if (aiwg_is_nothing(v))
		return true;
	if (!task_state_parse(value_text(v), &state))
		return false;
	*ret_state = (int)state;
	return true;
}

/* The rendered task is kept until the task changes. */
static void write_task_now(const struct call *c, struct json *j, const struct task_now *now)
{
	struct buf *words = now->words;
	struct json own = {.out = words};

	if (words && words->len == 0 && words->err == 0)
		write_task(c, &own, now->task, (struct text) {0});
	if (words && words->err == 0)
		json_raw(j, words->data, words->len);
	else
		write_task(c, j, now->task, (struct text) {0});
}

static void write_task_read(const struct call *c, struct json *j, const struct task *t)
{
	struct task cut = *t;

	cut.prompt = list_text(cut.prompt);
	cut.result = list_text(cut.result);
	cut.error = list_text(cut.error);
	write_task(c, j, &cut, (struct text) {0});
}

static struct done reply_tasks(struct call *c, const struct task_now *now, const struct task *read,
			       unsigned n)
{
	struct json *j = call_result(c);

	json_begin_array(j);
	for (unsigned i = 0; i < n && j->out->len < LIST_BYTES; i++) {
		if (now)
			write_task_now(c, j, &now[i]);
		else
			write_task_read(c, j, &read[i]);
	}
	json_end_array(j);
	return call_reply(c);
}

static int list_read(struct call *c)
{
	struct aiwg_task_listing *l = c->state;

	return task_list(call_tasks(c), c->lane, &c->arena, &l->filter, &l->tasks, &l->n, NULL);
}

static struct done list_was_read(struct call *c, int r)
{
	const struct aiwg_task_listing *l = c->state;

	return r != 0 ? call_fail(c, r) : reply_tasks(c, NULL, l->tasks, l->n);
}

static struct done list_from_store(struct call *c, const struct task_filter *f)
{
	struct aiwg_task_listing *l = arena_zalloc(&c->arena, sizeof(*l));

	if (!l)
		return call_fail(c, -ENOMEM);
	l->filter = *f;
	c->state = l;
	return call_work(c, READER, list_read, list_was_read);
}

struct done aiwg_task_list(struct call *c)
{
	const struct aiwg_list_in *in = c->in;
	struct task_filter f = {.project = aiwg_folder(c, in->project), .rendered_by = c->dialect};
	const struct task_now *tasks;
	unsigned n;
	int r = aiwg_read_limit(in->limit, &f.limit, &c->error);

	if (r != 0)
		return call_fail(c, r);
	if (!read_state(in->state, &f.state))
		return reply_tasks(c, NULL, NULL, 0);
	if (task_list_now(call_tasks(c), &f, &tasks, &n))
		return reply_tasks(c, tasks, NULL, n);
	return list_from_store(c, &f);
}

/* ---- get ---- */

struct got {
	struct task task;
	struct task_output output;
	bool again; /* it was read twice */
};

static int get_read(struct call *c)
{
	const struct aiwg_task_in *in = c->in;
	struct got *got = c->state;

	got->output = (struct task_output) {.offset = -OUTPUT_SHOWN, .max = OUTPUT_SHOWN};
	return task_get(call_tasks(c), c->lane, &c->arena, aiwg_folder(c, in->project), in->id,
			&got->task, &got->output, &c->error);
}

static struct done get_was_read(struct call *c, int r)
{
	struct got *got = c->state;

	if (r != 0)
		return call_fail(c, r);
	if (!task_catch_up(call_tasks(c), &got->task, &got->output) && !got->again) {
		got->again = true;
		return call_work(c, READER, get_read, get_was_read);
	}
	write_task(c, call_result(c), &got->task, got->output.bytes);
	return call_reply(c);
}

struct done aiwg_task_get(struct call *c)
{
	const struct aiwg_task_in *in = c->in;
	int r = need_text(c, in->id, 0);

	c->state = arena_zalloc(&c->arena, sizeof(struct got));
	if (r == 0 && !c->state)
		r = -ENOMEM;
	if (r != 0)
		return call_fail(c, r);
	return call_work(c, READER, get_read, get_was_read);
}

/* ---- stats ---- */

struct done aiwg_task_stats(struct call *c)
{
	const struct aiwg_project_in *in = c->in;
	struct task_counts counts;
	struct json *j = call_object(c);

	task_count(call_tasks(c), aiwg_folder(c, in->project), &counts);
	json_member_int(j, "total", counts.total);
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		json_member_int(j, task_state_name((enum task_state)i), counts.n[i]);
	return call_reply_object(c);
}
