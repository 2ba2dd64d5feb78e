/*
 * koine task: what its commands share.
 *
 * A task belongs to a project: that of --project, or else the nearest folder from the current
 * one upward that has a .aiwg in it, or else none.
 */
#pragma once

#include <limits.h>

#include "cli/kit/duration.h"
#include "cli/kit/list.h"
#include "cli/kit/options.h"

enum { TASK_ID_MAX = ARG_MAX_BYTES };

struct task_options {
	const char *project; /* NULL: that of the working directory; "": none */
	bool all_projects;
	bool all;
	const char *group;
	const char *label;
	const char *prompt;
	bool editor;
	bool no_after;
	const char *line; /* of a shell */
	bool from_stdin;
	const char *folder; /* where it runs */
	struct option_list after;
	struct option_list env;
	bool wait;
	bool follow;
	const char *status; /* "any", or "success" */
	const char *state;
	int64_t limit;
	/* Not an option: the project's path, set by task_find_project; "": none. */
	char project_path[PATH_MAX];
};

/* ---- project.c: no server is needed for these ---- */

/* "3" becomes "task-0003"; anything else stays as it is. False if it is not an id. */
bool task_id(const char *typed, char id[TASK_ID_MAX]);

/* The nearest folder from `folder` upward that has a .aiwg in it. False: there is none. */
bool task_project_above(const char *folder, char project[PATH_MAX]);

/* ---- commands.c ---- */

/* Adds the project. */
void task_scope(const struct cli *cli, struct koine_json *params);

/* Starts params with it. */
struct koine_json *task_params(const struct cli *cli);

/* Like task_id, but complains. */
bool task_read_id(const char *typed, char id[TASK_ID_MAX]);

/* The params of a method about one task, from what was typed. 0 or an exit code. */
int task_params_id(const struct cli *cli, const char *typed, struct koine_json **ret_params);
int task_send_id(struct cli *cli, const char *method, const char *typed,
		 struct koine_answer **ret_answer);

/* ---- print.c ---- */

/* "running"; or "held", "stashed" or "paused", which are queued and do not start. */
struct text task_state(const struct koine_value *task);
enum color task_color(const struct koine_value *task);

/* How long it has run: "1m04s"; "-" before it starts. */
void task_span(const struct koine_value *task, char shown[SPAN_SHOWN]);

/* Why a queued task does not start: "after task-0023", "at 17:41"; "" if there is no reason, or
 * the state says it. */
enum { WAITS_SHOWN = 256 };
void task_waits(const struct koine_value *task, char shown[WAITS_SHOWN]);

/* Queued tasks in the order in which they will start; returns how many, at most `max`. */
size_t task_in_order(const struct koine_value *tasks, const struct koine_value **ret_tasks,
		     size_t max);

/* What task.find answered; after the last page, also how many of how many were shown, and what is paused. */
int task_print_list(const struct cli *cli, const struct koine_value *found, bool last,
		    int64_t shown);
int task_print_counts(const struct cli *cli, const struct koine_value *counts);

extern const struct column task_group_columns[];
extern const struct show_form task_form;

/* Prints what a task has printed. On a terminal only its colours take effect. */
void task_print_output(const struct cli *cli, struct text output);

/* ---- log.c ---- */

/* Prints the output of the task that is the argument until it ends. Returns its exit code. */
int task_watch_one(struct cli *cli);

/* ---- watch.c ---- */

struct rows;

/* Draws a task, and below it why it waits or what it printed last. False: there is no room. */
bool task_draw(struct rows *r, const struct koine_value *task, struct text where, unsigned width);

/* ---- the commands that have a file of their own ---- */

int cmd_task_add(struct cli *cli);
int cmd_run(struct cli *cli);
int cmd_task_edit(struct cli *cli);
int cmd_task_log(struct cli *cli);
int cmd_task_wait(struct cli *cli);
int cmd_task_watch(struct cli *cli);
