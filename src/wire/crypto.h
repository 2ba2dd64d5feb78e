/* Encodings, digests and signatures of texts; all of them use nettle. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"

/* Base64 (RFC 4648), with padding, and read strictly: one text for one value. */

void base64_add(struct buf *out, struct text bytes);

/* -EINVAL: not base64 (a character outside the alphabet, wrong padding, white space, bits that
 * are lost). -ENOMEM. */
int base64_read(struct arena *a, struct text in, struct text *ret_bytes);

/* A digest that identifies a text. */

enum { DIGEST_HEX_LEN = 64 };

/* SHA-256, in lower-case hexadecimal digits with a NUL. */
void digest_hex(struct text text, char out[DIGEST_HEX_LEN + 1]);

/* A signature that a receiver with the same key can check: what webhooks carry. */

enum { SIGN_HEX_LEN = 64 };

/* HMAC-SHA256 of "STAMP.BODY", in lower-case hexadecimal digits with a NUL. */
void sign_hex(struct text key, struct text stamp, struct text body, char out[SIGN_HEX_LEN + 1]);

/*
 * Texts that a client keeps for us and brings back: signed (HMAC-SHA256), so that nobody else can
 * make or change one, and bound to what they are about. They are not secret.
 */

enum { SEAL_KEY = 32 };

/* A key that nobody knows; -errno without randomness. */
int seal_key_new(uint8_t key[SEAL_KEY]);

/* Appends the sealed text. `about` is signed with it, and must be the same when it is opened. */
void seal_add(struct buf *out, const uint8_t key[SEAL_KEY], struct text what, struct text about);

/* What was sealed, in the arena. -EBADMSG: it was not sealed with this key, for this. -ENOMEM. */
int seal_open(struct arena *a, const uint8_t key[SEAL_KEY], struct text sealed, struct text about,
	      struct text *ret_what);
