/* Internal to tool*.c: one use of a tool in progress. Everything belongs to the loop, except
 * while its work is under way. */
#pragma once

#include <limits.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/object_builder.h"
#include "io/process/tree.h"
#include "engine/index/wait.h"
#include "engine/program/consent.h"
#include "engine/program/tool.h"

struct embedding_question;
struct supervised;

enum { TOOL_ARENA_MAX = 64 << 20 }; /* holds the memories of a search, and the answer about them */

struct tools {
	struct tools_opts opts;
	char *folder;
	int folder_fd; /* -1: none */
	struct list runs;
	unsigned n_runs;
	bool stopping;
};

struct tool_run {
	struct list link; /* in tools->runs */
	struct tools *tools;
	enum tool_id id;
	struct arena arena;
	const struct value *input;
	struct text agent;
	struct text session;
	struct text call_id;
	struct memory_asker by;
	struct peer peer;
	tool_fn fn; /* NULL: nobody is listening */
	void *arg;
	bool ending; /* it was abandoned, or we are stopping */
	struct timer *timer;

	struct consent consent;

	struct embedding_question *question;
	struct text vector; /* its result */

	struct work work;
	struct memory_wait wait;
	bool under_way; /* a thread has it */
	bool writes;
	struct error error;
	struct tool_result got;

	struct supervised *program;
	char mark[TREE_MARK_MAX];
	struct buf out, err;
	int64_t seconds;
	struct text workdir; /* as given; {NULL, 0}: not given */
	bool late;
};

/* Calls fn, and frees it. */
void tool_done(struct tool_run *r, int result, const struct error *error);

/* A text of the input. {NULL, 0} if it is missing; `required` refuses that and "". */
int tool_text(const struct tool_run *r, const char *key, bool required, struct text *ret,
	      struct error *error);
/* `fallback` if it is missing. */
int tool_number(const struct tool_run *r, const char *key, double fallback, double *ret,
		struct error *error);

/* ---- tool_memory.c, tool_file.c: on a thread ---- */

/* 0 with *ret unchanged: continue on the writer's thread. */
typedef int (*tool_work_fn)(struct tool_run *r, int lane, struct tool_result *ret,
			    struct error *error);

int tool_memory_search(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);
int tool_memory_get(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);
/* Checks whether it is already known; tool_memory_store then stores it. */
int tool_memory_known(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);
int tool_memory_store(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);

int tool_file_read(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);
int tool_file_write(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);
int tool_file_edit(struct tool_run *r, int lane, struct tool_result *ret, struct error *error);

/* ---- tool_exec.c ---- */

int tool_exec_start(struct tool_run *r, struct error *error);

/* ---- tool_path.c: a path below the tools' folder. It is walked folder by folder from a descriptor of that folder,
 * and no link is followed on the way, so that nothing outside can be named ---- */

/* A file, identified by its folder, which is open. */
struct tool_path {
	int at;                  /* -1: none yet */
	char name[NAME_MAX + 1]; /* "" for the tools' folder itself */
	const char *path;        /* whole, in the run's arena */
};

/* With `makes`, missing folders on the way are made. */
int tool_path_find(struct tool_run *r, struct text path, bool makes, struct tool_path *ret,
		   struct error *error);
void tool_path_done(struct tool_path *p);

/* A folder by a given path: whole, in the run's arena. */
int tool_path_folder(struct tool_run *r, struct text path, const char **ret, struct error *error);

/* Turns an errno for it into a refusal, or returns the error. */
int tool_path_cannot(int fault, const char *path, struct error *error);
