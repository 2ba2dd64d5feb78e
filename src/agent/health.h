/* A health that is known at once but reported when the loop turns again, as agent.h promises. */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"
#include "base/list.h"
#include "io/loop.h"

/* `open` is the agent's list of those not reported yet. The text is copied. */
int health_later(struct loop *l, struct list *open, bool ok, const char *text, agent_health_fn fn,
		 void *arg);

/* The agent is freed: everyone who still waits is told so. */
void health_drop(struct list *open);
