/*
 * Following what happens: the daemon's events as they arrive, across any number of its
 * restarts; or one call that takes a while.
 */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

/* A subscription to events. All callbacks get `arg`. */
struct follow {
	struct cli *cli;
	void *arg;
	/* The parameters of event.subscribe, from our current position. */
	struct koine_json *(*params)(void *arg);
	/* The subscription was made, for the first time or again; may be NULL. */
	void (*subscribed)(void *arg, const struct koine_value *result);
	/* A notification has arrived. */
	void (*told)(void *arg, struct text method, const struct koine_value *params);
	/* Before each wait: looks for what is new, and prints it; may be NULL. Returns as
	 * koine_client_call does; the connection may be lost in it. */
	int (*look)(void *arg, struct koine_answer **ret_failed);
	bool leaves;   /* Ctrl-C ends this, not the program */
	bool ended;    /* set by a callback: nothing more will come */
	bool has_news; /* internal: an event arrived since the last look began */
};

/* Follows on cli->client until something ends it. Returns 0 for `ended`, EXIT_INTERRUPTED for
 * Ctrl-C, otherwise an exit code after saying why. */
int follow_events(struct follow *f);

/*
 * Waits for the answer of a pending call: for *is_done, which its callback sets. Ctrl-C calls
 * `interrupted`, and a second one ends the wait. Returns whether it is done.
 */
bool follow_answer(struct koine_client *c, const bool *is_done, void (*interrupted)(void *arg),
		   void *arg);
