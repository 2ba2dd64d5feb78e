/* What the commands about the daemon share. */
#pragma once

#include "cli/kit/cli.h"

struct daemon_options {
	bool follow;
	bool force;
	int64_t drain_ms; /* 0: not given */
	int64_t limit;    /* 0: not given */
};

extern const struct command store_subs[];

int cmd_status(struct cli *cli);
int cmd_backup(struct cli *cli);
int cmd_log(struct cli *cli);
int cmd_start(struct cli *cli);
int cmd_stop(struct cli *cli);
int cmd_restart(struct cli *cli);
int cmd_enable(struct cli *cli);
int cmd_disable(struct cli *cli);
