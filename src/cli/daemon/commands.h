/* koine status, daemon, backup and store. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command status_commands[];
extern const struct command daemon_commands[];
