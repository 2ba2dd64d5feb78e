/* koine session and its kin: what they share. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command session_commands[];

extern const struct option session_run_options[];
extern const struct option session_continue_options[];
extern const struct option session_list_options[];
extern const struct option session_log_options[];
extern const struct option session_tree_options[];

enum { SESSION_ID_MAX = 256, SESSION_ID_SHOWN = 8, EXIT_SESSION_INTERRUPTED = 130 };

/* ---- session_call.c ---- */

/* An object to be filled; NULL after saying so. */
struct koine_json *session_params(void);
void session_add_text(struct koine_json *j, const char *key, const char *text); /* NULL: not */

/* As koine_client_call, for those who word what goes wrong themselves. Takes the params. */
int session_ask(struct koine_client *c, const char *method, struct koine_json *params,
		struct koine_answer **ret_answer);

/* The same, worded. 0 or an exit code. */
int session_send(struct koine_client *c, const char *method, struct koine_json *params,
		 struct koine_answer **ret_answer);

/* A method that wants an id alone. */
int session_send_id(struct koine_client *c, const char *method, const char *id,
		    struct koine_answer **ret_answer);

/* The text of a member in a buffer, cut where it is too small; "" for none. */
void session_member(const struct koine_value *v, const char *key, char *out, size_t size);

/* ---- session_print.c ---- */

enum cell_color session_color(const struct koine_value *session);
/* What people call it: its title, else its summary, else its query. */
const char *session_name(const struct cli *cli, const struct koine_value *session, size_t *ret_len);
/* For people, where a list would be empty. */
void session_say_none(bool of_all);
int session_print_list(const struct cli *cli, const struct koine_value *sessions);
void session_print_one(const struct cli *cli, const struct koine_value *session);

/* ---- session_say.c: what was said ---- */

void session_print_event(const struct cli *cli, const struct koine_value *event);

/* An approval that waits, and how it is decided. */
void session_print_pending(const struct cli *cli, const struct koine_value *approval);
/* `data` of approval.resolved. */
void session_print_resolved(const struct cli *cli, const struct koine_value *data);

/* ---- session_follow.c ---- */

/* Prints what was said behind the event `last`; goes on until there is no more. */
int session_print_events(const struct cli *cli, struct koine_client *c, const char *id,
			 int64_t *last);

/* The approvals of this session that wait. */
int session_print_approvals(const struct cli *cli, struct koine_client *c, const char *id);

/*
 * All that was said, and what is, until the session ends; *ret_status is how we shall exit: 0
 * completed, 1 failed, EXIT_SESSION_INTERRUPTED. Ctrl-C leaves, and the session goes on: then it
 * is what this returns.
 */
int session_follow(struct cli *cli, struct koine_client *c, const char *id, int *ret_status);

/* ---- cmd_session_*.c ---- */

int cmd_session_run(struct cli *cli);
int cmd_session_continue(struct cli *cli);
int cmd_session_log(struct cli *cli);
int cmd_session_tree(struct cli *cli);
