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
	struct buf line; /* what came of one that is not whole yet; of a long one its beginning */
	struct arena arena; /* of the line at hand; empty before each */
	bool skipping;      /* until the end of a line that is too long */
};

/*
 * One line without its end. One of more than the maximum is told when it ends, as its first
 * JSON_LINES_HEAD bytes (or all, if the maximum is less). Blank ones are not told. What it
 * returns but 0 ends the feed.
 */
typedef int (*json_line_fn)(void *arg, struct text line, bool is_long);

void json_lines_init(struct json_lines *l, size_t max);
void json_lines_done(struct json_lines *l);

/* 0, -ENOMEM, or what fn returned: the rest of the bytes is then forgotten. */
int json_lines_feed(struct json_lines *l, const char *data, size_t len, json_line_fn fn, void *arg);
/* What is left is a line. */
int json_lines_finish(struct json_lines *l, json_line_fn fn, void *arg);

/* An object, in the arena of the lines. Refuses what is none, or passes the reader's limits. */
int json_lines_read(struct json_lines *l, struct text line, struct value **ret_value);

/* A member that is a whole number from 0 to 2^53; else -1. */
int64_t json_lines_count(const struct value *object, const char *key);

/* ---- claude's ---- */

/* A "usage" (NULL: none came, and *ret stays as it is). Its input is what was not cached, ours
 * all. */
void claude_usage(const struct value *usage, struct agent_usage *ret_usage);

/* Whether a result says that the run has failed. */
bool claude_failed(const struct value *result);
