/*
 * What the files of a model behind HTTP share: the agent, a turn of it, and what tells
 * one provider's spelling from another's.
 *
 *	openai.c, anthropic.c   the request's text, and what an event means
 *	model.c                 the agent: made, freed, who may have a connection
 *	turn.c                  a turn: key, request, retries, cancel, end
 *	answer.c                an answer's bytes: events, a whole answer, or an error
 *	reply.c                 what an answer has brought so far
 *	phrase.c                what went wrong, as a sentence without secrets
 *	probe.c                 whether it would answer
 */
#pragma once

#include <stdbool.h>

#include "agent/endpoint.h"
#include "agent/model/model.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/value.h"
#include "base/error.h"
#include "io/http_client.h"
#include "io/loop.h"
#include "wire/http/sse.h"
#include "wire/json.h"

/*
 * A provider's key: from the environment, from a private file, or from a command that prints
 * it. The first two are read whenever the key is asked for; the command is run when needed,
 * for everyone who waits, and its output is kept for an hour.
 *
 * On the loop's thread. Keys are wiped when they are freed, and appear in no text.
 */

enum { MODEL_KEY_MAX = 4096 };

struct model_keys;

/* Someone who waits for the command. */
struct model_key_wait {
	struct list link;
	/* Once, unless it was cancelled; key NULL: `error` says what was wrong. */
	void (*fn)(void *arg, const char *key, const struct error *error);
	void *arg;
};

/* `agent` names the agent in refusals. Refuses more than one source. */
int model_keys_new(struct loop *l, const char *agent, const struct model_key *from,
		   struct model_keys **ret_keys, struct error *error);

/* Nobody may be waiting any more. Accepts NULL. */
void model_keys_free(struct model_keys *k);

/*
 * *ret_key is valid until the next call; "" where no key is wanted, and NULL where the command
 * has to be asked: then w->fn comes, not from within. `w` must stay in place until then.
 * Refuses with REFUSE_UNAVAILABLE.
 */
int model_keys_get(struct model_keys *k, struct model_key_wait *w, const char **ret_key,
		   struct error *error);

/* Safe on a waiter that was never used, if its link is initialised. */
void model_key_wait_cancel(struct model_key_wait *w);

/* The provider refused this key. True: the command may know a newer one. */
bool model_keys_forget(struct model_keys *k, const char *key);

enum {
	MODEL_REQUEST_MAX = 32 << 20,
	MODEL_ANSWER_MAX = 64 << 20,   /* bytes of a whole stream */
	MODEL_WHOLE_MAX = 8 << 20,     /* of an answer that is no stream */
	MODEL_ERROR_MAX = 16 << 10,    /* of an error's body; the rest is ignored */
	MODEL_ARGUMENTS_MAX = 4 << 20, /* of all calls of one answer */
	MODEL_ID_MAX = 256,            /* of a call's id, and of its name */
	MODEL_TEXT_MAX = 400,          /* of an error's sentence */
};

struct model;

/* One provider's spelling. */
struct provider {
	struct agent_ops ops;       /* they differ only in `kind` */
	const char *usual;          /* its path behind /v1 */
	const char *key_header;     /* up to the key */
	const char *version_header; /* or NULL */
	/* The body; failures stick to the buffer. */
	void (*write)(struct buf *out, const struct model *m, const struct agent_ask *ask);
	/* An event's data, or a whole answer: an object without an error in it. 0, or what
	 * turn_fail returned. */
	int (*on_event)(struct agent_turn *t, const struct value *event);
	int (*on_whole)(struct agent_turn *t, const struct value *answer);
};

struct model {
	struct agent agent;
	const struct provider *provider;
	struct loop *loop;
	struct http_client *http;
	struct model_keys *keys;
	struct endpoint at;
	struct arena arena;     /* for the current event */
	struct model_opts opts; /* without its texts, the defaults filled in */
	unsigned n_open;        /* requests under way */
	struct list turns;      /* all of them, */
	struct list waiting;    /* and those that wait for a connection */
	struct list probes;
};

/* A tool call that is incomplete so far. */
struct draft {
	int64_t index;
	char *id; /* NULL: it has none yet */
	char *name;
	struct buf arguments;
};

/* What an answer has brought so far. */
struct reply {
	struct draft *drafts;
	unsigned n_drafts;
	size_t n_arguments; /* bytes */
	struct agent_usage usage;
	enum agent_outcome outcome; /* the provider's reason for stopping */
	bool stopped;               /* it has given one */
	bool filtered;              /* and it was not allowed to go on */
};

