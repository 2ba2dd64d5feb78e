/*
 * Vectors of memories in the store: one each at most, of one model. A memory that is
 * deleted takes its vector with it; one whose text changes loses it by
 * store_memory_drop_vector.
 *
 * A model is known by its name and by how many numbers its vectors have: the same name
 * may one day stand for another.
 */
#pragma once

#include "store/memory.h"

struct store_model {
	struct text name;
	unsigned dim; /* 0: whatever it is */
};

/* A memory that has no vector yet. */
struct store_bare_memory {
	int64_t seq;
	int64_t hash; /* of its whole text: tells whether it changed meanwhile */
	struct text owner;
	struct text chat;
	struct text content; /* the beginning of it */
};

struct store_bare_opts {
	struct store_model model;
	int64_t after;      /* the seq to go on from */
	int64_t now_ms;     /* what is expired by then is passed over */
	unsigned limit;     /* memories */
	size_t max_bytes;   /* of all their text together; one is always given */
	unsigned max_chars; /* of one text */
};

/*
 * The next ones without a vector of this model, oldest first. Looks through some thousand
 * memories and no more, so there may be none here and others further on.
 * *ret_after is the seq to go on from, *ret_end whether that was the last.
 */
int store_memory_find_bare(struct connection *c, const struct store_bare_opts *opts,
			   struct arena *arena, struct store_bare_memory **ret_bare,
			   unsigned *ret_n, int64_t *ret_after, bool *ret_end);

struct store_vector {
	int64_t seq;
	int64_t hash; /* as store_memory_find_bare gave it */
	float scale;
	const int8_t *bytes;  /* dim of them */
	const float *numbers; /* dim of them */
};

/* False, and nothing is kept, when the memory is gone or its text is another by now. */
int store_memory_put_vector(struct connection *c, const struct store_model *model,
			    const struct store_vector *v, bool *ret_found);

int store_memory_drop_vector(struct connection *c, int64_t seq);

/* Called per vector; the bytes are valid only meanwhile. Anything but 0 ends the walk. */
typedef int (*store_vector_fn)(void *arg, int64_t seq, const int8_t *bytes, float scale);

/* All of the scope that are of the model, without their floats. */
int store_memory_each_vector(struct connection *c, const struct store_scope *scope,
			     const struct store_model *model, store_vector_fn fn, void *arg);

/* Writes model->dim floats. */
int store_memory_find_vector(struct connection *c, const struct store_model *model, int64_t seq,
			     float *ret_numbers, bool *ret_found);

/* Of the scope: how many have a vector of the model, and how many should and do not. */
int store_memory_count_vectors(struct connection *c, const struct store_scope *scope,
			       const struct store_model *model, int64_t now_ms,
			       int64_t *ret_n_vectors, int64_t *ret_n_bare);
