#include "dialect/search_vector.h"

#include "dialect/engine.h"
#include "engine/memory/embedding.h"
#include "engine/memory/memory.h"

/* In c->state, from `before` to the handler. */
struct search_state {
	struct embedding_question *question;
	struct text vector;
};

static void on_vector(void *arg, struct text vector)
{
	struct call *c = arg;
	struct search_state *s = c->state;

	/* If there is no memory for the vector, the search goes by words alone. */
	s->vector.data = vector.data ? arena_copy(&c->arena, vector.data, vector.len) : NULL;
	s->vector.len = s->vector.data ? vector.len : 0;
	call_go_on(c);
}

static void on_cancel(struct call *c, void *arg)
{
	const struct search_state *s = c->state;

	(void)arg;
	embedding_cancel(s->question);
	call_go_on(c);
}

void search_vector_ask(struct call *c, struct text query)
{
	struct embedding *model = memories_embedding(call_memories(c));
	struct search_state *s = model ? arena_zalloc(&c->arena, sizeof(*s)) : NULL;

	if (s)
		s->question = embedding_ask(model, query, on_vector, c);
	c->state = s;
	if (s && s->question)
		call_wait(c, on_cancel, NULL);
	else
		call_go_on(c);
}

struct text search_vector(const struct call *c)
{
	const struct search_state *s = c->state;

	return s ? s->vector : (struct text) {0};
}
