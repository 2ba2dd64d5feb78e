/*
 * Conversations with an agent.
 *
 * A conversation has one turn at a time, in the order they were asked; turns of different
 * conversations run in parallel. Everything is in the store before anybody is told about it:
 * the question before the agent starts, the text while it arrives (a crash costs at most its
 * last moments), the end before the answer.
 *
 * A conversation has a budget of tokens. Older turns that no longer fit are not sent to the
 * agent, but stay in the store; so do those that a summary replaces.
 *
 * Functions that take a lane read on that worker's connection; all others belong to the loop's
 * thread. Texts that are passed in are copied; texts in callbacks are valid until the callback
 * returns.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "model/chat.h"
#include "io/loop.h"
#include "io/work.h"
#include "engine/memory/memory.h"

struct chat;
struct chat_turn;
struct events;
struct spend;
struct store;

#define CHAT_DEFAULT "default" /* the conversation used if none is named */

enum {
	CHAT_ID_MAX = 128,       /* bytes of a conversation's or a request's id */
	CHAT_WAITING_MAX = 64,   /* turns that wait in one conversation */
	CHAT_TURNS_MAX = 1024,   /* turns in all */
	CHAT_TEXT_MAX = 8 << 20, /* bytes of a question, or of an answer */
	CHAT_PAGE_MAX = 2000,    /* messages, or conversations, in one page */
};

struct node;

struct chat_opts {
	struct store *store;
	struct events *events;     /* NULL: no events are logged */
	struct node *node;         /* NULL: there is one host only */
	struct memories *memories; /* the memories that are quoted */
	struct loop *loop;
	struct workers *workers;
	/* All agents. The chat takes ownership, even on failure. */
	struct agent **agents;
	unsigned n_agents;
	const char *agent;    /* the default's name; NULL: there is none */
	const char *system;   /* the prompt of conversations without one of their own; "" */
	const char *numbered; /* prefix of the number in chat_new_name; NULL: "chat-" */
	int64_t keep_ms;      /* that a conversation is kept after its end; 0: for ever */
};

/* Call it before the first call, on the loop's thread. It marks turns that a crash left running.
 * It refuses a default agent that is not among the agents. */
int chat_start(const struct chat_opts *opts, struct chat **ret_chat, struct error *error);

/*
 * Replaces the agents, the default among them; call it on the loop's thread. Agents that the
 * chat already owns stay as they are; it takes ownership of the others, even on failure. Turns
 * under way end with the agent they started with. Refuses as chat_start does; REFUSE_LIMIT
 * once there have been a thousand different agents.
 */
int chat_set_agents(struct chat *chat, struct agent *const *agents, unsigned n, const char *agent,
		    struct error *error);

/* Starts nothing new, and cancels the turns that are running; they end as usual. Accepts NULL. */
void chat_stop(struct chat *chat);

/* Whether the last turn has ended and is in the store. True for NULL. */
bool chat_idle(const struct chat *chat);

/* Call it after the last work has finished. Turns that are still open get no more callbacks.
 * Accepts NULL. Run the loop afterwards until children are reaped. */
void chat_free(struct chat *chat);

/* Called on the writer's thread after a commit. Accepts NULL. */
void chat_committed(struct chat *chat);

/* Whether an id may name a conversation: 1 to CHAT_ID_MAX bytes of letters, digits, '.', '_',
 * '-', ':' and '@', but not only dots. If not, the refusal names `field`. */
int chat_check_id(struct text id, const char *field, struct error *error);

/* ---- a turn ---- */

struct chat_result {
	struct text call_id;
	struct text text;
	bool failed;
};

struct chat_ask {
	struct text conversation; /* {NULL, 0}: CHAT_DEFAULT */
	bool must_exist;          /* otherwise it is created */
	struct text request_id;   /* opaque; {NULL, 0}: one is made, see chat_new_request */
	struct text request_name; /* the same id for the log; {NULL, 0}: unchanged */
	struct text agent;        /* answers this turn; {NULL, 0}: the conversation's own */
	struct text content;      /* {NULL, 0} with results */
	const struct chat_result *results; /* results of calls that the last turn ended with */
	unsigned n_results;
	const struct agent_tool *tools;
	unsigned n_tools;
	struct agent_shape shape;
	struct memory_asker by; /* whose memories may be quoted */
	/* For callers that keep the history themselves: with own_history the agent is sent this
	 * instead of the conversation's history, as far as the budget allows. It is not stored;
	 * the question and the answer are. */
	bool own_history;
	const struct message *history;
	unsigned n_history;
	struct text system; /* instead of the conversation's; {NULL, 0}: unchanged */
};

struct chat_answer {
	int result; /* 0; else a refusal in error, or an error */
	const struct error *error;
	struct text conversation;
	struct text request_id;
	struct text content; /* the text that arrived, whatever the outcome */
	enum agent_outcome outcome;
	enum agent_cause cause; /* of a failed agent */
	const struct tool_call *calls;
	unsigned n_calls;
	struct agent_usage usage;
	const char *error_type; /* of a failed agent: its own message (REFUSE_INTERNAL) */
	const char *error_text;
};

