/* Which koine an agent's file starts. */
#pragma once

#include "cli/connect/plan.h"

/* Calls fn for the program of each server and hook in the file that is koine's. */
void program_each(const struct plan_file *f, void (*fn)(void *arg, struct text program), void *arg);
