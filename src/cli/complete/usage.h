/*
 * What the usage of a command ("[OPTION]... ID TEXT... | ID -") says of the argument at one
 * place. People read it in `koine help`; completion reads the same text, so that a new command
 * needs no second table.
 *
 * Words in capitals stand for something, "..." repeats them, "|" separates alternatives, and a
 * word in small letters is typed as it is. Of alternatives in brackets only the first counts.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "cli/kit/cli.h"

struct usage {
	const char *left; /* the alternatives that were not looked at yet */
	const char *const *typed;
	int n_typed; /* arguments before the one that is asked about */
};

/* What may stand behind those that were typed, of the next alternative that has something
 * there; false: there are no more. */
bool usage_next(struct usage *u, struct text *ret_word);

/* What such a word stands for; of "DIR|NAME" the first counts. `row` is what the command says of
 * its own things. */
enum completes usage_meaning(struct text word, enum completes row);

bool usage_is_literal(struct text word);