struct chat_sink {
	/* The whole text so far, and where the new part starts. Text that arrives in one pass of
	 * the loop is passed on together. May be NULL. */
	void (*on_text)(void *arg, struct text whole, size_t from);
	/* Called once, last, when everything it reports is on disk; never inside a call of these functions. */
	void (*on_done)(void *arg, const struct chat_answer *answer);
	void *arg;
};

/*
 * Asks a question. A fault in the request itself is refused at once, without on_done: a
 * request id that is already under way in this conversation (REFUSE_PARAMS), an unknown agent,
 * too many waiting turns (REFUSE_LIMIT). A client may leave: the turn continues, and
 * chat_turn_forget says that nobody is listening.
 */
int chat_send(struct chat *chat, const struct chat_ask *ask, const struct chat_sink *sink,
	      struct chat_turn **ret_turn, struct error *error);

enum { CHAT_REQUEST_LEN = 16 };

/* A unique id: hex digits and a NUL. -EIO without randomness. */
int chat_new_request(char out[CHAT_REQUEST_LEN + 1]);

/* The prompt of conversations that have none of their own; "" for none. */
struct text chat_system(const struct chat *chat);

/* A name that no conversation has ever had, with a number that keeps growing across restarts. */
void chat_new_name(struct chat *chat, char out[CHAT_ID_MAX + 1]);

/* The highest N that a conversation named PREFIX and N ever had; 0: none. Call it before the
 * first call. */
int chat_highest(struct chat *chat, const char *prefix, int64_t *ret_n);

/* Its request id, valid as long as the turn is. */
struct text chat_turn_request(const struct chat_turn *t);

/* on_done follows soon, with the text so far. */
void chat_turn_cancel(struct chat_turn *t);

/* No callbacks follow; the turn continues. */
void chat_turn_forget(struct chat_turn *t);

/* Cancels the turn with that request id, running or waiting; conversation {NULL, 0}: in any of
 * them. False if there is none. */
bool chat_cancel(struct chat *chat, struct text conversation, struct text request_id);

/* ---- conversations ---- */

struct chat_counts {
	int64_t n_messages;
	bool has_system;
	/* tokens of what would be sent next; the first three add up to the total */
	int64_t system;
	int64_t tools;
	int64_t messages;
	int64_t total;
	int64_t budget;
	int64_t available; /* the budget minus the reserve */
	bool running;
};

typedef void (*chat_counts_fn)(void *arg, int result, const struct chat_counts *counts,
			       const struct error *error);

/* 0 if the conversation is loaded, as it nearly always is; -EAGAIN: fn is called once, later. For one that does
 * not exist everything is zero, or with must_exist it is REFUSE_NOT_FOUND. */
int chat_count(struct chat *chat, struct text conversation, bool must_exist,
	       struct chat_counts *ret_counts, chat_counts_fn fn, void *arg, struct error *error);

typedef void (*chat_done_fn)(void *arg, int result, const struct error *error);

/* Ends it: cancels its turns and waits until they have ended. REFUSE_NOT_FOUND. fn is called later if this
 * returns 0, else not at all. */
int chat_destroy(struct chat *chat, struct text conversation, chat_done_fn fn, void *arg,
		 struct error *error);

/* Runs on the writer's thread. Only records that its clients are done with it. REFUSE_NOT_FOUND. */
int chat_want_end(struct chat *chat, struct text conversation, struct error *error);

struct chat_compacted {
	bool compacted;
	int64_t tokens_before;
	int64_t tokens_after;
};

typedef void (*chat_compacted_fn)(void *arg, int result, const struct chat_compacted *done,
				  const struct error *error);

/*
 * Replaces all turns but the newest two by a summary: the agent's own or, if the agent cannot
 * write one (recall), a shortened form of what the user said. It queues like a question. If
 * there is too little to gain, it does not compact, which is no error. fn is called later if this
 * returns 0, else not at all.
 */
int chat_compact(struct chat *chat, struct text conversation, bool must_exist, chat_compacted_fn fn,
		 void *arg, struct error *error);

/* Where a conversation's programs run and what they may not touch, as requested. */
struct chat_wish {
	struct text agent;  /* the agent that must obey it; {NULL, 0}: the default */
	struct text parent; /* the conversation whose bounds it may not exceed; {NULL, 0}: none */
	struct text preset; /* "trusted", "sandboxed"; {NULL, 0}: the parent's */
	struct text cwd;    /* {NULL, 0}: the parent's, or the agent's own */
	const struct text *write_paths;
	unsigned n_write_paths;
	bool has_write_paths; /* otherwise as the preset says */
	const struct text *disabled_tools;
	unsigned n_disabled_tools;
};

enum { CHAT_PATHS_MAX = 32, CHAT_TOOLS_MAX = 128, CHAT_CHILD_DEPTH = 5 };

/*
 * Runs on a reader's thread, since it looks at folders. It refuses what is wrong, what exceeds
 * the parent's bounds and what the agent cannot enforce, under create_agent's name for it
 * (REFUSE_PARAMS).
 */
