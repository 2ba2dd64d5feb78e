/* The commands for any server that have their own file. */
#pragma once

#include "cli/kit/cli.h"

struct server_options {
	bool markdown;
};

int cmd_discover(struct cli *cli);

/* Prints the reference of these methods, and of MCP's tools. Returns an exit code. */
int markdown_print(struct cli *cli, const struct koine_value *methods);
