/* What koine has put into a file is known by the program that it starts, or by where it posts. */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>

#include "cli/connect/edit.h"

/* "koine", "/usr/bin/koine", "'/a b/koine' hook --timeout 590": koine itself, or its hook. */
bool ours_is_command(struct text command);

/* "/a b/koine": the path of a program, without arguments. */
bool ours_is_program(struct text path);

/* Whether every command, and every hook by HTTP, in it is ours; *ret_mixed: only some are. */
bool ours_is(const struct koine_value *v, bool *ret_mixed);

/*
 * Joins two lists of words under a key: what is there, with what users have added, and what koine
 * connect wants. In arguments ("args", or "command" with the program) only the socket is replaced. 0 or
 * -ENOMEM; *ret_doc, which the caller frees, is NULL if they cannot be joined.
 */
int ours_join(struct text key, const struct koine_value *is, const struct koine_value *wanted,
	      struct koine_doc **ret_doc);

/* ---- which koine an agent's file starts ---- */

/* Calls fn for the program of each server and hook in the text of a file that is koine's. */
void program_each(const struct editor *by, struct text text,
		  void (*fn)(void *arg, struct text program), void *arg);
