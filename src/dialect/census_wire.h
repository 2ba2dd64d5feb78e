/* How the dialects that report counts get the numbers. */
#pragma once

#include "call/call.h"
#include "engine/chat/chat.h"

/* Calls `answer` with the counts as soon as they are known. */
typedef struct done (*census_wire_fn)(struct call *c, const struct census *n);
struct done census_wire(struct call *c, census_wire_fn answer);
