#include <string.h>

#include "daemon/daemon.h"
#include "dialect/ash/ash.h"
#include "dialect/koine/koine.h"

const struct spoken dialects[] = {
	{&koine_dialect, "koine.sock", NULL, NULL},
	{&ash_dialect, "ash.sock", "ASH_RPC_SOCKET", "/run/ash/rpc.sock"},
};

const unsigned n_dialects = sizeof(dialects) / sizeof(dialects[0]);

const struct spoken *dialect_find(const char *name)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		if (strcmp(dialects[i].dialect->name, name) == 0)
			return &dialects[i];
	}
	return NULL;
}
