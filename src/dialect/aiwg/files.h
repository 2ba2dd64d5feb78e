/*
 * Files in a project's folder: those by which the original's command line recognises a running
 * daemon (.aiwg/daemon.pid, .aiwg/daemon/state.json, .aiwg/daemon/heartbeat), its log, and
 * files that the original left behind.
 *
 * Except for the log, each is written to a temporary file and renamed, so that nobody reads
 * half a file. Only we can read them, because they hold prompts.
 *
 * A project may be somebody else's work: links to folders or files there are never followed,
 * and folders must belong to us or to root.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"

#define PROJECT_PID       ".aiwg/daemon.pid"
#define PROJECT_STATE     ".aiwg/daemon/state.json"
#define PROJECT_HEARTBEAT ".aiwg/daemon/heartbeat"
#define PROJECT_CONFIG    ".aiwg/daemon.json"
#define PROJECT_YAML      ".aiwg/daemon.yaml"
#define PROJECT_YML       ".aiwg/daemon.yml"
#define PROJECT_TASKS     ".aiwg/daemon/tasks.json"
#define PROJECT_LOG       ".aiwg/daemon/daemon.log"

/* Refuses folders that cannot be trusted, naming the project. A folder that does not exist yet
 * is fine: it will be created. */
int project_check(const char *folder, struct error *error);

/* Whether something else stands where its socket, or the socket's lock, should be. */
bool project_socket_broken(const char *path);

/* May be called on any thread. */
int project_file_write(const char *folder, const char *name, struct text text);

/* Appends to a file. A file that would grow beyond max is first renamed to NAME.1, replacing an
 * older one. */
int project_file_append(const char *folder, const char *name, struct text text, size_t max);

/* -ENOENT if there is no such file; -EFBIG if it is larger than the buffer's maximum. */
int project_file_read(const char *folder, const char *name, struct buf *out);

/* Whether there is a file of any type. */
bool project_file_exists(const char *folder, const char *name);

/* Renames it to NAME plus the suffix, followed by a number if that is taken. */
int project_file_put_aside(const char *folder, const char *name, const char *suffix);

/* The file with our pid. It is removed only if it still holds our pid. */
int project_pid_write(const char *folder);
void project_pid_remove(const char *folder);

/* JSON as the original writes it into files: two spaces for each level. */
void project_indent(struct text json, struct buf *out);
