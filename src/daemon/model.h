/* The model that makes vectors, as the settings name it. */
#pragma once

#include "daemon/backstage.h"
#include "daemon/settings.h"
#include "service/services.h"

/* Nothing where the settings name none. After the server was made, before it listens. */
int model_start(const struct settings *s, struct backstage *stage, struct services *services,
		struct why *why);

/* Whether its key can be read. */
int model_check(const struct settings *s, struct why *why);
