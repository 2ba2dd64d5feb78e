#include "model/trust.h"

#define MEMBER(kind, field) MEMBER_OF(struct project_trust, kind, field)

static const struct member members[] = {
	{"folder", "folder", MEMBER(TEXT, folder)},
	{"digest", "digest", MEMBER(TEXT, digest)},
	{"trusted_at", "trusted_ms", MEMBER(TIME, trusted_ms)},
};

const struct portrait trust_portrait = PORTRAIT(struct project_trust, members);
