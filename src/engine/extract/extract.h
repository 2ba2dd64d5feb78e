/*
 * Facts by an agent: turns what was said in conversations and sessions into memories, in the
 * background, once nothing has been said for a while. One piece at a time, of a bounded size, at
 * a bounded rate. A fact that memory has already is not stored again.
 *
 * A fact belongs to whoever asked in the conversation, and one of a session to the project of its
 * folder. It has the source "extracted", says what it came from, and waits to be reviewed.
 *
 * Everything belongs to the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct chat;
struct extracts;
struct memories;
struct node;
struct spend;
struct store;

struct extracts_opts {
	struct store *store;
	struct node *node; /* NULL: no other host shares the store */
	struct chat *chat; /* whose agents they are */
	struct memories *memories;
	struct loop *loop;
	struct workers *workers;
	const char *agent;
	int64_t idle_ms; /* how long nothing must have been said */
	bool held;       /* facts are not found before somebody has accepted them */
};

/* Call it before the threads start. Refuses an agent that does not exist, writes nothing of its
 * own, or cannot be kept from writing files. */
int extracts_start(const struct extracts_opts *opts, struct extracts **ret_extracts,
		   struct error *error);

/* What the agent used. On the loop; NULL for NULL. */
const struct spend *extracts_spend(const struct extracts *x);

/* Starts nothing new, and cancels the agent. Accepts NULL. */
void extracts_stop(struct extracts *x);

/* Call it after the last work has finished, and after the chat, which owns the agents, was
 * freed. Accepts NULL. */
void extracts_free(struct extracts *x);
