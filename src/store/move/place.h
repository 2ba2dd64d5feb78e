/* One end of a move: a store that is held and connected to, but not in use. */
#pragma once

#include "base/error.h"
#include "store/db/driver.h"

enum { MOVE_STATE_MAX = 200 };

struct move_place {
	const struct store_ops *ops;
	void *place;
	struct connection conn;
};

/* A whole store of this program's version. Changes nothing. */
int move_open_source(const char *url, struct move_place *p, struct error *error);

/* Either nothing of ours, or what an interrupted move has left; *ret_state is then what that has
 * written, else "". Refuses anything else, and changes nothing. */
int move_open_target(const char *url, struct move_place *p, char ret_state[MOVE_STATE_MAX],
		     struct error *error);

/* Accepts one that was never opened, or only in part. */
void move_place_close(struct move_place *p);

const char *move_place_name(const struct move_place *p);

/* Words a fault. Refusals stay as they are. */
int move_explain(const struct move_place *p, int r, struct error *error);
