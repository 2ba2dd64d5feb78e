/* Default locations: sockets, settings, the store. */
#pragma once

#include <stdbool.h>

#include "base/setting.h"
#include "base/error.h"

/* The runtime directory: $XDG_RUNTIME_DIR/koine; without that variable /run/koine for root,
 * otherwise /tmp/koine-UID. */
void paths_runtime(char out[PATH_LEN]);

/* The settings file: $XDG_CONFIG_HOME/koine/koine.conf, ~/.config/koine/koine.conf,
 * or /etc/koine/koine.conf for root. */
void paths_config(char out[PATH_LEN]);

/* The store, or the table of word vectors that a user has put beside it (words.bin):
 * $XDG_STATE_HOME/koine/FILE, ~/.local/state/koine/FILE, or /var/lib/koine/FILE for root. */
void paths_state(const char *file, char out[PATH_LEN]);

/* Replaces a leading "~/" with the user's home directory; false if that is unknown. */
bool paths_expand(const char *path, char out[PATH_LEN]);

/* Whether this user could create the file, and any missing folders. If not, `error` (may be NULL)
 * says what is in the way. */
bool paths_usable(const char *path, struct error *error);

/* Whether anybody may replace the file: its folder is world-writable and not sticky. */
bool paths_open_to_all(const char *path);

/*
 * Makes the runtime directory if it is missing (0700), and refuses one under /tmp
 * that another user owns or may write to.
 */
int paths_check_runtime(const char *folder, struct error *error);

/* The folder's path without links and dots. Refuses what does not exist or is not a folder. */
int paths_folder(const char *path, char out[PATH_LEN], struct error *error);

/* Likewise for a path whose end may not exist yet. */
void paths_resolve(const char *path, char out[PATH_LEN]);
