/*
 * Rules: when something happens, something is done. A trigger (a schedule, a change of files, an
 * event of the log), conditions, an action (submit a task, run a command, call a webhook, tell the
 * desktop), and how often at most.
 *
 * Each occurrence of a schedule is claimed in the store before it is acted on, so that it is acted on
 * once. A rule that is wrong is told and left out; the others load. One that needs approval asks for
 * it each time it fires; what waits for an answer when we stop is given up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/rule.h"
#include "base/text.h"
#include "base/value.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/work.h"

struct approvals;
struct automation;
struct environment;
struct events;
struct store;
struct tasks;

enum { RULES_MAX = 256, RULE_CONDITIONS_MAX = 32, RULE_LOG_MAX = 100 };

struct automation_opts {
	struct loop *loop;
	struct background background;
	struct store *store;
	struct events *events;
	struct tasks *tasks;         /* NULL: rules that submit tasks fail */
	struct approvals *approvals; /* NULL: rules that need approval do nothing */
	/* Milliseconds since 1970; NULL: the real clock. So that a test can turn it. */
	int64_t (*now_ms)(void *arg);
	/* A tree as JSON text, in the arena: for webhooks and a command's environment. */
	int (*to_json)(struct arena *a, const struct value *v, struct text *ret_text);
	void *arg;
	const struct environment *env; /* of commands; NULL: ours */
};

int automation_new(const struct automation_opts *opts, struct automation **ret_automation);

/* These rules take the place of all that came with the same project. Those that are wrong are left
 * out; each is told to the log and to `complain` (may be NULL). */
int automation_set_rules(struct automation *a, struct text project, const struct rule *rules,
			 unsigned n, void (*complain)(void *arg, const char *sentence), void *arg);

/* Refuses, with the reason, what automation_set_rules would leave out. */
int automation_check_rule(const struct rule *rule, struct why *why);

/* Something happened that is not in the log: in a project's watched files, by its schedule. */
void automation_event(struct automation *a, struct text project, struct text source,
		      struct text type, const struct value *payload);

/* Fires nothing any more, and ends commands and calls under way. Before tasks_stop: an occurrence that
 * was claimed and cannot be acted on any more is given back to the store. Accepts NULL. */
void automation_stop(struct automation *a);
/* Nothing is under way any more, which comes soon after a stop. Accepts NULL. */
bool automation_idle(const struct automation *a);
/* Accepts NULL; after the last work has finished. */
void automation_free(struct automation *a);

/* Those of a project, or {NULL, 0}: all. Valid until the loop turns. */
void automation_rules(struct automation *a, struct text project,
		      const struct rule *const **ret_rules, unsigned *ret_n, bool *ret_enabled);

/* The newest last. */
void automation_log(struct automation *a, struct text project,
		    const struct rule_execution **ret_log, unsigned *ret_n);

typedef void (*automation_done_fn)(void *arg, int result, const struct why *why);

/* rule {NULL, 0}: the whole engine (of that project; {NULL, 0}: everybody's, and a project's rules act
 * where both are on). Kept over restarts. REFUSE_NOT_FOUND. A rule's project {NULL, 0}: whichever has
 * it; REFUSE_PARAMS where two have. */
void automation_enable(struct automation *a, struct text project, struct text rule, bool on,
		       automation_done_fn fn, void *arg);

/* Acts now, whatever trigger, conditions and cooldown say; where it needs approval, once that is there.
 * fn comes when it is done. REFUSE_FORBIDDEN: it was denied, or there is nobody to ask; REFUSE_TIMEOUT:
 * nobody decided in time; REFUSE_CANCELLED: the question was withdrawn; REFUSE_LIMIT: too many wait;
 * REFUSE_UNAVAILABLE: it failed. */
void automation_run(struct automation *a, struct text project, struct text rule,
		    automation_done_fn fn, void *arg);
