/*
 * Whether a project's files may act. A project may be a clone of anything: its rules, watches
 * and schedules, and the tasks that it brought along, do nothing until somebody has looked at
 * them and trusts them. Trust applies to one version of the file: its digest is stored, and a
 * file with another one must be trusted anew.
 *
 * Everything belongs to the loop, except trust_write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/rule.h"
#include "base/text.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct events;
struct store;
struct trust;

enum { TRUST_DIGEST_LEN = 64 };

/* A job from the project's file, for people to see. */
struct trust_job {
	struct text id;
	struct text cron;
};

/* What a project would do. Everything that it points to belongs to the offerer, until the next
 * offer. */
struct trust_offer {
	struct text folder;
	struct text digest; /* of its file; {NULL, 0}: there is none */
	const struct rule *rules;
	unsigned n_rules;
	unsigned n_left_out; /* rules of the file that are too many */
	const struct text *watches;
	unsigned n_watches;
	const struct trust_job *jobs;
	unsigned n_jobs;
	/* Trust was given or withdrawn. */
	void (*changed)(void *arg);
	void *arg;
};

enum trust_state {
	TRUST_NOTHING, /* there is nothing that would act */
	TRUST_WANTED,
	TRUST_CHANGED, /* another version of the file was trusted */
	TRUST_GIVEN,
};

const char *trust_state_name(enum trust_state state);

/* Reads what was stored. Call it before the threads start. */
int trust_new(struct store *store, struct events *events, struct trust **ret_trust);

/* What other hosts trust, or trust no more, counts here, too. */
int trust_follow(struct trust *t, struct loop *loop, struct workers *workers);
void trust_free(struct trust *t); /* accepts NULL */

/* Replaces the previous offer for that folder. */
int trust_offer(struct trust *t, const struct trust_offer *offer);

/* How many rules of the project, or of all for {NULL, 0}, are too many to be used. */
unsigned trust_left_out(const struct trust *t, struct text folder);

/* The offers of the projects that are served; valid until the next pass of the loop. */
unsigned trust_offers(const struct trust *t, const struct trust_offer *const **ret_offers);
/* REFUSE_NOT_FOUND for a project that is not served. */
int trust_find(const struct trust *t, struct text folder, const struct trust_offer **ret_offer,
	       struct error *error);
/* REFUSE_NOT_FOUND for a project that is not served and was never trusted. */
int trust_known(const struct trust *t, struct text folder, struct error *error);
/* *ret_ms: when it was trusted; 0: never. May be NULL. */
enum trust_state trust_of(const struct trust *t, const struct trust_offer *o, int64_t *ret_ms);

/* REFUSE_CONFLICT if the file is not the version that was looked at. */
int trust_check(const struct trust_offer *o, struct text digest, struct error *error);

/* Runs on the writer's thread: stores it, with its event. digest {NULL, 0}: trust is withdrawn. */
int trust_write(struct trust *t, struct text folder, struct text digest, int64_t now_ms);
/* Runs on the loop, once trust_write is done. */
int trust_set(struct trust *t, struct text folder, struct text digest, int64_t now_ms);
