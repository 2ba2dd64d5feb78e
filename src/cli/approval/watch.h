/*
 * koine approvals -w on a terminal: what its two files share.
 *
 * The list is requested anew whenever an event says that it has changed. The selection is
 * identified by its id: a list that moves under the cursor must not make anybody approve
 * something else.
 */
#pragma once

#include "cli/approval/approval.h"
#include "cli/approval/view.h"
#include "cli/approval/keys.h"
#include "cli/kit/screen.h"

enum watch_mode {
	WATCH_LIST,
	WATCH_VIEW, /* all of one */
	WATCH_LINE, /* a comment is being typed */
};

struct approval_watch {
	struct cli *cli;
	struct screen screen;
	enum watch_mode mode;
	enum watch_mode mode_before; /* the mode in which the line was begun */
	/* the list */
	struct koine_doc *doc;           /* NULL: none yet */
	char selected[APPROVAL_ID_SIZE]; /* "": none */
	size_t at;                       /* its index, even while it is gone */
	size_t top;                      /* the first row shown */
	/* all of one */
	struct view view;
	unsigned view_columns; /* that its rows were made for; 0: not yet */
	size_t view_top;
	size_t n_below; /* rows after the last one shown */
	/* what is typed */
	const char *decision;
	char line[APPROVAL_COMMENT_SIZE];
	size_t line_len;
	char note[512]; /* at the bottom, until a key is pressed */
	/* calls */
	bool subscribed;
	bool listing;
	bool stale;   /* something has changed since the list was requested */
	bool busy;    /* a decision is on its way */
	bool step_on; /* our own decision removed the selected one */
	uint64_t retry_ms;
	unsigned delay_ms;
	uint64_t drawn_ms;
	bool changed; /* must be drawn */
	struct keys keys;
};

/* The listed approvals, and one of them by its index; NULL: none. */
const struct koine_value *watch_list(const struct approval_watch *w);
const struct koine_value *watch_row(const struct approval_watch *w, size_t at);

/* ---- draw.c ---- */

void watch_draw(struct approval_watch *w);
