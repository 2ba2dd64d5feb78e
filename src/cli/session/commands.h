/* koine session. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command session_commands[];
