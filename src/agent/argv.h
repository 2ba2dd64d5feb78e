/*
 * A program's arguments, where some of them are somebody else's text: a prompt, a name, an id.
 * None of those can become an option.
 */
#pragma once

#include "base/text.h"

struct argv;

void argv_add(struct argv *a, struct text word);
void argv_add_words(struct argv *a, const char *const *words); /* NULL-ended, and ours */

/*
 * An option with its value; nothing where that is empty. It is two arguments, as every program
 * accepts it, unless the value begins with a dash: then "FLAG=VALUE", which cannot be taken
 * for two options.
 */
void argv_add_flag(struct argv *a, const char *flag, struct text value);

/* The same with a list, "a,b" in one argument. */
void argv_add_list(struct argv *a, const char *flag, const struct text *list, unsigned n);

/*
 * The arguments that `fill` adds; it is called twice, first to measure them. NULL-ended, one
 * piece of memory, for free(). NULL: no memory.
 */
char **argv_make(void (*fill)(struct argv *a, const void *arg), const void *arg);
