/*
 * A task's output and its end: one piece of output, all of it as it comes, or the end alone.
 *
 * A follower reads what there is, then it is told what comes (task_watch), and looks again only
 * if it was left behind. If its client does not read, it waits until the client has.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/utf8.h"
#include "call/call.h"
#include "call/client.h"
#include "dialect/koine/task.h"
#include "dialect/engine.h"

enum {
	ELSEWHERE_MS = 500,       /* for what a task prints at another host */
	AGAIN_MS = 200,           /* where nobody tells us when to look again */
	TASK_LOOK_MAX = 32 << 20, /* bytes of a whole task and a piece of its output */
};

/* ---- a piece ---- */

/* A piece that begins or ends within a character is cut to whole characters. The last piece
 * keeps its end as it is; so does one with nothing whole in it although there is more, since that is
 * behind a gap. */
static void koine_task_follow_cut(struct task_output *o, bool inside, bool last)
{
	size_t n = 0, whole;

	while (inside && n < 3 && n < o->bytes.len && (o->bytes.data[n] & 0xc0) == 0x80)
		n++;
	if (n > 0)
		o->bytes.data += n;
	o->bytes.len -= n;
	o->offset += (int64_t)n;
	whole = utf8_whole(o->bytes.data, o->bytes.len);
	if (!last && (whole > 0 || o->offset + (int64_t)o->bytes.len >= o->end))
		o->bytes.len = whole;
}

static bool is_last(const struct task_output *o)
{
	return !o->running && o->offset + (int64_t)o->bytes.len >= o->end;
}

static void write_piece(struct json *j, const struct task_output *o)
{
	json_member_int(j, "offset", o->offset);
	json_member_int(j, "next", o->offset + (int64_t)o->bytes.len);
	json_member_text(j, "text", o->bytes.data ? o->bytes : TEXT(""));
}

struct done koine_task_output(struct call *c)
{
	struct task_in *in = (struct task_in *)c->in;
	struct task_output o = {.offset = in->offset, .max = (size_t)in->max};
	struct task task;
	struct json *j;
	int r = koine_task_resolve(c, &in->project, &in->id);

	r = r
		    ?: task_get(call_tasks(c), c->lane, &c->arena, in->project, in->id, &task, &o,
				&c->error);
	if (r != 0)
		return call_fail(c, r);
	koine_task_follow_cut(&o, in->offset != 0, is_last(&o) || in->max < 4);
	j = call_object(c);
	write_piece(j, &o);
	json_member_int(j, "end", o.end);
	json_member_bool(j, "running", o.running);
	return call_reply_object(c);
}

/* ---- as it comes ---- */

/* The followers of one connection that wait; freed when the connection closes. */
struct following {
	struct client_hook hook;
	struct list waiting;
};

struct koine_task_follow_follow {
	struct call *call;
	struct list link; /* in `waiting` of its connection */
	struct task_watch watch;
	bool blocked;       /* it waits for its client, not for the task */
	unsigned n_missed;  /* times in a row that there was nothing to wait for */
	struct arena arena; /* of one look; emptied after it */
	struct task task;
	struct task_output output;
	struct text project; /* as it was found; its id is {NULL, 0} before */
	struct text id;
	int64_t at;   /* the next byte to send */
	int64_t seen; /* the byte after those that were read: the last may be half a character */
	bool inside;  /* `at` may stand within a character */
	bool with_output;
};

static struct done koine_task_follow_look(struct call *c);

/* Nobody waits for the answer any more. */
static bool koine_task_follow_is_over(const struct call *c)
{
	return atomic_load(&c->cancelled) || !c->client;
}

/* Whoever waits is not to take a stop of koined for the end of the task, which may run again. */
static int refuse_left(struct call *c)
{
	if (c->server->stopping)
		return refuse(&c->error, REFUSE_STOPPING, "koined is stopping");
	return refuse(&c->error, REFUSE_CANCELLED, "cancelled");
}

static struct done fail_left(struct call *c)
{
	return call_fail(c, refuse_left(c));
}

/* ---- sending ---- */

static void write_notification(struct buf *out, const struct koine_task_follow_follow *f)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_str(&j, "method", "task.output");
	json_member_object(&j, "params");
	json_member_text(&j, "project", f->project);
	json_member_text(&j, "id", f->id);
	write_piece(&j, &f->output);
	json_end_object(&j);
	json_end_object(&j);
}

