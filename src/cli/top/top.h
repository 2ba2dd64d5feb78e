/* koine top: everything that runs and waits on one screen. */
#pragma once

#include "cli/approval/inbox.h"

enum top_part {
	TOP_STATUS,
	TOP_FIGURES,
	TOP_AGENTS,
	TOP_MEMORY,
	TOP_RUNNING, /* tasks */
	TOP_QUEUED,
	TOP_SESSIONS, /* that run */
	TOP_WAITING,  /* sessions that wait for a human */
	TOP_TODAY,    /* sessions, for what they cost */
	TOP_INBOX,
	N_TOP_PARTS,
};

enum { TOP_LIST_MAX = 100, TOP_LINES = 32, TOP_LINE_SIZE = 512 };

/* What a session said last. */
struct top_line {
	char id[64]; /* "": unused */
	char text[TOP_LINE_SIZE];
};

/* What is counted, at one moment. */
struct top_figures {
	uint64_t at_ms; /* 0: not known */
	double calls;
	double tokens;
	double resident;
	uint64_t own_calls; /* how many of the calls are ours */
};

struct top {
	struct live_view live;
	struct inbox inbox;
	struct live_part parts[N_TOP_PARTS];
	struct top_line lines[TOP_LINES];
	unsigned next_line;   /* the slot that is used next */
	uint64_t calls_asked; /* our calls before the figures were asked for */
	struct top_figures before;
	struct top_figures now;
	double cost_today;
	bool cost_is_less; /* there were more sessions than were asked for */
};

const struct koine_value *top_list(const struct top *t, enum top_part part, const char *member);

/* ---- lines.c: figures, and the last lines of sessions ---- */

/* What came between the last two looks, by second; negative: not known. */
double top_calls_rate(const struct top *t);
double top_tokens_rate(const struct top *t);

/* The line of a session; NULL: none is known. */
const struct top_line *top_line_of(const struct top *t, struct text id);

/* ---- draw.c ---- */

void top_draw(void *arg, struct canvas *c);
