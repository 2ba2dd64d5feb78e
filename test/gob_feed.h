/*
 * Feeds a gob stream to its reader in pieces, and writes down what comes out.
 *
 * The bytes offered always lie in a block of exactly their size, so that a sanitizer sees a
 * reader that looks behind them, and they move between any two calls.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "wire/netrpc.h"

#define GOB_CHECK(condition)                                                                       \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

enum { GOB_FEED_BYTES = 64 << 20 };

struct gob_feed {
	struct gob_decoder gob;
	struct netrpc_reader rpc;
	bool is_rpc;
	struct arena arena;
	char *held;
	size_t n_held;
	bool stopped;
	struct buf out;
	bool quiet; /* values are not written down */
	/* NULL, or what is done with each value besides. */
	void (*each)(struct gob_feed *f, const struct gob_type *type, const struct value *v);
	void *arg;
};

static inline void gob_feed_init(struct gob_feed *f, const struct gob_limits *limits, size_t bytes)
{
	memset(f, 0, sizeof(*f));
	gob_decoder_init(&f->gob, limits);
	arena_init(&f->arena, bytes);
	buf_init(&f->out, GOB_FEED_BYTES);
}

static inline void gob_feed_init_rpc(struct gob_feed *f, enum netrpc_side side,
				     const struct gob_limits *limits, size_t bytes)
{
	gob_feed_init(f, limits, bytes);
	gob_decoder_done(&f->gob);
	netrpc_reader_init(&f->rpc, side, limits);
	f->is_rpc = true;
}

static inline void gob_feed_done(struct gob_feed *f)
{
	if (f->is_rpc)
		netrpc_reader_done(&f->rpc);
	else
		gob_decoder_done(&f->gob);
	arena_done(&f->arena);
	buf_done(&f->out);
	free(f->held);
}

static inline struct gob_types *gob_feed_types(struct gob_feed *f)
{
	return f->is_rpc ? &f->rpc.gob.types : &f->gob.types;
}

/* The tree as JSON, and what it says of its type. */
static inline void gob_feed_note(struct gob_feed *f, const struct gob_type *type,
				 const struct value *v)
{
	struct json j = json_writer(&f->out);
	char words[100];

	if (!f->quiet) {
		json_value(&j, v);
		gob_type_describe(gob_feed_types(f), type->id, words, sizeof(words));
		buf_printf(&f->out, " %s\n", words);
	}
	if (f->each)
		f->each(f, type, v);
}

static inline void gob_feed_refusal(struct gob_feed *f, const char *what, const struct error *error)
{
	GOB_CHECK(error->code > 0 && error->code < N_REFUSALS && error->text[0]);
	buf_printf(&f->out, "%s %d %s\n", what, (int)error->code, error->text);
}

static inline bool gob_feed_value(struct gob_feed *f, bool eof, size_t *ret_used)
{
	struct gob_value value = {0};

	switch (gob_next(&f->gob, &f->arena, f->held, f->n_held, eof, ret_used, &value)) {
	case GOB_MORE:
		return false;
	case GOB_VALUE:
		GOB_CHECK(*ret_used > 0 && !gob_in_message(&f->gob));
		gob_feed_note(f, value.type, value.value);
		break;
	case GOB_REFUSED:
		GOB_CHECK(*ret_used > 0 && !gob_in_message(&f->gob));
		gob_feed_refusal(f, "refused", &value.error);
		break;
	case GOB_BROKEN:
		GOB_CHECK(!gob_in_message(&f->gob));
		f->stopped = true;
		gob_feed_refusal(f, "broken", &value.error);
		return false;
	}
	arena_reset(&f->arena);
	return true;
}

static inline bool gob_feed_message(struct gob_feed *f, bool eof, size_t *ret_used)
{
	struct netrpc_message m = {0};

	switch (netrpc_next(&f->rpc, &f->arena, f->held, f->n_held, eof, ret_used, &m)) {
	case NETRPC_MORE:
		return false;
	case NETRPC_MESSAGE:
		GOB_CHECK(!netrpc_in_message(&f->rpc));
		buf_printf(&f->out, "%.*s %llu %.*s: ", TEXT_ARGS(m.method),
			   (unsigned long long)m.seq, TEXT_ARGS(m.error));
		if (m.body)
			gob_feed_note(f, m.body_type, m.body);
		else
			gob_feed_refusal(f, "refused", m.body_error);
		break;
	case NETRPC_REFUSED:
		GOB_CHECK(!netrpc_in_message(&f->rpc));
		f->stopped = true;
		gob_feed_refusal(f, "broken", m.body_error);
		return false;
	}
	arena_reset(&f->arena);
	return true;
}

/* Drops n bytes from the front, into another block. */
static inline void gob_feed_hold(struct gob_feed *f, size_t drop, const char *more, size_t n)
{
	size_t left = f->n_held - drop;
	char *held = malloc(left + n ? left + n : 1);

	GOB_CHECK(held);
	if (left > 0)
		memcpy(held, f->held + drop, left);
	if (n > 0)
		memcpy(held + left, more, n);
	if (f->n_held > 0)
		memset(f->held, '#', f->n_held);
	free(f->held);
	f->held = held;
	f->n_held = left + n;
}

static inline void gob_feed_bytes(struct gob_feed *f, const char *in, size_t n, bool eof)
{
	bool again = true;

	gob_feed_hold(f, 0, in, n);
	while (again && !f->stopped) {
		size_t used = SIZE_MAX;

		again = f->is_rpc ? gob_feed_message(f, eof, &used) : gob_feed_value(f, eof, &used);
		GOB_CHECK(used <= f->n_held);
		gob_feed_hold(f, used, NULL, 0);
	}
}

/* The whole stream in pieces of the sizes given and one byte, in turn; then, if wanted, its end. */
static inline void gob_feed_all(struct gob_feed *f, const char *in, size_t len,
				const unsigned char *sizes, size_t n_sizes, bool eof)
{
	size_t at = 0;

	for (size_t i = 0; at < len && !f->stopped; i++) {
		size_t n = n_sizes > 0 ? (size_t)sizes[i % n_sizes] + 1 : len;

		if (n > len - at)
			n = len - at;
		gob_feed_bytes(f, in + at, n, false);
		at += n;
	}
	if (eof && !f->stopped)
		gob_feed_bytes(f, NULL, 0, true);
}
