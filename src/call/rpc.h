/* Methods about calls themselves, for any server: the "rpc." names that JSON-RPC reserves. */
#pragma once

#include "call/method.h"

extern const struct method rpc_methods[];
extern const unsigned rpc_n_methods;
