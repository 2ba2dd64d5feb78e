/*
 * The text in the provider's events, found the cheapest way: enough for what
 * provider.c writes (an event a line, no escapes), and no reader of events in general.
 * It is what the floor of relaying, and reading without any relay, have to do.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"

enum sse_found {
	SSE_NOTHING, /* more bytes must come */
	SSE_TEXT,
	SSE_END,
	SSE_REFUSED, /* an answer that is not a 200 */
};

/* Looks at whole lines from *used on, and moves it past what it has looked at. */
enum sse_found sse_next(const char *data, size_t len, size_t *used, struct text *ret_text);
