/* koine memory. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command memory_commands[];
