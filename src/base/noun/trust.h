/* That a project was trusted: what its file was then. */
#pragma once

#include "base/portrait.h"

struct project_trust {
	struct text folder;
	struct text digest; /* of the file that was trusted */
	int64_t trusted_ms;
};

extern const struct portrait trust_portrait;
