/* koined's parts, put together. */
#pragma once

#include "call/dialect.h"
#include "call/server.h"
#include "daemon/settings/settings.h"
#include "io/activation.h"

/* Every dialect that koined speaks. One place, in sight. */
struct spoken {
	const struct dialect *dialect;
	const char *socket;       /* its name under --root and in the runtime folder */
	const char *variable;     /* of the environment, that names its socket; or NULL */
	const char *old_variable; /* that does where the first does not; or NULL */
	const char *
		place; /* where its clients look for it, "~/" is the user's; NULL: the runtime folder */
	const char *address; /* of one that has a port instead of a socket; or NULL */
	bool optional;       /* listens only where it is named */
	bool in_project;     /* its socket lies in a project's folder */
};

extern const struct spoken dialects[];
extern const unsigned n_dialects;

const struct spoken *dialect_find(const char *name);

/* What would be listened at: the plan that --check prints. */
struct plan_row {
	const struct spoken *spoken;
	struct address address;
	int fd;                 /* handed over by the service manager, or -1 */
	bool runtime;           /* lies in the runtime folder, which must be ours */
	char project[PATH_LEN]; /* aiwg: whose folder it is for */
};

struct plan {
	struct plan_row rows[LISTENS_MAX + ACTIVATION_MAX + PROJECTS_MAX];
	unsigned n;
};

int plan_make(const struct settings *s, const struct activation *given, struct plan *ret_plan,
	      struct why *why);

/* Reads the settings again. */
typedef int (*reload_fn)(struct settings *ret_settings, struct why *why);

/* Listens, serves, and returns the exit status after a stop. */
int daemon_run(struct settings *s, const struct plan *plan, reload_fn reload);

/* Prints what would happen and whether it can; the exit status. */
int daemon_check(const struct settings *s, const struct plan *plan);

/* Takes over a store that somebody else has made (see store/adopt.h); the exit status. */
int daemon_adopt(const struct settings *s);

/* The token in the file, which must be private. */
int token_read(const char *file, char *out, size_t size, struct why *why);
