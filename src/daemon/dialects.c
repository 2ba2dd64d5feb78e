#include <string.h>

#include "daemon/daemon.h"
#include "dialect/koine/koine.h"

const struct spoken dialects[] = {
	{&koine_dialect, "koine.sock", NULL},
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
