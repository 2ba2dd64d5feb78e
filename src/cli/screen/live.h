/*
 * A live view: the screen, its keys, and a connection that comes back when koined does. The view
 * asks anew what an event says has changed; it never asks while nothing has happened, unless its
 * `due` says so.
 */
#pragma once

#include "cli/kit/call.h"
#include "cli/screen/keys.h"
#include "cli/screen/screen.h"

enum { LIVE_NEVER = 1 << 30 }; /* milliseconds */

struct live {
	struct cli *cli;
	void *arg; /* for all callbacks */
	/* The types of events that are wanted. */
	const struct option_list *types;
	/* koined is here, for the first time or again: nothing that was known counts. */
	void (*back)(void *arg);
	/* It left; what was asked is not answered. */
	void (*away)(void *arg);
	void (*told)(void *arg, const struct koine_value *event);
	/* Called in every round while koined is here: asks what is to be asked. Returns in how many
	 * milliseconds it wants to be called even if nothing happens. */
	int (*ask)(void *arg);
	void (*key)(void *arg, int key);
	void (*draw)(void *arg, struct canvas *c);
	/* ---- for the view ---- */
	struct screen screen;
	bool here;        /* koined has answered, and has not left */
	bool was_here;    /* at any time */
	bool changed;     /* set it, and the view is drawn */
	uint64_t n_calls; /* that were made */
	/* ---- its own ---- */
	bool subscribing;
	struct keys keys;
	uint64_t retry_ms;
	unsigned delay_ms;
	uint64_t drawn_ms;
	uint64_t ask_ms;
};

/* Connects, and runs until somebody leaves. An exit code. */
int live_run(struct live *l);

/* Takes the params. False: the connection is lost, and cb may have been called. */
bool live_call(struct live *l, const char *method, struct koine_json *params, koine_answer_cb cb,
	       void *arg);

/* Whether to use an answer. A lost connection is retried; an error ends the view, since without
 * an answer there is nothing to show. */
bool live_took(struct live *l, const char *method, int result, const struct koine_answer *a);

/* What to show while koined is not here. */
const char *live_away_words(const struct live *l);

/* Whether that says only that koined left. */
bool live_is_loss(int result, const struct koine_answer *a);
void live_lost(struct live *l);
