/*
 * Tasks as the daemon runs them: a loop, the workers' threads, a real store, real children (shell
 * scripts in the place of claude), and the recall agent.
 */
#pragma once

#include "stage.h"

#include <sys/stat.h>

#include "agent/command/command.h"
#include "agent/recall/recall.h"
#include "dialect/aiwg/aiwg.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "engine/task/task.h"
#include "io/process/tree.h"

struct world {
	struct stage stage;
	struct tree_keeper *keeper;
	char program[200]; /* a script; what it does is in its prompt */
	char output[200];
	char project[200];
	unsigned queue;
	unsigned parallel;
	unsigned timeout_ms;
	unsigned interrupt_ms;
};

/* The prompt is run by sh: "claude -p -- 'echo hello'". */
static inline void write_program(struct world *w)
{
	FILE *f;

	snprintf(w->program, sizeof(w->program), "%s/agent", w->stage.f->dir);
	f = fopen(w->program, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n"
		   "[ \"$1\" = -p ] || exit 90\n"
		   "all=$*\n"
		   "shift\n"
		   "[ \"$1\" != --agent ] || shift 2\n"
		   "[ $# != 0 ] || exec sh -s\n"
		   "[ \"$1\" = -- ] || exit 91\n"
		   "exec sh -c \"$2\" agent \"$all\"\n");
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(w->program, 0700), 0);
}

static inline struct agent *new_recall(struct world *w)
{
	const struct recall_opts opts = {
		.name = "recall", .budget = 8000, .reserve = 2000, .rank = chat_rank};
	struct agent *a;

	assert_int_equal(recall_new(w->stage.loop, &opts, &a), 0);
	return a;
}

/* Answers with its prompt, which it reads from stdin. */
static inline struct agent *new_echo(struct world *w)
{
	const struct command_opts opts = {
		.name = "echo", .command = "cat", .input = COMMAND_STDIN, .budget = 8000};
	struct agent *a;
	struct error error;

	assert_int_equal(command_new(w->stage.loop, &opts, &a, &error), 0);
	return a;
}

static inline void start_chat(struct world *w)
{
	struct agent *agents[2] = {new_recall(w), new_echo(w)};
	const struct chat_opts opts = {.store = w->stage.f->engine->store,
				       .events = w->stage.f->engine->events,
				       .memories = w->stage.f->engine->memories,
				       .loop = w->stage.loop,
				       .workers = stage_workers(&w->stage),
				       .agents = agents,
				       .n_agents = 2,
				       .agent = "recall",
				       .system = ""};
	struct error error;

	assert_int_equal(chat_start(&opts, &w->stage.f->engine->chat, &error), 0);
}

static inline void world_open(struct world *w)
{
	const char *const program[] = {w->program, NULL};
	const struct task_project projects[] = {{.folder = w->project, .program = program},
						{.folder = w->stage.f->dir}};
	const struct task_group_limit groups[] = {{.name = "alone", .parallel = 1}};
	const struct events_opts events = {.store = w->stage.f->engine->store,
					   .loop = w->stage.loop,
					   .workers = stage_workers(&w->stage)};
	struct tasks_opts opts = {
		.store = w->stage.f->engine->store,
		.loop = w->stage.loop,
		.workers = stage_workers(&w->stage),
		.output_folder = w->output,
		.wording = &aiwg_task_wording,
		.project_parallel = w->parallel,
		.queue = w->queue,
		.timeout_ms = w->timeout_ms,
		.interrupt_ms = w->interrupt_ms,
		.groups = groups,
		.n_groups = 1,
		.projects = projects,
		.n_projects = 2,
	};
	struct error error = {0};

	assert_int_equal(events_start(&events, &w->stage.f->engine->events), 0);
	start_chat(w);
	opts.events = w->stage.f->engine->events;
	opts.chat = w->stage.f->engine->chat;
	if (tasks_start(&opts, &w->stage.f->engine->tasks, &error) != 0)
		fail_msg("%s", error.text);
	stage_open(&w->stage);
}

static inline struct tasks *tasks_of(struct world *w)
{
	return w->stage.f->engine->tasks;
}

static inline int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct fixture *f;

	if (setup((void **)&f) != 0)
		return -1;
	stage_make(&w->stage, f);
	assert_int_equal(tree_keeper_new(w->stage.loop, &w->keeper), 0);
	snprintf(w->output, sizeof(w->output), "%s/output", f->dir);
	snprintf(w->project, sizeof(w->project), "%s/project", f->dir);
	assert_int_equal(mkdir(w->project, 0700), 0);
	w->parallel = 2;
	w->queue = 50;
	w->interrupt_ms = 200;
	write_program(w);
	world_open(w);
	*state = w;
	return 0;
}

