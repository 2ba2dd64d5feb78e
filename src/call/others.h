/*
 * How many connections and calls in flight other users have. A listener may be opened to them
 * (allow_uids), but neither one of them nor all together may use up what our own user and root
 * need.
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

/* Whether one more from this peer fits: `each` for one user, and for all of them half of what
 * there may be at all (`connections`, or descriptors). Always for our own user and root, and for
 * a peer of whom nothing is known, whom a token lets in. */
bool others_fit(const struct others *o, const struct peer *peer, unsigned each,
		unsigned connections);

/* Only after others_fit. */
void others_add(struct others *o, const struct peer *peer);
void others_remove(struct others *o, const struct peer *peer);
