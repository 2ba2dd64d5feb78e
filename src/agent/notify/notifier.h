/*
 * A way to reach somebody who is not at this machine: a push server (ntfy, Telegram), any web
 * server (webhook), or a program of the user's. One vtable for all of them.
 *
 * Some carry buttons and bring answers back, by connections that we make ourselves: nothing
 * listens. What a button stands for is not known here; it has a token that means nothing to
 * anybody else.
 *
 * A notifier makes one attempt and says how it went; whoever uses it decides about another. All
 * of it belongs to the loop's thread. Secrets appear in no text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/error.h"
#include "io/loop.h"

struct environment;
struct notifier;

enum notifier_kind {
	NOTIFIER_NTFY,
	NOTIFIER_TELEGRAM,
	NOTIFIER_WEBHOOK,
	NOTIFIER_COMMAND,
	N_NOTIFIER_KINDS,
};

extern const char *const notifier_kind_names[N_NOTIFIER_KINDS];

enum {
	NOTICE_TITLE_MAX = 200,
	NOTICE_TEXT_MAX = 3500, /* bytes; ntfy takes 4096, and Telegram as many units */
	NOTICE_BUTTONS_MAX = 2,
	NOTICE_FIELDS_MAX = 20,
	NOTICE_REF_MAX = 64,
	NOTICE_DIGEST_LEN = 64,
	NOTIFIER_SECRET_MAX = 1024,
	NOTIFIER_WHO_MAX = 128,
	NOTIFIER_TEMPLATE_MAX = 2048,
};

struct notice_button {
	const char *label;
	const char *token;
};

/* A fact about it by name: "approval.tool". */
struct notice_field {
	const char *name;
	struct text value; /* {NULL, 0} counts as "" */
};

struct notice {
	struct text title;
	struct text text;
	struct text link; /* for more; {NULL, 0}: none */
	bool urgent;      /* somebody waits for it */
	bool silent;      /* nobody must be woken by it */
	struct notice_button buttons[NOTICE_BUTTONS_MAX];
	unsigned n_buttons;
	struct notice_field fields[NOTICE_FIELDS_MAX];
	unsigned n_fields;
	const char *ref; /* of the message that it replaces; "": it is a new one */
};

/* How an attempt went. */
struct notice_sent {
	int error;                    /* 0; -errno otherwise, and `text` says what went wrong */
	bool passing;                 /* another attempt may succeed */
	unsigned retry_ms;            /* not before that; 0: not said */
	char text[160];               /* without secrets */
	char ref[NOTICE_REF_MAX + 1]; /* names the message, to replace it; or "" */
};

/* Somebody has pressed a button, or replied to a message. */
struct notice_answer {
	struct text token;   /* of the button; {NULL, 0}: it is a reply */
	const char *ref;     /* of the message; "": not known */
	struct text comment; /* of a reply */
	const char *who;     /* the person's name there, or "" */
	const char *press;   /* for notifier_acknowledge; or "" */
};

struct notifier_events {
	/* Once for each send, not before it has returned. */
	void (*on_sent)(void *arg, const struct notice_sent *sent);
	void (*on_answer)(void *arg, const struct notice_answer *answer);
	/* Whether answers can be read: NULL, or what is wrong. Called when that changes. */
	void (*on_reading)(void *arg, const char *trouble);
};

struct notifier_opts {
	const char *name;
	enum notifier_kind kind;
	const char *url;
	/* ntfy: the key may be "". The second topic is where its buttons publish; "": one is made
	 * that nobody else knows. */
	const char *key;
	const char *topic;
	const char *reply_topic;
	int64_t chat;         /* Telegram */
	int64_t user;         /* Telegram: only this one counts; 0: whoever is in the chat */
	const char *template; /* webhook; "": ours */
	bool escape_html;     /* of what fills the template */
	const char *command;
	const struct environment *env; /* of the command; NULL: ours */
};

/* Refuses what cannot work, naming the setting. Texts are copied. */
int notifier_new(struct loop *l, const struct notifier_opts *opts, struct notifier **ret_notifier,
		 struct error *error);
/* Accepts NULL; no callback comes any more. */
void notifier_free(struct notifier *n);

/* Before the first send. */
void notifier_start(struct notifier *n, const struct notifier_events *events, void *arg);

/* Whether it has buttons, and whether a message can be replaced. */
bool notifier_asks(const struct notifier *n);
bool notifier_replaces(const struct notifier *n);

/* One at a time. 0: on_sent follows. */
int notifier_send(struct notifier *n, const struct notice *notice);

/* Tells whoever pressed a button what came of it, where that is possible. */
void notifier_acknowledge(struct notifier *n, const char *press, const char *words);

/* Refuses a URL of no use; a setting's check. */
int notifier_check_url(const char *url, struct error *error);
/* Refuses a template with a field that does not exist. */
int notifier_check_template(const char *template, struct error *error);

/* What identifies these texts together: SHA-256, in hexadecimal digits. Any thread. */
void notice_digest(const struct text *parts, unsigned n, char out[NOTICE_DIGEST_LEN + 1]);
