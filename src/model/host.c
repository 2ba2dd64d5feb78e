#include "model/host.h"

static const char *const state_names[N_HOST_STATES] = {
	[HOST_ALIVE] = "alive",
	[HOST_LEFT] = "left",
	[HOST_LOST] = "lost",
	[HOST_UNKNOWN] = "unknown",
};

#define MEMBER(kind, field) MEMBER_OF(struct host, kind, field)

/* clang-format off */
static const struct member members[] = {
	{"name", "name", MEMBER(TEXT, name)},
	{"epoch", "epoch", MEMBER(INT, epoch)},
	{"state", "state", MEMBER(ENUM, state), 0, MEMBER_NAMES(state_names)},
	{NULL, "boot", MEMBER(TEXT, boot), MEMBER_NOT_NULL},
	{"labels", "labels", MEMBER(TEXT, labels), MEMBER_NOT_NULL},
	{"version", "version", MEMBER(TEXT, version), MEMBER_NOT_NULL},
	{"since", "since_ms", MEMBER(TIME, since_ms)},
	{"seen_at", "seen_ms", MEMBER(TIME, seen_ms)},
	{"lease_until", "lease_ms", MEMBER(TIME, lease_ms)},
	{"running", "running", MEMBER(INT, running)},
	{"parallel", "parallel", MEMBER(INT, parallel)},
};
/* clang-format on */

const struct schema host_schema = SCHEMA(struct host, members);

bool host_has_label(const struct host *host, struct text label)
{
	struct text rest = host->labels;
	struct text word;

	while (text_next(&rest, ' ', &word)) {
		if (word.len > 0 && text_equal(word, label))
			return true;
	}
	return false;
}
