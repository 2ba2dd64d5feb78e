/* What the commands about approvals take beside the options of all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct approval_options {
	/* koine hook */
	const char *agent;  /* NULL: as the hook's JSON looks */
	const char *format; /* NULL: "auto" */
	int64_t wait_ms;    /* 0: not given */
	/* koine approvals */
	bool watch;
	bool all;
	const char *session;
	int64_t limit; /* 0: not given */
	/* koine approvals, approve, deny, respond */
	bool exact;
	/* koine approve, deny */
	const char *comment;
	const char *grant; /* "session", "always"; NULL: none */
	int64_t for_ms;    /* 0: for good */
	int64_t uses;      /* 0: any number */
};
