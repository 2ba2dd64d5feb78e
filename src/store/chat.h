/*
 * Conversations in the store: their turns, and the messages of those.
 *
 * A conversation has an id that people and programs know it by; one that was ended
 * keeps its rows, and its id is free again. A turn is one question with all that
 * follows from it. A message belongs to a turn; its place there is its seq, and turns
 * stand in the order of theirs.
 *
 * What changes something takes the writer's connection, inside a batch, and returns -ENOENT
 * for a seq that is not there, -EINVAL where a new row names one. Rows that are found are
 * copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/conversation.h"
#include "base/noun/message.h"
#include "base/noun/turn.h"
#include "base/text.h"

struct connection;

/* -EEXIST when a conversation that was not ended has the id. */
int store_conversation_add(struct connection *c, const struct conversation *row, int64_t *ret_seq);

/* Of those that were not ended. */
int store_conversation_find(struct connection *c, struct text id, struct arena *arena,
			    struct conversation *ret_row, bool *ret_found);

/* Rewrites agent, system and updated_ms of row->seq. */
int store_conversation_update(struct connection *c, const struct conversation *row);

int store_conversation_set_summary(struct connection *c, int64_t seq, struct text summary,
				   int64_t tokens, int64_t turn);

/* Sets wants_end; false when there is none. */
int store_conversation_want_end(struct connection *c, struct text id, bool *ret_found);

/* False when there is none, or it was ended before. */
int store_conversation_end(struct connection *c, struct text id, int64_t now_ms, bool *ret_found);

/*
 * Those that were not ended, the one changed last first; at most limit from offset on. Of
 * system and summary, which may be long, only whether there is one: "" if so.
 */
int store_conversation_list(struct connection *c, unsigned offset, unsigned limit,
			    struct arena *arena, struct conversation **ret_rows, unsigned *ret_n,
			    int64_t *ret_total);

/*
 * The same of those that were ended, the last ended first; of one id or (NULL) of all. They are told
 * apart by their seq: an id may have been used again.
 */
int store_conversation_list_ended(struct connection *c, struct text id, unsigned offset,
				  unsigned limit, struct arena *arena,
				  struct conversation **ret_rows, unsigned *ret_n,
				  int64_t *ret_total);

int store_conversation_find_ended(struct connection *c, int64_t seq, struct arena *arena,
				  struct conversation *ret_row, bool *ret_found);

/* The one that was ended first, before that time; 0: there is none. */
int store_conversation_oldest_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq);

/*
 * Deletes one that was ended, with all that was said: at most `limit` messages at a time, and when
 * none is left the rest of it. *ret_more: to be called again.
 */
int store_conversation_purge(struct connection *c, int64_t seq, unsigned limit, bool *ret_more);

/* The highest N of all conversations, ended ones too, whose id is the prefix and N; 0: none. */
int store_conversation_highest(struct connection *c, struct text prefix, int64_t *ret_n);

struct store_chat_totals {
	int64_t n_conversations; /* that were not ended */
	int64_t n_messages;      /* of these */
	int64_t n_calls;         /* of tools, by all there ever were */
};

int store_chat_totals(struct connection *c, struct store_chat_totals *ret);

/* All of `row` but seq, which is returned; touches the conversation's updated_ms. */
int store_turn_add(struct connection *c, const struct turn *row, int64_t *ret_seq);

/* Rewrites state, ended_ms, the tokens and error of row->seq. */
int store_turn_end(struct connection *c, const struct turn *row);

/* What is running, in one conversation or (0) in all, as a crash leaves it, is TURN_INTERRUPTED. */
int store_turn_interrupt(struct connection *c, int64_t conversation, int64_t now_ms,
			 int64_t *ret_n);

/* All of `row` but seq, with its calls. */
int store_message_add(struct connection *c, const struct message *row, int64_t *ret_seq);

/* More text at its end, and what it counts now. Writes all of the text again: the longer it is,
 * the larger the pieces should be. */
int store_message_append(struct connection *c, int64_t seq, struct text more, int64_t tokens);

/* Of row->seq: what it counts now; adds row->calls behind those it has. */
int store_message_finish(struct connection *c, const struct message *row);
int store_message_set_tokens(struct connection *c, int64_t seq, int64_t tokens);

/* How many messages the conversation has; and whether one of them is an assistant's. */
int store_message_count(struct connection *c, int64_t conversation, int64_t *ret_n,
			bool *ret_answered);

/*
 * The newest turns after `after_turn` whose tokens together do not pass max_tokens, and always
 * the newest one, with those it continues; oldest first. Turns without messages are left out.
 */
int store_turn_weights(struct connection *c, int64_t conversation, int64_t after_turn,
		       int64_t max_tokens, struct arena *arena, struct turn_weight **ret_weights,
		       unsigned *ret_n);

/* The messages of the turns from_turn to to_turn, both included, with their calls, oldest
 * first. */
int store_message_window(struct connection *c, int64_t conversation, int64_t from_turn,
			 int64_t to_turn, struct arena *arena, struct message **ret_rows,
			 unsigned *ret_n);

/*
 * A page of all, oldest first, with their calls: `limit` from `offset` on, or fewer once their
 * text and calls pass max_bytes (0: any), but never none of them. *ret_total: how many there
 * are at that moment.
 */
int store_message_list(struct connection *c, int64_t conversation, int64_t offset, unsigned limit,
		       size_t max_bytes, struct arena *arena, struct message **ret_rows,
		       unsigned *ret_n, int64_t *ret_total);
