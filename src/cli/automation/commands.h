/* koine automation, koine project. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command automation_commands[];
extern const struct command project_commands[];
