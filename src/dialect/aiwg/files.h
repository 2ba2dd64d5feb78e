/*
 * Files in a project's folder: those by which the original's command line knows a running daemon
 * (.aiwg/daemon.pid, .aiwg/daemon/state.json, .aiwg/daemon/heartbeat), its log, and those it has
 * left.
 *
 * Each but the log is written beside its place and moved there, so that nobody reads half a file.
 * They are readable for us only, because they hold prompts.
 *
 * A project may be somebody else's work: a link there, of a folder or of a file, is never
 * followed, and folders must be ours or root's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/why.h"

#define PROJECT_PID       ".aiwg/daemon.pid"
#define PROJECT_STATE     ".aiwg/daemon/state.json"
#define PROJECT_HEARTBEAT ".aiwg/daemon/heartbeat"
#define PROJECT_CONFIG    ".aiwg/daemon.json"
#define PROJECT_YAML      ".aiwg/daemon.yaml"
#define PROJECT_YML       ".aiwg/daemon.yml"
#define PROJECT_TASKS     ".aiwg/daemon/tasks.json"
#define PROJECT_LOG       ".aiwg/daemon/daemon.log"

/* Refuses folders that cannot be trusted, and names the project. What does not exist yet will be
 * made. */
int project_check(const char *folder, struct why *why);

/* Whether something else stands where its socket, or the socket's lock, should be. */
bool project_socket_broken(const char *path);

/* Any thread. */
int project_file_write(const char *folder, const char *name, struct text text);

/* Appends to a file. One that would become longer than max is first renamed to NAME.1, which
 * replaces an older one. */
int project_file_append(const char *folder, const char *name, struct text text, size_t max);

/* -ENOENT when there is none; -EFBIG when it is larger than the buffer may become. */
int project_file_read(const char *folder, const char *name, struct buf *out);

/* Whether anything is there, of whatever type. */
bool project_file_exists(const char *folder, const char *name);

/* Renames it to NAME and the suffix, with a number behind if that is taken. */
int project_file_put_aside(const char *folder, const char *name, const char *suffix);

/* The file with our pid; it is removed only while it still has ours. */
int project_pid_write(const char *folder);
void project_pid_remove(const char *folder);

/* JSON as the original writes it into files: two spaces for each level. */
void project_indent(struct text json, struct buf *out);
