/*
 * What koined does for a dialect besides listening: the dialect has its section of the
 * settings, and its part in a start, a reload and a stop. All of this happens on the loop's
 * thread; every member may be missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/setting.h"
#include "call/dialect.h"

struct arena;
struct workers;
struct endpoint;
struct environment;
struct loop;
struct server;
struct engine;
struct session_wording;
struct task_wording;
struct error;

/* A section of the settings that belongs to the dialect. */
struct dialect_section {
	const struct setting *rows;
	unsigned n_rows;
	const void *defaults; /* the struct that the rows describe */
	size_t size;
	bool renewed; /* changes with a reload; else it stays as at the start */
	/* Called when everything is read, to check that it fits together. */
	int (*check)(const void *settings, struct error *error);
};

/* The rows and defaults of a section, for an initialiser. */
#define SECTION(table, values)                                                                     \
	.rows = (table), .n_rows = sizeof(table) / sizeof((table)[0]), .defaults = &(values),      \
	.size = sizeof(values)

/* The token that a dialect's HTTP clients must present. */
struct dialect_token {
	size_t file; /* offset in its settings: the token's file, or "" */
	/* The environment variable with the token, if there is no file; or NULL. */
	const char *variable;
	/* Its file beside the store, made where neither is given and "off" does not forbid it; or
	 * NULL. */
	const char *made;
	bool only; /* koine.token_file does not apply: without its own token, nobody is served */
};

/* What the daemon provides to all dialects. */
struct dialect_means {
	struct arena *arena; /* lives as long as the daemon */
	struct loop *loop;
	struct server *server;
	struct engine *engine;   /* from DIALECT_OPEN on */
	struct workers *workers; /* from DIALECT_OPEN on */
	const char *task_folder; /* in DIALECT_OPEN: where the tasks' output goes ... */
	int64_t task_bytes;      /* ... and how much of each */
	/* In DIALECT_RELOAD: who asked for it, and hears what is left out. NULL: nobody. */
	const struct reload_listener *report;
	const struct dialect_host *hosts;
	unsigned n_hosts;
};

/* A dialect in a running daemon. */
struct dialect_host {
	const struct dialect *dialect;
	const struct dialect_means *daemon;
	void *settings; /* its section; also its endpoints' settings, unless it gives them others */
	void *state;    /* the dialect's own */
	/* The environment of programs that its clients start; NULL without such a setting. */
	struct environment *env;
};

/* The steps of the daemon's life, in their order. */
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
	int (*steps[N_DIALECT_STEPS])(struct dialect_host *h, struct error *error);

	/* Refuses an address in the settings that its clients would not accept. */
	int (*check_address)(const char *address, struct error *error);
	/* For sockets in projects: refuses a folder that cannot be served; it is then skipped. */
	int (*check_folder)(const char *folder, struct error *error);
	/* Whether something else stands where its socket, or the socket's lock, should be. */
	bool (*socket_broken)(const char *path);
	/* One of its endpoints is listening; `project` is the folder that it serves, or "". */
	int (*listening)(struct dialect_host *h, const char *project, struct endpoint *e);

	/* An environment variable of its clients that asks to log every message. */
	const char *debug_variable;
	/* Its conversations are named by this and a number. */
	const char *numbered;
	/* How failures of sessions and of tasks are worded. Each is set by one dialect only. */
	const struct session_wording *session_wording;
	const struct task_wording *task_wording;
	const struct dialect_token *token;
};

/* The settings of another dialect, which must be among the hosts. */
static inline const void *dialect_settings(const struct dialect_host *h, const struct dialect *of)
{
	const struct dialect_host *other = h->daemon->hosts;

	while (other->dialect != of)
		other++;
	return other->settings;
}
