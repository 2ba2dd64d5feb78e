#include "base/fault.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct fault_name *_Atomic named;

void fault_set_names(const struct fault_name *names)
{
	atomic_store(&named, names);
}

const char *fault_words(int fault)
{
	const struct fault_name *n = atomic_load(&named);

	for (; n && n->fault != 0; n++) {
		if (n->fault == fault)
			return n->words;
	}
	return strerror(abs(fault));
}
