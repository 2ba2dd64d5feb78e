/*
 * A question to a human, and the wait for its answer: what `koine hook` and `koine ask` share.
 *
 * If the daemon leaves meanwhile, we wait for it and ask again with the same id, so that
 * nobody has to decide twice. When we are interrupted, or the reader of our stdout is gone, the
 * caller withdraws the question.
 */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/signals.h"

/* How the wait ends. */
enum asking_end {
	ASKING_NONE, /* not yet */
	ASKING_DECIDED,
	ASKING_LATE,
	ASKING_UNAVAILABLE,
	ASKING_REFUSED, /* koined refuses the question */
	ASKING_GONE,    /* a signal ended us, or the agent is gone */
};

struct asking {
	struct cli *cli;
	const char *method;
	/* Adds its params, but for id, timeout, session_id and run_id. */
	void (*add)(const struct asking *a, struct koine_json *params);
	bool by_rules;      /* without a policy or grant that decides, koined refuses nothing */
	const char *hint;   /* tells people at a terminal what to do; the id follows it */
	unsigned hint_ms;   /* delay before the hint is printed */
	bool reader_counts; /* without a reader of stdout nobody waits */
	char id[UUID_LEN + 1];
	uint64_t deadline_ms; /* of the steady clock; UINT64_MAX: none */
	struct signals signals;
	bool under_way;
	bool said;                /* the hint was printed */
	int result;               /* of the last call */
	char refusal[256];        /* why it was */
	struct koine_doc *answer; /* NULL: none yet */
};

/* SIGINT, SIGTERM and SIGHUP end the wait. */
void asking_catch_signals(struct asking *a);
bool asking_interrupted(void); /* by SIGINT */
/* If a signal ended the wait, dies by it. */
void asking_end_by_signal(const struct asking *a);

/* The session and the run that a question belongs to, from the environment, as params. */
void asking_add_run(struct koine_json *params);

/* 0: no limit. Call it before the daemon is dialled. */
void asking_set_deadline(struct asking *a, int64_t ms);
/* Needs an id and a connection. Never returns ASKING_NONE. */
enum asking_end asking_wait(struct asking *a);

/* Takes the question back, by a connection of its own: nobody should decide it any more. */
void asking_withdraw(struct asking *a);
