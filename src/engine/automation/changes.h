/*
 * Collects file changes: each file is reported once, when it has been quiet for a while, with
 * everything that happened to it in between as one change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
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
	unsigned max; /* files that may wait: with one more, the first is reported; 0: any number */
	/* The result of two changes of a file; CHANGE_NONE: nothing has changed. */
	enum change (*merge)(enum change before, enum change now);
	/* For changes_watch, which passes its `folder`: whether folders of that name are
	 * skipped, */
	bool (*skips)(void *folder, const char *name);
	/* and whether a change counts. The path is relative to the folder. */
	bool (*take)(void *folder, enum change change, const char *below);
	void (*tell)(void *arg, enum change change, const char *path);
	void *arg;
};

int changes_new(const struct changes_opts *opts, struct changes **ret_changes);
void changes_free(struct changes *c); /* accepts NULL; reports nothing more */

/* A file has changed. -ENOMEM. */
int changes_note(struct changes *c, enum change change, const char *path);
/* Whether it is waiting to be reported. */
bool changes_has(const struct changes *c, const char *path);
unsigned changes_count(const struct changes *c);

/* Adds the changes below a folder. Refuses a path that is not a folder. */
int changes_watch(struct changes *c, const char *path, void *folder, struct error *error);

/* The change for a watch event: WATCH_OVERFLOW is none. */
enum change change_of(enum watch_event event);
/* The name for events and people: create, modify, delete. */
const char *change_name(enum change change);
