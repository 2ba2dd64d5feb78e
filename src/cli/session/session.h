/* koine session: what its commands share. */
#pragma once

#include "cli/kit/options.h"
#include "cli/kit/print.h"

enum { SESSION_ID_MAX = 256 };

struct session_options {
	bool follow;
	const char *folder;
	bool all;
	bool raw;
	bool full;
	bool chain;
	const char *status;
	int64_t last; /* 0: not given */
};

/* ---- print.c ---- */

enum color session_color(const struct koine_value *session);
/* What people call it: its title, or else its summary, or else its query. */
struct text session_name(const struct koine_value *session);
int session_print_list(const struct cli *cli, const struct koine_value *sessions);
extern const struct show_form session_form;
int cmd_session_tree(struct cli *cli);

void session_print_event(const struct cli *cli, const struct koine_value *event);

/* Prints an approval that waits, and how to decide it. */
void session_print_pending(const struct cli *cli, const struct koine_value *approval);
/* `data` is that of approval.resolved. */
void session_print_resolved(const struct cli *cli, const struct koine_value *data);

/* ---- follow.c ---- */

/* Prints what was said, and the approvals that the session waits for. */
int session_print_log(struct cli *cli, const struct koine_value *session);

/* Prints the pending approvals of this session. */
int session_print_approvals(struct cli *cli, const char *id);

/*
 * Prints everything said so far, and what is said until the session ends. *ret_status is the
 * exit status: 0 completed, 1 failed, EXIT_INTERRUPTED. Ctrl-C leaves while the session
 * continues: then this returns EXIT_INTERRUPTED.
 */
int session_follow(struct cli *cli, const char *id, int *ret_status);
