/*
 * A completion: an agent's answer to messages that the client keeps itself. Where the client
 * has no tools of its own, the agent is offered ours, and gets as many turns as it needs.
 *
 * Questions and answers are recorded as a conversation "gateway-N". A client sends all of its
 * messages each time: if they go on where an answer ended, so does that conversation.
 *
 * All on the loop's thread.
 */
#pragma once

#include "base/value.h"
#include "dialect/gateway/gateway.h"
#include "engine/chat/chat.h"

struct completion;

enum {
	COMPLETION_ROUNDS = 8, /* of tools, in one completion */
	COMPLETION_MESSAGES_MAX = 10000,
	COMPLETION_SHAPE_MAX = 64 << 10,  /* bytes of a tool choice or a format */
	COMPLETION_BYTES_MAX = 256 << 20, /* that completions which run or wait may hold, roughly */
	COMPLETION_KEPT = 1000,           /* conversations; older ones are ended */
};

struct completion_ask {
	struct text model;            /* an agent's name; anything else means the default agent */
	const struct value *messages; /* in OpenAI's shape */
	const struct value *tools;    /* the same; NULL or empty: offer ours */
	const struct value *choice; /* "none": no tools at all; else only for its own tools; NULL */
	const struct value *format; /* of the answer, or NULL */
	struct peer peer;           /* who asks */
};

struct completion_answer {
	int result; /* 0, a refusal (see refused), or a fault */
	const struct error *refused;
	struct text error;             /* the whole message of an agent that failed, or {NULL, 0} */
	enum agent_cause cause;        /* the agent's, if it failed */
	struct text content;           /* all that came, whatever the result */
	const char *finish;            /* "stop", "length", "tool_calls" or "content_filter" */
	const struct tool_call *calls; /* calls that the client is to make */
	unsigned n_calls;
	int64_t prompt_tokens;
	int64_t completion_tokens;
};

struct completion_sink {
	/* More text has come; `whole` is all of it so far. May be NULL. */
	void (*on_text)(void *arg, struct text whole);
	/* Called once, as the last. */
	void (*on_done)(void *arg, const struct completion_answer *answer);
	void *arg;
};

/* Nothing is called back before this has returned. */
int completion_start(struct engine *s, struct loop *loop, const struct gateway_settings *settings,
		     const struct completion_ask *ask, const struct completion_sink *sink,
		     struct completion **ret_completion, struct error *error);

/* on_done is called soon, perhaps from within, with what came so far and REFUSE_CANCELLED. */
void completion_cancel(struct completion *c);

/* The name of the agent that answers. Valid as long as the completion. */
const char *completion_agent(const struct completion *c);
