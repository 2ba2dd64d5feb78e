/*
 * Rules: when something happens, something is done. A trigger (a schedule, a change of files, an
 * event of the log), conditions, an action (submit a task, run a command, call a webhook, tell the
 * desktop), and how often at most.
 *
 * Each occurrence of a schedule is claimed in the store before it is acted on, so that it is acted on
 * once. A rule that cannot be is told and left out; the others load. One that needs approval asks for
 * it each time it fires; what waits for an answer when we stop is given up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/value.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/work.h"

struct approvals;
struct automation;
struct environment;
struct events;
struct services;
struct store;
struct tasks;

enum { RULES_MAX = 256, RULE_CONDITIONS_MAX = 32, RULE_LOG_MAX = 100 };

enum rule_trigger { TRIGGER_CRON, TRIGGER_EVERY, TRIGGER_FILES, TRIGGER_EVENT };
enum rule_action { ACTION_TASK, ACTION_COMMAND, ACTION_WEBHOOK, ACTION_DESKTOP };
enum rule_catch_up { CATCH_UP_NONE, CATCH_UP_ONE, CATCH_UP_ALL };

struct rule_condition {
	struct text field; /* dotted: "payload.path" */
	struct text
	operator; /* eq, equals, neq, not_equals, contains, matches, gt, lt, gte, lte, exists, not_exists */
	const struct value *value;
};

/* As the settings or a project's daemon.json name it; all of it is copied. */
struct rule_new {
	struct text id;
	struct text project; /* {NULL, 0}: none */
	struct text where;   /* "FILE:LINE", for complaints */
	bool disabled;
	struct text description;
	enum rule_trigger trigger;
	struct text cron; /* TRIGGER_CRON */
	struct text zone;
	int64_t every_ms; /* TRIGGER_EVERY */
	enum rule_catch_up catch_up;
	const struct text *paths; /* TRIGGER_FILES: folders, absolute */
	unsigned n_paths;
	const struct text *ignore; /* names not to enter */
	unsigned n_ignore;
	const struct text *extensions; /* ".c"; none: any file */
	unsigned n_extensions;
	int64_t debounce_ms;
	/* TRIGGER_EVENT: all that are given must fit. The event is {type, source, payload}. */
	struct text type; /* equal, or a glob ("task.*") with koine's own rules */
	struct text source;
	struct text pattern; /* a regular expression over "type:source" */
	bool not_logged;     /* only what is told by automation_event, not the log */
	const struct rule_condition *conditions;
	unsigned n_conditions;
	enum rule_action action;
	struct text prompt; /* ACTION_TASK, with {{a.b}} of the event in it */
	struct text agent;
	struct text runner;
	struct text group;
	double priority;
	struct text command; /* ACTION_COMMAND, run by /bin/sh; the event is in KOINE_EVENT_… */
	struct text url;     /* ACTION_WEBHOOK: POST of the event as JSON */
	struct text message; /* ACTION_DESKTOP, with {{a.b}} */
	int64_t cooldown_ms;
	bool needs_approval;
	bool forbidden; /* it calls where our settings do not let it: refused */
	/* Trigger and action as they were written, to be shown so; NULL: as they are here. */
	const struct value *written_trigger;
	const struct value *written_action;
};

struct automation_opts {
	struct loop *loop;
	struct background background;
	struct services *services;
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

/* Takes them all, in place of those of the same project there were; complaints go to the log and to
 * `complain` (may be NULL), one each, and those rules are left out. */
int automation_set_rules(struct automation *a, struct text project, const struct rule_new *rules,
			 unsigned n, void (*complain)(void *arg, const char *sentence), void *arg);

/* Whether it could be, as automation_set_rules would find; refuses with the reason. */
int automation_check_rule(const struct rule_new *rule, struct why *why);

/* Something happened outside the log: a project's file watcher, its schedule. */
void automation_event(struct automation *a, struct text project, struct text source,
		      struct text type, const struct value *payload);

/* Looks at the clock now, as it does by itself when something is due and once a minute. */
void automation_look(struct automation *a);

/* Fires nothing any more, and ends commands and calls under way. Before tasks_stop: an occurrence that
 * was claimed and cannot be acted on any more is given back to the store. Accepts NULL. */
void automation_stop(struct automation *a);
/* Nothing is under way any more; after a stop that comes soon. Accepts NULL. */
bool automation_idle(const struct automation *a);
/* Accepts NULL; after the last work has finished. */
void automation_free(struct automation *a);

struct rule_info {
	struct text id;
	struct text project;
	bool enabled;
	const struct rule_new *rule; /* as it was given */
	int64_t fired_ms;            /* 0: never */
	int64_t next_ms;             /* of a schedule; 0: none */
	int64_t n_fired;
};

/* Those of a project, or {NULL, 0}: all. Valid until the loop turns. */
void automation_rules(struct automation *a, struct text project, const struct rule_info **ret_rules,
		      unsigned *ret_n, bool *ret_enabled);

struct rule_execution {
	struct text rule;
	struct text project;
	struct text event_type;
	struct text
		status; /* submitted, notified, webhook_sent, command_run, denied, denied_by_approver,
			 * approval_expired, approval_superseded, skipped_no_approver,
			 * skipped_too_many_waiting, skipped_no_desktop, error */
	int64_t time_ms;
	struct text task;  /* {NULL, 0}: none */
	struct text error; /* {NULL, 0}: none */
};

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
