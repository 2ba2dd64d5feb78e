/*
 * Following what happens: events of the daemon, as they come, over any number of its restarts; or
 * one call that takes its time.
 */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

/* A subscription to events. All callbacks get `arg`. */
struct follow {
	struct cli *cli;
	void *arg;
	/* The parameters of event.subscribe, from where we are. */
	struct koine_json *(*params)(void *arg);
	/* The subscription was made, for the first time or again; may be NULL. */
	void (*subscribed)(void *arg, const struct koine_value *result);
	/* A notification has come. */
	void (*told)(void *arg, struct text method, const struct koine_value *params);
	/* Before each wait: looks for what is new, and prints it; may be NULL. As koine_client_call;
	 * the connection may be lost within it. */
	int (*look)(void *arg, struct koine_answer **ret_failed);
	bool leaves;   /* Ctrl-C ends this, and not the program */
	bool ended;    /* set by a callback: there is no more to come */
	bool has_news; /* the engine's own: something was told since the last look began */
};

/* Follows on cli->client until something ends it: returns 0 for `ended`, EXIT_INTERRUPTED for
 * Ctrl-C, else an exit code after saying why. */
int follow_events(struct follow *f);

/*
 * Waits for the answer of a call that is under way: for *is_done, which its callback sets. Ctrl-C
 * calls `interrupted`, and once more ends it. Returns whether it is done.
 */
bool follow_answer(struct koine_client *c, const bool *is_done, void (*interrupted)(void *arg),
		   void *arg);
