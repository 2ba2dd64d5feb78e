/*
 * Texts that a client keeps for us and brings back: signed (HMAC-SHA256), so that nobody else can
 * make or change one, and bound to what they are about. They are not secret.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { SEAL_KEY = 32 };

/* A key that nobody knows; -errno without randomness. */
int seal_key_new(uint8_t key[SEAL_KEY]);

/* Appends the sealed text. `about` is signed with it, and must be the same when it is opened. */
void seal_add(struct buf *out, const uint8_t key[SEAL_KEY], struct text what, struct text about);

/* What was sealed, in the arena. -EBADMSG: it was not sealed with this key, for this. -ENOMEM. */
int seal_open(struct arena *a, const uint8_t key[SEAL_KEY], struct text sealed, struct text about,
	      struct text *ret_what);
