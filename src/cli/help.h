/* What koine help prints, in rows that fit the terminal. */
#pragma once

#include "cli/kit/command.h"

/* The common commands, and where to read on. */
void help_print(const struct command_group *groups);

/* Every command, the common options and the exit codes. */
void help_print_all(const struct command_group *groups);

/* `of` is the command that it belongs to, or NULL. */
void help_print_command(const struct command *of, const struct command *c);
