/* What every dialect with conversations reads and says alike. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"
#include "call/call.h"
#include "engine/chat/chat.h"
#include "wire/json.h"

/* Whether it is a number without a fraction, and written so. */
bool chat_wire_is_integer(const struct value *v);

/*
 * A request id in the one form it is compared and echoed in: its JSON, where "a" is written in
 * one way only. REFUSE_PARAMS, without words, for what is neither string nor integer.
 */
int chat_wire_request_id(struct arena *a, const struct value *v, struct text *ret_id);

/* The same into what is asked, with the name that the log knows it by; v NULL: a new one. */
int chat_wire_ask_id(struct arena *a, const struct value *v, struct chat_ask *ask);

/*
 * Another paragraph of a text in the arena, both as {0} at first: room is what it has beyond its
 * length, so that of many paragraphs not each copies all before it.
 */
int chat_wire_join(struct arena *a, struct text *to, size_t *room, struct text more);

/* "Internal error: ProviderError: …", whole: what a provider says may be long. False when it was
 * something else that failed. buf_done either way. */
bool chat_wire_agent_error(const struct chat_answer *a, struct buf *ret_text);

/* Fails with it, if it was the agent. */
bool chat_wire_fail_agent(struct call *c, const struct chat_answer *a);

/* A page of a conversation's messages: the member "messages", each with its place among all. */
void chat_wire_messages(struct json *j, const struct message_page *page);
