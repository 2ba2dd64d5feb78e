/* A conversation as one text, as command.h describes it. */
#pragma once

#include "agent/agent.h"
#include "base/buf.h"

enum { COMMAND_PROMPT_MAX = 64 << 20 };

/*
 * Appends it; failures stick to out->err. For an argument (room > 0) it contains no NUL, which
 * becomes U+FFFD, and at most `room` bytes: the oldest messages are left out, never the last.
 */
void command_prompt(const struct agent_ask *ask, size_t room, struct buf *out);
