/*
 * A project's daemon.log, which the original's `logs` shows: a line "[TIME] words" for each
 * thing that happens. Lines that cannot be written are lost; nobody waits for them.
 */
#pragma once

#include "base/text.h"

struct workers;
struct events;
struct project_log;

/* Logs that koined has started, and from then on what happens to that folder's tasks. The
 * folder's text must outlive the log. */
int project_log_start(struct events *events, struct workers *workers, struct text folder,
		      struct project_log **ret_log);

/* Logs that koined has stopped. Accepts NULL. Call it after the last work has finished. */
void project_log_free(struct project_log *l);
