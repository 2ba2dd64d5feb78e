/*
 * Internal to engine/notify.
 *
 *	an event           hear.c      whom it concerns, and in which words
 *	  → a message      message.c   kept by its way, in order
 *	    → the way      way.c       when it may speak, attempts, what is kept to be changed
 *	      → a look     look.c      an approval as it is now, as text, with its digest
 *	        → the notifier
 *	an answer          answer.c    a token or a reply becomes a decision
 *	a link             link.c      looked at, and used
 */
#pragma once

#include "base/list.h"
#include "engine/event/condition.h"
#include "engine/notify/notify.h"

struct event;
struct event_subscriber;
struct notify_look;
struct zone;

/* ---- when.c ---- */

/* When a notifier may speak: not in its quiet hours, and not too often. */

enum { RATE_MAX = 60 }; /* messages a minute that a notifier can be allowed at most */

struct quiet {
	bool is;
	int from, until;   /* minutes of the day; until may be before from: over midnight */
	struct zone *zone; /* NULL: the machine's */
};

/* "22:00-07:00"; "" for none. An empty zone is the machine's. */
int quiet_parse(const char *hours, const char *zone, struct quiet *ret, struct error *error);
void quiet_done(struct quiet *q);

/* 0: it may speak; otherwise milliseconds until it may. */
int64_t quiet_left(const struct quiet *q, int64_t now_ms);

/* The times of its last messages, on a steady clock. */
struct rate {
	unsigned per_minute; /* 0: any number */
	uint64_t last[RATE_MAX];
	unsigned at;
};

int64_t rate_left(const struct rate *r, uint64_t now_ms);
void rate_note(struct rate *r, uint64_t now_ms);

/* ---- token.c ---- */

/*
 * What a button's token stands for. A token is 128 random bits, is used once, and ends with its
 * time; what it means is known only here, so that nothing that comes back is believed.
 */

enum { TOKEN_LEN = 32, TOKENS_MAX = 512 };

struct token {
	char text[TOKEN_LEN + 1];
	const void *about; /* the message that it stands in */
	enum approval_status decision;
	int64_t until_ms;
	bool used;
};

/* All of one notifier. Zeros are an empty one. */
struct tokens {
	struct token *list;
	unsigned n;
	unsigned room;
};

void tokens_done(struct tokens *t);

/* -ENOBUFS: there are TOKENS_MAX. The text stays valid until the token is forgotten. */
int tokens_add(struct tokens *t, const void *about, enum approval_status decision, int64_t until_ms,
	       char ret_text[TOKEN_LEN + 1]);

enum token_state { TOKEN_GOOD, TOKEN_UNKNOWN, TOKEN_USED, TOKEN_LATE };

/* What it stands for, and whether it counts; it stays as it is. */
enum token_state tokens_see(const struct tokens *t, struct text text, int64_t now_ms,
			    const struct token **ret_token);
/* Uses it, and all others about the same. What it was for is also told of a used or late one. */
enum token_state tokens_use(struct tokens *t, struct text text, int64_t now_ms,
			    const void **ret_about, enum approval_status *ret_decision);
/* Those about it may be used again: the decision could not be kept. */
void tokens_release(struct tokens *t, const void *about);
void tokens_forget(struct tokens *t, const void *about);

/* ---- messages, and their ways ---- */

enum {
	MESSAGE_ARENA_MAX = 256 << 10,
	LOOK_ARENA_MAX = 24 << 20,
	RULE_ARENA_MAX = 64 << 10,
	KEY_MAX = 160,
	OUTCOME_MAX = 300,
	BY_MAX = NOTIFY_NAME_MAX + NOTIFIER_WHO_MAX + 32,
	AGAIN_MS = 1000, /* before the second attempt; it doubles */
	AGAIN_MAX_MS = 60 * 1000,
	RETRY_MAX_MS = 10 * 60 * 1000, /* that a server can make us wait */
	LOOK_AT_MS = 60 * 1000,        /* a quiet time is looked at again after this */
	WAY_LINK_MAX = NOTIFY_BASE_MAX + 160,
	LINK_URL_MAX = NOTIFY_BASE_MAX + 64,
};

enum message_stage {
	MESSAGE_WAITS, /* not sent yet */
	MESSAGE_GOES,  /* being looked at, or sent */
	MESSAGE_SENT,
};

enum message_about { ABOUT_EVENT, ABOUT_APPROVAL, ABOUT_TEST };

struct notify_message {
	struct list link; /* in way->messages */
	struct way *way;
	enum message_about about;
	enum message_stage stage;
	char key[KEY_MAX]; /* "approval:ID": at most one message of a way has it */
	char id[160];      /* of the approval */
	struct arena arena;
	struct text title, text;
	struct notice_field fields[NOTICE_FIELDS_MAX];
	unsigned n_fields;
	bool urgent;
	enum approval_kind kind;
	char digest[NOTICE_DIGEST_LEN + 1]; /* of what was shown */
	char ref[NOTICE_REF_MAX + 1];
	char outcome[OUTCOME_MAX]; /* what came of it; "": still open */
	bool changed;              /* the message that was sent does not say so yet */
	bool has_links;            /* kept, so that they are known */
	bool gone;                 /* dropped as soon as it is not under way any more */
	unsigned n_tries;
	struct notify_look *look;
	struct notify_test *test;
};

