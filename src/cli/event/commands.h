/* koine events. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command event_commands[];
