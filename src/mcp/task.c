/*
 * Tasks: calls that have outgrown their request. The extension io.modelcontextprotocol/tasks of the
 * modern era; a client that names it among its capabilities may be answered with a task.
 *
 * The call is an ordinary one and goes on, without its client. Its end leaves the result in the task.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "call/client.h"
#include "mcp/inner.h"

const char mcp_tasks_extension[] = "io.modelcontextprotocol/tasks";

enum { TASK_ID = 32, POLL_MS = 500, OUTCOME_REST = 1024 };

enum status { WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED };

static const char *const status_names[] = {
	[WORKING] = "working", [INPUT_REQUIRED] = "input_required", [COMPLETED] = "completed",
	[FAILED] = "failed",   [CANCELLED] = "cancelled",
};

struct mcp_task {
	struct list link; /* in mcp.tasks */
	struct mcp *mcp;
	char id[TASK_ID + 1];
	uid_t uid; /* nobody else finds it */
	enum status status;
	int64_t created_ms;
	int64_t updated_ms;
	struct mcp_call *call; /* NULL: it has ended */
	char *outcome;         /* the result, or the error; JSON */
	size_t outcome_len;
	bool cancelled; /* its client wishes so */
};

/* ---- keeping them ---- */

static void task_free(struct mcp_task *t)
{
	struct mcp *m = t->mcp;

	list_remove(&t->link);
	m->n_tasks--;
	m->task_bytes -= t->outcome_len;
	free(t->outcome);
	free(t);
}

void mcp_tasks_free(struct mcp *m)
{
	struct list *first;

	while ((first = list_first(&m->tasks)))
		task_free(list_entry(first, struct mcp_task, link));
}

/* The oldest come first, but one that still runs stays. */
static void forget_old(struct mcp *m)
{
	int64_t now = clock_utc_ms();

	list_for_each (at, following, &m->tasks) {
		struct mcp_task *t = list_entry(at, struct mcp_task, link);

		if (t->created_ms + MCP_TASK_LIFE_MS > now)
			return;
		if (!t->call)
			task_free(t);
	}
}

static struct mcp_task *task_new(struct mcp_call *mc)
{
	struct mcp *m = mc->mcp;
	unsigned char bytes[TASK_ID / 2];
	struct mcp_task *t;

	forget_old(m);
	if (m->n_tasks >= MCP_TASKS_MAX || getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(t->id + 2 * i, 3, "%02x", bytes[i]);
	t->mcp = m;
	t->uid = mc->call->peer.uid;
	t->call = mc;
	t->created_ms = clock_utc_ms();
	t->updated_ms = t->created_ms;
	list_append(&m->tasks, &t->link);
	m->n_tasks++;
	return t;
}

static void set_status(struct mcp_task *t, enum status status)
{
	t->status = status;
	t->updated_ms = clock_utc_ms();
}

void mcp_task_waits(struct mcp_task *t, bool waits)
{
	set_status(t, waits ? INPUT_REQUIRED : WORKING);
}

/* ---- beginning ---- */

static bool knows_tasks(const struct mcp_call *mc)
{
	const struct value *v =
		value_find(value_find(mc->capabilities, "extensions"), mcp_tasks_extension);

	return mc->era == MCP_MODERN && v && v->kind == VALUE_OBJECT;
}

static int lacks_tasks(struct mcp_call *mc)
{
	return mcp_refuse_with(mc, -32021, 400,
			       TEXT("{\"requiredCapabilities\":{\"extensions\":{\"io."
				    "modelcontextprotocol/tasks\":{}}}}"),
			       "The request lacks a required client capability");
}

int mcp_check_task_only(struct mcp_call *mc)
{
	if (!(mc->tool->hints & MCP_TASK_ONLY) || knows_tasks(mc))
		return 0;
	return mc->era == MCP_MODERN ? lacks_tasks(mc)
				     : refuse(&mc->call->error, REFUSE_PARAMS,
					      "this tool requires a client that supports tasks "
					      "(protocol 2026-07-28)");
}

static void mcp_task_write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	clock_format_iso(ms, text);
	json_member_str(j, key, text);
}

static void write_task(const struct mcp_task *t, struct json *j)
{
	json_member_str(j, "taskId", t->id);
	json_member_str(j, "status", status_names[t->status]);
	mcp_task_write_time(j, "createdAt", t->created_ms);
	mcp_task_write_time(j, "lastUpdatedAt", t->updated_ms);
	json_member_int(j, "ttlMs", MCP_TASK_LIFE_MS);
	json_member_int(j, "pollIntervalMs", POLL_MS);
}

static void write_created(const struct mcp_task *t, struct buf *out)
{
	const struct mcp_call *mc = t->call;
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_raw(&j, "id", mc->call->request.id);
	json_member_object(&j, "result");
	json_member_str(&j, "resultType", "task");
	write_task(t, &j);
	json_member_object(&j, "_meta");
	json_key(&j, "io.modelcontextprotocol/serverInfo");
	mcp_write_server_info(mc->mcp, &j);
	json_end_object(&j);
	json_end_object(&j);
	json_end_object(&j);
}

