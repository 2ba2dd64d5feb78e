/*
 * Submitting a task: the loop checks it, the writer stores it, then it waits or runs. And changing one that has not
 * begun: the store decides by its row whether it still may be changed. Until that is known the task is kept back
 * here; then it takes over what is stored, and its place in the queue is found again.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/pack.h"
#include "engine/chat/chat.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum {
	METADATA_MAX = 1 << 20,
	/* A length of up to five bytes stands before each word. */
	PACKED_COMMAND_MAX = TASK_COMMAND_MAX + 8 * TASK_WORDS_MAX,
};

struct submit {
	struct request request;
	struct project *project;
	struct task row;
	struct text id; /* as it was given */
	enum task_state *after_states;
	int64_t queue_size;
	bool until_begun;
	struct text tool_use_id;
	task_submitted_fn fn;
};

static int check_env(const struct task_new *in, struct error *error)
{
	if (in->n_env > TASK_ENV_MAX)
		return refuse_field(error, "env", "too many variables in env (limit %d)",
				    TASK_ENV_MAX);
	for (unsigned i = 0; i < in->n_env; i++) {
		const char *equals = memchr(in->env[i].data, '=', in->env[i].len);

		if (!equals || equals == in->env[i].data ||
		    memchr(in->env[i].data, '\0', in->env[i].len))
			return refuse_field(error, "env", "env[%u] must be NAME=VALUE", i);
	}
	return 0;
}

static int check_times(const struct task_new *in, struct error *error)
{
	if (task_is_time(in->task.timeout_ms) && task_is_time(in->delay_ms) &&
	    task_is_time(in->task.retry_ms))
		return 0;
	return refuse(error, REFUSE_PARAMS,
		      "timeout, delay and retry delay must be between 0 and 100 years, not %lld, "
		      "%lld and %lld ms",
		      (long long)in->task.timeout_ms, (long long)in->delay_ms,
		      (long long)in->task.retry_ms);
}

static int check_runner(const struct tasks *t, struct text runner, struct error *error)
{
	if (!runner.data || text_is(runner, CODING_AGENT) || chat_agent(t->chat, runner))
		return 0;
	return refuse_field(error, "runner", "agent not found: '%.*s'",
			    (int)(runner.len < 60 ? runner.len : 60), runner.data);
}

/* The client may be on another machine, or see other folders than we do. */
static int check_folder(struct text cwd, struct error *error)
{
	char path[PATH_MAX];
	struct stat st;
	int e = 0;

	if (cwd.len == 0 || cwd.data[0] != '/')
		return refuse_field(error, "cwd", "cwd must be an absolute path, not '%.*s'",
				    TEXT_ARGS(text_cut(cwd, 200)));
	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(cwd));
	if (stat(path, &st) != 0)
		e = errno;
	else if (!S_ISDIR(st.st_mode))
		e = ENOTDIR;
	else if (access(path, X_OK) != 0)
		e = errno;
	if (e == 0)
		return 0;
	return refuse_field(error, "cwd", "cwd %.150s%s: %s", path, cwd.len > 150 ? "..." : "",
			    strerror(e));
}

/* It stands in a line of a list, and is typed again: no control character. */
static int check_label(struct text label, struct error *error)
{
	int r = text_check(label, "label", TASK_LABEL_MAX, error);

	if (r != 0 || !label.data)
		return r;
	if (label.len == 0)
		return refuse_field(error, "label", "label is empty");
	for (size_t i = 0; i < label.len; i++) {
		if ((unsigned char)label.data[i] < ' ' || label.data[i] == 0x7f)
			return refuse_field(error, "label", "label has a control character");
	}
	return 0;
}

static int check_where(const struct tasks *t, struct text host, struct text label,
		       struct error *error)
{
	if (label.data && (label.len == 0 || label.len > TASK_NAME_MAX))
		return refuse_field(error, "on", "'on' must have 1 to %d bytes, not %zu",
				    TASK_NAME_MAX, label.len);
	if (label.data && !node_shares(t->node))
		return refuse_field(error, "on", "'on' requires a store that several hosts share");
	if (!host.data || text_is(host, TASK_ANY_HOST) || node_find(t->node, host))
		return 0;
	return refuse_field(error, "host", "host not found: '%.*s'",
			    (int)(host.len < HOST_NAME_MAX_BYTES ? host.len : HOST_NAME_MAX_BYTES),
			    host.data);
}

