/* koine chat, send, cancel, agents, conversations, messages and tokens. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command chat_commands[];