/* A notifier with its rule. */
struct way {
	struct list link;
	struct notify *notify;
	struct notifier *notifier; /* NULL: it could not be made */
	enum notifier_kind kind;
	char name[NOTIFY_NAME_MAX + 1];
	char on[NOTIFY_TYPES_MAX * NOTIFY_TYPE_LEN];
	struct arena arena; /* of its conditions */
	struct conditions conditions;
	char *web_link; /* "": the page's */
	int64_t button_ms;
	bool links;
	struct quiet quiet;
	struct rate rate;
	struct tokens tokens;
	struct list messages;
	unsigned n_messages;
	struct notify_message *going;
	struct timer *timer;
	uint64_t not_before_ms; /* steady: after a failure */
	unsigned n_failures;    /* in a row */
	uint64_t sent, failed, dropped, answers, ignored;
	uint64_t untold; /* dropped, and the next message says so */
	int64_t sent_ms, failed_ms;
	char error[200];
	bool failing; /* was logged */
	bool reading_fails;
};

struct notify {
	struct notify_opts opts;
	struct list ways;
	unsigned n_ways;
	struct event_subscriber *subscriber;
	struct list tests;
	struct rate wrong; /* links */
	uint64_t steps;    /* that are left to expressions, for this event */
	uint64_t steps_told_ms;
	bool stopping;
};

struct notify_test {
	struct list link;
	struct notify *notify;
	struct notify_message *message; /* NULL: it is gone */
	struct timer *timer;
	notify_test_fn fn;
	void *arg;
	int result; /* told by the timer, so that fn is not called from within */
	bool asks, sent, over;
	const char *pressed;
	char by[BY_MAX];
	struct error error;
};

/* ---- message.c ---- */

/* A new one at the end, or the one with that key, made empty again. NULL: no memory, or no room,
 * which is counted. */
struct notify_message *message_get(struct way *w, enum message_about about, const char *key);
struct notify_message *message_find(const struct way *w, const char *key);
struct notify_message *message_find_ref(const struct way *w, const char *ref);
struct notify_message *message_of_token(const struct way *w, const void *about);
/* The message that asks for this approval; NULL: there is none. */
struct notify_message *message_asking(const struct way *w, struct text id);
/* Makes it, if there is none. */
void message_ask(struct way *w, struct text id);
/* Now, or once it is not under way any more. */
void message_drop(struct notify_message *m);
/* Its texts are of no use any more; what came of it is. */
void message_shrink(struct notify_message *m);
void message_field(struct notify_message *m, const char *name, struct text value);

/* ---- way.c ---- */

/* The way of that name; NULL: there is none. */
struct way *way_find(const struct notify *n, struct text name);

void way_free(struct way *w);
/* Sends what may be sent now, and comes back for the rest. */
void way_pump(struct way *w);
/* The look at an approval has ended. */
void way_looked(struct way *w, struct notify_message *m, bool shown);
bool way_wants(const struct way *w, struct text type);
/* Where there is more to see of it; {NULL, 0}: nowhere. It may be in `out`. */
struct text way_link(const struct way *w, const struct notify_message *m, char out[WAY_LINK_MAX]);

/* ---- look.c ---- */

/* Reads the approval and words it; way_looked follows. */
int look_start(struct notify_message *m);
void look_leave(struct notify_look *l); /* accepts NULL */
/* The digest of what is asked. Any thread. */
void approval_digest(const struct approval *row, char out[NOTICE_DIGEST_LEN + 1]);
/* What still waits is told to this way, too. */
void look_at_pending(struct way *w);

/* ---- words.c; any thread ---- */

/* Every member of the input in full, cut with a mark if it is too long. `host` is where it was asked,
 * if the row does not say. */
int words_of_approval(struct arena *a, const struct approval *row, const char *host,
		      int (*to_json)(struct arena *a, const struct value *v, struct text *ret),
		      struct text *ret_title, struct text *ret_text);
/* Without what changes how a text is shown: control characters, marks of direction. */
int words_plain(struct arena *a, struct text from, size_t max, struct text *ret);
/* "Approved by telegram:phone (anna)" */
void words_of_outcome(enum approval_status status, struct text by, struct text comment, char *out,
		      size_t size);

/* ---- hear.c ---- */

int hear_start(struct notify *n);
/* Whether its conditions hold for the request that the row is of. */
bool hear_meant(struct way *w, struct arena *a, const struct approval *row);

/* ---- answer.c ---- */

void answer_take(struct way *w, const struct notice_answer *answer);
/* Decides about a message's approval. `from` and `told` may be NULL. 0: `told` follows. */
int answer_decide(struct way *w, const struct notify_message *m, const struct notice_answer *a,
		  enum approval_status decision, const struct approval_client *from,
		  notify_link_fn told, void *told_arg, struct error *error);

/* ---- test.c ---- */

void test_sent(struct notify_test *t);
void test_failed(struct notify_test *t, const char *what);
void test_pressed(struct notify_test *t, enum approval_status decision, const char *by);
void tests_stop(struct notify *n);
