/* The commands for any server that have their own file. */
#pragma once

#include "cli/kit/cli.h"

int cmd_discover(struct cli *cli);
int cmd_wire(struct cli *cli);
