/*
 * Takes over a store that somebody else has made. Its contents are kept, but nothing in it is
 * acted on. The file is copied, so that nobody who has the old one open can write to ours.
 */
#pragma once

#include <stdint.h>

#include "base/why.h"
#include "store/db/db_file.h"

struct store_adopted {
	int64_t n_tasks;  /* now held */
	int64_t n_jobs;   /* schedules now switched off */
	int64_t n_grants; /* used to be allowed without asking, now revoked */
	char path[DB_PATH_MAX + 1];
	char aside[DB_PATH_MAX + 1]; /* where the old file is */
};

/* `url` is "sqlite:PATH"; no koined may have the file open. On any failure the file stays
 * where it is. */
int store_adopt(const char *url, struct store_adopted *ret_adopted, struct why *why);
