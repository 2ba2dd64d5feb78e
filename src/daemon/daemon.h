/* koined: where it listens, what it does once its flags have been read, and the flags. */
#pragma once

#include <getopt.h>
#include <stdio.h>

#include "daemon/dialects.h"
#include "daemon/settings/settings.h"
#include "io/activation.h"

/*
 * Which dialect listens where: handed over by the service manager, or only by --listen, or
 * each at its place from the settings or by default.
 *
 * With places of our own (daemon.places) a dialect's socket is in the runtime directory, and `on` adds
 * the place where its clients look, if nobody else has that.
 */

struct plan_row {
	const struct dialect *dialect;
	struct address address;
	int fd;       /* handed over by the service manager, or -1 */
	bool runtime; /* lies in the runtime directory, which must be ours */
	bool yields;  /* to who is there already: a port to a free one, a socket to none */
	bool off;     /* handed over, but the settings have it off: nobody is served */
	bool skipped_if_broken; /* its place follows from a project's folder; if that cannot be
				 * served, koined starts without it */
	char project[PATH_LEN]; /* the folder it is for, if the dialect has sockets in projects */
};

struct plan {
	struct plan_row rows[2 * LISTENS_MAX + ACTIVATION_MAX + PROJECTS_MAX + DIALECTS_MAX];
	unsigned n;
};

/* Where one dialect listens that a client asks for while koined runs. REFUSE_FORBIDDEN: the settings
 * have it off. */
int plan_one(const struct settings *s, const struct dialect *d, struct plan *ret_plan,
	     struct error *error);

int plan_make(const struct settings *s, const struct activation *given, struct plan *ret_plan,
	      struct error *error);

/* ---- what it does; each function returns the exit status ---- */

/* Says it on stderr, and returns the status. */
int complain(const char *what, int status);

/* Reads the settings again. */
typedef int (*reload_fn)(struct settings *ret_settings, struct error *error);

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

/* The flags of koined, one row each: getopt, --help and the completion of shells read it. */

enum flag {
	FLAG_CONFIG = 256,
	FLAG_ROOT,
	FLAG_PROJECT,
	FLAG_LISTEN,
	FLAG_STORE,
	FLAG_AGENT,
	FLAG_SET,
	FLAG_LEVEL,
	FLAG_DEBUG,
	FLAG_CHECK,
	FLAG_ADOPT,
	FLAG_INIT_STORE,
	FLAG_MOVE,
	FLAG_DIALECTS,
	FLAG_SETTINGS,
	FLAG_SERVICE,
	FLAG_VERSION = 'V',
	FLAG_HELP = 'h'
};

/* For getopt_long. */
extern const char flags_short[];
const struct option *flags_long(void);

void flags_help(FILE *out);

/* koined __complete SHELL WORD...: as cli/commands.h describes it for koine. */
int flags_complete(int n_args, char **args);
