/*
 * For client.c: how answers are wrapped and go to the connection. Short ones are copied into its
 * buffer; of long ones the buffer itself is handed over.
 */
#pragma once

#include "call/dispatch.h"
#include "call/client.h"

/* One message; over HTTP with that status. */
void answer_send_text(struct client *s, int status, const char *data, size_t len);

/* A call's, or a batch's; the buffer may be taken. */
void answer_send(struct client *s, int status, struct buf *out);

/* What stands for none. */
void answer_send_silence(struct client *s);

/* Adds a call's answer to those of its batch; sends them all. */
void answer_batch(struct batch *b, struct call *c);
void answer_finish_batch(struct client *s);
