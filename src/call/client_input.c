#include "call/inner.h"

#include "call/http.h"
#include "wire/framing.h"

void input_keep(struct client *s)
{
	struct text fresh;

	/* A client that reads nothing more needs no input. */
	if (s->closing)
		input_advance(s, input_window(s).len);
	fresh = s->fresh;
	s->fresh = (struct text) {0};
	if (fresh.len > 0) {
		buf_add(&s->in, fresh.data, fresh.len);
	} else if (s->in.data && s->in_start == s->in.len) {
		buf_done(&s->in);
		s->in_start = 0;
	}
}

void input_take(struct client *s, const char *data, size_t len)
{
	s->bytes_in += len;
	if (s->in.len == s->in_start) {
		buf_clear(&s->in);
		s->in_start = 0;
		s->fresh = (struct text) {.data = data, .len = len};
		return;
	}
	if (s->in_start > 0) {
		buf_consume(&s->in, s->in_start);
		s->in_start = 0;
	}
	buf_add(&s->in, data, len);
}

/* ---- time ---- */

void input_arm(struct client *s)
{
	struct server *server = s->server;

	if (!list_empty(&s->deadline_link))
		return;
	s->deadline_ms = loop_now_ms(server->loop) + server->opts.limits.read_timeout_ms;
	s->deadline_bytes = s->bytes_in;
	if (list_empty(&server->deadlines))
		timer_repeat(server->clock, 500);
	list_append(&server->deadlines, &s->deadline_link);
}

bool input_went_on(struct client *s)
{
	const struct limits *l = &s->server->opts.limits;
	bool enough = s->bytes_in - s->deadline_bytes >= l->progress_bytes;

	input_disarm(s);
	/* An HTTP request has one deadline for all of it. */
	if (!s->framing || (s->framing == &framing_http && !s->upgraded) || !enough)
		return false;
	input_arm(s);
	return true;
}

/* ---- size ---- */

/* Apart from what stands in s->in. */
static size_t held_inside(const struct client *s)
{
	if (s->upgraded)
		return upgraded_held(s->upgraded);
	return s->framing && s->framing->held ? s->framing->held(s->framing_state) : 0;
}

/* True: some of what was held has become a message. */
static bool client_input_count(struct client *s)
{
	size_t held = s->in.len - s->in_start + held_inside(s);
	bool used = held < s->input_held;

	if (held == s->input_held)
		return false;
	s->server->input_held += held - s->input_held;
	s->input_held = held;
	if (held == 0) {
		list_remove(&s->input_link);
	} else if (list_empty(&s->input_link)) {
		list_append(&s->server->inputs, &s->input_link);
		s->input_since_ms = loop_now_ms(s->server->loop);
	}
	return used;
}

void input_settle(struct client *s, bool reads)
{
	bool used = client_input_count(s);
	bool begun;

	if (!s->framing || (s->framing == &framing_http && !s->upgraded))
		return;
	begun = s->input_held > 0 || (!s->upgraded && s->framing->in_message(s->framing_state));
	if (used || !begun || !reads)
		input_disarm(s);
	if (begun && reads)
		input_arm(s);
}

void input_drop(struct client *s)
{
	input_advance(s, input_window(s).len);
	if (s->framing && s->framing->drop)
		s->framing->drop(s->framing_state);
	input_keep(s);
	client_input_count(s);
}
