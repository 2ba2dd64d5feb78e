/*
 * Inside service/automation*: rules, and what they are doing. All of it is the loop's.
 *
 *	schedule, watch, events      automation_schedule.c, automation_watch.c, automation_event.c
 *	  → rule_consider            enabled, conditions, cooldown    automation_fire.c
 *	    → the store              claimed, and when it fired
 *	    → whoever approves       if it needs that                 automation_ask.c
 *	      → the action           automation_action.c
 *	        → the log            in memory, and as an event
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "engine/automation/automation.h"
#include "engine/event/event.h"
#include "base/pattern.h"
#include "engine/automation/schedule.h"
#include "store/task.h"

struct approval_waiter;
struct child;
struct http_client;
struct http_fetch;
struct old_asks;
struct watch;

enum {
	RULE_ID_MAX = 128,
	RULE_PATHS_MAX = 16,
	RULE_WORDS_MAX = 64, /* names to ignore, extensions */
	RULE_ARENA_MAX = 9 << 20,
	FIRING_ARENA_MAX = 16 << 20,
	FIRINGS_MAX = 64,            /* under way, by events and files */
	FIRINGS_DUE_MAX = 1024,      /* with those of schedules, which may have to catch up */
	FIRINGS_A_MINUTE = 100,      /* by events and files */
	CATCH_UP_MAX = 100,          /* occurrences */
	PROMPT_MAX = 1 << 20,        /* bytes, filled in */
	COMMAND_MS = 10 * 60 * 1000, /* that a command may take */
	WEBHOOK_MS = 10 * 1000,
	WEBHOOK_TRIES = 3,
	PENDING_MAX = 1024, /* changed files that wait for their time, of one rule */
	OWN_TASKS_MAX = 1024,
	EVENT_STEPS = 1 << 20, /* that expressions may take over one event: some milliseconds */
	WAITING_MAX = 64,      /* for approval, beside those under way */
	WAITING_BYTES_MAX = 64 << 20,
};

struct rule {
	struct list link; /* in automation->rules; nowhere once it is gone */
	struct automation *automation;
	unsigned n_refs; /* of the list, of firings, of what reads the store for it */
	struct arena arena;
	struct rule_new def;
	struct text key;    /* in the store: project, a line's end, id */
	struct text origin; /* which set of rules it came with */
	struct pattern *pattern;
	struct pattern **matches; /* of its conditions; NULL where there is none */
	bool sees_own;            /* it asks for payload.ruleId, and knows what it does */
	bool gone;
	bool armed;  /* what the store knows of it is here */
	int enabled; /* by hand: 1, 0; -1: as it was given */
	int64_t fired_ms;
	int64_t n_fired;

	struct schedule *schedule;
	bool looked;     /* its occurrences were looked for since it was armed */
	int64_t base_ms; /* they are dealt with up to here */
	int64_t next_ms;

	struct list watches; /* struct folder_watch */
	struct list pending; /* struct pending: files that changed */
	unsigned n_pending;
	struct timer *debounce;
};

/* Whether a project's rules act; "" is everybody's. */
struct rule_switch {
	struct list link;
	bool on;
	char project[];
};

struct execution {
	struct rule_execution told;
	char *texts; /* that it points into */
};

/* A task that a rule has submitted, so that it is not woken by it. */
struct own_task {
	uint64_t task; /* hashes of project and id, and of the rule's key */
	uint64_t rule;
};

struct automation {
	struct automation_opts opts;
	struct list rules;
	unsigned n_rules;
	struct list switches;
	struct list armings;
	struct list firings;
	unsigned n_firings; /* under way; the others wait for approval */
	unsigned n_waiting;
	size_t waiting_bytes;
	struct old_asks *old_asks; /* NULL: not being looked for */
	bool withdrew;             /* they have been */
	bool stopping;

	struct ticker *clock; /* until the next occurrence, a minute at most */
	int64_t drift_ms;     /* the wall's clock less the steady one */
	struct ticker *slow;  /* for folders that are not there */
	struct event_subscriber *subscriber;
	struct http_client *http;

	/* Of EVENT_STEPS that are left: for our own rules, and for those that the event's project has
	 * brought along, which must not use up ours. */
	uint64_t steps[2];
	uint64_t steps_told_ms; /* when that there are none was last said */
	uint64_t window_ms;     /* of FIRINGS_A_MINUTE: when it began */
	unsigned n_window;
	bool window_told;

	struct own_task own[OWN_TASKS_MAX];
	unsigned own_next;
	struct execution log[RULE_LOG_MAX];
	unsigned log_next, n_log;
	struct rule_info infos[RULES_MAX]; /* what automation_rules shows */
	struct rule_execution shown[RULE_LOG_MAX];
};

int64_t automation_now(const struct automation *a);

/* ---- automation.c ---- */

