/* What the memory commands take beside the options of all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SUBJECTS_MAX = 64 };

struct memory_options {
	const char *query;
	int64_t limit; /* 0: the command's own */
	const char *user;
	const char *chat;
	const char *chat_type;
	const char *source;
	const char *category;
	const char *subjects[SUBJECTS_MAX];
	unsigned n_subjects;
	double importance; /* negative: not given */
	int64_t expires_days;
	bool expires;
	bool shared;
	bool all;
	bool this_chat;
};

/* Defaults, and what the environment says. */
void memory_options_init(struct memory_options *o);
