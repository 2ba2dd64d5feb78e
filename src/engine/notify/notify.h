/*
 * Notices: when something needs a human or has ended, the notifiers of the settings say so, and
 * bring decisions back. What is told, when, how often and what a button means is decided here;
 * how a notice travels is the business of agent/notify.
 *
 * A notice about an approval shows the whole of what is asked, and carries two buttons. Each has
 * a token for one use; a decision counts only if what is asked is still what was shown, and only
 * if nobody has decided before. The message then says who answered. After a restart old buttons
 * mean nothing, and what still waits is shown anew.
 *
 * What has no buttons may carry links instead, to a page of ours that asks once more.
 *
 * All of this belongs to the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/notify/notifier.h"
#include "base/arena.h"
#include "model/approval.h"
#include "model/event.h"
#include "model/host.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct approval_client;
struct approvals;
struct events;
struct notify;

enum {
	NOTIFY_WAYS_MAX = 16,
	NOTIFY_TYPES_MAX = 16, /* of one `on` */
	NOTIFY_TYPE_LEN = 64,
	NOTIFY_MESSAGES_MAX = 128, /* of one notifier: waiting, or kept to be changed */
	NOTIFY_TRIES_MAX = 8,      /* of one message */
	NOTIFY_NAME_MAX = 40,
	NOTIFY_BASE_MAX = 300,
	NOTIFY_WRONG_PER_MINUTE = 30, /* links that are not known; more are told to wait */
};

struct notify_opts {
	char host[HOST_NAME_MAX_BYTES + 1]; /* where we are, for people */
	struct loop *loop;
	struct workers *workers;
	struct events *events;
	struct approvals *approvals;
	/* A tree as JSON text, in the arena. Any thread. */
	int (*to_json)(struct arena *a, const struct value *v, struct text *ret_text);
	/* "https://HOST" where links lead to; false: nowhere now. NULL: never. */
	bool (*base)(void *arg, char out[NOTIFY_BASE_MAX]);
	void *arg;
};

int notify_new(const struct notify_opts *opts, struct notify **ret_notify);
/* Sends nothing more, and reads nothing more. Accepts NULL. */
void notify_stop(struct notify *n);
/* Accepts NULL; call it after the last work has finished. */
void notify_free(struct notify *n);

/* What the settings say of one. Texts are copied. */
struct notify_rule {
	const char *name;
	enum notifier_kind kind;
	const char *on; /* types of events, with commas: "approval, task.*" */
	const struct event_condition *conditions; /* on such an event: all must hold */
	unsigned n_conditions;
	const char *quiet; /* "22:00-07:00" or "" */
	const char *zone;  /* of quiet; "": the machine's */
	const char *link;  /* added to each message; "": the page's, where others can reach it */
	unsigned per_minute;
	int64_t button_ms; /* how long a button or a link counts */
	bool links;        /* without buttons: what is told carries links that decide */
};

/* Refuses an invalid one. */
int notify_check_rule(const struct notify_rule *rule, struct error *error);

/* Takes the notifier, also on failure; NULL: it could not be made, and `trouble` says why. Events
 * from now on count, and approvals that wait already. */
int notify_add(struct notify *n, const struct notify_rule *rule, struct notifier *notifier,
	       const char *trouble, struct error *error);
/* Ends all of them: the settings were read again. */
void notify_clear(struct notify *n);

struct notify_state {
	const char *name;
	const char *kind;
	const char *on;
	const char *state; /* "ok", "quiet", "failing", "off" */
	unsigned waiting;
	uint64_t sent, failed, dropped, answers, ignored;
	int64_t sent_ms; /* UTC; 0: never */
	int64_t failed_ms;
	const char *error; /* the last one; "" */
};

unsigned notify_count(const struct notify *n); /* 0 for NULL */
void notify_get(const struct notify *n, unsigned i, struct notify_state *ret);

/* ---- links ---- */

/* What a link would decide. Texts stay valid until the loop's next turn. */
struct notify_link {
	struct text title, text; /* as they were told */
	enum approval_status decision;
	int64_t until_ms;
};

/*
 * Looks at a link by its token, and changes nothing. REFUSE_NOT_FOUND: it is not known, or not any
 * more; REFUSE_CONFLICT: answered already; REFUSE_FORBIDDEN: too late; REFUSE_LIMIT: too many were
 * wrong. Accepts NULL.
 */
int notify_link_look(struct notify *n, struct text token, struct notify_link *ret_link,
		     struct error *error);

/* What came of it, in words. result as of approval_decide. */
typedef void (*notify_link_fn)(void *arg, int result, const char *words);

/* Decides as the link says, for a client of ours or (NULL) one that we cannot look at. 0: fn
 * follows. */
int notify_link_use(struct notify *n, struct text token, const struct approval_client *from,
		    notify_link_fn fn, void *arg, struct error *error);

/* ---- a test ---- */

struct notify_test_result {
	bool sent;
	bool asks;           /* it has buttons */
	const char *pressed; /* "approve", "deny"; NULL: nothing */
	const char *by;
};

typedef void (*notify_test_fn)(void *arg, int result, const struct notify_test_result *t,
			       const struct error *error);

/*
 * Sends one, whatever the hour and the rate, and waits for its button. fn is called once:
 * REFUSE_NOT_FOUND, REFUSE_UNAVAILABLE (it could not be sent), REFUSE_TIMEOUT (nobody pressed),
 * REFUSE_LIMIT. Not from within.
 */
struct notify_test;
int notify_test_start(struct notify *n, struct text name, int64_t timeout_ms, notify_test_fn fn,
		      void *arg, struct notify_test **ret_test, struct error *error);
void notify_test_leave(struct notify_test *t); /* accepts NULL; fn is not called any more */
