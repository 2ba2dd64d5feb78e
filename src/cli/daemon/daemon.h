/* What the commands about the daemon share. */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

struct daemon_options {
	bool follow;
	bool force;
	int64_t drain_ms; /* 0: not given */
	int64_t limit;    /* 0: not given */
};

int cmd_start(struct cli *cli);
int cmd_stop(struct cli *cli);
int cmd_restart(struct cli *cli);
int cmd_enable(struct cli *cli);
int cmd_disable(struct cli *cli);

/* ---- start.c ---- */

/* Prints the last lines of that log. False: there is none. */
bool background_print_log(const struct cli *cli, int64_t lines);

/* ---- enable.c ---- */

/*
 * The user's koined as a unit of systemd's user manager, where there is one that knows the unit.
 * systemctl is run, and nothing of systemd is linked.
 */

struct service {
	bool there;   /* a user manager runs, and knows koined.service */
	bool active;  /* that runs, or is about to */
	bool listens; /* its sockets do, so that the next client starts it */
	bool enabled;
	int64_t pid;
};

/* Where the options name a server it is not about the user's own koined, and there is none. */
void service_look(const struct cli *cli, struct service *ret);

enum { SERVICE_UNIT = 1, SERVICE_SOCKETS = 2 };

/* Runs systemctl --user VERB on the unit, its sockets, or both (0: none), and waits until that is done.
 * 0 or an exit code; it has complained then, with what systemctl said. */
int service_do(const char *verb, unsigned units);

/* Prints what the journal has of it, at most so many lines. 0 or an exit code. */
int service_print_log(int64_t lines);
