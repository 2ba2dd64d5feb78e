/* How a firing ended: it is logged, remembered, and reported to the caller and as an event. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/automation/inner.h"

enum { ERROR_SHOWN = 500 };

/* Its name, and the result for a caller that runs the rule by hand: 0 or a refusal. */
static const struct {
	const char *status;
	int result;
} outcomes[] = {
	[OUTCOME_SUBMITTED] = {"submitted"},
	[OUTCOME_COMMAND_RUN] = {"command_run"},
	[OUTCOME_WEBHOOK_SENT] = {"webhook_sent"},
	[OUTCOME_NOTIFIED] = {"notified"},
	[OUTCOME_NO_DESKTOP] = {"skipped_no_desktop"},
	[OUTCOME_DENIED] = {"denied_by_approver", REFUSE_FORBIDDEN},
	[OUTCOME_EXPIRED] = {"approval_expired", REFUSE_TIMEOUT},
	[OUTCOME_SUPERSEDED] = {"approval_superseded", REFUSE_CANCELLED},
	[OUTCOME_NO_APPROVER] = {"skipped_no_approver", REFUSE_FORBIDDEN},
	[OUTCOME_TOO_MANY_WAITING] = {"skipped_too_many_waiting", REFUSE_LIMIT},
	[OUTCOME_ERROR] = {"error", REFUSE_UNAVAILABLE},
};

/* ---- tasks that rules have submitted ---- */

static uint64_t hash(uint64_t h, struct text t)
{
	return text_hash_byte(text_hash(h, t), 0xff);
}

static struct own_task own_task(const struct live_rule *r, struct text project, struct text task)
{
	return (struct own_task) {.task = hash(hash(TEXT_HASH, project), task),
				  .rule = hash(TEXT_HASH, r->key)};
}

bool rule_owns(const struct live_rule *r, struct text project, struct text task)
{
	const struct own_task wanted = own_task(r, project, task);
	const struct automation *a = r->automation;

	for (unsigned i = 0; i < OWN_TASKS_MAX; i++) {
		if (a->own[i].task == wanted.task && a->own[i].rule == wanted.rule)
			return true;
	}
	return false;
}

static void note_own(const struct firing *f)
{
	struct automation *a = f->rule->automation;

	a->own[a->own_next] = own_task(f->rule, f->rule->def.project, f->task);
	a->own_next = (a->own_next + 1) % OWN_TASKS_MAX;
}

/* ---- the log in memory ---- */

void execution_done(struct execution *e)
{
	free(e->texts);
	*e = (struct execution) {.texts = NULL};
}

static struct text automation_outcome_put(char **at, struct text t)
{
	struct text copy = {.data = *at, .len = t.len};

	if (!t.data)
		return t;
	memcpy(*at, t.data, t.len);
	*at += t.len;
	return copy;
}

static void remember(const struct firing *f)
{
	struct automation *a = f->rule->automation;
	struct execution *e = &a->log[a->log_next];
	const struct rule *d = &f->rule->def;
	char *at;

	execution_done(e);
	e->texts =
		malloc(d->id.len + d->project.len + f->type.len + f->task.len + f->error.len + 1);
	at = e->texts;
	if (!at)
		return;
	e->told = (struct rule_execution) {
		.rule = automation_outcome_put(&at, d->id),
		.project = automation_outcome_put(&at, d->project),
		.event_type = automation_outcome_put(&at, f->type),
		.status = text_of(outcomes[f->outcome].status),
		.time_ms = f->now_ms,
		.task = automation_outcome_put(&at, f->task),
		.error = automation_outcome_put(&at, f->error),
	};
	a->log_next = (a->log_next + 1) % RULE_LOG_MAX;
	a->n_log += a->n_log < RULE_LOG_MAX;
}

/* ---- the caller ---- */

/* Once the execution is in the log, so that the caller finds it there. */
static void answer(struct firing *f)
{
	struct error error = {.text = ""};
	automation_done_fn fn = f->fn;
	int result = outcomes[f->outcome].result;

	if (!fn)
		return;
	f->fn = NULL;
	if (result != 0)
		refuse(&error, (enum refusal)result, "%.*s", TEXT_ARGS(text_cut(f->error, 190)));
	fn(f->arg, result, &error);
}

