/*
 * An agent answers a conversation: a model elsewhere, a program, or koine's own responder. One
 * vtable for all of them.
 *
 * A turn is started with the conversation so far; its text comes in pieces, then the tool
 * calls it wants made, then its end. Everything belongs to the loop's thread, except
 * `prepare`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/text.h"
#include "base/error.h"
#include "io/loop.h"
#include "model/chat.h"

/* The runner that is a program of the user's and no agent of the settings. Clients and settings
 * know it by this name, and it is the command that is run where no other is set. */
#define CODING_AGENT "claude"

enum { AGENT_NAME_MAX = 64, AGENT_TOOLS_MAX = 128, AGENT_CALLS_MAX = 64 };

struct agent_tool {
	struct text name;
	struct text description; /* {NULL, 0}: none */
	struct text schema;      /* of its arguments: JSON; {NULL, 0}: any object */
};

/* What the answer should look like, in OpenAI's JSON, for those who speak it; {NULL, 0}:
 * anything. */
struct agent_shape {
	struct text tool_choice; /* only with tools */
	struct text response_format;
};

/* Something from memory that may help with the question. */
struct agent_note {
	struct text text;
	struct text source; /* where it was learnt */
	int64_t created_ms;
};

/* What a conversation's programs may do: where they run, and what they must not touch. */
struct agent_bounds {
	struct text cwd;            /* {NULL, 0}: the agent's own */
	bool confined;              /* they may write only below write_paths */
	struct text write_paths;    /* absolute, without links, one a line; "": none */
	struct text disabled_tools; /* names, separated by commas; {NULL, 0}: none */
};

/* What a turn is started with. All of it is valid only until start has returned. */
struct agent_ask {
	struct text conversation;
	struct agent_bounds bounds;
	struct text system;             /* {NULL, 0}: none */
	const struct message *messages; /* oldest first; at least one */
	unsigned n_messages;
	const struct agent_tool *tools;
	unsigned n_tools;
	struct agent_shape shape;
	const struct agent_note *notes; /* best first; only for ops->wants_notes */
	unsigned n_notes;
	bool first;           /* this conversation was never answered before */
	struct text prepared; /* what ops->prepare made */
};

/* -1: not known. */
struct agent_usage {
	int64_t input; /* everything the model read, cached or not */
	int64_t output;
	int64_t cache_read;
	int64_t cache_written;
};

#define AGENT_NO_USAGE                                                                             \
	((struct agent_usage) {.input = -1, .output = -1, .cache_read = -1, .cache_written = -1})

enum agent_outcome {
	AGENT_DONE,
	AGENT_CALLS,     /* it waits for the results of its tool calls */
	AGENT_LENGTH,    /* it reached its own limit of length */
	AGENT_CANCELLED, /* agent_cancel did it */
	AGENT_FAILED,    /* type and text say how; what came before still counts */
};

/* Whether another try may help. */
enum agent_cause {
	AGENT_CAUSE_OTHER,
	AGENT_CAUSE_ASKED,  /* the provider does not accept what it was sent */
	AGENT_CAUSE_LIMIT,  /* it was asked too often or too much */
	AGENT_CAUSE_FILTER, /* its filter stopped the answer */
};

struct agent_end {
	enum agent_outcome outcome;
	enum agent_cause cause; /* of AGENT_FAILED */
	struct agent_usage usage;
	/* For AGENT_FAILED: one word for programs ("ProviderError", "CommandError" …) and a
	 * sentence for people, without any secret. Valid during on_end. */
	const char *type;
	const char *text;
};

/* None of these comes before start has returned. They may cancel the turn. */
struct agent_sink {
	void (*on_text)(void *arg, struct text piece);
	void (*on_call)(void *arg, const struct tool_call *call); /* whole, never in fragments */
	void (*on_end)(void *arg,
		       const struct agent_end *end); /* once, as the last; the turn is gone */
	void *arg;
};

/* Whether an agent would answer. */
struct agent_health {
	bool ok;
	const char *text; /* what is wrong, or what answered; valid in the callback */
};

typedef void (*agent_health_fn)(void *arg, const struct agent_health *health);

struct agent;
struct agent_turn;

struct agent_ops {
	const char *kind; /* "recall", "openai" … */
	bool wants_notes;
	bool quotes_only; /* it writes nothing of its own, such as a summary */

	/*
 * NULL, or what takes too long for the loop: runs on a reader's thread, before start, with the
 * same ask. What it makes for start goes into the arena. It must not touch what start and
 * cancel change.
 */
	int (*prepare)(const struct agent *a, struct arena *arena, const struct agent_ask *ask,
		       struct text *ret_prepared);

	/*
 * NULL for agents without programs, which no bounds concern. Refuses bounds that this agent
 * cannot keep, naming a field of "create_agent" (REFUSE_PARAMS).
 */
	int (*check_bounds)(const struct agent *a, const struct agent_bounds *b,
			    struct error *error);

	/* Refuses what is wrong with the agent (no such program, no key) as far as it is known
	 * at once; the rest comes by on_end. The sink is copied. */
	int (*start)(struct agent *a, const struct agent_ask *ask, const struct agent_sink *sink,
		     struct agent_turn **ret_turn, struct error *error);

	/* on_end comes soon, not from within, with AGENT_CANCELLED; no more text comes. A second
	 * call does nothing. */
	void (*cancel)(struct agent_turn *t);

	/* fn comes once and never before this has returned. If the agent is freed first, fn is
	 * told so. */
	int (*probe)(struct agent *a, agent_health_fn fn, void *arg);

	/* Open turns end silently. The loop may have to turn afterwards until children are
	 * reaped. */
	void (*free)(struct agent *a);
};

/* The head of every agent's own struct. */
struct agent {
	const struct agent_ops *ops;
	char name[AGENT_NAME_MAX];
	char model[128]; /* or program; "" */
	int64_t budget;  /* tokens that a conversation with it may have */
	int64_t reserve; /* of those, kept free for the answer */
};

static inline void agent_free(struct agent *a)
{
	if (a)
		a->ops->free(a);
}

/*
 * Stands for an agent that the settings name but that cannot work: its key cannot be read, or
 * its command is not one. It has its name and tells whoever asks what is wrong.
 */

enum { ABSENT_REASON_MAX = 200 };

/* `kind` is a word that lives as long as the program; the other texts are copied. */
int absent_new(struct loop *l, const char *name, const char *kind, const char *reason,
	       struct agent **ret_agent);

/* ---- a health that is known at once but reported when the loop turns again ---- */

/* `open` is the agent's list of those not reported yet. The text is copied. */
int health_later(struct loop *l, struct list *open, bool ok, const char *text, agent_health_fn fn,
		 void *arg);

/* The agent is freed: everyone who still waits is told so. */
void health_drop(struct list *open);
