/*
 * koine hook, approvals, approve, deny, respond and grants: what they share.
 *
 * An approval is a value as approval.get and approval.list of koined's own dialect answer it.
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "cli/kit/cli.h"

enum { ID_WHOLE = 1000 };    /* as a width */
enum { GIST_MAX = 8 << 20 }; /* bytes */
enum { APPROVALS_MAX = 1000, APPROVAL_ID_SIZE = 160, APPROVAL_COMMENT_SIZE = 4096 };

extern const struct option hook_options[];
extern const struct option approvals_options[];
extern const struct option approve_options[];
extern const struct option deny_options[];
extern const struct option respond_options[];

/* ---- approval_call.c ---- */

/* A string of it; {NULL, 0} for anything else. */
struct text approval_member(const struct koine_value *approval, const char *key);

/* The one of that id, or, unless `exact`, of that beginning. Words what goes wrong. */
int approval_find(struct koine_client *c, const char *typed, bool exact,
		  struct koine_answer **ret_answer);

/* Its id without the word that those of its kind all begin with. */
struct text approval_bare_id(const struct koine_value *approval);

/* Makes the id of --session whole, where only its beginning was typed. */
int approval_find_session(struct cli *cli, struct koine_client *c);

struct approval_choice {
	struct text id;       /* whole */
	const char *decision; /* "approve", "deny", "respond" */
	struct text comment;  /* {NULL, 0}: none */
	const char *grant;    /* "session", "all"; NULL: none */
	int64_t for_ms;       /* 0: for good */
	int64_t uses;         /* 0: any number */
};

/* The params of approval.get and approval.withdraw. The caller frees it; NULL: out of memory. */
struct koine_json *approval_id_params(struct text id, bool exact);

/* The params of approval.decide. The caller frees it; NULL: out of memory. */
struct koine_json *approval_choice_params(const struct approval_choice *choice);

/* The params of approval.list, as the options want it. The same goes for it. */
struct koine_json *approval_list_params(const struct cli *cli, bool all, int64_t limit);

/* How somebody else has decided it, where that is what the error says. */
const struct koine_value *approval_quicker(const struct koine_answer *error);

/* "denied by human: not on a Friday": for people, on one line, ended by NUL. */
void approval_say_end(const struct koine_value *approval, char *out, size_t size);

/* ---- approval_print.c ---- */

/* How much of an id it takes to tell these from one another, 8 at least; ID_WHOLE for all of it. */
size_t approval_id_width(const struct koine_value *approvals);

/* What of an id is shown: so many of its characters, without what they all begin with; or all. */
struct text approval_short_id(const struct koine_value *approval, size_t width);

/* Adds what it is about, on one line: see tool_gist; of a question, its words. */
void approval_gist(struct buf *out, const struct koine_value *approval);

void approval_age(const struct koine_value *approval, char *out, size_t size);
enum cell_color approval_color(const struct koine_value *approval);

int approval_print_list(const struct cli *cli, const struct koine_value *approvals);
int approval_print_one(const struct cli *cli, const struct koine_value *approval);
/* A line of what changes. */
void approval_print_change(const struct cli *cli, const struct koine_value *approval);

/* ---- cmd_*.c ---- */

int approvals_watch(struct cli *cli);
int approvals_follow(struct cli *cli);

int cmd_hook(struct cli *cli);
int cmd_approvals(struct cli *cli);
int cmd_approve(struct cli *cli);
int cmd_deny(struct cli *cli);
int cmd_respond(struct cli *cli);
int cmd_grants(struct cli *cli);
