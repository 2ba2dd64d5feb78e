/* The parts of a project that koined serves, each in a file of its own. */
#pragma once

#include "base/error.h"
#include "call/server.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/aiwg/config.h"
#include "dialect/life.h"
#include "engine/automation/trust.h"

struct events;
struct loop;
struct workers;

/* ---- heartbeat.c ---- */

/*
 * The files by which the original's command line recognises a running daemon: its pid and, at
 * intervals, its state (state.json) and a sign of life (heartbeat).
 */

struct heartbeat;

/* Writes them now, and again every every_ms (0: 30 seconds). A failure is logged and does not
 * keep koined from starting. The folder and the endpoint must outlive the heartbeat. */
int heartbeat_start(const struct dialect_means *daemon, const char *folder, struct endpoint *e,
		    int64_t every_ms, struct heartbeat **ret_heartbeat);

/* Writes the last state, "stopped", and removes the pid. Accepts NULL. */
void heartbeat_stop(struct heartbeat *h);
void heartbeat_free(struct heartbeat *h); /* accepts NULL; after the last work has finished */

/* ---- log.c ---- */

/*
 * A project's daemon.log, which the original's `logs` shows: a line "[TIME] words" for each
 * thing that happens. Lines that cannot be written are lost; nobody waits for them.
 */

struct project_log;

/* Logs that koined has started, and from then on what happens to that folder's tasks. The
 * folder's text must outlive the log. */
int project_log_start(struct events *events, struct workers *workers, struct text folder,
		      struct project_log **ret_log);

/* Logs that koined has stopped. Accepts NULL. Call it after the last work has finished. */
void project_log_free(struct project_log *l);

/* ---- watch.c ---- */

/*
 * Changing files and scheduled times in a project. As its daemon.json asks, both become events
 * for its rules ("watch": file.create, file.modify, file.delete; "schedule": cron.fired).
 */

struct project_watch;

/* The config and `shown` must outlive it; it keeps in `shown` what the status reports. Folders
 * that cannot be watched, and invalid times, are logged and left out. */
int project_watch_start(struct loop *l, struct engine *s, const struct aiwg_config *config,
			struct aiwg_project *shown, struct project_watch **ret_watch);
void project_watch_free(struct project_watch *w); /* accepts NULL */

/* ---- trust.c ---- */

/* What a project's daemon.json would do, for people to judge; and where its rules may call. */

/* Whether a project's rule may call this address. `allowed` lists beginnings of addresses,
 * separated by spaces; each matches only whole parts of an address. */
bool project_webhook_allowed(const char *allowed, struct text url);

/* Marks the rules that must not call their address. */
void project_forbid(const char *allowed, struct aiwg_config *c);

/* Lists the rules, watches and jobs; folder and digest are left to the caller. The lists are in
 * the arena or the config. */
int project_offer(struct arena *a, const struct aiwg_config *c, struct trust_offer *ret_offer);

/* ---- import.c ---- */

/* The tasks.json that the original left in a project, with the tasks' output. */

enum { AIWG_IMPORT_BYTES = 64 << 20, AIWG_IMPORT_MAX = 100000 };

/*
 * Reads the tasks, oldest first. Queued tasks stay queued; running ones become failed, because
 * their daemon is gone. A task without an id or with an unknown state is skipped, as in the
 * original. The tasks are in the arena or point into `text`.
 */
int aiwg_tasks_read(struct arena *a, struct text text, struct text project, int64_t timeout_ms,
		    struct printed_task **ret_tasks, unsigned *ret_n, struct error *error);