bool mcp_task(struct call *c)
{
	struct mcp_call *mc = opened(c);
	CLEANUP(buf_donep) struct buf out = {0};
	struct mcp_task *t;

	if (mc->task)
		return true;
	if (!c->client || mc->kind != MCP_TOOL || !mc->mcp->opts.tasks || !knows_tasks(mc) ||
	    c->method->where != ON_LOOP)
		return false;
	t = task_new(mc);
	if (!t)
		return false;
	buf_init(&out, MCP_MESSAGE_MAX);
	write_created(t, &out);
	if (out.err != 0) {
		task_free(t);
		return false;
	}
	mcp_send(c->client, mc, &out);
	mc->task = t;
	c->watched = false;
	mcp_stream_ended(mc);
	client_let_go(c);
	return true;
}

/* ---- ending ---- */

static void keep_outcome(struct mcp_task *t, const struct buf *out)
{
	struct mcp *m = t->mcp;

	t->outcome = out->err == 0 && m->task_bytes + out->len <= MCP_TASKS_BYTES ? malloc(out->len)
										  : NULL;
	if (!t->outcome)
		return;
	memcpy(t->outcome, out->data, out->len);
	t->outcome_len = out->len;
	m->task_bytes += out->len;
}

void mcp_task_ended(struct mcp_call *mc)
{
	struct mcp_task *t = mc->task;
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;
	bool done;

	/* tasks/get answers with it, and with what surrounds it. */
	buf_init(&out, mc->call->out.max - OUTCOME_REST);
	j = json_writer(&out);
	done = mcp_compose_bare(mc, &j) && !mc->starved;
	t->call = NULL;
	mc->task = NULL;
	if (!t->cancelled)
		keep_outcome(t, &out);
	set_status(t, t->cancelled ? CANCELLED : done && t->outcome ? COMPLETED : FAILED);
}

/* ---- what its client asks ---- */

static struct mcp_task *mcp_task_find(const struct mcp_call *mc, struct text id)
{
	list_for_each (at, following, &mc->mcp->tasks) {
		struct mcp_task *t = list_entry(at, struct mcp_task, link);

		if (text_is(id, t->id) && t->uid == mc->call->peer.uid)
			return t;
	}
	return NULL;
}

int mcp_open_task(struct mcp_call *mc)
{
	struct text id;
	int r = knows_tasks(mc) ? mcp_text_param(mc, "taskId", &id) : lacks_tasks(mc);

	if (r != 0)
		return r;
	forget_old(mc->mcp);
	mc->about = mcp_task_find(mc, id);
	return mc->about ? 0 : refuse_name(&mc->call->error, REFUSE_PARAMS, "task not found: ", id);
}

int mcp_open_update(struct mcp_call *mc)
{
	const struct value *v = value_find(mc->call->request.params, "inputResponses");
	int r = mcp_open_task(mc);

	if (r == 0 && (!v || v->kind != VALUE_OBJECT))
		r = refuse_field(&mc->call->error, "inputResponses",
				 "inputResponses must be an object");
	return r;
}

static struct done acknowledge(struct call *c)
{
	struct json *j = call_result(c);

	json_begin_object(j);
	json_end_object(j);
	return call_reply(c);
}

static void write_outcome(const struct mcp_task *t, struct json *j)
{
	if (t->status == INPUT_REQUIRED) {
		mcp_write_questions(t->call, j);
	} else if (t->status == COMPLETED || (t->status == FAILED && t->outcome)) {
		json_key(j, t->status == COMPLETED ? "result" : "error");
		json_raw(j, t->outcome, t->outcome_len);
	} else if (t->status == FAILED) {
		json_member_object(j, "error");
		json_member_int(j, "code", mcp_errors[REFUSE_TOO_LARGE].code);
		json_member_str(j, "message", "not enough memory for the result");
		json_end_object(j);
	}
}

struct done mcp_get_task(struct call *c)
{
	const struct mcp_task *t = opened(c)->about;
	struct json *j = call_result(c);

	json_begin_object(j);
	write_task(t, j);
	write_outcome(t, j);
	json_end_object(j);
	return call_reply(c);
}

static struct mcp_question *find_question(const struct mcp_task *t, const struct value *key)
{
	struct mcp_question *q = t->call ? t->call->questions : NULL;

	for (; q; q = q->next) {
		if (q->asked && !q->answer &&
		    text_equal(q->key, (struct text) {key->key, key->key_len}))
			return q;
	}
	return NULL;
}

/* The last answer runs the handler again, which may end the task; what is not asked is ignored. */
struct done mcp_update_task(struct call *c)
{
	const struct mcp_task *t = opened(c)->about;

	value_each (answer, value_find(c->request.params, "inputResponses")) {
		struct mcp_question *q =
			t->status == INPUT_REQUIRED ? find_question(t, answer) : NULL;

		if (q)
			mcp_answered(q, answer, false);
	}
	return acknowledge(c);
}

struct done mcp_cancel_task(struct call *c)
{
	struct mcp_task *t = opened(c)->about;

	if (t->call) {
		t->cancelled = true;
		call_cancel(t->call->call);
	}
	return acknowledge(c);
}
