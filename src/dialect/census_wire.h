/* How every dialect that counts what there is gets the numbers. */
#pragma once

#include "call/call.h"
#include "engine/chat/census.h"

/* Answers with how much there is in all, as soon as it is known. */
typedef struct done (*census_wire_fn)(struct call *c, const struct census *n);
struct done census_wire(struct call *c, census_wire_fn answer);
