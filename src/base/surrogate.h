/* Half a surrogate pair in JSON, as programs print it that cut a text between the two. */
#pragma once

#include <stddef.h>

/* Each becomes \ufffd, in place: it is as long. */
void mend_surrogates(char *json, size_t len);
