/* The parts of the engine that a call uses; NULL where the engine does not have one. */
#pragma once

#include "call/call.h"
#include "engine/engine.h"

#define CALL_PART(name)                                                                            \
	static inline struct name *call_##name(const struct call *c)                               \
	{                                                                                          \
		const struct engine *s = call_engine(c);                                           \
                                                                                                   \
		return s ? s->name : NULL;                                                         \
	}

CALL_PART(approvals)
CALL_PART(automation)
CALL_PART(chat)
CALL_PART(events)
CALL_PART(memories)
CALL_PART(bridges)
CALL_PART(node)
CALL_PART(notify)
CALL_PART(sessions)
CALL_PART(jobs)
CALL_PART(processes)
CALL_PART(tasks)
CALL_PART(tools)
CALL_PART(page_sessions)
CALL_PART(trust)

#undef CALL_PART
