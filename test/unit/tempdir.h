/* A private folder for one test, removed with all that is in it. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int tempdir_drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

enum { TEMPDIR_MAX = 40 };

static inline void tempdir_make(char out[TEMPDIR_MAX])
{
	const char *base = getenv("TMPDIR");

	/* Short, because socket paths are. */
	if (!base || strlen(base) > 24)
		base = "/tmp";
	snprintf(out, TEMPDIR_MAX, "%s/koine.XXXXXX", base);
	if (!mkdtemp(out))
		abort();
}

static inline void tempdir_remove(const char *dir)
{
	nftw(dir, tempdir_drop, 16, FTW_DEPTH | FTW_PHYS);
}
