/*
 * The net/rpc side of a client: Go's clients, whose messages are trees instead of text.
 *
 * A message is decoded once, into the arena of the call that it becomes. A row that has the
 * shapes of its arguments and its reply can be called, by its whole name ("Agent.Chat"). The
 * handler knows nothing of gob: its parameters are a tree as ever, and the JSON it answers
 * with is put into the reply's shape when it is sent. So the same row also answers clients
 * that speak JSON.
 *
 * Calls always run side by side here, and are answered as they finish.
 */
#pragma once

#include "call/call.h"
#include "call/client.h"

extern const struct framing framing_gob;

/* The call for a message that framing_gob has cut: its row is found and its body fits, or `why`
 * says what is wrong and the tree is NULL. NULL when memory is short. */
struct call *client_gob_read(struct client *s, const struct frame *frame);

/* Sends a call's answer; drops the client where it cannot be told at all. */
void client_gob_answer(struct client *s, struct call *c);
