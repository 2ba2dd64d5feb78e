/* Tasks: looking at them, retrying and releasing. task_add.c adds them, task_follow.c has the output. */
#include "dialect/koine/task.h"

#include <errno.h>

#include "call/call.h"
#include "dialect/koine/koine.h"
#include "dialect/engine.h"

enum { LINE_BYTES = 512 }; /* bytes of output searched for its last line */

struct find_in {
	struct text state;
	struct text group;
	struct text label;
	int64_t limit;
	int64_t before;
	bool lines;
	bool open_first;
	struct text project;
};

struct groups_in {
	struct text project;
};

/* ---- labels in place of ids ---- */

struct naming {
	struct text *project;
	struct text *refs;
	unsigned n;
	struct done (*then)(struct call *c);
};

int koine_task_resolve(struct call *c, struct text *project, struct text *ref)
{
	const struct task_filter f = {
		.project = *project, .state = -1, .label = *ref, .limit = 2, .brief = true};
	struct task *tasks;
	unsigned n = 0;
	int r = 0;

	if (ref->len > 0 && !task_is_id(*ref))
		r = task_list(call_tasks(c), c->lane, &c->arena, &f, &tasks, &n, NULL);
	if (r != 0 || n == 0)
		return r;
	if (n > 1)
		return refuse_field(&c->error, "id",
				    "several tasks have the label '%.*s', such as %.*s and %.*s; "
				    "use an id",
				    TEXT_ARGS(text_cut(*ref, TASK_LABEL_MAX)),
				    TEXT_ARGS(tasks[0].id), TEXT_ARGS(tasks[1].id));
	*project = tasks[0].project;
	*ref = tasks[0].id;
	return 0;
}

static int name_work(struct call *c)
{
	const struct naming *n = c->state;
	int r = 0;

	for (unsigned i = 0; i < n->n && r == 0; i++)
		r = koine_task_resolve(c, n->project, &n->refs[i]);
	return r;
}

static struct done name_then(struct call *c, int r)
{
	const struct naming *n = c->state;

	c->state = NULL;
	return r != 0 ? call_fail(c, r) : n->then(c);
}

struct done koine_task_named(struct call *c, struct text *project, struct text *refs, unsigned n,
			     struct done (*then)(struct call *c))
{
	struct naming *naming;
	unsigned i = 0;

	while (i < n && task_is_id(refs[i]))
		i++;
	if (i == n)
		return then(c);
	naming = arena_zalloc(&c->arena, sizeof(*naming));
	if (!naming)
		return call_fail(c, -ENOMEM);
	*naming = (struct naming) {.project = project, .refs = refs, .n = n, .then = then};
	c->state = naming;
	return call_work(c, READER, name_work, name_then);
}

struct done koine_task_named_one(struct call *c, struct done (*then)(struct call *c))
{
	struct task_in *in = (struct task_in *)c->in;

	return koine_task_named(c, &in->project, &in->id, 1, then);
}

/* ---- retrying ---- */

void koine_task_did(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct task_in *in = c->in;

	(void)call_answer(c, r, error,
			  PAIRS(JSON_TEXT("id", in->id), JSON_BOOL(c->method->arg, true)));
}

static void on_retried(void *arg, int r, const struct text *ids, unsigned n,
		       const struct error *error)
{
	struct call *c = arg;
	const struct task_in *in = c->in;
	struct json *j = call_object_for(c, r, error);

	if (!j)
		return;
	json_member_text(j, "id", in->id);
	json_member_bool(j, "retried", true);
	json_member_array(j, "tasks");
	for (unsigned i = 0; i < n; i++)
		json_text(j, ids[i]);
	json_end_array(j);
	(void)call_reply_object(c);
}

static struct done retry(struct call *c)
{
	const struct task_in *in = c->in;

	return call_await(c,
			  task_retry(call_tasks(c), in->project, in->id, on_retried, c, &c->error));
}

static struct done handle_retry(struct call *c)
{
	return koine_task_named_one(c, retry);
}

