/* A signature that a receiver with the same key can check: what webhooks carry. */
#pragma once

#include "base/text.h"

enum { SIGN_HEX_LEN = 64 };

/* HMAC-SHA256 of "STAMP.BODY", in lower-case hexadecimal digits with a NUL. */
void sign_hex(struct text key, struct text stamp, struct text body, char out[SIGN_HEX_LEN + 1]);
