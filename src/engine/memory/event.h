/* What the log says of a memory that has changed: never its text. */
#pragma once

#include "base/arena.h"

struct memory_row;
struct services;

/* On the writer's thread; type: "memory.added" ... */
int memory_publish(struct services *s, struct arena *a, const char *type,
		   const struct memory_row *row);
