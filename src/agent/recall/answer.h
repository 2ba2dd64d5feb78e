/* What the recall agent says: quotes, where they come from, and what it is. */
#pragma once

#include "agent/agent.h"
#include "agent/recall/recall.h"
#include "base/buf.h"

/* The buffer's maximum for an answer. */
enum { RECALL_ANSWER_MAX = 16 * 1024 };

/* Appends the whole answer. Any thread. */
int recall_answer(const struct recall_opts *opts, const struct agent_ask *ask, struct buf *out);
