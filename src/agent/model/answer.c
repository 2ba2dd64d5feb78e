/*
 * The bytes of an answer. Most are a stream of events; a server that does not stream sends one
 * JSON object instead, whatever its content type says; the first byte tells which. The buffers
 * of either are small or given back between events.
 */
#include <errno.h>

#include "agent/model/inner.h"

static const struct json_limits limits = {.depth = 64, .values = 100000};

static bool model_answer_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* ---- one object ---- */

static int read_object(struct agent_turn *t, struct text data, const struct value **ret_value)
{
	struct arena *arena = &t->model->arena;
	const struct value *reported;
	struct value *v;
	struct error error;
	int r;

	arena_reset(arena);
	r = json_read(arena, data.data, data.len, &limits, &v, &error);
	if (r < 0)
		return turn_fail(t, "ProviderError", "out of memory while reading the response");
	if (r > 0)
		return turn_fail(t, "ProviderError",
				 "the provider sent an invalid response: not JSON (%.100s)",
				 error.text);
	if (v->kind != VALUE_OBJECT)
		return turn_fail_garbage(t, "the response is not a JSON object");
	reported = value_find(v, "error");
	if (reported && reported->kind != VALUE_NULL)
		return turn_fail(t, "ProviderError", "the provider reported an error%s",
				 phrase_after_colon(phrase_of_error(v), t->key).text);
	*ret_value = v;
	return 0;
}

static int model_answer_on_event(void *arg, const struct sse_event *event)
{
	struct agent_turn *t = arg;
	const struct value *v;
	int r;

	t->n_events++;
	if (text_is(event->data, "[DONE]")) {
		turn_conclude(t);
		return -ECANCELED;
	}
	r = read_object(t, event->data, &v) ?: t->model->provider->on_event(t, v);
	return r == 0 && t->over ? -ECANCELED : r;
}

/* ---- bytes ---- */

/* A byte order mark counts as the start of events: JSON must not have one. */
static enum body kind_of(const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!model_answer_is_space(data[i]))
			return data[i] == '{' ? BODY_WHOLE : BODY_EVENTS;
	}
	return BODY_UNKNOWN;
}

static void push_events(struct agent_turn *t, const char *data, size_t n)
{
	struct error error;
	int r = sse_push(&t->sse, data, n, model_answer_on_event, t, &error);

	if (r == 0 || t->over || t->cancelled)
		return;
	if (r > 0)
		turn_fail(t, "ProviderError", "the provider sent an invalid response: %s",
			  error.text);
	else
		turn_fail(t, "ProviderError", "out of memory while reading the response");
}

static void push_whole(struct agent_turn *t, const char *data, size_t n)
{
	if (t->held.len + n > MODEL_WHOLE_MAX) {
		turn_fail_garbage(t, "the response exceeds its size limit");
		return;
	}
	buf_add(&t->held, data, n);
	if (t->held.err != 0)
		turn_fail(t, "ProviderError", "out of memory while reading the response");
}

void answer_push(struct agent_turn *t, const char *data, size_t n)
{
	if (t->body == BODY_UNKNOWN)
		t->body = kind_of(data, n);
	if (t->body == BODY_EVENTS)
		push_events(t, data, n);
	else if (t->body == BODY_WHOLE)
		push_whole(t, data, n);
}

/* ---- the end ---- */

static void read_whole(struct agent_turn *t)
{
	const struct value *v;
	int r = read_object(t, buf_bytes(&t->held), &v) ?: t->model->provider->on_whole(t, v);

	if (r == 0)
		turn_conclude(t);
}

static void fail_cut(struct agent_turn *t, const struct http_answer *a)
{
	const struct model *m = t->model;

	if (a->idle)
		turn_fail(t, "ProviderTimeout", "no data from the provider for %s",
			  phrase_of_ms(m->opts.idle_timeout_ms).text);
	else if (a->error == -ETIMEDOUT)
		turn_fail(t, "ProviderTimeout", "timed out: the response took longer than %s",
			  phrase_of_ms(m->opts.total_timeout_ms).text);
	else if (a->error == -EMSGSIZE)
		turn_fail_garbage(t, "the response exceeds its size limit");
	else if (a->error == 0 && t->body == BODY_UNKNOWN)
		turn_fail(t, "ProviderError", "the provider sent an empty response");
	else if (a->error == 0 && t->n_events == 0)
		turn_fail_garbage(t, "the response is not an event stream");
	else
		turn_fail(t, "ProviderError",
			  "the connection closed in the middle of the response");
}

void answer_end(struct agent_turn *t, const struct http_answer *a)
{
	/* A server that has said why it stopped need not close properly. */
	if (t->body == BODY_WHOLE && a->error == 0)
		read_whole(t);
	else if (t->reply.stopped)
		turn_conclude(t);
	else
		fail_cut(t, a);
}
