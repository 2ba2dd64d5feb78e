/*
 * Inside service/chat*: conversations that are at hand, and turns on their way.
 * All of it is the loop's, except what a job works on: a turn has at most one under way,
 * and meanwhile the loop leaves alone what stands under `job`.
 */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "base/list.h"
#include "engine/chat/census.h"
#include "engine/chat/chat.h"
#include "store/chat.h"

enum {
	CHAT_BUCKETS = 256,
	CHAT_IDLE_MAX = 256,       /* conversations kept at hand that nobody uses now */
	CHAT_ARENA_MAX = 64 << 20, /* of one turn's question, and of its context */
	CHAT_MESSAGE_TOKENS = 4,   /* that a message costs beside its text */
	CHAT_KEEP_TURNS = 2,       /* that a summary leaves as they are */
	CHAT_PROBE_MS = 10000,
	CHAT_BYTES_MAX = 256 << 20, /* that all turns may hold */
	CHAT_AGENTS_MAX = 1024,     /* that all rosters have had */
};

/*
 * The agents that there are at one time. One that was replaced lives on with the chat: turns and
 * threads may still be with its agents, and settings are seldom read anew.
 */
struct chat_roster {
	struct chat_roster *before;
	struct agent *agent; /* the default; NULL: none */
	unsigned n;
	struct chat_member {
		struct agent *agent;
		bool own; /* it came with this roster; others were in one before */
	} members[];
};

struct chat {
	struct store *store;
	struct events *events;
	struct services *services;
	struct loop *loop;
	struct background background;
	/* Who answers now. Changed on the loop, read on every thread. */
	_Atomic(struct chat_roster *) roster;
	struct chat_roster *rosters; /* that one and all before it */
	unsigned n_agents;           /* in all of them */
	char *system;
	int64_t system_tokens;
	struct list buckets[CHAT_BUCKETS]; /* conversations at hand, by id */
	struct list idle;                  /* those nobody uses, the longest first */
	unsigned n_idle;
	unsigned n_turns;
	size_t bytes;         /* that all turns hold, about */
	struct list telling;  /* turns with text that their asker has not been told */
	struct timer *teller; /* they are told it when the loop's turn is over */
	const char *numbered;
	int64_t last_number; /* of chat_new_name */
	int64_t started_ms;
	struct census census; /* the last that was taken */
	bool stopping;
	bool noted;       /* the writer's: a conversation was made, not yet committed */
	atomic_uint made; /* conversations made on the writer's thread */
};

/* Something that goes on when its conversation is loaded. */
struct chat_wait {
	struct list link;
	void (*go)(struct chat_wait *w, int result, const struct why *why);
};

struct conversation {
	struct list link;      /* in its bucket */
	struct list idle_link; /* in chat->idle */
	struct chat *chat;
	struct text name; /* in id */
	enum { CONVERSATION_NEW, CONVERSATION_LOADING, CONVERSATION_READY } stage;

	/* of the store */
	int64_t seq;          /* 0: there is none yet */
	unsigned made;        /* chat->made when it was looked for */
	char *agent_name;     /* its own, or NULL */
	char *system;         /* its own, or NULL */
	char *cwd;            /* as chat_bounds has them; NULL: none */
	char *write_paths;    /* NULL: anywhere */
	char *disabled_tools; /* NULL: none */
	int64_t own_system_tokens;
	int64_t n_messages;
	int64_t summary_turn; /* 0: none */
	int64_t summary_tokens;

	/* what would be sent: turns, oldest first, from `first` on */
	struct turn_weight *turns;
	unsigned first;
	unsigned n_turns;
	unsigned cap;
	int64_t turn_tokens;
	int64_t tool_tokens; /* of the last question */

	struct list waiting; /* turns */
	struct list waits;   /* chat_wait */
	unsigned n_waiting;
	struct chat_turn *running;
	struct destroy *destroy; /* under way */
	unsigned held;           /* somebody is at work on it, and it is not freed meanwhile */
	bool answered;
	bool stale; /* what is here may not be so: to be loaded again */
	char id[CHAT_ID_MAX + 1];
};

enum turn_stage { STAGE_WAITS, STAGE_BEGINS, STAGE_PREPARES, STAGE_RUNS, STAGE_ENDS };

