/*
 * Conversations with an agent.
 *
 * One turn at a time in a conversation, in the order they were asked; turns of different
 * conversations run side by side. What was said is in the store before anybody is told
 * so: the question before the agent starts, the text while it comes (a crash costs at
 * most its last moments), the end before the answer.
 *
 * A conversation has a budget of tokens. Older turns that do not fit any more are not sent to
 * the agent, but stay in the store; so do those that a summary stands for.
 *
 * Functions that take a lane read on that worker's connection; all others belong to the
 * loop's thread. Texts that go in are copied; texts in callbacks are valid meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "base/noun/conversation.h"
#include "base/noun/message.h"
#include "io/loop.h"
#include "io/work.h"
#include "engine/memory/memory.h"

struct chat;
struct chat_turn;
struct events;
struct store;

#define CHAT_DEFAULT "default" /* the conversation of those who name none */

enum {
	CHAT_ID_MAX = 128,       /* bytes of a conversation's or a request's id */
	CHAT_WAITING_MAX = 64,   /* turns that wait behind another in one conversation */
	CHAT_TURNS_MAX = 1024,   /* turns in all */
	CHAT_TEXT_MAX = 8 << 20, /* bytes of a question, or of an answer */
	CHAT_PAGE_MAX = 2000,    /* messages, or conversations, in one page */
};

struct chat_opts {
	struct store *store;
	struct events *events;     /* NULL: nobody is told */
	struct memories *memories; /* that are quoted */
	struct loop *loop;
	struct background background;
	/* All that there are; become the chat's, on failure too. */
	struct agent **agents;
	unsigned n_agents;
	const char *agent;    /* the default's name; NULL: there is none */
	const char *system;   /* the prompt that a conversation has unless it has its own; "" */
	const char *numbered; /* before the number in chat_new_name; NULL: "chat-" */
};

/* Before the first call, and on the loop's thread. What a crash left running is marked. Refuses a
 * default agent that is none of the agents. */
int chat_start(const struct chat_opts *opts, struct chat **ret_chat, struct why *why);

/*
 * From now on these are the agents, with the default among them; on the loop's thread. Those that
 * chat has already stay as they are, the others become its own, on failure too. Turns under way end
 * with the agent they began with. Refuses as chat_start does; REFUSE_LIMIT when there were a
 * thousand different agents.
 */
int chat_set_agents(struct chat *chat, struct agent *const *agents, unsigned n, const char *agent,
		    struct why *why);

/* Starts nothing new, and cancels the turns that run; they end as usual. Accepts NULL. */
void chat_stop(struct chat *chat);

/* Whether the last turn has ended and is in the store. True for NULL. */
bool chat_idle(const struct chat *chat);

/* After the last work has finished. Turns that are still open are told nothing any more.
 * Accepts NULL. The loop must turn afterwards until children are reaped. */
void chat_free(struct chat *chat);

/* For the writer's thread, after a commit. Accepts NULL. */
void chat_committed(struct chat *chat);

/* Whether an id may name a conversation: 1 to CHAT_ID_MAX bytes, letters, digits, '.', '_',
 * '-', ':' and '@', not only dots. Otherwise the refusal names `field`. */
int chat_check_id(struct text id, const char *field, struct why *why);

/* ---- a turn ---- */

struct chat_result {
	struct text call_id;
	struct text text;
	bool failed;
};

struct chat_ask {
	struct text conversation; /* {NULL, 0}: CHAT_DEFAULT */
	bool must_exist;          /* else it begins with this */
	struct text request_id;   /* opaque; {NULL, 0}: one is made, see chat_new_request */
	struct text request_name; /* the same for the log; {NULL, 0}: as it is */
	struct text agent;        /* answers this turn; {NULL, 0}: the conversation's own */
	struct text content;      /* {NULL, 0} with results */
	const struct chat_result *results; /* of calls that the last turn ended with */
	unsigned n_results;
	const struct agent_tool *tools;
	unsigned n_tools;
	struct agent_shape shape;
	struct memory_asker by; /* whose memories may be quoted */
	/* For those who keep what was said themselves: with own_history the agent is sent this,
	 * not what the conversation has, and of it only what the budget has room for. It is not
	 * kept; the question and the answer are. */
	bool own_history;
	const struct message *history;
	unsigned n_history;
	struct text system; /* in place of the conversation's; {NULL, 0}: as it is */
};

