/* Internal to engine/bridge. */
#pragma once

#include "base/list.h"
#include "engine/approval/approval.h"
#include "engine/bridge/bridge.h"

enum {
	BRIDGE_FOLDER_MAX = 4096,
	BRIDGE_ID_START = 9, /* eight digits and a hyphen, before the server's name */
	BRIDGE_ID_REST = APPROVAL_ID_MAX - BRIDGE_ID_START,
};

_Static_assert(BRIDGE_NAME_MAX + 1 + AGENT_SERVER_ID_MAX + 2 <= (int)BRIDGE_ID_REST,
	       "no id is cut");

struct bridges {
	struct bridges_opts opts;
	struct list list;
	unsigned n;
	unsigned n_notes; /* on their way to the store */
	bool stopping;
};

struct bridge {
	struct list link;
	struct bridges *all;
	struct agent_server *server;
	struct list open; /* struct mirrored, oldest first */
	struct list left; /* struct bridge_left */
	unsigned n_open;
	unsigned away_ms;
	struct timer *away;
	bool missed; /* more was asked than we bridge */
	char name[BRIDGE_NAME_MAX + 1];
};

/* An approval that a former run has left pending. */
struct bridge_left {
	struct list link;
	char id[APPROVAL_ID_MAX + 1];
	size_t folder_len;
	char folder[];
};

enum part_state { PART_WAITS, PART_DECIDED, PART_LEFT };

/* One approval. */
struct bridged_part {
	struct bridged *of;
	enum part_state state;
	struct approval_waiter *waiter; /* while it waits */
	bool several;
	bool allow;
	char *comment; /* NULL: none */
	size_t comment_len;
	char id[APPROVAL_ID_MAX + 1];
};

/* A request of the server. */
struct bridged {
	struct list link;
	struct bridge *bridge;
	bool is_question;
	bool seen;    /* since the lists began */
	bool sending; /* the reply is on its way */
	unsigned n_parts;
	struct bridged_part parts[AGENT_SERVER_PARTS_MAX];
	struct text id;
	struct text session;
	struct text folder;
	char own[]; /* the texts */
};

/* ---- request.c ---- */

struct bridged *bridged_find(struct bridge *m, struct text id);
void bridged_ask(struct bridge *m, const struct agent_server_ask *ask);
/* Sends what was decided, once all of it is. */
void bridged_send(struct bridged *q);
/* Nobody waits for it there any more: withdraws what is pending, and frees it. */
void bridged_withdraw(struct bridged *q, const char *reason);
/* Leaves the approvals as they are. */
void bridged_free(struct bridged *q);

/* ---- left.c ---- */

/* Notes what is pending of this server. */
void bridge_load(struct bridge *m);
/* It is asked again: not left any more. */
void bridge_left_take(struct bridge *m, const char *id);
void bridge_left_withdraw(struct bridge *m, const char *reason);
void bridge_left_free(struct bridge *m);

/* ---- bridge.c ---- */

/* Call it when requests have gone, after all else. */
void bridge_settle(struct bridge *m);

/* ---- note.c ---- */

void bridge_note(struct bridge *m, const struct agent_server_note *note);
