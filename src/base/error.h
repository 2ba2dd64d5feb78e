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

/* Room for a path of PATH_LEN bytes and what is said about it: the end of a path says most. */
enum { ERROR_TEXT_MAX = 640 };

struct error {
	enum refusal code;
	char text[ERROR_TEXT_MAX];
	char field[64]; /* the parameter at fault, or "" */
};

/* Nothing is refused. On a path that is taken often this is cheaper than = {0}. */
static inline void error_clear(struct error *error)
{
	error->code = 0;
	error->text[0] = '\0';
	error->field[0] = '\0';
}

/* Fills error (which may be NULL) and returns the code. */
int refuse(struct error *error, enum refusal code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A sentence and a name that somebody sent. NULs in the name are shown as U+FFFD, so that what
 * follows them is not lost. */
int refuse_name(struct error *error, enum refusal code, const char *words, struct text name);

/* A copy on the heap, for an object that lives long and is rarely refused anything: struct error is
 * large. Never NULL: without memory it is a constant that says so. error_free takes both, and NULL. */
const struct error *error_keep(const struct error *error);
void error_free(const struct error *error);

/* The same as refuse, naming the parameter at fault. */
int refuse_field(struct error *error, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Refuses a text that has a NUL byte, or more than `max` bytes. */
int text_check(struct text t, const char *field, size_t max, struct error *error);

struct text_limit {
	struct text text;
	const char *field;
	size_t max;
};

int texts_check(const struct text_limit *texts, size_t n, struct error *error);

/* What a fault (-errno) is called where a person reads it: in an answer, a log line, koine status. */

struct fault_name {
	int fault; /* 0 ends a list */
	const char *words;
};

/* Never NULL. Any thread. */
const char *fault_words(int fault);

/* The words of a fault or of the refusal in error: result is not 0. */
const char *error_words(int result, const struct error *error);

/* From now on the faults in this list have its words, and all others those of strerror. NULL: all have
 * those. A store on a server calls it: its faults are not this machine's. */
void fault_set_names(const struct fault_name *names);
