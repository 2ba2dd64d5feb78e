/* A browser that was let in to the page. */
#pragma once

#include "base/schema.h"

struct page_session {
	struct text id;     /* for people */
	struct text digest; /* of the secret that it shows to be known again */
	int64_t uid;        /* whose it is; from nobody else's the secret counts */
	struct text program;
	bool behind; /* it came through the proxy of the settings */
	int64_t entered_ms;
	int64_t seen_ms; /* 0: not since the daemon's start */
};

extern const struct schema page_session_schema;
