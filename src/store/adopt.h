/*
 * Takes over a store that somebody else has made: what is in it is kept, what it would do is not
 * done. The file is copied, so that nobody who has the old one open can write to ours.
 */
#pragma once

#include <stdint.h>

#include "base/why.h"
#include "store/db/db_file.h"

struct store_adopted {
	int64_t n_tasks;  /* that are held now */
	int64_t n_jobs;   /* schedules that are switched off now */
	int64_t n_grants; /* what was allowed without asking, and is not any more */
	char path[DB_PATH_MAX + 1];
	char aside[DB_PATH_MAX + 1]; /* where the old file is */
};

/* "sqlite:PATH", of a file that no koined has open. Whatever fails, the file stays where it is. */
int store_adopt(const char *url, struct store_adopted *ret_adopted, struct why *why);
