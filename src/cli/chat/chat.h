/*
 * koine chat and its kin: what they share.
 *
 * A turn is asked with chat.stream and printed while it comes. Over HTTP, where
 * nothing comes before the answer, and of servers that only have `send`, it is
 * printed when it is whole.
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "cli/kit/cli.h"

extern const struct option chat_options[];
extern const struct option send_options[];
extern const struct option conversation_options[];
extern const struct option cancel_options[];
extern const struct option messages_options[];
extern const struct option conversations_options[];

/* A number from 1 on. */
bool chat_read_count(const char *text, int64_t *ret_n);

/* Whether it may name a conversation. Says what is wrong with one that may not. */
bool chat_check_name(const char *name);

/* Nothing but spaces and ends of lines. */
bool chat_is_blank(struct text t);

/* The answer was cancelled: what a shell says of a program that Ctrl-C ended. */
enum { EXIT_CANCELLED = 130, CHAT_NAME_BYTES = 128 };

/* ---- turn.c ---- */

/* One question after another to one server. */
struct turn {
	struct cli *cli;
	struct koine_client *client;
	const char *conversation; /* NULL: the server's default */
	const char *agent;        /* NULL: the conversation's own */
	/* where the two stand, if they were not given as options */
	char conversation_name[CHAT_NAME_BYTES + 1];
	char agent_name[CHAT_NAME_BYTES + 1];
	bool left;  /* the user would not wait: the connection is of no use any more */
	bool plain; /* the server has no chat.stream, and so one conversation */

	/* of the question that is under way */
	const char *method;
	struct text content;
	char request_id[160];
	int64_t call;
	size_t shown;  /* bytes of the answer that were printed */
	bool mid_line; /* and the last of them was no newline */
	bool is_done;
	bool cancelled;
	bool unknown_method;
	int result; /* 0, KOINE_ERROR_ANSWER or a fault */
};

/* Dials, without a limit of time for answers unless the options set one. */
int turn_dial(struct turn *t, struct cli *cli);
void turn_done(struct turn *t);

/*
 * Asks, and prints the answer as the options want it. While it waits, Ctrl-C cancels, and
 * once more leaves without the answer.
 *
 * 0; EXIT_CANCELLED; EXIT_ERROR_ANSWER when the server said no; EX_DATAERR for what is no
 * text; else an exit code of a connection that was lost. What went wrong has been said.
 */
int turn_ask(struct turn *t, struct text content);

/* What to say of a plain server when another conversation is wanted. */
void turn_tell_plain(const struct turn *t);

/* ---- look.c, look_messages.c: tables and lists; conversation NULL: the default ---- */

/* Servers say agent where a user of koine says conversation. True, and said so, when the error
 * is that there is none. */
bool look_tell_missing(const struct koine_answer *a, const char *conversation);

/* Calls a method about a conversation; limit 0: one that has no pages. */
int look_call(struct koine_client *c, const char *method, const char *conversation, int64_t offset,
	      int64_t limit, struct koine_answer **ret_answer);

int look_tokens(struct cli *cli, struct koine_client *c, const char *conversation);
int look_messages(struct cli *cli, struct koine_client *c, const char *conversation, int64_t n);
int look_conversations(struct cli *cli, struct koine_client *c, int64_t n);

/* The same of those that were ended, which have numbers. */
int look_messages_ended(struct cli *cli, struct koine_client *c, int64_t number, int64_t n);
int look_ended(struct cli *cli, struct koine_client *c, int64_t n);
int look_call_number(struct koine_client *c, const char *method, int64_t number, int64_t offset,
		     int64_t limit, struct koine_answer **ret_answer);

/* Deletes one that was ended, or (0) all of them. */
int look_purge(struct cli *cli, struct koine_client *c, int64_t number);

int look_compact(struct cli *cli, struct koine_client *c, const char *conversation);
int look_agents(struct cli *cli, struct koine_client *c);
/* EXIT_ERROR_ANSWER, and said so, when there is none of that name. */
int look_find_agent(struct koine_client *c, const char *name);

/* ---- slash.c ---- */

/* What was typed after the slash. Sets *ret_quit when it is to end. Its result is that of
 * turn_ask. */
int slash_run(struct turn *t, const char *line, bool *ret_quit);

/* ---- cmd_*.c ---- */

int cmd_chat(struct cli *cli);
int cmd_send(struct cli *cli);
int cmd_cancel(struct cli *cli);
int cmd_tokens(struct cli *cli);
int cmd_agents(struct cli *cli);
int cmd_conversations(struct cli *cli);
int cmd_messages(struct cli *cli);
