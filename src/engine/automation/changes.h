/*
 * Files that change below some folders: each is told once, when it has been quiet for a while.
 * Made and then written is still made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/why.h"
#include "io/loop.h"

struct changes;

enum change { CHANGE_CREATE = 1, CHANGE_MODIFY = 2, CHANGE_DELETE = 4, CHANGE_ANY = 7 };

struct changes_opts {
	struct loop *loop;
	int64_t quiet_ms;
	/* Whether folders of that name are left out. `folder` is that of changes_watch. */
	bool (*skips)(void *folder, const char *name);
	/* Takes a change into account, or not: false. The path is that below the folder. */
	bool (*take)(void *folder, enum change change, const char *below);
	void (*tell)(void *arg, enum change change, const char *path);
	void *arg;
};

int changes_new(const struct changes_opts *opts, struct changes **ret_changes);
void changes_free(struct changes *c); /* accepts NULL; tells nothing more */

/* Refuses what is no folder. `folder` goes to skips and take. */
int changes_watch(struct changes *c, const char *path, void *folder, struct why *why);

/* As events and people name it: create, modify, delete. */
const char *change_name(enum change change);