/* What it needs of a folder is at the host where it is submitted; who names another knows better. */
static void choose_host(const struct tasks *t, struct task *row)
{
	if (text_is(row->on_host, TASK_ANY_HOST))
		row->on_host = (struct text) {0};
	else if (!row->on_host.data && !row->on_label.data &&
		 (row->project.len > 0 || row->cwd.data))
		row->on_host = node_name(t->node);
}

static int check_texts(const struct task_new *in, struct error *error)
{
	const struct text_limit texts[] = {
		{in->task.prompt, "prompt", TASK_PROMPT_MAX},
		{in->task.agent, "agent", TASK_NAME_MAX},
		{in->task.group, "group", TASK_NAME_MAX},
		{in->task.cwd, "cwd", PATH_MAX - 1},
	};

	if (in->task.prompt.len == 0 && !in->task.command.value)
		return refuse_field(error, "prompt", "prompt is empty");
	return texts_check(texts, sizeof(texts) / sizeof(texts[0]), error) ?:
		check_label(in->task.label, error) ?:
		(in->task.cwd.data ? check_folder(in->task.cwd, error) : 0);
}

static int check_new(const struct tasks *t, const struct task_new *in, struct error *error)
{
	int r = check_texts(in, error);

	if (r != 0)
		return r;
	if (!isfinite(in->task.priority))
		return refuse_field(error, "priority", "priority must be a finite number");
	r = check_env(in, error) ?: check_runner(t, in->task.runner, error)
		    ?: check_where(t, in->task.on_host, in->task.on_label, error);
	if (r != 0)
		return r;
	if (in->task.after.n > TASK_AFTER_MAX)
		return refuse_field(error, "after", "'after' has more than %d task ids",
				    TASK_AFTER_MAX);
	r = check_times(in, error);
	if (r != 0)
		return r;
	if (in->retries < 0 || in->retries > 1000)
		return refuse_field(error, "retries",
				    "retries must be between 0 and 1000, not %lld",
				    (long long)in->retries);
	return 0;
}

