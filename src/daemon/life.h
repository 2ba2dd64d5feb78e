/* koined while it runs: what it holds, and its three files: daemon.c starts and ends it, listen.c opens
 * its listeners, stop.c stops it in good order. */
#pragma once

#include "daemon/agents.h"
#include "daemon/backstage.h"
#include "daemon/daemon.h"
#include "daemon/environments.h"
#include "daemon/hosts.h"

struct daemon {
	struct settings *settings;
	reload_fn reload;
	struct arena arena; /* of what lives as long as the daemon */
	struct loop *loop;
	struct server *server;
	struct services *services;
	struct backstage stage;
	struct background background;
	struct environments environments;
	struct hosts hosts;
	struct registry *registries[DIALECTS_MAX]; /* as in the array of dialects */
	struct agents agents;                      /* until they are the chat's */
	struct agents_renewed *renewed;
	struct housekeeping *housekeeping;
	struct tree_keeper *keeper;
	struct signal_watch *term;
	struct signal_watch *interrupt;
	struct signal_watch *hangup;
	struct ticker *watchdog;
	struct timer *last_words;
	struct timer *patience;
	bool server_stopped;
	bool tasks_stopped;
	bool sessions_stopped;
	bool processes_stopped;
	bool hurried; /* told to stop twice, or it took too long */
};

/* ---- listen.c ---- */

/* Methods by name, for each dialect. */
int registries_make(struct daemon *d);
void registries_free(struct daemon *d);

/* A project that is broken is passed over; where nothing else is left, that is what is wrong. */
int listen_everywhere(struct daemon *d, const struct plan *plan, struct why *why);

/* Prints the listeners. Not before all is well: who reads them takes us for started. */
void listen_say(const struct daemon *d);

/* ---- stop.c ---- */

/* The timers of a stop. */
int stop_prepare(struct daemon *d);

/* Stops in good order; called again, in a hurry. `force`: without time for what runs. */
void stop_begin(struct daemon *d, bool force);

/* After server_stop: everything is closed there. */
void stop_server_closed(void *daemon);
