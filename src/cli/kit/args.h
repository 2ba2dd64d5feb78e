/* The arguments of a command. */
#pragma once

#include "base/buf.h"
#include "cli/kit/cli.h"

/* Whether there are as many as the command takes. 0, or args_refuse. */
int args_check(const struct cli *cli);

/* Says what the command takes: "task get wants one ID". EX_USAGE. */
int args_refuse(const struct cli *cli);

/* Takes the first one off. */
const char *args_take(struct cli *cli);

/* Makes JSON of parameters as they are typed; NULL for none. The caller frees it. It is an object
 * or an array, or with is_any any JSON. */
int args_params(const struct cli *cli, bool is_any, char **ret_params);

/* Adds the arguments with a space between them. */
void args_join(const struct cli *cli, struct buf *all);

/* The same, or all of stdin where the only argument is "-". Text that is too long shows in
 * all->err. */
int args_text(const struct cli *cli, struct buf *all);

/*
 * Where something is to run: the folder that was given, else the one we stand in, since the daemon
 * stands somewhere else. "" where a URL names the server: on another machine our folder means
 * nothing. Complains by the option's name, and returns an exit code.
 */
int args_folder(const struct cli *cli, const char *option, const char *given, char path[PATH_MAX]);
