/*
 * The net/rpc side of a client: Go's clients, whose messages are trees instead of text.
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
#include "call/client.h"

extern const struct framing framing_gob;

/* The call of a message that framing_gob has cut: its row is found and its body fits, or why
 * says what is wrong and the tree is NULL. NULL when memory is short. */
struct call *client_gob_read(struct client *s, const struct frame *frame);

/* What the call said, on its way; the client is given up where it cannot be told at all. */
void client_gob_answer(struct client *s, struct call *c);
