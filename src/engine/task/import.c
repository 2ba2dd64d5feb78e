/* Imports tasks that another daemon has stored, with their output, before any of ours runs. */
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "io/process/output_file.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

static int write_output(const char *path, int64_t max, struct text output)
{
	struct output_file *f;
	int r = output_file_open(path, max, &f);

	if (r != 0)
		return r;
	r = output_file_add(f, output.data, output.len);
	output_file_close(f);
	return r;
}

/* A task is imported even if its output cannot be stored. */
static void keep_output(const struct task_import *in, const struct printed_task *t, int64_t seq)
{
	char path[4096];
	int r;

	if (t->output.len == 0)
		return;
	task_path_in(in->output_folder, seq, path, sizeof(path));
	r = write_output(path, in->output_bytes, t->output);
	if (r != 0)
		log_warn("could not store output", "task=%.*s error=%s", TEXT_ARGS(t->task.id),
			 strerror(-r));
}

/* seqs: the numbers of the new ones, 0 for the others. */
static int keep(struct store *store, struct arena *a, const struct task_import *in, int64_t *seqs)
{
	for (unsigned i = 0; i < in->n; i++) {
		struct task row = in->tasks[i].task;
		struct text id;
		int r;

		row.held = row.state == TASK_QUEUED;
		row.output_bytes = (int64_t)in->tasks[i].output.len;
		r = store_task_add(store_writer(store), a, &row, &seqs[i], &id);
		/* It came with an earlier import, or is one of ours. */
		if (r == -EEXIST)
			seqs[i] = 0;
		else if (r != 0)
			return r;
	}
	return 0;
}

int tasks_import(struct store *store, struct arena *a, const struct task_import *in,
		 unsigned *ret_n)
{
	int64_t *seqs = arena_zalloc(a, (in->n + 1) * sizeof(seqs[0]));
	int r = seqs ? store_begin(store) : -ENOMEM;

	if (r != 0)
		return r;
	r = keep(store, a, in, seqs);
	if (r != 0) {
		store_rollback(store);
		return r;
	}
	r = store_commit(store);
	if (r != 0)
		return r;
	/* Do this only now: a number that is rolled back goes to another task, which must not
	 * find a file. */
	r = file_make_folder(in->output_folder);
	if (r != 0)
		log_warn("could not store output", "folder=%s error=%s", in->output_folder,
			 strerror(-r));
	*ret_n = 0;
	for (unsigned i = 0; i < in->n; i++) {
		if (seqs[i] == 0)
			continue;
		keep_output(in, &in->tasks[i], seqs[i]);
		(*ret_n)++;
	}
	return 0;
}
