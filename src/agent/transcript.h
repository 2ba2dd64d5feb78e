/*
 * The lines that a coding agent prints (stream-json, as `claude --print --output-format
 * stream-json --verbose` does), as what was said, for those who keep the whole conversation:
 * every block of text, every call of a tool and its result, in order.
 *
 *	{"type":"system","subtype":"init","session_id":…,"model":…}
 *	{"type":"assistant"|"user","message":{"role":…,"content":"…" or [{"type":"text"|"thinking"|
 *		"tool_use"|"tool_result"|…}]},"session_id":…}
 *	{"type":"result","subtype":…,"is_error":…,"result":…,"total_cost_usd":…,"usage":{…}}
 *
 * Nothing is fatal: a line that is no JSON, or of a type that is not known, is told as it is; so
 * is, alone, a block of a kind that is not known. Messages in pieces (stream_event) are passed
 * over, as the whole follows; those of agents below this one are told like any other.
 * Bytes come in any pieces. What is no UTF-8, and half a surrogate pair, becomes U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/json_lines.h"
#include "base/text.h"
#include "base/value.h"

enum {
	TRANSCRIPT_LINE_MAX =
		16 << 20, /* bytes; of a longer line only the beginning is passed on, as SAID_RAW */
	TRANSCRIPT_RAW_MAX = 64 << 10, /* bytes of a line that is passed on as it is */
};

enum said_kind {
	SAID_TEXT,
	SAID_THINKING,
	SAID_TOOL_CALL,
	SAID_TOOL_RESULT,
	SAID_SYSTEM, /* any system line, also init */
	SAID_RESULT, /* the end, as the agent sees it */
	SAID_RAW,    /* a line, or a block of one, that is not understood */
};

/* Valid until the callback returns. */
struct said {
	enum said_kind kind;
	struct text session;     /* the agent's own id, if the line has one; {NULL, 0} */
	struct text parent_tool; /* the call that a subagent speaks for; {NULL, 0} */
	struct text model;       /* of an init, or a message; {NULL, 0} */
	struct text role;        /* "assistant", "user"; of SAID_SYSTEM "system" */
	struct text text; /* a block's, never empty; a tool's result, arrays joined by newlines; a
			   * system line's content; the result's text; the raw line or block */
	struct text tool_id; /* of a call, or of the call that this is the result of */
	struct text tool_name;
	const struct value *tool_input; /* of a call; an object */
	bool is_error;                  /* a tool's result, or the end, says so */
	struct text subtype;            /* SAID_SYSTEM, SAID_RESULT */
	/* SAID_RESULT; -1 (cost: < 0) where it does not say */
	struct text error; /* why, if it says so or is_error; {NULL, 0} */
	double cost_usd;
	int64_t duration_ms;
	int64_t turns;
	int64_t input_tokens; /* cached or not */
	int64_t output_tokens;
};

/* The functions below return what it returned if that was not 0, and pass on nothing more of
 * these bytes. */
typedef int (*said_fn)(void *arg, const struct said *said);

struct transcript {
	struct json_lines lines;
	said_fn fn;
	void *arg;
	uint64_t n_lines; /* that are not blank */
	uint64_t n_bad;   /* lines passed on as SAID_RAW */
};

void transcript_init(struct transcript *t, said_fn fn, void *arg);
void transcript_done(struct transcript *t);
int transcript_feed(struct transcript *t, const char *data, size_t len);
/* What is left counts as a line. */
int transcript_finish(struct transcript *t);