struct chat_answer {
	int result; /* 0; else a refusal in why, or a fault */
	const struct why *why;
	struct text conversation;
	struct text request_id;
	struct text content; /* what came, whatever the outcome */
	enum agent_outcome outcome;
	enum agent_cause cause; /* of a failed agent */
	const struct tool_call *calls;
	unsigned n_calls;
	struct agent_usage usage;
	const char *error_type; /* of a failed agent: what it says (REFUSE_INTERNAL) */
	const char *error_text;
};

struct chat_sink {
	/* All of the text so far, and where the new part begins. What comes in one pass of the
	 * loop is told together. May be NULL. */
	void (*on_text)(void *arg, struct text whole, size_t from);
	/* Once, the last; when what is told is on disk. May come before chat_send returns, and
	 * then *ret_turn is not set. */
	void (*on_done)(void *arg, const struct chat_answer *answer);
	void *arg;
};

/*
 * Asks. What is wrong with the ask itself is refused at once (on_done does not come then): a
 * request id that is under way already in this conversation (REFUSE_PARAMS), an unknown
 * agent, too many that wait (REFUSE_LIMIT). A client may leave: the turn goes on, and
 * chat_turn_forget says that nobody listens.
 */
int chat_send(struct chat *chat, const struct chat_ask *ask, const struct chat_sink *sink,
	      struct chat_turn **ret_turn, struct why *why);

enum { CHAT_REQUEST_LEN = 16 };

/* An id that nobody else has: hex digits and a NUL. -EIO without randomness. */
int chat_new_request(char out[CHAT_REQUEST_LEN + 1]);

/* The prompt of those conversations that have none of their own; "" for none. */
struct text chat_system(const struct chat *chat);

/* A name that no conversation has had, with a number that grows, over restarts too. */
void chat_new_name(struct chat *chat, char out[CHAT_ID_MAX + 1]);

/* The highest N there ever was of conversations named PREFIX and N; 0: none. Before the first call. */
int chat_highest(struct chat *chat, const char *prefix, int64_t *ret_n);

/* The id it has, valid as long as the turn. */
struct text chat_turn_request(const struct chat_turn *t);

/* on_done comes soon, with what came so far. */
void chat_turn_cancel(struct chat_turn *t);

/* No callback comes any more; the turn goes on. */
void chat_turn_forget(struct chat_turn *t);

/* Cancels the turn of that request id, running or waiting; conversation {NULL, 0}: whichever has
 * it. False when there is none. */
bool chat_cancel(struct chat *chat, struct text conversation, struct text request_id);

/* ---- conversations ---- */

struct chat_counts {
	int64_t n_messages;
	bool has_system;
	/* tokens of what would be sent next; the first three make the total */
	int64_t system;
	int64_t tools;
	int64_t messages;
	int64_t total;
	int64_t budget;
	int64_t available; /* budget less the reserve */
	bool running;
};

typedef void (*chat_counts_fn)(void *arg, int result, const struct chat_counts *counts,
			       const struct why *why);

/* fn comes once: before this returns if the conversation is at hand, else soon. One that does
 * not exist is all zeroes, unless must_exist: then REFUSE_NOT_FOUND. */
void chat_count(struct chat *chat, struct text conversation, bool must_exist, chat_counts_fn fn,
		void *arg);

typedef void (*chat_done_fn)(void *arg, int result, const struct why *why);

/* Ends it: cancels its turns, and waits until they are over. REFUSE_NOT_FOUND. */
void chat_destroy(struct chat *chat, struct text conversation, chat_done_fn fn, void *arg);

/* On the writer's thread: notes that its clients are done with it, and nothing else.
 * REFUSE_NOT_FOUND. */
int chat_want_end(struct chat *chat, struct text conversation, struct why *why);

struct chat_compacted {
	bool compacted;
	int64_t tokens_before;
	int64_t tokens_after;
};

typedef void (*chat_compacted_fn)(void *arg, int result, const struct chat_compacted *done,
				  const struct why *why);

/*
 * Puts a summary in the place of all turns but the newest two: the agent's own, or for one that
 * cannot (recall) what the user said, shortened. Waits for its turn as a question does.
 * Too little to gain: not compacted, and no error.
 */
