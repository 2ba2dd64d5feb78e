/* koine ping, call, discover and wire: for any JSON-RPC server. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command server_commands[];
