/* What koine --help and koine help COMMAND print, in rows that fit the terminal. */
#pragma once

#include <stdio.h>

#include "cli/kit/command.h"

void help_print(FILE *out, const struct command_group *groups);

/* `of` is the command that it belongs to, or NULL. */
void help_print_command(const struct command *of, const struct command *c);
