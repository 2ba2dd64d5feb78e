/* A digest that identifies a text. */
#pragma once

#include "base/text.h"

enum { DIGEST_HEX_LEN = 64 };

/* SHA-256, in lower-case hexadecimal digits with a NUL. */
void digest_hex(struct text text, char out[DIGEST_HEX_LEN + 1]);