/* words: of a piece that others may be sent, too; NULL: of its own. */
static int notify(const struct koine_task_follow_follow *f, struct buf *words)
{
	struct buf own = {0};
	struct buf *out = words ? words : &own;
	int r;

	buf_init(&own, 8 * TASK_PIECE);
	if (out->len == 0)
		write_notification(out, f);
	r = out->err ? out->err : client_notify(f->call->client, out->data, out->len);
	buf_done(&own);
	return r;
}

/* What is to happen next. */
enum next { LOOK_NOW, WAIT, WAIT_FOR_CLIENT, AT_END };

/* Sends f->output. */
static int koine_task_follow_notify(struct koine_task_follow_follow *f, struct buf *words,
				    enum next *ret_next)
{
	struct task_output *o = &f->output;
	int r;

	*ret_next = o->running ? WAIT : AT_END;
	if (!f->with_output)
		return 0;
	f->seen = o->offset + (int64_t)o->bytes.len;
	if (f->seen < o->end)
		*ret_next = LOOK_NOW;
	koine_task_follow_cut(o, f->inside || o->offset > f->at, is_last(o));
	/* A negative offset is resolved by now. */
	f->at = o->offset;
	f->inside = false;
	if (o->bytes.len == 0)
		return 0;
	r = notify(f, words);
	/* The client does not read: the same piece is sent again later. */
	if (r == -ENOBUFS) {
		*ret_next = WAIT_FOR_CLIENT;
		return 0;
	}
	/* HTTP has no notifications, and a client that closed its half takes none: it waits for
	 * the end. */
	f->with_output = r != -ENOTSUP && r != -ENOTCONN;
	if (r != 0)
		return f->with_output ? r : 0;
	f->at += (int64_t)o->bytes.len;
	return 0;
}

/* ---- waiting ---- */

static void stop_waiting(struct koine_task_follow_follow *f)
{
	list_remove(&f->link);
	task_unwatch(&f->watch);
	f->blocked = false;
}

/* In the next turn: whoever calls is in the middle of something. */
static void then(struct koine_task_follow_follow *f, struct done (*next)(struct call *c))
{
	stop_waiting(f);
	(void)call_after(f->call, 0, next);
}

static void koine_task_follow_on_closed(struct client_hook *h)
{
	struct following *all = list_entry(h, struct following, hook);
	struct list *first;

	while ((first = list_first(&all->waiting)))
		then(list_entry(first, struct koine_task_follow_follow, link), fail_left);
	free(all);
}

static void koine_task_follow_on_drained(struct client_hook *h)
{
	struct following *all = list_entry(h, struct following, hook);

	list_for_each (at, following, &all->waiting) {
		struct koine_task_follow_follow *f =
			list_entry(at, struct koine_task_follow_follow, link);

		if (f->blocked)
			then(f, koine_task_follow_look);
	}
}

static struct following *have_following(struct client *s)
{
	struct client_hook *h = client_find_hook(s, koine_task_follow_on_closed);
	struct following *all;

	if (h)
		return list_entry(h, struct following, hook);
	all = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->hook = (struct client_hook) {.closed = koine_task_follow_on_closed,
					  .drained = koine_task_follow_on_drained};
	list_init(&all->waiting);
	client_add_hook(s, &all->hook);
	return all;
}

static void koine_task_follow_on_cancel(struct call *c, void *arg)
{
	stop_waiting(arg);
	(void)fail_left(c);
}

static struct done wait_here(struct koine_task_follow_follow *f)
{
	struct call *c = f->call;
	struct following *all = have_following(c->client);

	if (!all) {
		stop_waiting(f);
		return call_fail(c, -ENOMEM);
	}
	list_append(&all->waiting, &f->link);
	return call_later(c, koine_task_follow_on_cancel, f);
}

/* A client that is sent the answers of a batch takes nothing before their end; nobody tells us
 * of that. */
static struct done wait_for_client(struct koine_task_follow_follow *f)
{
	struct client *s = f->call->client;

	if (s->batch || s->n_holding > 0)
		return call_after(f->call, AGAIN_MS, koine_task_follow_look);
	f->blocked = true;
	return wait_here(f);
}

/* ---- being told ---- */

