/*
 * A provider's key: from the environment, from a private file, or from a command that
 * prints it. The first two are read whenever it is asked for; the third is run when it
 * must be, for all who wait, and what it printed is kept for an hour.
 *
 * On the loop's thread. Keys are wiped when they go, and stand in no text.
 */
#pragma once

#include <stdbool.h>

#include "agent/model/model.h"
#include "base/list.h"
#include "base/why.h"
#include "io/loop.h"

enum { MODEL_KEY_MAX = 4096 };

struct model_keys;

/* One who waits for the command. */
struct model_key_wait {
	struct list link;
	/* Once, unless it was cancelled; key NULL: why says what was wrong. */
	void (*fn)(void *arg, const char *key, const struct why *why);
	void *arg;
};

/* `agent` names the agent in what is refused. Refuses more than one source. */
int model_keys_new(struct loop *l, const char *agent, const struct model_key *from,
		   struct model_keys **ret_keys, struct why *why);

/* Nobody may wait any more. Accepts NULL. */
void model_keys_free(struct model_keys *k);

/*
 * *ret_key is valid until the next call of this, "" where no key is wanted, and NULL where
 * the command has to be asked: then w->fn comes, not from within. `w` must stay where it
 * is until then. Refuses with REFUSE_UNAVAILABLE.
 */
int model_keys_get(struct model_keys *k, struct model_key_wait *w, const char **ret_key,
		   struct why *why);

/* Safe on one that was never used, if its link is initialised. */
void model_key_wait_cancel(struct model_key_wait *w);

/* The provider refused this key. True: the command may know a newer one. */
bool model_keys_forget(struct model_keys *k, const char *key);
