/* The flags of koined, one row each: getopt, --help and the completion of shells read it. */
#pragma once

#include <getopt.h>
#include <stdio.h>

enum flag {
	FLAG_CONFIG = 256,
	FLAG_ROOT,
	FLAG_PROJECT,
	FLAG_LISTEN,
	FLAG_STORE,
	FLAG_AGENT,
	FLAG_SET,
	FLAG_LEVEL,
	FLAG_DEBUG,
	FLAG_CHECK,
	FLAG_ADOPT,
	FLAG_INIT_STORE,
	FLAG_MOVE,
	FLAG_DIALECTS,
	FLAG_SETTINGS,
	FLAG_SERVICE,
	FLAG_VERSION = 'V',
	FLAG_HELP = 'h'
};

/* For getopt_long. */
extern const char flags_short[];
const struct option *flags_long(void);

void flags_help(FILE *out);

/* koined __complete SHELL WORD...: as cli/complete/complete.h describes it for koine. */
int flags_complete(int n_args, char **args);
