/* Half a surrogate pair in JSON, as printed by programs that cut a text between the two halves. */
#pragma once

#include <stddef.h>

/* Replaces each with \ufffd in place, which has the same length. */
void mend_surrogates(char *json, size_t len);
