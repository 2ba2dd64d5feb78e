/* Who asks, for an approval that is bound to its asker. */
#pragma once

#include "call/call.h"
#include "engine/approval/approval.h"

/* Reads a file in /proc. */
struct approval_client call_asker(const struct call *c);
