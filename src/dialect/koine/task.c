/* Tasks: adding one, looking at them, retrying and releasing. task_follow.c has the output. */
#include "dialect/koine/task.h"

#include <errno.h>

#include "call/call.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/task_json.h"
#include "engine/approval/approval.h"
#include "dialect/engine.h"

enum { LINE_BYTES = 512 }; /* bytes of output searched for its last line */

struct add_in {
	struct task_new new; /* fields that need no conversion are read into it directly */
	const struct value *after;
	const struct value *env;
};

struct find_in {
	struct text state;
	struct text group;
	struct text label;
	int64_t limit;
	bool lines;
	struct text project;
};

struct groups_in {
	struct text project;
};

/* ---- adding one ---- */

int koine_read_after(const struct value *list, struct arena *a, struct task_new *new,
		     struct why *why)
{
	struct text *after;
	unsigned n = 0;

	if (!list)
		return 0;
	if (list->len > TASK_AFTER_MAX)
		return refuse_field(why, "after", "more than %d tasks to come after",
				    TASK_AFTER_MAX);
	after = arena_alloc(a, (list->len + 1) * sizeof(after[0]));
	if (!after)
		return -ENOMEM;
	value_each (id, list) {
		if (id->kind != VALUE_STRING)
			return refuse_field(why, "after", "after[%u] must be the id of a task", n);
		after[n++] = value_text(id);
	}
	new->task.after = (struct texts) {.items = after, .n = n};
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
				    "a variable's name must not be empty, nor have '='");
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
		return refuse_field(why, "env", "more than %d variables", TASK_ENV_MAX);
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

static struct done handle_add(struct call *c)
{
	const struct add_in *in = c->in;
	struct task_new new = in->new;
	int r = koine_read_after(in->after, &c->arena, &new, &c->why);

	if (r == 0)
		r = read_env(in->env, &c->arena, &new, &c->why);
	if (r != 0)
		return call_fail(c, r);
	/* This takes a single commit, so there is nothing to cancel. */
	(void)call_later(c, NULL, NULL);
	task_submit(call_tasks(c), &new, on_added, c);
	return call_settled(c);
}

/* ---- retrying, releasing ---- */

void koine_task_did(struct call *c, int r, const struct why *why, struct text id, const char *did)
{
	struct json *j;

	if (r != 0) {
		(void)call_fail_for(c, r, why);
		return;
	}
	j = call_result(c);
	json_begin_object(j);
	json_member_text(j, "id", id);
	json_member_bool(j, did, true);
	json_end_object(j);
	(void)call_reply(c);
}

static void answer_done(struct call *c, int r, const struct why *why, const char *did)
{
	const struct task_in *in = c->in;

	koine_task_did(c, r, why, in->id, did);
}

static void on_retried(void *arg, int r, const struct why *why)
{
	answer_done(arg, r, why, "retried");
}

static void on_released(void *arg, int r, const struct why *why)
{
	answer_done(arg, r, why, "released");
}

/* Only a human may release a task that somebody else has queued. */
static int release_work(struct call *c)
{
	const struct approval_client from = {.is = true, .peer = c->peer};

	return approval_may_decide(call_approvals(c), &c->arena, &from, &c->why);
}

static struct done release_then(struct call *c, int r)
{
	const struct task_in *in = c->in;

	if (r != 0)
		return call_fail(c, r);
	task_release(call_tasks(c), in->project, in->id, on_released, c);
	return call_settled(c);
}

static struct done handle_release(struct call *c)
{
	return call_work(c, WRITER, release_work, release_then);
}

static struct done handle_retry(struct call *c)
{
	const struct task_in *in = c->in;

	(void)call_later(c, NULL, NULL);
	task_retry(call_tasks(c), in->project, in->id, on_retried, c);
	return call_settled(c);
}

/* ---- looking ---- */

static int show_work(struct call *c)
{
	const struct task_in *in = c->in;

	return task_get(call_tasks(c), c->lane, &c->arena, in->project, in->id, c->state, &c->why);
}

/* The store may not have the latest changes yet. */
static struct done show_then(struct call *c, int r)
{
	struct task *t = c->state;

	if (r != 0)
		return call_fail(c, r);
	task_catch_up(call_tasks(c), t);
	task_json_write(call_result(c), t);
	return call_reply(c);
}

static struct done handle_show(struct call *c)
{
	c->state = arena_zalloc(&c->arena, sizeof(struct task));
	if (!c->state)
		return call_fail(c, -ENOMEM);
	return call_work(c, READER, show_work, show_then);
}

struct finding {
	struct task_filter filter;
	struct task_counts counts;
	struct task *tasks;
	unsigned n;
	struct text *lines; /* the last line of each task's output; NULL: not wanted */
};

