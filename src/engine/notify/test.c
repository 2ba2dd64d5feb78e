/* A notice that only says that it works, and waits for its button. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/uuid.h"
#include "engine/notify/inner.h"

enum { TESTS_MAX = 16 };

static void test_free(struct notify_test *t)
{
	list_remove(&t->link);
	if (t->message) {
		t->message->test = NULL;
		/* The button of one that nobody waits for means nothing. */
		if (!t->message->outcome[0])
			message_drop(t->message);
	}
	timer_free(t->timer);
	free(t);
}

static void on_timer(void *arg)
{
	struct notify_test *t = arg;
	const struct notify_test_result result = {
		.sent = t->sent, .asks = t->asks, .pressed = t->pressed, .by = t->by};
	notify_test_fn fn = t->fn;
	void *fn_arg = t->arg;
	struct error error;
	int r = t->result;

	if (!t->over)
		r = refuse(&t->error, REFUSE_TIMEOUT, "%s",
			   t->sent ? "the test message was sent, but no button was pressed in time"
				   : "timeout while sending the test message");
	error = t->error;
	fn(fn_arg, r, &result, &error);
	test_free(t);
}

/* fn is told by the timer: not from within whatever ended the test. */
static void notify_test_end(struct notify_test *t, int result)
{
	if (t->over)
		return;
	t->over = true;
	t->result = result;
	timer_start(t->timer, 0);
}

void test_sent(struct notify_test *t)
{
	t->sent = true;
	if (!t->asks)
		notify_test_end(t, 0);
}

void test_failed(struct notify_test *t, const char *what)
{
	notify_test_end(
		t, refuse(&t->error, REFUSE_UNAVAILABLE, "cannot send the test message: %s", what));
}

void test_pressed(struct notify_test *t, enum approval_status decision, const char *by)
{
	t->pressed = decision == APPROVAL_APPROVED ? "approve" : "deny";
	snprintf(t->by, sizeof(t->by), "%s", by);
	notify_test_end(t, 0);
}

static int notify_test_fill(struct notify_test *t, struct way *w)
{
	const char *host = w->notify->opts.host;
	char key[KEY_MAX], id[UUID_LEN + 1], text[200];
	struct notify_message *m;
	int r = uuid4(id);

	if (r != 0)
		return r;
	snprintf(key, sizeof(key), "test:%s", id);
	snprintf(text, sizeof(text), "This is a test message from koine on %s.%s", host,
		 t->asks ? " Press a button to test replies." : "");
	m = message_get(w, ABOUT_TEST, key);
	if (!m)
		return -ENOMEM;
	m->test = t;
	t->message = m;
	m->kind = APPROVAL_FUNCTION;
	m->title = TEXT("A test");
	r = arena_copy_text(&m->arena, text_of(text), &m->text);
	message_field(m, "event", TEXT("test"));
	message_field(m, "title", m->title);
	message_field(m, "text", m->text);
	message_field(m, "host", text_of(host));
	return r;
}

static int notify_test_check(const struct notify *n, const struct way *w, struct text name,
			     struct error *error)
{
	unsigned count = 0;

	list_for_each (at, following, &n->tests)
		count++;
	if (!w)
		return refuse(error, REFUSE_NOT_FOUND, "notifier not found in the settings: '%.*s'",
			      TEXT_ARGS(text_cut(name, 40)));
	if (!w->notifier)
		return refuse(error, REFUSE_UNAVAILABLE, "notifier '%s' is disabled: %.120s",
			      w->name, w->error);
	if (count >= TESTS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many notifier tests are running (limit %d)",
			      TESTS_MAX);
	return 0;
}

int notify_test_start(struct notify *n, struct text name, int64_t timeout_ms, notify_test_fn fn,
		      void *arg, struct notify_test **ret_test, struct error *error)
{
	struct way *w = way_find(n, name);
	struct notify_test *t;
	int r = notify_test_check(n, w, name, error);

	if (r != 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	list_init(&t->link);
	t->notify = n;
	t->fn = fn;
	t->arg = arg;
	t->asks = notifier_asks(w->notifier);
	r = timer_new(n->opts.loop, on_timer, t, &t->timer) ?: notify_test_fill(t, w);
	if (r != 0) {
		test_free(t);
		return r;
	}
	list_append(&n->tests, &t->link);
	timer_start(t->timer, (uint64_t)timeout_ms);
	*ret_test = t;
	way_pump(w);
	return 0;
}

void notify_test_leave(struct notify_test *t)
{
	if (t)
		test_free(t);
}

void tests_stop(struct notify *n)
{
	list_for_each (at, following, &n->tests)
		notify_test_end(list_entry(at, struct notify_test, link),
				refuse(&list_entry(at, struct notify_test, link)->error,
				       REFUSE_STOPPING, "koined is stopping"));
}
