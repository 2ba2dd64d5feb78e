/*
 * A control group (version 2) below our own: whatever a child in it starts stays in it, and all of
 * it can be ended at once. Only where our own group is ours to divide: as root, or delegated by
 * the service manager.
 *
 * Files in a memory file system only, so fit for the loop; any thread may call.
 */
#pragma once

#include <stdbool.h>

struct cgroup;

/* -EOPNOTSUPP where there is no such thing for us, -EINVAL for a name that is no file's name,
 * -EEXIST. */
int cgroup_new(const char *name, struct cgroup **ret_cgroup);

/* What a child writes "0" to, to enter. */
int cgroup_fd(const struct cgroup *g);

/* Whether any process is in it; zombies are not. */
bool cgroup_is_populated(const struct cgroup *g);

/* SIGKILL to all in it, those too that are being born. They end soon, not at once. */
int cgroup_kill(struct cgroup *g);

/* Removes it, if nobody is in it any more; otherwise it stays until a sweep. Accepts NULL. */
void cgroup_free(struct cgroup *g);

/*
 * Ends and removes those below our own group whose names begin with `prefix`, as a crash leaves
 * them. Others may share that group, so the prefix must be nobody else's. How many are still there: their processes take a moment, so call again until there are none.
 */
unsigned cgroup_sweep(const char *prefix);
