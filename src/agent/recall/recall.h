/*
 * koine's own responder: no network, no model. It quotes the sentences of the conversation and
 * of memory that match the question best, and says where they came from. The same conversation
 * always gets the same answer.
 */
#pragma once

#include "agent/agent.h"
#include "io/loop.h"

struct recall_opts {
	const char *name;
	/* Between two words, so that streaming and cancelling can be seen. */
	unsigned word_delay_ms;
	int64_t budget;
	int64_t reserve;
	/*
 * Orders sentences by how well they answer the question: writes the numbers of at most `max`
 * of them, best first, and none that is unrelated. On a reader's thread.
 */
	int (*rank)(void *arg, const struct text *sentences, unsigned n, struct text question,
		    unsigned *ret_best, unsigned max, unsigned *ret_n);
	void *arg;
};

int recall_new(struct loop *l, const struct recall_opts *opts, struct agent **ret_agent);
