/*
 * A live view: the screen, its keys, and a connection that comes back when koined does. What it shows
 * comes in parts, each the response to one call. A part is requested again when an event says that it
 * has changed, and never while nothing has happened, unless its row says so.
 */
#pragma once

#include <termios.h>

#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/signals.h"
#include "cli/screen/terminal.h"

/* Keys that are not a byte. */
enum {
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_ESCAPE,
	KEY_PASTED = 0x1000, /* | a byte */
};

/* A terminal's bytes become keys: keys of several bytes, a lone Escape, and pasted text, which must
 * never act as keys. */
struct keys {
	unsigned escape; /* how many bytes of a key have arrived */
	unsigned number; /* in ESC [ 5 ~ */
	uint64_t escape_ms;
	bool pasting;
};

/* A frame of a live view: rows of text, each cut to the terminal's width with a mark. */

struct canvas {
	const struct terminal *terminal;
	unsigned columns;
	unsigned rows;
	unsigned room; /* columns left in the row */
	bool color;
	bool cursor; /* set by whoever draws: it is shown after what was put last */
	/* glyph_read_exact, or glyph_read */
	glyph_fn read;
};

/* Begins a row. They are drawn from the first downwards; some may be left out. */
void canvas_row(struct canvas *c, unsigned row);

/* For what is put from now on in this row. Colours only where they are wanted. */
void canvas_style(struct canvas *c, unsigned style);

/* As much as fits, and "…" if that is not all. */
void canvas_print(struct canvas *c, struct text t);
void canvas_print_str(struct canvas *c, const char *text);

/* The same in exactly so many columns, followed by a space. */
void canvas_put(struct canvas *c, struct text t, unsigned width);

/* Rows one below another: those before `end` may be used. */
struct rows {
	struct canvas *canvas;
	unsigned at;
	unsigned end;
};

/* False: there is no room. */
bool rows_begin(struct rows *r);

/* A line about the row before it, in grey; none if it is empty. */
void rows_below(struct rows *r, struct text t);

/* What is under way: "ID STATE TIME WHERE title". */
struct live_work {
	struct text id;
	struct text state;
	enum color color;
	const char *span;
	struct text where;
	unsigned where_width; /* 0: it is left out */
	struct text title;
};

bool rows_work(struct rows *r, const struct live_work *w);

/* What a part requests, and when. */
struct live_row {
	const char *method;
	const char *with[2][2]; /* parameters, and their JSON */
	int limit;              /* the same; 0: none */
	/* Adds others; or NULL. */
	void (*add)(void *arg, struct koine_json *params);
	const char *events[2]; /* those whose type begins so change it */
	int least_ms;          /* between two requests */
	int most_ms;           /* the same, if no event comes; 0: it stays */
	const char *
		polled; /* a list: while it has items, least_ms counts without any event; or NULL */
	bool needed;    /* an error ends the view; otherwise the part is empty then */
	bool passing;   /* the response is not kept */
	/* It was answered; NULL: with an error. Or NULL. */
	void (*took)(void *arg, const struct koine_value *result);
};

struct live_view;

struct live_part {
	const struct live_row *row;
	void *arg;             /* for the callbacks of its row */
	struct koine_doc *doc; /* the last response; NULL: none */
	bool stale;            /* set it, and the part is requested again */
	bool open;             /* requested, without a response */
	uint64_t asked_ms;
	struct live_view *live; /* internal */
};

/* A member of what a part has. */
const struct koine_value *live_member(const struct live_part *p, const char *member);

struct live_view {
	struct cli *cli;
	void *arg; /* for all callbacks */
	/* The types of events that are wanted. */
	const struct option_list *types;
	struct live_part *parts;
	unsigned n_parts;
	/* koined is here, for the first time or again; it left: what was asked is not answered; an event
	 * has come. Or NULL. */
	void (*back)(void *arg);
	void (*away)(void *arg);
	void (*told)(void *arg, const struct koine_value *event);
	void (*key)(void *arg, int key);
	void (*draw)(void *arg, struct canvas *c);
	/* ---- for the view ---- */
	bool leave;       /* set by any callback: this is the last round */
	bool here;        /* koined has answered, and has not left */
	bool was_here;    /* at any time */
	bool changed;     /* set it, and the view is drawn */
	uint64_t n_calls; /* that were made */
	/* ---- its own ---- */
	const struct terminal *terminal;
	struct termios before;
	struct signals signals;
	int status; /* the exit status, once it was left */
	bool subscribing;
	struct keys keys;
	uint64_t retry_ms;
	unsigned delay_ms;
	uint64_t drawn_ms;
	uint64_t ask_ms;
};

/*
 * Connects, and runs on a screen of its own until somebody leaves; everything is restored at the
 * end, even when a signal ends it. An exit code; EX_USAGE, without a word, if stdin and stdout are
 * not both a terminal.
 */
int live_run(struct live_view *l);

/* Takes the params. False: the connection is lost, and cb may have been called. */
bool live_call(struct live_view *l, const char *method, struct koine_json *params,
	       koine_answer_cb cb, void *arg);

/* Whether to use an answer. A lost connection is retried; an error ends the view, since without
 * an answer there is nothing to show. */
bool live_took(struct live_view *l, const char *method, int result, const struct koine_answer *a);

/* Drops pending keys: they were meant for something else. */
void live_forget_keys(void);

/* The current size; it may change at any time. */
void live_size(unsigned *ret_columns, unsigned *ret_rows);

/* What to show while koined is not here. */
const char *live_away_words(const struct live_view *l);

/* Whether that says only that koined left. */
bool live_is_loss(int result, const struct koine_answer *a);
void live_lost(struct live_view *l);
