/*
 * A running task: a supervised program, or a turn of a conversation. It ends when its program
 * has ended or, if it was stopped or is retried, when none of its processes is left.
 *
 * The loop writes its output, so it passes it to the watches of its callers: nothing polls, and a watch without news
 * costs nothing. Output is passed on at once, and then again after a pause if there was more, however little a
 * program prints at a time. What came meanwhile is in memory for all; only a caller that is further behind reads
 * the file.
 *
 * The file is on the host that runs the task. Where there are other hosts, its end is also in the store, in chunks:
 * at most every half second, without a waiter. What comes before the task's end is on its way before that is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "io/process/output_file.h"
#include "engine/chat/chat.h"
#include "engine/node/node.h"
#include "io/process/supervisor.h"
#include "engine/task/inner.h"
#include "store/host/chunk.h"
#include "store/store.h"
#include "store/task.h"

enum {
	RETRY_MAX_MS = 3600 * 1000,
	AGAIN_MS = 1000, /* after an error of the store */
	ERROR_MAX = 128, /* bytes of a message of ours */
	PAUSE_MS = 50,
	OUTPUT_FRESH_MAX = 64 << 10,
	OUTPUT_REST_MAX =
		3, /* bytes that may be the beginning of a character, and are sent again */
};

/* A long prompt is only in the store. */
struct fetch {
	struct request request;
	struct run *run; /* NULL: it is lost */
	struct task row;
	unsigned n;      /* 0: it is gone */
	int64_t printed; /* the place after what other hosts have seen of it */
};

/* ---- its output, for the watches of its callers ---- */

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

static void output_printed(struct run *r, const char *data, size_t n, int64_t end)
{
	add_watched(r, data, n, end);
	add_unsent(r, data, n, end);
}

static void output_rest(struct run *r)
{
	if (r->fresh.more && r->live->n_listening > 0)
		send_fresh(r);
	send_chunk(r);
}

static void output_done(struct run *r)
{
	timer_free(r->fresh.pause);
	buf_done(&r->fresh.bytes);
	if (!r->unsent)
		return;
	timer_free(r->unsent->pause);
	buf_done(&r->unsent->bytes);
	free(r->unsent);
}

/* ---- as an object ---- */

void run_free(struct run *r)
{
	list_remove(&r->begins.link);
	if (r->fetch)
		r->fetch->run = NULL;
	attempt_done(&r->attempt);
	output_file_close(r->output);
	timer_free(r->timer);
	free(r->named);
	free(r->folder);
	buf_done(&r->out);
	output_done(r);
	free(r);
}

static struct run_waiter take_waiter(struct run *r)
{
	struct run_waiter w = r->waiter;

	r->waiter = (struct run_waiter) {NULL, NULL};
	return w;
}

/* Do this last: the callback may do anything, even with this task. */
static void call_waiter(struct run_waiter w, enum task_state state)
{
	if (w.fn)
		w.fn(w.arg, state);
}

static void add_output(struct run *r, const char *data, size_t n)
{
	int64_t from = r->output ? output_file_end(r->output) : 0;
	int e = r->output ? output_file_add(r->output, data, n) : 0;
	int64_t end = r->output ? output_file_end(r->output) : 0;

	if (e != 0 && !r->output_failed) {
		r->output_failed = true;
		log_warn("could not store output", "task=%.*s error=%s",
			 TEXT_ARGS(r->live->task.id), strerror(-e));
	}
	if (end > from)
		output_printed(r, data, (size_t)(end - from), end);
}

static void task_run_on_output(void *arg, bool is_stderr, const char *data, size_t n)
{
	struct run *r = arg;

	add_output(r, data, n);
	if (!is_stderr)
		tail_add(&r->out, TASK_RESULT_MAX, data, n);
}

/* ---- the end ---- */

static void release(struct tasks *t, struct live *l)
{
	list_remove(&l->link);
	node_set_running(t->node, --t->n_running);
	l->project->n_running--;
	if (l->group)
		l->group->n_running--;
	l->run = NULL;
	l->task.pid = 0;
	l->task.pid_started = 0;
}

static uint64_t backoff(const struct task *row)
{
	uint64_t ms = (uint64_t)row->retry_ms;
	unsigned char noise = 128;

	for (int64_t i = 1; i < task_tries(row) && ms < RETRY_MAX_MS; i++)
		ms *= 2;
	if (ms > RETRY_MAX_MS)
		ms = RETRY_MAX_MS;
	/* Vary it by a quarter, so that tasks that failed together are not retried together. */
	if (getrandom(&noise, 1, GRND_NONBLOCK) != 1)
		noise = 128;
	return ms * 3 / 4 + ms * noise / 512;
}