int task_check_room(const struct tasks *t, struct error *error)
{
	if (t->records.stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (t->n_queued + t->n_coming >= t->queue)
		return refuse(error, REFUSE_LIMIT, "Queue full: %u/%u", t->n_queued + t->n_coming,
			      t->queue);
	return 0;
}

static int check_project(struct tasks *t, struct text name, struct error *error)
{
	const struct project *p = project_find(t, name, false);
	unsigned n;

	if (!p)
		return refuse_field(error, "project", "project not found on this host: '%.*s'",
				    (int)(name.len < 100 ? name.len : 100), name.data);
	n = (unsigned)p->n[TASK_QUEUED] + p->n_coming;
	if (p->queue > 0 && n >= p->queue)
		return refuse(error, REFUSE_LIMIT, "Queue full: %u/%u", n, p->queue);
	return 0;
}

static int copy_env(struct submit *s, const struct task_new *in)
{
	size_t n = 0;
	char *at;

	for (unsigned i = 0; i < in->n_env; i++)
		n += in->env[i].len + 1;
	if (n == 0)
		return 0;
	at = arena_alloc(&s->request.arena, n);
	if (!at)
		return -ENOMEM;
	s->row.env = (struct text) {.data = at, .len = n};
	for (unsigned i = 0; i < in->n_env; i++) {
		memcpy(at, in->env[i].data, in->env[i].len);
		at += in->env[i].len;
		*at++ = '\0';
	}
	return 0;
}

static int copy_after(struct arena *a, const struct texts *from, struct texts *ret_after)
{
	struct text *after = arena_alloc(a, (from->n + 1) * sizeof(after[0]));
	unsigned n = 0;

	if (!after)
		return -ENOMEM;
	for (unsigned i = 0; i < from->n; i++) {
		bool again = false;

		for (unsigned k = 0; k < n; k++)
			again = again || text_equal(after[k], from->items[i]);
		if (!again && arena_copy_text(a, from->items[i], &after[n++]) != 0)
			return -ENOMEM;
	}
	*ret_after = (struct texts) {.items = after, .n = n};
	return 0;
}

static int pack(struct submit *s, struct packed *tree, size_t max)
{
	struct buf out;
	int r;

	if (!tree->value)
		return 0;
	buf_init(&out, max);
	value_pack(&out, tree->value);
	r = out.err;
	if (r == 0)
		r = arena_copy_text(&s->request.arena,
				    (struct text) {.data = out.data, .len = out.len}, &tree->bytes);
	/* The client's tree does not live long enough. */
	tree->value = NULL;
	buf_done(&out);
	return r;
}

static int64_t default_timeout(const struct tasks *t, const struct project *p)
{
	return p->timeout_ms ?: t->opts.timeout_ms;
}

static int task_submit_fill(struct submit *s, const struct task_new *in, struct error *error)
{
	const struct tasks *t = s->request.tasks;
	int64_t now_ms = clock_utc_ms();
	int r;

	s->row = in->task;
	r = program_check(t, &s->request.arena, &s->row, s->project, error);
	if (r != 0)
		return r;
	s->row.project = s->project->name;
	choose_host(t, &s->row);
	s->row.created_ms = now_ms;
	s->row.not_before_ms = in->delay_ms ? now_ms + in->delay_ms : 0;
	s->row.exit_status = -1;
	s->row.max_attempts = in->retries + 1;
	if (s->row.timeout_ms == 0)
		s->row.timeout_ms = default_timeout(t, s->project);
	if (s->row.retry_ms == 0)
		s->row.retry_ms = 1000;
	r = schema_copy(&task_schema, &s->request.arena, &s->row)
		    ?: arena_copy_text(&s->request.arena, in->tool_use_id, &s->tool_use_id);
	s->id = s->row.id;
	if (r != 0)
		return r;
	r = copy_env(s, in) ?: copy_after(&s->request.arena, &in->task.after, &s->row.after)
		    ?: pack(s, &s->row.metadata, METADATA_MAX);
	return r ?: pack(s, &s->row.command, PACKED_COMMAND_MAX);
}

static int read_after_states(struct tasks *t, struct arena *a, const struct task *row,
			     enum task_state **ret_states, struct error *error)
{
	enum task_state *states = arena_zalloc(a, (row->after.n + 1) * sizeof(states[0]));

	if (!states)
		return -ENOMEM;
	for (unsigned i = 0; i < row->after.n; i++) {
		struct text id = row->after.items[i];
		bool found;
		int r = store_task_state(store_writer(t->store), row->project, id, &states[i],
					 &found);

		if (r != 0)
			return r;
		if (!found)
			return refuse_field(error, "after", "Task not found: %.*s",
					    (int)(id.len < 60 ? id.len : 60), id.data);
		if (states[i] == TASK_FAILED || states[i] == TASK_CANCELLED)
			return refuse_field(error, "after", "%.*s is %s", TEXT_ARGS(id),
					    task_state_name(states[i]));
	}
	*ret_states = states;
	return 0;
}

static int submit_run(struct work *w, int lane)
{
	struct submit *s = list_entry(w, struct submit, request.work);
	struct connection *db = store_writer(s->request.tasks->store);

	s->row.id = s->id;
	return read_after_states(s->request.tasks, &s->request.arena, &s->row, &s->after_states,
			      &s->request.error)
			?: store_task_add(db, &s->request.arena, &s->row, &s->row.seq, &s->row.id)
			?: task_event_add(s->request.tasks, "task.queued", &s->row, s->queue_size,
					  s->tool_use_id);
}

static void submit_done(struct submit *s, int result, const struct task_submitted *submitted)
{
	s->fn(s->request.arg, result, submitted, &s->request.error);
	request_free(&s->request);
}

static void submit_took(struct submit *s, enum task_state state)
{
	const struct task_submitted submitted = {
		.project = s->project->name, .id = s->row.id, .state = state};

	submit_done(s, 0, &submitted);
}

static void on_begun(void *arg, enum task_state state)
{
	submit_took(arg, state);
}

static void take_submitted(struct submit *s, struct live *l)
{
	struct tasks *t = s->request.tasks;

	project_count(l->project, TASK_QUEUED, 1);
	queue_enter(t, l, s->after_states, false);
	queue_run(t);
	/* If its program could not be started, it has already failed; it counts as submitted all
	 * the same. */
	if (s->until_begun && l->run)
		l->run->waiter = (struct run_waiter) {.fn = on_begun, .arg = s};
	else
		submit_took(s, l->task.state);
}

static void submit_finished(struct work *w, int result)
{
	struct submit *s = list_entry(w, struct submit, request.work);
	struct live *l;

	s->request.tasks->n_coming--;
	s->project->n_coming--;
	if (result != 0) {
		submit_done(s, result, NULL);
		return;
	}
	l = live_new(s->request.tasks, s->project, &s->row);
	/* The store has it: the next start finds it there. */
	if (!l)
		submit_done(s, -ENOMEM, NULL);
	else
		take_submitted(s, l);
}

static struct submit *submit_new(struct tasks *t, struct project *p, const struct task_new *in,
				 task_submitted_fn fn, void *arg)
{
	struct submit *s =
		request_new(t, sizeof(*s), p->name, (struct text) {0}, submit_run, submit_finished);

	if (!s)
		return NULL;
	s->project = p;
	s->until_begun = in->until_begun;
	s->fn = fn;
	s->request.arg = arg;
	s->queue_size = p->n[TASK_QUEUED] + p->n_coming + 1;
	return s;
}

static int check_submit(struct tasks *t, struct text project, const struct task_new *in,
			struct error *error)
{
	return check_new(t, in, error) ?: task_check_room(t, error)
		       ?: check_project(t, project, error);
}

int task_submit(struct tasks *t, const struct task_new *in, task_submitted_fn fn, void *arg,
		struct error *error)
{
	struct text project = in->task.project.data ? in->task.project : TEXT("");
	struct project *p;
	struct submit *s;
	int r = check_submit(t, project, in, error);

	if (r != 0)
		return r;
	p = project_find(t, project, false);
	s = submit_new(t, p, in, fn, arg);
	if (!s)
		return -ENOMEM;
	r = request_submit(s, task_submit_fill(s, in, error), true);
	t->n_coming += r == 0;
	p->n_coming += r == 0;
	return r;
}

/* ---- editing ---- */

enum { LOOKS_AGAIN = 3 };

struct task_submit_edit {
	struct request request;
	struct task_edit wanted;
	double priority;
	int64_t timeout_ms;
	struct texts after;
	struct task row; /* as it is stored then */
	struct store_task_kept kept;
	enum task_state *after_states;
};

static int refuse_begun(struct text id, enum task_state state, struct error *error)
{
	return refuse(error, REFUSE_CONFLICT, "Task %.*s is %s; only queued tasks can be edited",
		      TEXT_ARGS(id), task_state_name(state));
}

/* ---- on the writer's thread ---- */

static struct text text_or(struct text given, struct text is)
{
	if (!given.data)
		return is;
	return given.len > 0 ? given : (struct text) {0};
}

static void overlay(struct task_submit_edit *e)
{
	struct task *row = &e->row;

	row->prompt = text_or(e->wanted.prompt, row->prompt);
	row->label = text_or(e->wanted.label, row->label);
	row->runner = text_or(e->wanted.runner, row->runner);
	row->on_host = !text_is(e->wanted.on_host, TASK_ANY_HOST)
			       ? text_or(e->wanted.on_host, row->on_host)
			       : (struct text) {0};
	row->on_label = text_or(e->wanted.on_label, row->on_label);
	if (e->wanted.priority)
		row->priority = e->priority;
	if (e->wanted.timeout_ms)
		row->timeout_ms = e->timeout_ms;
	if (e->wanted.after)
		row->after = e->after;
}

static int refuse_command(const struct task_submit_edit *e, struct error *error)
{
	const char *field = e->wanted.prompt.data ? "prompt" : "runner";

	return refuse_field(error, field, "Task %.*s is a command: it has no %s to edit",
			    TEXT_ARGS(e->request.id), field);
}

/* "task-0001 would come after itself: task-0001 after task-0002 after task-0001" */
static int refuse_circle(const struct task_submit_edit *e, const struct text *ids, unsigned n,
			 struct error *error)
{
	enum { SHOWN = 4 };
	struct buf way;
	int r;

	buf_init(&way, sizeof(error->text));
	for (unsigned i = 0; i < n && i < SHOWN; i++)
		buf_printf(&way, "%.*s after ", TEXT_ARGS(ids[i]));
	r = refuse_field(error, "after",
			 "dependency cycle: %.*s would depend on itself: %.*s%s%.*s",
			 TEXT_ARGS(e->request.id), (int)way.len, way.data,
			 n > SHOWN ? "... after " : "", TEXT_ARGS(e->request.id));
	buf_done(&way);
	return r;
}

/* In the same transaction as the change, so that two changes cannot close a circle together. */
static int check_circle(struct task_submit_edit *e, struct connection *db)
{
	struct text *ids;
	unsigned n;
	int r = store_task_circle(db, e->row.project, e->row.id, &e->request.arena, &ids, &n);

	return r != 0 || n == 0 ? r : refuse_circle(e, ids, n, &e->request.error);
}

static int find_row(struct task_submit_edit *e, struct connection *db)
{
	unsigned n;
	int r = store_task_find(db, e->request.project, e->request.id, &e->request.arena, &e->row,
				&n);

	if (r != 0)
		return r;
	if (n == 0)
		return task_refuse(0, e->request.id, &e->request.error);
	if (e->row.state != TASK_QUEUED)
		return refuse_begun(e->request.id, e->row.state, &e->request.error);
	if (e->row.command.bytes.data && (e->wanted.prompt.data || e->wanted.runner.data))
		return refuse_command(e, &e->request.error);
	return 0;
}

static int change(struct task_submit_edit *e, struct connection *db)
{
	bool after = e->wanted.after != NULL;
	int r = find_row(e, db);

	if (r != 0)
		return r;
	overlay(e);
	if (after)
		r = read_after_states(e->request.tasks, &e->request.arena, &e->row,
				      &e->after_states, &e->request.error);
	return r ?: store_task_edit(db, &e->row, after, &e->kept);
}

/* Another host may change it in between: then it is looked at again. */
static int edit_run(struct work *w, int lane)
{
	struct task_submit_edit *e = list_entry(w, struct task_submit_edit, request.work);
	struct connection *db = store_writer(e->request.tasks->store);
	bool after = e->wanted.after != NULL;
	int r = after ? store_task_lock_project(db, e->request.project) : 0;

	if (r == 0)
		r = change(e, db);
	for (unsigned i = 0; i < LOOKS_AGAIN && r == -ENOENT; i++)
		r = change(e, db);
	if (r == -ENOENT)
		return refuse_begun(e->request.id, TASK_RUNNING, &e->request.error);
	if (r == 0 && after)
		r = check_circle(e, db);
	return r != 0 ? r
		      : task_event_add(e->request.tasks, "task.edited", &e->row, 0,
				       (struct text) {0});
}

/* ---- on the loop ---- */

/* What its user may change, and what is in memory only if all of it fits. */
static struct task edited(const struct task *was, const struct task *row)
{
	struct task task = *was;

	task.prompt = row->prompt;
	task.label = row->label;
	task.runner = row->runner;
	task.priority = row->priority;
	task.timeout_ms = row->timeout_ms;
	task.on_host = row->on_host;
	task.on_label = row->on_label;
	task.command = row->command;
	task.env = row->env;
	task.metadata = row->metadata;
	return task;
}

static int apply(struct task_submit_edit *e, struct live *l)
{
	struct tasks *t = e->request.tasks;
	const struct task next = edited(&l->task, &e->row);
	int r;

	/* Another host's change came after it, and is here already. */
	if (l->task.version >= e->kept.version)
		return 0;
	r = live_set_row(l, &next, e->wanted.after);
	l->task.version = e->kept.version;
	if (r == 0 && e->wanted.after)
		queue_enter(t, l, e->after_states, false);
	return r;
}

/* It may have been cancelled meanwhile, or even forgotten. */
static void edit_finished(struct work *w, int result)
{
	struct task_submit_edit *e = list_entry(w, struct task_submit_edit, request.work);
	struct tasks *t = e->request.tasks;
	bool holds = false;
	unsigned n;
	struct live *l = live_find(t, e->request.project, e->request.id, &n);

	if (l && l->n_edits > 0) {
		l->n_edits--;
		holds = true;
	}
	if (result == 0 && l && l->task.state == TASK_QUEUED)
		result = apply(e, l);
	else if (result == 0)
		result = refuse_begun(e->request.id, l ? l->task.state : TASK_CANCELLED,
				      &e->request.error);
	if (l && l->task.version < e->kept.version)
		l->task.version = e->kept.version;
	if (l && l->task.state == TASK_QUEUED)
		queue_place(l);
	if (holds)
		record_release(&l->record);
	request_done(&e->request, result);
	queue_run(t);
}

static int copy_wanted(struct task_submit_edit *e, const struct live *l, const struct task_edit *in)
{
	e->wanted = *in;
	if (in->priority) {
		e->priority = *in->priority;
		e->wanted.priority = &e->priority;
	}
	if (in->timeout_ms) {
		e->timeout_ms = *in->timeout_ms ? *in->timeout_ms
						: default_timeout(e->request.tasks, l->project);
		e->wanted.timeout_ms = &e->timeout_ms;
	}
	if (in->after)
		e->wanted.after = &e->after;
	return arena_copy_text(&e->request.arena, in->prompt, &e->wanted.prompt)
		       ?: arena_copy_text(&e->request.arena, in->label, &e->wanted.label)
		       ?: arena_copy_text(&e->request.arena, in->runner, &e->wanted.runner)
		       ?: arena_copy_text(&e->request.arena, in->on_host, &e->wanted.on_host)
		       ?: arena_copy_text(&e->request.arena, in->on_label, &e->wanted.on_label)
		       ?: (in->after ? copy_after(&e->request.arena, in->after, &e->after) : 0);
}

static int edit_submit(struct tasks *t, struct live *l, const struct task_edit *in, task_done_fn fn,
		       void *arg)
{
	struct task_submit_edit *e =
		request_new(t, sizeof(*e), l->project->name, l->task.id, edit_run, edit_finished);
	int r;

	if (!e)
		return -ENOMEM;
	e->request.fn = fn;
	e->request.arg = arg;
	r = request_submit(e, copy_wanted(e, l, in), true);
	if (r != 0)
		return r;
	l->n_edits++;
	record_hold(&l->record);
	queue_place(l);
	return 0;
}

static struct text unless_empty(struct text t)
{
	return t.len > 0 ? t : (struct text) {0};
}

/* By the rules for a new one. */
static int check_edit(const struct tasks *t, const struct live *l, const struct task_edit *in,
		      struct error *error)
{
	const struct task_new like = {
		.task = {.prompt = in->prompt.data ? in->prompt : TEXT("unchanged"),
			 .label = unless_empty(in->label),
			 .runner = unless_empty(in->runner),
			 .on_host = in->on_host,
			 .on_label = unless_empty(in->on_label),
			 .priority = in->priority ? *in->priority : 0,
			 .timeout_ms = in->timeout_ms ? *in->timeout_ms : 0,
			 .after = in->after ? *in->after : (struct texts) {0}}};

	if (t->records.stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (!in->prompt.data && !in->label.data && !in->runner.data && !in->priority &&
	    !in->timeout_ms && !in->after && !in->on_host.data && !in->on_label.data)
		return refuse(error, REFUSE_PARAMS, "the edit contains no changes");
	if (l->task.state != TASK_QUEUED)
		return refuse_begun(l->task.id, l->task.state, error);
	return check_new(t, &like, error);
}

int task_edit(struct tasks *t, struct text project, struct text id, const struct task_edit *in,
	      task_done_fn fn, void *arg, struct error *error)
{
	struct live *l;
	int r = task_find_open(t, project, id, fn, arg, &l, error);

	return l ? check_edit(t, l, in, error) ?: edit_submit(t, l, in, fn, arg) : r;
}
