/* The vector of a search's question, which the model makes within the short time that a search
 * has. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/index/embedding_inner.h"
#include "search/vector.h"

enum { QUESTIONS_MAX = 64, OFF_MAX_MS = 30000 };

struct embedding_question {
	struct list link;
	struct embedding *embedding;
	struct embeddings_ask *ask;
	void (*done)(void *arg, struct text answer);
	void *arg;
};

static void question_free(struct embedding_question *q)
{
	list_remove(&q->link);
	q->embedding->n_questions--;
	free(q);
}

/* A model that does not answer must not make every search wait for its timeout. */
static void count_answer(struct embedding *e, enum embeddings_outcome outcome)
{
	if (outcome == EMBEDDINGS_OK || outcome == EMBEDDINGS_REFUSED) {
		e->n_unanswered = 0;
		return;
	}
	e->ask_again_ms = loop_now_ms(e->loop) + embedding_back_off(++e->n_unanswered, OFF_MAX_MS);
}

static void on_question_answer(void *arg, const struct embeddings_answer *a)
{
	struct embedding_question *q = arg;
	struct embedding *e = q->embedding;
	void (*done)(void *arg, struct text answer) = q->done;
	void *done_arg = q->arg;

	count_answer(e, a->outcome);
	if (a->outcome != EMBEDDINGS_OK)
		log_debug("could not embed query", "reason=\"%s\"", a->text);
	question_free(q);
	done(done_arg, a->outcome == EMBEDDINGS_OK ? a->body : (struct text) {0});
	embedding_next_batch(e);
}

struct embedding_question *embedding_ask(struct embedding *e, struct text question,
					 void (*done)(void *arg, struct text answer), void *arg)
{
	struct embedding_question *q;
	struct text text = text_cut(question, (size_t)EMBEDDING_TEXT_CHARS * 4);

	if (!e || e->stopping || question.len == 0 || e->n_questions >= QUESTIONS_MAX ||
	    (e->n_unanswered > 0 && loop_now_ms(e->loop) < e->ask_again_ms))
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->embedding = e;
	q->done = done;
	q->arg = arg;
	list_append(&e->questions, &q->link);
	e->n_questions++;
	if (embeddings_ask(e->model, &text, 1, e->timeout_ms, on_question_answer, q, &q->ask) !=
	    0) {
		question_free(q);
		return NULL;
	}
	return q;
}

void embedding_cancel(struct embedding_question *q)
{
	struct embedding *e = q->embedding;

	embeddings_cancel(q->ask);
	question_free(q);
	embedding_next_batch(e);
}

void embedding_cancel_questions(struct embedding *e)
{
	while (!list_empty(&e->questions))
		embedding_cancel(
			list_entry(list_first(&e->questions), struct embedding_question, link));
}

int embedding_read(struct embedding *e, struct arena *a, struct text answer,
		   struct embedding_vector *ret_vector)
{
	struct embeddings_vectors v;
	struct error error;
	int r;

	*ret_vector = (struct embedding_vector) {0};
	if (!e || !answer.data)
		return 0;
	r = embeddings_read(a, answer, 1, &v, &error);
	if (r > 0)
		log_debug("could not embed query", "reason=\"%s\"", error.text);
	if (r != 0)
		return r > 0 ? 0 : r;
	if (!vector_normalise(v.numbers, v.dim) || !embedding_take_dim(e, v.dim))
		return 0;
	ret_vector->bytes = arena_alloc(a, v.dim);
	if (!ret_vector->bytes)
		return -ENOMEM;
	ret_vector->scale = vector_quantise(v.numbers, v.dim, ret_vector->bytes);
	ret_vector->numbers = v.numbers;
	ret_vector->dim = v.dim;
	return 0;
}
