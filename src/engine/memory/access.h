/* Who may see a memory, and who may change it. */
#pragma once

#include "engine/memory/memory.h"
#include "store/memory.h"

/* An empty name counts as none. */
struct text memory_name(struct text t);

/* Whether the asker is named; an unnamed asker sees everything, or what is common. */
bool memory_names_somebody(const struct memory_asker *by);

/* Refuses an asker that makes no sense. */
int memory_check_asker(const struct memory_asker *by, struct why *why);

/* Where the memories of their own that they see were learnt. */
enum store_learnt memory_learnt(const struct memory_asker *by);

struct store_scope memory_seen_by(const struct memory_asker *by);

/* Nobody who has a name owns the common ones. */
struct store_scope memory_changed_by(const struct memory_asker *by);

/* Sets the owner of a new memory. */
void memory_give(const struct memory_new *in, struct memory *m);
