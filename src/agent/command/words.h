/* A command's arguments, and where its program is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "base/error.h"

#define COMMAND_PROMPT "{prompt}"
#define COMMAND_TOOLS  "{disabled_tools}"

enum {
	COMMAND_WORDS_MAX = 256,
	COMMAND_WORD_MAX =
		128 * 1024, /* bytes of one argument with its NUL: the kernel's own limit */
};

/* NULL-ended; one piece of memory, for free(). ret_n may be NULL. */
int command_split(const char *command, char ***ret_words, unsigned *ret_n, struct error *error);

/* Whether an argument has a place for the disabled tools. */
bool command_has_tools(char *const *words);

/* The arguments with these tools in their place, or ({NULL, 0}) without the arguments that have
 * such a place. NULL-ended, one piece of memory, for free(). */
int command_with_tools(char *const *words, struct text tools, char ***ret_words);

/* How long a prompt may be to fit into each argument. */
size_t command_room(char *const *words);

/*
 * The arguments with the prompt in them, as the last if none has a place for it. NULL-ended,
 * one piece of memory, for free(). Refuses a prompt that no argument can hold.
 */
int command_fill(char *const *words, struct text prompt, char ***ret_argv, struct error *error);

/* The program as a path: looked up in PATH, or relative to cwd ("": ours) if it has a slash.
 * REFUSE_UNAVAILABLE. */
int command_find(const char *program, const char *cwd, char *out, size_t size, struct error *error);

/*
 * A program's arguments, where some of them are somebody else's text: a prompt, a name, an id.
 * None of those can become an option.
 */

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
