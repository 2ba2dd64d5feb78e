/* The arguments of a command. */
#pragma once

#include "base/buf.h"
#include "cli/kit/cli.h"

/* Whether the number of arguments is right for the command. 0, or args_refuse. */
int args_check(const struct cli *cli);

/* Prints which arguments the command takes: "task get requires one ID". EX_USAGE. */
int args_refuse(const struct cli *cli);

/* Takes the first one off. */
const char *args_take(struct cli *cli);

/* Turns parameters as typed into JSON; NULL for none. The caller frees it. It is an object or an
 * array, or with is_any any JSON. */
int args_params(const struct cli *cli, bool is_any, char **ret_params);

/* Adds the arguments, separated by spaces. */
void args_join(const struct cli *cli, struct buf *all);

/* The same, or all of stdin if the only argument is "-". If the text is too long, all->err says
 * so. */
int args_text(const struct cli *cli, struct buf *all);

/* Whether the only argument is "-". */
bool args_is_stdin(const struct cli *cli);

/* Prints the question and " [y/N] ". True if the answer starts with y. */
bool args_confirm(const char *question);

/* Adds all of stdin. If it is too long for the buffer, all->err says so. */
int args_stdin(struct buf *all);

/*
 * Where something should run: the folder that was given, or else our own working directory, since
 * the daemon has another. "" where a URL names the server: our folder means nothing on another
 * machine. Complains by the option's name, and returns an exit code.
 */
int args_folder(const struct cli *cli, const char *option, const char *given, char path[PATH_MAX]);
