/*
 * Internal to engine/chat: loaded conversations, and what agents are asked to do in them.
 * Everything belongs to the loop, except what a thread is working on: an errand has at most
 * one piece of work under way.
 */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/metric.h"
#include "base/sets.h"
#include "engine/chat/chat.h"
#include "engine/index/wait.h"
#include "engine/record/record.h"

struct connection;
struct store;

enum {
	CHAT_IDLE_MAX = 256,       /* conversations that stay loaded while nobody uses them */
	CHAT_ARENA_MAX = 64 << 20, /* of one turn's question, and of its context */
	CHAT_MESSAGE_TOKENS = 4,   /* that a message costs in addition to its text */
	CHAT_KEEP_TURNS = 2,       /* that a summary leaves unchanged */
	CHAT_PROBE_MS = 10000,
	CHAT_BYTES_MAX = 256 << 20, /* that all turns together may hold */
	CHAT_AGENTS_MAX = 1024,     /* of all rosters together */
};

/*
 * The agents at one time. A roster that was replaced lives as long as the chat: turns and
 * threads may still use its agents, and settings are seldom reloaded.
 */
struct chat_roster {
	struct chat_roster *before;
	struct agent *agent; /* the default; NULL: none */
	unsigned n;
	struct chat_member {
		struct agent *agent;
		bool own; /* it is new in this roster; the others come from an earlier one */
	} members[];
};

struct chat {
	struct chat_opts opts; /* without agents and prompt */
	struct records records;
	struct list give_backs; /* of turns whose end could not be stored */
	/* Who answers now. Changed on the loop, read on every thread. */
	_Atomic(struct chat_roster *) roster;
	struct chat_roster *rosters; /* this roster and all before it */
	unsigned n_agents;           /* in all rosters */
	char *system;
	int64_t system_tokens;
	struct list conversations; /* that are loaded */
	struct table by_name;      /* the same */
	struct list idle;          /* those nobody uses, least recently used first */
	unsigned n_idle;
	unsigned n_errands;
	size_t bytes;         /* that all of them hold, approximately */
	struct list telling;  /* turns with text that their asker does not have yet */
	struct list over;     /* errands whose askers are to get the result */
	struct timer *teller; /* passes that text on at the end of the loop's pass */
	char numbered[CHAT_ID_MAX + 1];
	int64_t last_number; /* of chat_new_name */
	int64_t started_ms;
	struct census census; /* the last that was taken */
	struct spend spend;   /* what agents used */
	bool noted;           /* the writer's: a conversation was made but not committed yet */
	atomic_uint made;     /* conversations made on the writer's thread */
};

/* Something that continues when its conversation is loaded. */
struct chat_wait {
	struct list link;
	void (*go)(struct chat_wait *w, int result, const struct error *error);
};

struct live_conversation {
	struct list link; /* in chat->conversations */
	struct table_link by_name;
	struct list idle_link; /* in chat->idle */
	struct chat *chat;
	struct text name; /* in id */
	enum { CONVERSATION_NEW, CONVERSATION_LOADING, CONVERSATION_READY } stage;

	/* of the store */
	int64_t seq;          /* 0: there is none yet */
	unsigned made;        /* chat->made when it was looked up */
	char *agent_name;     /* its own, or NULL */
	char *system;         /* its own, or NULL */
	char *cwd;            /* as chat_bounds has them; NULL: none */
	char *write_paths;    /* NULL: anywhere */
	char *disabled_tools; /* NULL: none */
	int64_t own_system_tokens;
	int64_t n_messages;
	int64_t summary_turn; /* 0: none */
	int64_t summary_tokens;

	/* what would be sent: turns, oldest first, starting at `first` */
	struct turn_weight *turns;
	unsigned first;
	unsigned n_turns;
	unsigned cap;
	int64_t turn_tokens;
	int64_t tool_tokens; /* of the last question */

