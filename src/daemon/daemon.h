/* What koined does once its flags have been read. Each function returns the exit status. */
#pragma once

#include "daemon/plan.h"

/* Reads the settings again. */
typedef int (*reload_fn)(struct settings *ret_settings, struct why *why);

/* No exit status: the program is to run itself again, because what it remembers of the store is wrong, or
 * because it was asked to. */
enum { DAEMON_ANEW = -1, DAEMON_AGAIN = -2 };

/* Listens, serves, and returns after a stop. */
int daemon_run(struct settings *s, const struct plan *plan, reload_fn reload);

/* Before the program runs itself again: waits until the server of the store answers and, for two minutes at most, until
 * it refuses nothing. A server that has just failed over may go away once more, and a start without one ends. */
void daemon_await_store(const struct settings *s);

/* Prints what would happen and whether it can. */
int daemon_check(const struct settings *s, const struct plan *plan);

/* Prints where each dialect would listen, and who is where its clients look, as JSON. */
int daemon_dialects(const struct settings *s, const struct plan *plan);

/* Takes over a store that somebody else has made (see store/adopt.h). */
int daemon_adopt(const struct settings *s);

/* Makes the tables of the store, or brings them up to date. */
int daemon_init_store(const struct settings *s);

/* Copies a store into another database (see store/move/move.h). */
int daemon_move(const char *from, const char *to);