/* An attempt that our own stop has ended does not count, and its task waits for nothing. */
static void try_again(struct tasks *t, struct live *l, struct text error, bool stopped)
{
	uint64_t wait = stopped ? 0 : backoff(&l->task);

	l->task.stops += stopped;
	live_set_text(l, &l->task.error, error);
	l->task.not_before_ms = clock_utc_ms() + (int64_t)wait;
	task_put_back(t, l, wait, "task.retrying");
}

static struct text error_of(const struct run *r, char out[ERROR_MAX])
{
	const struct task_wording *wording = r->tasks->opts.wording;
	const struct attempt *a = &r->attempt;
	struct text said = attempt_said(a);

	if (a->intent == INTENT_TIMEOUT) {
		wording->timed_out(out, ERROR_MAX, r->live->task.timeout_ms);
		return text_of(out);
	}
	if (a->intent == INTENT_STOP)
		return text_of(wording->stopped);
	if (a->failed)
		return text_of(a->error.text);
	if (a->dropped)
		return TEXT("the conversation was cancelled");
	if (said.len > 0)
		return said;
	wording->exited(out, ERROR_MAX, a->status, a->signal);
	return text_of(out);
}

static enum task_state state_of(const struct run *r)
{
	static const enum task_state states[N_OUTCOMES] = {
		[OUTCOME_DONE] = TASK_COMPLETED,      [OUTCOME_FAILED] = TASK_FAILED,
		[OUTCOME_CANCELLED] = TASK_CANCELLED, [OUTCOME_KILLED] = TASK_CANCELLED,
		[OUTCOME_DROPPED] = TASK_FAILED,
	};

	return states[attempt_outcome(&r->attempt)];
}

/* Our own stop has ended it. A conversation may be cancelled by the stop before its task is. */
static bool is_stopped(const struct run *r)
{
	const struct attempt *a = &r->attempt;

	return a->intent == INTENT_STOP ||
	       (a->intent == INTENT_NONE && a->dropped && r->tasks->records.stopping);
}

/* What we stop with us, the next start runs again, or another host does. */
static bool may_try_again(const struct run *r, enum task_state state)
{
	const struct task *row = &r->live->task;

	if (state == TASK_COMPLETED || r->attempt.intent == INTENT_CANCEL)
		return false;
	return task_tries(row) - is_stopped(r) < row->max_attempts && row->max_attempts > 1;
}

static void task_run_finish(struct run *r)
{
	struct tasks *t = r->tasks;
	struct live *l = r->live;
	const struct attempt *a = &r->attempt;
	struct run_waiter waiter = take_waiter(r);
	enum task_state state = state_of(r);
	bool again = may_try_again(r, state);
	struct text result = {0};
	struct text error = {0};
	char text[ERROR_MAX];

	output_rest(r);
	l->task.exit_status = a->program && a->signal == 0 ? a->status : -1;
	if (r->unstarted)
		l->task.exit_status = r->unstarted;
	l->task.signal = a->signal;
	l->task.output_bytes = r->output ? output_file_end(r->output) : 0;
	if (state == TASK_COMPLETED || r->out.len > 0)
		result = tail_of(&r->out, TASK_RESULT_MAX);
	if (state == TASK_FAILED || (state == TASK_CANCELLED && a->intent != INTENT_CANCEL))
		error = error_of(r, text);
	if (a->intent == INTENT_TIMEOUT)
		task_write(t, l, "task.timeout", NULL);
	release(t, l);
	if (again)
		try_again(t, l, error, is_stopped(r));
	else
		task_end(t, l, state, result, error, NULL);
	run_free(r);
	queue_run(t);
	if (t->records.stopping)
		wake_send(t->more);
	call_waiter(waiter, again ? TASK_QUEUED : state);
}

/* What one attempt left behind must not run beside the next one. */
static bool sweeps(void *arg)
{
	const struct run *r = arg;

	return r->attempt.intent != INTENT_NONE || may_try_again(r, state_of(r));
}

static void task_run_on_end(void *arg)
{
	task_run_finish(arg);
}

static void end_unbegun(struct run *r);
static void put_back(struct run *r);

void run_end_with(struct run *r, enum intent intent)
{
	/* A cancel counts even if it is already being stopped for another reason. */
	if (!attempt_end(&r->attempt, intent, 0, r->tasks->interrupt_ms)) {
		if (intent == INTENT_CANCEL)
			r->attempt.intent = intent;
	} else if (r->begins.fn) {
		end_unbegun(r);
	}
}

