/* The parts of the engine that a call uses; NULL where the engine does not have one. */
#pragma once

#include "call/call.h"
#include "engine/engine.h"

static inline struct approvals *call_approvals(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->approvals : NULL;
}

static inline struct automation *call_automation(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->automation : NULL;
}

static inline struct chat *call_chat(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->chat : NULL;
}

static inline struct events *call_events(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->events : NULL;
}

static inline struct memories *call_memories(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->memories : NULL;
}

static inline struct mirrors *call_mirrors(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->mirrors : NULL;
}

static inline struct node *call_node(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->node : NULL;
}

static inline struct notify *call_notify(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->notify : NULL;
}

static inline struct sessions *call_sessions(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->sessions : NULL;
}

static inline struct jobs *call_jobs(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->jobs : NULL;
}

static inline struct processes *call_processes(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->processes : NULL;
}

static inline struct tasks *call_tasks(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->tasks : NULL;
}

static inline struct tools *call_tools(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->tools : NULL;
}

static inline struct visitors *call_visitors(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->visitors : NULL;
}

static inline struct trust *call_trust(const struct call *c)
{
	const struct engine *s = call_engine(c);

	return s ? s->trust : NULL;
}
