/*
 * What agents ask in servers of their own (agent/server), mirrored into the inbox: each request
 * becomes an approval, under an id that is made of the server's name and the request's id, and what
 * is decided is sent back. Rules and grants answer as they do for everybody.
 *
 * An approval that nobody decides in time gets no reply: the server's own dialog goes on waiting.
 * What was answered there, or is not asked there any more, is withdrawn here. While a server is
 * away its approvals wait, for a while.
 *
 * All of it belongs to the loop.
 */
#pragma once

#include <stdint.h>

#include "agent/server/server.h"
#include "io/work.h"

struct approvals;
struct events;
struct bridges;

enum {
	BRIDGES_MAX = 16,
	BRIDGE_OPEN_MAX = 64,  /* requests of one server; more are left to it */
	BRIDGE_NOTES_MAX = 64, /* on their way to the store; more are not logged */
	BRIDGE_NAME_MAX = 36,
};

struct bridges_opts {
	struct approvals *approvals;
	struct events *events;
	struct loop *loop;
	struct workers *workers;
};

int bridges_new(const struct bridges_opts *opts, struct bridges **ret_bridges);
/* Leaves everything as it is: the next start goes on with it. Accepts NULL. */
void bridges_stop(struct bridges *m);
void bridges_free(struct bridges *m); /* accepts NULL */

struct bridge_opts {
	const struct agent_server_ops *ops;
	const char *name;
	const char *url;
	const char *user;
	const char *password_env;
	const char *password_file;
	unsigned idle_ms;
	unsigned away_ms; /* how long approvals of a server that is away wait */
};

int bridge_add(struct bridges *m, const struct bridge_opts *opts);
/* Leaves its approvals pending if it is about to be added again, else withdraws them. */
void bridge_remove(struct bridges *m, const char *name, bool comes_back);

struct bridge_view {
	const char *name;
	struct agent_server_view server;
	unsigned open;
};

unsigned bridges_count(const struct bridges *m); /* 0 for NULL */
void bridges_look(const struct bridges *m, unsigned i, struct bridge_view *ret_view);