static void on_timeout(void *arg)
{
	run_end_with(arg, INTENT_TIMEOUT);
}

/* ---- as a conversation ---- */

static void on_text(void *arg, struct text whole, size_t from)
{
	struct run *r = arg;

	add_output(r, whole.data + from, whole.len - from);
	tail_add(&r->out, TASK_RESULT_MAX, whole.data + from, whole.len - from);
}

/* ---- the start ---- */

static void open_output(struct run *r)
{
	const struct tasks *t = r->tasks;
	char path[4096];
	int e;

	task_path(t->output_folder, r->live->task.seq, path, sizeof(path));
	e = output_file_open(path, t->opts.output_bytes, &r->output)
		    ?: output_file_skip(r->output, r->printed);
	if (e != 0)
		log_warn("could not store output", "task=%.*s error=%s",
			 TEXT_ARGS(r->live->task.id), strerror(-e));
}

static void report_started(struct run *r)
{
	struct tasks *t = r->tasks;
	struct task *row = &r->live->task;

	if (r->attempt.program) {
		row->pid = supervised_pid(r->attempt.program);
		row->pid_started = supervised_started(r->attempt.program);
	}
	if (row->timeout_ms > 0 && timer_new(t->loop, on_timeout, r, &r->timer) == 0)
		timer_start(r->timer, (uint64_t)row->timeout_ms);
	task_write(t, r->live, "task.started", NULL);
}

static void give_up(struct run *r, const char *text)
{
	attempt_fail(&r->attempt, text);
	task_run_finish(r);
}

static void begun(struct run *r)
{
	report_started(r);
	call_waiter(take_waiter(r), TASK_RUNNING);
}

/* A shell's words for a program that could not be started, and its exit status; 0 if the fault is another
 * one, such as the folder's. */
static int word_unstarted(const struct run *r, int result, struct error *error)
{
	const char *words = strchr(r->named, '/') ? TASK_NO_FILE : TASK_NO_COMMAND;

	if (r->folder && access(r->folder, X_OK) != 0)
		return 0;
	if (result == REFUSE_FORBIDDEN)
		words = TASK_FORBIDDEN;
	else if (result != REFUSE_NOT_FOUND)
		return 0;
	snprintf(error->text, sizeof(error->text), "%.100s%s", r->named, words);
	return result == REFUSE_NOT_FOUND ? 127 : 126;
}

static void on_started(void *arg, int result, const struct error *error)
{
	struct run *r = arg;
	struct error own = *error;

	if (result != 0)
		r->unstarted = word_unstarted(r, result, &own);
	if (result != 0)
		give_up(r, result > 0 ? own.text : strerror(-result));
	else
		begun(r);
}

/* The prompt, the command and the variables are held only until it is being started. */
static void go(struct run *r, const struct task *whole)
{
	struct task *row = &r->live->task;
	struct text env = row->env;
	struct packed command = row->command;
	struct error error = {0};
	int e;

	open_output(r);
	row->env = whole->env;
	row->command = whole->command;
	e = program_start(r, whole->prompt, &error);
	row->env = env;
	row->command = command;
	if (e != 0)
		give_up(r, error_words(e, &error));
	else if (!r->attempt.program)
		begun(r);
}

static int fetch_run(struct work *w, int lane)
{
	struct fetch *f = list_entry(w, struct fetch, request.work);
	struct connection *db = store_lane(f->request.tasks->store, lane);
	int r = store_task_find(db, f->request.project, f->request.id, &f->request.arena, &f->row,
				&f->n);

	return r != 0 || f->n == 0 ? r : store_chunk_end(db, f->row.seq, &f->printed);
}

static void fetched(struct run *r, const struct fetch *f, int result)
{
	const struct task *row = &r->live->task;

	r->fetch = NULL;
	r->printed = f->printed;
	if (r->attempt.intent == INTENT_NONE && r->tasks->records.stopping)
		r->attempt.intent = INTENT_STOP;
	if (r->attempt.intent != INTENT_NONE)
		end_unbegun(r);
	else if (!node_allows(r->tasks->node))
		put_back(r);
	else if (result == 0 && f->n == 1)
		go(r, &f->row);
	else if (result != 0 && row->prompt.data)
		go(r, row);
	else if (result == -EIO && node_shares(r->tasks->node))
		put_back(r); /* the server is away, and nothing has begun */
	else
		give_up(r, result == 0 ? "the task no longer exists" : fault_words(result));
}

static void fetch_finished(struct work *w, int result)
{
	struct fetch *f = list_entry(w, struct fetch, request.work);

	if (f->run)
		fetched(f->run, f, result);
	request_free(f);
}

