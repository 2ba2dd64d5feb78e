/*
 * koine's own responder: no network, no model. It quotes the sentences of the conversation and
 * of memory that match the question best, and says where they came from. The same conversation
 * always gets the same answer.
 */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/text.h"
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

/* What the recall agent says: quotes, where they come from, and what it is. */

/* The buffer's maximum for an answer. */
enum { RECALL_ANSWER_MAX = 16 * 1024 };

/* Appends the whole answer. Any thread. */
int recall_answer(const struct recall_opts *opts, const struct agent_ask *ask, struct buf *out);

/* Text into sentences, and what each of them does; judged by looks alone, which is cheap. */

enum { SENTENCE_MAX = 400 }; /* bytes; longer ones come in parts */

enum sentence_kind {
	SENTENCE_SAYS,
	SENTENCE_ASKS,   /* "What is my name?" */
	SENTENCE_WANTS,  /* "Tell me my name." */
	SENTENCE_GREETS, /* "Hello!" */
};

/*
 * Takes the next sentence off the front of *rest, without white space around it. A newline
 * ends a sentence; a full stop does unless it belongs to an abbreviation, a number or an
 * address. False when nothing is left.
 */
bool sentence_next(struct text *rest, struct text *ret_sentence);

enum sentence_kind sentence_kind(struct text s);

/* Whether two are the same apart from case and what surrounds their words. */
bool sentence_same(struct text a, struct text b);