enum body {
	BODY_UNKNOWN, /* only white space so far */
	BODY_EVENTS,
	BODY_WHOLE,
};

struct agent_turn {
	struct list link;    /* model->turns */
	struct list waiting; /* model->waiting */
	struct model *model;
	struct agent_sink sink;
	struct timer *timer;
	void (*next)(struct agent_turn *t); /* what the timer does */
	struct model_key_wait key_wait;
	char *key;
	bool key_is_fresh; /* the command printed the key for us */

	struct buf request; /* until the answer has begun */
	struct http_fetch *fetch;
	unsigned n_tries;

	enum body body;
	struct sse sse;
	struct buf held; /* a whole answer, or an error's body */
	unsigned n_events;
	struct reply reply;

	bool began;     /* a byte of an answer has come: no retry any more */
	bool over;      /* the end below is decided */
	bool cancelled; /* and takes precedence over it */
	enum agent_outcome outcome;
	enum agent_cause cause;
	const char *type;
	char text[MODEL_TEXT_MAX];
};

/* ---- model.c ---- */

int model_new(struct loop *l, const struct provider *provider, const struct model_opts *opts,
	      struct agent **ret_agent, struct error *error);

void model_free(struct agent *a);

/* For any request to it. */
struct model_headers {
	const char *lines[6]; /* ended by NULL */
	char *key_line;
};

int model_headers_make(const struct model *m, const char *key, struct model_headers *ret_headers);
void model_headers_done(struct model_headers *h);

/* turn_send, now or when a connection is free; then the next turn's. */
void model_queue(struct agent_turn *t);
void model_release(struct model *m);

/* ---- turn.c ---- */

int turn_start(struct agent *a, const struct agent_ask *ask, const struct agent_sink *sink,
	       struct agent_turn **ret_turn, struct error *error);
void turn_cancel(struct agent_turn *t);

/* Silently. */
void turn_drop(struct agent_turn *t);

/* A connection is free for it. */
void turn_send(struct agent_turn *t);

/* Decides the end, unless it was decided already. */
void turn_conclude(struct agent_turn *t);

/* ---- answer.c ---- */

/* Bytes of a 2xx answer. If they are wrong the turn ends. */
void answer_push(struct agent_turn *t, const char *data, size_t n);

/* The answer has ended as far as HTTP knows; it may be incomplete. */
void answer_end(struct agent_turn *t, const struct http_answer *a);

/* ---- reply.c ---- */

void reply_init(struct reply *r);
void reply_done(struct reply *r);

/* Each returns 0, or anything else when the turn is over. Ids and names that are already known
 * stay. */
int reply_text(struct agent_turn *t, struct text piece);
int reply_draft(struct agent_turn *t, int64_t index, struct text id, struct text name,
		struct draft **ret_draft);
int reply_name(struct agent_turn *t, struct draft *d, struct text id, struct text name);
int reply_arguments(struct agent_turn *t, struct draft *d, struct text piece);

struct draft *reply_find_draft(const struct reply *r, int64_t index);

/* A number of tokens, if it is a plausible one. */
bool reply_count(const struct value *v, int64_t *ret_count);

/* Completes the calls: missing ids, empty arguments. */
int reply_finish_drafts(struct agent_turn *t);

/* ---- phrase.c ---- */

/* The turn failed: the agent's name, then the words. Returns -ECANCELED, for a caller in the
 * middle of the answer. */
int turn_fail(struct agent_turn *t, const char *type, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The server sent something that makes no sense. */
int turn_fail_garbage(struct agent_turn *t, const char *what);

/* What the provider says is wrong; {NULL, 0} where it does not. May point into the body. */
struct text phrase_of_error(const struct value *answer);
struct text phrase_of_body(struct arena *arena, struct text body);

/* A copy on one line, cut to size, without the key. */
void phrase_clean(char *out, size_t size, struct text in, const char *key);

/* ": " and the cleaned words, or nothing. */
struct phrase {
	char text[260];
};

struct phrase phrase_after_colon(struct text said, const char *key);

/* "120 s", or "1500 ms". */
struct phrase phrase_of_ms(unsigned ms);

/* ---- probe.c ---- */

int probe_start(struct agent *a, agent_health_fn fn, void *arg);
void probe_drop_all(struct model *m);
