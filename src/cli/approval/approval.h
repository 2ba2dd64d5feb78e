/*
 * koine approvals, approve, deny, respond, grants and hook: what they share.
 *
 * An approval is a value as approval.get and approval.list of koined's own dialect answer it.
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"

enum { ID_WHOLE = 1000 }; /* as a width */
enum { APPROVALS_MAX = 1000, APPROVAL_ID_SIZE = 160, APPROVAL_COMMENT_SIZE = 4096 };

struct approval_options {
	/* koine hook */
	const char *agent;  /* NULL: as the hook's JSON looks */
	const char *format; /* NULL: "auto" */
	int64_t wait_ms;    /* 0: not given */
	/* koine approvals */
	bool watch;
	bool all;
	const char *session;
	int64_t limit; /* 0: not given */
	/* koine approvals, approve, deny, respond */
	bool exact;
	/* koine approve, deny */
	const char *comment;
	const char *grant; /* "session", "always"; NULL: none */
	int64_t for_ms;    /* 0: for good */
	int64_t uses;      /* 0: any number */
};

extern const struct option hook_options[];
extern const struct option approvals_options[];
extern const struct option approve_options[];
extern const struct option deny_options[];
extern const struct option respond_options[];

/* ---- call.c ---- */

/* Gets the approval that was typed, by its id or (without --exact) the beginning of it. */
int approval_find(struct cli *cli, const char *typed, struct koine_answer **ret_answer);

/* Makes the id of --session whole, where only its beginning was typed. */
int approval_find_session(struct cli *cli);

struct approval_choice {
	struct text id;       /* whole */
	const char *decision; /* "approve", "deny", "respond" */
	struct text comment;  /* {NULL, 0}: none */
	const char *grant;    /* "session", "all"; NULL: none */
	int64_t for_ms;       /* 0: for good */
	int64_t uses;         /* 0: any number */
};

/* The params of approval.get. */
struct koine_json *approval_id_params(struct text id, bool exact);

/* The params of approval.decide. */
struct koine_json *approval_choice_params(const struct approval_choice *choice);

/* The params of approval.list, as the options want it. */
struct koine_json *approval_list_params(const struct cli *cli, bool all, int64_t limit);

/* The params of event.subscribe; session NULL: of all, since negative: from now on. */
struct koine_json *approval_event_params(const char *session, int64_t since);

/* Where the error says that somebody else was quicker: the approval as it was decided; else
 * NULL. */
const struct koine_value *approval_quicker(const struct koine_answer *error);

/* ---- print.c ---- */

bool approval_is_question(const struct koine_value *approval);

/* Writes how it was decided, for people, on one line: "denied by human: not on a Friday". */
void approval_say_end(const struct koine_value *approval, char *out, size_t size);

/* How much of an id it takes to tell these from one another, 8 at least; ID_WHOLE for all of it. */
size_t approval_id_width(const struct koine_value *approvals);

/* The part of its id that is shown: so many characters, without the word that ids begin with; or
 * all. */
struct text approval_short_id(const struct koine_value *approval, size_t width);

/* Adds what it is about, on one line: see tool_gist; of a question, its text. */
void approval_gist(struct buf *out, const struct koine_value *approval);

int approval_print_list(const struct cli *cli, const struct koine_value *approvals);
int approval_print_one(const struct cli *cli, const struct koine_value *approval);
/* Prints a line about one that has come or was decided. */
void approval_print_change(const struct cli *cli, const struct koine_value *approval);

/* ---- the commands that have a file of their own ---- */

int approvals_watch(struct cli *cli);
int approvals_follow(struct cli *cli);

int cmd_hook(struct cli *cli);
int cmd_grants(struct cli *cli);
