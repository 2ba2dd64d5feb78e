/*
 * Stands for an agent that the settings name but that cannot work: its key cannot be read, or
 * its command is not one. It has its name and tells whoever asks what is wrong.
 */
#pragma once

#include "agent/agent.h"
#include "io/loop.h"

enum { ABSENT_REASON_MAX = 200 };

/* `kind` is a word that lives as long as the program; the other texts are copied. */
int absent_new(struct loop *l, const char *name, const char *kind, const char *reason,
	       struct agent **ret_agent);
