/*
 * A model that turns texts into vectors, behind any OpenAI-compatible
 * /v1/embeddings.
 *
 * Asking belongs to the loop's thread. Reading an answer costs time that the loop
 * does not have (a batch may be a hundred thousand numbers), so it is apart, and any
 * thread may do it.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/error.h"
#include "io/loop.h"

enum { EMBEDDINGS_BATCH_MAX = 64, EMBEDDINGS_DIM_MAX = 8192 };

struct embeddings;
struct embeddings_ask;

struct embeddings_opts {
	const char *url; /* "http://…", "https://…", or "unix:PATH"; see embeddings_check_url */
	const char *model; /* "" where the server has only one */
	const char *key;   /* sent as bearer token; NULL or "" for none; never logged */
};

/*
 * Refuses a URL that we do not support. Without a path it means /v1/embeddings there; one that
 * ends in /v1 is completed; any other path is used as it is.
 */
int embeddings_check_url(const char *url, struct error *error);

int embeddings_new(struct loop *l, const struct embeddings_opts *opts,
		   struct embeddings **ret_embeddings, struct error *error);

/* Cancels what is open. Accepts NULL. */
void embeddings_free(struct embeddings *e);

enum embeddings_outcome {
	EMBEDDINGS_OK,
	EMBEDDINGS_LATER,   /* unreachable, too slow, overloaded: try again later */
	EMBEDDINGS_REFUSED, /* it does not accept these texts; perhaps others */
	EMBEDDINGS_WRONG,   /* it does not accept us: key, address or model */
};

struct embeddings_answer {
	enum embeddings_outcome outcome;
	const char *text;  /* what went wrong, or "" */
	unsigned retry_ms; /* how long it asked us to wait; 0: it did not say */
	struct text body;  /* of EMBEDDINGS_OK, for embeddings_read; valid in the callback */
};

typedef void (*embeddings_fn)(void *arg, const struct embeddings_answer *answer);

/*
 * Texts are copied. The callback comes once and never before this has returned; the
 * ask is gone afterwards. 1 to EMBEDDINGS_BATCH_MAX texts.
 */
int embeddings_ask(struct embeddings *e, const struct text *texts, unsigned n, unsigned timeout_ms,
		   embeddings_fn fn, void *arg, struct embeddings_ask **ret_ask);

/* No callback comes any more. Accepts NULL. */
void embeddings_cancel(struct embeddings_ask *a);

struct embeddings_vectors {
	unsigned n;
	unsigned dim;
	struct text model; /* as the answer names it, valid as long as arena and body; {NULL, 0} */
	float *numbers;    /* n times dim, in the order of the texts; finite, as they came */
};

/*
 * Reads the answer to n texts. Refuses (REFUSE_PARSE) anything but exactly one vector for
 * each, all of one length.
 */
int embeddings_read(struct arena *a, struct text body, unsigned n,
		    struct embeddings_vectors *ret_vectors, struct error *error);
