/* For methods that search memory: the question's vector, if a model can make one, and the wait
 * for indexes that are not in memory. */
#pragma once

#include "call/call.h"

struct memory_query;

/* For a method's `before`: asks the model unless the query is {NULL, 0}, and goes on when it has
 * answered, or at once. Uses c->state until the call has answered. */
void search_begin(struct call *c, struct text query);

/* The same for an ON_LOOP row with METHOD_LATER: goes on with `then`, which uses call_work. */
void search_begin_with(struct call *c, struct text query, void (*then)(struct call *c));

/* For the handler: sets `vector` and `wait`. -ENOMEM. */
int search_continue(const struct call *c, struct memory_query *q);
