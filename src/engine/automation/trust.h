/*
 * Whether a project's files may act. A project may be a clone of anything: its rules, watches and
 * schedules, and the tasks that it brought along, do nothing until somebody has looked at them and
 * trusts them. The file is trusted as it was: its digest is kept, and with another one trust is wanted
 * again.
 *
 * All of it is the loop's, but for trust_write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/noun/rule.h"
#include "base/text.h"
#include "base/why.h"

struct events;
struct store;
struct trust;

enum { TRUST_DIGEST_LEN = 64 };

/* A job as the project's file has it, for people to see. */
struct trust_job {
	struct text id;
	struct text cron;
};

/* What a project would do. All that it points to belongs to whoever offers it, until the next offer. */
struct trust_offer {
	struct text folder;
	struct text digest; /* of its file; {NULL, 0}: there is none */
	const struct rule *rules;
	unsigned n_rules;
	const struct text *watches;
	unsigned n_watches;
	const struct trust_job *jobs;
	unsigned n_jobs;
	/* Trust was given or taken back. */
	void (*changed)(void *arg);
	void *arg;
};

enum trust_state {
	TRUST_NOTHING, /* there is nothing that would act */
	TRUST_WANTED,
	TRUST_CHANGED, /* another file was trusted */
	TRUST_GIVEN,
};

const char *trust_state_name(enum trust_state state);

/* Reads what was kept. Before the threads. */
int trust_new(struct store *store, struct events *events, struct trust **ret_trust);
void trust_free(struct trust *t); /* accepts NULL */

/* Takes the place of what was offered for that folder. */
int trust_offer(struct trust *t, const struct trust_offer *offer);

/* Those of the projects that are served; valid until the loop turns. */
unsigned trust_offers(const struct trust *t, const struct trust_offer *const **ret_offers);
/* REFUSE_NOT_FOUND for a project that is not served. */
int trust_find(const struct trust *t, struct text folder, const struct trust_offer **ret_offer,
	       struct why *why);
/* REFUSE_NOT_FOUND for a project that is not served, and never was trusted. */
int trust_known(const struct trust *t, struct text folder, struct why *why);
/* *ret_ms: when it was trusted; 0: never. May be NULL. */
enum trust_state trust_of(const struct trust *t, const struct trust_offer *o, int64_t *ret_ms);

/* REFUSE_CONFLICT where the file is not the one that was looked at. */
int trust_check(const struct trust_offer *o, struct text digest, struct why *why);

/* On the writer's thread: keeps it, with its event. digest {NULL, 0}: trust is taken back. */
int trust_write(struct trust *t, struct text folder, struct text digest, int64_t now_ms);
/* On the loop, once trust_write is done. */
int trust_set(struct trust *t, struct text folder, struct text digest, int64_t now_ms);
