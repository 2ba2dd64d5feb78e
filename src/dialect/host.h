/* Methods about the hosts that share a store. */
#pragma once

#include "call/method.h"

extern const struct method host_methods[];
extern const unsigned host_n_methods;
