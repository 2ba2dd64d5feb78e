/*
 * Rules: when something happens, something is done. A rule has a trigger (a schedule, a change
 * of files, an event of the log), conditions, an action (submit a task, run a command, call a
 * webhook, notify the desktop), and a maximum frequency.
 *
 * Each occurrence of a schedule is claimed in the store before it is acted on, so that it is
 * acted on once. An invalid rule is reported and left out; the others load. A rule that needs
 * approval asks for it each time it fires; what is waiting for an answer when we stop is given
 * up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/rule.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct approvals;
struct automation;
struct environment;
struct events;
struct store;
struct tasks;

/* RULES_MAX is for all projects together; how many one may have, its reader decides. */
enum { RULES_MAX = 8192, RULE_CONDITIONS_MAX = 32 };

enum {
	RULE_LOG_MAX = 100,       /* executions that are in memory */
	RULE_LOG_LIST_MAX = 1000, /* that one answer has */
};

struct automation_opts {
	struct loop *loop;
	struct workers *workers;
	struct store *store;
	struct events *events;
	struct tasks *tasks;         /* NULL: rules that submit tasks fail */
	struct approvals *approvals; /* NULL: rules that need approval do nothing */
	/* Milliseconds since 1970; NULL: the real clock. Tests can set it. */
	int64_t (*now_ms)(void *arg);
	/* A tree as JSON text, in the arena: for webhooks and a command's environment. */
	int (*to_json)(struct arena *a, const struct value *v, struct text *ret_text);
	void *arg;
	const struct environment *env; /* of commands; NULL: ours */
};

int automation_new(const struct automation_opts *opts, struct automation **ret_automation);

/* Replaces all rules that came with the same project. Invalid rules are left out; each is
 * reported to the log and to `complain` (may be NULL). */
int automation_set_rules(struct automation *a, struct text project, const struct rule *rules,
			 unsigned n, void (*complain)(void *arg, const char *sentence), void *arg);

/* Refuses, with the reason, a rule that automation_set_rules would leave out. */
int automation_check_rule(const struct rule *rule, struct error *error);

/* Reports something that is not in the log: from a project's watched files, or its schedule. */
void automation_event(struct automation *a, struct text project, struct text source,
		      struct text type, const struct value *payload);

/* Fires nothing any more, and ends commands and calls under way. Call it before tasks_stop: an
 * occurrence that was claimed but can no longer be acted on is given back to the store. Accepts
 * NULL. */
void automation_stop(struct automation *a);
/* How many rules run a program or call a webhook now. Accepts NULL. */
unsigned automation_running(const struct automation *a);
/* Whether nothing is under way any more, which is soon so after a stop. Accepts NULL. */
bool automation_idle(const struct automation *a);
/* Accepts NULL; call it after the last work has finished. */
void automation_free(struct automation *a);

/* Whether neither the global switch nor that project's is off. False for NULL. */
bool automation_is_enabled(const struct automation *a, struct text project);

/* The rule of a project, or of all for {NULL, 0}, that comes after `last`; NULL stands for the first and for none.
 * Valid until the next pass of the loop. */
const struct rule *automation_next_rule(struct automation *a, struct text project,
					const struct rule *last);

/* The newest of all that is in the log of events, the last one last: the same before and after a restart,
 * and at every host. Runs on a reader's thread. limit: 1 to RULE_LOG_LIST_MAX. */
int automation_log_read(struct automation *a, int lane, struct arena *arena, struct text project,
			unsigned limit, struct rule_execution **ret_log, unsigned *ret_n);

/* What this koined has in memory of it, without outputs: the newest comes last. */
void automation_recent(struct automation *a, struct text project,
		       const struct rule_execution **ret_log, unsigned *ret_n);

typedef void (*automation_done_fn)(void *arg, int result, const struct error *error);

/* Both call fn once, after they have returned 0; what they refuse at once is returned instead. */

/* rule {NULL, 0}: switches the whole engine (of that project; {NULL, 0}: the global one; a
 * project's rules act if both are on). This survives restarts. REFUSE_NOT_FOUND. A rule's
 * project {NULL, 0}: whichever has the rule; REFUSE_PARAMS if two have. */
int automation_enable(struct automation *a, struct text project, struct text rule, bool on,
		      automation_done_fn fn, void *arg, struct error *error);

/* Acts now, whatever trigger, conditions and cooldown say; if it needs approval, once that is
 * given. Calls fn when it is done. REFUSE_FORBIDDEN: it was denied, or there is nobody to ask;
 * REFUSE_TIMEOUT: nobody decided in time; REFUSE_CANCELLED: the question was withdrawn;
 * REFUSE_LIMIT: too many are waiting; REFUSE_UNAVAILABLE: it failed. */
int automation_run(struct automation *a, struct text project, struct text rule,
		   automation_done_fn fn, void *arg, struct error *error);
