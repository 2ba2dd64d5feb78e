/* koine approvals, approve, deny, respond, grants and hook. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command approval_commands[];
