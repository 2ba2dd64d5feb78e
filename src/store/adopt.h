/*
 * Takes over a store that somebody else has made. Its contents are kept, but nothing in it is
 * acted on. The file is copied, so that nobody who has the old one open can write to ours.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "store/db/db_file.h"

struct store_adopted {
	unsigned n_tasks;  /* now held */
	unsigned n_jobs;   /* schedules now switched off */
	unsigned n_grants; /* used to be allowed without asking, now revoked */
	char path[DB_PATH_MAX + 1];
	/* where the old file is; of a database, the names of the roles that are accepted */
	char aside[DB_PATH_MAX + 1];
};

/*
 * No koined may have it open. On any failure a file stays where it is.
 *
 * A database that is shared with other roles is not copied: its foreign owners are added to the file
 * `accepted`, and whatever they do in it from now on is trusted. Without foreign owners it is refused,
 * and nothing changes.
 */
int store_adopt(const char *url, const char *accepted, struct store_adopted *ret_adopted,
		struct error *error);
