#include "dialect/memory_search.h"

#include <errno.h>

#include "engine/index/embedding.h"
#include "engine/memory/memory.h"
#include "engine/index/wait.h"
#include "dialect/engine.h"

/* In c->state, from `before` to the answer. */
struct search_state {
	struct embedding_question *question;
	void (*then)(struct call *c);
	struct text vector;
	struct memory_wait wait;
};

static void on_vector(void *arg, struct text vector)
{
	struct call *c = arg;
	struct search_state *s = c->state;

	/* If there is no memory for the vector, the search goes by words alone. */
	s->vector.data = vector.data ? arena_copy(&c->arena, vector.data, vector.len) : NULL;
	s->vector.len = s->vector.data ? vector.len : 0;
	s->then(c);
}

static void memory_search_on_cancel(struct call *c, void *arg)
{
	const struct search_state *s = c->state;

	embedding_cancel(s->question);
	s->then(c);
}

void search_begin_with(struct call *c, struct text query, void (*then)(struct call *c))
{
	struct memories *m = call_memories(c);
	struct search_state *s = arena_alloc(&c->arena, sizeof(*s));

	c->state = s;
	if (!s) {
		then(c);
		return;
	}
	s->then = then;
	s->vector = (struct text) {0};
	memory_wait_init(&s->wait, m);
	call_may_wait(c, &s->wait.as);
	s->question = query.data ? embedding_ask(memories_embedding(m), query, on_vector, c) : NULL;
	if (!s->question)
		then(c);
	else if (c->waits)
		call_wait(c, memory_search_on_cancel, NULL);
	else
		(void)call_later(c, memory_search_on_cancel, NULL);
}

void search_begin(struct call *c, struct text query)
{
	search_begin_with(c, query, call_go_on);
}

int search_continue(const struct call *c, struct memory_query *q)
{
	struct search_state *s = c->state;

	if (!s)
		return -ENOMEM;
	q->vector = s->vector;
	q->wait = &s->wait;
	return 0;
}
