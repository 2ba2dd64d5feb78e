/*
 * Vectors of memories in the store: at most one each, of one model. Deleting a memory deletes
 * its vector; when its text changes, store_memory_drop_vector removes it.
 *
 * A model is identified by its name and the dimension of its vectors: the same name may one
 * day mean another model.
 */
#pragma once

#include "store/memory.h"

struct store_model {
	struct text name;
	unsigned dim; /* 0: any */
};

/* A memory that has no vector yet. */
struct store_bare_memory {
	int64_t seq;
	int64_t hash; /* of its whole text: shows whether it changed meanwhile */
	struct text owner;
	struct text chat;
	struct text project;
	struct text content; /* its beginning */
};

struct store_bare_opts {
	struct store_model model;
	int64_t after;      /* the seq to continue after */
	int64_t now_ms;     /* memories expired by then are skipped */
	unsigned limit;     /* memories */
	size_t max_bytes;   /* for all their text together; at least one is returned */
	unsigned max_chars; /* for one text */
};

/*
 * The next memories without a vector of this model, oldest first. It examines only some
 * thousand memories, so it may find none here although others follow. *ret_after is the seq to
 * continue after, *ret_end whether that was the last.
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

/* False, and nothing is stored, when the memory is gone or its text has changed. */
int store_memory_put_vector(struct connection *c, const struct store_model *model,
			    const struct store_vector *v, bool *ret_found);

int store_memory_drop_vector(struct connection *c, int64_t seq);

/* The vector of one memory, and whose that is; in the arena. */
struct store_owned_vector {
	struct text owner;
	struct text chat;
	struct text project;
	struct text bytes; /* dim of them */
	double scale;
};

int store_memory_own_vector(struct connection *c, const struct store_model *model, int64_t seq,
			    struct arena *arena, struct store_owned_vector *ret, bool *ret_found);

/* Called per vector; the bytes are valid only during the call. Any result but 0 ends the walk. */
typedef int (*store_vector_fn)(void *arg, int64_t seq, const int8_t *bytes, float scale);

/* The vectors of the model, without their floats, in the next slice of the scope: walk->limit
 * counts memories, with and without a vector, and max_bytes is not looked at. */
int store_memory_each_vector(struct connection *c, const struct store_scope *scope,
			     const struct store_model *model, struct store_walk *walk,
			     store_vector_fn fn, void *arg);

/* Writes model->dim floats. */
int store_memory_find_vector(struct connection *c, const struct store_model *model, int64_t seq,
			     float *ret_numbers, bool *ret_found);

/* Within the scope: how many have a vector of the model, and how many should but do not. */
int store_memory_count_vectors(struct connection *c, const struct store_scope *scope,
			       const struct store_model *model, int64_t now_ms,
			       int64_t *ret_n_vectors, int64_t *ret_n_bare);
