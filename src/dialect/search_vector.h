/* For methods that search memory: the question's vector, if a model can make one. */
#pragma once

#include "call/call.h"

/* For a method's `before`: asks the model, and goes on when it has answered, or at once. Uses
 * c->state until the handler runs. */
void search_vector_ask(struct call *c, struct text query);

/* For the handler. {NULL, 0}: there is no vector, and the search goes by words alone. */
struct text search_vector(const struct call *c);
