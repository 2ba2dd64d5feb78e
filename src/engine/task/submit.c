/* Submitting a task: the loop checks it, the writer stores it, then it waits or runs. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

static const int64_t LONGEST_MS = 100LL * 366 * 24 * 3600 * 1000;

struct submit {
	struct work work;
	struct tasks *tasks;
	struct project *project;
	struct arena arena;
	struct task row;
	struct text id; /* as it was given */
	enum task_state *after_states;
	int64_t queue_size;
	bool until_begun;
	struct text tool_use_id;
	struct why why;
	task_submitted_fn fn;
	void *arg;
};

static int check_text(struct text t, const char *field, size_t max, struct why *why)
{
	if (t.len > max)
		return refuse_field(why, field, "%s is longer than %zu bytes", field, max);
	if (t.data && memchr(t.data, '\0', t.len))
		return refuse_field(why, field, "%s has a NUL byte", field);
	return 0;
}

static int check_env(const struct task_new *in, struct why *why)
{
	if (in->n_env > TASK_ENV_MAX)
		return refuse_field(why, "env", "too many variables in env (limit %d)",
				    TASK_ENV_MAX);
	for (unsigned i = 0; i < in->n_env; i++) {
		const char *equals = memchr(in->env[i].data, '=', in->env[i].len);

		if (!equals || equals == in->env[i].data ||
		    memchr(in->env[i].data, '\0', in->env[i].len))
			return refuse_field(why, "env",
					    "invalid variable in env: expected NAME=VALUE");
	}
	return 0;
}

/* Added to the current time it must fit into 64 bits; nobody waits a hundred years. */
static bool is_time(int64_t ms)
{
	return ms >= 0 && ms <= LONGEST_MS;
}

int task_check_delay(int64_t delay_ms, struct why *why)
{
	if (is_time(delay_ms))
		return 0;
	return refuse_field(why, "delay", "delay must be between 0 and 100 years");
}

static int check_times(const struct task_new *in, struct why *why)
{
	if (is_time(in->task.timeout_ms) && is_time(in->delay_ms) && is_time(in->task.retry_ms))
		return 0;
	return refuse(why, REFUSE_PARAMS,
		      "timeout, delay and retry must be between 0 and 100 years");
}

static int check_runner(const struct tasks *t, struct text runner, struct why *why)
{
	if (!runner.data || text_is(runner, CODING_AGENT) || chat_agent(t->chat, runner))
		return 0;
	return refuse_field(why, "runner", "agent not found: '%.*s'",
			    (int)(runner.len < 60 ? runner.len : 60), runner.data);
}

/* The client may be on another machine, or see other folders than we do. */
static int check_folder(struct text cwd, struct why *why)
{
	char path[PATH_MAX];
	struct stat st;
	int e = 0;

	if (cwd.len == 0 || cwd.data[0] != '/')
		return refuse_field(why, "cwd", "cwd must be an absolute path");
	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(cwd));
	if (stat(path, &st) != 0)
		e = errno;
	else if (!S_ISDIR(st.st_mode))
		e = ENOTDIR;
	else if (access(path, X_OK) != 0)
		e = errno;
	if (e == 0)
		return 0;
	return refuse_field(why, "cwd", "cwd %.150s%s: %s", path, cwd.len > 150 ? "..." : "",
			    strerror(e));
}

/* It stands in a line of a list, and is typed again: no control character. */
static int check_label(struct text label, struct why *why)
{
	int r = check_text(label, "label", TASK_LABEL_MAX, why);

	if (r != 0 || !label.data)
		return r;
	if (label.len == 0)
		return refuse_field(why, "label", "label is empty");
	for (size_t i = 0; i < label.len; i++) {
		if ((unsigned char)label.data[i] < ' ' || label.data[i] == 0x7f)
			return refuse_field(why, "label", "label has a control character");
	}
	return 0;
}

