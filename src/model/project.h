/*
 * What a folder's project is called, decided here alone.
 *
 * A git working tree is named by its remote "origin", as "host/owner/name": without scheme, user, port
 * and ".git", so that all ways to reach a repository give one name. An origin that is a folder of
 * this machine is named by that folder, and so is a working tree without an origin by its own top.
 * Outside of git a folder is its own project. Folders have an absolute path without links, so no
 * remote is ever taken for one.
 *
 * Only .git is read, never a setting of git elsewhere, and no program is run.
 */
#pragma once

#include "base/text.h"

struct buf;

enum { PROJECT_NAME_MAX = 4095 };

/* 0, or -errno: the folder cannot be found, or its path is too long. */
int project_of_folder(const char *folder, char ret_name[PROJECT_NAME_MAX + 1]);

/* The same for a folder that an agent reports: false unless it is an absolute path that exists. */
bool project_of_reported(struct text folder, char ret_name[PROJECT_NAME_MAX + 1]);

/* What --project and the like say: a folder if it begins with '.' or '/', else a name. */
int project_of_word(const char *word, char ret_name[PROJECT_NAME_MAX + 1]);

/* The name of a remote's URL; false: it has none, because it is a path, or makes no sense. */
bool project_of_url(struct text url, char ret_name[PROJECT_NAME_MAX + 1]);

/* The URL of "origin" in git's configuration; false: it has none that we can read. */
bool project_origin(struct text config, struct buf *ret_url);