	struct list waiting; /* errands */
	struct list waits;   /* chat_wait */
	unsigned n_waiting;
	struct errand *running;
	struct destroy *destroy; /* under way */
	unsigned held;           /* callbacks are running: it starts nothing and is not freed */
	bool answered;
	bool stale;          /* its state may be wrong: it must be loaded again */
	bool taken;          /* when it was loaded, another host had its turn */
	struct timer *pause; /* until it is looked whether that has ended; NULL: none yet */
	bool paused;
	char id[CHAT_ID_MAX + 1];
};

/*
 * What an agent is asked to do in a conversation: to answer (a turn), or to summarize it (a
 * compaction). An errand waits in the conversation's queue, and has the conversation to itself
 * while it runs.
 */
struct errand {
	const struct errand_ops *ops;
	struct chat *chat;
	struct live_conversation *conversation;
	struct list link; /* in conversation->waiting, or chat->over */
	enum { ERRAND_WAITS, ERRAND_RUNS, ERRAND_OVER } stage;
	int result; /* while it is over */
	struct error error;
	bool cancelled;   /* while it runs */
	unsigned n_again; /* how often it was put back, and its conversation loaded again */
	struct arena arena;
	size_t bytes;     /* its share of chat->bytes */
	struct work work; /* only one piece at a time */
	struct memory_wait wait;

	/* What the agent is sent: the loop fills in what it knows, a reader's thread fills in
	 * the rest. */
	struct {
		struct arena arena;
		int64_t from_turn;
		bool has_summary;
		int64_t excess; /* tokens by which results must be shortened */
		struct agent_ask ask;
	} context;

	/* The agent at work, and its result. */
	struct agent *agent;
	struct agent_turn *under_way;
	struct buf text;
	bool too_long;
	struct tool_call *calls;
	unsigned n_calls;
	struct agent_end end;
	char error_type[40];
	char error_text[400];
};

struct errand_ops {
	/* It is its turn now: it is conversation->running. */
	void (*begin)(struct errand *e);
	/* More text has arrived, starting there. NULL: nobody looks at it before the end. */
	void (*on_text)(struct errand *e, size_t from);
	/* The agent has ended, or did not start. */
	void (*on_end)(struct errand *e);
	/* It was cancelled while it waited. */
	void (*on_cancelled)(struct errand *e);
	/* Tells the asker, and frees it; the conversation may be gone. */
	void (*finish)(struct errand *e, int result, const struct error *error);
	/* Frees it without telling anyone. */
	void (*free)(struct errand *e);
};

/* Tokens of a turn. */
struct turn_tokens {
	int64_t tools;
	int64_t question;   /* of the question and results */
	int64_t last;       /* of the last of these */
	int64_t correction; /* of the question, if the provider has counted */
	int64_t before;     /* of what comes before the question */
};

/* A conversation that is ours alone for a while, of all hosts. */
struct lease {
	int64_t conversation; /* seq; 0: to be found or made */
	int64_t epoch;        /* of the life that has it; 0: there is one host only */
	int64_t n_messages;   /* that it has, as far as we know */
};

/* A turn in the store. It belongs to a thread while that works on it. */
struct turn_record {
	struct error error;
	struct lease lease;
	int64_t known;           /* its conversation, when it began; 0: it is to be found or made */
	struct conversation row; /* of the one found or made, in the errand's arena */
	bool found;
	int64_t started_ms;
	int64_t seq;
	int64_t last_message;  /* of the question */
	int64_t answer;        /* the message with the answer, once some of it is stored */
	int64_t answer_tokens; /* so far */
	struct text piece;     /* of the answer, the next one to store */
};

/* A question, and all that follows from it. */
struct chat_turn {
	struct errand errand;
	struct chat_ask ask; /* a copy in the errand's arena */
	struct chat_sink sink;
	struct list telling; /* in chat->telling */
	size_t told;         /* bytes of text */
	struct turn_tokens tokens;
	struct turn_record record;
	size_t stored;       /* bytes of text */
	struct timer *timer; /* runs until the next piece is stored */
	bool flushing;       /* a piece is being stored */
	bool flush_failed;   /* logged once */
	bool ending;         /* the agent has ended */
	int fault;           /* an error of ours along the way */
};