/* The switch of a project, which is made: on. NULL: no memory. */
struct rule_switch *switch_get(struct automation *a, struct text project);
struct rule_switch *switch_find(const struct automation *a, struct text project);
/* What the store has it under. */
int switch_key(struct arena *a, struct text project, struct text *ret_key);

/* ---- automation_arm.c: what the store knows of rules that are new here ---- */

struct arming;
int arm_new_rules(struct automation *a, struct text origin);
void armings_drop(struct automation *a);

/* ---- automation_rule.c ---- */

/* A copy, checked; refuses with the reason. One reference is the caller's. */
int rule_new(struct automation *a, struct text origin, const struct rule_new *in,
	     struct rule **ret_rule, struct why *why);
void rule_unref(struct rule *r); /* accepts NULL */
struct rule *rule_ref(struct rule *r);

/* ---- automation_match.c ---- */

/* Of the event's tree; NULL: it is not there. */
const struct value *event_field(const struct value *event, struct text path);

/* Whether it came with the project that it is of, not with our settings. */
static inline bool is_of_project(const struct rule *r)
{
	return r->def.project.len > 0 && text_equal(r->origin, r->def.project);
}

/* Around all that is matched for one event: rules that come when its steps are used up are not woken,
 * which is told. */
uint64_t *matching_steps(const struct rule *r);
void matching_begin(struct automation *a);
void matching_end(struct automation *a, struct text type);

bool condition_known(struct text operator);
bool conditions_hold(const struct rule *r, const struct value *event);

/* {{a.b}} as the event has it; what it does not have stays. */
void template_fill(struct automation *a, struct arena *arena, struct text from,
		   const struct value *event, struct buf *out);

/* {type, source, payload} */
int event_tree(struct arena *a, struct text type, struct text source, const struct value *payload,
	       const struct value **ret_event);

/* ---- automation_fire.c ---- */

struct firing {
	struct list link; /* in automation->firings */
	struct work work;
	struct rule *rule;
	struct arena arena;
	const struct value *event;
	struct text type;
	int64_t occurrence_ms; /* of a schedule; 0: none */
	int64_t now_ms;
	struct rule_row row; /* as the store shall have it */
	bool silent;         /* only claimed: the rule is switched off */
	bool claimed;
	unsigned n_faults;     /* of the store */
	automation_done_fn fn; /* of automation_run; NULL: nobody waits */
	void *arg;

	/* for approval */
	char ask[48]; /* the question's id */
	struct approval_waiter *waiter;
	bool waits;
	bool asked;  /* the question is kept, for humans to see */
	size_t held; /* bytes that count while it does */

	/* the action */
	struct child *child;
	struct http_fetch *fetch;
	struct timer *timer;
	unsigned n_tries;
	struct text body;
	struct buf output;

	/* how it ended */
	const char *status;
	struct text task;
	struct text error;
	struct text message;
};

bool rule_is_on(const struct rule *r);

/* By an event or a file: fires if all fits. */
void rule_consider(struct rule *r, struct text type, struct text source,
		   const struct value *payload);
/* An occurrence of its schedule. */
void rule_due(struct rule *r, int64_t occurrence_ms);
/* By hand. */
void rule_run(struct rule *r, automation_done_fn fn, void *arg);

/* The action is over. error may be NULL. */
void firing_done(struct firing *f, const char *status, const char *error);
/* The action could not even begin, since we are stopping: the next start may have it. */
void firing_give_back(struct firing *f);
void firing_free(struct firing *f);
void execution_done(struct execution *e);

/* Whether the task with that id is one that the rule has submitted. */
bool rule_owns(const struct rule *r, struct text project, struct text task);

/* ---- automation_action.c ---- */

void action_start(struct firing *f);
/* A template filled in by its event, in its arena. */
int firing_fill(struct firing *f, struct text from, struct text *ret_text);
/* Ends what runs for it, without a word. */
void action_drop(struct firing *f);

/* ---- automation_ask.c ---- */

/* Acts once somebody has approved. */
void ask_start(struct firing *f);
/* It does not wait any more, if it did. */
void ask_ends(struct firing *f);
/* Whether an approval for that tool is what the rule has asked for itself. */
bool ask_is_own(const struct rule *r, struct text tool);
/* Once: what the daemon before us has asked, nobody waits for. */
void asks_withdraw_old(struct automation *a);

/* ---- automation_schedule.c ---- */

void schedules_look(struct automation *a);
void schedules_set(struct automation *a); /* the clock, for the next of all */

/* ---- automation_watch.c ---- */

void rule_watch(struct rule *r);
void rule_unwatch(struct rule *r);
void watches_retry(void *automation);

/* ---- automation_event.c ---- */

/* Listens to the log if any rule wants to. */
void rules_listen(struct automation *a);
