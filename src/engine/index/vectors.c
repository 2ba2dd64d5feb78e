#include "engine/index/vectors.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "search/hash_embed.h"
#include "engine/index/embedding_inner.h"

enum {
	BATCH_BYTES = 256 << 10, /* of text */
	BATCH_MS = 60000,        /* for the model */
	READ_ARENA = 128 << 20,  /* one answer as a tree */
	ANSWERS_MAX = 64 << 20,  /* bytes of all answers to one request */
	NAME_MAX_BYTES = 200,    /* of a model's name in them */
};

/* One request to the model, and its answer. */
struct index_vectors_batch {
	unsigned n;
	struct text answer;
};

struct vectors_ask {
	struct embedding *embedding;
	struct embeddings_ask *open;
	struct arena *arena;
	const struct text *texts;
	unsigned n;
	unsigned n_asked; /* texts */
	unsigned n_batches;
	struct index_vectors_batch *batches; /* in the arena */
	size_t n_bytes;                      /* of their answers */
	void (*done)(void *arg, int r, const struct error *error);
	void *arg;
};

int vectors_check(const char *name, struct text text, struct error *error)
{
	if (text.len == 0)
		return refuse_field(error, name, "%s is required", name);
	if (text.len > VECTORS_TEXT_MAX)
		return refuse_field(error, name, "%s is longer than %d bytes", name,
				    VECTORS_TEXT_MAX);
	return 0;
}

int vectors_check_list(const char *name, const struct text *texts, unsigned n, struct error *error)
{
	if (n == 0)
		return refuse_field(error, name, "%s is required", name);
	if (n > VECTORS_TEXTS_MAX)
		return refuse_field(error, name, "%s has more than %d strings", name,
				    VECTORS_TEXTS_MAX);
	for (unsigned i = 0; i < n; i++) {
		if (texts[i].len == 0)
			return refuse_field(error, name, "%s has an empty string", name);
		if (texts[i].len > VECTORS_TEXT_MAX)
			return refuse_field(error, name, "%s has a string of more than %d bytes",
					    name, VECTORS_TEXT_MAX);
	}
	return 0;
}

struct text vectors_model(const struct embedding *e)
{
	return e ? embedding_model(e) : TEXT(HASH_EMBED_NAME);
}

unsigned vectors_dim(const struct embedding *e)
{
	return e ? embedding_dim(e) : HASH_EMBED_DIM;
}

/* ---- asking ---- */

static int ask_next(struct vectors_ask *q);

static int judge(const struct embeddings_answer *a, struct error *error)
{
	switch (a->outcome) {
	case EMBEDDINGS_OK:
		break;
	case EMBEDDINGS_REFUSED:
		return refuse(error, REFUSE_PARAMS, "the model rejected the input: %s", a->text);
	case EMBEDDINGS_LATER:
	case EMBEDDINGS_WRONG:
		return refuse(error, REFUSE_UNAVAILABLE, "the embedding model is not available: %s",
			      a->text);
	}
	return 0;
}

static int keep_answer(struct vectors_ask *q, struct text body, struct error *error)
{
	struct index_vectors_batch *b = &q->batches[q->n_batches - 1];

	q->n_bytes += body.len;
	if (q->n_bytes > ANSWERS_MAX)
		return refuse(error, REFUSE_TOO_LARGE,
			      "the vectors would exceed %d bytes; send fewer strings", ANSWERS_MAX);
	b->answer.data = arena_copy(q->arena, body.data, body.len);
	b->answer.len = body.len;
	return b->answer.data ? 0 : -ENOMEM;
}

static void index_vectors_on_answer(void *arg, const struct embeddings_answer *a)
{
	struct vectors_ask *q = arg;
	struct error error = {.text = ""};
	int r = judge(a, &error);

	q->open = NULL;
	if (r == 0)
		r = keep_answer(q, a->body, &error);
	if (r == 0 && q->n_asked < q->n)
		r = ask_next(q);
	if (r != 0 || !q->open)
		q->done(q->arg, r, &error);
}

static int ask_next(struct vectors_ask *q)
{
	const struct text *first = &q->texts[q->n_asked];
	size_t bytes = 0;
	unsigned n = 0;

	while (q->n_asked + n < q->n && n < EMBEDDINGS_BATCH_MAX &&
	       (n == 0 || bytes + first[n].len <= BATCH_BYTES))
		bytes += first[n++].len;
	q->batches[q->n_batches++].n = n;
	q->n_asked += n;
	return embeddings_ask(q->embedding->model, first, n, BATCH_MS, index_vectors_on_answer, q,
			      &q->open);
}