static inline struct chat_turn *turn_of(struct errand *e)
{
	return list_entry(e, struct chat_turn, errand);
}

static inline struct chat_turn *turn_of_work(struct work *w)
{
	return list_entry(w, struct chat_turn, errand.work);
}

/* ---- agents.c ---- */

struct agent *chat_find_agent(const struct chat *chat, struct text name);

/* Refuses an unknown agent, as a fault of that field. */
int chat_check_agent(const struct chat *chat, struct text name, const char *field,
		     struct error *error);

static inline const struct chat_roster *chat_roster(const struct chat *chat)
{
	return atomic_load_explicit(&chat->roster, memory_order_acquire);
}

void rosters_free(struct chat *chat);

/* ---- bounds.c ---- */

struct agent_bounds bounds_for_agent(struct text cwd, struct text write_paths, struct text tools);

/* Whether the list contains that tool. */
bool bounds_disable(struct text tools, struct text name);

/* ---- event.c ---- */

/* On the writer's thread; type: "chat.created" ... */
int chat_publish(struct chat *chat, const char *type, struct text conversation);

/* Logs that it has started (ended is NULL), or how it ended. */
int chat_publish_turn(const struct chat_turn *t, const char *ended);

/* ---- conversation.c ---- */

/* Loaded or about to be; NULL if memory runs out. */
struct live_conversation *conversation_get(struct chat *chat, struct text id);
struct live_conversation *conversation_find(struct chat *chat, struct text id);

/* 0 if it is loaded; -EAGAIN: w->go is called later. */
int conversation_wait(struct live_conversation *c, struct chat_wait *w);

/* Starts the next errand, if possible; otherwise the conversation becomes idle, which may free
 * it. */
void conversation_start_next(struct live_conversation *c);

/* Hold it while callbacks run; resuming it starts the next errand. */
void conversation_hold(struct live_conversation *c);
void conversation_resume(struct live_conversation *c);

/* Cancels what is running and what is waiting; nothing new may be queued meanwhile. */
void conversation_cancel(struct live_conversation *c);

/* NULL: there is none with that name, or none at all. */
struct agent *conversation_agent(const struct live_conversation *c);

/* Copies what the store has of it. */
int conversation_set_row(struct live_conversation *c, const struct conversation *row);

void conversation_free(struct live_conversation *c);

/* ---- read.c ---- */

/* Refuses a number that no ended conversation has. */
int conversation_find_ended(struct connection *db, struct arena *a, int64_t number,
			    struct conversation *ret_row, struct error *error);

/* ---- destroy.c ---- */

/* Call it when nothing runs in the conversation any more. */
void destroy_begin(struct destroy *d);
bool destroy_under_way(const struct destroy *d);

/* ---- hosts.c: a conversation's turn is one host's at a time ---- */

int chat_join(struct chat *chat);
void chat_leave(struct chat *chat);
/* Nothing starts in it for a moment. */
void conversation_pause(struct live_conversation *c);
/* Its errand could not begin, since another host has its turn, or had: it is the next one again. */
void errand_put_back(struct errand *e);
/* On the loop: what an errand in this conversation would take. */
struct lease lease_of(const struct live_conversation *c);
/* These three are on the writer's thread. -EAGAIN: another host has it, or has added to it since it was
 * loaded. */
int lease_take(const struct errand *e, const struct lease *l, struct connection *db,
	       struct error *error);