static inline void world_close(struct world *w)
{
	stage_close(&w->stage);
	engine_close(w->stage.f->engine);
	w->stage.f->engine = NULL;
}

static inline int world_teardown(void **state)
{
	struct world *w = *state;
	struct fixture *f = w->stage.f;

	world_close(w);
	fixture_open(f, 1 << 20);
	teardown((void **)&f);
	tree_keeper_free(w->keeper);
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
	free(w);
	return 0;
}

/* As a crash leaves it. */
static inline void world_reopen(struct world *w)
{
	world_close(w);
	fixture_open(w->stage.f, 64 << 20);
	world_open(w);
}

/* ---- asking ---- */

struct told {
	int n;
	int result;
	struct error error;
	char id[40];
	enum task_state state;
};

static inline void on_submitted(void *arg, int result, const struct task_submitted *task,
				const struct error *error)
{
	struct told *t = arg;

	t->n++;
	t->result = result;
	t->error = *error;
	if (task) {
		snprintf(t->id, sizeof(t->id), "%.*s", TEXT_ARGS(task->id));
		t->state = task->state;
	}
}

static inline void on_done(void *arg, int result, const struct error *error)
{
	struct told *t = arg;

	t->n++;
	t->result = result;
	t->error = *error;
}

/* What a function that takes a callback has returned: if it refuses, it does not call that. */
static inline void note_refusal(struct told *t, int result)
{
	t->n += result != 0;
	if (result != 0)
		t->result = result;
}

static inline void on_retried(void *arg, int result, const struct text *ids, unsigned n,
			      const struct error *error)
{
	on_done(arg, result, error);
}

static inline struct told submit(struct world *w, const struct task_new *in)
{
	struct told told = {0};

	note_refusal(&told, task_submit(tasks_of(w), in, on_submitted, &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static inline struct task_new plain_task(struct world *w, const char *prompt)
{
	return (struct task_new) {
		.task = {.project = text_of(w->project), .prompt = text_of(prompt)}};
}

static inline struct told run(struct world *w, const char *prompt)
{
	const struct task_new in = plain_task(w, prompt);
	struct told told = submit(w, &in);

	if (told.result != 0)
		fail_msg("%s", told.error.text);
	return told;
}

static inline struct told cancel(struct world *w, const char *id)
{
	struct told told = {0};

	note_refusal(&told, task_cancel(tasks_of(w), text_of(w->project), text_of(id), on_done,
					&told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static inline struct told retry(struct world *w, const char *id)
{
	struct told told = {0};

	note_refusal(&told, task_retry(tasks_of(w), text_of(w->project), text_of(id), on_retried,
				       &told, &told.error));
	stage_until(&w->stage, told.n);
	return told;
}

static inline struct printed_task get_printed(struct world *w, const char *id)
{
	struct task_output output = {.offset = -4096, .max = 4096};
	struct printed_task task;

	assert_int_equal(task_get(tasks_of(w), 1, &w->stage.f->arena, text_of(w->project),
				  text_of(id), &task.task, &output, &w->stage.f->error),
			 0);
	task.output = output.bytes;
	return task;
}

static inline struct text printed(struct world *w, const char *id)
{
	return get_printed(w, id).output;
}

static inline struct task get(struct world *w, const char *id)
{
	return get_printed(w, id).task;
}

/* Asked thousands of times on a slow machine: what it reads is given back at once. */
static inline bool is(struct world *w, const char *id, enum task_state state)
{
	struct arena arena;
	struct task task;

	arena_init(&arena, 64 << 20);
	assert_int_equal(task_get(tasks_of(w), 1, &arena, text_of(w->project), text_of(id), &task,
				  NULL, &w->stage.f->error),
			 0);
	arena_reset(&arena);
	return task.state == state;
}

static inline struct task wait_for(struct world *w, const char *id, enum task_state state)
{
	stage_until(&w->stage, is(w, id, state));
	return get(w, id);
}

static inline struct task_counts counts(struct world *w)
{
	struct task_counts n;

	task_count(tasks_of(w), text_of(w->project), &n);
	return n;
}

/* A program's sign that it has come so far. */
static inline bool file_there(struct world *w, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", w->project, name);
	return access(path, F_OK) == 0;
}

static inline void make_file(struct world *w, const char *name)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", w->project, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static inline bool text_has(struct text t, const char *part)
{
	return t.data && memmem(t.data, t.len, part, strlen(part));
}
