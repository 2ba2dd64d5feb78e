/*
 * The output of running tasks, for the watches of their callers. Nothing polls: the loop writes the
 * output, so it passes it to the watches, and a watch without news costs nothing.
 *
 * Output is passed on at once, and then again after a pause if there was more, however little a
 * program prints at a time. What came meanwhile is in memory for all; only a caller that is further
 * behind reads the file.
 *
 * What a task prints is in a file of the host that runs it. Where there are other hosts, its end is
 * also in the store, in chunks: at most every half second, without a waiter. What
 * comes before the task's end is on its way before that is.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/host/chunk.h"
#include "store/store.h"

enum { PAUSE_MS = 50 };

/* ---- output ---- */

static void send_piece(struct live *l, struct task_piece *piece)
{
	struct list watches, *first;
	struct task_watch *w;

	list_init(&watches);
	list_splice(&watches, &l->watches);
	while ((first = list_first(&watches))) {
		w = list_entry(first, struct task_watch, link);
		list_remove(first);
		list_append(&l->watches, first);
		if (w->printed)
			w->printed(w, piece);
	}
}

static void send_fresh(struct run *r)
{
	struct fresh *f = &r->fresh;
	struct task_piece piece = {
		.bytes = {.data = f->bytes.data, .len = f->bytes.len},
		.offset = f->end - (int64_t)f->bytes.len,
		.words_from = -1,
	};
	size_t rest = f->bytes.len < OUTPUT_REST_MAX ? f->bytes.len : OUTPUT_REST_MAX;

	f->more = false;
	buf_init(&piece.words, 8 * OUTPUT_FRESH_MAX);
	send_piece(r->live, &piece);
	buf_done(&piece.words);
	buf_consume(&f->bytes, f->bytes.len - rest);
}

/* A piece that is far from what any watch has: each reads by itself. */
void watch_moved(struct live *l)
{
	struct task_piece piece = {.offset = INT64_MAX, .words_from = -1};

	if (l->n_listening > 0)
		send_piece(l, &piece);
}

static void on_pause(void *arg)
{
	struct run *r = arg;

	r->fresh.paused = false;
	if (!r->fresh.more)
		return;
	r->fresh.paused = true;
	timer_start(r->fresh.pause, PAUSE_MS);
	send_fresh(r);
}

/* Without memory for a pause there is none. */
static void send_then_pause(struct run *r)
{
	struct fresh *f = &r->fresh;

	if (f->pause || timer_new(r->tasks->loop, on_pause, r, &f->pause) == 0) {
		f->paused = true;
		timer_start(f->pause, PAUSE_MS);
	}
	send_fresh(r);
}

/* Adds to what is at hand, or forgets it if it does not fit: then it is read from the file. */
static void add_fresh(struct fresh *f, const char *data, size_t n, int64_t end)
{
	bool follows = f->end == end - (int64_t)n;

	if (!follows || f->bytes.len + n > f->bytes.max)
		buf_clear(&f->bytes);
	if (n <= OUTPUT_FRESH_MAX)
		buf_add(&f->bytes, data, n);
	if (f->bytes.err != 0)
		buf_clear(&f->bytes);
	f->end = end;
	f->more = true;
}

static void add_watched(struct run *r, const char *data, size_t n, int64_t end)
{
	struct fresh *f = &r->fresh;

	if (r->live->n_listening == 0) {
		buf_done(&f->bytes);
		f->more = false;
		return;
	}
	add_fresh(f, data, n, end);
	if (!f->paused)
		send_then_pause(r);
}

/* ---- output for other hosts ---- */

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

static void send_chunk(struct run *r)
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
	workers_start(r->tasks->workers, &s->work, true);
}

static void on_chunk_pause(void *run)
{
	send_chunk(run);
}

static struct unsent *unsent_of(struct run *r)
{
	struct unsent *u = r->unsent ? r->unsent : calloc(1, sizeof(*u));

	if (!u || r->unsent)
		return u;
	buf_init(&u->bytes, 2 * CHUNK_MAX);
	u->first = true;
	if (timer_new(r->tasks->loop, on_chunk_pause, r, &u->pause) != 0) {
		free(u);
		return NULL;
	}
	r->unsent = u;
	return u;
}

static void add_unsent(struct run *r, const char *data, size_t n, int64_t end)
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

/* ---- a run's output ---- */

void output_printed(struct run *r, const char *data, size_t n, int64_t end)
{
	add_watched(r, data, n, end);
	add_unsent(r, data, n, end);
}

void output_rest(struct run *r)
{
	if (r->fresh.more && r->live->n_listening > 0)
		send_fresh(r);
	send_chunk(r);
}

void output_done(struct run *r)
{
	timer_free(r->fresh.pause);
	buf_done(&r->fresh.bytes);
	if (!r->unsent)
		return;
	timer_free(r->unsent->pause);
	buf_done(&r->unsent->bytes);
	free(r->unsent);
}
