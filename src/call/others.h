/*
 * How many connections other users have, and calls in flight: a listener may be opened to them
 * (allow_uids), and none of them, nor all together, may use up what our own user and root need.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "io/peer.h"

enum { OTHERS_MAX = 256 }; /* at a time */

struct others {
	struct {
		uid_t uid;
		unsigned n;
	} list[OTHERS_MAX];
	unsigned n;
	unsigned total;
	unsigned calls;
};

/* Whether one more of this peer's fits: `each` for a user, half of what there may be at all,
 * `connections` or descriptors, for all of them. Always for our own and root, and for one of whom
 * nothing is known, whom a token lets in. */
bool others_fit(const struct others *o, const struct peer *peer, unsigned each,
		unsigned connections);

/* Only after others_fit. */
void others_add(struct others *o, const struct peer *peer);
void others_remove(struct others *o, const struct peer *peer);
