/*
 * A provider's key: from the environment, from a private file, or from a command that prints
 * it. The first two are read whenever the key is asked for; the command is run when needed,
 * for everyone who waits, and its output is kept for an hour.
 *
 * On the loop's thread. Keys are wiped when they are freed, and appear in no text.
 */
#pragma once

#include <stdbool.h>

#include "agent/model/model.h"
#include "base/list.h"
#include "base/why.h"
#include "io/loop.h"

enum { MODEL_KEY_MAX = 4096 };

struct model_keys;

/* Someone who waits for the command. */
struct model_key_wait {
	struct list link;
	/* Once, unless it was cancelled; key NULL: `why` says what was wrong. */
	void (*fn)(void *arg, const char *key, const struct why *why);
	void *arg;
};

/* `agent` names the agent in refusals. Refuses more than one source. */
int model_keys_new(struct loop *l, const char *agent, const struct model_key *from,
		   struct model_keys **ret_keys, struct why *why);

/* Nobody may be waiting any more. Accepts NULL. */
void model_keys_free(struct model_keys *k);

/*
 * *ret_key is valid until the next call; "" where no key is wanted, and NULL where the command
 * has to be asked: then w->fn comes, not from within. `w` must stay in place until then.
 * Refuses with REFUSE_UNAVAILABLE.
 */
int model_keys_get(struct model_keys *k, struct model_key_wait *w, const char **ret_key,
		   struct why *why);

/* Safe on a waiter that was never used, if its link is initialised. */
void model_key_wait_cancel(struct model_key_wait *w);

/* The provider refused this key. True: the command may know a newer one. */
bool model_keys_forget(struct model_keys *k, const char *key);