void chat_compact(struct chat *chat, struct text conversation, bool must_exist,
		  chat_compacted_fn fn, void *arg);

/* Where a conversation's programs run and what they leave alone, as somebody asks for it. */
struct chat_wish {
	struct text agent;  /* that is to keep to it; {NULL, 0}: the default */
	struct text parent; /* the conversation that it must be no more than; {NULL, 0}: none */
	struct text preset; /* "trusted", "sandboxed"; {NULL, 0}: the parent's */
	struct text cwd;    /* {NULL, 0}: the parent's, or the agent's own */
	const struct text *write_paths;
	unsigned n_write_paths;
	bool has_write_paths; /* else where the preset says */
	const struct text *disabled_tools;
	unsigned n_disabled_tools;
};

enum { CHAT_PATHS_MAX = 32, CHAT_TOOLS_MAX = 128, CHAT_CHILD_DEPTH = 5 };

/*
 * On a reader's thread, since it looks at folders. Refuses, by the name that create_agent has for
 * it (REFUSE_PARAMS), what is wrong, what is more than the parent may, and what the agent cannot keep
 * to.
 */
int chat_resolve(struct chat *chat, int lane, struct arena *a, const struct chat_wish *wish,
		 struct bounds *ret, struct why *why);

struct chat_new {
	struct text id;              /* {NULL, 0}: one is made */
	struct text agent;           /* {NULL, 0}: the default */
	struct text system;          /* {NULL, 0}: the default */
	const struct bounds *bounds; /* NULL: none */
};

/* On the writer's thread. REFUSE_PARAMS when the id is taken or cannot be, or the agent is not
 * known. */
int chat_create(struct chat *chat, struct arena *a, const struct chat_new *in, struct text *ret_id,
		struct why *why);

/* A page of what there is: `limit` (0: the usual) from `offset` on. */
struct conversation_page {
	int64_t offset;
	int64_t limit;
	struct conversation *rows; /* each with the agent that it has now, its own or the default */
	unsigned n;
	int64_t total; /* that there are */
};

struct message_page {
	int64_t offset;
	int64_t limit;
	struct message *rows;
	unsigned n;
	int64_t total;
};

/* The one changed last first. CHAT_DEFAULT is always there: the last, until it is used. */
int chat_list(struct chat *chat, int lane, struct arena *a, struct conversation_page *page);

/* Oldest first. */
int chat_messages(struct chat *chat, int lane, struct arena *a, struct text conversation,
		  bool must_exist, struct message_page *page, struct why *why);

/* ---- those that were ended ---- */

/* What was said in them stays until it is purged. They are told apart by their seq, since their id
 * may be another's by now. The last ended first; of one id, or {NULL, 0} of all. */
int chat_list_ended(struct chat *chat, int lane, struct arena *a, struct text id,
		    struct conversation_page *page);

/* As chat_messages. REFUSE_NOT_FOUND for a number that no ended conversation has. */
int chat_messages_ended(struct chat *chat, int lane, struct arena *a, int64_t number,
			struct text *ret_id, struct message_page *page, struct why *why);

/* Which are to be deleted for good, and how far that is. */
struct chat_purge {
	int64_t number;    /* that one; 0: all that were ended */
	int64_t before_ms; /* before this, then */
	int64_t n_purged;
	bool more; /* it is not over */
};

/* On the writer's thread: a step of it, so that others' writes need not wait for all. */
int chat_purge(struct chat *chat, struct arena *a, struct chat_purge *p, struct why *why);

/* ---- agents ---- */

/* By name; {NULL, 0}: the default. NULL: there is none. It stays the chat's. Accepts NULL. */
struct agent *chat_agent(const struct chat *chat, struct text name);

/* Who works where nobody is named: the default agent, unless it only quotes. NULL: nobody, which is
 * then to be refused; `section` of the settings could name one. */
struct agent *chat_worker(const struct chat *chat);
int chat_refuse_work(struct why *why, const char *section);

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

/* Asks all of them at once; fn comes once, when all have answered or 10 s are over. */
typedef void (*chat_agents_fn)(void *arg, const struct chat_agent_info *agents, unsigned n);
int chat_probe(struct chat *chat, chat_agents_fn fn, void *arg);

/* How many tokens a text is taken for: a quarter of its characters, at least one; where no
 * provider has counted. A message counts four more. */
int64_t chat_estimate(struct text t);
