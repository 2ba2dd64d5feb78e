/*
 * Changes below a folder, by inotify and to any depth (libuv's own watch sees
 * one level on Linux).
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "io/loop.h"

struct watch;

enum watch_event {
	WATCH_CREATE,
	WATCH_MODIFY,
	WATCH_DELETE,
	WATCH_OVERFLOW, /* the kernel dropped events: search for yourself; path is the root */
};

struct watch_opts {
	/*
 * path is the watched root joined with what lies below it. A move is a WATCH_DELETE where it
 * was and a WATCH_CREATE where it is now. When a folder arrives, everything in it is created,
 * too, some of it perhaps twice; one that leaves is deleted as a whole. After a WATCH_DELETE
 * of the root nothing follows.
 */
	void (*on_change)(void *arg, enum watch_event event, const char *path);
	/* Folders not to enter (".git", "node_modules"). May be NULL. */
	bool (*skip)(void *arg, const char *name);
	void *arg;
	/* 0: 8192. More below the root is refused with REFUSE_LIMIT; folders that come later are
	 * not watched, which is logged once. */
	unsigned max_folders;
};

int watch_open(struct loop *l, const char *root, const struct watch_opts *opts,
	       struct watch **ret_watch, struct error *error);
void watch_close(struct watch *w); /* accepts NULL; may be called from on_change */
