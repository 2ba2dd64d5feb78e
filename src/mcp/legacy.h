/* The methods of the legacy era, and how a message finds its session. */
#pragma once

#include "mcp/inner.h"

/* The session, by the connection or by Mcp-Session-Id; and the version that its client speaks. */
int legacy_open(struct mcp_call *mc, const struct http_request *http);
/* A message without a method: the answer to a question of ours. */
struct done legacy_answer(struct call *c);

struct done legacy_initialize(struct call *c);
struct done legacy_empty(struct call *c);
struct done legacy_set_level(struct call *c);
struct done legacy_subscribe(struct call *c);
struct done legacy_unsubscribe(struct call *c);
struct done legacy_cancelled(struct call *c);
/* Cancels the other calls of the session: no client can receive their responses any more. */
void legacy_cancel_all(struct mcp_call *mc);

/* GET and DELETE of the endpoint. */
int legacy_open_get(struct mcp_call *mc, const struct http_request *http);
int legacy_open_delete(struct mcp_call *mc, const struct http_request *http);
