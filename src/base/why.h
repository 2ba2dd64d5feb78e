/*
 * The three meanings of an int here: 0 success, < 0 a fault (-errno), > 0 a refusal from the
 * list below. A refusal carries a sentence; each dialect has one table that turns it into its
 * own code and words.
 */
#pragma once

#include "base/text.h"

enum refusal {
	REFUSE_PARSE = 1,   /* the text is not what the encoding allows */
	REFUSE_REQUEST,     /* well-formed, but not a request */
	REFUSE_METHOD,      /* no such method */
	REFUSE_PARAMS,      /* `field` says which */
	REFUSE_INTERNAL,    /* a fault, worded for the client */
	REFUSE_NOT_FOUND,   /* what was named does not exist */
	REFUSE_CONFLICT,    /* it is not in a state that allows this */
	REFUSE_LIMIT,       /* a queue or quota is full: try again later */
	REFUSE_TOO_LARGE,   /* a message, or something in it, exceeds a limit */
	REFUSE_UNAVAILABLE, /* a component that this needs is not running */
	REFUSE_FORBIDDEN,   /* not for this caller */
	REFUSE_TIMEOUT,     /* not done in time */
	REFUSE_CANCELLED,   /* asked to stop, and stopped */
	REFUSE_STOPPING,    /* the daemon is shutting down */
	N_REFUSALS,
};

struct why {
	enum refusal code;
	char text[200];
	char field[64]; /* the parameter at fault, or "" */
};

/* Fills why (which may be NULL) and returns the code. */
int refuse(struct why *why, enum refusal code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A sentence and a name that somebody sent. NULs in the name are shown as U+FFFD, so that what
 * follows them is not lost. */
int refuse_name(struct why *why, enum refusal code, const char *words, struct text name);

/* The same as refuse, naming the parameter at fault. */
int refuse_field(struct why *why, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
