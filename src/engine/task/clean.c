/* Forgets tasks that have ended, as their user wishes: some at a time, with all of their output. */
#include <errno.h>
#include <stdlib.h>

#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { CLEANED_AT_ONCE = 100 };

struct clean {
	struct work work;
	struct tasks *tasks;
	struct arena arena; /* of the rows */
	struct arena names;
	struct task_cleaning which;
	struct task *rows;
	unsigned n;
	int64_t n_all;
	task_cleaned_fn fn;
	void *arg;
};

int task_event_cleaned(struct tasks *t, const struct task_cleaning *which, const struct task *rows,
		       unsigned n)
{
	struct event_new e = {.type = "task.cleaned", .project = which->project};
	struct event_data d;
	struct buf seqs;

	event_data_begin(&d);
	packer_text(&d.members, "group", which->group);
	packer_int(&d.members, "count", n);
	buf_init(&seqs, n * (size_t)24 + 1);
	for (unsigned i = 0; t->node && i < n; i++)
		buf_printf(&seqs, "%lld ", (long long)rows[i].seq);
	packer_given(&d.members, "seqs", (struct text) {.data = seqs.data, .len = seqs.len});
	buf_done(&seqs);
	return event_add_data(t->events, &e, &d);
}

static int clean_run(struct work *w, int lane)
{
	struct clean *c = list_entry(w, struct clean, work);
	const struct store_task_query q = {
		.project = c->which.project,
		.group = c->which.group,
		.state = c->which.successful_only ? TASK_COMPLETED : -1,
		.limit = CLEANED_AT_ONCE,
	};
	int r;

	(void)lane;
	r = store_task_clean(store_writer(c->tasks->store), &q, &c->arena, &c->rows, &c->n);
	return r == 0 && c->n > 0 ? task_event_cleaned(c->tasks, &c->which, c->rows, c->n) : r;
}

static void clean_done(struct clean *c, int result)
{
	const struct why why = {0};

	c->fn(c->arg, result, c->n_all, &why);
	arena_done(&c->arena);
	arena_done(&c->names);
	free(c);
}

static void clean_finished(struct work *w, int result)
{
	struct clean *c = list_entry(w, struct clean, work);
	struct tasks *t = c->tasks;

	for (unsigned i = 0; result == 0 && i < c->n; i++)
		task_forget(t, &c->rows[i]);
	if (result == 0)
		c->n_all += c->n;
	if (result != 0 || c->n < CLEANED_AT_ONCE || t->stopping) {
		clean_done(c, result);
		return;
	}
	arena_reset(&c->arena);
	result = t->background.submit(t->background.arg, &c->work, true);
	if (result != 0)
		clean_done(c, result);
}

void task_clean(struct tasks *t, const struct task_cleaning *which, task_cleaned_fn fn, void *arg)
{
	const struct why why = {0};
	struct clean *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		fn(arg, -ENOMEM, 0, &why);
		return;
	}
	c->work = (struct work) {.run = clean_run, .finished = clean_finished, .arena = &c->arena};
	c->tasks = t;
	c->which = *which;
	c->fn = fn;
	c->arg = arg;
	arena_init(&c->arena, TASK_ARENA_MAX);
	arena_init(&c->names, TASK_ARENA_MAX);
	r = arena_copy_text(&c->names, which->project, &c->which.project)
		    ?: arena_copy_text(&c->names, which->group, &c->which.group)
		    ?: t->background.submit(t->background.arg, &c->work, true);
	if (r != 0)
		clean_done(c, r);
}
