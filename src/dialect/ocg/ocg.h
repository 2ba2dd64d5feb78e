/*
 * ocg: a gateway and its agent, Go's net/rpc over a Unix socket.
 *
 * Every method is there under two names: RPCService's, as the specification has it, and
 * Agent's, as real gateways call it.
 */
#pragma once

#include "base/list.h"
#include "call/dialect.h"
#include "engine/chat/chat.h"
#include "engine/memory/memory.h"
#include "wire/gob/gob.h"

extern const struct dialect ocg_dialect;

#define OCG_CONVERSATION "ocg-" /* and a number: what is said over one connection, in order */

struct ocg_settings {
	char user[128]; /* whose memories; "": nobody's, which are common */
};

/* {NULL, 0}: nobody's. */
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

struct ocg_search_in {
	struct text query;
	struct text category;
	int64_t limit;
	double min_score;
};

struct ocg_get_in {
	struct text path;
};

struct ocg_store_in {
	struct text text;
	struct text category;
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

/* One of its conversations. In each there is one question at a time; those that are asked side by
 * side have their own. */
struct ocg_talk {
	struct list link;
	bool busy;
	char name[CHAT_ID_MAX + 1];
};

/* What led to an answer that wanted tools, from the question on; the answer is the last of it. */
struct ocg_chain {
	struct list link;
	struct text conversation;
	struct message *said;
	unsigned n_said;
	struct arena arena;
};

struct ocg_peer;

/* Of the call's connection; NULL without memory. */
struct ocg_peer *ocg_peer_of(struct call *c);

/* struct ocg_chain, the newest first: not many. */
const struct list *ocg_peer_chains(const struct ocg_peer *p);

/* One that is free, the named one if it is; busy from now on. NULL without memory. */
struct ocg_talk *ocg_peer_talk(struct ocg_peer *p, struct chat *chat, struct text name);

/* What was asked is answered: it is remembered if tools are wanted. */
void ocg_peer_answered(struct ocg_peer *p, const struct chat_ask *ask, const struct chat_answer *a);

/* With all that they point at. -ENOMEM also when the arena is full. */
int ocg_copy_messages(struct arena *a, const struct message *from, unsigned n, struct message *to);

/* ---- chat_in.c ---- */

/*
 * What is asked: the whole history that came, of which what follows the last answer is the
 * question, and the rest is only sent. Results that came without the answer which wanted them find
 * it among the chains; then the ask has that conversation. It points into the tree and the arena.
 */
int ocg_chat_read(struct arena *a, const struct ocg_chat_in *in, const struct list *chains,
		  struct chat_ask *ret_ask);
