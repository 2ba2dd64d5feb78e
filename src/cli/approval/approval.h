/*
 * koine ask, approvals, approve, deny, respond, grants and hook: what they share.
 *
 * An approval is a value as returned by approval.get and approval.list of koined's own
 * dialect.
 */
#pragma once

#include "base/buf.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"

enum { ID_WHOLE = 1000 }; /* as a width */
enum { APPROVALS_MAX = 1000, APPROVAL_ID_SIZE = 160, APPROVAL_COMMENT_SIZE = 4096 };

struct approval_options {
	/* koine hook */
	const char *agent;  /* NULL: guessed from the hook's JSON */
	const char *format; /* NULL: "auto" */
	int64_t wait_ms;    /* 0: not given; the same for koine ask */
	/* koine ask */
	const char *choices; /* between commas; NULL: none */
	/* koine approvals */
	bool watch;
	bool all;
	const char *session;
	/* koine approvals, approve, deny, respond */
	bool exact;
	/* koine approve, deny */
	const char *comment;
	const char *grant; /* "session", "always"; NULL: none */
	int64_t for_ms;    /* 0: forever */
	int64_t uses;      /* 0: no limit */
};

/* ---- commands.c ---- */

struct approval_choice {
	struct text id;       /* whole */
	const char *decision; /* "approve", "deny", "respond" */
	struct text comment;  /* {NULL, 0}: none */
	const char *grant;    /* "session", "all"; NULL: none */
	int64_t for_ms;       /* 0: forever */
	int64_t uses;         /* 0: no limit */
};

/* The params of approval.get. */
struct koine_json *approval_id_params(struct text id, bool exact);

/* The params of approval.decide. */
struct koine_json *approval_choice_params(const struct approval_choice *choice);

/* If the error says that somebody else was quicker: the approval as it was decided; otherwise
 * NULL. */
const struct koine_value *approval_quicker(const struct koine_answer *error);

/* ---- watch.c ---- */

bool approval_is_question(const struct koine_value *approval);

/* Writes for people how it was decided, on one line: "denied by human: not on a Friday". */
void approval_say_end(const struct koine_value *approval, char *out, size_t size);

/* How many characters distinguish these ids from one another, at least 8; ID_WHOLE for all. */
size_t approval_id_width(const struct koine_value *approvals);

/* The part of its id that is shown: so many characters, without the word that ids start with; or
 * all. */
struct text approval_short_id(const struct koine_value *approval, size_t width);

/* Adds what it is about, on one line: see tool_gist; for a question, its text. */
void approval_gist(struct buf *out, const struct koine_value *approval);

int approval_print_list(const struct cli *cli, const struct koine_value *approvals);
int approval_print_one(const struct cli *cli, const struct koine_value *approval);

int approvals_watch(struct cli *cli);
int approvals_follow(struct cli *cli);

/* ---- ask.c ---- */

int cmd_ask(struct cli *cli);
int cmd_hook(struct cli *cli);
