/* What all dialects with conversations read and write in the same way. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"
#include "call/call.h"
#include "engine/chat/chat.h"
#include "wire/json.h"

/* Whether it is a number written without a fraction. */
bool chat_wire_is_integer(const struct value *v);

/*
 * A request id in the form in which it is compared and echoed: its JSON, where equal strings
 * are written equally. A value that is neither a string nor an integer gives REFUSE_PARAMS
 * without a message.
 */
int chat_wire_request_id(struct arena *a, const struct value *v, struct text *ret_id);

/* Reads the id into the ask, with the name that the log uses for it. If v is NULL, the ask gets
 * a new id. */
int chat_wire_ask_id(struct arena *a, const struct value *v, struct chat_ask *ask);

/*
 * Appends a paragraph to a text in the arena. Text and room begin as {0}; room counts the free
 * bytes behind the text, so that not every paragraph copies all before it.
 */
int chat_wire_join(struct arena *a, struct text *to, size_t *room, struct text more);

/* "Internal error: ProviderError: …", uncut, since a provider's message may be long. Returns
 * false if something else failed. Call buf_done either way. */
bool chat_wire_agent_error(const struct chat_answer *a, struct buf *ret_text);

/* If the agent failed, fails the call with that text and returns true. */
bool chat_wire_fail_agent(struct call *c, const struct chat_answer *a);

/* Writes a page of messages as the member "messages", each with its index in the conversation. */
void chat_wire_messages(struct json *j, const struct message_page *page);
