/*
 * ash: sandboxes that call their host. Length-prefixed JSON-RPC over a Unix socket (or
 * loopback TCP), mostly about memory.
 */
#pragma once

#include "base/setting.h"
#include "call/dialect.h"
#include "dialect/memory_wire.h"
#include "engine/memory/memory.h"
#include "wire/context_token.h"

extern const struct dialect ash_dialect;

struct ash_settings {
	char context_secret[PATH_LEN]; /* as set */
	struct context_secret secret;
};

/* Members that several methods share: who is asking. */
struct ash_who {
	struct text user_id;
	struct text chat_id;
	struct text chat_type; /* for search, list and add */
	struct text context_token;
};

/* On the loop: asks the model for the question's vector, if there is a model. */
void ash_before_search(struct call *c);
struct done ash_search(struct call *c);
struct done ash_add(struct call *c);
struct done ash_list(struct call *c);
bool ash_list_at_once(struct call *c);
struct done ash_delete(struct call *c);
struct done ash_reload(struct call *c);

struct search_in {
	struct memory_search_in search;
	bool this_chat;
	struct ash_who who;
};

struct add_in {
	struct memory_add_in add;
	struct ash_who who;
};

struct list_in {
	struct memory_list_in list;
	bool this_chat;
	struct ash_who who;
};

struct reload_in {
	struct ash_who who; /* only the token */
};

struct delete_in {
	struct text memory_id;
	struct ash_who who;
};
