/*
 * The net/rpc side of a session: Go's clients, whose messages are trees instead of text.
 *
 * A message is decoded once, into the arena of the call that it becomes. A row that has the
 * shapes of its arguments and its reply can be called, by its whole name ("Agent.Chat"); the
 * handler neither sees nor says any gob: its parameters are a tree as ever, and the JSON it
 * answers with is put into the shape of the reply when it is sent. So the same row answers
 * those who speak JSON.
 *
 * Calls are always side by side here, and answered as they finish.
 */
#pragma once

#include "call/call.h"
#include "call/session.h"

extern const struct framing framing_gob;

/* The call of a message that framing_gob has cut: its row is found and its body fits, or why
 * says what is wrong and the tree is NULL. NULL when memory is short. */
struct call *session_gob_read(struct session *s, const struct frame *frame);

/* What the call said, on its way; the session is given up where it cannot be told at all. */
void session_gob_answer(struct session *s, struct call *c);
