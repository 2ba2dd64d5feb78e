/* Which koine an agent's file starts. */
#pragma once

#include "cli/connect/edit.h"

/* Calls fn for the program of each server and hook in the text of a file that is koine's. */
void program_each(const struct editor *by, struct text text,
		  void (*fn)(void *arg, struct text program), void *arg);
