/* What rules, jobs and trust need from the store: who acts on an occurrence, and what must survive a restart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/rule.h"

struct connection;

/* *ret_claimed is true for whoever claims this occurrence of a rule's schedule first. An event that is
 * to fire a rule is claimed, too, by its number below 0. */
int store_rule_claim(struct connection *c, struct text rule, int64_t occurrence_ms, int64_t now_ms,
		     bool *ret_claimed);

/* Releases a claim that could not be acted on. */
int store_rule_unclaim(struct connection *c, struct text rule, int64_t occurrence_ms);

/* The newest claimed occurrence; 0: none yet. */
int store_rule_last(struct connection *c, struct text rule, int64_t *ret_occurrence_ms);

/* A rule that was never stored last fired at 0 and is as the settings say; its name is then the
 * caller's. */
int store_rule_find(struct connection *c, struct text name, struct arena *arena,
		    struct rule_memory *ret_memory);
/* n_fired is added to the stored count. A fired_ms of 0 and an enabled of -1 leave what is stored: others
 * may have changed it since it was read. */
int store_rule_put(struct connection *c, const struct rule_memory *memory);

/* ---- jobs: schedules made at run time, not in the settings ---- */

/* These three are on the writer's connection. *ret_added: false if there is one with that id. */
int store_job_add(struct connection *c, const struct job *job, bool *ret_added);
/* Of one that was last changed then; *ret_changed: false if somebody has changed or deleted it since. */
int store_job_change(struct connection *c, const struct job *job, int64_t was_ms,
		     bool *ret_changed);
int store_job_delete(struct connection *c, struct text id, bool *ret_found);

/* Those with these names or ids, in any order. */
int store_rule_find_named(struct connection *c, const struct text *names, unsigned n,
			  struct arena *arena, struct rule_memory **ret_rows, unsigned *ret_n);
int store_job_find_named(struct connection *c, const struct text *ids, unsigned n,
			 struct arena *arena, struct job **ret_rows, unsigned *ret_n);

int store_job_ids(struct connection *c, struct arena *arena, struct text **ret_ids,
		  unsigned *ret_n);

/* All jobs, oldest first; copied into the arena, not unpacked. */
int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n);

/* ---- which projects are trusted, and the state of their files then: few, read as a whole ---- */

/* Replaces what was stored for the folder. */
int store_trust_put(struct connection *c, const struct project_trust *trust);
int store_trust_delete(struct connection *c, struct text folder);
int store_trust_list(struct connection *c, struct arena *arena, struct project_trust **ret_rows,
		     unsigned *ret_n);
