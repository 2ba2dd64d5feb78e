/*
 * A project's daemon.log, which the original's `logs` shows: a line "[TIME] words" for each thing
 * that happens. What cannot be written is lost, and nobody waits for it.
 */
#pragma once

#include "base/text.h"

struct background;
struct events;
struct project_log;

/* Logs that koined has started, and from then on what happens to tasks of that folder. The
 * folder's text must outlive it. */
int project_log_start(struct events *events, const struct background *b, struct text folder,
		      struct project_log **ret_log);

/* Logs that koined has stopped. Accepts NULL. Call it after the last work has finished. */
void project_log_free(struct project_log *l);
