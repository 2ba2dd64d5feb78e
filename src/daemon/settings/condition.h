/* A condition on an event, as the settings spell it: FIELD OPERATOR [VALUE]. */
#pragma once

#include "base/arena.h"
#include "model/event.h"

/* Texts point into the given one. -EINVAL: it has no operator. */
int condition_parse(const char *text, struct arena *a, struct event_condition *ret_condition);
