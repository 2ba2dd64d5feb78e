/*
 * A file that is to be edited: read once, checked, and replaced as a whole or not at all.
 *
 * It must be ours, writable, and within its base (the home, or the project), links followed. If it
 * was changed since it was read, it is not replaced.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"

struct target {
	char path[PATH_MAX];   /* as people know it */
	char real[PATH_MAX];   /* links followed */
	char backup[PATH_MAX]; /* beside the real one */
	bool exists;
	bool has_backup;
	bool was_made;     /* the backup says that koine connect made the file */
	bool is_shared;    /* with others who have the project: a new file is readable */
	bool is_secret;    /* a token is among what is written: nobody else may read it */
	struct stat was;   /* if it exists */
	struct buf text;   /* what it holds */
	struct buf before; /* what the backup holds */
};

/* `base` is a folder. Call target_close in any case. */
int target_open(struct target *t, const char *path, const char *base, struct error *error);
void target_close(struct target *t);

/* Replaces it, with mode and owner as they were, unless it is secret; makes its folder if there is none. */
int target_write(const struct target *t, struct text text, struct error *error);
/* Copies what was read into the backup, or writes that there was no file. An older backup is kept under
 * another name. */
int target_back_up(const struct target *t, struct error *error);
/* Renames the backup to FILE.koine-backup.1, or the first number that is free. */
int target_keep_backup(const struct target *t, struct error *error);
int target_remove(const struct target *t, struct error *error);

/* Says why it stays as it is. An exit code. */
int target_complain(const struct target *t, int r, const struct error *error);
