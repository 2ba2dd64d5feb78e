/* Inside io/ only: the libuv loop behind a struct loop. */
#pragma once

#include <uv.h>

#include "io/loop.h"

uv_loop_t *loop_uv(struct loop *l);