/* Finds the last line that is not blank. */
static struct text last_line(struct text t)
{
	const char *start;

	while (t.len > 0 && (unsigned char)t.data[t.len - 1] <= ' ')
		t.len--;
	if (t.len == 0)
		return (struct text) {0};
	start = t.data + t.len;
	while (start > t.data && start[-1] != '\n' && start[-1] != '\r')
		start--;
	return (struct text) {.data = start, .len = (size_t)(t.data + t.len - start)};
}

static int find_lines(struct call *c, struct finding *f)
{
	f->lines = arena_zalloc(&c->arena, (f->n + 1) * sizeof(f->lines[0]));
	if (!f->lines)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n; i++) {
		const struct task *row = &f->tasks[i];
		struct task_output output = {0};
		int r;

		if (row->state == TASK_QUEUED)
			continue;
		r = task_output(call_tasks(c), c->lane, &c->arena, row->project, row->id,
				-LINE_BYTES, LINE_BYTES, &output, &c->why);
		if (r < 0)
			return r;
		/* The output of a task that was swept meanwhile is empty. */
		f->lines[i] = last_line(output.bytes);
	}
	return 0;
}

static int find_work(struct call *c)
{
	const struct find_in *in = c->in;
	struct finding *f = c->state;
	int r = task_list(call_tasks(c), c->lane, &c->arena, &f->filter, &f->tasks, &f->n, &c->why);

	if (r == 0 && in->lines)
		r = find_lines(c, f);
	return r;
}

static struct done find_then(struct call *c, int r)
{
	const struct finding *f = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_result(c);
	json_begin_object(j);
	json_key(j, "tasks");
	json_begin_array(j);
	for (unsigned i = 0; i < f->n; i++) {
		task_catch_up(call_tasks(c), &f->tasks[i]);
		task_json_begin_short(j, &f->tasks[i]);
		if (f->lines)
			json_member_text(j, "last_line", f->lines[i]);
		json_end_object(j);
	}
	json_end_array(j);
	json_key(j, "counts");
	json_begin_object(j);
	json_member_int(j, "total", f->counts.total);
	task_json_counts(j, f->counts.n);
	json_end_object(j);
	task_json_pauses(j, call_tasks(c));
	json_end_object(j);
	return call_reply(c);
}

/* The counts come from the loop, the tasks from the store. */
static struct done handle_find(struct call *c)
{
	const struct find_in *in = c->in;
	struct finding *f = arena_zalloc(&c->arena, sizeof(*f));
	enum task_state state;

	if (!f)
		return call_fail(c, -ENOMEM);
	f->filter = (struct task_filter) {
		.project = in->project,
		.state = -1,
		.group = in->group,
		.label = in->label,
		.limit = in->limit,
		.brief = true,
	};
	if (in->limit < 0)
		return call_fail(c, refuse_field(&c->why, "limit", "limit must not be negative"));
	if (in->state.data && !task_state_parse(in->state, &state))
		return call_fail(c, refuse_field(&c->why, "state",
						 "state must be queued, running, completed, "
						 "failed or cancelled"));
	if (in->state.data)
		f->filter.state = (int)state;
	task_count(call_tasks(c), in->project, &f->counts);
	c->state = f;
	return call_work(c, READER, find_work, find_then);
}

struct grouping {
	struct json *json;
	struct task_tally *groups;
	unsigned n;
};

static int groups_work(struct call *c)
{
	const struct groups_in *in = c->in;
	struct grouping *g = c->state;

	return task_groups(call_tasks(c), c->lane, &c->arena, in->project, &g->groups, &g->n);
}

static void write_group(struct json *j, const struct task_tally *group, bool paused)
{
	json_begin_object(j);
	json_member_text(j, "group", group->name);
	task_json_counts(j, group->n);
	json_member_bool(j, "paused", paused);
	json_end_object(j);
}

/* One that is paused is shown even if it has no tasks. */
static void write_paused(void *arg, struct text name)
{
	const struct grouping *g = arg;

	for (unsigned i = 0; i < g->n; i++) {
		if (text_equal(g->groups[i].name, name))
			return;
	}
	write_group(g->json, &(struct task_tally) {.name = name}, true);
}

static struct done groups_then(struct call *c, int r)
{
	struct grouping *g = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = g->json = call_result(c);
	json_begin_object(j);
	json_key(j, "groups");
	json_begin_array(j);
	for (unsigned i = 0; i < g->n; i++)
		write_group(j, &g->groups[i],
			    task_group_is_paused(call_tasks(c), g->groups[i].name));
	tasks_each_paused(call_tasks(c), write_paused, g);
	json_end_array(j);
	json_member_bool(j, "paused", tasks_paused(call_tasks(c)));
	json_end_object(j);
	return call_reply(c);
}

