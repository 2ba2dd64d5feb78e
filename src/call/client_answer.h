/*
 * For client.c: how answers are wrapped and handed to the connection. Short ones are copied
 * into its buffer; of long ones the buffer itself is handed over.
 */
#pragma once

#include "call/dispatch.h"
#include "call/client.h"

/* One message; over HTTP with that status. */
void answer_send_text(struct client *s, int status, const char *data, size_t len);

/* The answer of a call or a batch; the buffer may be taken. */
void answer_send(struct client *s, int status, struct buf *out);

/* The response where there is no answer. */
void answer_send_silence(struct client *s);

/* Adds a call's answer to its batch; sends the batch. */
void answer_batch(struct batch *b, struct call *c);
void answer_finish_batch(struct client *s);
