/*
 * Kept counts: where they stand, and how they get there (store/db/schema_tally.h says what is
 * counted). Adding a row costs nothing; every so many rows, all that came since are counted at
 * once. So what a question has left to count itself is bounded.
 */
#pragma once

#include <stdint.h>

struct connection;

enum tallied {
	TALLY_TASK,
	TALLY_MEMORY,
	TALLY_CONVERSATION,
	TALLY_CALL,
	TALLY_SESSION,
	N_TALLIED,
};

/* After a row was added, with its number. */
int tally_added(struct connection *c, enum tallied what, int64_t seq);

/* At the start: counts what was stored by others, or before there were tallies. */
int tally_catch_up(struct connection *c);