/* The counts come from the store, the pauses from the loop. */
static struct done handle_groups(struct call *c)
{
	c->state = arena_zalloc(&c->arena, sizeof(struct grouping));
	if (!c->state)
		return call_fail(c, -ENOMEM);
	return call_work(c, READER, groups_work, groups_then);
}

/* ---- the method table ---- */

static const struct field task_fields[] = {TASK_FIELDS(struct task_in)};

static const struct field output_fields[] = {
	TASK_FIELDS(struct task_in),
	{.name = "offset",
	 .type = FIELD_INT,
	 .doc = "The byte to begin with; negative: so many before the end",
	 .offset = offsetof(struct task_in, offset)},
	{.name = "max",
	 .type = FIELD_INT,
	 .default_number = TASK_PIECE,
	 .doc = "How many bytes at most, up to a million",
	 .offset = offsetof(struct task_in, max)},
};

static const struct field follow_fields[] = {
	TASK_FIELDS(struct task_in),
	{.name = "offset",
	 .type = FIELD_INT,
	 .doc = "The byte to begin with; negative: so many before the end",
	 .offset = offsetof(struct task_in, offset)},
};

static const struct field add_fields[] = {
	{.name = "prompt",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "What is to be done",
	 .offset = offsetof(struct add_in, new.task.prompt)},
	{.name = "agent",
	 .type = FIELD_STRING,
	 .doc = "A name for whoever runs it: claude's --agent",
	 .offset = offsetof(struct add_in, new.task.agent)},
	{.name = "runner",
	 .type = FIELD_STRING,
	 .doc = "An agent of the settings, or \"claude\"; the default one without",
	 .offset = offsetof(struct add_in, new.task.runner)},
	{.name = "priority",
	 .type = FIELD_NUMBER,
	 .doc = "The highest goes first",
	 .offset = offsetof(struct add_in, new.task.priority)},
	{.name = "group",
	 .type = FIELD_STRING,
	 .doc = "What it belongs to; settings may say how many of one run at once",
	 .offset = offsetof(struct add_in, new.task.group)},
	{.name = "label",
	 .type = FIELD_STRING,
	 .doc = "A short name for lists, at most 80 bytes",
	 .offset = offsetof(struct add_in, new.task.label)},
	{.name = "stash",
	 .type = FIELD_BOOL,
	 .doc = "Keep it back until task.enqueue",
	 .offset = offsetof(struct add_in, new.task.stashed)},
	{.name = "after",
	 .type = FIELD_ARRAY,
	 .doc = "Ids of tasks of the same project that must be completed first",
	 .offset = offsetof(struct add_in, after)},
	{.name = "cwd",
	 .type = FIELD_STRING,
	 .doc = "The folder it runs in, absolute; the project's without",
	 .offset = offsetof(struct add_in, new.task.cwd)},
	{.name = "env",
	 .type = FIELD_OBJECT,
	 .doc = "Variables for its environment: names and strings",
	 .offset = offsetof(struct add_in, env)},
	{.name = "timeout",
	 .type = FIELD_INT,
	 .doc = "Milliseconds that one attempt may take; as the settings say without",
	 .offset = offsetof(struct add_in, new.task.timeout_ms)},
	{.name = "delay",
	 .type = FIELD_INT,
	 .doc = "Milliseconds before it may begin",
	 .offset = offsetof(struct add_in, new.delay_ms)},
	{.name = "retries",
	 .type = FIELD_INT,
	 .doc = "How often it is tried again when it fails",
	 .offset = offsetof(struct add_in, new.retries)},
	{.name = "retry_delay",
	 .type = FIELD_INT,
	 .doc = "Milliseconds before the second attempt, twice as many each time; a second without",
	 .offset = offsetof(struct add_in, new.task.retry_ms)},
	{.name = "metadata",
	 .type = FIELD_OBJECT,
	 .doc = "The client's own",
	 .offset = offsetof(struct add_in, new.task.metadata.value)},
	{.name = "project",
	 .type = FIELD_STRING,
	 .doc = "The folder it belongs to; none without",
	 .offset = offsetof(struct add_in, new.task.project)},
};

static const struct field find_fields[] = {
	{.name = "state",
	 .type = FIELD_STRING,
	 .doc = "queued, running, completed, failed or cancelled; any without",
	 .offset = offsetof(struct find_in, state)},
	{.name = "group",
	 .type = FIELD_STRING,
	 .doc = "Those of one group",
	 .offset = offsetof(struct find_in, group)},
	{.name = "label",
	 .type = FIELD_STRING,
	 .doc = "Those with this label",
	 .offset = offsetof(struct find_in, label)},
	{.name = "limit",
	 .type = FIELD_INT,
	 .default_number = 20,
	 .doc = "How many at most, up to 1000",
	 .offset = offsetof(struct find_in, limit)},
	{.name = "lines",
	 .type = FIELD_BOOL,
	 .doc = "The last line of each one's output, too",
	 .offset = offsetof(struct find_in, lines)},
	TASK_PROJECT(struct find_in, "Those of one folder; \"\": those of none; all without"),
};

