/*
 * Conversations in the store: their turns and the turns' messages.
 *
 * A conversation has an id that people and programs know it by. One that was ended keeps its
 * rows, and its id is free again. A turn is one question with everything that follows from it.
 * A message belongs to a turn; its seq orders it there, and turns are ordered by their own
 * seq.
 *
 * Functions that change something take the writer's connection, inside a batch. They return
 * -ENOENT for a seq that does not exist, and -EINVAL where a new row refers to one. Rows that
 * are found are copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/chat.h"
#include "base/text.h"

struct connection;

/* -EEXIST when a conversation that has not been ended has the id. */
int store_conversation_add(struct connection *c, const struct conversation *row, int64_t *ret_seq);

/* Only among those that have not been ended. */
int store_conversation_find(struct connection *c, struct text id, struct arena *arena,
			    struct conversation *ret_row, bool *ret_found);

int store_conversation_set_summary(struct connection *c, int64_t seq, struct text summary,
				   int64_t tokens, int64_t turn);

/* Sets wants_end; false when there is none. */
int store_conversation_want_end(struct connection *c, struct text id, bool *ret_found);

/* False when there is none, or it has already been ended. */
int store_conversation_end(struct connection *c, struct text id, int64_t now_ms, bool *ret_found);

/*
 * Conversations that have not been ended, the last changed first; at most limit, starting at
 * offset. system and summary may be long, so they only say whether there is one: "" if so.
 */
int store_conversation_list(struct connection *c, unsigned offset, unsigned limit,
			    struct arena *arena, struct conversation **ret_rows, unsigned *ret_n,
			    int64_t *ret_total);

/*
 * The same for ended conversations, the last ended first; those of one id, or of all (NULL).
 * Only seq tells them apart, since an id may have been used again.
 */
int store_conversation_list_ended(struct connection *c, struct text id, unsigned offset,
				  unsigned limit, struct arena *arena,
				  struct conversation **ret_rows, unsigned *ret_n,
				  int64_t *ret_total);

int store_conversation_find_ended(struct connection *c, int64_t seq, struct arena *arena,
				  struct conversation *ret_row, bool *ret_found);

/* The one that was ended first, if before that time; 0: none. */
int store_conversation_oldest_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq);

/*
 * Deletes an ended conversation: at most `limit` of its messages and turns at a time, and itself
 * once none is left. *ret_n: how many of them it was. *ret_more: call it again.
 */
int store_conversation_purge(struct connection *c, int64_t seq, unsigned limit, unsigned *ret_n,
			     bool *ret_more);

/* The highest N among all conversations, including ended ones, whose id is the prefix followed
 * by N; 0: none. */
int store_conversation_highest(struct connection *c, struct text prefix, int64_t *ret_n);

struct store_chat_totals {
	int64_t n_conversations; /* that have not been ended */
	int64_t n_messages;      /* of these */
	int64_t n_calls;         /* of tools, by all conversations ever */
};

int store_chat_totals(struct connection *c, struct store_chat_totals *ret);

/* Stores all of `row` but seq, which is returned. Updates the conversation's updated_ms. */
int store_turn_add(struct connection *c, const struct turn *row, int64_t *ret_seq);

/* Rewrites state, ended_ms, the tokens and error of row->seq. */
int store_turn_end(struct connection *c, const struct turn *row);

/*
 * With several hosts, the one that has a conversation's turn: the epoch of its life. It is given to whoever
 * asks while it is free, or its life is over. *ret_taken is false if another one has it, or the
 * conversation was ended.
 */
int store_conversation_take(struct connection *c, int64_t seq, int64_t epoch, struct text host,
			    bool *ret_taken);
/* Whether it still is; until the transaction is over it stays so. */
int store_conversation_has(struct connection *c, int64_t seq, int64_t epoch, bool *ret_has);
/* *ret_had is false if it was not ours any more. */
int store_conversation_release(struct connection *c, int64_t seq, int64_t epoch, bool *ret_had);
/* Whether a host that is alive has it, other than this life. */
int store_conversation_is_taken(struct connection *c, int64_t seq, int64_t epoch, bool *ret_taken);

/* Marks turns that a crash left running as TURN_INTERRUPTED: in one conversation, or (0) in all that no
 * living host has. */
int store_turn_interrupt(struct connection *c, int64_t conversation, int64_t now_ms,
			 int64_t *ret_n);

/* Stores all of `row` but seq, with its calls. */
int store_message_add(struct connection *c, const struct message *row, int64_t *ret_seq);

/* Appends text and updates the message's counts. The whole text is written again, so the longer
 * it is, the larger the pieces should be. */
int store_message_append(struct connection *c, int64_t seq, struct text more, int64_t tokens);

/* Updates the counts of row->seq, and adds row->calls after those it has. */
int store_message_finish(struct connection *c, const struct message *row);
int store_message_set_tokens(struct connection *c, int64_t seq, int64_t tokens);

/* How many messages the conversation has, and whether one of them is an assistant's. */
int store_message_count(struct connection *c, int64_t conversation, int64_t *ret_n,
			bool *ret_answered);

/*
 * The newest turns after `after_turn` that together have at most max_tokens, and always the
 * newest one with those that it continues; oldest first. Turns without messages are left out.
 */
int store_turn_weights(struct connection *c, int64_t conversation, int64_t after_turn,
		       int64_t max_tokens, struct arena *arena, struct turn_weight **ret_weights,
		       unsigned *ret_n);

/* The messages of the turns from_turn to to_turn, inclusive, with their calls, oldest first. */
int store_message_window(struct connection *c, int64_t conversation, int64_t from_turn,
			 int64_t to_turn, struct arena *arena, struct message **ret_rows,
			 unsigned *ret_n);

/*
 * A page of all messages, oldest first, with their calls: `limit` starting at `offset`. It is
 * shorter once text and calls exceed max_bytes (0: no limit), but has at least one. *ret_total
 * is how many there are at that moment.
 */
int store_message_list(struct connection *c, int64_t conversation, int64_t offset, unsigned limit,
		       size_t max_bytes, struct arena *arena, struct message **ret_rows,
		       unsigned *ret_n, int64_t *ret_total);
