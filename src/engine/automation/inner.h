/*
 * Internal to engine/automation: rules, and what they are doing. Everything belongs to the loop.
 *
 *	a time, a file, an event     trigger_time.c, trigger_files.c, trigger_event.c
 *	  → rule_consider            switched on, conditions, cooldown     firing.c
 *	    → the store              the occurrence is claimed, and the firing is recorded
 *	    → the approver           if the rule needs approval            approval.c
 *	      → the action           action.c, template.c
 *	        → the outcome        in the log, and as an event           outcome.c
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/pattern/pattern.h"
#include "engine/automation/automation.h"
#include "engine/automation/schedule.h"
#include "engine/event/condition.h"
#include "engine/event/event.h"
#include "engine/record/record.h"

struct approval_waiter;
struct changes;
struct child;
struct http_client;
struct http_fetch;

enum {
	RULE_ID_MAX = 128,
	RULE_PATHS_MAX = 16,
	RULE_NAMES_MAX = 64, /* names to ignore, or extensions */
	RULE_ARENA_MAX = 9 << 20,
	FIRING_ARENA_MAX = 16 << 20,
	FIRINGS_MAX = 64,       /* under way, by events and files */
	FIRINGS_DUE_MAX = 1024, /* including those of schedules, which may have to catch up */
	PROMPT_MAX = 1 << 20,   /* bytes, after filling in */
	OWN_TASKS_MAX = 1024,
};

struct connection;

struct live_rule {
	struct list link; /* in automation->rules; in no list once it is gone */
	struct automation *automation;
	unsigned n_refs; /* held by the list, by firings, and by reads of the store for it */
	struct arena arena;
	struct rule def;    /* as it was given, and its state */
	struct text key;    /* in the store: project, newline, id */
	struct text origin; /* which set of rules it came with */
	struct pattern *pattern;
	struct conditions conditions;
	bool sees_own; /* it has a condition on payload.ruleId: its own actions wake it, too */
	bool gone;
	bool armed;  /* its state has been read from the store */
	int by_hand; /* 1: switched on, 0: off; -1: as it was given */

	struct schedule *schedule;
	bool looked;     /* its occurrences have been checked since it was armed */
	int64_t base_ms; /* they have been handled up to here */
	int64_t next_ms;

	struct list watches; /* struct folder_watch */
	struct changes *changes;
};

/* Whether a project's rules act; "" is the global switch. */
struct rule_switch {
	struct list link;
	bool on;
	char project[];
};

struct execution {
	struct rule_execution told;
	char *texts; /* the texts that it points to */
};

/* A task that a rule has submitted: it must not wake that rule. */
struct own_task {
	uint64_t task; /* hashes of project and id, and of the rule's key */
	uint64_t rule;
};

struct automation {
	struct automation_opts opts;
	struct records records;
	struct list rules;
	unsigned n_rules;
	struct list switches;
	struct list armings;
	struct list firings;
	unsigned n_firings; /* under way; the others wait for approval */
	unsigned n_waiting;
	size_t waiting_bytes;
	bool withdrew; /* the questions of an earlier daemon */
	bool stopping;

	struct ticker *clock; /* runs until the next occurrence, a minute at most */
	int64_t drift_ms;     /* the wall clock minus the steady clock */
	struct ticker *slow;  /* for folders that do not exist */
	struct event_subscriber *subscriber;
	struct http_client *http;

	/* How many of EVENT_STEPS are left: for our own rules, and for those that the event's
	 * project brought along, which must not use up ours. */
	uint64_t steps[2];
	uint64_t steps_told_ms; /* when it was last logged that none are left */
	uint64_t minute_ms;     /* start of the minute in which firings are counted */
	unsigned n_this_minute;

	struct own_task own[OWN_TASKS_MAX];
	unsigned own_next;
	struct execution log[RULE_LOG_MAX];
	unsigned log_next, n_log;
	struct rule_execution shown_log[RULE_LOG_MAX];
};

/* ---- automation.c ---- */

int64_t automation_now(const struct automation *a);
/* Refuses a rule that does not exist (NULL), or no longer exists. */
int check_running(const struct automation *a, struct error *error);
/* project {NULL, 0}: any; refused if two have a rule with that id. */
int rule_find(struct automation *a, struct text project, struct text id,
	      struct live_rule **ret_rule, struct error *error);

/* ---- rule.c ---- */

/* Makes a checked copy; refuses with the reason. The caller owns one reference. */
int rule_new(struct automation *a, struct text origin, const struct rule *in,
	     struct live_rule **ret_rule, struct error *error);
struct live_rule *rule_ref(struct live_rule *r);
void rule_unref(struct live_rule *r); /* accepts NULL */

/* "PROJECT\nID": a rule's key in the store. No rule has an empty id, so "PROJECT\n" is the
 * project's switch. */
int rule_key(struct arena *a, struct text project, struct text id, struct text *ret_key);

/* Whether it came with its project, not with our settings. */
static inline bool is_of_project(const struct live_rule *r)
{
	return r->def.project.len > 0 && text_equal(r->origin, r->def.project);
}

/* ---- switch.c ---- */

/* As switched by hand, or as it was given, regardless of its project's switch. */
bool rule_is_enabled(const struct live_rule *r);
bool rule_is_on(const struct live_rule *r);
/* Whether neither the global switch nor that project's is off. */
bool switches_are_on(const struct automation *a, struct text project);
struct rule_switch *switch_find(const struct automation *a, struct text project);
/* The switch of a project; if it is new, it is on. NULL: no memory. */
struct rule_switch *switch_get(struct automation *a, struct text project);

/* ---- arming.c: the stored state of new rules ---- */

