/*
 * koine doctor: what it has found out before any check, and what the checks find.
 *
 * A check is a row of a table: its name, and a function that adds findings. What several need is
 * asked once, with a limit of time each: the daemon at its socket, and `koined --check` with the
 * arguments and the environment of the daemon that runs, so that it says whether that one could
 * start again.
 */
#pragma once

#include <sys/types.h>

#include "cli/kit/cli.h"
#include "cli/kit/value.h"

enum mark {
	MARK_OK,
	MARK_WARN,    /* it works, but look at it */
	MARK_BAD,     /* something does not work */
	MARK_SKIPPED, /* it cannot be seen without a daemon */
};

enum {
	FINDINGS_MAX = 64,
	FINDING_MAX = 1024,
	WORD_MAX = 4 * PATH_MAX, /* a path of single quotes has four bytes for each */
	MEND_MAX = WORD_MAX + 256,
};

struct finding {
	const char *check;
	enum mark mark;
	char text[FINDING_MAX];
	/* What mends it: a line for a shell, or else a sentence; "": nothing. */
	char command[MEND_MAX];
	char advice[MEND_MAX];
};

struct exam {
	struct cli *cli;
	const char *check;  /* the one that is under way */
	const char *socket; /* the daemon's path; NULL: it is reached by a URL */

	/* The daemon. */
	int dialled;         /* of koine_dial */
	int asked;           /* of daemon.status, if that is 0 */
	char no_answer[256]; /* why, if one of them is not */
	pid_t pid;           /* who serves the socket; 0: unknown */
	uid_t uid;           /* the same */
	struct koine_answer *answer;
	const struct koine_value *status; /* NULL: no koined answers */

	/* koined --check. */
	struct buf said;
	int exit_code;           /* -1: it did not end by itself */
	char koined[PATH_MAX];   /* ""; its program */
	char settings[PATH_MAX]; /* the file that it reads; "": none */
	const char *file;        /* the same, or what it would be called */

	struct finding *findings;
	unsigned n;
};

/* ---- asked once ---- */

/* The lines of koined --check, without the settings below them; *rest begins with {NULL, 0}. */
bool exam_next_line(const struct exam *e, struct text *rest, struct text *ret_line);

/* How long one check may take: as --timeout says, or else so long. */
unsigned exam_patience(const struct exam *e, unsigned ms);

/* ---- findings ---- */

/* The last one may be given a command or an advice then. A command that begins with koine or koined
 * gets what a shell needs to run the ones that this is about. */
void exam_find(struct exam *e, enum mark mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void exam_command(struct exam *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void exam_advise(struct exam *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "start" or "restart". koine does not know how a koined elsewhere was started. */
void exam_daemon_command(struct exam *e, const char *verb);

/* A word of a shell's line, quoted. */
const char *exam_word(const char *word, char out[WORD_MAX]);

struct plan;

/* ---- checks ---- */

void check_daemon(struct exam *e);
void check_version(struct exam *e);
void check_settings(struct exam *e);
void check_socket(struct exam *e);
void check_ports(struct exam *e);
void check_access(struct exam *e);
void check_store(struct exam *e);
void check_agents(struct exam *e);
void check_servers(struct exam *e);
void check_sessions(struct exam *e);
void check_connected(struct exam *e);
void check_mcp(struct exam *e);