/* ---- looking ---- */

static int show_work(struct call *c)
{
	struct task_in *in = (struct task_in *)c->in;

	return koine_task_resolve(c, &in->project, &in->id)
		       ?: task_get(call_tasks(c), c->lane, &c->arena, in->project, in->id, c->state,
				   NULL, &c->error);
}

/* The store may not have the latest changes yet. */
static struct done show_then(struct call *c, int r)
{
	struct task *t = c->state;

	if (r != 0)
		return call_fail(c, r);
	(void)task_catch_up(call_tasks(c), t, NULL);
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

struct koine_task_finding {
	struct task_filter filter;
	struct task_counts counts;
	struct task *tasks;
	unsigned n;
	int64_t next;       /* 0: this is the last page */
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

static int find_lines(struct call *c, struct koine_task_finding *f)
{
	f->lines = arena_zalloc(&c->arena, (f->n + 1) * sizeof(f->lines[0]));
	if (!f->lines)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n; i++) {
		const struct task *row = &f->tasks[i];
		struct task_output output = {.offset = -LINE_BYTES, .max = LINE_BYTES};
		struct task now;
		int r;

		if (row->state == TASK_QUEUED)
			continue;
		r = task_get(call_tasks(c), c->lane, &c->arena, row->project, row->id, &now,
			     &output, &c->error);
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
	struct koine_task_finding *f = c->state;
	int r = task_list(call_tasks(c), c->lane, &c->arena, &f->filter, &f->tasks, &f->n,
			  &f->next);

	if (r == 0 && in->lines)
		r = find_lines(c, f);
	return r;
}

/* Where the next page begins; null: this was the last one. */
static void write_next(struct json *j, const struct koine_task_finding *f)
{
	if (f->next > 0)
		json_member_int(j, "next", f->next);
	else
		json_member_text(j, "next", (struct text) {0});
}

static void write_found(struct json *j, const struct koine_task_finding *f, unsigned i)
{
	task_json_begin_short(j, &f->tasks[i]);
	if (f->lines)
		json_member_text(j, "last_line", f->lines[i]);
	json_end_object(j);
}

/* Tasks may have begun or ended since they were read: the order of a page is that of their states now. */
static void write_open_first(struct json *j, const struct koine_task_finding *f)
{
	static const enum task_state first[] = {TASK_RUNNING, TASK_QUEUED};

	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < f->n; i++) {
			if (f->tasks[i].state == first[k])
				write_found(j, f, i);
		}
	}
	for (unsigned i = 0; i < f->n; i++) {
		if (f->tasks[i].state > TASK_RUNNING)
			write_found(j, f, i);
	}
}

static struct done find_then(struct call *c, int r)
{
	const struct koine_task_finding *f = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "tasks");
	for (unsigned i = 0; i < f->n; i++)
		(void)task_catch_up(call_tasks(c), &f->tasks[i], NULL);
	if (f->filter.open_first)
		write_open_first(j, f);
	for (unsigned i = 0; i < f->n && !f->filter.open_first; i++)
		write_found(j, f, i);
	json_end_array(j);
	write_next(j, f);
	json_member_object(j, "counts");
	json_member_int(j, "total", f->counts.total);
	task_json_counts(j, f->counts.n);
	json_end_object(j);
	task_json_pauses(j, call_tasks(c));
	return call_reply_object(c);
}

/* The counts come from the loop, the tasks from the store. */
static struct done handle_find(struct call *c)
{
	const struct find_in *in = c->in;
	struct koine_task_finding *f = arena_zalloc(&c->arena, sizeof(*f));
	enum task_state state;

