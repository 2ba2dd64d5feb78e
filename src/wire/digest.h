/* What tells one text from every other. */
#pragma once

#include "base/text.h"

enum { DIGEST_HEX_LEN = 64 };

/* SHA-256, as small hexadecimal digits and a NUL. */
void digest_hex(struct text text, char out[DIGEST_HEX_LEN + 1]);