static int check_where(const struct tasks *t, struct text host, struct text label, struct why *why)
{
	if (label.data && (label.len == 0 || label.len > TASK_NAME_MAX))
		return refuse_field(why, "on", "'on' must have 1 to %d bytes", TASK_NAME_MAX);
	if (label.data && !node_shares(t->node))
		return refuse_field(why, "on",
				    "'on' cannot be used: no other host shares this store");
	if (!host.data || text_is(host, TASK_ANY_HOST) || node_find(t->node, host))
		return 0;
	return refuse_field(why, "host", "host not found: '%.*s'",
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

static int check_texts(const struct task_new *in, struct why *why)
{
	const struct {
		const char *field;
		struct text text;
		size_t max;
	} texts[] = {
		{"prompt", in->task.prompt, TASK_PROMPT_MAX},
		{"agent", in->task.agent, TASK_NAME_MAX},
		{"group", in->task.group, TASK_NAME_MAX},
		{"cwd", in->task.cwd, PATH_MAX - 1},
	};

	if (in->task.prompt.len == 0 && !in->task.command.value)
		return refuse_field(why, "prompt", "prompt is empty");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int r = check_text(texts[i].text, texts[i].field, texts[i].max, why);

		if (r != 0)
			return r;
	}
	return check_label(in->task.label, why)
		       ?: (in->task.cwd.data ? check_folder(in->task.cwd, why) : 0);
}

int task_check_new(const struct tasks *t, const struct task_new *in, struct why *why)
{
	int r = check_texts(in, why);

	if (r == 0 && in->task.command.value)
		r = task_command_check(in->task.command.value, why);
	if (r != 0)
		return r;
	if (!isfinite(in->task.priority))
		return refuse_field(why, "priority", "priority must be a number");
	r = check_env(in, why);
	if (r != 0)
		return r;
	r = check_runner(t, in->task.runner, why)
		    ?: check_where(t, in->task.on_host, in->task.on_label, why);
	if (r != 0)
		return r;
	if (in->task.after.n > TASK_AFTER_MAX)
		return refuse_field(why, "after", "'after' has more than %d task ids",
				    TASK_AFTER_MAX);
	r = check_times(in, why);
	if (r != 0)
		return r;
	if (in->retries < 0 || in->retries > 1000)
		return refuse_field(why, "retries", "retries must be between 0 and 1000");
	return 0;
}

int task_check_room(const struct tasks *t, struct why *why)
{
	if (t->stopping)
		return refuse(why, REFUSE_STOPPING, "koined is stopping");
	if (t->n_queued + t->n_coming >= t->queue)
		return refuse(why, REFUSE_LIMIT, "Queue full: %u/%u", t->n_queued + t->n_coming,
			      t->queue);
	return 0;
}

static int check_project(const struct tasks *t, struct text name, struct why *why)
{
	const struct project *p = project_find(t, name);
	unsigned n;

	if (!p)
		return refuse_field(why, "project", "project not found on this host: '%.*s'",
				    (int)(name.len < 100 ? name.len : 100), name.data);
	n = (unsigned)p->n[TASK_QUEUED] + p->n_coming;
	if (p->queue > 0 && n >= p->queue)
		return refuse(why, REFUSE_LIMIT, "Queue full: %u/%u", n, p->queue);
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
	at = arena_alloc(&s->arena, n);
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

int task_copy_after(struct arena *a, const struct texts *from, struct texts *ret_after)
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
		r = arena_copy_text(&s->arena, (struct text) {.data = out.data, .len = out.len},
				    &tree->bytes);
	/* The client's tree does not live long enough. */
	tree->value = NULL;
	buf_done(&out);
	return r;
}

int64_t task_default_timeout(const struct tasks *t, const struct project *p)
{
	return p->timeout_ms ? p->timeout_ms : t->timeout_ms;
}

static int fill(struct submit *s, const struct task_new *in)
{
	const struct tasks *t = s->tasks;
	int64_t now_ms = clock_utc_ms();
	int r;

	s->row = in->task;
	if (in->task.command.value &&
	    task_command_line(&s->arena, in->task.command.value, &s->row.prompt) != 0)
		return -ENOMEM;
	s->row.project = s->project->name;
	choose_host(t, &s->row);
	s->row.created_ms = now_ms;
	s->row.not_before_ms = in->delay_ms ? now_ms + in->delay_ms : 0;
	s->row.exit_status = -1;
	s->row.max_attempts = in->retries + 1;
	if (s->row.timeout_ms == 0)
		s->row.timeout_ms = task_default_timeout(t, s->project);
	if (s->row.retry_ms == 0)
		s->row.retry_ms = 1000;
	r = portrait_copy(&task_portrait, &s->arena, &s->row)
		    ?: arena_copy_text(&s->arena, in->tool_use_id, &s->tool_use_id);
	s->id = s->row.id;
	if (r != 0)
		return r;
	r = copy_env(s, in);
	if (r != 0)
		return r;
	r = task_copy_after(&s->arena, &in->task.after, &s->row.after)
		    ?: pack(s, &s->row.metadata, METADATA_MAX);
	return r != 0 ? r : pack(s, &s->row.command, PACKED_COMMAND_MAX);
}

int task_after_states(struct tasks *t, struct arena *a, const struct task *row,
		      enum task_state **ret_states, struct why *why)
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
			return refuse_field(why, "after", "Task not found: %.*s",
					    (int)(id.len < 60 ? id.len : 60), id.data);
		if (states[i] == TASK_FAILED || states[i] == TASK_CANCELLED)
			return refuse_field(why, "after", "%.*s is %s", TEXT_ARGS(id),
					    task_state_name(states[i]));
	}
	*ret_states = states;
	return 0;
}

