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
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"
#include "agent/json_lines.h"
#include "base/buf.h"

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
