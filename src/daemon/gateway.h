/* The gateway's token, and the tools that agents may use here. */
#pragma once

#include "base/why.h"
#include "daemon/backstage.h"
#include "daemon/settings/settings.h"
#include "dialect/gateway/gateway.h"

/* OPENCLAW_UI_TOKEN, or what gateway.token_file holds; "" for none. */
int gateway_token(const struct settings *s, char *out, size_t size, struct why *why);

struct environment;

/* Starts the tools, and what the dialect needs to know before its first call. */
int gateway_begin(const struct settings *s, struct backstage *stage, struct services *services,
		  const struct environment *env, struct gateway_settings *ret_settings,
		  struct why *why);
