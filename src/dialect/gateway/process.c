/* Processes over HTTP, in the shapes that the gateway's clients expect, with some more members. */
#include <errno.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "dialect/gateway/more.h"
#include "engine/program/process.h"
#include "dialect/engine.h"

/* Begins the answer after a wait. NULL: the wait failed, and the call has been answered. */
static struct json *begin_answer(struct call *c, int r, const struct process_info *p,
				 const struct error *error)
{
	struct json *j;

	c->state = NULL;
	if (r != 0) {
		(void)call_fail_for(c, r, error);
		return NULL;
	}
	j = call_object(c);
	json_member_str(j, "sessionId", p->id);
	return j;
}

static void end_answer(struct call *c, struct json *j)
{
	json_end_object(j);
	(void)call_reply(c);
}

static const char *status_of(const struct process_info *p)
{
	return p->running ? "running" : "exited";
}

static void write_end(struct json *j, const struct process_info *p)
{
	if (p->running)
		return;
	json_member_int(j, "exitCode", p->status);
	if (p->signal != 0)
		json_member_int(j, "signal", p->signal);
}

/* ---- start ---- */

static void started(void *arg, int r, const struct process_info *p, const struct error *error)
{
	struct call *c = arg;
	struct json *j = begin_answer(c, r, p, error);

	if (!j)
		return;
	json_member_int(j, "pid", p->pid);
	json_member_text(j, "command", p->command);
	if (p->terminal)
		json_member_bool(j, "pty", true);
	json_member_bool(j, "success", true);
	end_answer(c, j);
}

