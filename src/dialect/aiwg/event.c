/*
 * Every client connected to a project is told what happens there, without asking. Each
 * endpoint has one subscription: an event is worded once, then sent to all. A client that does
 * not read loses the event; that is counted, and nobody waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pack.h"
#include "call/server.h"
#include "call/client.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/engine.h"
#include "engine/event/event.h"

enum { MEMBERS_MAX = 6, EVENT_BYTES_MAX = 1 << 20 };

/* A member of params. It is null if there is no value, or left out if its name begins with '?'. */
struct told_member {
	const char *name;
	const char *from; /* name in the event's data; NULL: the same */
};

struct aiwg_event_told {
	const char *type; /* in the log */
	const char *method;
	struct told_member members[MEMBERS_MAX];
};

#define RULE_MEMBERS                                                                               \
	{                                                                                          \
		{"ruleId", "rule_id"}, {"eventType", "event_type"}, {"status"}, {"timestamp"},     \
			{"?taskId", "task_id"}, {"?error"},                                        \
	}

static const struct aiwg_event_told table[] = {
	{"task.queued",
	 "event.taskQueued",
	 {{"taskId", "task_id"}, {"prompt"}, {"queueSize", "queue_size"}}},
	{"task.started", "event.taskStarted", {{"taskId", "task_id"}, {"pid"}}},
	{"task.completed",
	 "event.taskCompleted",
	 {{"taskId", "task_id"}, {"result"}, {"duration", "duration_ms"}}},
	{"task.failed",
	 "event.taskFailed",
	 {{"taskId", "task_id"}, {"error"}, {"?exitCode", "exit_status"}}},
	{"task.cancelled", "event.taskCancelled", {{"taskId", "task_id"}, {"?reason", "error"}}},
	{"task.timeout", "event.taskTimeout", {{"taskId", "task_id"}}},
	{"rule.executed", "event.ruleExecuted", RULE_MEMBERS},
	{"rule.failed", "event.ruleExecuted", RULE_MEMBERS},
};

enum { N_TOLD = sizeof(table) / sizeof(table[0]) };

struct aiwg_teller {
	struct endpoint *endpoint;
	struct event_subscriber *subscriber;
};

/* ---- words ---- */

static const struct aiwg_event_told *find_told(struct text type)
{
	for (unsigned i = 0; i < N_TOLD; i++) {
		if (text_is(type, table[i].type))
			return &table[i];
	}
	return NULL;
}

static void write_member(struct json *j, const struct told_member *m, const struct event *e)
{
	bool optional = m->name[0] == '?';
	const char *name = m->name + optional;
	struct text v = packed_find(e->data, m->from ? m->from : name);

	if (!v.data && strcmp(name, "timestamp") == 0) {
		aiwg_write_time(j, name, e->time_ms);
		return;
	}
	if (!v.data && optional)
		return;
	json_key(j, name);
	json_packed(j, v);
}

static int64_t exit_status(const struct event *e)
{
	struct packed_reader r = packed_reader(packed_find(e->data, "exit_status"));
	struct packed_item item;

	if (packed_take(&r, &item) != 0 || item.kind != VALUE_NUMBER)
		return -1;
	return text_is(item.text, "127") ? 127 : text_is(item.text, "126") ? 126 : -1;
}

/* The original has its own words for a program that could not be started, and no exit code. */
static bool write_unstarted(struct json *j, const struct told_member *m, const struct event *e)
{
	bool error = strcmp(m->name, "error") == 0;
	char words[AIWG_UNSTARTED];

	if ((!error && strcmp(m->name, "?exitCode") != 0) ||
	    !aiwg_word_unstarted(packed_text(packed_find(e->data, "error")), exit_status(e), words))
		return false;
	if (error)
		json_member_str(j, m->name, words);
	return true;
}

static void write_notification(struct json *j, const struct aiwg_event_told *t,
			       const struct event *e)
{
	json_begin_object(j);
	json_member_str(j, "jsonrpc", "2.0");
	json_member_str(j, "method", t->method);
	json_member_object(j, "params");
	for (unsigned i = 0; i < MEMBERS_MAX && t->members[i].name; i++)
		if (!write_unstarted(j, &t->members[i], e))
			write_member(j, &t->members[i], e);
	json_end_object(j);
	json_end_object(j);
}

/* ---- telling ---- */

static int aiwg_event_on_event(void *arg, const struct event *e)
{
	const struct aiwg_teller *t = arg;
	const struct aiwg_event_told *told = find_told(e->type);
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, EVENT_BYTES_MAX);
	if (!told || t->endpoint->n_connections == 0)
		return 0;
	j = json_writer(&out);
	write_notification(&j, told, e);
	if (out.err != 0)
		return 0;
	/* FIXME: looks at the clients of all endpoints. Fine for some thousands; give each
	 * endpoint its own list before a machine has more. */
	list_for_each (at, following, &t->endpoint->server->clients) {
		struct client *s = list_entry(at, struct client, link);

		if (s->endpoint == t->endpoint)
			(void)client_post(s, out.data, out.len);
	}
	return 0;
}

static void aiwg_event_flush(void *arg)
{
	const struct aiwg_teller *t = arg;

	if (t->endpoint->n_connections == 0)
		return;
	list_for_each (at, following, &t->endpoint->server->clients) {
		struct client *s = list_entry(at, struct client, link);

		if (s->endpoint == t->endpoint)
			client_flush(s);
	}
}

static int aiwg_event_on_gone(void *arg, int64_t n)
{
	struct aiwg_teller *t = arg;

	t->endpoint->n_dropped += (uint64_t)n;
	return 0;
}

int aiwg_teller_start(struct endpoint *e, struct aiwg_teller **ret_teller)
{
	const struct aiwg_project *p = e->settings;
	struct text types[N_TOLD];
	const struct event_filter filter = {
		.types = types, .n_types = N_TOLD, .project = p->folder};
	struct aiwg_teller *t = calloc(1, sizeof(*t));
	const struct event_sink sink = {.on_event = aiwg_event_on_event,
					.on_gone = aiwg_event_on_gone,
					.flush = aiwg_event_flush,
					.arg = t};
	int r;

	if (!t)
		return -ENOMEM;
	for (unsigned i = 0; i < N_TOLD; i++)
		types[i] = text_of(table[i].type);
	t->endpoint = e;
	r = event_subscribe(e->server->opts.engine->events, &filter, -1, &sink, &t->subscriber);
	if (r != 0) {
		free(t);
		return r;
	}
	*ret_teller = t;
	return 0;
}

void aiwg_teller_free(struct aiwg_teller *t)
{
	if (!t)
		return;
	event_unsubscribe(t->subscriber);
	free(t);
}

void aiwg_tell_stopping(struct server *s)
{
	char text[100];
	int n = snprintf(
		text, sizeof(text),
		"{\"jsonrpc\":\"2.0\",\"method\":\"event.daemonStopping\",\"params\":{\"pid\":%d}}",
		(int)getpid());

	list_for_each (at, following, &s->clients) {
		struct client *client = list_entry(at, struct client, link);

		/* The client that asked for the stop learns of it from its answer, which comes
		 * first. */
		if (client->endpoint->dialect == &aiwg_dialect && !client->pumping)
			(void)client_notify(client, text, (size_t)n);
	}
}