int arm_new_rules(struct automation *a, struct text origin);
void armings_drop(struct automation *a);

/* ---- trigger_event.c: the limit for expressions ---- */

/* These enclose all matching for one event: once its steps are used up, further rules are not
 * woken, which is logged. */
void matching_begin(struct automation *a);
uint64_t *matching_steps(const struct live_rule *r);
void matching_end(struct automation *a, struct text type);

/* ---- template.c ---- */

/* Replaces {{a.b}} by the event's field, in the arena; unknown fields stay as written. */
int template_fill(const struct automation *a, struct arena *arena, struct text from,
		  const struct value *event, struct text *ret_text);

/* ---- firing.c ---- */

enum outcome {
	OUTCOME_SUBMITTED,
	OUTCOME_COMMAND_RUN,
	OUTCOME_WEBHOOK_SENT,
	OUTCOME_NOTIFIED,
	OUTCOME_NO_DESKTOP,
	OUTCOME_DENIED,
	OUTCOME_EXPIRED,
	OUTCOME_SUPERSEDED,
	OUTCOME_NO_APPROVER,
	OUTCOME_TOO_MANY_WAITING,
	OUTCOME_ERROR,
};

struct firing {
	struct list link; /* in automation->firings */
	struct work work;
	struct live_rule *rule;
	struct arena arena;
	const struct value *event;
	struct text type;
	int64_t occurrence_ms; /* the time of a schedule's occurrence; 0: none */
	int64_t seq;           /* of the event, which other hosts hear, too; 0: none */
	struct text about;     /* the task that the event is about; {NULL, 0}: none */
	struct text project;   /* of that task */
	int64_t was_fired_ms;  /* the rule, before this */
	int64_t now_ms;
	struct rule_memory kept; /* as it is to be stored */
	bool silent;             /* only claimed, since the rule is switched off */
	bool claimed;
	unsigned n_faults;     /* of the store */
	automation_done_fn fn; /* for automation_run; NULL: nobody waits */
	void *arg;

	/* for approval */
	char ask[48]; /* the question's id */
	struct approval_waiter *waiter;
	bool waits;
	bool asked;  /* the question is stored, so that humans can see it */
	size_t held; /* bytes that count while it is waiting */

	/* the action */
	struct child *child;
	struct http_fetch *fetch;
	struct timer *timer;
	unsigned n_tries;
	bool late;
	struct text body;
	struct buf output;
	int64_t output_bytes; /* all that the program printed */
	uint64_t started_ms;  /* steady clock; 0: no program was started */
	int64_t duration_ms;
	int exit_status; /* of the program; -1: none */
	int exit_signal; /* 0: none */

	/* how it ended */
	enum outcome outcome;
	struct text task;
	struct text error;
	struct text message;
};

/* What may fire a rule. */
struct happening {
	struct text type, source;
	struct text project; /* {NULL, 0}: none */
	struct text task;    /* {NULL, 0}: none */
	int64_t seq;         /* its number, if all hosts hear of it; 0: only this one does */
	bool logged;
	const struct value *payload;
};

/* For an event or a file: fires if everything matches. */
void rule_consider(struct live_rule *r, const struct happening *h);
/* An occurrence of its schedule. */
void rule_due(struct live_rule *r, int64_t occurrence_ms);
/* By hand. */
int rule_run(struct live_rule *r, automation_done_fn fn, void *arg, struct error *error);

/* Whether it fired too shortly before. */
bool rule_cools(const struct live_rule *r, int64_t fired_ms, int64_t now);

/* It cannot act, since we are stopping: the next start may handle its occurrence. */
void firing_give_back(struct firing *f);
void firing_free(struct firing *f);

/* ---- outcome.c ---- */

/* The action has ended: it is logged, reported as an event, and freed. error may be NULL. */
void firing_done(struct firing *f, enum outcome outcome, const char *error);
/* The same for an error, or a refusal with its reason. */
void firing_fail(struct firing *f, int result, const struct error *error);
void execution_done(struct execution *e);

/* Whether the rule has submitted the task with that id. */
bool rule_owns(const struct live_rule *r, struct text project, struct text task);

/* ---- action.c ---- */

void action_start(struct firing *f);
/* What it would do, exactly as it would be used: the prompt, command, address or message. */
int action_text(struct firing *f, const char **ret_name, struct text *ret_text);
/* Ends what runs for it, without calling anything. */
void action_drop(struct firing *f);

/* ---- approval.c ---- */

/* Acts once somebody has approved. */
void firing_ask(struct firing *f);
/* Stops its waiting, if it was waiting. */
void firing_stop_waiting(struct firing *f);
/* Whether an approval for that tool is one that the rule itself has asked for. */
bool rule_asked_for(const struct live_rule *r, struct text tool);
/* Called once: withdraws what the previous daemon asked, since nobody waits for it. */
void asks_withdraw_old(struct automation *a);

/* ---- hosts.c ---- */

/* Runs on the writer's thread. Whether this firing is ours: its event is claimed, is none of the rule's own
 * doing, and the rule has not fired on another host just before. */
int firing_claim_event(struct firing *f, struct connection *c, bool *ret_claimed);
int automation_follow(struct automation *a);

/* ---- trigger_time.c ---- */

/* Handles what is due; it is called when something is due, and once a minute. */
void schedules_look(struct automation *a);
void schedules_set(struct automation *a); /* sets the clock for the next one of all rules */

/* ---- trigger_files.c ---- */

void rule_watch(struct live_rule *r);
void rule_unwatch(struct live_rule *r);

/* ---- trigger_event.c ---- */

/* Subscribes to the log if any rule needs it. */
void rules_listen(struct automation *a);
