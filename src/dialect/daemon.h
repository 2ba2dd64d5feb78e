/* What several dialects ask of the daemon itself: ping, health, stop. */
#pragma once

#include "call/call.h"

struct server;

struct stop_in {
	bool force;
};

struct done dialect_ping(struct call *c);
struct done dialect_stop(struct call *c);

/* The daemon's health in a word: healthy, degraded (see engine_ailing), stopping. */
const char *dialect_health(const struct server *s);

/* host.c: methods about the hosts that share a store. */
extern const struct method_table host_methods;

/* Rows of an error table, for dialects that are plain HTTP. */
#define DIALECT_HTTP_ERRORS                                                                        \
	[REFUSE_REQUEST] = {0, "invalid request", WORDS_TEXT, 400},                                \
	[REFUSE_METHOD] = {0, "path not found", WORDS_TEXT, 404},                                  \
	[REFUSE_PARAMS] = {0, "invalid parameter", WORDS_TEXT, 400},                               \
	[REFUSE_NOT_FOUND] = {0, "object not found", WORDS_TEXT, 404},                             \
	[REFUSE_CONFLICT] = {0, "conflict", WORDS_TEXT, 409},                                      \
	[REFUSE_LIMIT] = {0, "too many requests", WORDS_TEXT, 429},                                \
	[REFUSE_TOO_LARGE] = {0, "message too large", WORDS_TEXT, 413},                            \
	[REFUSE_UNAVAILABLE] = {0, "unavailable", WORDS_TEXT, 503},                                \
	[REFUSE_FORBIDDEN] = {0, "forbidden", WORDS_TEXT, 403},                                    \
	[REFUSE_TIMEOUT] = {0, "request timed out", WORDS_TEXT, 504},                              \
	[REFUSE_CANCELLED] = {0, "cancelled", WORDS_TEXT, 503},                                    \
	[REFUSE_STOPPING] = {0, "koined is stopping", WORDS_TEXT, 503}

/* The body of a refusal as clients of OpenAI expect it, and the object of a model in a list. */
void dialect_openai_refusal(struct buf *body, const struct http_refusal *no, const char *type,
			    const char *code);
void dialect_openai_model(struct json *j, const struct call *c, struct text id);
