#pragma once

#include "lib/host.h"

/* -EINVAL for a method without name or handler. */
int host_method_new(const struct koine_method *m, struct host_method **ret_method);
void host_method_free(struct host_method *h);