/* -ESTALE: this life does not have it any more. */
int lease_check(const struct errand *e, const struct lease *l, struct connection *db);
int lease_release(const struct errand *e, const struct lease *l, struct connection *db);
/* On the loop: it could not be released, and others must not wait for it. */
void lease_give_back(const struct errand *e, const struct lease *l);
/* Whether that is still under way, so that nothing may begin. */
bool conversation_is_owed(const struct live_conversation *c);
/* What is told to whoever asked when this life has lost its conversation. */
int refuse_lost(struct error *error);

/* ---- window.c ---- */

int64_t message_tokens(struct text t);
int64_t tool_tokens(const struct agent_tool *tool);
int64_t system_tokens(const struct live_conversation *c);
int64_t available_tokens(const struct agent *a);

/* Adds a turn, or adds tokens and messages to the newest; drops from the window what no longer
 * fits. */
int window_add(struct live_conversation *c, const struct turn_weight *w);
void window_grow(struct live_conversation *c, int64_t tokens, int64_t n_messages);
void window_set(struct live_conversation *c, const struct turn_weight *weights, unsigned n);
void window_drop_to(struct live_conversation *c, int64_t turn);

/* The oldest turn that this agent is sent; 0: there is none. *ret_tokens: the tokens from there
 * on. They may exceed the room there is, because a question is sent with the results of its
 * calls. */
int64_t window_from(const struct live_conversation *c, const struct agent *a, int64_t tool_tokens,
		    int64_t *ret_tokens);

/* Keeps of a history that came with the question only what fits or must be sent. *ret_tokens:
 * its tokens. */
void window_cut_history(struct chat_ask *ask, int64_t room, int64_t *ret_tokens);

void window_count(const struct live_conversation *c, struct chat_counts *ret);

/* ---- errand.c ---- */

/* Runs on the loop's thread. The errand is not queued yet. */
void errand_init(struct errand *e, struct chat *chat, const struct errand_ops *ops);
void errand_done(struct errand *e);

/* Adds that many bytes to what it holds. */
void errand_weigh(struct errand *e, size_t bytes);

/* Queues it, and starts it if it is next. */
void errand_queue(struct errand *e, struct live_conversation *c);

void errand_cancel(struct errand *e);

/* Starts the conversation's next errand. In the next pass of the loop the asker of this one gets the result, and
 * it is freed. */
void errand_finish(struct errand *e, int result, const struct error *error);

/* The same, now: never inside the call of an asker. */
void errand_report(struct errand *e);

/* Its own agent, or the conversation's; refuses if there is none. */
int errand_choose_agent(struct errand *e, struct error *error);

/* Starts it with context.ask; ops->on_end follows in any case. */
void errand_start_agent(struct errand *e);

/* Records that the agent failed for this reason. */
void errand_fail(struct errand *e, const char *type, const char *text);

int errand_submit(struct errand *e, int (*run)(struct work *w, int lane),
		  void (*finished)(struct work *w, int result), bool writes);

/* ---- ask.c ---- */

/* Whether one more errand may wait there. */
int chat_check_room(struct chat *chat, struct text id, struct error *error);

/* ---- turn.c ---- */

extern const struct errand_ops turn_ops;

void turn_free(struct chat_turn *t);

/* Passes on the text that has arrived to those who wait for it. */
void turn_tell_all(struct chat *chat);

/* ---- end.c ---- */

/* Stores everything that arrived; then tells the asker. */
void turn_end(struct chat_turn *t);
void turn_end_cancelled(struct chat_turn *t);
void turn_end_with_fault(struct chat_turn *t, int r);

/* More text has arrived, starting there: it is stored soon. */
void turn_flush_soon(struct chat_turn *t, size_t from);

/* ---- context.c: on a reader's thread ---- */

/* The messages of the turns context.from_turn to to_turn in the form that the agent wants,
 * preceded by the conversation's summary. */
int context_read(struct errand *e, struct connection *db, int64_t conversation, int64_t to_turn);

/* Everything the agent is sent: messages, what the memory knows if the agent wants it, and what
 * the agent itself prepares. */
int context_prepare(struct chat_turn *t, int lane);
