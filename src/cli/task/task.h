/*
 * koine task and its kin: what they share.
 *
 * A task belongs to a project: the one of --project, else the nearest folder above the current
 * one that has a .aiwg in it, else none.
 */
#pragma once

#include <limits.h>

#include "cli/kit/cli.h"
#include "cli/kit/duration.h"

extern const struct command task_commands[];
extern const struct command automation_commands[];
extern const struct command daemon_commands[];
extern const struct command store_commands[];
extern const struct command project_commands[];
int cmd_projects(struct cli *cli);

extern const struct option task_options[];
extern const struct option task_add_options[];
extern const struct option task_list_options[];
extern const struct option task_log_options[];
extern const struct option task_follow_options[];
extern const struct option task_wait_options[];
extern const struct option task_watch_options[];
extern const struct option task_count_options[];
extern const struct option automation_options[];
extern const struct option automation_log_options[];
extern const struct option daemon_log_options[];
extern const struct option daemon_stop_options[];

enum { TASK_ID_MAX = 128, EXIT_TASK_CANCELLED = 130 };

/* ---- task_place.c: no server is needed for these ---- */

/* "3" is "task-0003"; anything else stays as it is. False for what is no id. */
bool task_id(const char *typed, char id[TASK_ID_MAX]);

/* The nearest folder from `folder` upward that has a .aiwg in it. False: there is none. */
bool task_project_above(const char *folder, char project[PATH_MAX]);

/* ---- task_call.c ---- */

struct task_call {
	struct cli *cli;
	struct koine_client *client;
	bool all_projects;
	char project[PATH_MAX]; /* "": none */
};

/* Finds the project and dials. `patient`: an answer may take as long as a task. */
int task_open(struct task_call *t, struct cli *cli, bool patient);
void task_close(struct task_call *t);

/* An object with the project in it, to be filled; NULL after saying so. */
struct koine_json *task_params(const struct task_call *t);

/* Ends the object and calls. Takes the params. */
int task_send(struct task_call *t, const char *method, struct koine_json *params,
	      struct koine_answer **ret_answer);

/* A method about one task, by what was typed; `key` is what the method calls its id. */
int task_send_id(struct task_call *t, const char *method, const char *key, const char *typed,
		 struct koine_answer **ret_answer);

void answer_freep(struct koine_answer **a);

/* ---- task_print.c ---- */

/* Milliseconds of a member that is a time; 0: none. */
bool task_is_held(const struct koine_value *task);
int64_t task_time(const struct koine_value *task, const char *member);
bool value_is(const struct koine_value *v, const char *text);

/* How long it has run, or waited where it does not run yet: "1m04s". */
void task_span(const struct koine_value *task, char shown[SPAN_SHOWN]);
enum cell_color task_color(const struct koine_value *task);

int task_print_list(const struct task_call *t, const struct koine_value *tasks);
int task_print_groups(const struct task_call *t, const struct koine_value *groups);
int task_print_one(const struct cli *cli, const struct koine_value *task);

/* What a task has printed. On a terminal only colours may steer it. */
void task_print_output(const struct cli *cli, const char *text, size_t len);

/* ---- task_end.c ---- */

/* Prints what comes from `offset` on until the task ends. *ret_status is how we shall exit. */
int task_follow(struct task_call *t, const char *typed, int64_t offset, int *ret_status);

/* Waits for its end. */
int task_wait(struct task_call *t, const char *typed, int *ret_status);

/* As the task ended: 0, its own exit status, 1, or EXIT_TASK_CANCELLED. */
int task_exit_status(const struct koine_value *end);

/* ---- cmd_task_*.c ---- */

int cmd_task_add(struct cli *cli);
int cmd_task_log(struct cli *cli);
int cmd_task_follow(struct cli *cli);
int cmd_task_wait(struct cli *cli);
int cmd_task_watch(struct cli *cli);
