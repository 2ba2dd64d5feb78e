#include "model/job.h"

#define MEMBER(kind, field) MEMBER_OF(struct job, kind, field)

static const struct member members[] = {
	{"id", "id", MEMBER(TEXT, id)},
	{"data", "data", MEMBER(PACKED, data)},
	{"created_at", "created_ms", MEMBER(TIME, created_ms)},
	{"updated_at", "updated_ms", MEMBER(TIME, updated_ms)},
};

const struct portrait job_portrait = PORTRAIT(struct job, members);
