/*
 * Lines of JSON as coding agents print them, from bytes that come in any pieces; and what the
 * readers of such lines share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/value.h"

enum {
	JSON_LINES_HEAD = 64 << 10, /* bytes that are kept of a line that is too long */
};

struct json_lines {
	struct buf line;    /* the incomplete line; of a long one its beginning */
	struct arena arena; /* for the current line; emptied before each */
	bool skipping;      /* until the end of a line that is too long */
};

/*
 * One line without its newline. A line over the maximum is passed on when it ends, as its
 * first JSON_LINES_HEAD bytes (or all, if the maximum is less). Blank ones are skipped. Any
 * result but 0 ends the feed.
 */
typedef int (*json_line_fn)(void *arg, struct text line, bool is_long);

void json_lines_init(struct json_lines *l, size_t max);
void json_lines_done(struct json_lines *l);

/* 0, -ENOMEM, or what fn returned: then the rest of the bytes is dropped. */
int json_lines_feed(struct json_lines *l, const char *data, size_t len, json_line_fn fn, void *arg);
/* What is left counts as a line. */
int json_lines_finish(struct json_lines *l, json_line_fn fn, void *arg);

/* An object, in the arena of the lines. Refuses anything else, and what exceeds the reader's
 * limits. */
int json_lines_read(struct json_lines *l, struct text line, struct value **ret_value);

/* A member that is a whole number from 0 to 2^53; else -1. */
int64_t json_lines_count(const struct value *object, const char *key);

/* ---- claude's ---- */

/* A "usage" (NULL: none came, and *ret stays as it is). Claude's input excludes cached tokens;
 * ours includes them. */
void claude_usage(const struct value *usage, struct agent_usage *ret_usage);

/* Whether a result says that the run has failed. */
bool claude_failed(const struct value *result);

/*
 * The lines that coding agents print, one JSON object each, into text:
 *
 *	claude -p --output-format stream-json --verbose [--include-partial-messages]
 *		assistant: its text; stream_event: text as it comes, and the message that says it
 *		again is left out; result: usage, and the text if none came before
 *	codex exec --json
 *		item.completed: an agent_message's text; turn.completed: usage
 *
 * Other objects are passed over, as are those of agents below the one that was asked, and
 * lines that are no JSON, which are counted.
 */

enum { STREAM_JSON_LINE_MAX = 16 << 20 }; /* bytes; longer ones are skipped and counted */

struct stream_json {
	struct json_lines lines;
	bool has_text;
	bool block_begins; /* what comes next is separated from what came before */
	char last;         /* byte of text */
	bool has_delta;
	char delta_id[128]; /* of the message that came in deltas; "" if it had none */
	unsigned n_known;   /* lines that are JSON */
	unsigned n_bad;
	unsigned n_long;
	bool failed;     /* it said so itself */
	char error[256]; /* how */
	struct agent_usage usage;
};

void stream_json_init(struct stream_json *s);
void stream_json_done(struct stream_json *s);

/* Both append the text that came; finish takes the remaining bytes as a line. 0 or -ENOMEM. */
int stream_json_feed(struct stream_json *s, const char *data, size_t len, struct buf *out);
int stream_json_finish(struct stream_json *s, struct buf *out);