int chat_resolve(struct chat *chat, int lane, struct arena *a, const struct chat_wish *wish,
		 struct bounds *ret, struct error *error);

struct chat_new {
	struct text id;              /* {NULL, 0}: one is made */
	struct text agent;           /* {NULL, 0}: the default */
	struct text system;          /* {NULL, 0}: the default */
	const struct bounds *bounds; /* NULL: none */
};

/* Runs on the writer's thread. REFUSE_PARAMS if the id is taken or invalid, or the agent is
 * unknown. */
int chat_create(struct chat *chat, struct arena *a, const struct chat_new *in, struct text *ret_id,
		struct error *error);

/* A page: `limit` entries (0: the default) starting at `offset`. */
struct conversation_page {
	int64_t offset;
	int64_t limit;
	struct conversation *rows; /* each with its current agent, its own or the default */
	unsigned n;
	int64_t total; /* the total */
};

struct message_page {
	int64_t offset;
	int64_t limit;
	struct message *rows;
	unsigned n;
	int64_t total;
};

/* The most recently changed first. CHAT_DEFAULT is always listed: last, until it is used. */
int chat_list(struct chat *chat, int lane, struct arena *a, struct conversation_page *page);

/* Oldest first. */
int chat_messages(struct chat *chat, int lane, struct arena *a, struct text conversation,
		  bool must_exist, struct message_page *page, struct error *error);

/* ---- ended conversations ---- */

/* What was said in them stays until it is purged. They are identified by their seq, since
 * another conversation may have their id by now. The last ended comes first; only those of one
 * id, or all for {NULL, 0}. */
int chat_list_ended(struct chat *chat, int lane, struct arena *a, struct text id,
		    struct conversation_page *page);

/* Like chat_messages. REFUSE_NOT_FOUND for a number that no ended conversation has. */
int chat_messages_ended(struct chat *chat, int lane, struct arena *a, int64_t number,
			struct text *ret_id, struct message_page *page, struct error *error);

/* Which ones to delete for good, and what the last step did. */
struct chat_purge {
	int64_t number;    /* this one; 0: all that were ended */
	int64_t before_ms; /* and then only those before this */
	int64_t n_purged;
	bool more; /* there is more to do */
};

/* Runs on the writer's thread. Does one step, so that other writes need not wait for the whole. */
int chat_purge(struct chat *chat, struct chat_purge *p, struct error *error);

/* Runs on the writer's thread. Deletes some of those that were ended too long ago. */
int chat_sweep(struct chat *chat, bool *ret_more);
bool chat_sweeps(const struct chat *chat); /* whether it is to; accepts NULL */

/*
 * The total counts, as of the log's last event: asking again before anything has changed needs
 * neither a thread nor a query.
 */
struct census {
	bool taken;
	int64_t as_of; /* the last event at that time */
	int64_t conversations;
	int64_t messages;
	int64_t tool_calls;
	int64_t memories;
};

/* Runs on the loop. Returns false if the census must be taken (again). */
bool census_at_hand(const struct chat *chat, struct census *ret);

/* Runs on a reader's thread. */
int census_take(struct chat *chat, int lane, struct census *ret);

/* Runs on the loop. Remembers the census that was taken. */
void census_keep(struct chat *chat, const struct census *c);

/* ---- agents ---- */

/* By name; {NULL, 0}: the default. NULL: there is none. The chat keeps ownership. Accepts NULL. */
struct agent *chat_agent(const struct chat *chat, struct text name);

/* What agents used, as far as they said. On the loop; NULL for NULL. */
const struct spend *chat_spend(const struct chat *chat);

/* For those who ask an agent outside of any conversation: counts what that used. */
void chat_note_spent(struct spend *spend, const char *agent, const struct agent_end *end);

/* Who works if nobody is named: the default agent, unless it only quotes. NULL: nobody, which
 * the caller must refuse; `section` of the settings could name one. */
struct agent *chat_worker(const struct chat *chat);
int chat_refuse_work(struct error *error, const char *section);

/* One after another; NULL: there are no more. */
struct agent *chat_agent_at(const struct chat *chat, unsigned i);

struct chat_agent_info {
	const char *name;
	const char *kind;
	const char *model; /* or program; "" */
	bool is_default;
	bool ok;
	const char *text; /* what is wrong, or what answered */
	int64_t ms;       /* how long it took */
};

/* Asks all of them at once. Calls fn once, when all have answered or after 10 s. */
typedef void (*chat_agents_fn)(void *arg, const struct chat_agent_info *agents, unsigned n);
int chat_probe(struct chat *chat, chat_agents_fn fn, void *arg);

/* How many tokens a text counts as if no provider has counted: a quarter of its characters, at
 * least one. A message counts four more. */
int64_t chat_estimate(struct text t);

/* How the recall agent finds its quotes, by the words of search/. Runs on a reader's thread. As struct
 * recall_opts wants it; needs no arg. */
int chat_rank(void *arg, const struct text *sentences, unsigned n, struct text question,
	      unsigned *ret_best, unsigned max, unsigned *ret_n);
