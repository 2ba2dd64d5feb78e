/*
 * Ownership within one function: a variable that frees itself when it leaves
 * scope, and TAKE() to hand it on.
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hands the pointer on: the variable is left NULL, so its cleanup does nothing. */
#define TAKE(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) take_ = (p);                                                         \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

/* Defines NAMEp for CLEANUP(NAMEp), which frees a struct TYPE by NAME, unless it is NULL. */
#define CLEANUP_POINTER(type, name)                                                                \
	static inline void name##p(struct type **p)                                                \
	{                                                                                          \
		if (*p)                                                                            \
			name(*p);                                                                  \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
