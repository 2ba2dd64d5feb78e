/* koine session: what its commands share. */
#pragma once

#include "base/text.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"

enum { SESSION_ID_MAX = 256 };

struct session_options {
	bool follow;
	const char *model;
	const char *folder;
	const char *agent;
	const char *title;
	const char *system_prompt;
	const char *append_system_prompt;
	int64_t max_turns; /* 0: not given */
	struct option_list allow;
	struct option_list deny;
	bool all;
	bool raw;
	bool full;
	bool chain;
	const char *status;
	int64_t limit; /* 0: not given */
};

extern const struct option session_run_options[];
extern const struct option session_continue_options[];
extern const struct option session_list_options[];
extern const struct option session_log_options[];
extern const struct option session_tree_options[];

/* ---- print.c ---- */

enum color session_color(const struct koine_value *session);
/* What people call it: its title, else its summary, else its query. */
struct text session_name(const struct cli *cli, const struct koine_value *session);
int session_print_list(const struct cli *cli, const struct koine_value *sessions);
int session_print_one(const struct cli *cli, const struct koine_value *session);
/* Prints them as JSON or with `print`; on a terminal it says when there are none. `of_all`:
 * archived ones were asked for, too. */
int session_print_found(const struct cli *cli, const struct koine_value *sessions, bool of_all,
			int (*print)(const struct cli *cli, const struct koine_value *sessions));

/* ---- event.c: what was said ---- */

void session_print_event(const struct cli *cli, const struct koine_value *event);

/* An approval that waits, and how it is decided. */
void session_print_pending(const struct cli *cli, const struct koine_value *approval);
/* `data` of approval.resolved. */
void session_print_resolved(const struct cli *cli, const struct koine_value *data);

/* ---- follow.c ---- */

/* Prints what was said, and the approvals that the session waits for. */
int session_print_log(struct cli *cli, const struct koine_value *session);

/* Prints the approvals of this session that wait. */
int session_print_approvals(struct cli *cli, const char *id);

/*
 * Prints all that was said, and what is said until the session ends; *ret_status is how to exit: 0
 * completed, 1 failed, EXIT_INTERRUPTED. Ctrl-C leaves, and the session goes on: then this returns
 * EXIT_INTERRUPTED.
 */
int session_follow(struct cli *cli, const char *id, int *ret_status);

/* ---- the commands that have a file of their own ---- */

int cmd_session_run(struct cli *cli);
int cmd_session_continue(struct cli *cli);
int cmd_session_tree(struct cli *cli);