struct chat_turn {
	struct list link; /* in conversation->waiting */
	struct chat *chat;
	struct conversation *conversation;
	struct text name; /* the conversation's, for the answer */
	enum turn_stage stage;
	struct arena arena; /* of the question, and the calls */
	struct text request_id;
	struct text request_name;
	struct text content; /* {NULL, 0}: there are only results */
	const struct chat_result *results;
	unsigned n_results;
	struct agent_tool *tools;
	unsigned n_tools;
	struct agent_shape shape;
	int64_t tool_tokens;
	bool own_history;
	const struct agent_message *history;
	unsigned n_history;
	unsigned history_from; /* the ones before it do not fit */
	struct text system;    /* {NULL, 0}: the conversation's */
	struct memory_asker by;
	struct agent *agent; /* NULL: the conversation's */
	bool must_exist;
	bool cancelled;
	bool in_send; /* chat_send has not returned ... */
	bool ended;   /* ... and will free it */
	struct chat_sink sink;

	/* instead of a question: */
	bool compacts;
	chat_compacted_fn compacted;
	struct chat_compacted counts;

	/* the agent at work */
	struct agent_turn *under_way;
	struct buf text;
	bool too_long;
	bool flush_failed; /* told once */
	int fault;         /* of ours, on the way */
	struct agent_call *calls;
	unsigned n_calls;
	enum agent_outcome outcome;
	enum agent_cause cause;
	struct agent_usage usage;
	char error_type[40];
	char error_text[400];
	struct timer *timer; /* until the next piece goes to the store */
	struct list telling; /* in chat->telling */
	size_t told;         /* bytes of text */

	/* what goes to the store */
	size_t bytes; /* of chat->bytes, its part */
	int64_t started_ms;
	int64_t question_tokens;     /* of the question and results */
	int64_t last_tokens;         /* of the last of these */
	int64_t question_correction; /* when the provider has counted */
	int64_t sent_before;         /* tokens that stand before the question */
	size_t stored;               /* bytes of text */

	struct {
		struct work work;
		bool under_way;
		struct why why;
		int64_t conversation; /* seq; 0: to be found or made */
		struct conversation_row
			row; /* of one that was found or made, in the turn's arena */
		bool found;
		int64_t turn;
		int64_t last_message; /* of the question */
		int64_t answer;       /* the message with the answer; 0: not yet */
		int64_t from_turn;
		bool first;
		bool has_summary;
		int64_t excess; /* tokens that results have to give up */
		struct text system;
		struct arena context;
		struct agent_ask ask;
		char *piece; /* of the text */
		size_t piece_len;
		int64_t tokens; /* of the answer so far */
		struct text agent_name;
		struct text summary;
		int64_t summary_turn;
	} job;
};

/* ---- chat.c ---- */

struct agent *chat_find_agent(const struct chat *chat, struct text name);

static inline const struct chat_roster *chat_roster(const struct chat *chat)
{
	return atomic_load_explicit(&chat->roster, memory_order_acquire);
}

/* Whether one more turn may wait there. */
int chat_check_room(struct chat *chat, struct text id, struct why *why);

/* ---- chat_bounds.c ---- */

struct agent_bounds bounds_for_agent(struct text cwd, struct text write_paths, struct text tools);

/* Whether that tool is among them. */
bool bounds_disable(struct text tools, struct text name);

/* ---- chat_event.c ---- */

/* On the writer's thread; type: "chat.created", "chat.ended". */
int chat_publish(struct chat *chat, const char *type, struct text conversation);

/* That it has started (ended is NULL), or how it ended. */
int chat_publish_turn(const struct chat_turn *t, const char *ended);

/* ---- chat_read.c ---- */

const char *turn_state_name(enum turn_state state);

/* With room for one more. */
int chat_copy_infos(const struct chat *chat, struct arena *a, const struct conversation_row *rows,
		    unsigned n, struct chat_info **ret_infos);

/* The messages of a conversation that was found, and how many there are. */
int chat_page(struct connection *db, struct arena *a, int64_t seq, int64_t offset, int64_t limit,
	      struct chat_message **ret_rows, unsigned *ret_n, int64_t *ret_total);

/* What a page begins with, and how many it has, as somebody asks for it. */
unsigned chat_page_start(int64_t offset);
unsigned chat_page_limit(int64_t limit);

/* ---- chat_conversation.c ---- */

/* At hand or about to be; NULL without memory. */
struct conversation *conversation_get(struct chat *chat, struct text id);
struct conversation *conversation_find(struct chat *chat, struct text id);

/* Goes on when it is loaded: at once if it is. */
void conversation_wait(struct conversation *c, struct chat_wait *w);

/* The next turn, if it can; or rest. May free the conversation, unless somebody holds it. */
void conversation_go_on(struct conversation *c);

