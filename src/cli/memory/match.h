/*
 * Which words of a memory match a query: for showing them, not for finding them. The daemon
 * knows languages better; here it is enough to ignore endings.
 */
#pragma once

#include "base/text.h"

/* One byte for each byte of the text, not 0 where it belongs to a word of the query. The caller
 * frees it. NULL when nothing matches, or memory ran out. */
char *match_words(const char *query, struct text text);
