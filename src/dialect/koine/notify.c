/* Notifiers: which there are, how they do, and a test of one. */
#include "base/clock.h"
#include "call/call.h"
#include "call/server.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/notify/notify.h"

enum { WAIT_DEFAULT_S = 120, WAIT_MAX_S = 3600 };

struct test_in {
	struct text name;
	int64_t timeout;
};

/* ---- listing ---- */

static void koine_notify_write_time(struct json *j, const char *key, int64_t ms)
{
	char time[ISO_LEN + 1];

	if (ms == 0)
		return;
	clock_format_iso(ms, time);
	json_member_str(j, key, time);
}

static void write_state(struct json *j, const struct notify_state *s)
{
	json_begin_object(j);
	json_member_str(j, "name", s->name);
	json_member_str(j, "kind", s->kind);
	json_member_str(j, "on", s->on);
	json_member_str(j, "state", s->state);
	json_member_uint(j, "waiting", s->waiting);
	json_member_uint(j, "sent", s->sent);
	json_member_uint(j, "failed", s->failed);
	json_member_uint(j, "dropped", s->dropped);
	json_member_uint(j, "answers", s->answers);
	json_member_uint(j, "ignored", s->ignored);
	koine_notify_write_time(j, "sent_at", s->sent_ms);
	koine_notify_write_time(j, "failed_at", s->failed_ms);
	if (s->error[0])
		json_member_str(j, "error", s->error);
	json_end_object(j);
}

static struct done koine_notify_handle_list(struct call *c)
{
	const struct notify *n = call_notify(c);
	struct json *j = call_object(c);

	json_member_array(j, "notifiers");
	for (unsigned i = 0; i < notify_count(n); i++) {
		struct notify_state s;

		notify_get(n, i, &s);
		write_state(j, &s);
	}
	json_end_array(j);
	return call_reply_object(c);
}

/* ---- a test ---- */

static void on_tested(void *arg, int r, const struct notify_test_result *t,
		      const struct error *error)
{
	struct call *c = arg;
	const struct test_in *in = c->in;
	struct json *j;

	c->state = NULL;
	j = call_object_for(c, r, error);
	if (!j)
		return;
	json_member_text(j, "name", in->name);
	json_member_bool(j, "sent", t->sent);
	json_member_bool(j, "asks", t->asks);
	if (t->pressed) {
		json_member_str(j, "pressed", t->pressed);
		json_member_str(j, "by", t->by);
	}
	(void)call_reply_object(c);
}

static void koine_notify_on_cancel(struct call *c, void *arg)
{
	notify_test_leave(c->state);
	c->state = NULL;
	if (c->server->stopping)
		(void)call_fail(c, refuse(&c->error, REFUSE_STOPPING, "koined is stopping"));
	else
		(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct done handle_test(struct call *c)
{
	const struct test_in *in = c->in;
	struct notify_test *test = NULL;
	int r = notify_test_start(call_notify(c), in->name, in->timeout * 1000, on_tested, c, &test,
				  &c->error);
	if (r != 0)
		return call_fail(c, r);
	c->state = test;
	return call_later(c, koine_notify_on_cancel, NULL);
}

/* ---- the method table ---- */

static const struct field test_fields[] = {
	FIELD(STRING, test_in, name, "Name of the notifier", .required = true),
	FIELD(INT, test_in, timeout, "Seconds to wait for a button press, up to 3600",
	      .default_number = WAIT_DEFAULT_S, RANGE(1, WAIT_MAX_S)),
};

static const struct method rows[] = {
	{"notify.list", "List notifiers and their state", "{notifiers:[object]}",
	 .handle = koine_notify_handle_list},
	{"notify.test", "Send a test message and wait for a button press",
	 "{name:string sent:boolean asks:boolean pressed:string by:string}",
	 FIELDS(test_fields, test_in), .handle = handle_test,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
};

const struct method_table koine_notify_methods = METHOD_TABLE(rows);