/* ---- the event ---- */

/* The end of the output, at a whole character. */
static struct text kept_output(const struct firing *f)
{
	struct text t = {.data = f->output.data, .len = f->output.len};

	if (t.len > RULE_OUTPUT_MAX) {
		t.data += t.len - RULE_OUTPUT_MAX;
		t.len = RULE_OUTPUT_MAX;
	}
	while (t.len > 0 && (int64_t)t.len < f->output_bytes &&
	       ((unsigned char)t.data[0] & 0xc0) == 0x80) {
		t.data++;
		t.len--;
	}
	return t.len > 0 ? t : (struct text) {0};
}

static void pack_program(struct packer *p, const struct firing *f)
{
	struct text output = kept_output(f);

	if (f->started_ms == 0)
		return;
	if (f->exit_status >= 0)
		packer_int(p, "exit_status", f->exit_status);
	if (f->exit_signal != 0)
		packer_int(p, "signal", f->exit_signal);
	packer_int(p, "duration_ms", f->duration_ms);
	packer_given(p, "output", output);
	if (f->output_bytes > (int64_t)output.len)
		packer_int(p, "output_bytes", f->output_bytes);
}

static int tell_run(struct work *w, int lane)
{
	struct firing *f = list_entry(w, struct firing, work);
	struct event_new e = {.type = f->outcome == OUTCOME_ERROR ? "rule.failed" : "rule.executed",
			      .project = f->rule->def.project};
	struct event_data d;
	struct packer *p = &d.members;

	event_data_begin(&d);
	packer_text(p, "rule_id", f->rule->def.id);
	packer_text(p, "event_type", f->type);
	packer_text(p, "status", text_of(outcomes[f->outcome].status));
	packer_given(p, "task_id", f->task);
	packer_given(p, "message", f->message);
	packer_given(p, "error", f->error);
	pack_program(p, f);
	return event_add_data(f->rule->automation->opts.events, &e, &d);
}

static void tell_finished(struct work *w, int result)
{
	struct firing *f = list_entry(w, struct firing, work);

	if (result != 0 && result != -ECANCELED)
		log_warn("could not store rule event", "rule=%.*s error=%s",
			 TEXT_ARGS(f->rule->def.id), fault_words(result));
	answer(f);
	firing_free(f);
}

/* ---- all of it ---- */

/* What ends because we were told to stop warns nobody; its event says so. */
static void log_end(const struct firing *f)
{
	bool failed = f->outcome == OUTCOME_ERROR && !f->rule->automation->stopping;
	enum log_level level = failed ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
	const char *status = outcomes[f->outcome].status;

	if (f->error.data)
		log_caused(level, "rule fired", "rule=%.*s event=%.*s status=%s reason=\"%.*s\"",
			   TEXT_ARGS(f->rule->def.id), TEXT_ARGS(f->type), status,
			   TEXT_ARGS(f->error));
	else
		log_caused(level, "rule fired", "rule=%.*s event=%.*s status=%s task=%.*s",
			   TEXT_ARGS(f->rule->def.id), TEXT_ARGS(f->type), status,
			   TEXT_ARGS(f->task));
}

void firing_done(struct firing *f, enum outcome outcome, const char *error)
{
	firing_stop_waiting(f);
	action_drop(f);
	f->outcome = outcome;
	if (error && arena_copy_text(&f->arena, (struct text) {error, strnlen(error, ERROR_SHOWN)},
				     &f->error) != 0)
		f->error = TEXT("out of memory");
	if (f->task.data)
		note_own(f);
	log_end(f);
	if (f->started_ms != 0)
		f->duration_ms = (int64_t)(clock_steady_ms() - f->started_ms);
	remember(f);
	f->work = (struct work) {.run = tell_run, .finished = tell_finished};
	workers_start(f->rule->automation->opts.workers, &f->work, true);
}

void firing_fail(struct firing *f, int result, const struct error *error)
{
	firing_done(f, OUTCOME_ERROR, result > 0 && error ? error->text : fault_words(result));
}
