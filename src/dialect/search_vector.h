/* For methods that search memory: the question's vector, if there is a model that makes one. */
#pragma once

#include "call/call.h"

/* For a row's `before`: asks the model, and goes on when it has answered, or at once. Uses
 * c->state until the handler runs. */
void search_vector_ask(struct call *c, struct text query);

/* For the handler; {NULL, 0}: there is none, and words alone will do. */
struct text search_vector(const struct call *c);
