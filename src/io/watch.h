/*
 * Changes below a folder, by inotify and to any depth (libuv's own watch sees
 * one level on Linux).
 */
#pragma once

#include <stdbool.h>

#include "base/why.h"
#include "io/loop.h"

struct watch;

enum watch_event {
	WATCH_CREATE,
	WATCH_MODIFY,
	WATCH_DELETE,
	WATCH_OVERFLOW, /* the kernel dropped events: look for yourself; path is the root */
};

struct watch_opts {
	/* path is the watched root joined with what lies below it. */
	void (*on_change)(void *arg, enum watch_event event, const char *path);
	/* Folders not to enter (".git", "node_modules"). May be NULL. */
	bool (*skip)(void *arg, const char *name);
	void *arg;
	unsigned max_folders; /* 0: 8192; more below the root is refused with REFUSE_LIMIT */
};

int watch_open(struct loop *l, const char *root, const struct watch_opts *opts,
	       struct watch **ret_watch, struct why *why);
void watch_close(struct watch *w); /* accepts NULL */