/* Whoever tells others, who may do anything, holds it until it is done with it; letting go goes on. */
void conversation_hold(struct conversation *c);
void conversation_let_go(struct conversation *c);

/* Reads it from the store. */
void conversation_load(struct conversation *c);

/* NULL: there is none by that name, or none at all. */
struct agent *conversation_agent(const struct conversation *c);

/* Copies what the store has of it. */
int conversation_set_row(struct conversation *c, const struct conversation_row *row);

void conversation_free(struct conversation *c);

/* ---- chat_destroy.c ---- */

/* Nothing runs in the conversation any more. */
void destroy_begin(struct destroy *d);
bool destroy_under_way(const struct destroy *d);

/* Cancels what runs, and what waits. */
void conversation_cancel(struct conversation *c);

/* ---- chat_window.c ---- */

int64_t message_tokens(struct text t);
int64_t system_tokens(const struct conversation *c);
int64_t available_tokens(const struct agent *a);

/* Adds a turn, or tokens and messages to the newest; drops from the window what does not fit. */
int window_add(struct conversation *c, const struct turn_weight *w);
void window_grow(struct conversation *c, int64_t tokens, int64_t n_messages);
void window_set(struct conversation *c, const struct turn_weight *weights, unsigned n);
void window_drop_to(struct conversation *c, int64_t turn);

/* The oldest turn that this agent is sent; 0: there is none. *ret_tokens: of those from there on,
 * which may be more than there is room for: a question goes with the results of its calls. */
int64_t window_from(const struct conversation *c, const struct agent *a, int64_t tool_tokens,
		    int64_t *ret_tokens);

/* Of a history that came with the question: from which message on there is room for it, or it has
 * to be sent. *ret_tokens: of those. */
unsigned window_of_history(const struct chat_turn *t, int64_t *ret_tokens);

void window_count(const struct conversation *c, struct chat_counts *ret);

/* ---- chat_ask.c ---- */

struct chat_turn *turn_new(struct chat *chat, struct text conversation);

/* With a copy of what is asked. */
int turn_new_ask(struct chat *chat, struct text conversation, const struct chat_ask *ask,
		 const struct chat_sink *sink, struct chat_turn **ret_turn);
void turn_free(struct chat *chat, struct chat_turn *t);

/* What a tool counts that the agent is told of. */
int64_t tool_tokens(const struct agent_tool *tool);

/* Puts the turn into its conversation's line. */
void turn_queue(struct chat_turn *t, struct conversation *c);

/* It holds so many bytes more. */
void turn_weigh(struct chat_turn *t, size_t bytes);

/* ---- chat_end.c ---- */

/* Whatever came goes to the store; then it is told. */
void turn_end(struct chat_turn *t);
void turn_end_with_fault(struct chat_turn *t, int r);

/* Of the chat's timer: whoever waits for text is told what came. */
void turn_tell_all(void *chat);

/* What came so far goes to the store, soon or now. */
void turn_flush_soon(struct chat_turn *t);
void turn_flush(void *turn);

/* ---- chat_turn.c ---- */

/* Its time has come: it is conversation->running. */
void turn_begin(struct chat_turn *t);

/* One that is in no line any more: it is told. */
void turn_cancel_waiting(struct chat_turn *t);

/* The next step of its life is work for a thread. */
int turn_submit(struct chat_turn *t, int (*run)(struct work *w, int lane),
		void (*finished)(struct work *w, int result), bool writes);

struct connection *turn_store(struct chat_turn *t, int lane);

/* Tells, frees, and lets the next one come. */
void turn_done(struct chat_turn *t, int result, const struct why *why);

/* Starts the agent over job.ask. */
void turn_start_agent(struct chat_turn *t);

static inline struct chat_turn *turn_of_work(struct work *w)
{
	return list_entry(w, struct chat_turn, job.work);
}

/* ---- chat_context.c ---- */

/* On a reader's thread: the messages of the turns from_turn to `to_turn` as the agent wants them, and
 * the conversation's summary before them. */
int context_read(struct chat_turn *t, int lane, int64_t to_turn);

/* Beside them what memory knows, if the agent wants to know; then the agent's own preparation. */
int context_prepare(struct chat_turn *t, int lane);

/* In the arena; NULL for none. */
int chat_copy_calls(struct arena *a, const struct message_row *row,
		    const struct agent_call **ret_calls);

/* ---- chat_compact.c ---- */

void compact_begin(struct chat_turn *t);
void compact_agent_ended(struct chat_turn *t);
