/* What the words of an agent's row, %c and the like, stand for on this machine. */
#pragma once

#include <stdbool.h>

#include "cli/connect/agents.h"
#include "cli/kit/cli.h"

/* Where koined itself takes hooks: the port that it has for MCP, and the token of that. */
struct door {
	char url[160]; /* "http://127.0.0.1:8766/hook" */
	bool held;     /* by a socket unit, so that nobody else can take it while koined is away */
	char token[256]; /* "": it wants none */
};

/* Asks the daemon. 0 or an exit code; it has complained then, unless it was to be quiet. */
int door_find(struct cli *cli, bool quiet, struct door *ret);

struct words {
	char program[PATH_MAX];
	char socket[PATH_MAX];   /* "": koine finds it by itself */
	const struct door *door; /* NULL: hooks are commands */
	bool starts;             /* koine mcp starts koined */
};

/*
 * Where koine and its socket are. In a project's files, which others have, too, the program is
 * named and not placed, and the socket is named only if --socket was given. 0 or an exit code; it
 * has complained then.
 */
int words_find(const struct cli *cli, const struct agent *agent, bool is_shared, struct words *w);

/* Whether koine mcp must start koined: it is the user's own, and no service manager runs it. */
bool words_need_start(const struct cli *cli);

/* The value of a row. NULL: out of memory; the caller frees it. */
char *words_fill(const struct words *w, const struct agent *agent, const char *value);