static int submit_run(struct work *w, int lane)
{
	struct submit *s = list_entry(w, struct submit, work);
	struct connection *db = store_writer(s->tasks->store);
	int r;

	(void)lane;
	s->row.id = s->id;
	r = task_after_states(s->tasks, &s->arena, &s->row, &s->after_states, &s->why)
		    ?: store_task_add(db, &s->arena, &s->row, &s->row.seq, &s->row.id);
	if (r == 0)
		r = task_event_submitted(s->tasks, &s->row, s->queue_size, s->tool_use_id);
	return r;
}

static void submit_free(struct submit *s)
{
	arena_done(&s->arena);
	free(s);
}

static void submit_done(struct submit *s, int result, const struct task_submitted *told)
{
	s->fn(s->arg, result, told, &s->why);
	submit_free(s);
}

static void submit_took(struct submit *s, enum task_state state)
{
	const struct task_submitted told = {
		.project = s->project->name, .id = s->row.id, .state = state};

	submit_done(s, 0, &told);
}

static void on_begun(void *arg, bool gone, enum task_state state)
{
	if (gone)
		submit_free(arg);
	else
		submit_took(arg, state);
}

static void take_submitted(struct submit *s, struct live *l)
{
	struct tasks *t = s->tasks;

	project_count(l->project, TASK_QUEUED, 1);
	task_enter(t, l, s->after_states, false);
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
	struct submit *s = list_entry(w, struct submit, work);
	struct live *l;

	s->tasks->n_coming--;
	s->project->n_coming--;
	if (result != 0) {
		submit_done(s, result, NULL);
		return;
	}
	l = live_new(s->tasks, s->project, &s->row);
	/* The store has it: the next start finds it there. */
	if (!l)
		submit_done(s, -ENOMEM, NULL);
	else
		take_submitted(s, l);
}

static struct submit *submit_new(struct tasks *t, struct project *p, const struct task_new *in,
				 task_submitted_fn fn, void *arg)
{
	struct submit *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->work =
		(struct work) {.run = submit_run, .finished = submit_finished, .arena = &s->arena};
	s->tasks = t;
	s->project = p;
	s->until_begun = in->until_begun;
	s->fn = fn;
	s->arg = arg;
	s->queue_size = p->n[TASK_QUEUED] + p->n_coming + 1;
	arena_init(&s->arena, TASK_ARENA_MAX);
	t->n_coming++;
	p->n_coming++;
	return s;
}

static int check_submit(const struct tasks *t, struct text project, const struct task_new *in,
			struct why *why)
{
	int r = task_check_new(t, in, why);

	if (r != 0)
		return r;
	r = task_check_room(t, why) ?: check_project(t, project, why);
	return r != 0 ? r
		      : program_check_possible(t, &in->task, in->task.command.value != NULL,
					       project_find(t, project), why);
}

void task_submit(struct tasks *t, const struct task_new *in, task_submitted_fn fn, void *arg)
{
	struct text project = in->task.project.data ? in->task.project : TEXT("");
	struct why why = {0};
	struct submit *s = NULL;
	int r = check_submit(t, project, in, &why);

	if (r == 0)
		s = submit_new(t, project_find(t, project), in, fn, arg);
	if (!s) {
		fn(arg, r != 0 ? r : -ENOMEM, NULL, &why);
		return;
	}
	r = fill(s, in) ?: workers_submit(t->workers, &s->work, true);
	if (r != 0)
		submit_finished(&s->work, r);
}
