/*
 * A task's output and its end: one piece of output, all of it as it comes, or the end alone.
 *
 * A follower looks again after a moment, for as long as the task may go on. A look on the loop
 * costs nothing; the store is asked only when there may be something new.
 */
#include <errno.h>

#include "base/utf8.h"
#include "call/call.h"
#include "call/client.h"
#include "dialect/koine/task.h"
#include "dialect/koine/task_json.h"
#include "dialect/engine.h"

enum {
	LOOK_MS = 200,
	WAIT_MS = 50,
	TASK_LOOK_MAX = 32 << 20, /* bytes of a whole task and a piece of its output */
};

/* ---- a piece ---- */

/* A piece that begins or ends within a character is cut to whole characters. The last piece
 * keeps its end as it is. */
static void cut(struct task_output *o, bool inside, bool last)
{
	size_t n = 0;

	while (inside && n < 3 && n < o->bytes.len && (o->bytes.data[n] & 0xc0) == 0x80)
		n++;
	if (n > 0)
		o->bytes.data += n;
	o->bytes.len -= n;
	o->offset += (int64_t)n;
	if (!last)
		o->bytes.len = utf8_whole(o->bytes.data, o->bytes.len);
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
	const struct task_in *in = c->in;
	struct task_output o = {0};
	struct json *j;
	int r;

	if (in->max < 1 || in->max > TASK_PIECE_MAX)
		return call_fail(c, refuse_field(&c->why, "max", "max must be between 1 and %d",
						 TASK_PIECE_MAX));
	r = task_output(call_tasks(c), c->lane, &c->arena, in->project, in->id, in->offset,
			(size_t)in->max, &o, &c->why);
	if (r != 0)
		return call_fail(c, r);
	cut(&o, in->offset != 0, is_last(&o) || in->max < 4);
	j = call_result(c);
	json_begin_object(j);
	write_piece(j, &o);
	json_member_int(j, "end", o.end);
	json_member_bool(j, "running", o.running);
	json_end_object(j);
	return call_reply(c);
}

/* ---- as it comes ---- */

struct follow {
	struct arena arena; /* of one look; emptied after it */
	struct task task;
	struct task_output output;
	int64_t at;  /* the next byte to send */
	bool inside; /* `at` may stand within a character */
	bool with_output;
};

/* Nobody waits for the answer any more. */
static bool is_over(const struct call *c)
{
	return atomic_load(&c->cancelled) || !c->client;
}

/* The state is read first: once a task has ended, all its output is on disk. */
static int look_work(struct call *c)
{
	const struct task_in *in = c->in;
	struct tasks *t = call_tasks(c);
	struct follow *f = c->state;
	int r;

	arena_init(&f->arena, TASK_LOOK_MAX);
	f->output = (struct task_output) {0};
	r = task_get(t, c->lane, &f->arena, in->project, in->id, &f->task, &c->why);
	if (r == 0 && f->with_output)
		r = task_output(t, c->lane, &f->arena, f->task.project, f->task.id, f->at,
				TASK_PIECE, &f->output, &c->why);
	f->output.running = f->task.state <= TASK_RUNNING;
	return r;
}

static void write_notification(struct buf *out, const struct follow *f)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_str(&j, "method", "task.output");
	json_key(&j, "params");
	json_begin_object(&j);
	json_member_text(&j, "project", f->task.project);
	json_member_text(&j, "id", f->task.id);
	write_piece(&j, &f->output);
	json_end_object(&j);
	json_end_object(&j);
}

static int notify(struct client *s, const struct follow *f)
{
	struct buf out;
	int r;

	buf_init(&out, 8 * TASK_PIECE);
	write_notification(&out, f);
	r = out.err ? out.err : client_notify(s, out.data, out.len);
	buf_done(&out);
	return r;
}

/* What is to happen after a look. */
enum next { LOOK_NOW, LOOK_LATER, AT_END };

static int tell(struct call *c, struct follow *f, enum next *ret_next)
{
	struct task_output *o = &f->output;
	int r;

	*ret_next = o->running ? LOOK_LATER : AT_END;
	if (!f->with_output)
		return 0;
	cut(o, f->inside, is_last(o));
	/* A negative offset is resolved by now. */
	f->at = o->offset;
	f->inside = false;
	if (o->bytes.len == 0)
		return 0;
	r = notify(c->client, f);
	/* The client does not read: send the same piece again later. */
	if (r == -ENOBUFS) {
		*ret_next = LOOK_LATER;
		return 0;
	}
	/* HTTP has no notifications, and a client that closed its half takes none: it waits for
	 * the end. */
	f->with_output = r != -ENOTSUP && r != -ENOTCONN;
	if (r != 0)
		return f->with_output ? r : 0;
	f->at += (int64_t)o->bytes.len;
	if (f->at < o->end)
		*ret_next = LOOK_NOW;
	return 0;
}

static struct done look(struct call *c);

static struct done look_then(struct call *c, int r)
{
	struct follow *f = c->state;
	enum next next = LOOK_LATER;

	if (r == 0 && is_over(c))
		r = refuse(&c->why, REFUSE_CANCELLED, "cancelled");
	if (r == 0)
		r = tell(c, f, &next);
	if (r == 0 && next == AT_END)
		task_json_write_end(call_result(c), &f->task);
	/* Nothing is held while the call waits, since it may be cancelled there. */
	arena_done(&f->arena);
	if (r != 0)
		return call_fail(c, r);
	if (next == AT_END)
		return call_reply(c);
	return next == LOOK_NOW ? look(c) : call_after(c, LOOK_MS, look);
}

static struct done look(struct call *c)
{
	const struct task_in *in = c->in;
	const struct follow *f = c->state;

	if (is_over(c))
		return call_fail(c, refuse(&c->why, REFUSE_CANCELLED, "cancelled"));
	if (!f->with_output && task_is_open(call_tasks(c), in->project, in->id))
		return call_after(c, WAIT_MS, look);
	return call_work(c, READER, look_work, look_then);
}

static struct done begin(struct call *c, bool with_output)
{
	const struct task_in *in = c->in;
	struct follow *f = arena_zalloc(&c->arena, sizeof(*f));

	if (!f)
		return call_fail(c, -ENOMEM);
	f->at = in->offset;
	f->inside = in->offset != 0;
	/* Nothing is sent before a batch is answered, so output cannot be sent as it comes. */
	f->with_output = with_output && !c->request.silent && !c->batch;
	c->state = f;
	return look(c);
}

struct done koine_task_follow(struct call *c)
{
	return begin(c, true);
}

struct done koine_task_wait(struct call *c)
{
	return begin(c, false);
}
