/*
 * What waits for a human, in a live view: koine approval watch, and a part of koine top.
 *
 * The list is requested anew whenever an event says that it has changed. The selection is
 * identified by its id: a list that moves under the cursor must not make anybody approve
 * something else.
 */
#pragma once

#include "cli/approval/view.h"
#include "cli/screen/live.h"

enum inbox_mode {
	INBOX_LIST,
	INBOX_VIEW, /* all of one */
	INBOX_LINE, /* a comment is being typed */
};

struct inbox {
	struct live_view *live;
	struct live_part *list; /* one of the view's parts */
	const char *session;    /* only those of this one; NULL: all */
	enum inbox_mode mode;
	enum inbox_mode mode_before; /* the mode in which the line was begun */
	/* the list */
	bool known;                      /* it was answered */
	bool was_empty;                  /* the last time */
	char selected[APPROVAL_ID_SIZE]; /* "": none */
	size_t at;                       /* its index, even while it is gone */
	uint64_t ready_ms;               /* before that no key approves it: nobody chose it */
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
	bool busy;    /* a decision is on its way */
	bool step_on; /* our own decision removed the selected one */
};

/* `list` is the part of the view that becomes the inbox's. */
void inbox_init(struct inbox *in, struct live_view *live, struct live_part *list,
		const char *session);
void inbox_done(struct inbox *in);

/* What a live view calls, see struct live_view; `in` is the inbox. inbox_draw is a whole screen. */
void inbox_away(void *in);
void inbox_told(void *in, const struct koine_value *event);
void inbox_key(void *in, int key);
void inbox_draw(void *in, struct canvas *c);

/* The listed approvals, and one of them by its index; NULL: none. */
const struct koine_value *inbox_list(const struct inbox *in);

/* Its rows of the list, from that row of the canvas on, and how many wait above them. */
void inbox_draw_list(struct inbox *in, struct canvas *c, unsigned row, unsigned rows);

/* Whether all of one is looked at, which takes all rows but the last. */
bool inbox_is_viewing(const struct inbox *in);

/* The last row: what is typed, a note, or the keys. */
void inbox_draw_foot(const struct inbox *in, struct canvas *c);
