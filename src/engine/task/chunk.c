/*
 * What a task prints is in a file of the host that runs it. Where there are other hosts, its end is
 * also in the store, in chunks: not more often than every half second, and nobody waits for it. What
 * comes before the task's end is on its way before that is.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/host/chunk.h"
#include "store/store.h"

enum { CHUNK_MS = 500, CHUNK_MAX = 256 << 10 }; /* of what was printed meanwhile, the last bytes */

struct unsent {
	struct buf bytes;
	int64_t end; /* the place after them */
	struct timer *pause;
	bool first; /* nothing of this attempt was sent yet */
};

struct sending {
	struct work work;
	struct tasks *tasks;
	struct task_chunk chunk;
	struct buf bytes;
};

static int send_run(struct work *w, int lane)
{
	struct sending *s = list_entry(w, struct sending, work);

	(void)lane;
	return store_chunk_add(store_writer(s->tasks->store), &s->chunk);
}

/* What is not kept is missing for those who look from elsewhere; the file has it. */
static void send_finished(struct work *w, int result)
{
	struct sending *s = list_entry(w, struct sending, work);

	if (result != 0 && result != -ECANCELED)
		log_debug("could not send output", "error=%d", result);
	buf_done(&s->bytes);
	free(s);
}

void chunk_flush(struct run *r)
{
	struct unsent *u = r->unsent;
	struct sending *s = u && u->bytes.len > 0 ? calloc(1, sizeof(*s)) : NULL;
	const struct task *row = &r->live->task;

	if (!s)
		return;
	*s = (struct sending) {.work = {.run = send_run, .finished = send_finished},
			       .tasks = r->tasks,
			       .bytes = u->bytes,
			       .chunk = {.task = row->seq,
					 .attempts = row->attempts,
					 .epoch = row->epoch,
					 .host = node_name(r->tasks->node),
					 .place = u->end - (int64_t)u->bytes.len,
					 .first = u->first,
					 .bytes = {.data = u->bytes.data, .len = u->bytes.len}}};
	buf_init(&u->bytes, 2 * CHUNK_MAX);
	u->first = false;
	background_start(&r->tasks->background, &s->work, true);
}

static void on_pause(void *run)
{
	chunk_flush(run);
}

static struct unsent *unsent_of(struct run *r)
{
	struct unsent *u = r->unsent ? r->unsent : calloc(1, sizeof(*u));

	if (!u || r->unsent)
		return u;
	buf_init(&u->bytes, 2 * CHUNK_MAX);
	u->first = true;
	if (timer_new(r->tasks->loop, on_pause, r, &u->pause) != 0) {
		free(u);
		return NULL;
	}
	r->unsent = u;
	return u;
}

void chunk_printed(struct run *r, const char *data, size_t n, int64_t end)
{
	struct unsent *u = r->live->task.epoch ? unsent_of(r) : NULL;

	if (!u)
		return;
	if (u->bytes.len == 0)
		timer_start(u->pause, CHUNK_MS);
	tail_add(&u->bytes, CHUNK_MAX, data, n);
	if (u->bytes.err != 0)
		buf_clear(&u->bytes);
	u->end = end;
}

void chunk_done(struct run *r)
{
	if (!r->unsent)
		return;
	timer_free(r->unsent->pause);
	buf_done(&r->unsent->bytes);
	free(r->unsent);
}
