/* Internal to agent/notify: what the kinds of notifiers share. */
#pragma once

#include "agent/notify/notifier.h"
#include "base/buf.h"
#include "base/value.h"
#include "io/http_client.h"

enum {
	NOTIFIER_BODY_MAX = 64 << 10,   /* of a request */
	NOTIFIER_ANSWER_MAX = 64 << 10, /* of an answer to one */
	NOTIFIER_READ_MAX = 1 << 20,    /* of answers that are read at once, or in one stream */
	NOTIFIER_URL_MAX = 512,
	NOTIFIER_SEND_MS = 20 * 1000,
	NOTIFIER_AGAIN_MS = 1000, /* before reading is tried again; it doubles */
	NOTIFIER_AGAIN_MAX_MS = 60 * 1000,
	NOTIFIER_ARENA_MAX = 8 << 20,
};

struct notifier_ops {
	size_t size; /* of the kind's own struct, all zero at first */
	/* Of the common part, only the loop is set by then. */
	int (*open)(struct notifier *n, const struct notifier_opts *o, struct error *error);
	/* Also if it could not be opened. NULL: there is nothing to do. */
	void (*close)(struct notifier *n);
	int (*send)(struct notifier *n, const struct notice *notice);
	void (*acknowledge)(struct notifier *n, const char *press, const char *words); /* or NULL */
	void (*start)(struct notifier *n);                                             /* or NULL */
	bool asks;
	bool replaces;
};

extern const struct notifier_ops ntfy_notifier, telegram_notifier, webhook_notifier,
	command_notifier;

/* The first member of each kind's own struct. */
struct notifier {
	const struct notifier_ops *ops;
	struct loop *loop;
	struct http_client *http;
	struct notifier_events events;
	void *arg;
	char *name;
	char *url;
	char *key; /* "" for none; wiped when it is freed */
	struct http_fetch *sending;
	struct http_fetch *reading;
	struct timer *again; /* for reading */
	unsigned again_ms;   /* how long it waits next; 0: reading works */
	bool trouble;        /* was told */
};

/* Posts JSON, or what `headers` say; on_done as for a fetch. */
int notifier_post(struct notifier *n, const char *url, const char *const *headers,
		  const struct buf *body, void (*on_done)(void *arg, const struct http_answer *a),
		  void *arg, struct http_fetch **ret_fetch);

/* How an attempt went, by the answer's status; the ref is left empty. */
struct notice_sent notifier_outcome(const struct notifier *n, const struct http_answer *a);

/* Reading has failed, or works: says so when that changes, and tries again later. */
void notifier_reading_failed(struct notifier *n, const char *what, unsigned retry_ms);
void notifier_reading_works(struct notifier *n);

/* Replaces the secret by stars. */
void notifier_scrub(char *text, const char *secret);

/* Whether it is made of letters, digits, '-' and '_' alone, and fits. */
bool notifier_is_word(struct text t, size_t max);

/* A small tree of an answer; NULL: it is no JSON, or too much of it. */
const struct value *notifier_read(struct arena *a, struct text body);

/* "{approval.tool}" by the notice's fields; escaped for HTML if that is wished, and for JSON if the
 * template is JSON. */
int template_write(struct buf *out, const char *template, bool html, const struct notice *notice);
bool template_is_json(const char *template);

/* All fields' names that a notice may have, NULL-ended. */
extern const char *const notice_field_names[];
