/*
 * Files that change: each is told once, when it has been quiet for a while, with all that happened to
 * it meanwhile as one change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/why.h"
#include "io/loop.h"
#include "io/watch.h"

struct changes;

enum change {
	CHANGE_NONE = 0,
	CHANGE_CREATE = 1,
	CHANGE_MODIFY = 2,
	CHANGE_DELETE = 4,
	CHANGE_ANY = 7
};

struct changes_opts {
	struct loop *loop;
	int64_t quiet_ms;
	bool from_first; /* counted from a file's first change, not from its last */
	unsigned max;    /* files that wait: of one more the first is told; 0: any number */
	/* What two changes of a file come to; CHANGE_NONE: nothing has changed. */
	enum change (*merge)(enum change before, enum change now);
	/* For changes_watch, whose `folder` they get: whether folders of that name are left out, */
	bool (*skips)(void *folder, const char *name);
	/* and whether a change counts. The path is that below the folder. */
	bool (*take)(void *folder, enum change change, const char *below);
	void (*tell)(void *arg, enum change change, const char *path);
	void *arg;
};

int changes_new(const struct changes_opts *opts, struct changes **ret_changes);
void changes_free(struct changes *c); /* accepts NULL; tells nothing more */

/* A file has changed. -ENOMEM. */
int changes_note(struct changes *c, enum change change, const char *path);
/* Whether it waits to be told. */
bool changes_has(const struct changes *c, const char *path);
unsigned changes_count(const struct changes *c);

/* Adds what changes below a folder. Refuses what is none. */
int changes_watch(struct changes *c, const char *path, void *folder, struct why *why);

/* Of a watch: WATCH_OVERFLOW is none. */
enum change change_of(enum watch_event event);
/* As events and people name it: create, modify, delete. */
const char *change_name(enum change change);
