/* What the commands about the daemon share. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command store_subs[];

int cmd_status(struct cli *cli);
int cmd_backup(struct cli *cli);
