/* Internal to engine/mirror. */
#pragma once

#include "base/list.h"
#include "engine/approval/approval.h"
#include "engine/mirror/mirror.h"

enum {
	MIRROR_FOLDER_MAX = 4096,
	MIRROR_ID_START = 9, /* eight digits and a hyphen, before the server's name */
	MIRROR_ID_REST = APPROVAL_ID_MAX - MIRROR_ID_START,
};

_Static_assert(MIRROR_NAME_MAX + 1 + AGENT_SERVER_ID_MAX + 2 <= (int)MIRROR_ID_REST,
	       "no id is cut");

struct mirrors {
	struct mirrors_opts opts;
	struct list list;
	unsigned n;
	unsigned n_notes; /* on their way to the store */
	bool stopping;
};

struct mirror {
	struct list link;
	struct mirrors *all;
	struct agent_server *server;
	struct list open; /* struct mirrored, oldest first */
	struct list left; /* struct mirror_left */
	unsigned n_open;
	unsigned away_ms;
	struct timer *away;
	bool missed; /* more was asked than we mirror */
	char name[MIRROR_NAME_MAX + 1];
};

/* An approval that a former run has left pending. */
struct mirror_left {
	struct list link;
	char id[APPROVAL_ID_MAX + 1];
	size_t folder_len;
	char folder[];
};

enum part_state { PART_WAITS, PART_DECIDED, PART_LEFT };

/* One approval. */
struct mirrored_part {
	struct mirrored *of;
	enum part_state state;
	struct approval_waiter *waiter; /* while it waits */
	bool several;
	bool allow;
	char *comment; /* NULL: none */
	size_t comment_len;
	char id[APPROVAL_ID_MAX + 1];
};

/* A request of the server. */
struct mirrored {
	struct list link;
	struct mirror *mirror;
	bool is_question;
	bool seen;    /* since the lists began */
	bool sending; /* the reply is on its way */
	unsigned n_parts;
	struct mirrored_part parts[AGENT_SERVER_PARTS_MAX];
	struct text id;
	struct text session;
	struct text folder;
	char own[]; /* the texts */
};

/* ---- request.c ---- */

struct mirrored *mirrored_find(struct mirror *m, struct text id);
void mirrored_ask(struct mirror *m, const struct agent_server_ask *ask);
/* Sends what was decided, once all of it is. */
void mirrored_send(struct mirrored *q);
/* Nobody waits for it there any more: withdraws what is pending, and frees it. */
void mirrored_withdraw(struct mirrored *q, const char *why);
/* Leaves the approvals as they are. */
void mirrored_free(struct mirrored *q);

/* ---- left.c ---- */

/* Notes what is pending of this server. */
void mirror_load(struct mirror *m);
/* It is asked again: not left any more. */
void mirror_left_take(struct mirror *m, const char *id);
void mirror_left_withdraw(struct mirror *m, const char *why);
void mirror_left_free(struct mirror *m);

/* ---- mirror.c ---- */

/* Call it when requests have gone, after all else. */
void mirror_settle(struct mirror *m);

/* ---- note.c ---- */

void mirror_note(struct mirror *m, const struct agent_server_note *note);
