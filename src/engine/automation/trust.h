/*
 * Whether a project's files may act. A project may be a clone of anything: its rules, watches and
 * schedules, and the tasks that it brought along, do nothing until somebody has looked at them and
 * said so. What was trusted is the file as it was: its digest is kept, and another asks again.
 *
 * All of it is the loop's, but for trust_start and trust_write.
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

/* As it is written there; for people to see. */
struct trust_job {
	struct text id;
	struct text cron;
};

/* What a project would do. What it points to is its owner's, until it offers something else. */
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

/* In place of what was offered for that folder. */
int trust_offer(struct trust *t, const struct trust_offer *offer);

/* Those that are served; valid until the loop turns. */
unsigned trust_offers(const struct trust *t, const struct trust_offer *const **ret_offers);
/* REFUSE_NOT_FOUND for one that is not. */
int trust_find(const struct trust *t, struct text folder, const struct trust_offer **ret_offer,
	       struct why *why);
/* REFUSE_NOT_FOUND for one that is not, and never was trusted. */
int trust_known(const struct trust *t, struct text folder, struct why *why);
/* *ret_ms: when what is kept was; 0: never. May be NULL. */
enum trust_state trust_of(const struct trust *t, const struct trust_offer *o, int64_t *ret_ms);

/* REFUSE_CONFLICT where the file is not the one that was looked at. */
int trust_check(const struct trust_offer *o, struct text digest, struct why *why);

/* On the writer's thread: as it shall be kept, with its event. digest {NULL, 0}: taken back. */
int trust_write(struct trust *t, struct text folder, struct text digest, int64_t now_ms);
/* On the loop, once that is done. */
int trust_set(struct trust *t, struct text folder, struct text digest, int64_t now_ms);
