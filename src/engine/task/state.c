/*
 * What a task's state may become, by which step, and what else it may be then. This is written down here and nowhere
 * else; each change of a task asserts it.
 *
 *	            claim            put back          end
 *	queued -----------> running -----------> queued
 *	queued ----------------------------------------> failed, cancelled
 *	                    running -------------------> completed, failed, cancelled
 *
 * A sync makes a task like its row, whatever it was before: other hosts may have gone several steps, and a change
 * of ours that was lost is undone by it.
 */
#include <assert.h>

#include "engine/task/inner.h"

#define TO(state) (1U << (state))
#define ENDED     (TO(TASK_COMPLETED) | TO(TASK_FAILED) | TO(TASK_CANCELLED))
#define ANY       (TO(TASK_QUEUED) | TO(TASK_RUNNING) | ENDED)

static const unsigned steps[N_TASK_STEPS][N_TASK_STATES] = {
	[STEP_CLAIM] = {[TASK_QUEUED] = TO(TASK_RUNNING)},
	[STEP_PUT_BACK] = {[TASK_RUNNING] = TO(TASK_QUEUED)},
	[STEP_END] = {[TASK_QUEUED] = TO(TASK_FAILED) | TO(TASK_CANCELLED), [TASK_RUNNING] = ENDED},
	[STEP_SYNC] = {[TASK_QUEUED] = ANY,
		       [TASK_RUNNING] = ANY,
		       [TASK_COMPLETED] = ANY,
		       [TASK_FAILED] = ANY,
		       [TASK_CANCELLED] = ANY},
};

/* What a task in a state may have. */
static const struct {
	bool places; /* a place in the queue, unless it is stale */
	bool waits;  /* dependencies that are open */
	bool run;    /* a run; without one, another host runs it */
} legal[N_TASK_STATES] = {
	[TASK_QUEUED] = {.places = true, .waits = true},
	[TASK_RUNNING] = {.run = true},
};

/* What a task in a place may have. */
static const struct {
	bool waits;
	bool edits; /* on their way to the store */
	bool kept_back;
} legal_in[] = {
	[PLACE_NONE] = {.waits = true, .edits = true, .kept_back = true},
	[PLACE_ASIDE] = {.waits = true, .edits = true, .kept_back = true},
	[PLACE_READY] = {0},
	[PLACE_TIMED] = {0},
};

static bool fits_state(const struct live *l)
{
	enum task_state state = l->task.state;

	/* What it should be is not known until its row is read. */
	if (l->record.stale)
		return l->place == PLACE_NONE;
	if ((l->place != PLACE_NONE) != legal[state].places)
		return false;
	if (l->n_after_open > 0 && !legal[state].waits)
		return false;
	return legal[state].run ? l->run || !list_empty(&l->link) : !l->run;
}

static bool fits_place(const struct live *l)
{
	bool kept_back = l->task.held || l->task.stashed || (l->group && l->group->paused);

	return (legal_in[l->place].waits || l->n_after_open == 0) &&
	       (legal_in[l->place].edits || l->n_edits == 0) &&
	       (legal_in[l->place].kept_back || !kept_back);
}

bool task_is_legal(const struct live *l)
{
	return fits_state(l) && fits_place(l);
}

void live_step(struct live *l, enum task_step step, enum task_state state)
{
	bool had_ended = l->task.state > TASK_RUNNING;
	bool has_ended = state > TASK_RUNNING;
	struct project *p = l->project;

	assert(steps[step][l->task.state] & TO(state));
	(void)steps;
	(void)step;
	project_count(p, l->task.state, -1);
	project_count(p, state, 1);
	l->task.state = state;
	if (has_ended && !had_ended)
		live_join_ended(l);
	else if (had_ended && !has_ended)
		live_leave_ended(l);
	live_changed(l);
}
