/* A record that a project was trusted, with the state of its file then. */
#pragma once

#include "base/portrait.h"

struct project_trust {
	struct text folder;
	struct text digest; /* of the file that was trusted */
	int64_t trusted_ms;
};

extern const struct portrait trust_portrait;
