/* Who may see a memory, and who may change it. */
#pragma once

#include "engine/memory/memory.h"
#include "store/memory.h"

/* An empty name is no name. */
struct text memory_name(struct text t);

/* Whether somebody asks; nobody in particular sees everything. */
bool memory_names_somebody(const struct memory_asker *by);

/* Refuses an asker that makes no sense. */
int memory_check_asker(const struct memory_asker *by, struct why *why);

/* Where what they see of their own was learnt. */
enum store_learnt memory_learnt(const struct memory_asker *by);

struct store_scope memory_seen_by(const struct memory_asker *by);

/* The common ones belong to nobody who has a name. */
struct store_scope memory_changed_by(const struct memory_asker *by);

/* Whether its owner sees it wherever they ask, as OWNED of the store says with LEARNT_OPENLY. */
bool memory_is_open(const struct memory *m);

/* Sets whose a new memory is. */
void memory_give(const struct memory_new *in, struct memory *m);
