/*
 * A project's daemon.log, which the original's `logs` shows: a line "[TIME] words" for each thing that
 * happens. What cannot be written is lost, and nobody waits for it.
 */
#pragma once

#include "base/text.h"
#include "io/work.h"

struct project_log;
struct services;

/* Says that we have started, and from then on what happens to tasks of that folder, which must stay. */
int project_log_start(struct services *s, struct background b, struct text folder,
		      struct project_log **ret_log);

/* Says that we have stopped. Accepts NULL; after the last work has finished. */
void project_log_free(struct project_log *l);
