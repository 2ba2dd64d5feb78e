/* All tables of commands. The nouns' folders define them, and main lists them. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command approval_commands[];
extern const struct command automation_commands[];
extern const struct command chat_commands[];
extern const struct command connect_commands[];
extern const struct command daemon_commands[];
extern const struct command dialect_commands[];
extern const struct command doctor_commands[];
extern const struct command event_commands[];
extern const struct command host_commands[];
extern const struct command mcp_commands[];
extern const struct command memory_commands[];
extern const struct command metrics_commands[];
extern const struct command page_commands[];
extern const struct command notify_commands[];
extern const struct command project_commands[];
extern const struct command server_commands[];
extern const struct command session_commands[];
extern const struct command task_commands[];
extern const struct command top_commands[];

/* ---- complete/complete.c ---- */

extern const char complete_command[];

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
int complete_run(const struct command_group *groups, int n_args, char **args);
