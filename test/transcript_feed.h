/*
 * Pushes what an agent prints in pieces and writes down what was said, so that two ways of
 * cutting the same bytes can be compared: "kind member=text …" for each, a line each.
 *
 * Every piece lies in a block of exactly its size, so that reading too far is seen.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "agent/transcript.h"

struct transcript_feed {
	struct transcript transcript;
	struct buf out;
	unsigned n_said;
	unsigned stop_at; /* the callback returns 7 for that one; 0: never */
	int result;
};

static inline void transcript_feed_text(struct buf *out, const char *name, struct text t)
{
	if (!t.data)
		return;
	buf_add_char(out, ' ');
	buf_add_str(out, name);
	buf_add_char(out, '=');
	buf_add(out, t.data, t.len);
}

static inline void transcript_feed_int(struct buf *out, const char *name, int64_t n)
{
	if (n >= 0)
		buf_printf(out, " %s=%lld", name, (long long)n);
}

static inline int transcript_feed_note(void *arg, const struct said *s)
{
	static const char *const names[] = {
		[SAID_TEXT] = "text",      [SAID_THINKING] = "thinking",
		[SAID_TOOL_CALL] = "call", [SAID_TOOL_RESULT] = "result",
		[SAID_SYSTEM] = "system",  [SAID_RESULT] = "end",
		[SAID_RAW] = "raw",
	};
	struct transcript_feed *f = arg;
	struct buf *out = &f->out;

	buf_add_str(out, names[s->kind]);
	transcript_feed_text(out, "session", s->session);
	transcript_feed_text(out, "model", s->model);
	transcript_feed_text(out, "role", s->role);
	transcript_feed_text(out, "subtype", s->subtype);
	transcript_feed_text(out, "text", s->text);
	transcript_feed_text(out, "id", s->tool_id);
	transcript_feed_text(out, "name", s->tool_name);
	if (s->tool_input)
		transcript_feed_text(
			out, "input",
			(struct text) {.data = s->tool_input->raw, .len = s->tool_input->raw_len});
	if (s->is_error)
		buf_add_str(out, " failed");
	transcript_feed_text(out, "error", s->error);
	if (s->cost_usd >= 0)
		buf_printf(out, " cost=%g", s->cost_usd);
	transcript_feed_int(out, "ms", s->duration_ms);
	transcript_feed_int(out, "turns", s->turns);
	transcript_feed_int(out, "in", s->input_tokens);
	transcript_feed_int(out, "out", s->output_tokens);
	buf_add_char(out, '\n');
	return ++f->n_said == f->stop_at ? 7 : 0;
}

static inline void transcript_feed_init(struct transcript_feed *f)
{
	*f = (struct transcript_feed) {0};
	transcript_init(&f->transcript, transcript_feed_note, f);
	buf_init(&f->out, SIZE_MAX / 4);
}

static inline void transcript_feed_done(struct transcript_feed *f)
{
	transcript_done(&f->transcript);
	buf_done(&f->out);
}

static inline void transcript_feed_push(struct transcript_feed *f, const char *data, size_t n)
{
	char *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	if (n > 0)
		memcpy(copy, data, n);
	if (f->result == 0)
		f->result = transcript_feed(&f->transcript, copy, n);
	memset(copy, '#', n);
	free(copy);
}

/* All of it in pieces of the sizes given, repeated as long as there are bytes; NULL for one
 * piece. */
static inline void transcript_feed_all(struct transcript_feed *f, const char *in, size_t len,
				       const unsigned char *sizes, size_t n_sizes)
{
	size_t at = 0;

	for (size_t i = 0; at < len; i++) {
		size_t n = n_sizes > 0 ? (size_t)sizes[i % n_sizes] + 1 : len;

		if (n > len - at)
			n = len - at;
		transcript_feed_push(f, in + at, n);
		at += n;
	}
	if (f->result == 0)
		f->result = transcript_finish(&f->transcript);
}