	if (!f)
		return call_fail(c, -ENOMEM);
	f->filter = (struct task_filter) {
		.project = in->project,
		.state = -1,
		.group = in->group,
		.label = in->label,
		.limit = in->limit,
		.open_first = in->open_first && !in->state.data,
		.before = in->before,
		.brief = true,
	};
	if (task_word_parse(in->state, &state, &f->filter.skips))
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
	json_member_array(j, "groups");
	for (unsigned i = 0; i < g->n; i++)
		write_group(j, &g->groups[i],
			    task_group_state(call_tasks(c), g->groups[i].name).paused);
	tasks_each_paused(call_tasks(c), write_paused, g);
	json_end_array(j);
	json_member_bool(j, "paused", task_group_state(call_tasks(c), (struct text) {0}).paused);
	return call_reply_object(c);
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

static const struct field task_fields[] = {TASK_FIELDS};

static const struct field output_fields[] = {
	TASK_FIELDS,
	FIELD(INT, task_in, offset,
	      "Offset of the first byte to return; a negative value counts "
	      "from the end"),
	FIELD(INT, task_in, max, "Maximum number of bytes, up to 1000000",
	      .default_number = TASK_PIECE, RANGE(1, TASK_PIECE_MAX)),
};

static const struct field follow_fields[] = {
	TASK_FIELDS,
	FIELD(INT, task_in, offset,
	      "Offset of the first byte to return; a negative value counts "
	      "from the end"),
};

static const struct field find_fields[] = {
	FIELD(STRING, find_in, state,
	      "State: queued, running, completed, failed, skipped or cancelled; default: any",
	      WORDS("queued", "running", "completed", "failed", "skipped", "cancelled")),
	FIELD(STRING, find_in, group, "Return only tasks of this group"),
	FIELD(STRING, find_in, label, "Return only tasks with this label"),
	FIELD(INT, find_in, limit, "Maximum number of tasks, up to 1000", .default_number = 20,
	      AT_LEAST(0)),
	FIELD(INT, find_in, before, "Value of `next` from the previous page", AT_LEAST(0)),
	FIELD(BOOL, find_in, lines, "Include the last output line of each task"),
	FIELD(BOOL, find_in, open_first,
	      "List running tasks first, then queued tasks, then ended tasks"),
	TASK_PROJECT(find_in,
		     "Folder of the project (default: all tasks); \"\" selects tasks without a "
		     "project"),
};

static const struct field groups_fields[] = {
	TASK_PROJECT(groups_in,
		     "Folder of the project (default: all tasks); \"\" selects tasks without a "
		     "project"),
};

#define END                                                                                        \
	"{project:string id:string state:queued|running|completed|failed|skipped|cancelled "       \
	"exit_status:integer|null signal:integer|null error:string|null}"

static const struct method methods[] = {
	{"task.find", "List tasks, newest first, and count tasks by state",
	 "{tasks:[object] next:integer|null counts:object paused:boolean paused_groups:[string]}",
	 FIELDS(find_fields, find_in), .handle = handle_find, .flags = METHOD_LATER},
	{"task.show", "Return one task in full", "object", FIELDS(task_fields, task_in),
	 .handle = handle_show, .flags = METHOD_LATER},
	{"task.output", "Return part of the output of a task",
	 "{offset:integer next:integer end:integer text:string running:boolean}",
	 FIELDS(output_fields, task_in), .handle = koine_task_output, .where = READER},
	{"task.follow",
	 "Stream the output of a task in task.output notifications; return when the task ends", END,
	 FIELDS(follow_fields, task_in), .handle = koine_task_follow, .arg = "output",
	 .flags = METHOD_LATER},
	{"task.wait", "Wait until a task ends", END, FIELDS(task_fields, task_in),
	 .handle = koine_task_follow, .flags = METHOD_LATER},
	{"task.retry",
	 "Retry a failed or cancelled task, and the dependent tasks that were skipped",
	 "{id:string retried:true tasks:[string]}", FIELDS(task_fields, task_in),
	 .handle = handle_retry, .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"task.groups", "Count tasks by group and state", "{groups:[object] paused:boolean}",
	 FIELDS(groups_fields, groups_in), .handle = handle_groups, .flags = METHOD_LATER},
};

const struct method_table koine_task_methods = METHOD_TABLE(methods);