static const struct field groups_fields[] = {
	TASK_PROJECT(struct groups_in, "Those of one folder; \"\": those of none; all without"),
};

#define AN_OBJECT "{\"type\":\"object\"}"
#define STATE     "\"state\":{\"enum\":[\"queued\",\"running\",\"completed\",\"failed\",\"cancelled\"]}"
#define NAME      "\"project\":{\"type\":\"string\"},\"id\":{\"type\":\"string\"}"
#define END                                                                                        \
	"{\"type\":\"object\",\"properties\":{" NAME "," STATE                                     \
	",\"exit_status\":{\"type\":[\"integer\",\"null\"]},"                                      \
	"\"signal\":{\"type\":[\"integer\",\"null\"]},\"error\":{\"type\":[\"string\",\"null\"]}}" \
	"}"

const struct method koine_task_methods[] = {
	{.name = "task.add",
	 .doc = "Adds a task; answers when it is on disk",
	 .result = "{\"type\":\"object\",\"properties\":{" NAME "," STATE "}}",
	 FIELDS(add_fields),
	 .in_size = sizeof(struct add_in),
	 .handle = handle_add,
	 .flags = METHOD_LATER},
	{.name = "task.find",
	 .doc = "Tasks, newest first, in short, and how many there are",
	 .result = "{\"type\":\"object\",\"properties\":{\"tasks\":{\"type\":\"array\","
		   "\"items\":" AN_OBJECT "},\"counts\":" AN_OBJECT ","
		   "\"paused\":{\"type\":\"boolean\"},\"paused_groups\":{\"type\":\"array\","
		   "\"items\":{\"type\":\"string\"}}}}",
	 FIELDS(find_fields),
	 .in_size = sizeof(struct find_in),
	 .handle = handle_find,
	 .flags = METHOD_LATER},
	{.name = "task.show",
	 .doc = "All there is to know of a task",
	 .result = AN_OBJECT,
	 FIELDS(task_fields),
	 .in_size = sizeof(struct task_in),
	 .handle = handle_show,
	 .flags = METHOD_LATER},
	{.name = "task.output",
	 .doc = "A piece of what a task has printed",
	 .result = "{\"type\":\"object\",\"properties\":{\"offset\":{\"type\":\"integer\"},"
		   "\"next\":{\"type\":\"integer\"},\"end\":{\"type\":\"integer\"},"
		   "\"text\":{\"type\":\"string\"},\"running\":{\"type\":\"boolean\"}}}",
	 FIELDS(output_fields),
	 .in_size = sizeof(struct task_in),
	 .handle = koine_task_output,
	 .where = READER},
	{.name = "task.follow",
	 .doc = "Tells what a task prints in task.output notifications; answers when it has ended",
	 .result = END,
	 FIELDS(follow_fields),
	 .in_size = sizeof(struct task_in),
	 .handle = koine_task_follow,
	 .flags = METHOD_LATER},
	{.name = "task.wait",
	 .doc = "Answers when a task has ended",
	 .result = END,
	 FIELDS(task_fields),
	 .in_size = sizeof(struct task_in),
	 .handle = koine_task_wait,
	 .flags = METHOD_LATER},
	{.name = "task.retry",
	 .doc = "Queues a task again that failed or was cancelled",
	 .result = "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
		   "\"retried\":{\"const\":true}}}",
	 FIELDS(task_fields),
	 .in_size = sizeof(struct task_in),
	 .handle = handle_retry,
	 .flags = METHOD_LATER},
	{.name = "task.release",
	 .doc = "Lets a task begin that is held: one that a project or an adopted store brought "
		"along",
	 .result = "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
		   "\"released\":{\"const\":true}}}",
	 FIELDS(task_fields),
	 .in_size = sizeof(struct task_in),
	 .handle = handle_release,
	 .flags = METHOD_LATER},
	{.name = "task.groups",
	 .doc = "Groups of tasks, and how many of each are in which state",
	 .result = "{\"type\":\"object\",\"properties\":{\"groups\":{\"type\":\"array\","
		   "\"items\":" AN_OBJECT "},\"paused\":{\"type\":\"boolean\"}}}",
	 FIELDS(groups_fields),
	 .in_size = sizeof(struct groups_in),
	 .handle = handle_groups,
	 .flags = METHOD_LATER},
};

const unsigned koine_n_task_methods = sizeof(koine_task_methods) / sizeof(koine_task_methods[0]);
