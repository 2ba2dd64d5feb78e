/* The user's koined as a plain process, where nobody else keeps services: in containers. */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

/* Where its log is: beside the default store. False: there is no home, or the path is too long. */
bool background_log(char path[PATH_MAX]);

/* Waits for others who are starting it, and keeps them waiting until the descriptor is closed. 0 or an
 * exit code; it has complained then. */
int background_lock(int *ret_fd);

/*
 * Starts it, in a session of its own, with its log in that file, and waits until it is ready. 0
 * and its pid, or an exit code; it has said why then, with what the log has of this start.
 */
int background_start(const struct cli *cli, int64_t *ret_pid);

/* Prints the last lines of that log. False: there is none. */
bool background_print_log(const struct cli *cli, int64_t lines);