/* A client that leaves before the approval does not want the process any more. */
static void ask_cancelled(struct call *c, void *arg)
{
	process_ask_leave(c->state);
	c->state = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static int bad_env(struct call *c)
{
	return refuse_field(&c->error, "env",
			    "env must be lines of NAME=VALUE, a list of NAME=VALUE, or an object");
}

/* Reads "NAME=VALUE" lines, as the gateway's clients send them. */
static int read_lines(struct call *c, struct text lines, struct text *env, unsigned *n)
{
	while (lines.len > 0) {
		const char *end = memchr(lines.data, '\n', lines.len);
		size_t len = end ? (size_t)(end - lines.data) : lines.len;

		if (len > 0 && *n == PROCESS_ENV_MAX)
			return bad_env(c);
		if (len > 0)
			env[(*n)++] = (struct text) {lines.data, len};
		len += end ? 1 : 0;
		lines.data += len;
		lines.len -= len;
	}
	return 0;
}

static int read_member(struct call *c, const struct value *v, struct text *ret)
{
	struct buf pair;

	if (v->kind != VALUE_STRING || memchr(v->key, '=', v->key_len))
		return bad_env(c);
	buf_init(&pair, PROCESS_ENV_BYTES_MAX);
	buf_add(&pair, v->key, v->key_len);
	buf_add_char(&pair, '=');
	buf_add(&pair, v->text, v->len);
	*ret = (struct text) {pair.err ? NULL : arena_copy(&c->arena, pair.data, pair.len),
			      pair.len};
	buf_done(&pair);
	return ret->data ? 0 : bad_env(c);
}

static int read_variables(struct call *c, const struct value *v, struct text *env, unsigned *n)
{
	if (v->kind == VALUE_STRING)
		return read_lines(c, value_text(v), env, n);
	if (v->kind != VALUE_OBJECT && v->kind != VALUE_ARRAY)
		return bad_env(c);
	value_each (child, v) {
		int r = 0;

		if (*n == PROCESS_ENV_MAX)
			return bad_env(c);
		if (v->kind == VALUE_OBJECT)
			r = read_member(c, child, &env[*n]);
		else if (child->kind == VALUE_STRING)
			env[*n] = value_text(child);
		else
			r = bad_env(c);
		if (r != 0)
			return r;
		++*n;
	}
	return 0;
}

static int read_env(struct call *c, const struct value *v, struct process_new *in)
{
	struct text *env;

	if (!v || v->kind == VALUE_NULL)
		return 0;
	env = arena_alloc(&c->arena, PROCESS_ENV_MAX * sizeof(*env));
	if (!env)
		return -ENOMEM;
	in->env = env;
	return read_variables(c, v, env, &in->n_env);
}

struct done gateway_process_start(struct call *c)
{
	const struct gateway_process_in *in = c->in;
	struct process_new new = {.command = in->command,
				  .workdir = in->workdir,
				  .terminal = in->pty,
				  .peer = c->peer};
	struct process_ask *ask = NULL;
	int r = read_env(c, in->env, &new)
			?: process_start(call_processes(c), &new, started, c, &ask, &c->error);

	if (r != 0)
		return call_fail(c, r);
	c->state = ask;
	return call_later(c, ask_cancelled, NULL);
}

/* ---- list ---- */

static void write_process(struct json *j, const struct process_info *p)
{
	char time[ISO_LEN + 1];

	json_begin_object(j);
	json_member_str(j, "sessionId", p->id);
	json_member_int(j, "pid", p->pid);
	json_member_str(j, "status", status_of(p));
	json_member_bool(j, "pty", p->terminal);
	clock_format_iso(p->started_ms, time);
	json_member_str(j, "createdAt", time);
	json_member_text(j, "command", p->command);
	json_member_text(j, "workdir", p->workdir);
	json_member_uint(j, "output", p->output);
	write_end(j, p);
	json_end_object(j);
}

struct done gateway_process_list(struct call *c)
{
	struct process_info *list =
		arena_alloc(&c->arena, PROCESS_KEPT_MAX * sizeof(struct process_info));
	struct json *j;
	unsigned n;
	int r = list ? process_list(call_processes(c), list, &n, &c->error) : -ENOMEM;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_uint(j, "count", n);
	json_member_array(j, "processes");
	for (unsigned i = 0; i < n; i++)
		write_process(j, &list[i]);
	json_end_array(j);
	return call_reply_object(c);
}

/* ---- log ---- */

/* Bytes that are not UTF-8 become U+FFFD. A character is not cut if the rest of it follows. */
struct done gateway_process_log(struct call *c)
{
	const struct gateway_process_in *in = c->in;
	struct processes *all = call_processes(c);
	size_t limit = in->limit > 0 ? (size_t)in->limit : SIZE_MAX;
	struct process_info info;
	struct process_log log;
	struct json *j;
	size_t whole;
	int r = process_log(all, in->session_id, in->offset > 0 ? in->offset : 0, limit, &log,
			    &c->error)
			?: process_get(all, in->session_id, &info, &c->error);

	if (r != 0)
		return call_fail(c, r);
	whole = utf8_whole(log.bytes.data, log.bytes.len);
	if (whole > 0 && (info.running || log.offset + log.bytes.len < log.end))
		log.bytes.len = whole;
	j = call_object(c);
	json_member_text(j, "sessionId", in->session_id);
	json_member_uint(j, "offset", log.offset);
	json_member_text(j, "content", log.bytes);
	if (log.offset + log.bytes.len < log.end)
		json_member_bool(j, "truncated", true);
	json_member_uint(j, "next", log.offset + log.bytes.len);
	json_member_str(j, "status", status_of(&info));
	write_end(j, &info);
	return call_reply_object(c);
}

/* ---- write ---- */

static void written(void *arg, int r, const struct process_info *p, const struct error *error)
{
	struct call *c = arg;
	const struct gateway_process_in *in = c->in;
	struct json *j = begin_answer(c, r, p, error);

	if (!j)
		return;
	json_member_uint(j, "written", in->data.len);
	json_member_bool(j, "eof", in->eof);
	end_answer(c, j);
}

struct done gateway_process_write(struct call *c)
{
	const struct gateway_process_in *in = c->in;
	struct process_ask *ask = NULL;
	int r = 0;

	if (in->data.len == 0 && !in->eof)
		r = refuse_field(&c->error, "data", "data is required");
	if (r == 0)
		r = process_write(call_processes(c), in->session_id, in->data, in->eof, &c->peer,
				  written, c, &ask, &c->error);
	if (r != 0)
		return call_fail(c, r);
	c->state = ask;
	return call_later(c, ask_cancelled, NULL);
}

/* ---- kill ---- */

static void killed(void *arg, int r, const struct process_info *p, const struct error *error)
{
	struct call *c = arg;
	struct json *j = begin_answer(c, r, p, error);

	if (!j)
		return;
	json_member_bool(j, "killed", true);
	end_answer(c, j);
}

/* The process ends all the same; only the call stops waiting. */
static void kill_cancelled(struct call *c, void *arg)
{
	process_wait_leave(c->state);
	c->state = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

struct done gateway_process_kill(struct call *c)
{
	const struct gateway_process_in *in = c->in;
	struct process_info info;
	struct process_wait *wait;
	int r = process_kill(call_processes(c), in->session_id, killed, c, &wait, &info, &c->error);

	if (r != 0)
		return call_fail(c, r);
	c->state = wait;
	if (wait)
		return call_later(c, kill_cancelled, NULL);
	killed(c, 0, &info, NULL);
	return call_settled(c);
}
