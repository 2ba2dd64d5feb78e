/* Memory and the model that makes its vectors, as the settings say. */
#pragma once

#include "daemon/backstage.h"
#include "daemon/settings/settings.h"
#include "io/listener.h"
#include "engine/services.h"

/* Whether the URL leads to that listener of ours, which would have us ask ourselves. Names are
 * not looked up: those of this machine are known. */
bool model_is_at(const char *url, const struct address *listener);

/* Starts memory, with the model unless the settings name none, or our own embedding listener, which
 * is logged. After the server listens. */
int memories_begin(const struct settings *s, unsigned n_readers, struct backstage *stage,
		   struct services *services, struct why *why);

/* Whether its key can be read. */
int model_check(const struct settings *s, struct why *why);
