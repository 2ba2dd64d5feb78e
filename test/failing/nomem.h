/*
 * Allocations that fail at will, for tests: a program that is linked with nomem_dep has its malloc, calloc, realloc,
 * strdup and strndup led through nomem.c, and with the address sanitizer each piece of an arena (base/arena.h) as well. What
 * libc and other libraries allocate themselves does not fail.
 */
#pragma once

#include <stdbool.h>

/* From now on, allocation number `at` fails, and with all_after each one that follows. */
void nomem_fail(unsigned at, bool all_after);

/* From now on, step number `at` of SQLite's statements fails, as if the disk did, and no allocation. */
void nomem_fail_step(unsigned at);

/* From now on, none fails. */
void nomem_stop(void);

/* The number of the allocation or step that fails; 0 if none does. */
unsigned nomem_at(void);

/* Whether one has failed since nomem_fail. */
bool nomem_failed(void);

/* Set in a thread whose allocations neither fail nor count. */
extern _Thread_local bool nomem_spared;

/* Whether the allocation that is asked for now fails. */
bool nomem_refuses(void);

/* Only allocations of the thread that calls nomem_fail fail and count. */
extern bool nomem_here_only;
