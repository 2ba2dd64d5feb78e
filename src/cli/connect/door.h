/* Where koined itself takes hooks: the port that it has for MCP, and the token of that. */
#pragma once

#include <stdbool.h>

struct cli;

struct door {
	char url[160]; /* "http://127.0.0.1:8766/hook" */
	bool held;     /* by a socket unit, so that nobody else can take it while koined is away */
	char token[256]; /* "": it wants none */
};

/* Asks the daemon. 0 or an exit code; it has complained then, unless it was to be quiet. */
int door_find(struct cli *cli, bool quiet, struct door *ret);
