/*
 * A completion: an agent's answer to messages that the client keeps itself. Where the client has no
 * tools of its own, the agent is offered ours, and as many turns as it takes are made of it.
 *
 * What is asked and answered is recorded as a conversation "gateway-N". A client sends all of its
 * messages each time: one that goes on where an answer ended goes on in that conversation.
 *
 * All on the loop's thread.
 */
#pragma once

#include "base/value.h"
#include "dialect/gateway/gateway.h"
#include "engine/chat/chat.h"

struct completion;

enum {
	COMPLETION_ROUNDS = 8, /* of tools */
	COMPLETION_MESSAGES_MAX = 10000,
	COMPLETION_SHAPE_MAX = 64 << 10,  /* bytes of a choice, and of a format */
	COMPLETION_BYTES_MAX = 256 << 20, /* that those under way may hold, about */
	COMPLETION_KEPT = 1000,           /* conversations; older ones are ended */
};

struct completion_ask {
	struct text model;            /* an agent's name; anything else is the default agent's */
	const struct value *messages; /* OpenAI's */
	const struct value *tools;    /* the same; NULL or empty: ours */
	const struct value *choice;   /* "none": no tools at all; else for its own; NULL */
	const struct value *format;   /* of the answer; NULL */
	struct peer peer;             /* who asks */
};

struct completion_answer {
	int result; /* 0; else a refusal in why, or a fault */
	const struct why *why;
	struct text error;             /* of an agent that failed: its words, whole; {NULL, 0} */
	enum agent_cause cause;        /* the same */
	struct text content;           /* all of it, whatever the result */
	const char *finish;            /* "stop", "length", "tool_calls" or "content_filter" */
	const struct tool_call *calls; /* that the client is to make */
	unsigned n_calls;
	int64_t prompt_tokens;
	int64_t completion_tokens;
};

struct completion_sink {
	/* More text: all of it so far. May be NULL. */
	void (*on_text)(void *arg, struct text whole);
	/* Once, the last. */
	void (*on_done)(void *arg, const struct completion_answer *answer);
	void *arg;
};

/* Nothing comes before this has returned. */
int completion_start(struct engine *s, struct loop *loop, const struct gateway_settings *settings,
		     const struct completion_ask *ask, const struct completion_sink *sink,
		     struct completion **ret_completion, struct why *why);

/* on_done comes soon, maybe from within, with what came so far and REFUSE_CANCELLED. */
void completion_cancel(struct completion *c);

/* The agent that answers, by name. Valid as long as the completion. */
const char *completion_agent(const struct completion *c);
