/* koine task. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command task_commands[];
