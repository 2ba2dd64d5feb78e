/*
 * koine chat and its kin: what they share.
 *
 * A turn is asked with chat.stream and printed as it arrives. Over HTTP, and with servers that
 * only have `send`, it is printed when it is complete.
 */
#pragma once

#include "base/buf.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"

enum { CHAT_NAME_BYTES = 128, CHAT_PAGE_MAX = 2000 };

struct chat_options {
	const char *conversation; /* NULL: the server's default */
	const char *agent;        /* NULL: the conversation's own */
	const char *user;         /* whose memories may be quoted; NULL: nobody's */
	const char *chat;
	const char *request_id; /* NULL: one is made */
	int64_t limit;          /* 0: the command's own */
	int64_t number;         /* of one that was ended; 0: none */
	bool ended;             /* list those that were ended */
	bool all;
	bool no_stream;
};

/* A number from 1 on. */
bool chat_read_count(const char *text, int64_t *ret_n);

/* Whether it is a valid name for a conversation. Says what is wrong with it if not. */
bool chat_check_name(const char *name);

/* Nothing but spaces and line ends. */
bool chat_is_blank(struct text t);

/* ---- turn.c ---- */

/* One question after another to one server. */
struct cli_turn {
	struct cli *cli;
	const char *conversation; /* NULL: the server's default */
	const char *agent;        /* NULL: the conversation's own */
	/* the names of the two, if they were not given as options */
	char conversation_name[CHAT_NAME_BYTES + 1];
	char agent_name[CHAT_NAME_BYTES + 1];
	bool left;  /* the user did not wait for the answer: the connection is unusable */
	bool plain; /* the server has no chat.stream, and so only one conversation */

	/* about the current question */
	const char *method;
	struct text content;
	char request_id[160];
	int64_t call;
	size_t shown;  /* bytes of the answer printed so far */
	bool mid_line; /* and the last of them was not a newline */
	bool is_done;
	bool cancelled;
	bool unknown_method;
	int result; /* 0, KOINE_ERROR_ANSWER or a fault */
};

/* Connects, without a time limit for answers unless the options set one. */
int turn_begin(struct cli_turn *t, struct cli *cli);
/* Hangs up: a question that the user left may still be running. */
void turn_end(struct cli_turn *t);

/*
 * Asks, and prints the answer as the options say. While it waits, Ctrl-C cancels, and a second
 * one leaves without the answer.
 *
 * Returns 0; EXIT_INTERRUPTED; EXIT_ERROR_ANSWER when the server answered with an error;
 * EX_DATAERR for input that is not text; otherwise the exit code for a lost connection. Errors
 * have already been printed.
 */
int turn_ask(struct cli_turn *t, struct text content);

/* Explains, for a plain server, that it has only one conversation. */
void turn_tell_plain(const struct cli_turn *t);

/* ---- conversations.c; conversation NULL: the default ---- */

/* Which conversation: by its name, or one that was ended by its number. */
struct chat_conversation {
	const char *name;
	int64_t number; /* 0: by its name */
};

/* If the error is that there is no such conversation (servers say agent): says so, and returns
 * true. */
bool chat_tell_missing(const struct koine_answer *a, const char *conversation);

int chat_print_tokens(struct cli *cli, const char *conversation);
int chat_compact(struct cli *cli, const char *conversation);
int chat_print_conversations(struct cli *cli, int64_t n);

/* The newest n. */
int chat_print_messages(struct cli *cli, const struct chat_conversation *which, int64_t n);

/* ---- agents.c ---- */

int chat_print_agents(struct cli *cli);
/* EXIT_ERROR_ANSWER, after saying so, when there is none of that name. */
int chat_find_agent(struct cli *cli, const char *name);

/* ---- the commands that have a file of their own ---- */

int cmd_chat(struct cli *cli);