static void on_printed(struct task_watch *w, struct task_piece *piece)
{
	struct koine_task_follow_follow *f = list_entry(w, struct koine_task_follow_follow, watch);
	int64_t end = piece->offset + (int64_t)piece->bytes.len;
	enum next next;
	int r;

	if (f->at < piece->offset || f->at > end) {
		then(f, koine_task_follow_look);
		return;
	}
	f->output = (struct task_output) {
		.bytes = {.data = piece->bytes.data + (f->at - piece->offset),
			  .len = (size_t)(end - f->at)},
		.offset = f->at,
		.end = end,
		.running = true,
	};
	if (piece->words_from != f->at)
		buf_clear(&piece->words);
	piece->words_from = f->at;
	r = koine_task_follow_notify(f, &piece->words, &next);
	/* It is sent, or it is read again. */
	if (r != 0 || next != WAIT)
		then(f, koine_task_follow_look);
}

static void on_ended(struct task_watch *w, const struct task *task)
{
	struct koine_task_follow_follow *f = list_entry(w, struct koine_task_follow_follow, watch);
	struct call *c = f->call;

	stop_waiting(f);
	/* Another host runs it, or there is more of its output. */
	if (task->state <= TASK_RUNNING || (f->with_output && f->at < task->output_bytes)) {
		(void)koine_task_follow_look(c);
		return;
	}
	task_json_write_end(call_result(c), task);
	(void)call_reply(c);
}

static struct done wait_for_task(struct koine_task_follow_follow *f)
{
	struct call *c = f->call;
	int64_t end;

	f->watch.printed = f->with_output ? on_printed : NULL;
	/* It has ended since it was read; but if memory ran out, the store may never know. */
	if (!task_watch(call_tasks(c), f->project, f->id, &f->watch, &end))
		return f->n_missed++ == 0 ? koine_task_follow_look(c)
					  : call_after(c, AGAIN_MS, koine_task_follow_look);
	f->n_missed = 0;
	if (f->with_output && f->watch.elsewhere) {
		task_unwatch(&f->watch);
		return call_after(c, ELSEWHERE_MS, koine_task_follow_look);
	}
	/* It has printed something since. */
	if (f->with_output && end > f->seen) {
		task_unwatch(&f->watch);
		return koine_task_follow_look(c);
	}
	return wait_here(f);
}

/* ---- looking ---- */

/* The state is read first: once a task has ended, all its output is on disk. */
static int look_work(struct call *c)
{
	const struct task_in *in = c->in;
	struct tasks *t = call_tasks(c);
	struct koine_task_follow_follow *f = c->state;
	int r;

	arena_init(&f->arena, TASK_LOOK_MAX);
	f->output = (struct task_output) {.offset = f->at, .max = TASK_PIECE};
	r = task_get(t, c->lane, &f->arena, f->id.data ? f->project : in->project, in->id, &f->task,
		     f->with_output ? &f->output : NULL, &c->error);
	f->output.running = f->task.state <= TASK_RUNNING;
	return r;
}

/* Of what was read, only this is needed while it waits. */
static int keep_name(struct call *c, struct koine_task_follow_follow *f)
{
	int r = arena_copy_text(&c->arena, f->task.project, &f->project);

	return r != 0 ? r : arena_copy_text(&c->arena, f->task.id, &f->id);
}

static struct done look_then(struct call *c, int r)
{
	struct koine_task_follow_follow *f = c->state;
	enum next next = WAIT;

	if (r == 0 && koine_task_follow_is_over(c))
		r = refuse_left(c);
	if (r == 0 && !f->id.data)
		r = keep_name(c, f);
	if (r == 0)
		r = koine_task_follow_notify(f, NULL, &next);
	if (r == 0 && next == AT_END)
		task_json_write_end(call_result(c), &f->task);
	arena_done(&f->arena);
	if (r != 0)
		return call_fail(c, r);
	if (next == AT_END)
		return call_reply(c);
	if (next == LOOK_NOW)
		return koine_task_follow_look(c);
	return next == WAIT ? wait_for_task(f) : wait_for_client(f);
}

static struct done koine_task_follow_look(struct call *c)
{
	return koine_task_follow_is_over(c) ? fail_left(c)
					    : call_work(c, READER, look_work, look_then);
}

static struct done follow(struct call *c)
{
	const struct task_in *in = c->in;
	struct koine_task_follow_follow *f = arena_zalloc(&c->arena, sizeof(*f));

	if (!f)
		return call_fail(c, -ENOMEM);
	f->call = c;
	f->at = in->offset;
	f->inside = in->offset != 0;
	/* Nothing is sent before a batch is answered, so output cannot be sent as it comes. */
	f->with_output = c->method->arg && !c->request.silent && !c->batch;
	f->watch.ended = on_ended;
	list_init(&f->link);
	c->state = f;
	return koine_task_follow_look(c);
}

struct done koine_task_follow(struct call *c)
{
	return koine_task_named_one(c, follow);
}
