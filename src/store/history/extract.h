/*
 * What was said and not yet turned into facts: conversations that have been idle, conversations
 * and sessions that have ended. Each kind is walked in order of time; a cursor says how far, and
 * a mark how far a single one was read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

struct connection;

enum extract_kind { EXTRACT_OPEN, EXTRACT_ENDED, EXTRACT_SESSION, N_EXTRACT_KINDS };

/* From the first use on, what is said counts: sets the cursors, unless they are set. */
int store_extract_begin(struct connection *c, int64_t now_ms);

struct store_extract_source {
	enum extract_kind kind;
	int64_t seq; /* of the conversation or session */
	struct text id;
	struct text working_dir; /* of a session */
	int64_t time_ms;         /* its place in the walk */
	int64_t mark;            /* what was read of it: a turn, or an event */
	int64_t since_ms;        /* what was said before does not count */
};

/* The next one of the kind, if nothing was said in it after idle_ms. */
int store_extract_next(struct connection *c, enum extract_kind kind, int64_t idle_ms,
		       struct arena *arena, struct store_extract_source *ret, bool *ret_found);

/* Something that was said. */
struct store_said {
	int64_t mark; /* its turn, or its event */
	bool by_user;
	bool open; /* its turn is still running */
	int64_t time_ms;
	struct text text;
	/* Who asked, in a conversation. */
	struct text user;
	struct text chat;
	struct text chat_type;
};

/* What was said after the mark, oldest first; until its text exceeds max_bytes, each cut to
 * max_chars. */
int store_extract_read(struct connection *c, const struct store_extract_source *source,
		       unsigned max_chars, size_t max_bytes, struct arena *arena,
		       struct store_said **ret_rows, unsigned *ret_n);

/*
 * With several hosts, one of them has it: the epoch of its life. It is given to whoever asks while nobody
 * has it, or its life is over. *ret_claimed is false if another one has it, or if it was read on
 * since it was found.
 */
int store_extract_claim(struct connection *c, const struct store_extract_source *source,
			int64_t epoch, bool *ret_claimed);
/* *ret_had is false if it was not ours any more. */
int store_extract_release(struct connection *c, const struct store_extract_source *source,
			  int64_t epoch, bool *ret_had);

/* It was read up to there; with `done`, the walk goes on behind it. */
int store_extract_mark(struct connection *c, const struct store_extract_source *source,
		       int64_t mark, bool done);
