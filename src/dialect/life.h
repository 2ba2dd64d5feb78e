/*
 * What koined does for a dialect beside listening: its section of the settings, and its part in
 * a start, a reload and a stop. All of it on the loop's thread; every member may be missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/setting.h"
#include "call/dialect.h"

struct arena;
struct background;
struct endpoint;
struct environment;
struct loop;
struct server;
struct engine;
struct session_wording;
struct task_wording;
struct why;

/* A section of the settings that is the dialect's own. */
struct dialect_section {
	const struct setting *rows;
	unsigned n_rows;
	const void *defaults; /* a struct that the rows are about */
	size_t size;
	bool renewed; /* follows a reload; else it stays as it was at the start */
	/* When all was read: whether it fits together. */
	int (*check)(const void *settings, struct why *why);
};

/* Its rows and defaults, for an initialiser. */
#define SECTION(table, values)                                                                     \
	.rows = (table), .n_rows = sizeof(table) / sizeof((table)[0]), .defaults = &(values),      \
	.size = sizeof(values)

/* The token that HTTP's clients of a dialect show. */
struct dialect_token {
	size_t file;          /* in its settings: the name of the token's file, or "" */
	const char *variable; /* that holds the token where there is no file; or NULL */
	bool only; /* koine.token_file is not for it: without its own, nobody is served */
};

/* What all dialects have of the daemon. */
struct dialect_means {
	struct arena *arena; /* of what lives as long as the daemon */
	struct loop *loop;
	struct server *server;
	struct engine *engine; /* from DIALECT_OPEN on */
	const struct background *background;
	const char *task_folder; /* in DIALECT_OPEN: where tasks' output goes, ... */
	int64_t task_bytes;      /* ... and how much of each */
	const struct dialect_host *hosts;
	unsigned n_hosts;
};

/* A dialect in a daemon that runs. */
struct dialect_host {
	const struct dialect *dialect;
	const struct dialect_means *daemon;
	void *settings; /* its section; what its endpoints have, unless it gives them another */
	void *state;    /* its own */
	/* Of programs that its clients start; NULL without such a setting. */
	struct environment *env;
};

/* A dialect's part in the daemon's life, in the order in which the steps come. */
enum dialect_step {
	DIALECT_PREPARE,  /* nothing is opened yet: a refusal means a wrong setting */
	DIALECT_OPEN,     /* the store is open; there are neither tasks nor threads yet */
	DIALECT_START,    /* the engine has started */
	DIALECT_RELOAD,   /* the settings were read again */
	DIALECT_STOPPING, /* a stop begins */
	DIALECT_STOPPED,  /* the loop has ended */
	DIALECT_FREE,     /* the threads have ended; also after a start that failed at any step */
	N_DIALECT_STEPS,
};

struct dialect_life {
	int (*steps[N_DIALECT_STEPS])(struct dialect_host *h, struct why *why);

	/* Refuses an address of the settings that its clients would not accept. */
	int (*check_address)(const char *address, struct why *why);
	/* For sockets in projects: refuses a folder that cannot be served, which is skipped
	 * then. */
	int (*check_folder)(const char *folder, struct why *why);
	/* ... and whether something else stands where its socket, or that one's lock, should be. */
	bool (*socket_broken)(const char *path);
	/* An endpoint of its own is there; `project` is the folder it is for, or "". */
	int (*listening)(struct dialect_host *h, const char *project, struct endpoint *e);

	/* A variable of its clients that asks for every message in the log. */
	const char *debug_variable;
	/* Its conversations' names are this and a number. */
	const char *numbered;
	/* How sessions and tasks that go wrong are worded; one dialect has each. */
	const struct session_wording *session_wording;
	const struct task_wording *task_wording;
	const struct dialect_token *token;
};

/* The settings of another dialect, which must be in the array. */
static inline const void *dialect_settings(const struct dialect_host *h, const struct dialect *of)
{
	const struct dialect_host *other = h->daemon->hosts;

	while (other->dialect != of)
		other++;
	return other->settings;
}
