/*
 * A control group (version 2) below our own: whatever a child in it starts stays in it, and
 * all of it can be ended at once. Only where our own group is ours to divide: as root, or
 * delegated by the service manager.
 *
 * All files are in memory, so the loop may use them; so may any thread.
 */
#pragma once

#include <stdbool.h>

struct cgroup;

/* -EOPNOTSUPP where cgroups cannot be used, -EINVAL for a name that is not a file name, -EEXIST. */
int cgroup_new(const char *name, struct cgroup **ret_cgroup);

/* A child begins in it by its folder (io/process/clone_into), or enters by writing "0" to the
 * other. */
int cgroup_folder(const struct cgroup *g);
int cgroup_fd(const struct cgroup *g);

/* Whether any process is in it; zombies are not. */
bool cgroup_is_populated(const struct cgroup *g);

/* SIGKILL to everything in it, including what is just being born. Processes end soon, not at
 * once. */
int cgroup_kill(struct cgroup *g);

/* Removes it, if it is empty; otherwise it stays until a sweep. Accepts NULL. */
void cgroup_free(struct cgroup *g);

/*
 * Ends and removes groups below our own whose names begin with `prefix`, as a crash leaves
 * them. Others may share our group, so the prefix must be unique to us. Returns how many are
 * left: their processes take a moment to end, so call again until there are none.
 */
unsigned cgroup_sweep(const char *prefix);