int vectors_ask(struct embedding *e, struct arena *a, const struct text *texts, unsigned n,
		void (*done)(void *arg, int r, const struct error *error), void *arg,
		struct vectors_ask **ret_ask, struct error *error)
{
	struct vectors_ask *q = arena_zalloc(a, sizeof(*q));
	int r;

	if (e->stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (e->n_guests >= VECTORS_ASKS_MAX)
		return refuse(error, REFUSE_LIMIT,
			      "too many requests are waiting for the embedding model (limit %u)",
			      VECTORS_ASKS_MAX);
	if (!q)
		return -ENOMEM;
	*q = (struct vectors_ask) {
		.embedding = e,
		.arena = a,
		.texts = texts,
		.n = n,
		.batches = arena_zalloc(a, n * sizeof(*q->batches)),
		.done = done,
		.arg = arg,
	};
	e->n_guests++;
	r = q->batches ? ask_next(q) : -ENOMEM;
	if (r != 0) {
		vectors_end(q);
		return r;
	}
	*ret_ask = q;
	return 0;
}

void vectors_end(struct vectors_ask *q)
{
	if (!q)
		return;
	embeddings_cancel(q->open);
	q->open = NULL;
	if (q->embedding)
		q->embedding->n_guests--;
	q->embedding = NULL;
}

/* ---- vectors ---- */

/* The first answer that has a name names the model for all of them. */
static int keep_name(struct arena *a, struct text name, struct vectors *v)
{
	if (v->model.data || name.len == 0)
		return 0;
	name = text_cut(name, NAME_MAX_BYTES);
	v->model = (struct text) {.data = arena_copy(a, name.data, name.len), .len = name.len};
	return v->model.data ? 0 : -ENOMEM;
}

/* The tree of an answer is much larger than its numbers, and is soon useless. */
static int read_batch(const struct index_vectors_batch *b, struct arena *a, struct vectors *v,
		      unsigned at, float **numbers, struct error *error)
{
	struct embeddings_vectors read;
	struct arena tree;
	int r;

	arena_init(&tree, READ_ARENA);
	r = embeddings_read(&tree, b->answer, b->n, &read, error);
	if (r == 0 && v->dim != 0 && v->dim != read.dim)
		r = refuse(error, REFUSE_UNAVAILABLE,
			   "the model returned vectors of different lengths");
	if (r == 0 && v->dim == 0) {
		v->dim = read.dim;
		*numbers = arena_alloc(a, (size_t)v->n * v->dim * sizeof(float));
		r = *numbers ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = keep_name(a, read.model, v);
	if (r == 0)
		memcpy(*numbers + (size_t)at * v->dim, read.numbers,
		       (size_t)b->n * v->dim * sizeof(float));
	arena_done(&tree);
	/* The unreadable text is the model's, so do not blame the client. */
	if (r == REFUSE_PARSE)
		error->code = REFUSE_UNAVAILABLE;
	return r == REFUSE_PARSE ? REFUSE_UNAVAILABLE : r;
}

int vectors_read(const struct vectors_ask *q, struct vectors *ret_vectors, struct error *error)
{
	struct vectors v = {.n = q->n};
	float *numbers = NULL;
	unsigned at = 0;

	for (unsigned i = 0; i < q->n_batches; i++) {
		int r = read_batch(&q->batches[i], q->arena, &v, at, &numbers, error);

		if (r != 0)
			return r;
		at += q->batches[i].n;
	}
	v.numbers = numbers;
	(void)embedding_take_dim(q->embedding, v.dim);
	*ret_vectors = v;
	return 0;
}

CLEANUP_POINTER(words, words_free)

int vectors_hash(struct arena *a, const struct text *texts, unsigned n, struct vectors *ret_vectors)
{
	CLEANUP(words_freep) struct words *w = words_new();
	float *numbers = arena_alloc(a, (size_t)n * HASH_EMBED_DIM * sizeof(float));

	if (!w || !numbers)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		hash_embed(w, texts[i], numbers + (size_t)i * HASH_EMBED_DIM);
	*ret_vectors = (struct vectors) {.n = n, .dim = HASH_EMBED_DIM, .numbers = numbers};
	return 0;
}
