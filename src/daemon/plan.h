/*
 * Which dialect listens where: handed over by the service manager, or only by --listen, or
 * each at its place from the settings or by default.
 *
 * With places of our own (daemon.places) a dialect's socket is in the runtime folder, and `on` adds
 * the place where its clients look, if nobody else has that.
 */
#pragma once

#include "daemon/dialects.h"
#include "daemon/settings/settings.h"
#include "io/activation.h"

struct plan_row {
	const struct dialect *dialect;
	struct address address;
	int fd;       /* handed over by the service manager, or -1 */
	bool runtime; /* lies in the runtime folder, which must be ours */
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
	     struct why *why);

int plan_make(const struct settings *s, const struct activation *given, struct plan *ret_plan,
	      struct why *why);
