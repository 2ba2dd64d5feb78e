/*
 * ocg: a gateway and its agent, speaking Go's net/rpc over a Unix socket.
 *
 * Every method has two names: RPCService's, from the specification, and Agent's, which real
 * gateways call.
 */
#pragma once

#include "base/list.h"
#include "call/dialect.h"
#include "engine/chat/chat.h"
#include "engine/memory/memory.h"
#include "wire/gob/gob.h"

extern const struct dialect ocg_dialect;

#define OCG_CONVERSATION "ocg-" /* plus a number: one conversation of a connection */

struct ocg_settings {
	char user[128]; /* whose memories; "": common ones, which are nobody's */
};

/* {NULL, 0} means nobody in particular. */
struct text ocg_user(const struct ocg_settings *s);

struct memory_asker ocg_asker(const struct call *c);

/* ---- shapes.c: Go's types, in the order of their fields ---- */

extern const struct gob_shape ocg_chat_args;
extern const struct gob_shape ocg_chat_reply;
extern const struct gob_shape ocg_stats_reply;
extern const struct gob_shape ocg_search_args;
extern const struct gob_shape ocg_get_args;
extern const struct gob_shape ocg_store_args;
extern const struct gob_shape ocg_result_reply;
extern const struct gob_shape ocg_pulse_args;
extern const struct gob_shape ocg_pulse_reply;

/* ---- the methods ---- */

struct ocg_chat_in {
	const struct value *messages;
	const struct value *tools;
};

struct ocg_memory_in {
	struct text query;
	struct text category;
	int64_t limit;
	double min_score;
	struct text path;
	struct text text;
	double importance;
};

struct ocg_pulse_in {
	struct text action;
	struct text title;
	struct text content;
	int64_t priority;
	struct text channel;
	int64_t limit;
};

struct done ocg_chat(struct call *c);
struct done ocg_stats(struct call *c);
void ocg_before_search(struct call *c);
struct done ocg_search(struct call *c);
struct done ocg_get(struct call *c);
struct done ocg_store(struct call *c);
struct done ocg_pulse_add(struct call *c);
struct done ocg_pulse_status(struct call *c);

/* ---- chat_peer.c: what a connection has asked ---- */

/* A conversation of the connection. It takes one question at a time, so questions asked side by
 * side get different ones. */
struct ocg_talk {
	struct list link;
	bool busy;
	char name[CHAT_ID_MAX + 1];
};

/* The messages that led to an answer which asked for tools, from the question to that answer. */
struct ocg_chain {
	struct list link;
	struct text conversation;
	struct message *said;
	unsigned n_said;
	struct arena arena;
};

struct ocg_peer;

/* The peer of the call's connection; NULL if out of memory. */
struct ocg_peer *ocg_peer_of(struct call *c);

/* A short list of struct ocg_chain, the newest first. */
const struct list *ocg_peer_chains(const struct ocg_peer *p);

/* Returns a free conversation, preferably the named one, and marks it busy. NULL if out of
 * memory. */
struct ocg_talk *ocg_peer_talk(struct ocg_peer *p, struct chat *chat, struct text name);

/* A question was answered: frees its conversation, and remembers the chain if tools are wanted. */
void ocg_peer_answered(struct ocg_peer *p, const struct chat_ask *ask, const struct chat_answer *a);

/* A deep copy. -ENOMEM also means that the arena is full. */
int ocg_copy_messages(struct arena *a, const struct message *from, unsigned n, struct message *to);

/* ---- chat_in.c ---- */

/*
 * Reads the whole history that came. What follows the last answer is the question; the rest is
 * only sent along. For results that came without the answer which asked for them, it is looked
 * up among the chains, and the ask gets that conversation. The ask points into the tree and
 * the arena.
 */
int ocg_chat_read(struct arena *a, const struct ocg_chat_in *in, const struct list *chains,
		  struct chat_ask *ret_ask);

/* ---- memory_answer.c: answers of the memory methods, JSON within a string, in the original's words ---- */

/* Writes as many hits as fit into the buffer's maximum, each whole. If none fits, that is the
 * buffer's error. */
void ocg_answer_found(struct buf *out, struct text query, const struct memory *hits, unsigned n);
void ocg_answer_entry(struct buf *out, const struct memory *m);
void ocg_answer_stored(struct buf *out, const struct memory *m);
void ocg_answer_duplicate(struct buf *out, const struct memory *m);
