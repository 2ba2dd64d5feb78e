/* A conversation as one text, as command.h says. */
#pragma once

#include "agent/agent.h"
#include "base/buf.h"

enum { COMMAND_PROMPT_MAX = 64 << 20 };

/* Appends it; failures stick to out->err. */
void command_prompt(const struct agent_ask *ask, struct buf *out);