static int fetch(struct run *r)
{
	struct tasks *t = r->tasks;
	struct fetch *f = request_new(t, sizeof(*f), r->live->project->name, r->live->task.id,
				      fetch_run, fetch_finished);
	int e = f ? request_submit(f, 0, false) : -ENOMEM;

	if (e != 0)
		return e;
	f->run = r;
	r->fetch = f;
	return 0;
}

static struct run *run_new(struct tasks *t, struct live *l)
{
	static const struct attempt_ops ops = {.on_started = on_started,
					       .on_output = task_run_on_output,
					       .on_text = on_text,
					       .sweeps = sweeps,
					       .on_end = task_run_on_end};
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->tasks = t;
	r->live = l;
	list_init(&r->begins.link);
	buf_init(&r->out, 2 * TASK_RESULT_MAX);
	buf_init(&r->fresh.bytes, OUTPUT_FRESH_MAX + OUTPUT_REST_MAX);
	attempt_init(&r->attempt, &ops, r, TASK_STDERR_MAX);
	if (!l->reserved)
		l->reserved = task_change_new(NULL);
	if (!l->reserved || tree_mark(t->owner, r->mark) != 0) {
		free(r);
		return NULL;
	}
	return r;
}

/* It is queued again: nothing of it has begun, and nothing shall. */
static void put_back(struct run *r)
{
	struct tasks *t = r->tasks;
	struct live *l = r->live;
	struct run_waiter waiter = take_waiter(r);
	/* Other hosts may have seen that it was taken. */
	const char *event = l->task.epoch ? "task.retrying" : NULL;

	release(t, l);
	l->task.attempts--;
	l->task.started_ms = 0;
	task_put_back(t, l, AGAIN_MS, event);
	run_free(r);
	call_waiter(waiter, TASK_QUEUED);
}

/* Nothing is running that must be stopped, and there is no need to wait for the store. */
static void end_unbegun(struct run *r)
{
	struct tasks *t = r->tasks;

	if (r->attempt.intent == INTENT_STOP)
		put_back(r);
	else
		give_up(r, "the attempt was cancelled before the program started");
	wake_send(t->more);
}

void run_lose(struct run *r)
{
	struct tasks *t = r->tasks;
	struct live *l = r->live;
	struct run_waiter waiter = take_waiter(r);

	if (r->attempt.turn)
		chat_turn_cancel(r->attempt.turn);
	release(t, l);
	list_append(&t->elsewhere, &l->link);
	run_free(r);
	call_waiter(waiter, TASK_QUEUED);
}

/* What an earlier attempt printed elsewhere comes before what this one prints. */
static bool has_printed(const struct run *r)
{
	const struct task *row = &r->live->task;

	return row->epoch && (row->attempts > 1 || row->output_bytes > 0);
}

/* Its start is on disk. It must not start earlier: after a crash the next daemon has to know of
 * it. We may have stood still since we asked, and not be allowed to run anything any more. */
static void on_kept(struct record_waiter *w, int result)
{
	struct run *r = list_entry(w, struct run, begins);

	r->begins.fn = NULL;
	if (result == REFUSE_CONFLICT)
		run_lose(r);
	else if (result == -ENOENT)
		give_up(r, "the task no longer exists");
	else if (result != 0 || r->tasks->records.stopping || !node_allows(r->tasks->node))
		put_back(r);
	else if (r->live->task.prompt.data && !has_printed(r))
		go(r, &r->live->task);
	else if (fetch(r) != 0)
		give_up(r, "out of memory");
}

void run_start(struct tasks *t, struct live *l)
{
	struct run *r = run_new(t, l);
	struct record_change *change = r ? task_change_new(&r->begins) : NULL;

	if (!change) {
		free(r);
		task_end(t, l, TASK_FAILED, (struct text) {0}, TEXT("out of memory"), NULL);
		return;
	}
	live_step(l, STEP_CLAIM, TASK_RUNNING);
	r->begins.fn = on_kept;
	l->run = r;
	list_append(&t->running, &l->link);
	node_set_running(t->node, ++t->n_running);
	l->project->n_running++;
	if (l->group)
		l->group->n_running++;
	l->task.started_ms = clock_utc_ms();
	l->task.attempts++;
	l->task.error = (struct text) {0};
	l->task.exit_status = -1;
	l->task.signal = 0;
	l->task.epoch = node_epoch(t->node);
	live_set_text(l, &l->task.host, node_name(t->node));
	live_set_text(l, &l->task.mark, text_of(r->mark));
	task_write(t, l, NULL, change);
}
