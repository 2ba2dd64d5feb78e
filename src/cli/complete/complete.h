/*
 * koine __complete SHELL WORD...: what the last word may become, for the scripts in
 * dist/completions.
 *
 * The words are those behind the program's name, up to the cursor; the last may be empty. The
 * first line that is printed says how to go on: "words" (the lines that follow are all there
 * is), "open" (the same, and more is typed behind one, without a space), "files" or "folders"
 * (the shell offers those, too). Then a line for each candidate, as that shell wants it.
 *
 * A shell waits for this with every Tab. So it ends in time whatever the server does, its exit
 * code is 0, and it offers nothing where it cannot know.
 */
#pragma once

#include "cli/kit/command.h"

extern const char complete_command[];

int complete_run(const struct command_group *groups, int n_args, char **args);
